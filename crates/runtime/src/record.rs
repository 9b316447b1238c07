//! What host processes agree on about a task's place: one small file per task.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use exoshell_wire::RawBytes;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::error::RuntimeError;
use crate::places::spec::{PlaceSpec, short_hex};
use crate::state_file;

/// The longest task name.
const MAX_TASK: usize = 256;

/// What a harness fixes for one task, before its place is created.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct TaskOverrides {
    /// The working directory.
    pub cwd: Option<PathBuf>,
    /// Variables on top of the usual environment.
    pub env: BTreeMap<String, String>,
    /// Opaque labels that every event of the task carries.
    pub labels: BTreeMap<String, String>,
    /// The image of its container.
    pub image: Option<String>,
    /// A container that exists, to be used instead of making one.
    pub container: Option<String>,
    /// Processors its container may use; 0 = no limit.
    pub cpu: Option<f64>,
    /// Megabytes of memory its container may use; 0 = no limit.
    pub memory_mb: Option<usize>,
    /// Megabytes its container's filesystem may grow by; 0 = no limit.
    pub disk_mb: Option<usize>,
    /// Whether its container has a network.
    pub network: Option<bool>,
}

/// How many notes wait for a caller at most.
const MAX_NOTES: usize = 32;

/// The file of one task's place.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) task: String,
    /// The name of its place.
    #[serde(default = "local")]
    pub(crate) label: String,
    pub(crate) backend: String,
    /// How to find it again.
    #[serde(default)]
    pub(crate) place: PlaceSpec,
    /// What the backend calls it.
    #[serde(default)]
    pub(crate) id: Option<String>,
    /// The engine behind the backend, where there are several.
    #[serde(default)]
    pub(crate) engine: Option<String>,
    /// The image it was made from.
    #[serde(default)]
    pub(crate) image: Option<String>,
    /// Limits that were asked for and cannot be enforced.
    #[serde(default)]
    pub(crate) unenforced: Vec<String>,
    /// Seconds since 1970.
    pub(crate) created: u64,
    /// The directory its session starts in; it need not be UTF-8. Empty = the place's own.
    pub(crate) directory: RawBytes,
    /// Whether that directory was made for the task and goes with it.
    pub(crate) own_directory: bool,
    /// The guest that held its session when last seen.
    #[serde(default)]
    pub(crate) incarnation: Option<String>,
    /// The guest of the place whose name, image and limits are told here.
    #[serde(default)]
    pub(crate) described: Option<String>,
    /// The directory that its session was left in, where asking for it means a connection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) left_in: Option<String>,
    /// What happened to the place and no caller was told yet: a note waits for the first call that
    /// succeeds, perhaps one of another program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) untold: Vec<String>,
}

fn local() -> String {
    "local".to_owned()
}

impl Record {
    /// Keeps notes until a caller can be told.
    pub(crate) fn keep_notes(&mut self, notes: Vec<String>) {
        for note in notes {
            if !self.untold.contains(&note) && self.untold.len() < MAX_NOTES {
                self.untold.push(note);
            }
        }
    }

    /// Returns the directory as a path of this machine.
    pub(crate) fn directory(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.directory.0))
    }
}

/// The folder of all records.
#[derive(Debug, Clone)]
pub(crate) struct Records {
    dir: PathBuf,
}

/// Checks a task's name.
pub(crate) fn check_task(task: &str) -> Result<(), RuntimeError> {
    let fault = if task.is_empty() {
        "a task needs a name"
    } else if task.len() > MAX_TASK {
        "a task's name has at most 256 bytes"
    } else if task.chars().any(char::is_control) {
        "a task's name has no control characters"
    } else {
        return Ok(());
    };
    Err(RuntimeError::Usage(fault.to_owned()))
}

/// Turns a task's name into a file name that two tasks never share.
pub(crate) fn file_name(task: &str) -> String {
    let readable: String = task
        .chars()
        .take(40)
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') {
                c
            } else {
                '_'
            }
        })
        .collect();
    let digest = Sha256::digest(task.as_bytes());
    let tail: u32 = digest
        .iter()
        .take(4)
        .fold(0, |sum, byte| sum << 8 | u32::from(*byte));
    format!("{readable}-{tail:08x}")
}

