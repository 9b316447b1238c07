//! Asking a shared connection for a sign of life, in the words of OpenSSH's `PROTOCOL.mux`.
//!
//! `ssh -O check` asks the same, but costs a process, and waits forever for one that is stuck.

use std::io;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

/// How long a living one may take.
const LIMIT: Duration = Duration::from_secs(3);

/// How long to wait where too many are asking.
const PAUSE: Duration = Duration::from_millis(20);

const HELLO: u32 = 0x0000_0001;
const VERSION: u32 = 4;
const ALIVE_CHECK: u32 = 0x1000_0004;
const ALIVE: u32 = 0x8000_0005;

/// Nothing longer is ever sent to us.
const MAX_MESSAGE: u32 = 64 * 1024;

/// What became of a shared connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sign {
    /// It takes sessions.
    Alive,
    /// Its process is gone.
    Dead,
    /// Its process is there and does not answer, or not as it should.
    Stuck,
}

/// Asks the connection behind this socket.
pub(crate) async fn sign_of_life(socket: &Path) -> Sign {
    let asking = async {
        loop {
            match pid_of(socket).await {
                // Too many are asking at once.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    tokio::time::sleep(PAUSE).await;
                }
                result => return result,
            }
        }
    };
    match tokio::time::timeout(LIMIT, asking).await {
        Ok(Ok(_)) => Sign::Alive,
        Ok(Err(error)) if is_gone(&error) => Sign::Dead,
        _ => Sign::Stuck,
    }
}

/// Tells whether nobody is behind the socket, or will be soon.
fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{
        BrokenPipe, ConnectionRefused, ConnectionReset, NotADirectory, NotFound, UnexpectedEof,
    };
    matches!(
        error.kind(),
        NotFound | NotADirectory | ConnectionRefused | ConnectionReset | BrokenPipe | UnexpectedEof
    )
}

/// Asks for the process that holds the connection.
pub(crate) async fn pid_of(socket: &Path) -> io::Result<u32> {
    let mut stream = UnixStream::connect(socket).await?;
    let mut question = Vec::new();
    for number in [8, HELLO, VERSION, 8, ALIVE_CHECK, 0] {
        question.extend_from_slice(&u32::to_be_bytes(number));
    }
    stream.write_all(&question).await?;
    loop {
        let length = stream.read_u32().await?;
        if !(4..=MAX_MESSAGE).contains(&length) {
            return Err(io::Error::other("no message of a shared connection"));
        }
        let kind = stream.read_u32().await?;
        if kind == ALIVE && length == 12 {
            let _request = stream.read_u32().await?;
            return stream.read_u32().await;
        }
        let mut rest = vec![0; length as usize - 4];
        stream.read_exact(&mut rest).await?;
        if kind != HELLO {
            return Err(io::Error::other("a refusal"));
        }
    }
}

#[cfg(test)]
#[path = "mux_tests.rs"]
mod tests;
