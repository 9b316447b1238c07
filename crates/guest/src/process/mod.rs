//! Processes: commands that outlive the request that started them, and what finished foreground
//! commands left running.

pub(crate) mod journal;
mod run;
mod screen;
pub(crate) mod serve;
mod store;
mod table;
mod watch;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use exoshell_process::ProcessEntry;
use exoshell_wire::{
    Failure, FailureKind, ProcessInfo, ProcessState, ProcessStatus, RawBytes, Screen, TerminalSize,
};
use tokio::sync::watch as cell;

use crate::terminal::Master;
use crate::tree::Tree;
pub(crate) use run::{Adopted, adopt, start};
use screen::Emulator;
use store::Store;
pub(crate) use table::ProcessTable;

/// One process.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) id: String,
    pub(crate) session: Option<String>,
    command: Vec<u8>,
    cwd: Vec<u8>,
    pid: u32,
    adopted: bool,
    started: Instant,
    started_ms: u64,
    pub(crate) tree: Tree,
    pub(crate) store: Store,
    input: tokio::sync::Mutex<Option<tokio::net::unix::pipe::Sender>>,
    terminal: Option<Terminal>,
    state: cell::Sender<Life>,
    /// What a kill on request or a timeout makes of the end.
    verdict: Mutex<Option<ProcessState>>,
}

/// A process's terminal.
#[derive(Debug)]
struct Terminal {
    /// Given up with the process, so that the system gets its terminal back.
    master: Mutex<Option<Master>>,
    size: Mutex<TerminalSize>,
    emulator: Emulator,
}

/// What is known of a process's life.
#[derive(Debug, Clone, Copy)]
struct Life {
    state: ProcessState,
    ended: Option<Instant>,
}

impl Process {
    /// Returns what it is doing.
    pub(crate) fn state(&self) -> ProcessState {
        self.state.borrow().state
    }

    /// Returns when it ended.
    pub(crate) fn ended(&self) -> Option<Instant> {
        self.state.borrow().ended
    }

    /// Waits for its end.
    pub(crate) async fn over(&self) {
        // The sender lives in `self`, so the wait cannot fail.
        let _ = self
            .state
            .subscribe()
            .wait_for(|life| life.state.is_over())
            .await;
    }

    /// Ends the whole tree; the end counts as this, unless it came first.
    pub(crate) async fn kill(&self, verdict: ProcessState, grace_ms: u64) -> Vec<RawBytes> {
        self.verdict
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(verdict);
        let left = self.tree.kill(grace_ms).await;
        if left.is_empty() {
            self.over().await;
        }
        left.into_iter()
            .map(|entry| RawBytes(entry.command))
            .collect()
    }

    /// Sends a signal to every process of the tree.
    pub(crate) async fn signal(&self, signal: i32) {
        self.tree.signal(signal).await;
    }

    /// Describes it.
    pub(crate) async fn status(&self) -> ProcessStatus {
        let alive = self.tree.list().await.len();
        self.describe(u32::try_from(alive).unwrap_or(u32::MAX))
    }

    fn describe(&self, alive: u32) -> ProcessStatus {
        let life = *self.state.borrow();
        let uptime = match life.ended {
            Some(ended) => ended.duration_since(self.started),
            None => self.started.elapsed(),
        };
        ProcessStatus {
            id: self.id.clone(),
            session: self.session.clone(),
            command: RawBytes(self.command.clone()),
            cwd: RawBytes(self.cwd.clone()),
            pid: self.pid,
            state: life.state,
            started_ms: self.started_ms,
            uptime_ms: crate::milliseconds(uptime),
            ended_ago_ms: life.ended.map(|at| crate::milliseconds(at.elapsed())),
            output_end: self.store.end(),
            output_start: self.store.start(),
            lines: self.store.lines(),
            terminal: self.terminal.as_ref().map(Terminal::size),
            adopted: self.adopted,
            alive,
        }
    }

    fn not_possible(&self, why: &str) -> Failure {
        Failure::new(
            FailureKind::NotPossible,
            format!("the process `{}` {why}", self.id),
        )
    }

    /// Writes to its stdin or terminal.
    pub(crate) async fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        use tokio::io::AsyncWriteExt as _;
        if self.state().is_over() {
            return Err(self.not_possible("has ended; nothing can be written to it"));
        }
        let mut input = self.input.lock().await;
        let Some(pipe) = input.as_mut() else {
            return Err(self.not_possible("has no open stdin"));
        };
        if let Err(error) = pipe.write_all(bytes).await {
            *input = None;
            return Err(self.not_possible(&format!("does not read its stdin ({error})")));
        }
        Ok(())
    }

    /// Returns what Enter sends.
    pub(crate) const fn enter(&self) -> &'static [u8] {
        // The key sends a carriage return; a terminal in its usual mode makes a newline of it.
        if self.terminal.is_some() {
            b"\r"
        } else {
            b"\n"
        }
    }

    /// Closes its stdin; on a terminal that is the end-of-file character.
    pub(crate) async fn close_input(&self) -> Result<(), Failure> {
        if self.terminal.is_some() {
            return self.write(&[4]).await;
        }
        if self.state().is_over() {
            return Err(self.not_possible("has ended; its stdin is closed"));
        }
        *self.input.lock().await = None;
        Ok(())
    }

    /// Changes the size of its terminal.
    pub(crate) fn resize(&self, size: TerminalSize) -> Result<(), Failure> {
        let terminal = self.terminal()?;
        if size.cols == 0 || size.rows == 0 {
            return Err(Failure::new(
                FailureKind::BadRequest,
                "a terminal has at least one row and one column",
            ));
        }
        if self.state().is_over() {
            return Err(self.not_possible("has ended; its terminal cannot be resized"));
        }
        let master = terminal
            .master
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let resized = master.as_ref().map_or(Ok(()), |master| master.resize(size));
        drop(master);
        resized.map_err(|error| self.not_possible(&format!("cannot be resized: {error}")))?;
        terminal.emulator.resize(size);
        *terminal.size.lock().unwrap_or_else(PoisonError::into_inner) = size;
        Ok(())
    }

    /// Returns what its terminal shows.
    pub(crate) fn screen(&self) -> Result<Screen, Failure> {
        let mut screen = self.terminal()?.emulator.screen();
        // Output is drawn and stored in one step, so both speak of the same moment.
        screen.offset = self.store.end();
        Ok(screen)
    }

    fn terminal(&self) -> Result<&Terminal, Failure> {
        self.terminal
            .as_ref()
            .ok_or_else(|| self.not_possible("has no terminal; start it with `pty`"))
    }
}

impl Terminal {
    fn size(&self) -> TerminalSize {
        *self.size.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Turns a supervisor's entries into what the host is told.
pub(crate) fn describe(
    id: &str,
    session: Option<&str>,
    entries: Vec<ProcessEntry>,
) -> Vec<ProcessInfo> {
    entries
        .into_iter()
        .map(|entry| ProcessInfo {
            id: id.to_owned(),
            pid: entry.pid,
            start_time: entry.start_time,
            command: RawBytes(entry.command),
            session: session.map(str::to_owned),
        })
        .collect()
}

/// A process shared by everyone who knows it.
pub(crate) type Shared = Arc<Process>;
