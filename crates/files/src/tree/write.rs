//! Writing a file so that it appears at once or not at all.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::io::Errno;

use super::{Root, kind_at};
use crate::content::{Content, Hasher};
use crate::error::FilesError;
use crate::path::RelPath;

/// How the names of unfinished files begin and end.
const TEMPORARY: (&[u8], &[u8]) = (b".exoshell-", b".tmp");

/// How many digits are between them.
const DIGITS: usize = 32;

/// Tells whether a name is one of an unfinished file.
pub(super) fn is_temporary(name: &[u8]) -> bool {
    let (head, tail) = TEMPORARY;
    name.len() == head.len() + DIGITS + tail.len() && name.starts_with(head) && name.ends_with(tail)
}

fn temporary() -> Result<OsString, Errno> {
    let mut bytes = [0_u8; 16];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    let digits = format!("{:032x}", u128::from_le_bytes(bytes));
    let (head, tail) = TEMPORARY;
    let name = [head, digits.as_bytes(), tail].concat();
    Ok(OsStr::from_bytes(&name).to_owned())
}

/// A file that is being written. Dropping it leaves nothing behind.
#[derive(Debug)]
pub struct Draft {
    folder: OwnedFd,
    name: OsString,
    file: File,
    /// Its name until it is finished, if it has one.
    temporary: Option<OsString>,
    hasher: Hasher,
    mode: u32,
    path: String,
}

impl Root {
    /// Starts to write a file. Folders on its way are made, closed to others; nothing else
    /// changes before [`Draft::commit`].
    ///
    /// Only the permissions of `mode` count, never set-user-id and its like.
    pub fn draft(&self, path: &RelPath, mode: u32) -> Result<Draft, FilesError> {
        let (parent, name) = self.place_of(path)?;
        let folder = self
            .beneath
            .make_folder(&self.folder, parent)
            .map_err(|errno| self.fail(path, errno))?;
        check_target(&folder, name, || self.describe(path))?;
        let (file, temporary) =
            create(&folder, self.nameless).map_err(|errno| self.fail(path, errno))?;
        Ok(Draft {
            folder,
            name: name.to_owned(),
            file: File::from(file),
            temporary,
            hasher: Hasher::default(),
            mode: mode & 0o777,
            path: self.describe(path),
        })
    }
}

/// Only a regular file is replaced.
fn check_target(
    folder: &OwnedFd,
    name: &OsStr,
    path: impl Fn() -> String,
) -> Result<(), FilesError> {
    match kind_at(folder, name) {
        Ok(FileType::RegularFile) | Err(Errno::NOENT) => Ok(()),
        Ok(FileType::Symlink) => Err(FilesError::Link { path: path() }),
        Ok(_) => Err(FilesError::NotAFile { path: path() }),
        Err(errno) => Err(FilesError::new(path(), errno)),
    }
}

/// Makes a file that nobody sees yet: without a name where that is possible, so that even a
/// killed program leaves nothing behind.
fn create(folder: &OwnedFd, nameless: bool) -> Result<(OwnedFd, Option<OsString>), Errno> {
    let mode = Mode::RUSR | Mode::WUSR;
    let flags = OFlags::WRONLY | OFlags::CLOEXEC;
    if nameless && let Ok(file) = rustix::fs::openat(folder, c".", flags | OFlags::TMPFILE, mode) {
        return Ok((file, None));
    }
    let name = temporary()?;
    let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
    let file = rustix::fs::openat(folder, &name, flags, mode)?;
    Ok((file, Some(name)))
}

impl Draft {
    /// Adds bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), FilesError> {
        self.file
            .write_all(bytes)
            .map_err(|error| FilesError::new(self.path.clone(), error))?;
        self.hasher.update(bytes);
        Ok(())
    }

    /// Returns how much was written.
    pub const fn size(&self) -> u64 {
        self.hasher.size()
    }

    /// Puts the file in its place, on disk, unless it is not what was expected.
    pub fn commit(mut self, expected: Option<Content>) -> Result<Content, FilesError> {
        let content = std::mem::take(&mut self.hasher).finish();
        if expected.is_some_and(|expected| expected != content) {
            return Err(FilesError::Damaged {
                path: self.path.clone(),
            });
        }
        self.place()?;
        Ok(content)
    }

    fn place(&mut self) -> Result<(), FilesError> {
        let path = self.path.clone();
        let fail = |errno: Errno| FilesError::new(path.clone(), errno);
        rustix::fs::fchmod(&self.file, Mode::from_raw_mode(self.mode)).map_err(fail)?;
        self.file
            .sync_all()
            .map_err(|error| FilesError::new(path.clone(), error))?;
        let name = match &self.temporary {
            Some(name) => name.clone(),
            None => self.name_it().map_err(fail)?,
        };
        // Looked at again, as late as possible: a link is not followed by a rename, but it is
        // not ours to replace.
        check_target(&self.folder, &self.name, || path.clone())?;
        rustix::fs::renameat(&self.folder, &name, &self.folder, &self.name).map_err(fail)?;
        self.temporary = None;
        Ok(())
    }

    /// Gives a nameless file a temporary name.
    fn name_it(&mut self) -> Result<OsString, Errno> {
        let name = temporary()?;
        let own = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        rustix::fs::linkat(CWD, own, &self.folder, &name, AtFlags::SYMLINK_FOLLOW)?;
        self.temporary = Some(name.clone());
        Ok(name)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(name) = &self.temporary {
            // What cannot be removed is no file of the tree: a scan does not see it.
            let _ = rustix::fs::unlinkat(&self.folder, name, AtFlags::empty());
        }
    }
}
