//! Our program in front of the real `sudo`, for commands on a terminal.
//!
//! There sudo would read the terminal and never run an askpass program, unless `-A` tells it to.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

/// What a shell exits with when there is no such program.
const NOT_FOUND: i32 = 127;

/// Options of sudo that take a value.
const WITH_VALUE: &[u8] = b"ughpCrtTUDR";

/// Their long names.
const LONG_WITH_VALUE: &[&[u8]] = &[
    b"user",
    b"group",
    b"host",
    b"prompt",
    b"close-from",
    b"role",
    b"type",
    b"command-timeout",
    b"other-user",
    b"chdir",
    b"chroot",
];

/// Becomes the next `sudo` of the `PATH`; returns only when there is none.
pub(crate) fn run(arguments: Vec<OsString>) -> i32 {
    let (error, code) = match find() {
        Some(program) => {
            let askpass = (!decides_itself(&arguments)).then_some("-A");
            let mut command = Command::new(program);
            command.arg0(super::SHIM).args(askpass).args(arguments);
            (command.exec(), crate::FAILED)
        }
        None => (io::Error::other("command not found"), NOT_FOUND),
    };
    let text = format!("sudo: {error}\n");
    let _ = rustix::io::write(rustix::stdio::stderr(), text.as_bytes());
    code
}

/// Finds the first `sudo` that is not this program.
fn find() -> Option<PathBuf> {
    let own = fs::metadata("/proc/self/exe").ok()?;
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(super::SHIM))
        .find(|candidate| {
            fs::metadata(candidate).is_ok_and(|found| {
                found.is_file()
                    && found.permissions().mode() & 0o111 != 0
                    && (found.dev(), found.ino()) != (own.dev(), own.ino())
            })
        })
}

/// Tells whether the options say already where a password comes from, or that none does.
fn decides_itself(arguments: &[OsString]) -> bool {
    let mut arguments = arguments.iter().map(|argument| argument.as_bytes());
    while let Some(argument) = arguments.next() {
        if argument == b"--" {
            return false;
        }
        if let Some(long) = argument.strip_prefix(b"--") {
            if matches!(long, b"non-interactive" | b"stdin" | b"askpass") {
                return true;
            }
            if LONG_WITH_VALUE.contains(&long) {
                arguments.next();
            }
            continue;
        }
        let Some(letters) = argument.strip_prefix(b"-").filter(|rest| !rest.is_empty()) else {
            return false;
        };
        for (index, letter) in letters.iter().enumerate() {
            if b"nSA".contains(letter) {
                return true;
            }
            if WITH_VALUE.contains(letter) {
                if index + 1 == letters.len() {
                    arguments.next();
                }
                break;
            }
        }
    }
    false
}

/// Takes our folder out of a `PATH`.
pub(crate) fn without(path: &[u8], folder: &[u8]) -> Vec<u8> {
    let rest: Vec<&[u8]> = path
        .split(|byte| *byte == b':')
        .filter(|entry| *entry != folder)
        .collect();
    rest.join(&b':')
}

#[cfg(test)]
#[path = "shim_tests.rs"]
mod tests;
