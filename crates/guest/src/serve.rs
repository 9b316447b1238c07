//! The guest's life as a daemon on a unix socket.

use std::fs::OpenOptions;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use exoshell_process::Spawner;
use tokio::net::{UnixListener, UnixStream};

use crate::connection;
use crate::folder::{Claim, Folder, claim_first};
use crate::guest::{Guest, Limits};
use crate::watch::Watch;

/// How long TERM may take when the guest is told to stop by a signal.
const STOP_GRACE_MS: u64 = 2000;

/// How long a daemon that was told to stop may take: the grace, the limit for what ignores KILL,
/// and a little.
const STOP_LIMIT: Duration = Duration::from_secs(9);

/// How long to wait before the socket is made again after a failure, such as a full disk.
const AGAIN_PAUSE: Duration = Duration::from_secs(1);

/// What a daemon is started with.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    /// Candidates for the guest's private folder, best first.
    pub(crate) dirs: Vec<PathBuf>,
    /// Where sessions start when the host does not say.
    pub(crate) home: Option<PathBuf>,
    /// How long it stays with nothing to do, whoever is connected.
    pub(crate) idle: Option<Duration>,
    /// How long it stays with nobody connected and nothing to guard.
    pub(crate) exit_after: Duration,
    /// How long finished processes are kept.
    pub(crate) keep: Duration,
    /// How long a fresh shell may take to tell its state.
    pub(crate) shell: Duration,
}

/// Becomes a daemon, unless one serves the folder already. Returns when it ends.
///
/// Must be called before any thread exists. The calling process ends as soon as the daemon
/// takes connections.
pub(crate) fn start(settings: &Settings) -> io::Result<()> {
    let ready = exoshell_process::fork_daemon()?;
    match claimed(settings, &ready)? {
        Claim::Ours(folder, socket) => {
            let parts = Parts {
                socket,
                stop: None,
                ready,
            };
            daemon(settings, folder, parts)
        }
        // That is all the caller wants.
        Claim::Served(_) => Ok(()),
    }
}

/// Becomes the main process of a container, with the daemon as its child. Returns the code to
/// exit with when the daemon has ended.
///
/// Must be called before any thread exists.
pub(crate) fn init(settings: &Settings) -> io::Result<i32> {
    exoshell_process::run_init(STOP_LIMIT, |stop| {
        let served = rustix::io::dup(rustix::stdio::stderr())
            .map_err(io::Error::from)
            .and_then(|ready| match claimed(settings, &ready)? {
                Claim::Ours(folder, socket) => {
                    let parts = Parts {
                        socket,
                        stop: Some(stop),
                        ready,
                    };
                    daemon(settings, folder, parts)
                }
                Claim::Served(dir) => {
                    let error = format!("another guest serves `{}`", dir.display());
                    complain(&ready, &error);
                    Err(io::Error::other(error))
                }
            });
        if served.is_ok() { 0 } else { crate::FAILED }
    })
}

fn complain(ready: &OwnedFd, error: &impl std::fmt::Display) {
    // Nobody listens when this fails too.
    let _ = rustix::io::write(ready, format!("exoshell-guest: {error}\n").as_bytes());
}

/// Takes a folder; a failure is told on `ready`.
fn claimed(settings: &Settings, ready: &OwnedFd) -> io::Result<Claim> {
    claim_first(&settings.dirs).inspect_err(|error| complain(ready, error))
}

/// What connects a daemon with others.
struct Parts {
    /// Where hosts connect.
    socket: std::os::unix::net::UnixListener,
    /// Ends when the daemon shall.
    stop: Option<OwnedFd>,
    /// Where a failed start is told; its end says that it worked.
    ready: OwnedFd,
}

/// Serves a folder until nothing is left to guard, or until it is told to stop.
fn daemon(settings: &Settings, mut folder: Folder, parts: Parts) -> io::Result<()> {
    let spawner = prepare().inspect_err(|error| complain(&parts.ready, error));
    let result = spawner.and_then(|spawner| run(settings, &mut folder, spawner, parts));
    folder.leave();
    result
}

