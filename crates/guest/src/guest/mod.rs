//! What one guest holds, shared by all of its connections.

mod held;
mod table;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use exoshell_process::{Spawner, has_proc_fs};
use exoshell_wire::{
    Failure, FailureKind, GuestHello, GuestInfo, HostHello, ProcessInfo, SessionEnded,
};
use tokio::sync::{Notify, OnceCell};

use crate::exec::resume::Resumable;
use crate::hidden::{Hidden, LazyRedactor, Redactors};
use crate::process::Shared;
use crate::process::journal::Journal;
use crate::session::state::ShellState;
use crate::session::{Session, SessionCell};
use crate::shell::{Shells, Start, find_shells};
use crate::sudo::Sudo;
use crate::tree::Tree;
pub(crate) use held::{Asked, Connected, RunGuard};
pub(crate) use table::Limits;
use table::{Running, Table};

/// What this guest can do beyond the base protocol.
const CAPABILITIES: &[&str] = &["resume", exoshell_wire::FILES, exoshell_wire::SUDO];

/// How often leases and lives are looked at while something is held.
const TICK: Duration = Duration::from_secs(5);

/// The shortest pause between two looks.
const MIN_TICK: Duration = Duration::from_millis(50);

/// The guest.
#[derive(Debug)]
pub(crate) struct Guest {
    /// The private folder: socket, lock, spilled output.
    pub(crate) dir: PathBuf,
    /// Where sessions start when the host does not say.
    home: Option<PathBuf>,
    incarnation: String,
    started: Instant,
    limits: Limits,
    spawner: Spawner,
    shells: Option<Shells>,
    baseline: OnceCell<Arc<ShellState>>,
    table: Mutex<Table>,
    journal: Journal,
    sudo: Sudo,
    redactors: Arc<Redactors>,
    /// Wakes the keeper when something ended.
    changed: Notify,
}

impl Guest {
    /// Builds a guest around a spawner that was forked before any thread existed.
    pub(crate) fn new(
        dir: PathBuf,
        spawner: Spawner,
        home: Option<PathBuf>,
        limits: Limits,
    ) -> std::io::Result<Self> {
        let shells = find_shells()
            .into_iter()
            .next()
            .map(Shells::new)
            .transpose()?;
        Ok(Self {
            dir,
            incarnation: random_name()?,
            started: Instant::now(),
            home,
            limits,
            spawner,
            shells,
            baseline: OnceCell::new(),
            table: Mutex::new(Table::new(limits.keep)),
            journal: Journal::new(),
            sudo: Sudo::default(),
            redactors: Arc::default(),
            changed: Notify::new(),
        })
    }

    /// Returns what hides secrets in what is kept of a command.
    pub(crate) fn redactor(&self, hidden: &Hidden) -> LazyRedactor {
        LazyRedactor::new(Arc::clone(&self.redactors), hidden.clone())
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) const fn spawner(&self) -> &Spawner {
        &self.spawner
    }

    /// Returns who may ask for passwords.
    pub(crate) const fn sudo(&self) -> &Sudo {
        &self.sudo
    }

    pub(crate) fn shells(&self) -> Result<&Shells, Failure> {
        self.shells.as_ref().ok_or_else(|| {
            Failure::new(
                FailureKind::NoShell,
                "there is no bash and no sh in this place, so no command can run",
            )
        })
    }

    /// Returns the state every new bash has.
    pub(crate) async fn baseline(&self) -> Result<Arc<ShellState>, Failure> {
        let shells = self.shells()?;
        let spawn = |error: &dyn std::fmt::Display| {
            Failure::new(
                FailureKind::Spawn,
                format!(
                    "`{}` does not start: {error}",
                    shells.program.path.display()
                ),
            )
        };
        self.baseline
            .get_or_try_init(|| async {
                let (tree, pipes) = shells
                    .start_baseline(&self.spawner)
                    .map_err(|error| spawn(&error))?;
                let exited = tokio::time::timeout(self.limits.shell, tree.exited()).await;
                if exited.is_err() {
                    tree.kill(0).await;
                    return Err(spawn(&"it does not answer"));
                }
                shells
                    .captured(&pipes.capture)
                    .map(Arc::new)
                    .ok_or_else(|| spawn(&"it does not tell its state"))
            })
            .await
            .cloned()
    }

    /// Answers a host's hello.
    pub(crate) fn hello(&self, host: &HostHello) -> GuestHello {
        let accepted = host.accept(CAPABILITIES);
        if accepted.is_ok() {
            let mut table = self.table();
            table.linger = host.linger;
            if let Some(most) = host.max_warm_shells {
                table.max_warm = most;
            }
        }
        GuestHello {
            version: *accepted.as_ref().unwrap_or(&0),
            build: crate::build().to_owned(),
            incarnation: self.incarnation.clone(),
            os: std::env::consts::OS.to_owned(),
            arch: std::env::consts::ARCH.to_owned(),
            uid: rustix::process::getuid().as_raw(),
            pid: std::process::id(),
            shells: find_shells(),
            capabilities: CAPABILITIES.iter().map(|&c| c.to_owned()).collect(),
            proc_fs: has_proc_fs(),
            refusal: accepted.err().map(|error| error.to_string()),
        }
    }

