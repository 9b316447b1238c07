//! Running a command: the one way every tool and door uses.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use bytes::Bytes;
use exoshell_place::{ExecEvent, ExecStream, Link, PlaceError};
use exoshell_wire::{
    Cause, Exec, ExecDone, Failure, FailureKind, ProcessInfo, RawBytes, SessionRef, Spill,
    TerminalSize, stream,
};
use tokio::sync::mpsc;

use crate::config::Persist;
use crate::error::RuntimeError;
use crate::event::EventKind;
use crate::interrupt::Interrupt;
use crate::record::check_task;
use crate::runtime::{Runtime, millis, raw, session_key};
use crate::tools::terminal::{exit_code, note_text};

/// What is said when nobody knows how a command ended.
pub(crate) const SUPERVISOR_KILLED: &str =
    "the process that supervised the command was killed, so its exit code is not known";

/// How often a running command is reported as active.
const ACTIVITY_PERIOD: Duration = Duration::from_secs(10);

/// How many pieces of stdin may wait.
const STDIN_QUEUE: usize = 4;

/// Which stream a command wrote to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputStream {
    /// Standard output, and standard error when they are merged.
    Stdout,
    /// Standard error.
    Stderr,
}

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

    /// Lets this stop it.
    #[must_use]
    pub fn with_interrupt(mut self, interrupt: Interrupt) -> Self {
        self.interrupt = interrupt;
        self
    }
}

/// How a command ended.
#[derive(Debug)]
pub struct RunEnd {
    /// What the guest says of it.
    pub done: ExecDone,
    /// How long the whole call took.
    pub elapsed: Duration,
    /// The limit that was in force.
    pub timeout: Duration,
    /// Whether the task had a session whose state is gone.
    pub state_lost: bool,
}

impl RunEnd {
    /// Returns the exit code a shell would show: 124 for a timeout, 130 for an interrupt,
    /// 128 + n for signal n; -1 when nobody knows.
    pub fn exit_code(&self) -> i32 {
        exit_code(&self.done)
    }

    /// Returns what the caller should know, one sentence each.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.done.notes.iter().filter_map(note_text).collect();
        if self.state_lost {
            notes.push(
                "the task's earlier shell state (directory, variables) is gone; this call \
                 started from a fresh session"
                    .to_owned(),
            );
        }
        notes
    }

    /// Returns everything worth telling a person beside the output: notes, how the command was
    /// ended, what it left running and what could not be ended.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = self.notes();
        match self.done.cause {
            Cause::Timeout => {
                let seconds = self.timeout.as_secs_f64();
                remarks.push(format!(
                    "the command timed out after {seconds} s and was ended"
                ));
            }
            Cause::Interrupted => remarks.push("the command was interrupted".to_owned()),
            Cause::Ended => {}
        }
        if self.exit_code() < 0 {
            remarks.push(SUPERVISOR_KILLED.to_owned());
        }
        let named = |text: &str, process: &ProcessInfo| {
            format!("{text}: {} {}", process.pid, process.command.display())
        };
        remarks.extend(self.done.leftovers.iter().map(|p| named("left running", p)));
        remarks.extend(
            self.done
                .unkillable
                .iter()
                .map(|p| named("could not be ended", p)),
        );
        remarks
    }
}

/// Why a command has no end to report.
#[derive(Debug)]
pub(crate) struct RunFailure {
    pub(crate) error: RuntimeError,
    /// Whether the command may have run, wholly or in part.
    pub(crate) started: bool,
}

impl<E: Into<RuntimeError>> From<E> for RunFailure {
    fn from(error: E) -> Self {
        Self {
            error: error.into(),
            started: false,
        }
    }
}

/// Checks a command's text.
pub(crate) fn check_command(command: &str) -> Result<(), RuntimeError> {
    if command.trim().is_empty() {
        return Err(RuntimeError::Usage("the command is empty".to_owned()));
    }
    if command.contains('\0') {
        return Err(RuntimeError::Usage(
            "the command contains a NUL byte, which no shell can read".to_owned(),
        ));
    }
    Ok(())
}

impl Runtime {
    /// Runs a command and hands its output on as it comes. Dropping the future ends the command.
    pub async fn run(
        &self,
        request: RunRequest,
        sink: impl FnMut(OutputStream, &[u8]) + Send,
    ) -> Result<RunEnd, RuntimeError> {
        self.execute(request, sink)
            .await
            .map_err(|failure| failure.error)
    }

    pub(crate) async fn execute(
        &self,
        request: RunRequest,
        mut sink: impl FnMut(OutputStream, &[u8]) + Send,
    ) -> Result<RunEnd, RunFailure> {
        check_command(&request.command)?;
        if let Some(task) = &request.task {
            check_task(task)?;
        }
        let began = Instant::now();
        let timeout = request
            .timeout
            .unwrap_or(self.inner.config.terminal.timeout);
        let (running, state_lost) = self.start(&request, timeout).await?;
        let label = request.task.as_deref().unwrap_or_default();
        let id = running.id.clone();
        self.emit(label, EventKind::CommandStarted { id: id.clone() });
        let followed = self.follow(request.input, running, label, &request.interrupt, &mut sink);
        let done = followed.await.map_err(|error| RunFailure {
            // A failure that the guest reports in place of an end means that nothing ran.
            started: !matches!(error, PlaceError::Failed(_)),
            error: error.into(),
        })?;
        let end = RunEnd {
            done,
            elapsed: began.elapsed(),
            timeout,
            state_lost,
        };
        let exit_code = end.exit_code();
        self.emit(label, EventKind::CommandEnded { id, exit_code });
        Ok(end)
    }

