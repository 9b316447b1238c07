//! Starting a process, exactly once.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use exoshell_place::{Link, PlaceError};
use exoshell_wire::{Failure, FailureKind, ProcessStatus, Start, TerminalSize};

use super::{ProcessRecord, look_again};
use crate::error::RuntimeError;
use crate::places::slot::Slot;
use crate::record::check_task;
use crate::redact::Outlet as _;
use crate::run::{RunRequest, check_command};
use crate::runtime::{Owner, Runtime, millis};

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
    /// Starts a process and returns once its shell runs it.
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
        let mut link = self.guest(&slot, &request.task).await?;
        let command = Bytes::copy_from_slice(request.command.as_bytes());
        let mut start = self.start_message(&slot, &request)?;
        let mut opened = false;
        loop {
            let id = start.exec.id.clone();
            let record = self.keep_record(&slot, &link, &id, &request)?;
            let started = match link.start(start.clone(), command.clone()).await {
                // The answer is lost, perhaps not the process: its guest knows it by its id.
                Err(error) if slot.can_regain(&error) => {
                    let (again, known) = look_again(&slot, link, &id, &error).await?;
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
                    status.clean(&self.redactor());
                    let confirmed = true;
                    self.inner.processes.add(&ProcessRecord {
                        confirmed,
                        ..record
                    })?;
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
                    if !no_session || opened {
                        return Err(error.into());
                    }
                    self.open_session(&slot, &link, &request.task).await?;
                    opened = true;
                    start = self.start_message(&slot, &request)?;
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
