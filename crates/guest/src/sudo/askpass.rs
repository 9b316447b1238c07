//! Our program as sudo runs it for a password.

use std::io::{self, IoSlice, Read as _};
use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};

use super::door::SOCKET;

/// Hands our stdout, which is sudo's pipe, to the guest of this folder. Returns what to exit
/// with: 0 when the guest wrote a password to it.
///
/// The folder comes from the program's own name and not from the environment, which is the
/// command's.
pub(crate) fn run(folder: &Path) -> i32 {
    i32::from(!ask(folder).unwrap_or(false))
}

fn ask(folder: &Path) -> io::Result<bool> {
    crate::folder::enter(folder)?;
    let mut socket = UnixStream::connect(SOCKET)?;
    let stdout = rustix::stdio::stdout();
    let fds = [stdout];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !ancillary.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Ok(false);
    }
    let byte = [IoSlice::new(b"P")];
    sendmsg(&socket, &byte, &mut ancillary, SendFlags::NOSIGNAL)?;
    Ok(socket.read(&mut [0_u8; 1])? == 1)
}
