//! What the configuration says about sync.

use std::path::{Path, PathBuf};

/// Which way files go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Into the place only, where they are read-only.
    In,
    /// Into the place, and back when they changed there.
    Both,
}

/// One file or folder that is synced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncEntry {
    /// Where it is on this machine.
    pub local: PathBuf,
    /// Where it is in the place: absolute, or `~/…` beneath the home there.
    pub remote: String,
    /// Which way it goes.
    pub direction: Direction,
}

/// An entry of `sync.paths` that makes no sense.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{entry}` cannot be synced: {why}; write `LOCAL:REMOTE`, `LOCAL:REMOTE:ro` or `LOCAL:REMOTE:rw`"
)]
pub struct BadEntry {
    /// The entry.
    pub entry: String,
    /// What is wrong with it.
    pub why: String,
}

impl SyncEntry {
    /// Reads `LOCAL:REMOTE[:ro|:rw]`. `~` in `LOCAL` is `home`, the user's home here.
    pub fn parse(text: &str, home: Option<&Path>) -> Result<Self, BadEntry> {
        let bad = |why: &str| BadEntry {
            entry: text.to_owned(),
            why: why.to_owned(),
        };
        let parts: Vec<&str> = text.split(':').collect();
        let (local, remote, direction) = match *parts.as_slice() {
            [local, remote] | [local, remote, "ro"] => (local, remote, Direction::In),
            [local, remote, "rw"] => (local, remote, Direction::Both),
            [_] => return Err(bad("it names only one side")),
            [_, _, mode] => {
                return Err(bad(&format!("`{mode}` is neither `ro` nor `rw`")));
            }
            _ => return Err(bad("it has too many colons, and a path cannot contain one")),
        };
        for (side, path) in [("local", local), ("remote", remote)] {
            check(path).map_err(|why| bad(&format!("the {side} path {why}")))?;
        }
        let local = match (local.strip_prefix("~/"), home) {
            (Some(rest), Some(home)) => home.join(rest.trim_start_matches('/')),
            (Some(_), None) => return Err(bad("the home of this user is not known")),
            (None, _) => PathBuf::from(local),
        };
        Ok(Self {
            local,
            remote: remote.trim_end_matches('/').to_owned(),
            direction,
        })
    }

    /// Reads all entries of `sync.paths`.
    pub fn parse_all<'a>(
        texts: impl IntoIterator<Item = &'a str>,
        home: Option<&Path>,
    ) -> Result<Vec<Self>, BadEntry> {
        let parse = |text| Self::parse(text, home);
        texts.into_iter().map(parse).collect()
    }
}

fn check(path: &str) -> Result<(), &'static str> {
    let named = path.trim_end_matches('/');
    if path.is_empty() {
        return Err("is empty");
    }
    if path.contains('\0') {
        return Err("contains NUL");
    }
    if !path.starts_with('/') && path != "~" && !path.starts_with("~/") {
        return Err("must begin with `/` or `~/`");
    }
    if named.is_empty() || named == "~" {
        return Err("is a whole home or disk; name what is needed in it");
    }
    if path.split('/').any(|name| name == "..") {
        return Err("contains `..`");
    }
    Ok(())
}

#[cfg(test)]
#[path = "entry_tests.rs"]
mod tests;
