//! A part of this machine with processes and mounts of its own, entered with `nsenter`.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::machine::{Namespace, Process, first_child, kill};
use crate::wait_until;

/// A namespace for processes and mounts. Its first process is an init that only reaps; when that
/// one ends, everything in the room does.
#[derive(Debug)]
pub struct Room {
    outside: Child,
    first: u32,
    namespace: Option<Namespace>,
}

impl Room {
    /// Makes a room that shares the files of this machine.
    #[track_caller]
    pub fn new() -> Self {
        let outside = Command::new("unshare")
            .args(["--fork", "--pid", "--mount", "--mount-proc", "--kill-child"])
            .args(["catatonit", "-P"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut room = Self {
            outside,
            first: 0,
            namespace: None,
        };
        let there = wait_until(Duration::from_secs(10), || {
            room.first = first_child(room.outside.id()).unwrap_or(0);
            room.namespace = Namespace::of("pid", room.first);
            room.processes()
                .iter()
                .any(|process| process.command.starts_with("catatonit"))
        });
        assert!(
            there,
            "no room: `unshare` and `catatonit` as root are needed"
        );
        room
    }

    /// Returns the words that start a program in the room.
    pub fn launcher(&self) -> Vec<String> {
        let first = self.first.to_string();
        ["nsenter", "--target", &first, "--mount", "--pid", "--"]
            .map(str::to_owned)
            .to_vec()
    }

    /// Lists what runs in the room, its init included.
    pub fn processes(&self) -> Vec<Process> {
        self.namespace
            .as_ref()
            .map(Namespace::processes)
            .unwrap_or_default()
    }

    /// Lists what runs in the room besides its init.
    pub fn visitors(&self) -> Vec<Process> {
        let mut all = self.processes();
        all.retain(|process| process.pid != self.first);
        all
    }

    /// Ends everything in the room, as the loss of a machine does.
    pub fn destroy(&mut self) {
        let mut first = self.processes();
        first.retain(|process| process.pid == self.first);
        kill(&first);
        self.namespace = None;
        // `unshare` has to reap its child, and then ends.
        wait_until(Duration::from_secs(5), || {
            !matches!(self.outside.try_wait(), Ok(None))
        });
    }
}

impl Default for Room {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.destroy();
        // Usually it ended with its child.
        let _ = self.outside.kill();
        let _ = self.outside.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_room_has_its_own_processes_and_they_end_with_it() {
        let mut room = Room::new();
        assert_eq!(room.visitors(), []);
        let launcher = room.launcher();
        let output = Command::new(&launcher[0])
            .args(&launcher[1..])
            .args([
                "sh",
                "-c",
                "setsid sleep 600 >/dev/null 2>&1 & ls -d /proc/1/fd; cat /proc/1/comm",
            ])
            .output()
            .unwrap();
        assert_eq!(
            String::from_utf8_lossy(&output.stdout),
            "/proc/1/fd\ncatatonit\n"
        );
        let left = room.visitors();
        assert_eq!(left.len(), 1, "{left:?}");
        room.destroy();
        assert_eq!(room.visitors(), []);
    }
}
