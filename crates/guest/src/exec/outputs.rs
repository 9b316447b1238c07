//! What a command writes.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use exoshell_wire::{Exec, SpillFile, stream};
use tokio::net::unix::pipe::Receiver;
use tokio::sync::watch;

use crate::guest::Guest;
use crate::hidden::Hidden;
use crate::output::{Pump, Sink};
use crate::spill::Spill;
use crate::tree::{Exit, Tree};

/// How long output of processes that outlive the shell is still waited for: long enough for a
/// `tee` behind a process substitution to finish, short enough to go unnoticed otherwise.
const LINGERING_OUTPUT: Duration = Duration::from_millis(150);

/// The pumps of a command's output.
pub(super) struct Outputs {
    stdout: Pump,
    stderr: Pump,
    stop: watch::Sender<bool>,
    spill: Option<Arc<Spill>>,
}

/// What they moved.
pub(super) struct Moved {
    pub(super) stdout_bytes: u64,
    pub(super) stderr_bytes: u64,
    pub(super) spill: Option<SpillFile>,
    /// Pipes that something may still write to.
    pub(super) open: Vec<Receiver>,
}

impl Outputs {
    pub(super) fn start(
        guest: &Guest,
        exec: &Exec,
        hidden: &Hidden,
        [stdout, stderr]: [OwnedFd; 2],
        sink: &Sink,
    ) -> std::io::Result<Self> {
        let spill = exec.spill.map(|limits| {
            let redactor = guest.redactor(hidden);
            Arc::new(Spill::new(&guest.spill_dir(), &exec.id, limits, redactor))
        });
        let (stop, stopped) = watch::channel(false);
        let pump =
            |pipe, number| Pump::start(pipe, number, sink.clone(), spill.clone(), stopped.clone());
        Ok(Self {
            stdout: pump(stdout, stream::STDOUT)?,
            stderr: pump(stderr, stream::STDERR)?,
            stop,
            spill,
        })
    }

    /// Collects everything that was written before the command ended.
    pub(super) async fn finish(self, tree: &Tree, exit: Option<Exit>, on_terminal: bool) -> Moved {
        let Self {
            mut stdout,
            stderr,
            stop,
            spill,
        } = self;
        if on_terminal {
            // The kernel passes the last output of a terminal on in its own time.
            let _ = tokio::time::timeout(LINGERING_OUTPUT, stdout.ended()).await;
        }
        if exit.is_some_and(|exit| exit.leftovers) {
            // A short-lived companion (`> >(tee log)`) may still have to pass the output on.
            let _ = tokio::time::timeout(LINGERING_OUTPUT, tree.gone()).await;
        }
        stop.send_replace(true);
        let stdout = stdout.finish().await;
        let stderr = stderr.finish().await;
        Moved {
            stdout_bytes: stdout.bytes,
            stderr_bytes: stderr.bytes,
            spill: spill.and_then(|spill| spill.finish()),
            open: [stdout.open, stderr.open].into_iter().flatten().collect(),
        }
    }
}
