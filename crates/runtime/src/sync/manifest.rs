//! What both sides last agreed on.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use exoshell_files::{Content, RelPath};
use exoshell_wire::RawBytes;
use serde::{Deserialize, Serialize};

use super::SyncEntry;
use crate::error::RuntimeError;
use crate::{record, state_file};

/// The content that each file had on both sides when it was last sent or brought back.
///
/// It is written to a file so that another host process can do the [`pull`](super::pull).
/// Without it nothing is lost: files that differ are then conflicts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Stored>", into = "Vec<Stored>")]
pub struct Manifest {
    entries: BTreeMap<Key, BTreeMap<RelPath, Content>>,
}

/// The two sides of an entry.
type Key = (RawBytes, String);

fn key(entry: &SyncEntry) -> Key {
    let local = entry.local.as_os_str().as_bytes().to_vec();
    (RawBytes(local), entry.remote.clone())
}

impl Manifest {
    /// Returns the file of a task's manifest in the home folder.
    pub fn path(home: &Path, task: &str) -> PathBuf {
        home.join("sync").join(record::file_name(task))
    }

    /// Reads a manifest; a file that is missing or damaged counts as an empty one.
    pub fn load(path: &Path) -> Self {
        state_file::read(path).unwrap_or_default()
    }

    /// Writes the manifest, at once or not at all.
    pub fn save(&self, path: &Path) -> Result<(), RuntimeError> {
        if let Some(folder) = path.parent() {
            state_file::make_folder(folder)?;
        }
        state_file::write(path, self)
    }

    /// Tells whether nothing is remembered.
    pub fn is_empty(&self) -> bool {
        self.entries.values().all(BTreeMap::is_empty)
    }

    pub(super) fn get(&self, entry: &SyncEntry, path: &RelPath) -> Option<Content> {
        self.entries.get(&key(entry))?.get(path).copied()
    }

    pub(super) fn set(&mut self, entry: &SyncEntry, path: RelPath, content: Content) {
        let files = self.entries.entry(key(entry)).or_default();
        files.insert(path, content);
    }

    /// Returns the paths that are remembered of an entry.
    pub(super) fn paths(&self, entry: &SyncEntry) -> Vec<RelPath> {
        let files = self.entries.get(&key(entry));
        files
            .into_iter()
            .flat_map(BTreeMap::keys)
            .cloned()
            .collect()
    }
}

/// An entry as the file has it.
#[derive(Clone, Serialize, Deserialize)]
struct Stored {
    local: RawBytes,
    remote: String,
    files: Vec<StoredFile>,
}

#[derive(Clone, Serialize, Deserialize)]
struct StoredFile {
    path: RawBytes,
    size: u64,
    sha256: String,
}

impl From<Manifest> for Vec<Stored> {
    fn from(manifest: Manifest) -> Self {
        let store = |(path, content): (RelPath, Content)| StoredFile {
            path: RawBytes(path.as_bytes().to_vec()),
            size: content.size,
            sha256: content.digest.to_string(),
        };
        let entries = manifest.entries.into_iter();
        entries
            .map(|((local, remote), files)| Stored {
                local,
                remote,
                files: files.into_iter().map(store).collect(),
            })
            .collect()
    }
}

impl From<Vec<Stored>> for Manifest {
    fn from(stored: Vec<Stored>) -> Self {
        // What makes no sense is left out: it is then as if it had never been sent.
        let read = |file: StoredFile| {
            let content = Content {
                size: file.size,
                digest: file.sha256.parse().ok()?,
            };
            Some((RelPath::new(file.path.0).ok()?, content))
        };
        let entry = |entry: Stored| {
            let files = entry.files.into_iter().filter_map(read).collect();
            ((entry.local, entry.remote), files)
        };
        Self {
            entries: stored.into_iter().map(entry).collect(),
        }
    }
}
