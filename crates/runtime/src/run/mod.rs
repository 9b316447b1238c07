//! Running a command: the one way every tool and door uses.

mod feed;
mod running;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use exoshell_place::plain::{PlainCommand, PlainShell};
use exoshell_place::{ExecEvent, Link, PlaceError};
use exoshell_wire::{
    Cause, Exec, ExecDone, Failure, FailureKind, ProcessInfo, RawBytes, SessionRef, Spill,
    TerminalSize, stream,
};
use tokio::sync::mpsc;

use crate::config::Persist;
use crate::error::RuntimeError;
use crate::event::EventKind;
use crate::interrupt::Interrupt;
use crate::places::slot::{Access, Slot};
use crate::record::check_task;
use crate::runtime::{DEFAULT_TASK, Runtime, millis, raw, session_key};
use crate::tools::terminal::{exit_code, note_text};
use running::{Recovered, Running};

/// What is said when nobody knows how a command ended.
pub(crate) const SUPERVISOR_KILLED: &str =
    "the process that supervised the command was killed, so its exit code is not known";

/// How often a running command is reported as active.
const ACTIVITY_PERIOD: Duration = Duration::from_secs(10);

/// How often a command is sent again when the pipe was lost before all of it was sent.
const START_TRIES: u32 = 3;

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
    /// What the caller should know about the place, one sentence each.
    pub place_notes: Vec<String>,
}

impl RunEnd {
    /// Returns the exit code a shell would show: 124 for a timeout, 130 for an interrupt,
    /// 128 + n for signal n; -1 when nobody knows.
    pub fn exit_code(&self) -> i32 {
        exit_code(&self.done)
    }

