//! Where the servers keep what they need.

use std::env;
use std::path::{Path, PathBuf};

use crate::workspace_root;

/// The folders of one workspace's servers.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// Data that is worth keeping between runs.
    pub(crate) root: PathBuf,
    /// Sockets and what engines mount. Their paths have short limits, so it is not below `root`.
    pub(crate) run: PathBuf,
    /// Tells this workspace from others on the same machine.
    pub(crate) tag: String,
}

impl Layout {
    /// Returns the folders of this workspace.
    pub(crate) fn of_workspace() -> Self {
        let target =
            env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
        Self::below(&workspace_root().join(target))
    }

    fn below(target: &Path) -> Self {
        let root = target.join("test-servers");
        let tag = format!("{:08x}", key(&[&root.to_string_lossy()]) >> 32);
        Self {
            run: env::temp_dir().join(format!("exoshell-test-{tag}")),
            root,
            tag,
        }
    }

    /// Returns a number from 0 to 255 that differs between most workspaces.
    pub(crate) fn number(&self) -> u8 {
        u8::from_str_radix(self.tag.get(..2).unwrap_or_default(), 16).unwrap_or_default()
    }

    /// Returns the file with the environment of the tests, written when all servers are up.
    pub(crate) fn environment(&self) -> PathBuf {
        self.root.join("environment")
    }

    /// Returns the file that says that a person wants the servers to stay.
    pub(crate) fn keep(&self) -> PathBuf {
        self.root.join("keep")
    }
}

/// Returns a number that changes when one of the texts does (FNV-1a).
pub(crate) fn key(texts: &[&str]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for text in texts {
        // A byte that no text has, so that the border between two texts counts.
        for byte in text.bytes().chain([0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_workspaces_share_nothing() {
        let one = Layout::below(Path::new("/a/target"));
        let other = Layout::below(Path::new("/b/target"));
        assert_ne!(one.run, other.run);
        assert_ne!(one.tag, other.tag);
        assert_eq!(one.tag.len(), 8);
    }

    #[test]
    fn a_key_sees_where_a_text_ends() {
        assert_ne!(key(&["ab", "c"]), key(&["a", "bc"]));
        assert_eq!(key(&["ab", "c"]), key(&["ab", "c"]));
    }

    #[test]
    fn a_socket_fits_into_the_limit_of_the_kernel() {
        let layout = Layout::below(Path::new(&format!("/{}", "long/".repeat(40))));
        assert!(layout.run.as_os_str().len() < 40, "{layout:?}");
    }
}
