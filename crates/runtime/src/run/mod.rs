//! Running a command: the one way every tool and door uses.

mod feed;
mod request;
mod running;
mod start;

use std::sync::Arc;
use std::time::{Duration, Instant};

use exoshell_place::{ExecEvent, PlaceError};
use exoshell_wire::{Cause, ExecDone, ProcessInfo, stream};

use crate::approvals::{self, Admitted, Intent};
use crate::audit::{AttemptKind, Ended, Outcome};
use crate::error::RuntimeError;
use crate::event::EventKind;
use crate::interrupt::Interrupt;
use crate::places::slot::{Access, Slot};
use crate::record::check_task;
use crate::redact::{Outlet as _, StreamSink};
use crate::runtime::Runtime;
use crate::tools::terminal::{exit_code, note_text};
pub(crate) use request::Input;
pub use request::RunRequest;
use running::{Recovered, Running};
use start::{interrupted, interrupted_while_lost};

/// What is said when nobody knows how a command ended.
pub(crate) const SUPERVISOR_KILLED: &str =
    "the process that supervised the command was killed, so its exit code is not known";

/// How often a running command is reported as active.
const ACTIVITY_PERIOD: Duration = Duration::from_secs(10);

/// Which stream a command wrote to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputStream {
    /// Standard output, and standard error when they are merged.
    Stdout,
    /// Standard error.
    Stderr,
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
        self.inner
            .keeper
            .add_variables(request.env.iter().map(|(name, value)| (name, value)));
        let sink = StreamSink::new(self.keeper(), sink);
        let executed = self.execute(request, |stream, bytes| sink.push(stream, bytes));
        let executed = tokio::select! {
            biased;
            executed = executed => executed,
            never = sink.relax() => match never {},
        };
        sink.finish();
        let mut end = executed.map_err(|failure| failure.error)?;
        let redactor = self.redactor();
        end.done.clean(&redactor);
        end.place_notes.clean(&redactor);
        Ok(end)
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
        let slot = self.slot(request.place_task())?;
        let admitted = tokio::select! {
            admitted = self.admit_run(&slot, &request) => admitted?,
            () = request.interrupt.wait() => return Err(interrupted().into()),
        };
        let mut bytes_out = 0;
        let counted = |stream: OutputStream, bytes: &[u8]| {
            bytes_out += bytes.len() as u64;
            sink(stream, bytes);
        };
        match self.execute_admitted(&slot, request, began, counted).await {
            Ok(end) => {
                admitted.end(&outcome(&end, bytes_out))?;
                Ok(end)
            }
            Err(failure) => {
                admitted.failed(&failure.error);
                Err(failure)
            }
        }
    }

    /// Asks the guard about a command.
    async fn admit_run(&self, slot: &Slot, request: &RunRequest) -> Result<Admitted, RuntimeError> {
        let kind = match request.terminal {
            Some(_) => AttemptKind::Pty,
            None => AttemptKind::Command,
        };
        let mut intent = Intent::new(kind, request.place_task(), slot, &request.command);
        intent.env = &request.env;
        intent.persists = request.task.is_some();
        intent.input = match &request.input {
            Input::Bytes(bytes) => approvals::Input::Bytes(bytes),
            Input::Stream(_) if !request.typed => approvals::Input::Unknown,
            Input::Stream(_) | Input::Empty => approvals::Input::Empty,
        };
        self.locate(
            &mut intent,
            request.task.as_deref(),
            request.workdir.as_deref(),
        )
        .await?;
        self.admit(&intent).await
    }

    async fn execute_admitted(
        &self,
        slot: &Arc<Slot>,
        mut request: RunRequest,
        began: Instant,
        mut sink: impl FnMut(OutputStream, &[u8]) + Send,
    ) -> Result<RunEnd, RunFailure> {
        let timeout = request
            .timeout
            .unwrap_or(self.inner.config.terminal.timeout);
        let input = std::mem::take(&mut request.input);
        let entered = tokio::select! {
            access = self.enter(slot, request.place_task(), timeout) => access?,
            () = request.interrupt.wait() => return Err(interrupted().into()),
        };
        let has_input = !matches!(input, Input::Empty);
        let started = match entered {
            Access::Guest(link) => self.start(slot, link, &request, timeout, has_input).await?,
            Access::Plain(shell) => {
                self.start_plain(slot, &shell, &request, timeout, has_input)
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
        if let Some(task) = &request.task {
            self.moved(slot, task, &done.cwd.display());
        }
        let mut place_notes = Vec::new();
        if !slot.spec.is_local() {
            let task = request.place_task();
            place_notes = self.inner.records.take_notes(task, &slot.label);
        }
        place_notes.extend(started.notes);
        let mut end = RunEnd {
            done,
            elapsed: began.elapsed(),
            timeout,
            state_lost: started.state_lost,
            place_notes,
        };
        let exit_code = end.exit_code();
        let remark = started.sudo.remark(&self.inner.environment, exit_code);
        end.place_notes.extend(remark);
        self.emit(label, EventKind::CommandEnded { id, exit_code });
        Ok(end)
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
                            return Err(interrupted_while_lost());
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
                // They come before the first byte of output.
                ExecEvent::Started { secrets, .. } => self.inner.keeper.add_told(&secrets),
                ExecEvent::Resumed(_) => {}
            }
        }
    }
}

/// Says for the audit how a command ended.
fn outcome(end: &RunEnd, bytes_out: u64) -> Outcome {
    let mut outcome = Outcome::new(Ended::Done);
    match end.done.outcome {
        exoshell_wire::Outcome::Signalled(signal) => outcome.signal = Some(signal),
        _ => outcome.exit_code = Some(end.exit_code()),
    }
    outcome.bytes_out = Some(bytes_out);
    outcome.duration = Some(end.elapsed);
    outcome
}

/// Nobody here asked for the end, so the guest ended it together with its place.
fn ended_from_outside() -> PlaceError {
    PlaceError::PlaceLost {
        message: "the place was stopped or removed while the command ran, which ended the command"
            .to_owned(),
    }
}
