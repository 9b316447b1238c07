//! What host and guest say about files.
//!
//! A *root* is a folder or a single file of the place: absolute, or `~/…` beneath the home of the
//! guest's user. Paths are relative to it; the empty path is a root that is a single file. The
//! guest never leaves the root, whatever links lie in it.

use serde::{Deserialize, Serialize};

use crate::raw::RawBytes;

/// The capability of a guest that knows these requests.
pub const FILES: &str = "files";

/// Looks at what lies beneath a root: one [`FileEntry`] per line, as data on stream 1, then the
/// reply, a [`FilesScanned`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanFiles {
    /// The root.
    pub root: RawBytes,
    /// Only these paths, not everything; those that are not there are left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paths: Option<Vec<RawBytes>>,
    /// With more entries than this the request fails.
    pub max_entries: u64,
    /// Larger files are skipped.
    pub max_file_bytes: u64,
}

/// What an entry beneath a root is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FileKind {
    /// A regular file.
    File,
    /// A folder.
    Folder,
    /// A symbolic link; nobody looked where it leads.
    Link,
    /// Something that was not looked at.
    #[serde(other)]
    Skipped,
}

/// Something beneath a root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileEntry {
    /// Where it is.
    pub path: RawBytes,
    /// What it is.
    pub kind: FileKind,
    /// Its permissions.
    #[serde(default)]
    pub mode: u32,
    /// When it was changed, in nanoseconds since 1970.
    #[serde(default)]
    pub mtime_ns: i64,
    /// The size of a regular file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// The SHA-256 of a regular file, in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Why it was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// What a root is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileRoot {
    /// Nothing is there.
    Missing,
    /// A folder.
    Folder,
    /// A single file.
    File,
}

/// The reply to [`ScanFiles`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesScanned {
    /// What the root is.
    pub root: FileRoot,
    /// How many entries were sent.
    pub entries: u64,
}

/// Writes a file, whose bytes follow as data on stream 1, ended by FIN. It appears with its whole
/// content or not at all; folders on its way are made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PutFile {
    /// The root.
    pub root: RawBytes,
    /// Where the file is to be.
    pub path: RawBytes,
    /// Its permissions.
    pub mode: u32,
    /// How many bytes follow.
    pub size: u64,
    /// Their SHA-256, in hex.
    pub sha256: String,
}

/// Reads a file: its bytes come as data on stream 1, then the reply, a [`FileSent`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetFile {
    /// The root.
    pub root: RawBytes,
    /// Where the file is.
    pub path: RawBytes,
    /// A longer file makes the request fail.
    pub max_bytes: u64,
}

/// The reply to [`GetFile`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSent {
    /// How many bytes were sent.
    pub size: u64,
    /// Their SHA-256, in hex.
    pub sha256: String,
}

/// Removes a regular file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoveFile {
    /// The root.
    pub root: RawBytes,
    /// Where the file is.
    pub path: RawBytes,
}

/// The reply to [`RemoveFile`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRemoved {
    /// Whether there was one.
    pub existed: bool,
}
