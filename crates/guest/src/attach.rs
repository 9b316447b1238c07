//! The bridge between a pipe (stdin and stdout) and the daemon's socket.

use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::net::UnixStream;

use exoshell_wire::Preamble;
use rustix::event::{PollFd, PollFlags, poll};

use crate::serve::SOCKET;

/// Connects to the daemon of the current folder, tells the host that a guest talks, and passes
/// bytes both ways until either side ends.
pub(crate) fn run(nonce: &str) -> io::Result<()> {
    let socket = connect()?;
    write_all(rustix::stdio::stdout(), &Preamble::new(nonce).encode())?;
    let mut buffer = vec![0_u8; 64 * 1024];
    let mut input_open = true;
    loop {
        let stdin = rustix::stdio::stdin();
        let mut fds = vec![PollFd::new(&socket, PollFlags::IN)];
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
            let length = rustix::io::read(&socket, &mut buffer)?;
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

/// Connects; a daemon that another host just started may need a moment to listen.
fn connect() -> io::Result<UnixStream> {
    let pause = rustix::time::Timespec {
        tv_sec: 0,
        tv_nsec: 20_000_000,
    };
    let mut tries = 0;
    loop {
        match UnixStream::connect(SOCKET) {
            Err(_) if tries < 100 => {
                tries += 1;
                let _ = poll(&mut [], Some(&pause));
            }
            result => return result,
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
