//! What changes while a guest lives, under one lock.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::exec::resume::Resumable;
use crate::process::ProcessTable;
use crate::session::SessionCell;
use crate::tree::Tree;

/// How many warm shells stand ready when the host does not say.
const DEFAULT_WARM: u32 = 64;

/// How many ids of past commands are remembered, so that none runs twice.
const REMEMBERED_IDS: usize = 4096;

/// How many at most, however young they are.
const MAX_REMEMBERED_IDS: usize = 65_536;

/// How long an id is remembered at least: longer than any host tries again.
const ID_MEMORY: Duration = Duration::from_secs(600);

/// When the guest ends by itself.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// After this long with nobody connected and nothing to guard.
    pub(crate) exit_after: Duration,
    /// After this long with nothing to do, whoever is connected.
    pub(crate) idle: Option<Duration>,
    /// How long finished processes are kept; the guest stays for them.
    pub(crate) keep: Duration,
    /// How long a fresh shell may take to tell its state.
    pub(crate) shell: Duration,
}

#[derive(Debug)]
pub(super) struct Table {
    pub(super) sessions: HashMap<String, Arc<SessionCell>>,
    pub(super) runs: HashMap<String, Running>,
    pub(super) processes: ProcessTable,
    pub(super) resumable: Resumable,
    pub(super) past_ids: HashSet<String>,
    pub(super) past_order: VecDeque<(Instant, String)>,
    pub(super) connections: u32,
    /// Since when nobody is connected.
    pub(super) alone_since: Instant,
    /// How many requests are being answered.
    pub(super) requests: u32,
    /// When there was something to do last.
    pub(super) busy_at: Instant,
    pub(super) linger: bool,
    pub(super) max_warm: u32,
    pub(super) stopping: bool,
}

/// A command that runs now.
#[derive(Debug, Clone)]
pub(super) struct Running {
    pub(super) session: Option<String>,
    pub(super) tree: Tree,
    pub(super) ended: Arc<AtomicBool>,
}

impl Running {
    /// Marks it as ended from outside, and returns what is to be ended.
    pub(super) fn end(&self) -> Tree {
        self.ended.store(true, Ordering::Relaxed);
        self.tree.clone()
    }
}

impl Table {
    pub(super) fn new(keep: Duration) -> Self {
        Self {
            sessions: HashMap::new(),
            runs: HashMap::new(),
            processes: ProcessTable::new(keep),
            resumable: Resumable::default(),
            past_ids: HashSet::new(),
            past_order: VecDeque::new(),
            connections: 0,
            alone_since: Instant::now(),
            requests: 0,
            busy_at: Instant::now(),
            linger: true,
            max_warm: DEFAULT_WARM,
            stopping: false,
        }
    }

    /// Takes a command's id; tells whether it was free.
    pub(super) fn claim_id(&mut self, id: &str) -> bool {
        if !self.past_ids.insert(id.to_owned()) {
            return false;
        }
        self.past_order.push_back((Instant::now(), id.to_owned()));
        self.forget_ids();
        true
    }

    /// Gives up what is over its time.
    pub(super) fn forget_old(&mut self, now: Instant) {
        self.processes.forget_old();
        self.resumable.forget_old(now);
        let Self {
            sessions,
            processes,
            ..
        } = self;
        sessions.retain(|_, cell| {
            let Some(session) = cell.get() else {
                return true;
            };
            if session.shell_expires().is_some_and(|at| at <= now) {
                session.drop_shell();
            }
            let over = session.expires().is_some_and(|at| at <= now)
                && !processes.session_lives(&session.key);
            if over {
                session.end();
            }
            !over
        });
    }

    /// Forgets the oldest ids, but none that a host may still try again.
    fn forget_ids(&mut self) {
        while let Some((since, _)) = self.past_order.front() {
            let count = self.past_order.len();
            let old = count > REMEMBERED_IDS && since.elapsed() >= ID_MEMORY;
            if !old && count <= MAX_REMEMBERED_IDS {
                return;
            }
            if let Some((_, oldest)) = self.past_order.pop_front() {
                self.past_ids.remove(&oldest);
            }
        }
    }

    /// Tells whether there was nothing to do for this long, whoever is connected.
    pub(super) fn is_idle(&mut self, limit: Option<Duration>) -> bool {
        let Some(limit) = limit else {
            return false;
        };
        if self.requests > 0 || !self.runs.is_empty() || self.processes.holds_any() {
            self.busy_at = Instant::now();
        }
        self.busy_at.elapsed() >= limit
    }

    /// Tells whether nobody is connected and nothing is left to guard.
    pub(super) fn is_alone(&self, limit: Duration) -> bool {
        if self.connections > 0 || !self.runs.is_empty() || self.resumable.has_unheard() {
            return false;
        }
        if !self.linger {
            return true;
        }
        self.sessions.is_empty()
            && !self.processes.holds_any()
            && self.alone_since.elapsed() >= limit
    }
}
