//! What is to be run, and how.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use exoshell_wire::TerminalSize;
use tokio::sync::mpsc;

use crate::approvals;
use crate::config::Persist;
use crate::interrupt::Interrupt;
use crate::runtime::DEFAULT_TASK;

/// How many pieces of stdin may wait.
const STDIN_QUEUE: usize = 4;

/// What a command reads as its stdin.
#[derive(Debug, Default)]
pub(crate) enum Input {
    /// Nothing.
    #[default]
    Empty,
    /// These bytes.
    Bytes(Bytes),
    /// Whatever arrives, until the sender is dropped.
    Stream(mpsc::Receiver<Bytes>),
}

/// A command to run with its output streamed.
#[derive(Debug)]
pub struct RunRequest {
    pub(crate) command: String,
    pub(crate) task: Option<String>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) workdir: Option<PathBuf>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) merge: bool,
    pub(crate) terminal: Option<TerminalSize>,
    pub(crate) spill: bool,
    pub(crate) input: Input,
    /// Whether a person types the input.
    pub(crate) typed: bool,
    pub(crate) persist: Option<Persist>,
    pub(crate) interrupt: Interrupt,
}

impl RunRequest {
    /// Describes a one-shot command: a fresh session in the caller's directory and environment.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            task: None,
            timeout: None,
            workdir: None,
            env: Vec::new(),
            merge: false,
            terminal: None,
            spill: false,
            input: Input::Empty,
            typed: false,
            persist: None,
            interrupt: Interrupt::new(),
        }
    }

    /// Runs it in a task's session instead.
    #[must_use]
    pub fn in_task(mut self, task: impl Into<String>) -> Self {
        self.task = Some(task.into());
        self
    }

    /// Limits how long it may run; without it the configured limit holds.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Runs it in this directory; a session's own directory does not move.
    #[must_use]
    pub fn in_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.workdir = Some(directory.into());
        self
    }

    /// Sets a variable for this command only.
    #[must_use]
    pub fn with_env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Gives it a terminal; its output is then one stream.
    #[must_use]
    pub const fn on_terminal(mut self, size: TerminalSize) -> Self {
        self.terminal = Some(size);
        self
    }

    /// Gives it a stdin and returns where to send it; dropping the sender ends it.
    pub fn feed(&mut self) -> mpsc::Sender<Bytes> {
        let (sender, receiver) = mpsc::channel(STDIN_QUEUE);
        self.input = Input::Stream(receiver);
        sender
    }

    /// Says that a person types its stdin at a terminal, so that nobody else has to be asked about
    /// it. Has no effect where a command in a guest has started this program.
    #[must_use]
    pub fn typed_by_person(mut self) -> Self {
        self.typed = !approvals::inside_guest();
        self
    }

    /// Returns the task whose place it runs in; one-shot commands use that of the default task.
    pub(crate) fn place_task(&self) -> &str {
        self.task.as_deref().unwrap_or(DEFAULT_TASK)
    }

    /// Lets this stop it.
    #[must_use]
    pub fn with_interrupt(mut self, interrupt: Interrupt) -> Self {
        self.interrupt = interrupt;
        self
    }
}
