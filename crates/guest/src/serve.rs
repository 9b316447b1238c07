//! The guest's life as a daemon on a unix socket.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use exoshell_process::Spawner;
use rustix::fs::FlockOperation;
use tokio::net::{UnixListener, UnixStream};

use crate::connection;
use crate::guest::Guest;

/// The socket's name in the guest's folder. The folder is entered first, so that the length of
/// its own path does not matter.
pub(crate) const SOCKET: &str = "guest.sock";

const LOCK: &str = "guest.lock";

/// What a daemon is started with.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// The guest's private folder.
    pub(crate) dir: PathBuf,
    /// How long it stays with nobody connected and nothing to guard.
    pub(crate) exit_after: Duration,
}

/// Makes the guest's folder, private to this user, and enters it.
pub(crate) fn enter(dir: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true).mode(0o700).create(dir)?;
    let stat = rustix::fs::lstat(dir)?;
    let own = rustix::process::geteuid().as_raw();
    if stat.st_uid != own || stat.st_mode & 0o077 != 0 {
        return Err(io::Error::other(format!(
            "`{}` must belong to user {own} and be closed to others (mode 0700)",
            dir.display()
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

/// Becomes a daemon, unless one serves this folder already. Returns when it ends.
///
/// Must be called before any thread exists. The calling process ends as soon as the daemon
/// takes connections.
pub(crate) fn start(settings: &Settings) -> io::Result<()> {
    enter(&settings.dir)?;
    let ready = exoshell_process::fork_daemon()?;
    daemon(settings, ready)
}

fn daemon(settings: &Settings, ready: OwnedFd) -> io::Result<()> {
    let prepared = lock().and_then(|lock| match lock {
        // Another guest serves this folder, which is all the caller wants.
        None => Ok(None),
        Some(lock) => prepare(settings).map(|parts| Some((lock, parts))),
    });
    let (lock, (spawner, socket)) = match prepared {
        Ok(Some(prepared)) => prepared,
        Ok(None) => return Ok(()),
        Err(error) => {
            let _ = rustix::io::write(&ready, format!("{error}\n").as_bytes());
            return Err(error);
        }
    };
    let result = run(settings, spawner, socket, ready);
    // The lock's file stays: a name that is removed could be locked twice.
    let _ = fs::remove_file(SOCKET);
    drop(lock);
    result
}

/// Does what must be done before the runtime starts its machinery.
fn prepare(settings: &Settings) -> io::Result<(Spawner, std::os::unix::net::UnixListener)> {
    silence()?;
    exoshell_process::block_pipe_signal();
    let spawner = Spawner::fork()?;
    raise_descriptor_limit();
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(settings.dir.join("spill"))?;
    // The lock is ours, so a socket that is there belongs to a guest that died.
    match fs::remove_file(SOCKET) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let socket = std::os::unix::net::UnixListener::bind(SOCKET)?;
    socket.set_nonblocking(true)?;
    Ok((spawner, socket))
}

/// Lets the guest itself hold thousands of pipes. What it starts hangs under the spawner, which
/// keeps the usual limit.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // A system that refuses leaves the limit it had.
    let _ = setrlimit(Resource::Nofile, limit);
}

/// Points the standard descriptors away from whoever started us.
fn silence() -> io::Result<()> {
    let null = match OpenOptions::new().read(true).write(true).open("/dev/null") {
        Ok(file) => OwnedFd::from(file),
        // A place without /dev/null: an empty file in memory swallows as well.
        Err(_) => exoshell_process::memory_file("null", b"")?,
    };
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}

fn run(
    settings: &Settings,
    spawner: Spawner,
    socket: std::os::unix::net::UnixListener,
    ready: OwnedFd,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let liveness = rustix::io::dup(spawner.liveness())?;
        let spawner_gone = UnixStream::from_std(liveness.into())?;
        let guest = Guest::new(settings.dir.clone(), spawner, settings.exit_after)?;
        let guest = Arc::new(guest);
        let listener = UnixListener::from_std(socket)?;
        drop(ready);
        tokio::select! {
            () = accept_all(&guest, &listener) => {}
            () = guest.keep_house() => {}
            // Without a spawner nothing can be started or ended any more. The supervisors see
            // our end and clear up; the next host starts a new guest.
            _ = spawner_gone.readable() => {}
        }
        // A reply that says goodbye is on its way to a host.
        tokio::time::sleep(Duration::from_millis(20)).await;
        io::Result::Ok(())
    })
}

async fn accept_all(guest: &Arc<Guest>, listener: &UnixListener) {
    loop {
        match listener.accept().await {
            Ok((socket, _)) if is_own(&socket) => {
                tokio::spawn(connection::serve(Arc::clone(guest), socket));
            }
            Ok(_) => {}
            // Out of descriptors, most likely: wait for some to come back.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// Only the user the guest runs as may talk to it.
fn is_own(socket: &UnixStream) -> bool {
    socket
        .peer_cred()
        .is_ok_and(|peer| peer.uid() == rustix::process::geteuid().as_raw())
}
