//! Who asks for a password.

use exoshell_process::{Identity, identity_of};
use rustix::process::geteuid;
use tokio::net::UnixStream;

/// How far up the processes above a sudo are looked at.
const MAX_DEPTH: usize = 128;

/// The sudo behind a question.
#[derive(Debug)]
pub(super) struct Asker {
    /// The process that asked for the password.
    pub(super) sudo: Identity,
    /// The processes above it, the nearest first.
    pub(super) ancestors: Vec<u32>,
}

impl Asker {
    /// Finds the sudo that started whoever is at the other end of a socket.
    ///
    /// It must be a process called `sudo` that has root's rights but is still this user's: that is
    /// what sudo is while it asks, and what no command can make of its own processes.
    pub(super) fn prove(socket: &UnixStream) -> Option<Self> {
        let peer = socket.peer_cred().ok()?;
        let own = geteuid().as_raw();
        if peer.uid() != own {
            return None;
        }
        let program = Status::of(u32::try_from(peer.pid()?).ok()?)?;
        let sudo = identity_of(program.parent)?;
        let status = Status::of(sudo.pid)?;
        if status.name != "sudo" || status.real_uid != own || status.effective_uid != 0 {
            return None;
        }
        let mut ancestors = vec![status.parent];
        while let Some(parent) = ancestors.last().copied().filter(|pid| *pid > 1) {
            if ancestors.len() >= MAX_DEPTH {
                break;
            }
            let Some(status) = Status::of(parent) else {
                break;
            };
            ancestors.push(status.parent);
        }
        Some(Self { sudo, ancestors })
    }
}

/// What `/proc/<pid>/status` tells of a process, whoever it belongs to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Status {
    name: String,
    parent: u32,
    real_uid: u32,
    effective_uid: u32,
}

impl Status {
    fn of(pid: u32) -> Option<Self> {
        Self::parse(&std::fs::read(format!("/proc/{pid}/status")).ok()?)
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(text);
        // The kernel escapes a newline in a name, so each line is one field.
        let field = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(":\t"))
        };
        let mut uids = field("Uid")?.split('\t');
        Some(Self {
            name: field("Name")?.to_owned(),
            parent: field("PPid")?.parse().ok()?,
            real_uid: uids.next()?.parse().ok()?,
            effective_uid: uids.next()?.parse().ok()?,
        })
    }
}

#[cfg(test)]
#[path = "asker_tests.rs"]
mod tests;