/// Does what must be done before the runtime starts its machinery.
fn prepare() -> io::Result<Spawner> {
    silence()?;
    exoshell_process::block_pipe_signal();
    mark_commands();
    let spawner = Spawner::fork()?;
    raise_descriptor_limit();
    Ok(spawner)
}

/// Marks everything that this guest will start, so that a host knows that a command has started it
/// and trusts it with nothing: see `inside_guest` of the runtime. The kernel keeps this limit, lets
/// nobody but root raise it again, and does not use it.
fn mark_commands() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    if getrlimit(Resource::Locks).maximum.is_none() {
        let limit = Some(u64::from(u32::MAX));
        let marked = Rlimit {
            current: limit,
            maximum: limit,
        };
        // Lowering is always allowed.
        let _ = setrlimit(Resource::Locks, marked);
    }
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

fn run(settings: &Settings, folder: &mut Folder, spawner: Spawner, parts: Parts) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let liveness = rustix::io::dup(spawner.liveness())?;
        let spawner_gone = UnixStream::from_std(liveness.into())?;
        let limits = Limits {
            exit_after: settings.exit_after,
            idle: settings.idle,
            keep: settings.keep,
            shell: settings.shell,
        };
        let guest = Guest::new(folder.dir.clone(), spawner, settings.home.clone(), limits)?;
        let guest = Arc::new(guest);
        // It ends before the connections do: a host that sees its own end finds nobody listening.
        let listener = UnixListener::from_std(parts.socket)?;
        drop(parts.ready);
        // Elsewhere a host that finds no socket starts another guest, and a folder that was
        // removed with its home has to stay away.
        let watch = match parts.stop {
            Some(_) => Watch::new(folder).ok(),
            None => None,
        };
        tokio::select! {
            () = accept_all(&guest, listener, folder, watch) => {}
            () = guest.keep_house() => {}
            () = stopped(&guest, parts.stop) => {}
            // Without a spawner nothing can be started or ended any more. The supervisors see
            // our end and clear up; the next host starts a new guest.
            _ = spawner_gone.readable() => {}
        }
        // A reply that says goodbye is on its way to a host.
        tokio::time::sleep(Duration::from_millis(20)).await;
        io::Result::Ok(())
    })
}

/// Waits for the end of `stop`, then ends everything.
async fn stopped(guest: &Guest, stop: Option<OwnedFd>) {
    let Some(stop) = stop.and_then(|stop| crate::output::receiver(stop).ok()) else {
        return std::future::pending().await;
    };
    let _ = stop.readable().await;
    guest.shut_down(STOP_GRACE_MS).await;
}

/// Takes connections, and serves the folder again when its socket is gone.
async fn accept_all(
    guest: &Arc<Guest>,
    mut listener: UnixListener,
    folder: &mut Folder,
    mut watch: Option<Watch>,
) {
    loop {
        let gone = async {
            match &watch {
                Some(watch) => watch.gone(folder).await,
                None => std::future::pending().await,
            }
        };
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            seen = gone => {
                // What cannot be watched is left as it is.
                watch = None;
                if seen.is_ok() {
                    listener = listen_again(folder).await;
                    watch = Watch::new(folder).ok();
                }
                continue;
            }
        };
        match accepted {
            Ok((socket, _)) if is_own(&socket) => {
                tokio::spawn(connection::serve(Arc::clone(guest), socket));
            }
            Ok(_) => {}
            // Out of descriptors, most likely: wait for some to come back.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}

/// Makes the socket again, whatever it takes: without one no host ever comes back.
async fn listen_again(folder: &mut Folder) -> UnixListener {
    loop {
        if let Ok(listener) = folder.serve_again().and_then(UnixListener::from_std) {
            return listener;
        }
        tokio::time::sleep(AGAIN_PAUSE).await;
    }
}

/// Only the user the guest runs as may talk to it.
fn is_own(socket: &UnixStream) -> bool {
    socket
        .peer_cred()
        .is_ok_and(|peer| peer.uid() == rustix::process::geteuid().as_raw())
}
