//! Small files that host processes share.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

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

/// Writes beside and renames, so that a reader sees the old or the new content.
pub(crate) fn write<T: Serialize>(path: &Path, value: &T) -> Result<(), RuntimeError> {
    let temporary = path.with_extension(format!("new-{}", std::process::id()));
    let write = || {
        let mut file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)?;
        file.write_all(&serde_json::to_vec(value)?)?;
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