    /// Returns what the caller should know, one sentence each.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = self.place_notes.clone();
        notes.extend(self.done.notes.iter().filter_map(note_text));
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
        mut request: RunRequest,
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
        let input = std::mem::take(&mut request.input);
        let slot = self.slot(request.place_task())?;
        let entered = tokio::select! {
            access = self.enter(&slot, request.place_task()) => access?,
            () = request.interrupt.wait() => return Err(interrupted().into()),
        };
        let has_input = !matches!(input, Input::Empty);
        let started = match entered {
            Access::Guest(link) => {
                self.start(&slot, link, &request, timeout, has_input)
                    .await?
            }
            Access::Plain(shell) => {
                self.start_plain(&slot, &shell, &request, timeout, has_input)
                    .await?
            }
        };
        let label = request.task.as_deref().unwrap_or_default();
        let id = started.running.id.clone();
        self.emit(label, EventKind::CommandStarted { id: id.clone() });
        let followed = self.follow(input, started.running, label, &request.interrupt, &mut sink);
        let done = followed.await.map_err(|error| RunFailure {
            // A failure that the guest reports in place of an end means that nothing ran.
            started: !matches!(error, PlaceError::Failed(_)),
            error: error.into(),
        })?;
        if done.cause == Cause::Interrupted && !request.interrupt.is_set() {
            return Err(RunFailure {
                started: true,
                error: ended_from_outside().into(),
            });
        }
        if started.plain
            && let Some(task) = &request.task
        {
            self.inner.records.update(task, &slot.label, |record| {
                record.directory.clone_from(&done.cwd);
            })?;
        }
        let end = RunEnd {
            done,
            elapsed: began.elapsed(),
            timeout,
            state_lost: started.state_lost,
            place_notes: started.notes,
        };
        let exit_code = end.exit_code();
        self.emit(label, EventKind::CommandEnded { id, exit_code });
        Ok(end)
    }

    /// Starts the command. Where the session does not exist yet nothing was run, so it is
    /// opened and the command is started then.
    async fn start(
        &self,
        slot: &Arc<Slot>,
        mut link: Link,
        request: &RunRequest,
        timeout: Duration,
        has_input: bool,
    ) -> Result<Started, RuntimeError> {
        let command = Bytes::copy_from_slice(request.command.as_bytes());
        let mut state_lost = false;
        let mut notes = Vec::new();
        let mut opened = false;
        let mut tries = START_TRIES;
        if request.task.is_none() && !slot.spec.is_local() {
            let incarnation = &link.hello().incarnation;
            notes = self
                .note_place(slot, request.place_task(), incarnation)
                .await?;
            notes.extend(self.bring_files(slot, &link, request.place_task()).await?);
        }
        let mut exec = self.exec_request(slot, request, timeout, has_input)?;
        loop {
            let mut running = match Running::start(slot, &link, exec.clone(), command.clone()).await
            {
                Ok(running) => running,
                // Not all of it was sent, so nothing was run.
                Err(error) if tries > 0 && slot.can_regain(&error) => {
                    tries -= 1;
                    link = self.guest(slot, request.place_task()).await?;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let first = tokio::select! {
                first = running.next() => first,
                // Ended before it began is an end like any other.
                () = request.interrupt.wait() => {
                    running.cancel();
                    running.next().await
                }
            };
            match first {
                Err(PlaceError::Failed(Failure {
                    kind: FailureKind::NoSession,
                    ..
                })) if !opened => {
                    exec.id = exoshell_place::nonce()?;
                    if let Some(task) = &request.task {
                        let session = tokio::select! {
                            opened = self.open_session(slot, &link, task) => opened,
                            () = request.interrupt.wait() => return Err(interrupted()),
                        };
                        let session = match session {
                            Ok(session) => session,
                            Err(error) if tries > 0 && error.is_lost_pipe() => {
                                tries -= 1;
                                link = self.guest(slot, request.place_task()).await?;
                                continue;
                            }
                            Err(error) => return Err(error),
                        };
                        state_lost = session.state_lost;
                        notes = session.notes;
                    }
                    opened = true;
                }
                // Whether it was started is the guest's to say: it knows the id.
                Err(error) if running.can_recover(&error) => match running.recover(error).await? {
                    Recovered::Resumed => {
                        return Ok(Started {
                            running,
                            state_lost,
                            notes,
                            plain: false,
                        });
                    }
                    Recovered::NeverStarted(again) => link = again,
                },
                Err(error) => return Err(error.into()),
                Ok(event) => {
                    running.put_back(event);
                    return Ok(Started {
                        running,
                        state_lost,
                        notes,
                        plain: false,
                    });
                }
            }
        }
    }

    /// Starts the command in a shell of its own.
    async fn start_plain(
        &self,
        slot: &Arc<Slot>,
        shell: &PlainShell,
        request: &RunRequest,
        timeout: Duration,
        has_input: bool,
    ) -> Result<Started, RuntimeError> {
        if request.terminal.is_some() {
            return Err(RuntimeError::Unsupported(format!(
                "there is no terminal in this place, because no guest can run in it: {}",
                shell.why()
            )));
        }
        let task = request.place_task();
        // There is one shell per command, so the first look is all there is to know.
        let mut notes = self.note_place(slot, task, "").await?;
        let exec = self.exec_request(slot, request, timeout, has_input)?;
        let (record, _) = self.record(slot, task)?;
        let spec = match &exec.session {
            SessionRef::OneShot(spec) => spec.clone(),
            SessionRef::Key(_) => {
                let mut spec = self.session_spec(slot, task, &record, &mut notes);
                // Where the last command left off, perhaps one of another program.
                if !record.directory.0.is_empty() {
                    spec.cwd = Some(record.directory);
                }
                spec
            }
        };
        let stream = shell
            .run(PlainCommand {
                session: request.task.clone(),
                command: Bytes::copy_from_slice(request.command.as_bytes()),
                workdir: exec.workdir,
                env: exec.env,
                extra_env: spec.extra_env,
                cwd: spec.cwd,
                timeout: Some(timeout),
                grace: self.inner.config.terminal.kill_grace,
                merge: request.merge,
                stdin: has_input,
                persist: exec.persist,
            })
            .await?;
        Ok(Started {
            running: Running::plain(exec.id, slot, stream),
            state_lost: false,
            notes,
            plain: true,
        })
    }

    /// Keeps a record of the place that one-shot commands use, so that it is listed and can be
    /// removed.
    async fn note_place(
        &self,
        slot: &Slot,
        task: &str,
        incarnation: &str,
    ) -> Result<Vec<String>, RuntimeError> {
        let (record, _) = self.record(slot, task)?;
        self.describe_place(slot, &record, incarnation).await
    }

    pub(crate) fn exec_request(
        &self,
        slot: &Slot,
        request: &RunRequest,
        timeout: Duration,
        stdin: bool,
    ) -> Result<Exec, RuntimeError> {
        let terminal = &self.inner.config.terminal;
        let session = match &request.task {
            Some(task) => SessionRef::Key(session_key(task)),
            None => SessionRef::OneShot(self.one_shot_spec(slot, request.place_task())?),
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
            lease_ms: millis(slot.life().lease),
            merge: request.merge,
            terminal: request.terminal,
            stdin,
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
        running.feed(input);
        let began = Instant::now();
        let mut tick = tokio::time::interval(ACTIVITY_PERIOD);
        tick.reset();
        let mut stopped = false;
        loop {
            let event = tokio::select! {
                biased;
                event = running.next() => event,
                () = interrupt.wait(), if !stopped => {
                    stopped = true;
                    running.cancel();
                    continue;
                }
                _ = tick.tick() => {
                    let id = running.id.clone();
                    let seconds = began.elapsed().as_secs();
                    self.emit(label, EventKind::Activity { id, seconds });
                    continue;
                }
            };
            let event = match event {
                Ok(event) => event,
                Err(error) if running.can_recover(&error) => {
                    self.progress(label)
                        .step("the connection was lost; trying to get it back");
                    tokio::select! {
                        recovered = running.recover(error) => {
                            if let Recovered::NeverStarted(_) = recovered? {
                                return Err(PlaceError::PlaceLost {
                                    message: "the guest has forgotten the command".to_owned(),
                                });
                            }
                        }
                        () = interrupt.wait(), if !stopped => {
                            let text = "interrupted while the connection was lost; the command \
                                        ends when its lease is over";
                            return Err(Failure::new(FailureKind::Ended, text).into());
                        }
                    }
                    if stopped {
                        running.cancel();
                    }
                    continue;
                }
                Err(error) => return Err(error),
            };
            match event {
                ExecEvent::Output {
                    stream: number,
                    bytes,
                } => {
                    let stream = match number {
                        stream::STDERR => OutputStream::Stderr,
                        _ => OutputStream::Stdout,
                    };
                    running.took(number, bytes.len());
                    sink(stream, &bytes);
                }
                ExecEvent::Done(done) => return Ok(*done),
                _ => {}
            }
        }
    }
}

fn interrupted() -> RuntimeError {
    let text = "interrupted before the command was started";
    PlaceError::Failed(Failure::new(FailureKind::Ended, text)).into()
}

/// Nobody here asked for the end, so the guest ended it together with its place.
fn ended_from_outside() -> PlaceError {
    PlaceError::PlaceLost {
        message: "the place was stopped or removed while the command ran, which ended the command"
            .to_owned(),
    }
}

/// A command that was started.
struct Started {
    running: Running,
    state_lost: bool,
    notes: Vec<String>,
    /// Whether it has a shell of its own, and no guest.
    plain: bool,
}
