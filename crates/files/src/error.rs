//! What can go wrong with a file.

use rustix::io::Errno;

/// Why a file could not be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilesError {
    /// The path could lead out of its root.
    #[error("`{path}` is not a path beneath a root: {why}")]
    BadPath {
        /// The path, for people.
        path: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Nothing is there.
    #[error("`{path}` does not exist")]
    Missing {
        /// The path, for people.
        path: String,
    },
    /// A symbolic link is in the way.
    #[error("`{path}` is or leads through a symbolic link, which is not followed")]
    Link {
        /// The path, for people.
        path: String,
    },
    /// Something else is where a folder is needed.
    #[error("`{path}` is not in a folder: something on its way is no folder")]
    NotAFolder {
        /// The path, for people.
        path: String,
    },
    /// Something else is where a regular file is needed.
    #[error("`{path}` is not a regular file")]
    NotAFile {
        /// The path, for people.
        path: String,
    },
    /// The disk or a quota is full.
    #[error("no space is left for `{path}`")]
    NoSpace {
        /// The path, for people.
        path: String,
    },
    /// The user or the file system may not do that.
    #[error("`{path}` cannot be used: {why}")]
    Denied {
        /// The path, for people.
        path: String,
        /// What the system said.
        why: String,
    },
    /// There is more than was asked for.
    #[error("there are more than {limit} entries in `{path}`")]
    TooMany {
        /// The root, for people.
        path: String,
        /// The limit.
        limit: usize,
    },
    /// What was written is not what was announced.
    #[error("`{path}` did not arrive as it was announced, so nothing was changed")]
    Damaged {
        /// The path, for people.
        path: String,
    },
    /// The system said something else.
    #[error("`{path}`: {source}")]
    Io {
        /// The path, for people.
        path: String,
        /// What it said.
        source: std::io::Error,
    },
}

impl FilesError {
    /// Builds the error that an answer of the system means for a path.
    pub(crate) fn new(path: impl Into<String>, error: impl Into<std::io::Error>) -> Self {
        let path = path.into();
        let source = error.into();
        let why = || source.to_string();
        match Errno::from_io_error(&source) {
            Some(Errno::NOENT) => Self::Missing { path },
            // A way that leaves the root is only possible by a link.
            Some(Errno::LOOP | Errno::XDEV) => Self::Link { path },
            Some(Errno::NOTDIR) => Self::NotAFolder { path },
            Some(Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => Self::NotAFile { path },
            Some(Errno::NOSPC | Errno::DQUOT) => Self::NoSpace { path },
            Some(Errno::ACCESS | Errno::PERM | Errno::ROFS) => Self::Denied { why: why(), path },
            _ => Self::Io { path, source },
        }
    }
}
