//! The bridge between a pipe (stdin and stdout) and the daemon's socket.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use exoshell_wire::Preamble;
use rustix::event::{PollFd, PollFlags, poll};

use crate::folder::connect_first;
use crate::serve::{self, Settings};

/// How long a daemon that is starting is waited for.
const START_LIMIT: Duration = Duration::from_secs(3);

/// How long a daemon that was just started, or that another host starts, is waited for before
/// another start is tried: it may have been one that was just leaving.
const LISTEN_LIMIT: Duration = Duration::from_millis(500);

/// How often a start is tried.
const START_TRIES: usize = 4;

/// Connects to a daemon that listens or is about to.
pub(crate) fn find(dirs: &[PathBuf]) -> Option<UnixStream> {
    find_within(dirs, START_LIMIT)
}

/// Connects to a daemon, starting one if there is none.
pub(crate) fn find_or_start(settings: &Settings) -> io::Result<UnixStream> {
    if let Some(socket) = connect_first(&settings.dirs) {
        return Ok(socket);
    }
    for _ in 0..START_TRIES {
        // From a fork, so that this process stays the pipe.
        exoshell_process::run_forked(|| serve::start(settings))?;
        if let Some(socket) = find_within(&settings.dirs, LISTEN_LIMIT) {
            return Ok(socket);
        }
    }
    Err(io::Error::other("the guest's daemon does not listen"))
}

fn find_within(dirs: &[PathBuf], limit: Duration) -> Option<UnixStream> {
    let pause = rustix::time::Timespec {
        tv_sec: 0,
        tv_nsec: 20_000_000,
    };
    let began = Instant::now();
    loop {
        let socket = connect_first(dirs);
        if socket.is_some() || began.elapsed() >= limit {
            return socket;
        }
        let _ = poll(&mut [], Some(&pause));
    }
}

/// Tells the host that a guest talks, and passes bytes both ways until either side ends.
pub(crate) fn run(socket: &UnixStream, nonce: &str) -> io::Result<()> {
    write_all(rustix::stdio::stdout(), &Preamble::new(nonce).encode())?;
    let mut buffer = vec![0_u8; 64 * 1024];
    let mut input_open = true;
    loop {
        let stdin = rustix::stdio::stdin();
        let mut fds = vec![PollFd::new(socket, PollFlags::IN)];
        if input_open {
            fds.push(PollFd::new(&stdin, PollFlags::IN));
        }
        match poll(&mut fds, None) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let from_guest = fds.first().is_some_and(|fd| !fd.revents().is_empty());
        let from_host = fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
        if from_guest {
            let length = rustix::io::read(socket, &mut buffer)?;
            if length == 0 {
                return Ok(());
            }
            write_all(
                rustix::stdio::stdout(),
                buffer.get(..length).unwrap_or_default(),
            )?;
        }
        if from_host {
            let length = rustix::io::read(stdin, &mut buffer)?;
            if length == 0 {
                input_open = false;
                socket.shutdown(std::net::Shutdown::Write)?;
            }
            write_all(socket.as_fd(), buffer.get(..length).unwrap_or_default())?;
        }
    }
}

fn write_all(fd: impl std::os::fd::AsFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(&fd, bytes) {
            Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
    Ok(())
}
