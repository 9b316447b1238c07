//! The lock that makes processes take turns.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::FlockOperation;

use super::files;

/// How long to wait: a process that was stopped in the middle must not stop all others for good.
const PATIENCE: Duration = Duration::from_secs(5);

/// The file that is locked; it stays when the others are renamed.
#[derive(Debug)]
pub(super) struct Lock(File);

/// Holds the lock.
#[derive(Debug)]
pub(super) struct Turn<'a>(&'a File);

impl Lock {
    pub(super) fn open(folder: &Path) -> io::Result<Self> {
        let file = files::options()
            .write(true)
            .create(true)
            .truncate(false)
            .open(folder.join("lock"))?;
        Ok(Self(file))
    }

    /// Waits for the lock.
    pub(super) fn turn(&self) -> io::Result<Turn<'_>> {
        acquire(&self.0)?;
        Ok(Turn(&self.0))
    }

    /// Waits for the lock and holds it until the file is closed.
    pub(super) fn wait(self) -> io::Result<Self> {
        acquire(&self.0)?;
        Ok(self)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        // A failure means that the lock is gone already.
        let _ = rustix::fs::flock(self.0, FlockOperation::Unlock);
    }
}

fn acquire(file: &File) -> io::Result<()> {
    let mut pause = Duration::from_micros(20);
    let mut deadline = None;
    loop {
        match rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(()),
            Err(rustix::io::Errno::WOULDBLOCK | rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let now = Instant::now();
        if *deadline.get_or_insert(now + PATIENCE) < now {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "another process holds its lock and does not let go",
            ));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(1));
    }
}
