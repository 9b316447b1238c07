//! The lives of places: which one a task uses, and listing them.

mod entry;
pub(crate) mod environment;
mod files;
mod reaper;
mod removal;
pub(crate) mod slot;
pub(crate) mod spec;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use exoshell_wire::{GuestInfo, ProcessInfo, SessionInfo};
use serde::Serialize;
use tokio::task::JoinSet;

use crate::error::RuntimeError;
use crate::record::{Record, check_task, now};
use crate::runtime::{Runtime, session_key};
pub use removal::Cleaned;
use slot::Slot;

/// How a task's session is told in a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlaceReport {
    /// The task.
    pub task: String,
    /// The backend.
    pub backend: String,
    /// The engine behind the backend, where there are several: `docker`, `podman`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
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
        engine: record.engine.clone(),
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
