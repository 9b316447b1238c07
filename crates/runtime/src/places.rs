//! The lives of places: listing them and cleaning them up.

use std::path::{Path, PathBuf};

use exoshell_wire::{GuestInfo, ProcessInfo, SessionInfo};
use serde::Serialize;

use crate::error::RuntimeError;
use crate::event::EventKind;
use crate::record::{Record, check_task, now};
use crate::runtime::{Runtime, session_key};

/// How a task's session is told in a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlaceReport {
    /// The task.
    pub task: String,
    /// The backend.
    pub backend: String,
    /// The directory its session is in now, or starts in.
    pub cwd: String,
    /// How long the place exists.
    pub age_seconds: u64,
    /// How long nothing ran in it; absent when it has no session now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_seconds: Option<u64>,
    /// Whether its shell state is there.
    pub session: bool,
    /// How many commands run in it now.
    pub running: u32,
    /// What finished commands left running.
    pub leftovers: Vec<LeftoverReport>,
    /// The bytes in a directory that was made for the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
}

/// A process that outlived its command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeftoverReport {
    /// Its process id in the place.
    pub pid: u32,
    /// Its command line.
    pub command: String,
}

/// All places of a home.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlacesReport {
    /// The places, by task.
    pub places: Vec<PlaceReport>,
    /// The guest that serves them, if one runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guest: Option<GuestReport>,
    /// What a person should look at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The local guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GuestReport {
    /// Its process id.
    pub pid: u32,
    /// How long it runs.
    pub uptime_seconds: u64,
    /// How many hosts are connected, this one included.
    pub connections: u32,
    /// How many warm shells stand ready.
    pub warm_shells: u32,
    /// The guest's own processes.
    pub own_pids: Vec<u32>,
}

/// What a clean-up did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Cleaned {
    /// The tasks whose places were removed.
    pub removed: Vec<String>,
    /// How many commands and leftovers were ended.
    pub ended: u32,
    /// What could not be removed, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
}

impl Runtime {
    /// Lists the places of this home.
    pub async fn places(&self) -> Result<PlacesReport, RuntimeError> {
        let info = match self.existing_link().await? {
            Some(link) => Some(link.info().await?),
            None => None,
        };
        let places: Vec<PlaceReport> = self
            .inner
            .records
            .list()
            .iter()
            .map(|record| report(record, info.as_ref()))
            .collect();
        let used: u64 = places.iter().filter_map(|place| place.disk_bytes).sum();
        let mut warnings = Vec::new();
        if let Some(limit) = self.inner.config.places.disk_warning_bytes()
            && used > limit
        {
            warnings.push(format!(
                "the tasks' directories hold {} GB, over the warning limit of {} GB; \
                 `exoshell places rm TASK` frees them",
                used / 1_000_000_000,
                limit / 1_000_000_000
            ));
        }
        Ok(PlacesReport {
            places,
            guest: info.map(|info| GuestReport {
                pid: info.pid,
                uptime_seconds: info.uptime_ms / 1000,
                connections: info.connections,
                warm_shells: info.warm_shells,
                own_pids: info.own_pids,
            }),
            warnings,
        })
    }

    /// Describes the place of one task; `None` when it has none.
    pub async fn place(&self, task: &str) -> Result<Option<PlaceReport>, RuntimeError> {
        check_task(task)?;
        let all = self.places().await?;
        Ok(all.places.into_iter().find(|place| place.task == task))
    }

    /// Removes a task's place: ends what runs in it and forgets its state. A place that is gone
    /// already is no error.
    pub async fn cleanup(&self, task: &str) -> Result<Cleaned, RuntimeError> {
        check_task(task)?;
        let mut cleaned = Cleaned::default();
        if let Some(link) = self.existing_link().await? {
            let grace = self.inner.config.terminal.kill_grace;
            let ended = link.end_session(&session_key(task), grace).await?;
            cleaned.ended = ended.ended;
        }
        let record = self.inner.records.get(task);
        if let Some(record) = &record {
            remove_directory(record, &mut cleaned);
        }
        self.inner.processes.forget(Some(task));
        if self.inner.records.remove(task)? || record.is_some() {
            cleaned.removed.push(task.to_owned());
            self.emit(task, EventKind::PlaceRemoved);
        }
        Ok(cleaned)
    }

    /// Removes every place of this home and ends its guest, whoever uses it.
    pub async fn cleanup_all(&self) -> Result<Cleaned, RuntimeError> {
        let mut cleaned = Cleaned::default();
        if let Some(link) = self.existing_link().await? {
            let info = link.info().await?;
            cleaned.ended = info.sessions.iter().map(|s| s.running + s.leftovers).sum();
            // A guest that ends before its answer arrived has ended all the same.
            let _ = link.shut_down().await;
            self.drop_link().await;
        }
        self.inner.place.sweep().await?;
        for record in self.inner.records.list() {
            remove_directory(&record, &mut cleaned);
            self.inner.records.remove(&record.task)?;
            self.emit(&record.task, EventKind::PlaceRemoved);
            cleaned.removed.push(record.task);
        }
        self.inner.processes.forget(None);
        self.inner.records.remove_folder();
        Ok(cleaned)
    }
}

fn report(record: &Record, info: Option<&GuestInfo>) -> PlaceReport {
    let key = session_key(&record.task);
    let session: Option<&SessionInfo> =
        info.and_then(|info| info.sessions.iter().find(|session| session.key == key));
    let leftovers = info
        .map(|info| {
            info.leftovers
                .iter()
                .filter(|process| process.session.as_deref() == Some(&key))
                .map(leftover)
                .collect()
        })
        .unwrap_or_default();
    PlaceReport {
        task: record.task.clone(),
        backend: record.backend.clone(),
        cwd: session.map_or_else(
            || record.directory.display(),
            |session| session.cwd.display(),
        ),
        age_seconds: now().saturating_sub(record.created),
        idle_seconds: session.map(|session| session.idle_ms / 1000),
        session: session.is_some(),
        running: session.map_or(0, |session| session.running),
        leftovers,
        disk_bytes: record.own_directory.then(|| disk_use(record.directory())),
    }
}

fn leftover(process: &ProcessInfo) -> LeftoverReport {
    LeftoverReport {
        pid: process.pid,
        command: process.command.display(),
    }
}

/// Removes a directory that was made for the task; never one that was there before.
fn remove_directory(record: &Record, cleaned: &mut Cleaned) {
    if !record.own_directory {
        return;
    }
    match std::fs::remove_dir_all(record.directory()) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            cleaned
                .failed
                .push(format!("`{}`: {error}", record.directory.display()));
        }
        _ => {}
    }
}

/// Adds up the files of a directory, without following links out of it.
fn disk_use(directory: &Path) -> u64 {
    let mut total = 0;
    let mut pending: Vec<PathBuf> = vec![directory.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => pending.push(entry.path()),
                Ok(meta) => total += meta.len(),
                Err(_) => {}
            }
        }
    }
    total
}
