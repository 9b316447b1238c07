//! Noticing that a question was asked or answered.

use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::inotify;
use rustix::io::Errno;

use crate::error::RuntimeError;
use crate::state_file;

/// How long a thread waits before it looks whether anyone still wants to know.
const TURN: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 250_000_000,
};

/// Reports changes in the folder of questions.
#[derive(Debug)]
pub struct ApprovalWatch {
    inotify: Arc<OwnedFd>,
}

impl ApprovalWatch {
    pub(super) fn new(folder: &Path) -> Result<Self, RuntimeError> {
        let watch = || -> Result<OwnedFd, Errno> {
            let flags = inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC;
            let inotify = inotify::init(flags)?;
            // Files are renamed into place, and removed when they are used up.
            let what = inotify::WatchFlags::MOVED_TO | inotify::WatchFlags::DELETE;
            inotify::add_watch(&inotify, folder, what)?;
            Ok(inotify)
        };
        let inotify =
            watch().map_err(|errno| state_file::failure("cannot watch", folder)(errno.into()))?;
        Ok(Self {
            inotify: Arc::new(inotify),
        })
    }

    /// Waits until something changes. Several changes may be reported as one.
    pub async fn next(&mut self) {
        loop {
            let inotify = Arc::clone(&self.inotify);
            let looked = tokio::task::spawn_blocking(move || changed(&inotify)).await;
            match looked {
                Ok(Ok(false)) => {}
                Ok(Ok(true)) => return,
                // It cannot be watched any more; whoever waits has a limit of their own.
                _ => return std::future::pending().await,
            }
        }
    }
}

/// Waits a turn and takes all that was reported; tells whether something was.
fn changed(inotify: &OwnedFd) -> Result<bool, Errno> {
    let mut fds = [PollFd::new(inotify, PollFlags::IN)];
    match poll(&mut fds, Some(&TURN)) {
        Ok(0) | Err(Errno::INTR) => return Ok(false),
        Ok(_) => {}
        Err(errno) => return Err(errno),
    }
    let mut buffer = [MaybeUninit::uninit(); 4096];
    let mut reader = inotify::Reader::new(inotify, &mut buffer);
    loop {
        match reader.next() {
            Ok(_) => {}
            Err(Errno::AGAIN) => return Ok(true),
            Err(errno) => return Err(errno),
        }
    }
}
