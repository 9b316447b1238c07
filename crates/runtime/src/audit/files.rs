//! The files of the audit's folder.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use super::AuditError;
use super::head::{self, Head};
use super::lock::Lock;
use super::record::{self, Line};

pub(super) const CURRENT: &str = "audit.jsonl";

/// How much of a file's end is read to find its last record, which is shorter.
const TAIL: u64 = 256 * 1024;

/// Returns the name of a file that was put aside, by the number of its first record.
pub(super) fn old_name(first: u64) -> String {
    format!("audit-{first:020}.jsonl")
}

/// Lists the files that were put aside, the oldest first, with the numbers of their first records.
pub(super) fn old(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let number = name
            .and_then(|name| name.strip_prefix("audit-")?.strip_suffix(".jsonl"))
            .and_then(|digits| digits.parse().ok());
        if let Some(number) = number {
            files.push((number, path));
        }
    }
    files.sort_unstable();
    Ok(files)
}

/// Opens a file of ours, never through a link.
pub(super) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options
        .read(true)
        .mode(0o600)
        .custom_flags(rustix::fs::OFlags::NOFOLLOW.bits().cast_signed());
    options
}

/// What the end of a file holds.
#[derive(Debug, Default)]
pub(super) struct Tail {
    /// The last record whose bytes are whole.
    pub(super) last: Option<Line>,
    /// Bytes after the last end of a line.
    pub(super) torn: Vec<u8>,
}

/// Reads the end of a file.
pub(super) fn tail(file: &mut File, length: u64) -> io::Result<Tail> {
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
    let mut bytes = Vec::new();
    file.take(TAIL).read_to_end(&mut bytes)?;
    let whole = memchr::memrchr(b'\n', &bytes).map_or(0, |at| at + 1);
    let torn = bytes.split_off(whole);
    let last = bytes
        .split(|byte| *byte == b'\n')
        .rev()
        .find_map(record::read);
    Ok(Tail { last, torn })
}

/// The files as they were at one moment.
#[derive(Debug)]
pub(super) struct Snapshot {
    /// Path, open file and length; the oldest first.
    files: Vec<(PathBuf, File, u64)>,
    pub(super) head: Head,
}

impl Snapshot {
    /// Opens all files; later records are not part of it.
    pub(super) fn take(folder: &Path) -> Result<Self, AuditError> {
        let failed = |error| AuditError::new("read", folder, error);
        if !folder.exists() {
            return Ok(Self {
                files: Vec::new(),
                head: Head::Missing,
            });
        }
        let _turn = Lock::open(folder).and_then(Lock::wait).map_err(failed)?;
        let mut files = Vec::new();
        let old = old(folder)
            .map_err(failed)?
            .into_iter()
            .map(|(_, path)| path);
        for path in old.chain([folder.join(CURRENT)]) {
            match options().open(&path) {
                Ok(file) => {
                    let length = file.metadata().map_err(failed)?.len();
                    files.push((path, file, length));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(AuditError::new("read", &path, error)),
            }
        }
        let head = head::read(folder).map_err(failed)?;
        Ok(Self { files, head })
    }

    pub(super) fn len(&self) -> usize {
        self.files.len()
    }

    /// Goes through all lines.
    pub(super) fn lines(self) -> Lines {
        Lines {
            files: self.files.into_iter(),
            current: None,
        }
    }
}

/// A line of a file, without its end.
#[derive(Debug)]
pub(super) struct RawLine {
    pub(super) path: PathBuf,
    /// Its number in the file, from 1 on.
    pub(super) number: u64,
    pub(super) bytes: Vec<u8>,
    /// Whether it has an end.
    pub(super) whole: bool,
}

/// Goes through the lines of several files.
#[derive(Debug)]
pub(super) struct Lines {
    files: std::vec::IntoIter<(PathBuf, File, u64)>,
    current: Option<(PathBuf, BufReader<io::Take<File>>, u64)>,
}

impl Iterator for Lines {
    type Item = Result<RawLine, AuditError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (path, reader, number) = match &mut self.current {
                Some(current) => current,
                none => {
                    let (path, file, length) = self.files.next()?;
                    none.insert((path, BufReader::new(file.take(length)), 0))
                }
            };
            let mut bytes = Vec::new();
            match reader.read_until(b'\n', &mut bytes) {
                Ok(0) => self.current = None,
                Ok(_) => {
                    *number += 1;
                    let whole = bytes.pop_if(|byte| *byte == b'\n').is_some();
                    return Some(Ok(RawLine {
                        path: path.clone(),
                        number: *number,
                        bytes,
                        whole,
                    }));
                }
                Err(error) => {
                    let error = AuditError::new("read", path, error);
                    self.current = None;
                    return Some(Err(error));
                }
            }
        }
    }
}