impl Records {
    pub(crate) fn new(home: &Path) -> Self {
        Self {
            dir: home.join("places"),
        }
    }

    fn path(&self, task: &str, label: &str) -> PathBuf {
        let name = file_name(task);
        if label == "local" {
            return self.dir.join(format!("{name}.json"));
        }
        let tail = short_hex(&Sha256::digest(label.as_bytes()));
        self.dir.join(format!("{name}@{tail}.json"))
    }

    /// Returns the task's record; the first of any number of concurrent callers makes it.
    pub(crate) fn get_or_create(
        &self,
        task: &str,
        label: &str,
        make: impl FnOnce() -> Result<Record, RuntimeError>,
    ) -> Result<(Record, bool), RuntimeError> {
        let path = self.path(task, label);
        if let Some(record) = state_file::read(&path) {
            return Ok((record, false));
        }
        state_file::make_folder(&self.dir)?;
        let _lock = self.lock()?;
        if let Some(record) = state_file::read(&path) {
            return Ok((record, false));
        }
        let record = make()?;
        state_file::write(&path, &record)?;
        Ok((record, true))
    }

    /// Takes the notes that nobody was told yet.
    pub(crate) fn take_notes(&self, task: &str, label: &str) -> Vec<String> {
        let mut notes = Vec::new();
        let waiting = state_file::read::<Record>(&self.path(task, label))
            .is_some_and(|record| !record.untold.is_empty());
        if waiting {
            // A note that cannot be taken is told again, which is better than never.
            let _ = self.update(task, label, |record| {
                notes = std::mem::take(&mut record.untold);
            });
        }
        notes
    }

    /// Returns the record of a task's place, if there is one.
    pub(crate) fn get(&self, task: &str, label: &str) -> Option<Record> {
        state_file::read(&self.path(task, label))
    }

    /// Changes a record that exists.
    pub(crate) fn update(
        &self,
        task: &str,
        label: &str,
        change: impl FnOnce(&mut Record),
    ) -> Result<(), RuntimeError> {
        let path = self.path(task, label);
        let _lock = self.lock()?;
        let Some(mut record) = state_file::read::<Record>(&path) else {
            return Ok(());
        };
        change(&mut record);
        state_file::write(&path, &record)
    }

    /// Returns the records of all places of a task.
    pub(crate) fn of_task(&self, task: &str) -> Vec<Record> {
        let mut records = self.list();
        records.retain(|record| record.task == task);
        records
    }

    /// Returns all records, by task.
    pub(crate) fn list(&self) -> Vec<Record> {
        let mut records: Vec<Record> = state_file::read_all(&self.dir);
        records.sort_by(|a, b| (&a.task, &a.label).cmp(&(&b.task, &b.label)));
        records
    }

    /// Removes a record; one that is gone already is no error.
    pub(crate) fn remove(&self, task: &str, label: &str) -> Result<bool, RuntimeError> {
        let path = self.path(task, label);
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(state_file::failure("cannot remove", &path)(error)),
        }
    }

    /// Removes the record of a place that never came to be; one that somebody uses by now stays.
    pub(crate) fn remove_unused(&self, task: &str, label: &str) -> Result<(), RuntimeError> {
        let path = self.path(task, label);
        let _lock = self.lock()?;
        let record: Option<Record> = state_file::read(&path);
        if record.is_some_and(|record| record.incarnation.is_none() && record.described.is_none()) {
            self.remove(task, label)?;
        }
        Ok(())
    }

    /// Removes the folder if nothing is in it any more.
    pub(crate) fn remove_folder(&self) {
        let _ = fs::remove_file(self.dir.join(LOCK));
        let _ = fs::remove_dir(&self.dir);
    }

    fn lock(&self) -> Result<File, RuntimeError> {
        let path = self.dir.join(LOCK);
        let open = || {
            let file = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(false)
                .mode(0o600)
                .open(&path)?;
            rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
            Ok(file)
        };
        open().map_err(state_file::failure("cannot lock", &path))
    }
}

const LOCK: &str = ".lock";

/// Returns the present time as records keep it.
pub(crate) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

#[cfg(test)]
#[path = "record_tests.rs"]
mod tests;
