//! Where sudo finds our programs, and where they find the guest.

use std::fs;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{FileType, OFlags};
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, Interest};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;
use zeroize::Zeroizing;

use super::asker::Asker;
use super::{ASKPASS, SHIM};
use crate::guest::Guest;

/// The folder in the guest's own that holds all of this.
pub(crate) const FOLDER: &str = "sudo";

/// The folder in it that goes first in the `PATH` of a command on a terminal.
const PATH_FOLDER: &str = "path";

/// The socket's name in the folder.
pub(super) const SOCKET: &str = "socket";

/// How many may ask at the same time.
const MAX_ASKERS: usize = 16;

/// How long our program may take to say what it wants.
const TELL_LIMIT: Duration = Duration::from_secs(2);

/// Where sudo finds our programs.
#[derive(Debug)]
pub(crate) struct Door {
    /// The program that sudo runs for a password.
    pub(crate) askpass: Vec<u8>,
    /// The folder with our `sudo`.
    pub(crate) path: Vec<u8>,
}

impl Door {
    /// Makes the folder and starts to answer. The names are links to the program that runs, so
    /// nothing has to be copied, and the folder may be on a file system without programs.
    pub(super) fn open(guest: &Arc<Guest>) -> io::Result<Self> {
        // The guest's folder is the current one. What lies there is of a guest that died.
        let folder = Path::new(FOLDER);
        match fs::remove_dir_all(folder) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder.join(PATH_FOLDER))?;
        let own = std::env::current_exe()?;
        symlink(&own, folder.join(ASKPASS))?;
        symlink(&own, folder.join(PATH_FOLDER).join(SHIM))?;
        let listener = UnixListener::bind(folder.join(SOCKET))?;
        tokio::spawn(listen(Arc::clone(guest), listener));
        let bytes = |name: &str| {
            let path = guest.dir.join(folder).join(name);
            path.into_os_string().into_encoded_bytes()
        };
        Ok(Self {
            askpass: bytes(ASKPASS),
            path: bytes(PATH_FOLDER),
        })
    }
}

async fn listen(guest: Arc<Guest>, listener: UnixListener) {
    let places = Arc::new(Semaphore::new(MAX_ASKERS));
    loop {
        let Ok((socket, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
            continue;
        };
        let guest = Arc::clone(&guest);
        tokio::spawn(async move {
            // A refusal is silence: the socket ends without the byte that says it was done.
            let _ = serve(&guest, socket).await;
            drop(place);
        });
    }
}

/// Answers one question; `None` is a refusal.
async fn serve(guest: &Guest, mut socket: UnixStream) -> Option<()> {
    let asker = Asker::prove(&socket)?;
    let stdout = tokio::time::timeout(TELL_LIMIT, descriptor(&socket)).await;
    let pipe = stdout.ok()??;
    if !is_pipe_of_root(&pipe) {
        return None;
    }
    let sudo = guest.sudo();
    let armed = sudo.command_of(&asker.ancestors).await?;
    let mut end = [0_u8; 1];
    let password = tokio::select! {
        password = sudo.ask(&armed, asker.sudo) => password?,
        // It sends nothing more: our program was ended, and sudo most likely with it.
        _ = socket.read(&mut end) => return None,
    };
    // Somebody else may have taken the process's number while a person was thinking.
    if !exoshell_process::is_alive(asker.sudo) {
        return None;
    }
    let mut line = Zeroizing::new(Vec::with_capacity(password.len() + 1));
    line.extend_from_slice(&password);
    line.push(b'\n');
    give(&pipe, &line)?;
    drop(pipe);
    socket.write_all(b"\n").await.ok()
}

/// Takes the descriptor that our program sends: its stdout.
async fn descriptor(socket: &UnixStream) -> Option<OwnedFd> {
    loop {
        socket.readable().await.ok()?;
        let received = socket.try_io(Interest::READABLE, || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut ancillary = RecvAncillaryBuffer::new(&mut space);
            let mut byte = [0_u8; 1];
            let mut parts = [IoSliceMut::new(&mut byte)];
            recvmsg(socket, &mut parts, &mut ancillary, RecvFlags::CMSG_CLOEXEC)?;
            let mut rights = ancillary.drain().filter_map(|message| match message {
                RecvAncillaryMessage::ScmRights(mut rights) => rights.next(),
                _ => None,
            });
            Ok(rights.next())
        });
        match received {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            received => return received.ok().flatten(),
        }
    }
}

/// Tells whether this is the writing end of a pipe that root made: the one through which sudo
/// reads. A command can make no such pipe, so it cannot read what is written there.
fn is_pipe_of_root(pipe: &OwnedFd) -> bool {
    let writes =
        rustix::fs::fcntl_getfl(pipe).is_ok_and(|flags| flags & OFlags::ACCMODE == OFlags::WRONLY);
    writes
        && rustix::fs::fstat(pipe).is_ok_and(|stat| {
            FileType::from_raw_mode(stat.st_mode) == FileType::Fifo && stat.st_uid == 0
        })
}

/// Writes a line, which fits, unless somebody filled the pipe.
fn give(pipe: &OwnedFd, line: &[u8]) -> Option<()> {
    let mut fds = [PollFd::from_borrowed_fd(pipe.as_fd(), PollFlags::OUT)];
    let ready = poll(&mut fds, Some(&Timespec::default())).ok()?;
    let room = ready == 1 && fds[0].revents().contains(PollFlags::OUT);
    let written = room.then(|| rustix::io::write(pipe, line).ok()).flatten()?;
    (written == line.len()).then_some(())
}
