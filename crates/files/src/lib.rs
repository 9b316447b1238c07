//! Files of one tree, read and written without ever leaving it.
//!
//! The guest uses this crate inside a place, the host for the files that it syncs. Both treat
//! the tree as hostile: names are bytes, links are seen and never followed, and what is written
//! appears at once or not at all.
//!
//! ```
//! use exoshell_files::{RelPath, Root, RootKind};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! let root = Root::create(&folder.path().join("notes"), RootKind::Folder)?;
//! let mut draft = root.draft(&RelPath::new("2026/today.txt")?, 0o600)?;
//! draft.write(b"rain")?;
//! draft.commit(None)?;
//! assert!(RelPath::new("../elsewhere").is_err());
//! # Ok(())
//! # }
//! ```

mod content;
mod error;
mod path;
pub mod tree;

pub use content::{Content, Digest, Hasher};
pub use error::FilesError;
pub use path::RelPath;
pub use tree::{Draft, Entry, EntryKind, Limits, Root, RootKind};
