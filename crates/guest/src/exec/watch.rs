//! Watching over a command until its shell has ended.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use bytes::Bytes;
use exoshell_process::ProcessEntry;
use exoshell_wire::{Cause, Exec};

use super::line::{Heard, Line};
use super::stdin::Stdin;
use crate::tree::{Exit, Tree};

/// Watches over a command.
pub(super) struct Watch<'a> {
    exec: &'a Exec,
    stdin: Stdin,
}

/// How the watch ended.
pub(super) struct End {
    pub(super) exit: Option<Exit>,
    pub(super) cause: Cause,
    pub(super) unkillable: Vec<ProcessEntry>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(exec: &'a Exec, stdin: OwnedFd) -> Self {
        Self {
            exec,
            stdin: Stdin::new(exec.stdin.then_some(stdin)),
        }
    }

    /// Feeds the command until it ends, or until there is a reason to end it.
    pub(super) async fn until_end(mut self, line: &mut Line, tree: &Tree) -> End {
        let deadline = self
            .exec
            .timeout_ms
            .map(|ms| Instant::now() + Duration::from_millis(ms));
        let exit = tree.exited();
        tokio::pin!(exit);
        let cause = loop {
            tokio::select! {
                biased;
                exit = &mut exit => {
                    return End {
                        exit,
                        cause: Cause::Ended,
                        unkillable: Vec::new(),
                    };
                }
                heard = line.next(self.stdin.has_room()) => match heard {
                    Heard::Input { bytes, last } => self.feed(bytes, last),
                    Heard::Cancel | Heard::LeaseOver => break Cause::Interrupted,
                    Heard::Away | Heard::Back => {}
                },
                () = until(deadline) => break Cause::Timeout,
                () = self.stdin.progress() => {}
            }
        };
        let unkillable = tree.kill(self.exec.grace_ms).await;
        End {
            exit: exit.await,
            cause,
            unkillable,
        }
    }

    fn feed(&mut self, bytes: Bytes, last: bool) {
        let ends_terminal = last && self.exec.terminal.is_some();
        self.stdin.push(bytes, last && !ends_terminal);
        if ends_terminal {
            // A terminal has no end; there is a key for it.
            self.stdin.push(Bytes::from_static(&[4]), true);
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}
