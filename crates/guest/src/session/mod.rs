//! Sessions: the shell state of a task, and the shell that waits for its next command.

pub(crate) mod capture;
mod opening;
pub(crate) mod quote;
pub(crate) mod state;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use exoshell_wire::{Note, RawBytes, SessionInfo};
use tokio::sync::OnceCell;

use crate::shell::WaitingShell;
use crate::tree::Tree;
pub(crate) use opening::{existing_directory, initial_state, open};
use state::ShellState;

/// How long a warm shell is kept when the host does not say.
const DEFAULT_IDLE: Duration = Duration::from_secs(300);

/// How long a session is kept when the host does not say.
const DEFAULT_TTL: Duration = Duration::from_secs(24 * 3600);

/// A pause between two commands shorter than this counts as back to back: the next shell is
/// then prepared while the command runs instead of after it.
const BACK_TO_BACK: Duration = Duration::from_millis(8);

/// A session that may still be in creation; concurrent openers wait for the same one.
#[derive(Debug, Default)]
pub(crate) struct SessionCell {
    created: OnceCell<Arc<Session>>,
}

impl SessionCell {
    /// Returns the session once it exists.
    pub(crate) fn get(&self) -> Option<&Arc<Session>> {
        self.created.get()
    }
}

/// One session.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) key: String,
    created: Instant,
    idle_limit: Duration,
    ttl: Duration,
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    state: Arc<ShellState>,
    waiting: Option<WaitingShell>,
    /// When a command last started or ended.
    used: Instant,
    running: u32,
    back_to_back: bool,
    /// What the first result shall say.
    notes: Vec<Note>,
    /// What the login shell left running; it lives as long as the session.
    login_tree: Option<Tree>,
    ended: bool,
}

impl Session {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a command: returns the state it starts from, the shell that waits for it, and
    /// whether the next shell should be prepared at once.
    pub(crate) fn begin(&self) -> Begun {
        let mut inner = self.inner();
        inner.back_to_back = inner.used.elapsed() < BACK_TO_BACK;
        inner.used = Instant::now();
        inner.running += 1;
        Begun {
            state: Arc::clone(&inner.state),
            waiting: inner.waiting.take(),
            prepare_now: inner.back_to_back,
            notes: std::mem::take(&mut inner.notes),
        }
    }

    /// Ends a command.
    pub(crate) fn finish(&self) {
        let mut inner = self.inner();
        inner.running = inner.running.saturating_sub(1);
        inner.used = Instant::now();
    }

    /// Returns the present state.
    pub(crate) fn state(&self) -> Arc<ShellState> {
        Arc::clone(&self.inner().state)
    }

    /// Changes the state; readers see the old or the new one, never a mixture.
    pub(crate) fn update(&self, change: impl FnOnce(&mut ShellState)) {
        change(Arc::make_mut(&mut self.inner().state));
    }

    /// Tells whether a shell should be prepared.
    pub(crate) fn lacks_shell(&self) -> bool {
        let inner = self.inner();
        inner.waiting.is_none() && !inner.ended
    }

    /// Keeps a shell for the next command. A session that ended meanwhile drops it.
    pub(crate) fn keep(&self, shell: WaitingShell) {
        let mut inner = self.inner();
        if !inner.ended {
            inner.waiting = Some(shell);
        }
    }

    /// Gives up the waiting shell, if there is one.
    pub(crate) fn drop_shell(&self) -> bool {
        self.inner().waiting.take().is_some()
    }

    /// Marks the session as ended: nothing is kept for it any more.
    pub(crate) fn end(&self) {
        let mut inner = self.inner();
        inner.ended = true;
        inner.waiting = None;
        inner.login_tree = None;
    }

    /// Tells since when nothing runs in it; `None` while something does.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let inner = self.inner();
        (inner.running == 0).then_some(inner.used)
    }

    /// Tells when its warm shell should be given up.
    pub(crate) fn shell_expires(&self) -> Option<Instant> {
        let inner = self.inner();
        (inner.running == 0 && inner.waiting.is_some()).then(|| inner.used + self.idle_limit)
    }

    /// Tells when it should be given up; never while something runs.
    pub(crate) fn expires(&self) -> Option<Instant> {
        self.idle_since().map(|since| since + self.ttl)
    }

    /// Describes it.
    pub(crate) fn info(&self, leftovers: u32) -> SessionInfo {
        let inner = self.inner();
        let idle = if inner.running == 0 {
            inner.used.elapsed()
        } else {
            Duration::ZERO
        };
        SessionInfo {
            key: self.key.clone(),
            cwd: RawBytes(inner.state.cwd.clone()),
            age_ms: crate::milliseconds(self.created.elapsed()),
            idle_ms: crate::milliseconds(idle),
            running: inner.running,
            leftovers,
        }
    }
}

/// What a command begins with.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) state: Arc<ShellState>,
    pub(crate) waiting: Option<WaitingShell>,
    pub(crate) prepare_now: bool,
    pub(crate) notes: Vec<Note>,
}