    /// Starts the command. Where the session does not exist yet nothing was run, so it is
    /// opened and the command is started then.
    async fn start(
        &self,
        request: &RunRequest,
        timeout: Duration,
    ) -> Result<(Running, bool), RuntimeError> {
        let link = self.link().await?;
        let command = Bytes::copy_from_slice(request.command.as_bytes());
        let mut state_lost = false;
        let mut opened = false;
        loop {
            let exec = self.exec_request(request, timeout)?;
            let id = exec.id.clone();
            let mut stream = link.exec(exec, command.clone()).await?;
            let first = tokio::select! {
                first = stream.next() => first,
                // Ended before it began is an end like any other.
                () = request.interrupt.wait() => {
                    stream.cancel();
                    stream.next().await
                }
            };
            match first {
                Err(PlaceError::Failed(Failure {
                    kind: FailureKind::NoSession,
                    ..
                })) if !opened => {
                    if let Some(task) = &request.task {
                        (_, state_lost) = tokio::select! {
                            opened = self.open_session(&link, task) => opened?,
                            () = request.interrupt.wait() => return Err(interrupted()),
                        };
                    }
                    opened = true;
                }
                Err(error) => return Err(error.into()),
                Ok(event) => {
                    let running = Running {
                        id,
                        stream,
                        first: Some(event),
                        _link: link,
                    };
                    return Ok((running, state_lost));
                }
            }
        }
    }

    pub(crate) fn exec_request(
        &self,
        request: &RunRequest,
        timeout: Duration,
    ) -> Result<Exec, RuntimeError> {
        let terminal = &self.inner.config.terminal;
        let session = match &request.task {
            Some(task) => SessionRef::Key(session_key(task)),
            None => SessionRef::OneShot(self.one_shot_spec()?),
        };
        let persist = request.persist.unwrap_or(terminal.persist) == Persist::Persist;
        Ok(Exec {
            id: exoshell_place::nonce()?,
            session,
            workdir: request.workdir.as_ref().map(|dir| raw(dir.as_os_str())),
            env: request
                .env
                .iter()
                .map(|(name, value)| {
                    (
                        RawBytes::from(name.as_str()),
                        RawBytes::from(value.as_str()),
                    )
                })
                .collect(),
            timeout_ms: Some(millis(timeout)),
            grace_ms: millis(terminal.kill_grace),
            lease_ms: self.lease_ms(),
            merge: request.merge,
            terminal: request.terminal,
            stdin: !matches!(request.input, Input::Empty),
            persist,
            spill: request.spill.then(|| Spill {
                after_bytes: terminal.output_limit_chars as u64,
                max_bytes: terminal.spill_limit_bytes(),
            }),
        })
    }

    async fn follow(
        &self,
        input: Input,
        mut running: Running,
        label: &str,
        interrupt: &Interrupt,
        sink: &mut (impl FnMut(OutputStream, &[u8]) + Send),
    ) -> Result<ExecDone, PlaceError> {
        let _feeder = (!matches!(input, Input::Empty))
            .then(|| AbortOnDrop(tokio::spawn(feed(running.stream.stdin(), input))));
        let began = Instant::now();
        let mut tick = tokio::time::interval(ACTIVITY_PERIOD);
        tick.reset();
        let mut stopped = false;
        loop {
            let event = if let Some(first) = running.first.take() {
                first
            } else {
                tokio::select! {
                    biased;
                    event = running.stream.next() => event?,
                    () = interrupt.wait(), if !stopped => {
                        stopped = true;
                        running.stream.cancel();
                        continue;
                    }
                    _ = tick.tick() => {
                        let id = running.id.clone();
                        let seconds = began.elapsed().as_secs();
                        self.emit(label, EventKind::Activity { id, seconds });
                        continue;
                    }
                }
            };
            match event {
                ExecEvent::Started { .. } | ExecEvent::Resumed(_) => {}
                ExecEvent::Output { stream, bytes } => {
                    let stream = match stream {
                        stream::STDERR => OutputStream::Stderr,
                        _ => OutputStream::Stdout,
                    };
                    sink(stream, &bytes);
                }
                ExecEvent::Done(done) => return Ok(*done),
            }
        }
    }
}

fn interrupted() -> RuntimeError {
    let text = "interrupted before the command was started";
    PlaceError::Failed(Failure::new(FailureKind::Ended, text)).into()
}

/// A command under way.
struct Running {
    id: String,
    stream: ExecStream,
    first: Option<ExecEvent>,
    /// The link ends with its last holder, and the command with the link.
    _link: Link,
}

/// Passes stdin on; a command that stops reading ends it.
async fn feed(stdin: exoshell_place::StdinSender, input: Input) {
    match input {
        Input::Empty => return,
        Input::Bytes(bytes) => {
            if stdin.send(bytes).await.is_err() {
                return;
            }
        }
        Input::Stream(mut pieces) => {
            while let Some(piece) = pieces.recv().await {
                if stdin.send(piece).await.is_err() {
                    return;
                }
            }
        }
    }
    // The command may be gone; then it needs no end of its stdin.
    let _ = stdin.finish().await;
}

struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
