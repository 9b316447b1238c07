//! Pseudo-terminals.

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

use exoshell_wire::TerminalSize;
use rustix::pty::OpenptFlags;
use rustix::termios::Winsize;

/// The guest's end of a pseudo-terminal.
#[derive(Debug)]
pub(crate) struct Master(OwnedFd);

impl Master {
    /// Changes the size; the programs on it are told by the kernel.
    pub(crate) fn resize(&self, size: TerminalSize) -> io::Result<()> {
        set_size(self.0.as_fd(), size)
    }

    pub(crate) fn try_clone(&self) -> io::Result<OwnedFd> {
        self.0.try_clone()
    }
}

fn set_size(fd: BorrowedFd<'_>, size: TerminalSize) -> io::Result<()> {
    let size = Winsize {
        ws_row: size.rows,
        ws_col: size.cols,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    Ok(rustix::termios::tcsetwinsize(fd, size)?)
}

/// Opens a pseudo-terminal: our end and the program's.
pub(crate) fn open(size: TerminalSize) -> io::Result<(Master, OwnedFd)> {
    let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
    let master = rustix::pty::openpt(flags)?;
    rustix::pty::grantpt(&master)?;
    rustix::pty::unlockpt(&master)?;
    // By descriptor, so that the place needs no /dev/pts of its own.
    let slave = rustix::pty::ioctl_tiocgptpeer(&master, flags)?;
    set_size(master.as_fd(), size)?;
    rustix::io::ioctl_fionbio(&master, true)?;
    Ok((Master(master), slave))
}
