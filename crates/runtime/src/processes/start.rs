//! Starting a process, exactly once.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use exoshell_place::{Link, PlaceError};
use exoshell_wire::{
    Act, Action, Failure, FailureKind, ProcessStatus, Start, TerminalSize, WriteInput,
};

use super::{ProcessRecord, look_again};
use crate::approvals::{Admitted, Input, Intent};
use crate::audit::{AttemptKind, Ended, Outcome};
use crate::error::RuntimeError;
use crate::places::slot::Slot;
use crate::record::check_task;
use crate::redact::Outlet as _;
use crate::run::{RunRequest, check_command};
use crate::runtime::{Owner, Runtime, millis};
use crate::sudo::{Answers, SudoUse};

/// How often a session is opened for one start: one that was just opened and is gone was removed
/// by somebody meanwhile.
const OPENINGS: u32 = 3;

/// A process to start.
#[derive(Debug)]
pub struct StartRequest {
    pub(crate) command: String,
    pub(crate) task: String,
    pub(crate) workdir: Option<PathBuf>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) terminal: Option<TerminalSize>,
    pub(crate) bound: bool,
    pub(crate) notify: bool,
    pub(crate) watch: Vec<String>,
    pub(crate) check_interval: Option<Duration>,
    /// All that it will read.
    pub(crate) input: Option<Bytes>,
}

impl StartRequest {
    /// Describes a process of a task; it survives this program unless bound.
    pub fn new(command: impl Into<String>, task: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            task: task.into(),
            workdir: None,
            env: Vec::new(),
            timeout: None,
            terminal: None,
            bound: false,
            notify: false,
            watch: Vec::new(),
            check_interval: None,
            input: None,
        }
    }

    /// Sets a variable for it.
    #[must_use]
    pub fn with_env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Makes output lines that match one of these regular expressions events.
    #[must_use]
    pub fn watching(mut self, patterns: Vec<String>) -> Self {
        self.watch = patterns;
        self
    }

    /// Starts it in this directory.
    #[must_use]
    pub fn in_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.workdir = Some(directory.into());
        self
    }

    /// Ends it after this long, which counts as a timeout.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Gives it a terminal.
    #[must_use]
    pub const fn on_terminal(mut self, size: TerminalSize) -> Self {
        self.terminal = Some(size);
        self
    }

    /// Ends it with this runtime, also when the program is killed.
    #[must_use]
    pub const fn bound(mut self) -> Self {
        self.bound = true;
        self
    }

    /// Makes its end an event.
    #[must_use]
    pub const fn with_notice(mut self) -> Self {
        self.notify = true;
        self
    }
}

impl Runtime {
    /// Starts a process and returns once its shell runs it. What happened to its place on the way
    /// can be asked by [`take_notes`](Self::take_notes).
    pub async fn start_process(
        &self,
        request: StartRequest,
    ) -> Result<ProcessStatus, RuntimeError> {
        check_command(&request.command)?;
        check_task(&request.task)?;
        self.inner
            .keeper
            .add_variables(request.env.iter().map(|(name, value)| (name, value)));
        let slot = self.slot(&request.task)?;
        let admitted = self.admit_start(&slot, &request).await?;
        match self.start_admitted(&slot, request).await {
            Ok(status) => {
                let mut outcome = Outcome::new(Ended::Started);
                outcome.process = Some(status.id.clone());
                admitted.end(&outcome)?;
                Ok(status)
            }
            Err(error) => {
                admitted.failed(&error);
                Err(error)
            }
        }
    }

    /// Asks the guard about a process.
    async fn admit_start(
        &self,
        slot: &Slot,
        request: &StartRequest,
    ) -> Result<Admitted, RuntimeError> {
        let kind = match request.terminal {
            Some(_) => AttemptKind::Pty,
            None => AttemptKind::Process,
        };
        let mut intent = Intent::new(kind, &request.task, slot, &request.command);
        intent.env = &request.env;
        if let Some(bytes) = &request.input {
            intent.input = Input::Bytes(bytes);
        }
        self.locate(&mut intent, Some(&request.task), request.workdir.as_deref())
            .await?;
        self.admit(&intent).await
    }

