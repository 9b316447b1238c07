//! The guest's private folder: who may use it, who serves it.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;

/// The socket's name in the guest's folder. The folder is entered first, so that the length of
/// its own path does not matter.
const SOCKET: &str = "guest.sock";

const LOCK: &str = "guest.lock";

/// A folder this guest serves. It is the current one.
#[derive(Debug)]
pub(crate) struct Folder {
    pub(crate) dir: PathBuf,
    lock: File,
}

impl Folder {
    /// Serves the folder again after somebody removed the socket, or all of it.
    pub(crate) fn serve_again(&mut self) -> io::Result<UnixListener> {
        private_folder().create(&self.dir)?;
        enter(&self.dir)?;
        let same = rustix::fs::fstat(&self.lock)?;
        let ours = rustix::fs::lstat(LOCK)
            .is_ok_and(|found| (found.st_dev, found.st_ino) == (same.st_dev, same.st_ino));
        if !ours {
            self.lock = lock()?.ok_or_else(|| io::Error::other("another guest serves it now"))?;
        }
        listen(&self.dir)
    }

    /// Returns what tells the socket in the folder from any other.
    pub(crate) fn socket_id(&self) -> Option<(u64, u64)> {
        let stat = rustix::fs::lstat(self.dir.join(SOCKET)).ok()?;
        Some((stat.st_dev, stat.st_ino))
    }

    /// Gives the folder up. The lock's file stays: a name that is removed could be locked twice.
    pub(crate) fn leave(self) {
        let _ = fs::remove_file(SOCKET);
        let _ = fs::remove_dir_all(crate::sudo::FOLDER);
        drop(self.lock);
    }
}

/// What became of the attempt to serve a folder.
#[derive(Debug)]
pub(crate) enum Claim {
    /// It is ours now, and this is where hosts connect.
    Ours(Folder, UnixListener),
    /// Another guest serves it.
    Served(PathBuf),
}

/// Takes the first folder that can be made and used, and enters it.
pub(crate) fn claim_first(dirs: &[PathBuf]) -> io::Result<Claim> {
    let mut complaints = Vec::new();
    for dir in dirs {
        match claim(dir) {
            Ok(claim) => return Ok(claim),
            Err(error) => complaints.push(format!("`{}`: {error}", dir.display())),
        }
    }
    Err(io::Error::other(format!(
        "no folder for the guest can be used ({})",
        complaints.join("; ")
    )))
}

fn claim(dir: &Path) -> io::Result<Claim> {
    private_folder().create(dir)?;
    enter(dir)?;
    let Some(lock) = lock()? else {
        return Ok(Claim::Served(dir.to_owned()));
    };
    let socket = listen(dir)?;
    let dir = dir.to_owned();
    Ok(Claim::Ours(Folder { dir, lock }, socket))
}

fn private_folder() -> DirBuilder {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder
}

/// Makes the socket of the folder that was entered.
fn listen(dir: &Path) -> io::Result<UnixListener> {
    private_folder().create(dir.join("spill"))?;
    // The lock is ours, so a socket that is there belongs to a guest that died.
    match fs::remove_file(SOCKET) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let socket = UnixListener::bind(SOCKET)?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

/// Enters a folder that is private to this user.
pub(crate) fn enter(dir: &Path) -> io::Result<()> {
    let stat = rustix::fs::lstat(dir)?;
    let own = rustix::process::geteuid().as_raw();
    if stat.st_uid != own || stat.st_mode & 0o077 != 0 {
        return Err(io::Error::other(format!(
            "it must belong to user {own} and be closed to others (mode 0700)"
        )));
    }
    std::env::set_current_dir(dir)
}

/// Takes the folder's lock, or returns `None` when a guest has it.
fn lock() -> io::Result<Option<File>> {
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(LOCK)?;
    match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Connects to the guest of the first folder that has one.
pub(crate) fn connect_first(dirs: &[PathBuf]) -> Option<UnixStream> {
    dirs.iter().find_map(|dir| {
        enter(dir).ok()?;
        UnixStream::connect(SOCKET).ok()
    })
}
