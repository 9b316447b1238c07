//! Looking at the machine's processes.

use std::fs;
use std::path::Path;

/// A process that runs now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    pub(crate) name: String,
    pub(crate) command: String,
}

/// Tells whether a process exists and is not just a zombie.
pub(crate) fn alive(pid: u32) -> bool {
    stat(pid).is_some_and(|(state, _, _)| !matches!(state, 'Z' | 'X'))
}

/// Returns state, parent and name.
fn stat(pid: u32) -> Option<(char, u32, String)> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (head, tail) = text.rsplit_once(')')?;
    let name = head.split_once('(')?.1.to_owned();
    let mut fields = tail.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    Some((state, parent, name))
}

fn all() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn describe(pid: u32) -> Option<Process> {
    let (state, parent, name) = stat(pid)?;
    if matches!(state, 'Z' | 'X') {
        return None;
    }
    let raw = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let command = String::from_utf8_lossy(&raw).replace('\0', " ");
    Some(Process {
        pid,
        parent,
        name,
        command,
    })
}

fn contains(bytes: &[u8], word: &[u8]) -> bool {
    bytes.windows(word.len()).any(|window| window == word)
}

/// Lists every process whose command line, environment or directory names this, but not us.
pub(crate) fn processes_naming(word: &str) -> Vec<Process> {
    let word = word.as_bytes();
    let own = std::process::id();
    all()
        .filter(|pid| *pid != own)
        .filter(|pid| {
            let names = |file: &str| {
                fs::read(format!("/proc/{pid}/{file}")).is_ok_and(|bytes| contains(&bytes, word))
            };
            let stands = fs::read_link(format!("/proc/{pid}/cwd"))
                .is_ok_and(|path| contains(path.as_os_str().as_encoded_bytes(), word));
            stands || names("cmdline") || names("environ")
        })
        .filter_map(describe)
        // Between fork and exec a child of this process looks like it.
        .filter(|process| process.parent != own || process.name != own_name())
        .collect()
}

fn own_name() -> String {
    stat(std::process::id()).map_or_else(String::new, |(_, _, name)| name)
}

/// Lists the descendants of a process with this name.
pub(crate) fn children_named(parent: u32, name: &str) -> Vec<Process> {
    let list: Vec<Process> = all().filter_map(describe).collect();
    let mut family = vec![parent];
    let mut found: Vec<Process> = Vec::new();
    while let Some(pid) = family.pop() {
        for process in list.iter().filter(|process| process.parent == pid) {
            family.push(process.pid);
            if process.name == name {
                found.push(process.clone());
            }
        }
    }
    found
}

/// Counts a process's open descriptors.
pub(crate) fn descriptors(pid: u32) -> usize {
    fs::read_dir(Path::new("/proc").join(pid.to_string()).join("fd")).map_or(0, Iterator::count)
}
