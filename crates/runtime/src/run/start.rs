//! Bringing a command to where it runs.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use exoshell_place::plain::{PlainCommand, PlainShell};
use exoshell_place::{Link, PlaceError};
use exoshell_wire::{Exec, Failure, FailureKind, RawBytes, SessionRef, Spill};

use super::RunRequest;
use super::running::{Recovered, Running};
use crate::config::Persist;
use crate::error::RuntimeError;
use crate::places::slot::Slot;
use crate::runtime::{Runtime, millis, raw, session_key};
use crate::sudo::SudoUse;

/// How often a command is sent again when the pipe was lost before all of it was sent.
const START_TRIES: u32 = 3;

/// A command that was started.
pub(super) struct Started {
    pub(super) running: Running,
    pub(super) state_lost: bool,
    pub(super) notes: Vec<String>,
    /// Whether it has a shell of its own, and no guest.
    pub(super) plain: bool,
    /// What it has to do with sudo.
    pub(super) sudo: SudoUse,
}

impl Started {
    /// Describes a command that a guest runs, and answers its sudo from now on.
    fn in_guest(mut running: Running, state_lost: bool, notes: Vec<String>, sudo: SudoUse) -> Self {
        if let SudoUse::Armed(asking) = &sudo {
            running.answer_passwords(asking);
        }
        Self {
            running,
            state_lost,
            notes,
            plain: false,
            sudo,
        }
    }
}

impl Runtime {
    /// Starts the command. Where the session does not exist yet nothing was run, so it is
    /// opened and the command is started then.
    pub(super) async fn start(
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
            self.note_place(slot, &link, request).await?;
            notes = self.bring_files(slot, &link, request.place_task()).await?;
        }
        let mut exec = self.exec_request(slot, request, timeout, has_input)?;
        let sudo = self.sudo_use(slot, Some(&link), request.place_task(), &request.command);
        exec.sudo = sudo.is_armed();
        loop {
            let mut running = match Running::start(slot, &link, exec.clone(), command.clone()).await
            {
                Ok(running) => running,
                // Not all of it was sent, so nothing was run.
                Err(error) if tries > 0 && slot.can_regain(&error) => {
                    tries -= 1;
                    link = self.guest(slot, request.place_task(), timeout).await?;
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
                })) if !opened || tries > 0 => {
                    // One that was just opened and is gone was removed by somebody meanwhile.
                    tries -= u32::from(opened);
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
                                link = self.guest(slot, request.place_task(), timeout).await?;
                                continue;
                            }
                            Err(error) => return Err(error),
                        };
                        state_lost = session.state_lost;
                        notes = session.notes;
                    }
                    opened = true;
                    continue;
                }
                // Whether it was started is the guest's to say: it knows the id.
                Err(error) if running.can_recover(&error) => {
                    let recovered = tokio::select! {
                        recovered = running.recover(error) => recovered?,
                        () = request.interrupt.wait() => {
                            return Err(interrupted_while_lost().into());
                        }
                    };
                    if let Recovered::NeverStarted(again) = recovered {
                        link = again;
                        continue;
                    }
                }
                Err(error) => return Err(error.into()),
                Ok(event) => running.put_back(event),
            }
            return Ok(Started::in_guest(running, state_lost, notes, sudo));
        }
    }

    /// Starts the command in a shell of its own.
    pub(super) async fn start_plain(
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
        let (record, _) = self.record(slot, task)?;
        self.describe_place(slot, &record, "").await?;
        let mut notes = Vec::new();
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
            sudo: self.sudo_use(slot, None, task, &request.command),
        })
    }

    /// Keeps a record of the place that one-shot commands use, so that it is listed and can be
    /// removed.
    async fn note_place(
        &self,
        slot: &Slot,
        link: &Link,
        request: &RunRequest,
    ) -> Result<(), RuntimeError> {
        let (record, _) = self.record(slot, request.place_task())?;
        let incarnation = &link.hello().incarnation;
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
            sudo: false,
            redact: self.inner.keeper.for_guest(slot.spec.is_local()),
        })
    }
}

pub(super) fn interrupted_while_lost() -> PlaceError {
    let text = "interrupted while the connection was lost; the command ends when its lease is over";
    Failure::new(FailureKind::Ended, text).into()
}

pub(super) fn interrupted() -> RuntimeError {
    let text = "interrupted before the command was started";
    PlaceError::Failed(Failure::new(FailureKind::Ended, text)).into()
}
