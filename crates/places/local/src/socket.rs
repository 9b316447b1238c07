//! Reaching a unix socket whatever the length of its path.

use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use tokio::net::UnixStream;

/// The socket's name in the guest's folder.
const SOCKET: &str = "guest.sock";

/// Connects to the guest's socket. A socket's address holds about 100 bytes, so the folder is
/// opened first and the address goes through its descriptor.
pub(crate) async fn connect(dir: &Path) -> io::Result<UnixStream> {
    let folder = rustix::fs::open(
        dir,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )?;
    let short = format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd());
    match UnixStream::connect(&short).await {
        Err(error)
            if error.kind() == io::ErrorKind::NotFound && !Path::new("/proc/self").exists() =>
        {
            UnixStream::connect(dir.join(SOCKET)).await
        }
        result => result,
    }
}
