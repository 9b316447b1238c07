//! Keeping large output on the place's disk.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use exoshell_redact::RedactStream;
use exoshell_wire::{RawBytes, SpillFile};

use crate::hidden::LazyRedactor;

/// How many spill files are kept.
const MAX_FILES: usize = 64;

/// How much all of them may hold; the oldest go first.
const MAX_TOTAL: u64 = 2 * 1024 * 1024 * 1024;

/// How long one is kept.
const MAX_AGE: Duration = Duration::from_secs(24 * 3600);

/// The output of one command, on disk once it is large, without its secrets.
#[derive(Debug)]
pub(crate) struct Spill {
    path: PathBuf,
    after: u64,
    max: u64,
    redactor: LazyRedactor,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// What came before the file was needed, in pieces of one stream each.
    head: Vec<(u8, Vec<u8>)>,
    /// One for each stream: a secret may be split in one while the other goes on.
    streams: BTreeMap<u8, RedactStream>,
    file: Option<File>,
    written: u64,
    /// How much came.
    raw: u64,
    /// How much would be in the file without limits.
    total: u64,
    /// Taken and given back, so that it is allocated once.
    out: Vec<u8>,
    fault: Option<String>,
}

impl Spill {
    /// Prepares to keep the output of a command; touches no disk yet.
    pub(crate) fn new(
        dir: &Path,
        id: &str,
        limits: exoshell_wire::Spill,
        redactor: LazyRedactor,
    ) -> Self {
        Self {
            path: dir.join(format!("{id}.log")),
            after: limits.after_bytes,
            max: limits.max_bytes,
            redactor,
            inner: Mutex::default(),
        }
    }

    /// Takes output of a stream in the order it was read.
    pub(crate) fn push(&self, stream: u8, bytes: &[u8]) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.raw += bytes.len() as u64;
        if inner.fault.is_some() {
            inner.total += bytes.len() as u64;
            return;
        }
        if inner.file.is_none() {
            match inner.head.last_mut() {
                Some((last, head)) if *last == stream => head.extend_from_slice(bytes),
                _ => inner.head.push((stream, bytes.to_vec())),
            }
            if inner.raw > self.after {
                self.open(&mut inner);
            }
            return;
        }
        self.keep(&mut inner, stream, bytes);
    }

    fn open(&self, inner: &mut Inner) {
        if let Some(dir) = self.path.parent() {
            make_room(dir);
        }
        let opened = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&self.path);
        match opened {
            Ok(file) => inner.file = Some(file),
            Err(error) => {
                inner.fault = Some(format!("`{}`: {error}", self.path.display()));
                inner.total = inner.raw;
                return;
            }
        }
        for (stream, head) in std::mem::take(&mut inner.head) {
            self.keep(inner, stream, &head);
        }
    }

    /// Writes what is certain to be no secret.
    fn keep(&self, inner: &mut Inner, stream: u8, bytes: &[u8]) {
        let mut out = std::mem::take(&mut inner.out);
        inner
            .streams
            .entry(stream)
            .or_insert_with(|| self.redactor.get().stream())
            .push_into(bytes, &mut out);
        self.write(inner, &out);
        out.clear();
        inner.out = out;
    }

    fn write(&self, inner: &mut Inner, bytes: &[u8]) {
        inner.total += bytes.len() as u64;
        let room = usize::try_from(self.max.saturating_sub(inner.written)).unwrap_or(usize::MAX);
        let piece = bytes.get(..room.min(bytes.len())).unwrap_or_default();
        let Some(file) = &mut inner.file else {
            return;
        };
        if inner.fault.is_some() {
            return;
        }
        match file.write_all(piece) {
            Ok(()) => inner.written += piece.len() as u64,
            Err(error) => {
                inner.written = file.metadata().map_or(inner.written, |m| m.len());
                inner.fault = Some(format!("writing stopped: {error}"));
            }
        }
    }

    /// Tells where the output is, if it was large enough to be kept.
    pub(crate) fn finish(&self) -> Option<SpillFile> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, mut stream) in std::mem::take(&mut inner.streams) {
            self.write(&mut inner, &stream.finish());
        }
        if inner.file.is_none() && inner.fault.is_none() {
            return None;
        }
        let incomplete = match &inner.fault {
            Some(fault) => Some(format!(
                "only the first {} of {} bytes are kept ({fault})",
                inner.written, inner.total
            )),
            None if inner.written < inner.total => Some(format!(
                "only the first {} of {} bytes are kept (the configured limit)",
                inner.written, inner.total
            )),
            None => None,
        };
        Some(SpillFile {
            path: RawBytes(self.path.as_os_str().as_encoded_bytes().to_vec()),
            bytes: inner.written,
            incomplete,
        })
    }
}

/// Deletes what is too old or too much, oldest first.
fn make_room(dir: &Path) {
    let Ok(entries) = fs::read_dir(dir) else {
        return;
    };
    let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
        .flatten()
        .filter_map(|entry| {
            let meta = entry.metadata().ok()?;
            Some((meta.modified().ok()?, meta.len(), entry.path()))
        })
        .collect();
    files.sort();
    let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
    let mut count = files.len();
    for (modified, size, path) in files {
        let old = modified.elapsed().is_ok_and(|age| age > MAX_AGE);
        if !old && total <= MAX_TOTAL && count < MAX_FILES {
            break;
        }
        // A file that is gone already has made its room.
        let _ = fs::remove_file(path);
        total -= size;
        count -= 1;
    }
}

#[cfg(test)]
#[path = "spill_tests.rs"]
mod tests;
