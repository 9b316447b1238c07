//! Small files that host processes share.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::RuntimeError;

/// Makes a folder that only this user can enter.
pub(crate) fn make_folder(dir: &Path) -> Result<(), RuntimeError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(failure("cannot create", dir))
}

/// How long others may hold a lock: all of them only read and write a small file.
const LOCK_LIMIT: Duration = Duration::from_secs(10);

/// How long to wait before a lock is tried again.
const LOCK_PAUSE: Duration = Duration::from_millis(2);

/// Takes a lock that other processes respect, for as long as the file is held.
pub(crate) fn lock(path: &Path) -> Result<File, RuntimeError> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)
        .map_err(failure("cannot open", path))?;
    let deadline = Instant::now() + LOCK_LIMIT;
    loop {
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(Errno::WOULDBLOCK) if Instant::now() < deadline => {
                std::thread::sleep(LOCK_PAUSE);
            }
            Err(errno) => return Err(failure("cannot lock", path)(errno.into())),
        }
    }
}

/// Writes beside and renames, so that a reader sees the old or the new content.
pub(crate) fn write<T: Serialize>(path: &Path, value: &T) -> Result<(), RuntimeError> {
    let bytes =
        serde_json::to_vec(value).map_err(|error| failure("cannot write", path)(error.into()))?;
    put(path, &bytes, 0o600)
}

/// Writes a file of the user's that may be a link, and keeps its permissions.
pub(crate) fn write_text(path: &Path, text: &str) -> Result<(), RuntimeError> {
    let path = fs::canonicalize(path).unwrap_or_else(|_new| path.to_owned());
    let mode = fs::metadata(&path).map_or(0o600, |known| known.permissions().mode() & 0o777);
    put(&path, text.as_bytes(), mode)
}

fn put(path: &Path, bytes: &[u8], mode: u32) -> Result<(), RuntimeError> {
    let temporary = path.with_extension(format!("new-{}", std::process::id()));
    let write = || {
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(mode)
            .open(&temporary)?;
        file.write_all(bytes)?;
        drop(file);
        fs::rename(&temporary, path)
    };
    write().map_err(|error| {
        let _ = fs::remove_file(&temporary);
        failure("cannot write", path)(error)
    })
}

/// Reads a file; a damaged one counts as none and is replaced by the next writer.
pub(crate) fn read<T: DeserializeOwned>(path: &Path) -> Option<T> {
    // A pipe in its place must not make us wait.
    if !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

/// Reads every file of a folder.
pub(crate) fn read_all<T: DeserializeOwned>(dir: &Path) -> Vec<T> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|e| e == "json"))
        .filter_map(|path| read(&path))
        .collect()
}

/// Names the file in an error.
pub(crate) fn failure(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> RuntimeError {
    let path = path.display().to_string();
    move |source| RuntimeError::State {
        action,
        path,
        source,
    }
}
