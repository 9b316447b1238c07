//! Who stops the servers when the test command cannot: Ctrl-C, a signal, a crash.

use std::env;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};

use super::layout::Layout;
use super::stop_if_unused;
use crate::Result;

/// A process that waits for our end, whatever it is, and then stops the servers.
#[derive(Debug)]
pub(super) struct Guardian {
    child: Child,
    pipe: ChildStdin,
}

impl Guardian {
    /// Starts it in a process group of its own, which Ctrl-C does not reach.
    pub(super) fn start(layout: &Layout) -> Result<Self> {
        let log = File::create(layout.root.join("guardian.log"))?;
        let mut child = Command::new(env::current_exe()?)
            .args(["servers", "watch"])
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0)
            .spawn()?;
        let pipe = child.stdin.take().ok_or("no pipe to the guardian")?;
        Ok(Self { child, pipe })
    }

    /// Tells it that everything was done.
    pub(super) fn dismiss(mut self) {
        // One that is gone already needs no word.
        let _ = self.pipe.write_all(b".");
        drop(self.pipe);
        let _ = self.child.wait();
    }
}

/// The guardian's own work: its input ends without a word when its parent is gone.
pub(crate) fn watch() -> Result<()> {
    let mut word = Vec::new();
    std::io::stdin().read_to_end(&mut word)?;
    if word.is_empty() {
        stop_if_unused(&Layout::of_workspace())?;
    }
    Ok(())
}
