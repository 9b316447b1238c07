//! A container's only way in is the guest's socket. Commands there may tidy it away.

use std::io;
use std::time::Duration;

use rustix::fs::inotify::{self, CreateFlags, WatchFlags};
use tokio::net::unix::pipe::Receiver;

use crate::folder::Folder;

/// How long whoever removes the folder has to finish before it is made again.
const SETTLE: Duration = Duration::from_millis(50);

/// Notices when the socket is gone from its folder. The kernel says when to look, so that an idle
/// guest never wakes up for it.
#[derive(Debug)]
pub(crate) struct Watch {
    events: Receiver,
    socket: Option<(u64, u64)>,
}

impl Watch {
    /// Watches the socket that is in the folder now.
    pub(crate) fn new(folder: &Folder) -> io::Result<Self> {
        let events = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        let flags = WatchFlags::DELETE
            | WatchFlags::MOVED_FROM
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF;
        inotify::add_watch(&events, &folder.dir, flags)?;
        Ok(Self {
            events: crate::output::receiver(events)?,
            socket: folder.socket_id(),
        })
    }

    /// Waits until the socket is gone.
    pub(crate) async fn gone(&self, folder: &Folder) -> io::Result<()> {
        let mut buffer = [0_u8; 4096];
        loop {
            if self.socket.is_none() || folder.socket_id() != self.socket {
                tokio::time::sleep(SETTLE).await;
                return Ok(());
            }
            self.events.readable().await?;
            match self.events.try_read(&mut buffer) {
                Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                // What happened does not matter: the next look shows it.
                _ => {}
            }
        }
    }
}
