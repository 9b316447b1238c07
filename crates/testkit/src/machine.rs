//! This machine's processes and programs.

use std::fs::{self, File};
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use crate::wait_until;

/// A process that runs now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its id, as this machine counts.
    pub pid: u32,
    /// Its words, with a space between two.
    pub command: String,
}

/// A namespace that is not this machine's own, held so that its number is nobody else's.
#[derive(Debug)]
pub(crate) struct Namespace {
    kind: &'static str,
    link: PathBuf,
    _held: File,
}

impl Namespace {
    /// Returns the namespace that a process is in; `kind` is a name of `/proc/PID/ns`. There is
    /// none for a process that is gone, nor for one that is (still) where we are: nothing that a
    /// test does may ever mean all of the machine.
    pub(crate) fn of(kind: &'static str, pid: u32) -> Option<Self> {
        let held = File::open(format!("/proc/{pid}/ns/{kind}")).ok()?;
        // By what is held: a process id may be another's in the next moment.
        let link = fs::read_link(format!("/proc/self/fd/{}", held.as_raw_fd())).ok()?;
        let own = fs::read_link(format!("/proc/self/ns/{kind}")).ok()?;
        // The machine's first process does not let everybody look.
        let first = fs::read_link(format!("/proc/1/ns/{kind}")).ok();
        (link != own && Some(&link) != first.as_ref()).then_some(Self {
            kind,
            link,
            _held: held,
        })
    }

    /// Lists what runs in it; a zombie is dead.
    pub(crate) fn processes(&self) -> Vec<Process> {
        let is_here = |pid: &u32| {
            fs::read_link(format!("/proc/{pid}/ns/{}", self.kind))
                .is_ok_and(|link| link == self.link)
        };
        all().filter(is_here).filter_map(describe).collect()
    }
}

fn all() -> impl Iterator<Item = u32> {
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

fn describe(pid: u32) -> Option<Process> {
    let raw = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    // A zombie has no words.
    (!raw.is_empty()).then(|| Process {
        pid,
        command: String::from_utf8_lossy(&raw)
            .replace('\0', " ")
            .trim_end()
            .to_owned(),
    })
}

/// Ends processes by force and waits until they are gone.
pub(crate) fn kill(processes: &[Process]) {
    for process in processes {
        if let Some(pid) = Pid::from_raw(process.pid.cast_signed()) {
            // One that is gone already is what was wanted.
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    wait_until(Duration::from_secs(5), || {
        processes
            .iter()
            .all(|process| describe(process.pid).is_none())
    });
}

/// Runs a program to its end, asserts that it did well, and returns what it printed.
#[track_caller]
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.stdin(Stdio::null()).output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Runs a program whose failure is none.
pub(crate) fn attempt(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Returns a path as text.
#[track_caller]
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Returns the first child of a process, once there is one.
pub(crate) fn first_child(parent: u32) -> Option<u32> {
    let list = PathBuf::from(format!("/proc/{parent}/task/{parent}/children"));
    fs::read_to_string(list)
        .ok()?
        .split_whitespace()
        .next()?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processes_of_this_machine_are_nobodys_to_end() {
        for kind in ["mnt", "pid"] {
            for pid in [std::process::id(), 1, 0] {
                assert!(Namespace::of(kind, pid).is_none(), "{kind} of {pid}");
            }
        }
    }
}
