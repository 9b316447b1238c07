//! Files that come with a task into a remote place and go back at its end.
//!
//! [`push`] sends what differs, [`pull`] brings back what changed there. A [`Manifest`] remembers
//! what both sides agreed on, so that a change is known from a difference. `docs/sync.md` says
//! what a person can rely on.
//!
//! A place is hostile: every path from it is checked, sizes are counted here, and writes go
//! through [`exoshell_files`], which never follows a link beneath a root.

mod entry;
mod local;
mod manifest;
mod pull;
mod push;
mod remote;

#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod random_tests;
#[cfg(test)]
mod real_tests;
#[cfg(test)]
mod testing;

use std::path::PathBuf;

use exoshell_files::FilesError;
use exoshell_place::{PlaceError, Progress};
use exoshell_wire::{Failure, FailureKind};

pub use entry::{BadEntry, Direction, SyncEntry};
pub use manifest::Manifest;
pub use pull::pull;
pub use push::push;

use crate::error::ErrorKind;

/// How many files and folders one entry may hold.
pub const MAX_ENTRIES: usize = 20_000;

/// The largest file that is synced.
pub const MAX_FILE_BYTES: u64 = 256 * 1024 * 1024;

/// How much one push sends or one pull brings back at most.
pub const MAX_TOTAL_BYTES: u64 = 1024 * 1024 * 1024;

/// How many files are on their way at once: enough to hide the round trips of a far place.
const AT_ONCE: usize = 8;

/// What the remote version of a file that changed on both sides is called, behind its own name.
pub const CONFLICT_SUFFIX: &str = ".exoshell-remote";

/// How much may be synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncLimits {
    /// Files and folders per entry.
    pub entries: usize,
    /// Bytes per file; larger ones are skipped.
    pub file_bytes: u64,
    /// Bytes per push or pull; more is an error.
    pub total_bytes: u64,
}

impl Default for SyncLimits {
    fn default() -> Self {
        Self {
            entries: MAX_ENTRIES,
            file_bytes: MAX_FILE_BYTES,
            total_bytes: MAX_TOTAL_BYTES,
        }
    }
}

impl SyncLimits {
    fn for_files(&self) -> exoshell_files::Limits {
        exoshell_files::Limits {
            entries: self.entries,
            file_bytes: self.file_bytes,
            ..exoshell_files::Limits::default()
        }
    }
}

/// How a sync is done.
#[derive(Debug, Clone, Default)]
pub struct SyncOptions {
    /// How much may be synced.
    pub limits: SyncLimits,
    /// Who is told of the steps.
    pub progress: Progress,
}

/// A file that changed on both sides. The local one was left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The local file.
    pub path: PathBuf,
    /// Where the remote one was stored; `None` when that waits for the next pull.
    pub stored: Option<PathBuf>,
}

/// Something that was not synced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotSynced {
    /// The local file, or where it would be.
    pub path: PathBuf,
    /// Why, for people.
    pub why: String,
}

/// What a sync did. Paths are those of this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SyncReport {
    /// What was sent or brought back.
    pub moved: Vec<PathBuf>,
    /// How many bytes that was.
    pub bytes: u64,
    /// How many files were the same already.
    pub unchanged: usize,
    /// What changed on both sides.
    pub conflicts: Vec<Conflict>,
    /// What was deleted in the place, and is still here.
    pub deleted: Vec<PathBuf>,
    /// What was not synced.
    pub skipped: Vec<NotSynced>,
}

impl SyncReport {
    fn skip(&mut self, path: PathBuf, why: impl Into<String>) {
        let why = why.into();
        self.skipped.push(NotSynced { path, why });
    }
}

/// Why a sync ended early. What was moved before stays moved.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SyncError {
    /// Something on this machine is in the way.
    #[error("files cannot be synced: {0}")]
    Local(#[from] FilesError),
    /// The place failed.
    #[error("files cannot be synced: {0}")]
    Place(#[from] PlaceError),
    /// The place sent something that an honest guest does not send. Nothing of it was used.
    #[error("files of `{root}` are not synced, since the place sent something forbidden: {why}")]
    Forbidden {
        /// The remote root.
        root: String,
        /// What it sent.
        why: String,
    },
    /// There is more to sync than may be.
    #[error("files cannot be synced: there are more than {limit} bytes in `{path}`")]
    TooMuch {
        /// The entry at which the limit was passed.
        path: String,
        /// The limit.
        limit: u64,
    },
    /// A defect of ours.
    #[error("files cannot be synced: {0}")]
    Internal(String),
}

impl SyncError {
    /// Tells what the error means.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Local(_) | Self::TooMuch { .. } => ErrorKind::Config,
            Self::Place(PlaceError::Lost(_)) => ErrorKind::PlaceLost,
            Self::Place(_) | Self::Forbidden { .. } => ErrorKind::Unreachable,
            Self::Internal(_) => ErrorKind::Internal,
        }
    }

    /// Returns what a person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Local(FilesError::TooMany { .. }) | Self::TooMuch { .. } => Some(
                "name the files and folders that are needed in `sync.paths`, not a whole tree"
                    .to_owned(),
            ),
            Self::Local(FilesError::NoSpace { .. }) => {
                Some("free some space on this machine".to_owned())
            }
            Self::Local(_) => Some("check the local paths in `sync.paths`".to_owned()),
            Self::Place(PlaceError::Failed(failure)) => match failure.kind {
                FailureKind::DiskFull => {
                    Some("free some space in the place, or sync less".to_owned())
                }
                FailureKind::TooMuch => {
                    Some("name fewer files in the place in `sync.paths`".to_owned())
                }
                _ => Some("check the remote paths in `sync.paths`".to_owned()),
            },
            Self::Place(error) => error.hint(),
            Self::Forbidden { .. } => Some(
                "something in the place may have replaced the guest; remove the place and look \
                 at what ran there"
                    .to_owned(),
            ),
            Self::Internal(_) => None,
        }
    }
}

/// Tells whether a failure is about one file, so that the others can go on.
const fn is_about_one_file(failure: &Failure) -> bool {
    matches!(
        failure.kind,
        FailureKind::NoFile
            | FailureKind::Link
            | FailureKind::NotAFolder
            | FailureKind::NotAFile
            | FailureKind::NotAllowed
            | FailureKind::TooMuch
            | FailureKind::Damaged
    )
}

/// Says why a file was left out, if the error is about that file only.
fn about_one_file(error: &SyncError) -> Option<String> {
    match error {
        SyncError::Local(FilesError::NoSpace { .. } | FilesError::TooMany { .. }) => None,
        SyncError::Local(error) => Some(error.to_string()),
        SyncError::Place(PlaceError::Failed(failure)) if failure.kind == FailureKind::Damaged => {
            Some("it changed while it was sent; the next sync sends it".to_owned())
        }
        SyncError::Place(PlaceError::Failed(failure)) if is_about_one_file(failure) => {
            Some(format!("in the place, {}", readable(&failure.message)))
        }
        _ => None,
    }
}

/// Makes text of a place safe to show.
fn readable(text: &str) -> String {
    let shown = text.chars().filter(|c| !c.is_control());
    shown.take(500).collect()
}

/// Does something with the disk where it holds up nobody.
async fn on_disk<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, FilesError> + Send + 'static,
) -> Result<T, SyncError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => Ok(result?),
        Err(error) => Err(SyncError::Internal(error.to_string())),
    }
}