    /// Counts a connection for as long as the result is held.
    pub(crate) fn connect(self: &Arc<Self>) -> Connected {
        self.table().connections += 1;
        Connected(Arc::clone(self))
    }

    /// Counts a request for as long as the result is held.
    pub(crate) fn request(self: &Arc<Self>) -> Asked {
        self.table().requests += 1;
        Asked(Arc::clone(self))
    }

    /// Returns where sessions start when the host does not say.
    pub(crate) fn home(&self) -> Option<&[u8]> {
        use std::os::unix::ffi::OsStrExt as _;
        self.home.as_deref().map(|home| home.as_os_str().as_bytes())
    }

    /// Returns the cell of a session, making one if there is none.
    pub(crate) fn session_cell(&self, key: &str) -> Arc<SessionCell> {
        Arc::clone(self.table().sessions.entry(key.to_owned()).or_default())
    }

    /// Returns an existing session.
    pub(crate) fn session(&self, key: &str) -> Option<Arc<Session>> {
        let table = self.table();
        table.sessions.get(key).and_then(|cell| cell.get()).cloned()
    }

    /// Takes a command's id; fails if it was used before.
    pub(crate) fn claim_id(&self, id: &str) -> Result<(), Failure> {
        if self.table().claim_id(id) {
            return Ok(());
        }
        Err(Failure::new(
            FailureKind::Duplicate,
            format!("the command `{id}` was started before; it is not run twice"),
        ))
    }

    /// Tells whether a command of this id was started before.
    pub(crate) fn was_claimed(&self, id: &str) -> bool {
        self.table().past_ids.contains(id)
    }

    /// Looks at, or changes, what can be taken up again.
    pub(crate) fn resumable<T>(&self, look: impl FnOnce(&mut Resumable) -> T) -> T {
        look(&mut self.table().resumable)
    }

    /// Lists a command as running for as long as the result is held.
    pub(crate) fn running(
        self: &Arc<Self>,
        id: &str,
        session: Option<&str>,
        tree: &Tree,
    ) -> RunGuard {
        let running = Running {
            session: session.map(str::to_owned),
            tree: tree.clone(),
            ended: Arc::default(),
        };
        let ended = Arc::clone(&running.ended);
        self.table().runs.insert(id.to_owned(), running);
        RunGuard {
            ended,
            guest: Arc::clone(self),
            id: id.to_owned(),
        }
    }

    /// Lists a process from now on.
    pub(crate) fn add_process(&self, process: Shared) {
        self.table().processes.add(process);
    }

    /// Returns a process.
    pub(crate) fn process(&self, id: &str) -> Option<Shared> {
        self.table().processes.get(id)
    }

    /// Returns all processes, or those of a session.
    pub(crate) fn processes(&self, session: Option<&str>) -> Vec<Shared> {
        self.table().processes.list(session)
    }

    /// Returns the journal of what happens to them.
    pub(crate) const fn journal(&self) -> &Journal {
        &self.journal
    }

    /// Wakes the keeper: something ended.
    pub(crate) fn note_change(&self) {
        self.changed.notify_one();
    }

    /// Prepares the session's next shell, unless there are enough or it has one.
    pub(crate) fn prepare(&self, session: &Session) {
        let (Some(shells), Some(baseline)) = (&self.shells, self.baseline.get()) else {
            return;
        };
        if !shells.can_wait() || !session.lacks_shell() || !self.make_room_for_shell(session) {
            return;
        }
        let state = session.state();
        let start = Start {
            environment: state.environment(),
            replay: state.started_from(baseline).script_to(&state),
            state,
        };
        // Without a waiting shell the next command just starts its own.
        if let Ok(shell) = shells.start_waiting(&self.spawner, start, None) {
            session.keep(shell);
        }
    }

    /// Gives up the shell that waited longest when there are too many.
    fn make_room_for_shell(&self, newcomer: &Session) -> bool {
        let table = self.table();
        let mut waiting: Vec<(Instant, &Arc<Session>)> = table
            .sessions
            .values()
            .filter_map(|cell| cell.get())
            .filter(|session| session.key != newcomer.key)
            .filter_map(|session| session.shell_expires().map(|_| session))
            .filter_map(|session| session.idle_since().map(|since| (since, session)))
            .collect();
        let most = usize::try_from(table.max_warm).unwrap_or(usize::MAX);
        if most == 0 {
            return false;
        }
        if waiting.len() >= most {
            waiting.sort_by_key(|(since, _)| *since);
            if let Some((_, oldest)) = waiting.first() {
                oldest.drop_shell();
            }
        }
        true
    }