    async fn start_admitted(
        &self,
        slot: &Arc<Slot>,
        request: StartRequest,
    ) -> Result<ProcessStatus, RuntimeError> {
        let limit = self.inner.config.terminal.timeout;
        let mut link = self.guest(slot, &request.task, limit).await?;
        let command = Bytes::copy_from_slice(request.command.as_bytes());
        let mut start = self.start_message(slot, &request)?;
        let mut openings = OPENINGS;
        let sudo = self.sudo_use(slot, Some(&link), &request.task, &request.command);
        loop {
            start.exec.sudo = sudo.is_armed();
            let id = start.exec.id.clone();
            let record = self.keep_record(slot, &link, &id, &request)?;
            let started = match link.start(start.clone(), command.clone()).await {
                // The answer is lost, perhaps not the process: its guest knows it by its id.
                Err(error) if slot.can_regain(&error) => {
                    let (again, known) = look_again(slot, link, &id, &error).await?;
                    link = again;
                    match known {
                        Some(status) => Ok(status),
                        None => continue,
                    }
                }
                started => started,
            };
            match started {
                Ok(mut status) => {
                    if let Some(bytes) = request.input.clone() {
                        feed(&link, &id, bytes).await?;
                    }
                    status.clean(&self.redactor());
                    let confirmed = true;
                    self.inner.processes.add(&ProcessRecord {
                        confirmed,
                        ..record
                    })?;
                    if let SudoUse::Armed(asking) = &sudo {
                        let answers = Answers::start(asking, &link, &id);
                        answers.detach(self.inner.owner == Owner::Task).await;
                    }
                    return Ok(status);
                }
                Err(error) => {
                    self.inner.processes.remove(&id);
                    let no_session = matches!(
                        &error,
                        PlaceError::Failed(Failure {
                            kind: FailureKind::NoSession,
                            ..
                        })
                    );
                    if !no_session || openings == 0 {
                        return Err(error.into());
                    }
                    let session = self.open_session(slot, &link, &request.task).await?;
                    self.keep_notes(slot, &request.task, session.notes)?;
                    openings -= 1;
                    start = self.start_message(slot, &request)?;
                }
            }
        }
    }

    fn start_message(&self, slot: &Slot, request: &StartRequest) -> Result<Start, RuntimeError> {
        let mut run = RunRequest::new(String::new()).in_task(&request.task);
        run.workdir.clone_from(&request.workdir);
        run.env.clone_from(&request.env);
        run.terminal = request.terminal;
        run.merge = true;
        let mut exec = self.exec_request(slot, &run, Duration::ZERO, true)?;
        let tail = exec.id.get(..16).unwrap_or(&exec.id);
        exec.id = format!("proc_{tail}");
        exec.timeout_ms = request.timeout.map(millis);
        exec.persist = false;
        Ok(Start {
            exec,
            bound: request.bound && self.inner.owner == Owner::Runtime,
            notify: request.notify,
            watch: request.watch.clone(),
            check_interval_ms: request.check_interval.map(millis),
            disk_bytes: self.inner.config.terminal.spill_limit_bytes(),
        })
    }

    fn keep_record(
        &self,
        slot: &Slot,
        link: &Link,
        id: &str,
        request: &StartRequest,
    ) -> Result<ProcessRecord, RuntimeError> {
        let record = ProcessRecord {
            id: id.to_owned(),
            task: request.task.clone(),
            place: slot.label.clone(),
            // Hidden before it is cut: half a secret has no shape.
            command: self
                .redactor()
                .redact(&request.command)
                .chars()
                .take(1000)
                .collect(),
            started: crate::record::now(),
            incarnation: link.hello().incarnation.clone(),
            confirmed: false,
            position: 0,
        };
        self.inner.processes.add(&record)?;
        Ok(record)
    }
}

/// Gives a fresh process the stdin it was started with, and ends it. One that does not read it, or
/// has ended already, needs none.
async fn feed(link: &Link, id: &str, bytes: Bytes) -> Result<(), PlaceError> {
    let request = WriteInput {
        id: id.to_owned(),
        enter: false,
        timeout_ms: millis(super::WRITE_LIMIT),
    };
    let close = Act {
        id: id.to_owned(),
        action: Action::Close,
    };
    for failed in [
        link.write_process(request, bytes).await.err(),
        link.act(close).await.err(),
    ] {
        match failed {
            None | Some(PlaceError::Failed(_)) => {}
            Some(lost) => return Err(lost),
        }
    }
    Ok(())
}
