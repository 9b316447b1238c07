//! What host processes know of a process beyond its guest's life: one small file each.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::RuntimeError;
use crate::record::now;
use crate::state_file;

/// How long the record of a process is kept, in seconds.
const MAX_AGE: u64 = 7 * 24 * 3600;

/// How many records are kept; the oldest go first.
const MAX_RECORDS: usize = 2048;

/// The file of one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessRecord {
    /// Its id.
    pub id: String,
    /// Its task.
    pub task: String,
    /// The name of the place it runs in.
    #[serde(default = "local")]
    pub place: String,
    /// The command, cut.
    pub command: String,
    /// When it was started, in seconds since 1970.
    pub started: u64,
    /// The guest that has it.
    pub incarnation: String,
    /// Whether its start is known to have succeeded; the record is made before.
    #[serde(default)]
    pub confirmed: bool,
    /// How far its output was polled.
    #[serde(default)]
    pub position: u64,
}

fn local() -> String {
    "local".to_owned()
}

impl ProcessRecord {
    /// Tells whether its process was started, or never will be.
    pub(crate) fn is_settled(&self) -> bool {
        self.confirmed || now().saturating_sub(self.started) > 60
    }
}

/// The folder of all of them.
#[derive(Debug, Clone)]
pub(crate) struct ProcessRecords {
    dir: PathBuf,
}

impl ProcessRecords {
    pub(crate) fn new(home: &Path) -> Self {
        Self {
            dir: home.join("processes"),
        }
    }

    /// Returns the file of an id, if it can be one: an id comes from callers.
    fn path(&self, id: &str) -> Option<PathBuf> {
        let safe = !id.is_empty()
            && id.len() <= 64
            && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        safe.then(|| self.dir.join(format!("{id}.json")))
    }

    /// Adds or replaces a record.
    pub(crate) fn add(&self, record: &ProcessRecord) -> Result<(), RuntimeError> {
        let Some(path) = self.path(&record.id) else {
            return Ok(());
        };
        state_file::make_folder(&self.dir)?;
        state_file::write(&path, record)
    }

    pub(crate) fn get(&self, id: &str) -> Option<ProcessRecord> {
        state_file::read(&self.path(id)?)
    }

    pub(crate) fn remove(&self, id: &str) {
        if let Some(path) = self.path(id) {
            // A record that is gone is what was wanted.
            let _ = fs::remove_file(path);
        }
    }

    /// Lists all, oldest first, and forgets what is too old.
    pub(crate) fn list(&self) -> Vec<ProcessRecord> {
        let mut records: Vec<ProcessRecord> = state_file::read_all(&self.dir);
        records.sort_by(|a, b| (a.started, &a.id).cmp(&(b.started, &b.id)));
        let surplus = records.len().saturating_sub(MAX_RECORDS);
        let oldest = now().saturating_sub(MAX_AGE);
        let mut index = 0;
        records.retain(|record| {
            let keep = index >= surplus && record.started >= oldest;
            index += 1;
            if !keep {
                self.remove(&record.id);
            }
            keep
        });
        records
    }

    /// Forgets the records of a task, or all.
    pub(crate) fn forget(&self, task: Option<&str>) {
        for record in self.list() {
            if task.is_none_or(|task| task == record.task) {
                self.remove(&record.id);
            }
        }
        // Only an empty folder can be removed.
        let _ = fs::remove_dir(&self.dir);
    }
}
