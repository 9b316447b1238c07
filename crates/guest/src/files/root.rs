//! Where a root is in this place.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use exoshell_wire::{Failure, FailureKind, RawBytes};

/// Returns the path of a root, with `~` as the home of this user.
pub(super) fn locate(root: &RawBytes) -> Result<PathBuf, Failure> {
    expand(&root.0, home)
}

fn expand(root: &[u8], home: impl Fn() -> PathBuf) -> Result<PathBuf, Failure> {
    let refuse = |why: &str| {
        let shown = String::from_utf8_lossy(root);
        let message = format!("`{}` is no root: {why}", shown.escape_debug());
        Err(Failure::new(FailureKind::BadRequest, message))
    };
    if root.contains(&0) {
        return refuse("it contains NUL");
    }
    if root.split(|byte| *byte == b'/').any(|name| name == b"..") {
        return refuse("it contains `..`");
    }
    match root {
        b"~" => Ok(home()),
        [b'~', b'/', rest @ ..] => Ok(home().join(relative(rest))),
        [b'/', ..] => Ok(PathBuf::from(OsStr::from_bytes(root))),
        _ => refuse("it must begin with `/` or `~/`"),
    }
}

/// `~//x` is `~/x`, not `/x`.
fn relative(rest: &[u8]) -> &Path {
    let start = rest.iter().take_while(|byte| **byte == b'/').count();
    Path::new(OsStr::from_bytes(rest.get(start..).unwrap_or_default()))
}

/// Returns the home of this user: `HOME`, or what the user list says where whoever started us
/// lent us no environment.
fn home() -> PathBuf {
    let list = std::fs::read("/etc/passwd").unwrap_or_default();
    let user = rustix::process::geteuid().as_raw();
    home_of(std::env::var_os("HOME"), &list, user)
}

fn home_of(variable: Option<OsString>, list: &[u8], user: u32) -> PathBuf {
    let said = variable.map(PathBuf::from);
    let listed = || {
        let user = user.to_string();
        let lines = list.split(|byte| *byte == b'\n');
        let mut fields = lines.map(|line| line.split(|byte| *byte == b':'));
        let home = fields.find_map(|mut fields| {
            let is_user = fields.nth(2)? == user.as_bytes();
            is_user.then(|| fields.nth(2)).flatten()
        })?;
        Some(PathBuf::from(OsString::from_vec(home.to_vec())))
    };
    let absolute = |path: &PathBuf| path.is_absolute();
    said.filter(absolute)
        .or_else(|| listed().filter(absolute))
        .unwrap_or_else(|| PathBuf::from("/"))
}

#[cfg(test)]
#[path = "root_tests.rs"]
mod tests;
