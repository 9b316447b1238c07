//! The session of a task: what it starts from, and where it is.

mod directory;

use std::ffi::OsStr;

use exoshell_place::Link;
use exoshell_wire::{OpenSession, RawBytes, SessionSpec};

use crate::config;
use crate::error::RuntimeError;
use crate::event::EventKind;
use crate::places::environment::place_environment;
use crate::places::slot::Slot;
use crate::record::Record;
use crate::runtime::{Runtime, millis, raw, session_key};

/// A task's session that is there now.
#[derive(Debug)]
pub(crate) struct Opened {
    /// Whether an earlier session of the task, and with it its state, is gone.
    pub(crate) state_lost: bool,
    /// What the caller should know about the place.
    pub(crate) notes: Vec<String>,
}

impl Runtime {
    /// Makes sure that the task's place and session exist.
    pub(crate) async fn open_session(
        &self,
        slot: &Slot,
        link: &Link,
        task: &str,
    ) -> Result<Opened, RuntimeError> {
        let record = self.record(slot, task)?.0;
        let incarnation = &link.hello().incarnation;
        self.describe_place(slot, &record, incarnation).await?;
        let mut notes = self.bring_files(slot, link, task).await?;
        let request = OpenSession {
            key: session_key(task),
            spec: self.session_spec(slot, task, &record, &mut notes),
            only_existing: false,
        };
        let opened = link.open_session(request).await?;
        let state_lost = opened.created && record.incarnation.is_some();
        let mut new_place = false;
        if record.incarnation.as_ref() != Some(incarnation) {
            self.inner.records.update(task, &slot.label, |record| {
                let before = record.incarnation.replace(incarnation.clone());
                new_place = before.is_none();
            })?;
        }
        if new_place {
            let backend = slot.place.backend();
            self.emit(task, EventKind::PlaceCreated { backend });
        }
        Ok(Opened { state_lost, notes })
    }

    pub(crate) fn session_spec(
        &self,
        slot: &Slot,
        task: &str,
        record: &Record,
        notes: &mut Vec<String>,
    ) -> SessionSpec {
        let places = &self.inner.config.places;
        let ttl = slot.life().session.unwrap_or(places.session_ttl);
        let mut spec = if slot.spec.is_local() {
            self.local_spec(record.directory().as_os_str())
        } else {
            self.place_spec(slot, task, notes)
        };
        spec.login_timeout_ms = Some(millis(self.inner.config.terminal.login_timeout));
        spec.idle_ms = Some(millis(places.lifetime));
        spec.ttl_ms = Some(millis(ttl));
        let overrides = self.overrides(task).env;
        spec.extra_env.extend(
            overrides
                .into_iter()
                .map(|(name, value)| (name.into(), value.into())),
        );
        spec
    }

    /// Returns what a one-shot command starts from: on this machine the caller's directory and
    /// environment, elsewhere the place's own.
    pub(crate) fn one_shot_spec(
        &self,
        slot: &Slot,
        task: &str,
    ) -> Result<SessionSpec, RuntimeError> {
        if slot.spec.is_local() {
            Ok(self.local_spec(self.base_directory()?.as_os_str()))
        } else {
            Ok(self.place_spec(slot, task, &mut Vec::new()))
        }
    }

    fn place_spec(&self, slot: &Slot, task: &str, notes: &mut Vec<String>) -> SessionSpec {
        let directory = self.place_directory(slot, task, notes);
        let environment = place_environment(
            &self.inner.environment,
            &self.inner.config,
            slot.spec.is_container(),
            notes,
        );
        SessionSpec {
            cwd: directory.map(|directory| raw(directory.as_os_str())),
            env: None,
            env_remove: config::stripped_names(&self.inner.config)
                .into_iter()
                .map(RawBytes::from)
                .collect(),
            extra_env: environment,
            login_timeout_ms: None,
            umask: None,
            idle_ms: None,
            ttl_ms: None,
        }
    }

    fn local_spec(&self, directory: &OsStr) -> SessionSpec {
        let environment = config::child_environment(&self.inner.environment, &self.inner.config);
        SessionSpec {
            cwd: Some(raw(directory)),
            env: Some(
                environment
                    .iter()
                    .map(|(name, value)| (raw(name), raw(value)))
                    .collect(),
            ),
            env_remove: Vec::new(),
            extra_env: Vec::new(),
            login_timeout_ms: None,
            umask: caller_umask(),
            idle_ms: None,
            ttl_ms: None,
        }
    }
}

/// Returns this process's umask. The call that reads it also sets it, for all threads, so the
/// kernel's own report is read instead.
fn caller_umask() -> Option<u32> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("Umask:"))?;
    u32::from_str_radix(line.trim(), 8).ok()
}
