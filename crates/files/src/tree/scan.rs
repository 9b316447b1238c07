//! Looking at everything beneath a root.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Read as _;
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::{Root, RootKind, open_regular, write};
use crate::content::{Content, Hasher};
use crate::error::FilesError;
use crate::path::RelPath;

/// How much is read at once.
const PIECE: usize = 128 * 1024;

/// How much a scan may look at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// How many entries; more are an error.
    pub entries: usize,
    /// How many folders may lie in each other; deeper ones are skipped with a note.
    pub depth: usize,
    /// The largest file; larger ones are skipped with a note.
    pub file_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            entries: 100_000,
            depth: 64,
            file_bytes: 1024 * 1024 * 1024,
        }
    }
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File(Content),
    /// A folder.
    Folder,
    /// A symbolic link; nobody looked where it leads.
    Link,
    /// Something that was not looked at, and why.
    Skipped(String),
}

/// Something beneath a root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Where it is.
    pub path: RelPath,
    /// What it is.
    pub kind: EntryKind,
    /// Its permissions.
    pub mode: u32,
    /// When it was changed, in nanoseconds since 1970.
    pub mtime_ns: i64,
}

impl Entry {
    fn new(path: RelPath, kind: EntryKind, stat: &Stat) -> Self {
        let seconds = stat.st_mtime.saturating_mul(1_000_000_000);
        Self {
            path,
            kind,
            mode: stat.st_mode & 0o7777,
            mtime_ns: seconds.saturating_add(i64::try_from(stat.st_mtime_nsec).unwrap_or(0)),
        }
    }

    /// Returns the content of a regular file.
    pub const fn content(&self) -> Option<Content> {
        match self.kind {
            EntryKind::File(content) => Some(content),
            _ => None,
        }
    }
}

impl Root {
    /// Shows every entry beneath the root to `visit`, folders before what is in them, until it
    /// says stop. The root itself is an entry only where it is a single file.
    pub fn scan(
        &self,
        limits: &Limits,
        visit: &mut dyn FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<(), FilesError> {
        if self.kind() == RootKind::File {
            if let Some(entry) = self.look(&RelPath::root(), limits)? {
                let _ = visit(entry);
            }
            return Ok(());
        }
        let folder = self
            .beneath
            .open_folder(&self.folder, None)
            .map_err(|errno| self.fail(&RelPath::root(), errno))?;
        let mut scan = Scan {
            root: self,
            limits,
            left: limits.entries,
            visit,
        };
        scan.folder(&folder, &RelPath::root(), 0).map(|_| ())
    }

    /// Looks at one path; `None` where nothing is.
    pub fn look(&self, path: &RelPath, limits: &Limits) -> Result<Option<Entry>, FilesError> {
        let (folder, name) = match self.folder_of(path) {
            Err(FilesError::Missing { .. }) => return Ok(None),
            place => place?,
        };
        let found = match look_at(&folder, name, path.clone(), limits) {
            Err(Errno::NOENT) => return Ok(None),
            found => found.map_err(|errno| self.fail(path, errno))?,
        };
        Ok(Some(found))
    }
}

struct Scan<'a> {
    root: &'a Root,
    limits: &'a Limits,
    left: usize,
    visit: &'a mut dyn FnMut(Entry) -> ControlFlow<()>,
}

impl Scan<'_> {
    fn folder(
        &mut self,
        folder: &OwnedFd,
        path: &RelPath,
        depth: usize,
    ) -> Result<ControlFlow<()>, FilesError> {
        let names = self
            .names(folder)
            .map_err(|errno| self.root.fail(path, errno))?
            .ok_or_else(|| FilesError::TooMany {
                path: self.root.describe(&RelPath::root()),
                limit: self.limits.entries,
            })?;
        for name in names {
            let Ok(below) = path.join(name.as_bytes()) else {
                // Longer than any path may be, so nobody could ask for it.
                continue;
            };
            let entry = match look_at(folder, &name, below, self.limits) {
                // Gone since the folder was read.
                Err(Errno::NOENT) => continue,
                entry => entry.map_err(|errno| self.root.fail(path, errno))?,
            };
            if self.entry(folder, &name, entry, depth)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn entry(
        &mut self,
        folder: &OwnedFd,
        name: &OsStr,
        mut entry: Entry,
        depth: usize,
    ) -> Result<ControlFlow<()>, FilesError> {
        let mut below = None;
        if entry.kind == EntryKind::Folder {
            if depth >= self.limits.depth {
                entry.kind = EntryKind::Skipped("it lies too deep".to_owned());
            } else {
                match open_below(folder, name) {
                    Ok(opened) => below = Some((opened, entry.path.clone())),
                    Err(errno) => entry.kind = skipped(errno),
                }
            }
        }
        if (self.visit)(entry).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        match below {
            Some((opened, path)) => self.folder(&opened, &path, depth + 1),
            None => Ok(ControlFlow::Continue(())),
        }
    }

    /// Reads the names in a folder, in order; `None` when there are too many.
    fn names(&mut self, folder: &OwnedFd) -> Result<Option<Vec<OsString>>, Errno> {
        let mut names = Vec::new();
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name == b"." || name == b".." || write::is_temporary(name) {
                continue;
            }
            let Some(left) = self.left.checked_sub(1) else {
                return Ok(None);
            };
            self.left = left;
            names.push(OsStr::from_bytes(name).to_owned());
        }
        names.sort_unstable();
        Ok(Some(names))
    }
}

fn open_below(folder: &OwnedFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(folder, name, flags, Mode::empty())
}

/// Looks at one name of a folder. What cannot be read is an entry all the same.
fn look_at(folder: &OwnedFd, name: &OsStr, path: RelPath, limits: &Limits) -> Result<Entry, Errno> {
    let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => EntryKind::Folder,
        FileType::Symlink => EntryKind::Link,
        FileType::RegularFile => match read_content(folder, name, limits.file_bytes) {
            Ok(Some((content, stat))) => {
                return Ok(Entry::new(path, EntryKind::File(content), &stat));
            }
            Ok(None) => too_large(limits.file_bytes),
            Err(Errno::NOENT) => return Err(Errno::NOENT),
            Err(errno) => skipped(errno),
        },
        _ => EntryKind::Skipped("it is a device, a socket or a FIFO".to_owned()),
    };
    Ok(Entry::new(path, kind, &stat))
}

fn too_large(limit: u64) -> EntryKind {
    EntryKind::Skipped(format!("it is larger than {limit} bytes"))
}

fn skipped(errno: Errno) -> EntryKind {
    EntryKind::Skipped(std::io::Error::from(errno).to_string())
}

/// Hashes a file; `None` when it is larger than allowed.
fn read_content(
    folder: &OwnedFd,
    name: &OsStr,
    limit: u64,
) -> Result<Option<(Content, Stat)>, Errno> {
    let (file, stat) = open_regular(folder, name)?;
    if u64::try_from(stat.st_size).unwrap_or(0) > limit {
        return Ok(None);
    }
    let content =
        hash(&file, limit).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
    Ok(content.map(|content| (content, stat)))
}

fn hash(mut file: &File, limit: u64) -> std::io::Result<Option<Content>> {
    let mut hasher = Hasher::default();
    let mut buffer = vec![0_u8; PIECE];
    loop {
        let length = file.read(&mut buffer)?;
        if length == 0 {
            return Ok(Some(hasher.finish()));
        }
        hasher.update(buffer.get(..length).unwrap_or_default());
        if hasher.size() > limit {
            return Ok(None);
        }
    }
}
