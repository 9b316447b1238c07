//! The lives of places: which one a task uses, listing them and cleaning them up.

pub(crate) mod environment;
mod files;
mod reaper;
pub(crate) mod slot;
pub(crate) mod spec;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use exoshell_wire::{GuestInfo, ProcessInfo, SessionInfo};
use serde::Serialize;
use tokio::task::JoinSet;

use crate::error::RuntimeError;
use crate::event::EventKind;
use crate::record::{Record, check_task, now};
use crate::runtime::{DEFAULT_TASK, Runtime, session_key};
use slot::Slot;

/// How a task's session is told in a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlaceReport {
    /// The task.
    pub task: String,
    /// The backend.
    pub backend: String,
    /// What the backend calls it: a container's id, `user@host:port`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The image it was made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// Whether it is there: `running`, `stopped`, or `unreachable` with the reason.
    pub state: String,
    /// Limits that were asked for and are not enforced here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unenforced: Vec<String>,
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
    /// How many background processes live in it, each with whatever it started.
    pub background: u32,
    /// All of those processes.
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

/// What becomes of a place that cannot be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stubborn {
    /// It stays listed, so that it can be tried again.
    Kept,
    /// It is forgotten; whatever is there is left to its owner.
    Forgotten,
}

/// What a clean-up did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Cleaned {
    /// The tasks whose places were removed.
    pub removed: Vec<String>,
    /// How many commands and leftovers were ended.
    pub ended: u32,
    /// How many files of remote places were brought back.
    pub brought_back: usize,
    /// What the caller should know, one sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What could not be removed, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
}

impl Runtime {
    /// Lists the places of this home. Those out of reach are listed as such.
    pub async fn places(&self) -> Result<PlacesReport, RuntimeError> {
        self.report(self.inner.records.list()).await
    }

    /// Describes these places, all looked at together.
    async fn report(&self, records: Vec<Record>) -> Result<PlacesReport, RuntimeError> {
        let local = self.local_slot()?;
        let mut slots = vec![Arc::clone(&local)];
        for record in &records {
            let slot = self.recorded_slot(record)?;
            if !slots.iter().any(|known| known.label == slot.label) {
                slots.push(slot);
            }
        }
        let mut looks = JoinSet::new();
        for slot in slots {
            looks.spawn(async move { (slot.label.clone(), look_at(&slot).await) });
        }
        let mut seen: HashMap<String, Seen> = looks.join_all().await.into_iter().collect();
        let places: Vec<PlaceReport> = records
            .iter()
            .filter_map(|record| Some(report(record, seen.get(&record.label)?)))
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
        let info = match seen.remove(&local.label) {
            Some(Seen::There(info)) => Some(info),
            _ => None,
        };
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

    /// Describes the places of one task; usually there is one.
    pub async fn places_of(&self, task: &str) -> Result<Vec<PlaceReport>, RuntimeError> {
        check_task(task)?;
        let records = self.inner.records.of_task(task);
        let all = self.report(records).await?.places;
        Ok(all)
    }

    /// Removes a task's places: ends what runs in them and forgets their state. A place that is
    /// gone already is no error. One that cannot be removed is named and stays listed.
    pub async fn cleanup(&self, task: &str) -> Result<Cleaned, RuntimeError> {
        self.clean_task(task, Stubborn::Kept).await
    }

    /// Likewise, but a place that cannot be removed is forgotten: it is named in the notes, and
    /// what is left of it is its owner's to remove.
    pub async fn cleanup_forced(&self, task: &str) -> Result<Cleaned, RuntimeError> {
        self.clean_task(task, Stubborn::Forgotten).await
    }

    async fn clean_task(&self, task: &str, stubborn: Stubborn) -> Result<Cleaned, RuntimeError> {
        check_task(task)?;
        let mut cleaned = Cleaned::default();
        // The local guest may hold a session that no record tells of any more.
        let mut removed = self
            .end_session(&*self.local_slot()?, task, &mut cleaned)
            .await?;
        for record in self.inner.records.of_task(task) {
            let outcome = match self.recorded_slot(&record) {
                Ok(slot) if slot.spec.is_local() => Ok(()),
                Ok(slot) => self.remove_place(&slot, task, &mut cleaned).await,
                Err(error) => Err(error),
            };
            if let Err(error) = outcome
                && self.stays(&record, &error, stubborn, &mut cleaned)
            {
                continue;
            }
            remove_directory(&record, &mut cleaned);
            removed |= self.inner.records.remove(task, &record.label)?;
        }
        self.inner.processes.forget(Some(task));
        if removed {
            cleaned.removed.push(task.to_owned());
            self.emit(task, EventKind::PlaceRemoved);
        }
        Ok(cleaned)
    }

    /// Reports a place that cannot be removed; tells whether it stays listed.
    fn stays(
        &self,
        record: &Record,
        error: &RuntimeError,
        stubborn: Stubborn,
        cleaned: &mut Cleaned,
    ) -> bool {
        let text = format!("{} `{}`: {error}", record.backend, record.label);
        if stubborn == Stubborn::Kept {
            cleaned.failed.push(text);
            return true;
        }
        cleaned
            .notes
            .push(format!("forgotten, but perhaps still there: {text}"));
        self.forget_slot(&record.label);
        false
    }

    /// Ends a task's session where its guest is there; tells whether there was one.
    async fn end_session(
        &self,
        slot: &Slot,
        task: &str,
        cleaned: &mut Cleaned,
    ) -> Result<bool, RuntimeError> {
        let Some(link) = slot.existing().await? else {
            return Ok(false);
        };
        let grace = self.inner.config.terminal.kill_grace;
        let ended = link.end_session(&session_key(task), grace).await?;
        cleaned.ended += ended.ended;
        Ok(ended.existed)
    }

    /// Brings files back, ends the task's session, and removes a place that is the task's own.
    async fn remove_place(
        &self,
        slot: &Slot,
        task: &str,
        cleaned: &mut Cleaned,
    ) -> Result<(), RuntimeError> {
        self.fetch_files(slot, task, cleaned).await;
        let ended = self.end_session(slot, task, cleaned).await;
        let shared = self
            .inner
            .records
            .list()
            .iter()
            .any(|other| other.label == slot.label && other.task != task);
        if !shared {
            self.shut_down(slot, cleaned).await;
            slot.place.destroy().await?;
            self.forget_slot(&slot.label);
        }
        if slot.spec.is_disposable() {
            Ok(())
        } else {
            ended.map(|_existed| ())
        }
    }

    /// Ends a guest and everything in it, if it is there.
    async fn shut_down(&self, slot: &Slot, cleaned: &mut Cleaned) {
        let Ok(Some(link)) = slot.existing().await else {
            return;
        };
        if let Ok(info) = link.info().await {
            cleaned.ended += info
                .sessions
                .iter()
                .map(|session| session.running + session.leftovers)
                .sum::<u32>();
        }
        // A guest that ends before its answer arrived has ended all the same.
        let _ = link.shut_down().await;
        slot.drop_link();
    }

    /// Removes every place of this home and ends its guests, whoever uses them.
    /// Places that cannot be removed are named and stay listed.
    pub async fn cleanup_all(&self) -> Result<Cleaned, RuntimeError> {
        self.clean_all(Stubborn::Kept).await
    }

    /// Likewise, but places that cannot be removed are forgotten.
    pub async fn cleanup_all_forced(&self) -> Result<Cleaned, RuntimeError> {
        self.clean_all(Stubborn::Forgotten).await
    }

    async fn clean_all(&self, stubborn: Stubborn) -> Result<Cleaned, RuntimeError> {
        let mut cleaned = Cleaned::default();
        let mut gone = HashSet::new();
        for record in self.inner.records.list() {
            if !gone.contains(&record.label) {
                let outcome = match self.recorded_slot(&record) {
                    Ok(slot) if slot.spec.is_local() => Ok(()),
                    Ok(slot) => self.wipe(&slot, &record, &mut cleaned).await,
                    Err(error) => Err(error),
                };
                if let Err(error) = outcome
                    && self.stays(&record, &error, stubborn, &mut cleaned)
                {
                    continue;
                }
                gone.insert(record.label.clone());
            }
            remove_directory(&record, &mut cleaned);
            self.inner.records.remove(&record.task, &record.label)?;
            self.emit(&record.task, EventKind::PlaceRemoved);
            if !cleaned.removed.contains(&record.task) {
                cleaned.removed.push(record.task);
            }
        }
        self.hang_up().await;
        let local = self.local_slot()?;
        self.shut_down(&local, &mut cleaned).await;
        local.place.sweep().await?;
        self.inner.processes.forget(None);
        self.inner.records.remove_folder();
        Ok(cleaned)
    }
}

impl Runtime {
    /// Removes a place for good, whoever uses it.
    async fn wipe(
        &self,
        slot: &Slot,
        record: &Record,
        cleaned: &mut Cleaned,
    ) -> Result<(), RuntimeError> {
        self.fetch_files(slot, &record.task, cleaned).await;
        self.shut_down(slot, cleaned).await;
        slot.place.destroy().await?;
        self.forget_slot(&record.label);
        Ok(())
    }

