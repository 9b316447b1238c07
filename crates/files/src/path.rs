//! Paths that cannot leave their root.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::error::FilesError;

/// The longest path; Linux takes no longer one.
const MAX_PATH: usize = 4095;

/// The longest name in a folder.
const MAX_NAME: usize = 255;

/// The place of a file beneath a root: names joined by `/`, any bytes but NUL, never absolute,
/// never `.` or `..`. Two different values name different files. The empty path is the root
/// itself, which is how the file of a single-file root is called.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelPath(Vec<u8>);

impl RelPath {
    /// Checks a path that came from anywhere.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, FilesError> {
        let bytes = bytes.into();
        let bad = |why| {
            Err(FilesError::BadPath {
                path: display(&bytes),
                why,
            })
        };
        if bytes.is_empty() {
            return Ok(Self(bytes));
        }
        if bytes.starts_with(b"/") {
            return bad("it is absolute");
        }
        if bytes.contains(&0) {
            return bad("it contains NUL");
        }
        if bytes.len() > MAX_PATH {
            return bad("it is too long");
        }
        for name in bytes.split(|byte| *byte == b'/') {
            match name {
                b"" => return bad("it contains an empty name"),
                b"." | b".." => return bad("it contains `.` or `..`"),
                _ if name.len() > MAX_NAME => return bad("it contains a name that is too long"),
                _ => {}
            }
        }
        Ok(Self(bytes))
    }

    /// Returns the path of the root itself.
    pub const fn root() -> Self {
        Self(Vec::new())
    }

    /// Tells whether it is the root itself.
    pub const fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the path of something in this folder.
    pub fn join(&self, name: &[u8]) -> Result<Self, FilesError> {
        let mut bytes = self.0.clone();
        if !bytes.is_empty() {
            bytes.push(b'/');
        }
        bytes.extend_from_slice(name);
        Self::new(bytes)
    }

    /// Returns the path with something added to its last name.
    pub fn with_suffix(&self, suffix: &str) -> Result<Self, FilesError> {
        Self::new([self.as_bytes(), suffix.as_bytes()].concat())
    }

    /// Returns the folder it is in, if that is not the root, and its name. The root has no name.
    pub(crate) fn split(&self) -> (Option<&Path>, Option<&OsStr>) {
        let path = Path::new(OsStr::from_bytes(&self.0));
        let parent = path.parent().filter(|p| !p.as_os_str().is_empty());
        (parent, path.file_name())
    }

    /// Returns the path for people.
    pub fn display(&self) -> String {
        display(&self.0)
    }
}

/// Makes foreign bytes safe to show.
fn display(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .chars()
        .take(MAX_PATH)
        .map(|c| if c.is_control() { '\u{fffd}' } else { c })
        .collect()
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
