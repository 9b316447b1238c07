//! The place's side of an entry. Nothing it says is believed without a look.

use std::collections::{BTreeMap, BTreeSet};

use exoshell_files::{Content, RelPath};
use exoshell_place::Link;
use exoshell_wire::{FileEntry, FileKind, FileRoot, RawBytes, ScanFiles};

use super::{SyncEntry, SyncError, SyncLimits, readable};

/// How many bytes of paths one request asks about. A byte may take six in JSON.
const PATHS_PER_REQUEST: usize = 128 * 1024;

/// What lies at a path of the place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RemoteKind {
    File { content: Content, mode: u32 },
    Folder,
    Other(String),
}

/// What lies beneath a remote root.
#[derive(Debug)]
pub(super) struct RemoteFiles {
    pub(super) root: FileRoot,
    pub(super) files: BTreeMap<RelPath, RemoteKind>,
}

/// Looks at everything beneath a remote root.
pub(super) async fn scan(
    link: &Link,
    entry: &SyncEntry,
    limits: &SyncLimits,
) -> Result<RemoteFiles, SyncError> {
    let (found, scanned) = link.scan_files(request(entry, limits, None)).await?;
    let mut files = BTreeMap::new();
    for found in found {
        let (path, kind) = checked(entry, limits, found)?;
        if path.is_root() != (scanned.root == FileRoot::File) {
            return Err(forbidden(entry, "an entry that does not fit its root"));
        }
        if files.insert(path, kind).is_some() {
            return Err(forbidden(entry, "the same path twice"));
        }
    }
    Ok(RemoteFiles {
        root: scanned.root,
        files,
    })
}

/// Looks at some paths beneath a remote root. Those where nothing is are left out.
pub(super) async fn look(
    link: &Link,
    entry: &SyncEntry,
    limits: &SyncLimits,
    paths: impl Iterator<Item = &RelPath>,
) -> Result<BTreeMap<RelPath, RemoteKind>, SyncError> {
    let mut files = BTreeMap::new();
    for batch in batches(paths) {
        let asked = batch.iter().map(|path| RawBytes(path.as_bytes().to_vec()));
        let request = request(entry, limits, Some(asked.collect()));
        let (found, _) = link.scan_files(request).await?;
        for found in found {
            let (path, kind) = checked(entry, limits, found)?;
            if !batch.contains(&&path) {
                return Err(forbidden(entry, "a path that nobody asked for"));
            }
            files.insert(path, kind);
        }
    }
    Ok(files)
}

fn batches<'a>(paths: impl Iterator<Item = &'a RelPath>) -> Vec<BTreeSet<&'a RelPath>> {
    let mut batches = vec![BTreeSet::new()];
    let mut bytes = 0;
    for path in paths {
        // The comma and quotes of each path count, too.
        bytes += path.as_bytes().len() + 8;
        if bytes > PATHS_PER_REQUEST {
            bytes = path.as_bytes().len() + 8;
            batches.push(BTreeSet::new());
        }
        if let Some(batch) = batches.last_mut() {
            batch.insert(path);
        }
    }
    batches.retain(|batch| !batch.is_empty());
    batches
}

fn request(entry: &SyncEntry, limits: &SyncLimits, paths: Option<Vec<RawBytes>>) -> ScanFiles {
    ScanFiles {
        root: entry.remote.as_str().into(),
        paths,
        max_entries: limits.entries as u64,
        max_file_bytes: limits.file_bytes,
    }
}

/// Checks what a place says of one file.
fn checked(
    entry: &SyncEntry,
    limits: &SyncLimits,
    found: FileEntry,
) -> Result<(RelPath, RemoteKind), SyncError> {
    let path = RelPath::new(found.path.0).map_err(|error| forbidden(entry, &error.to_string()))?;
    let kind = match found.kind {
        FileKind::File => {
            let digest = found.sha256.and_then(|text| text.parse().ok());
            let (Some(digest), Some(size)) = (digest, found.size) else {
                return Err(forbidden(entry, "a file without a size or hash"));
            };
            if size > limits.file_bytes {
                return Err(forbidden(entry, "a file that is larger than was asked for"));
            }
            RemoteKind::File {
                content: Content { size, digest },
                mode: found.mode,
            }
        }
        FileKind::Folder => RemoteKind::Folder,
        FileKind::Link => {
            RemoteKind::Other("it is a symbolic link in the place, and none is followed".to_owned())
        }
        _ => RemoteKind::Other(readable(found.why.as_deref().unwrap_or("unknown"))),
    };
    Ok((path, kind))
}

/// Builds the error for a place that breaks the rules.
pub(super) fn forbidden(entry: &SyncEntry, why: &str) -> SyncError {
    SyncError::Forbidden {
        root: entry.remote.clone(),
        why: readable(why),
    }
}
