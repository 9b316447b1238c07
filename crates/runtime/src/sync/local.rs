//! This machine's side of an entry.

use std::ffi::OsStr;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use exoshell_files::{Content, EntryKind, FilesError, RelPath, Root};

use super::{CONFLICT_SUFFIX, SyncEntry, SyncError, SyncLimits, SyncReport, on_disk};

/// A file of this machine that may be sent.
#[derive(Debug, Clone)]
pub(super) struct LocalFile {
    pub(super) path: RelPath,
    pub(super) content: Content,
    pub(super) mode: u32,
}

/// Opens the local root; `None` when nothing is there.
pub(super) async fn open(entry: &SyncEntry) -> Result<Option<Arc<Root>>, SyncError> {
    let local = entry.local.clone();
    on_disk(move || match Root::open(&local) {
        Err(FilesError::Missing { .. }) => Ok(None),
        root => Ok(Some(Arc::new(root?))),
    })
    .await
}

/// Lists the files of a root. What is not synced is noted in the report.
pub(super) async fn files(
    root: &Arc<Root>,
    entry: &SyncEntry,
    limits: &SyncLimits,
    report: &mut SyncReport,
) -> Result<Vec<LocalFile>, SyncError> {
    let scanned = Arc::clone(root);
    let limits = limits.for_files();
    let entries = on_disk(move || {
        let mut entries = Vec::new();
        scanned.scan(&limits, &mut |entry| {
            entries.push(entry);
            ControlFlow::Continue(())
        })?;
        Ok(entries)
    })
    .await?;
    let mut files = Vec::new();
    for found in entries {
        match found.kind {
            EntryKind::File(_) if is_conflict_copy(&found.path) => {}
            EntryKind::File(content) => files.push(LocalFile {
                path: found.path,
                content,
                mode: found.mode,
            }),
            EntryKind::Folder => {}
            EntryKind::Link => report.skip(
                path_of(&entry.local, &found.path),
                "it is a symbolic link, and none is followed",
            ),
            EntryKind::Skipped(why) => report.skip(path_of(&entry.local, &found.path), why),
        }
    }
    Ok(files)
}

/// Tells whether a name is one that a pull made for a conflict.
pub(super) fn is_conflict_copy(path: &RelPath) -> bool {
    path.as_bytes().ends_with(CONFLICT_SUFFIX.as_bytes())
}

/// Returns the path of a file on this machine, to be shown.
pub(super) fn path_of(local: &Path, path: &RelPath) -> PathBuf {
    if path.is_root() {
        return local.to_owned();
    }
    local.join(OsStr::from_bytes(path.as_bytes()))
}