    /// Ends the shared connection to the configured host, which may be there without a place: for
    /// `doctor`, or after a failed start.
    async fn hang_up(&self) {
        if let Ok(slot) = self.slot(DEFAULT_TASK)
            && slot.spec.is_remote_host()
        {
            // One that cannot be ended ends by itself.
            let _ = slot.place.destroy().await;
            self.forget_slot(&slot.label);
        }
    }
}

/// What a look at a place showed.
enum Seen {
    There(GuestInfo),
    /// No guest runs there; perhaps the place itself is gone.
    Stopped,
    Unreachable(String),
}

async fn look_at(slot: &Slot) -> Seen {
    let link = match slot.existing().await {
        Ok(Some(link)) => link,
        Ok(None) => return Seen::Stopped,
        Err(error) => return Seen::Unreachable(error.to_string()),
    };
    match link.info().await {
        Ok(info) => Seen::There(info),
        Err(error) => Seen::Unreachable(error.to_string()),
    }
}

fn report(record: &Record, seen: &Seen) -> PlaceReport {
    let info = match seen {
        Seen::There(info) => Some(info),
        _ => None,
    };
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
        id: record.id.clone(),
        image: record.image.clone(),
        state: match seen {
            Seen::There(_) => "running".to_owned(),
            Seen::Stopped => "stopped".to_owned(),
            Seen::Unreachable(why) => format!("unreachable: {why}"),
        },
        unenforced: record.unenforced.clone(),
        cwd: session.map_or_else(
            || record.directory.display(),
            |session| session.cwd.display(),
        ),
        age_seconds: now().saturating_sub(record.created),
        idle_seconds: session.map(|session| session.idle_ms / 1000),
        session: session.is_some(),
        running: session.map_or(0, |session| session.running),
        background: session.map_or(0, |session| session.leftovers),
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
