//! Who descends from whom, from `/proc`.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::PathBuf;

use crate::launch::ProcessEntry;

/// How much of a command line is worth telling.
const MAX_COMMAND: usize = 200;

/// A process that cannot be confused with a later one of the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The process id.
    pub pid: u32,
    /// The start time in clock ticks since boot.
    pub start_time: u64,
}

/// The fields of `/proc/<pid>/stat` that matter here.
#[derive(Debug, Clone, Copy)]
struct Stat {
    state: u8,
    parent: u32,
    start_time: u64,
}

impl Stat {
    const fn is_dead(self) -> bool {
        // A zombie is dead: nothing of it runs, it only waits to be counted.
        matches!(self.state, b'Z' | b'X' | b'x')
    }
}

fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The command name in parentheses may hold anything, also parentheses.
    let after = text.iter().rposition(|byte| *byte == b')')?;
    let rest = std::str::from_utf8(text.get(after + 1..)?).ok()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = *fields.next()?.as_bytes().first()?;
    let parent = fields.next()?.parse().ok()?;
    // Field 22 of the line; state was field 3 and parent field 4.
    let start_time = fields.nth(17)?.parse().ok()?;
    Some(Stat {
        state,
        parent,
        start_time,
    })
}

/// Tells whether the place has a usable `/proc`.
pub fn has_proc_fs() -> bool {
    stat(std::process::id()).is_some()
}

/// Returns the identity of a living process.
pub fn identity_of(pid: u32) -> Option<Identity> {
    stat(pid).filter(|s| !s.is_dead()).map(|s| Identity {
        pid,
        start_time: s.start_time,
    })
}

/// Tells whether exactly this process, not a later one of the same number, is alive.
pub fn is_alive(identity: Identity) -> bool {
    identity_of(identity.pid) == Some(identity)
}

/// Returns the living descendants of a process, in no order. Zombies do not count.
pub(crate) fn descendants(root: u32) -> Vec<Identity> {
    let mut found = Vec::new();
    let mut seen = HashSet::from([root]);
    let mut queue = vec![root];
    let mut table = None;
    while let Some(parent) = queue.pop() {
        for child in children(parent, &mut table) {
            if !seen.insert(child) {
                continue;
            }
            queue.push(child);
            if let Some(identity) = identity_of(child) {
                found.push(identity);
            }
        }
    }
    found
}

/// Returns the direct children of a process.
pub fn children_of(parent: u32) -> Vec<u32> {
    children(parent, &mut None)
}

/// Returns the direct children, by the kernel's own list where it keeps one, else by reading
/// every process's parent once.
pub(crate) fn children(parent: u32, table: &mut Option<HashMap<u32, Vec<u32>>>) -> Vec<u32> {
    if table.is_none() {
        if let Some(children) = listed_children(parent) {
            return children;
        }
        *table = Some(parent_table());
    }
    table
        .as_ref()
        .and_then(|table| table.get(&parent).cloned())
        .unwrap_or_default()
}

fn listed_children(parent: u32) -> Option<Vec<u32>> {
    // Children belong to the thread that forked them.
    let threads = match fs::read_dir(format!("/proc/{parent}/task")) {
        Ok(threads) => threads,
        // A process that ended has no children any more; they were handed on.
        Err(_) if has_children_files() => return Some(Vec::new()),
        Err(_) => return None,
    };
    let mut all = Vec::new();
    for thread in threads.flatten() {
        let path: PathBuf = thread.path().join("children");
        let Ok(text) = fs::read_to_string(path) else {
            if has_children_files() {
                continue;
            }
            return None;
        };
        all.extend(
            text.split_ascii_whitespace()
                .filter_map(|p| p.parse::<u32>().ok()),
        );
    }
    Some(all)
}

fn has_children_files() -> bool {
    fs::exists("/proc/thread-self/children").unwrap_or(false)
}

fn parent_table() -> HashMap<u32, Vec<u32>> {
    let mut table: HashMap<u32, Vec<u32>> = HashMap::new();
    let Ok(entries) = fs::read_dir("/proc") else {
        return table;
    };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|n| n.parse::<u32>().ok()) else {
            continue;
        };
        if let Some(stat) = stat(pid) {
            table.entry(stat.parent).or_default().push(pid);
        }
    }
    table
}

/// Describes a process for people.
pub(crate) fn describe(identity: Identity) -> ProcessEntry {
    let mut command = fs::read(format!("/proc/{}/cmdline", identity.pid)).unwrap_or_default();
    while command.last() == Some(&0) {
        command.pop();
    }
    if command.is_empty() {
        command = fs::read(format!("/proc/{}/comm", identity.pid)).unwrap_or_default();
        command.retain(|byte| *byte != b'\n');
    }
    command.truncate(MAX_COMMAND);
    for byte in &mut command {
        if *byte == 0 {
            *byte = b' ';
        }
    }
    ProcessEntry {
        pid: identity.pid,
        start_time: identity.start_time,
        command,
    }
}