    /// Ends a session, the commands that run in it and what they left.
    pub(crate) async fn end_session(&self, key: &str, grace_ms: u64) -> SessionEnded {
        let (cell, trees, processes) = {
            let mut table = self.table();
            let cell = table.sessions.remove(key);
            let mut trees: Vec<Tree> = table
                .runs
                .values()
                .filter(|run| run.session.as_deref() == Some(key))
                .map(Running::end)
                .collect();
            let processes = table.processes.take_session(key);
            trees.extend(processes.iter().map(|process| process.tree.clone()));
            (cell, trees, processes)
        };
        if let Some(session) = cell.as_ref().and_then(|cell| cell.get()) {
            session.end();
        }
        let ended = u32::try_from(trees.len()).unwrap_or(u32::MAX);
        kill_all(trees, grace_ms).await;
        for process in processes {
            process.store.remove_files();
        }
        self.changed.notify_one();
        SessionEnded {
            existed: cell.is_some(),
            ended,
        }
    }

    /// Ends everything; the guest exits afterwards.
    pub(crate) async fn shut_down(&self, grace_ms: u64) {
        let trees = {
            let mut table = self.table();
            table.stopping = true;
            for cell in table.sessions.values() {
                if let Some(session) = cell.get() {
                    session.end();
                }
            }
            table.sessions.clear();
            let mut trees: Vec<Tree> = table.runs.values().map(Running::end).collect();
            let processes = table.processes.take_all();
            trees.extend(processes.iter().map(|process| process.tree.clone()));
            trees
        };
        kill_all(trees, grace_ms).await;
        let _ = std::fs::remove_dir_all(self.spill_dir());
        self.changed.notify_one();
    }

    /// Describes the guest.
    pub(crate) async fn info(&self) -> GuestInfo {
        let (sessions, processes, connections, warm_shells) = {
            let table = self.table();
            let sessions: Vec<Arc<Session>> = table
                .sessions
                .values()
                .filter_map(|cell| cell.get().cloned())
                .collect();
            let warm = sessions.iter().filter(|s| !s.lacks_shell()).count();
            (
                sessions,
                table.processes.list(None),
                table.connections,
                warm,
            )
        };
        let mut alive: Vec<ProcessInfo> = Vec::new();
        let mut living: HashMap<String, u32> = HashMap::new();
        for process in &processes {
            let entries = process.tree.list().await;
            if entries.is_empty() {
                continue;
            }
            let session = process.session.as_deref();
            *living
                .entry(session.unwrap_or_default().to_owned())
                .or_default() += 1;
            alive.extend(crate::process::describe(&process.id, session, entries));
        }
        let mut sessions: Vec<_> = sessions
            .iter()
            .map(|session| session.info(living.get(&session.key).copied().unwrap_or(0)))
            .collect();
        sessions.sort_by(|a, b| a.key.cmp(&b.key));
        let mut own_pids = vec![std::process::id(), self.spawner.pid()];
        own_pids.extend(exoshell_process::children_of(self.spawner.pid()));
        GuestInfo {
            pid: std::process::id(),
            uptime_ms: crate::milliseconds(self.started.elapsed()),
            connections,
            sessions,
            leftovers: alive,
            warm_shells: u32::try_from(warm_shells).unwrap_or(u32::MAX),
            own_pids,
        }
    }

    pub(crate) fn spill_dir(&self) -> PathBuf {
        self.dir.join("spill")
    }

    /// Gives up idle shells and sessions in time, and returns when the guest should exit.
    pub(crate) async fn keep_house(&self) {
        let shortest = self.limits.idle.unwrap_or(TICK).min(self.limits.exit_after);
        let tick = TICK.min(shortest.max(MIN_TICK));
        loop {
            if self.sweep() {
                return;
            }
            tokio::select! {
                () = self.changed.notified() => {}
                () = tokio::time::sleep(tick) => {}
            }
        }
    }

    /// One look; tells whether the guest should exit.
    fn sweep(&self) -> bool {
        let mut table = self.table();
        table.forget_old(Instant::now());
        table.stopping || table.is_idle(self.limits.idle) || table.is_alone(self.limits.exit_after)
    }
}

async fn kill_all(trees: Vec<Tree>, grace_ms: u64) {
    let tasks: Vec<_> = trees
        .into_iter()
        .map(|tree| {
            tokio::spawn(async move {
                tree.kill(grace_ms).await;
            })
        })
        .collect();
    for task in tasks {
        let _ = task.await;
    }
}

/// Returns a name no other guest has. The system call itself is used: a place may lack every
/// device file.
fn random_name() -> std::io::Result<String> {
    let mut bytes = [0_u8; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(format!("{:016x}", u64::from_le_bytes(bytes)))
}
