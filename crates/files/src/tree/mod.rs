//! A root and everything beneath it.
//!
//! A root is opened once; everything else starts at its descriptor. Where the kernel has
//! `openat2` it guarantees that a path stays beneath; elsewhere each folder on the way is opened
//! by itself, with links refused, which comes to the same.

mod beneath;
mod scan;
mod write;

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tree_tests;

use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;

use crate::error::FilesError;
use crate::path::RelPath;
use beneath::Beneath;
pub use scan::{Entry, EntryKind, Limits};
pub use write::Draft;

/// What a root is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RootKind {
    /// A folder with everything in it.
    Folder,
    /// One file; its path beneath the root is empty.
    File,
}

/// A folder or a single file, opened once. Nothing outside of it is ever touched.
#[derive(Debug)]
pub struct Root {
    /// The folder, or the one a single file is in.
    folder: OwnedFd,
    /// The name of a single file.
    file: Option<OsString>,
    beneath: Beneath,
    /// Whether a file can be written before it has a name.
    nameless: bool,
    path: PathBuf,
}

impl Root {
    /// Opens a folder or a file that exists. The root's own path is trusted: links in it are
    /// followed.
    pub fn open(path: &Path) -> Result<Self, FilesError> {
        let fail = |error| FilesError::new(path.to_string_lossy(), error);
        // What a link stands for is the root, so that writing it does not replace the link.
        let real = path.canonicalize().map_err(fail)?;
        let stat = rustix::fs::stat(&real).map_err(|errno| fail(errno.into()))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => Self::at(&real, None, path),
            FileType::RegularFile => {
                let parent = real.parent().unwrap_or(Path::new("/"));
                Self::at(parent, real.file_name(), path)
            }
            _ => Err(FilesError::NotAFile {
                path: path.to_string_lossy().into_owned(),
            }),
        }
    }

    /// Opens a folder or a file, and makes the folders that are missing, closed to others.
    pub fn create(path: &Path, kind: RootKind) -> Result<Self, FilesError> {
        let found = match Self::open(path) {
            Err(FilesError::Missing { .. }) => None,
            found => Some(found?),
        };
        match (found, kind) {
            (Some(root), _) if root.kind() == kind => Ok(root),
            (Some(_), RootKind::Folder) => Err(FilesError::NotAFolder {
                path: path.to_string_lossy().into_owned(),
            }),
            (Some(_), RootKind::File) => Err(FilesError::NotAFile {
                path: path.to_string_lossy().into_owned(),
            }),
            (None, RootKind::Folder) => {
                make_folders(path)?;
                Self::at(path, None, path)
            }
            (None, RootKind::File) => {
                let parent = path.parent().unwrap_or(Path::new("/"));
                make_folders(parent)?;
                Self::at(parent, path.file_name(), path)
            }
        }
    }

    fn at(folder: &Path, file: Option<&OsStr>, path: &Path) -> Result<Self, FilesError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let folder = rustix::fs::open(folder, flags, Mode::empty())
            .map_err(|errno| FilesError::new(path.to_string_lossy(), errno))?;
        Ok(Self {
            beneath: Beneath::detect(&folder),
            // Giving a file its name later needs /proc.
            nameless: rustix::fs::access("/proc/self/fd", Access::EXISTS).is_ok(),
            folder,
            file: file.map(OsStr::to_owned),
            path: path.to_owned(),
        })
    }

    /// Does without `openat2` and without nameless files, as an old system has to.
    #[cfg(test)]
    pub(crate) const fn on_an_old_system(mut self) -> Self {
        self.beneath = Beneath::Walk;
        self.nameless = false;
        self
    }

    /// Tells what the root is.
    pub const fn kind(&self) -> RootKind {
        match self.file {
            None => RootKind::Folder,
            Some(_) => RootKind::File,
        }
    }

    /// Returns a path beneath the root for people.
    pub fn describe(&self, path: &RelPath) -> String {
        let root = self.path.to_string_lossy();
        if path.is_root() {
            return root.into_owned();
        }
        format!("{}/{}", root.trim_end_matches('/'), path.display())
    }

    pub(crate) fn fail(&self, path: &RelPath, error: impl Into<std::io::Error>) -> FilesError {
        FilesError::new(self.describe(path), error)
    }

    /// Opens the folder that a path is in. Returns it with the path's name in it.
    fn folder_of<'a>(&'a self, path: &'a RelPath) -> Result<(OwnedFd, &'a OsStr), FilesError> {
        let (parent, name) = self.place_of(path)?;
        let folder = self
            .beneath
            .open_folder(&self.folder, parent)
            .map_err(|errno| self.fail(path, errno))?;
        Ok((folder, name))
    }

    /// Returns the folder and the name that a path stands for.
    fn place_of<'a>(
        &'a self,
        path: &'a RelPath,
    ) -> Result<(Option<&'a Path>, &'a OsStr), FilesError> {
        match (&self.file, path.split()) {
            (Some(file), (None, None)) => Ok((None, file)),
            (None, (parent, Some(name))) => Ok((parent, name)),
            (Some(_), _) => Err(FilesError::NotAFolder {
                path: self.describe(path),
            }),
            (None, (_, None)) => Err(FilesError::NotAFile {
                path: self.describe(path),
            }),
        }
    }

    /// Opens a regular file for reading.
    pub fn open_file(&self, path: &RelPath) -> Result<File, FilesError> {
        let (folder, name) = self.folder_of(path)?;
        open_regular(&folder, name)
            .map(|(file, _)| file)
            .map_err(|errno| match errno {
                Errno::INVAL => FilesError::NotAFile {
                    path: self.describe(path),
                },
                errno => self.fail(path, errno),
            })
    }

    /// Removes a regular file. Returns whether there was one.
    pub fn remove(&self, path: &RelPath) -> Result<bool, FilesError> {
        let found = self.folder_of(path);
        let (folder, name) = match found {
            Err(FilesError::Missing { .. }) => return Ok(false),
            found => found?,
        };
        match kind_at(&folder, name) {
            Ok(FileType::RegularFile) => {}
            Err(Errno::NOENT) => return Ok(false),
            Ok(FileType::Symlink) => return Err(self.fail(path, Errno::LOOP)),
            Ok(_) => {
                return Err(FilesError::NotAFile {
                    path: self.describe(path),
                });
            }
            Err(errno) => return Err(self.fail(path, errno)),
        }
        match rustix::fs::unlinkat(&folder, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(self.fail(path, errno)),
        }
    }
}

fn make_folders(path: &Path) -> Result<(), FilesError> {
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|error| FilesError::new(path.to_string_lossy(), error))
}

/// Tells what a name in a folder stands for.
fn kind_at(folder: &OwnedFd, name: &OsStr) -> Result<FileType, Errno> {
    let stat = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(FileType::from_raw_mode(stat.st_mode))
}

/// Opens a regular file of a folder. Fails with `EINVAL` for anything else, without opening it
/// where that can be seen before: opening a device may do something.
fn open_regular(folder: &OwnedFd, name: &OsStr) -> Result<(File, Stat), Errno> {
    match kind_at(folder, name)? {
        FileType::RegularFile => {}
        FileType::Symlink => return Err(Errno::LOOP),
        _ => return Err(Errno::INVAL),
    }
    // It may have been swapped for a FIFO since: do not wait for a writer.
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(folder, name, flags, Mode::empty())?;
    let stat = rustix::fs::fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Errno::INVAL);
    }
    Ok((File::from(file), stat))
}
