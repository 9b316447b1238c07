//! Whether this program was itself started by a command in a guest.

use std::fs;

use rustix::process::{Resource, getrlimit};

/// How many parents are looked at.
const MAX_PARENTS: usize = 256;

/// The guest's name, as the kernel shows it.
const GUEST: &str = "exoshell-guest";

/// Tells whether this process descends from a guest: then a model may have started it, and nothing
/// it says may loosen anything. Commands cannot leave their guest's tree, because each hangs under
/// a subreaper.
///
/// A guest also lowers a limit that the kernel keeps but does not use (the number of file locks) for
/// everything it starts. Who has it lowered cannot raise it without root's rights, whatever becomes
/// of its parents and its view of the processes.
pub fn inside_guest() -> bool {
    if getrlimit(Resource::Locks).maximum.is_some() {
        return true;
    }
    let mut pid = std::process::id();
    for _ in 0..MAX_PARENTS {
        let Some(parent) = parent(pid) else {
            // Whoever hides the processes from us has a reason.
            return true;
        };
        if parent == 0 {
            return false;
        }
        if is_guest(parent) {
            return true;
        }
        pid = parent;
    }
    // Such a chain is nobody's honest work.
    true
}

/// Returns the parent of a process.
fn parent(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("PPid:"))?
        .trim()
        .parse()
        .ok()
}

fn is_guest(pid: u32) -> bool {
    let named = fs::read_to_string(format!("/proc/{pid}/comm"));
    if named.is_ok_and(|name| name.trim_end() == GUEST) {
        return true;
    }
    fs::read_link(format!("/proc/{pid}/exe")).is_ok_and(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name == GUEST || name == format!("{GUEST} (deleted)")
    })
}
