//! A program of the place, started for its standard streams.

use std::io;
use std::pin::Pin;
use std::process::Stdio;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::process::{ChildStdin, Command};

/// A variable of ours that no program may get, not even the client of a place.
pub const SUDO_PASSWORD: &str = "SUDO_PASSWORD";

/// A program under way in a place. Dropping it ends the program as far as its backend can.
pub struct Launched {
    /// Its stdin; shutting it down is its end.
    pub stdin: Box<dyn AsyncWrite + Send + Unpin>,
    /// Its stdout.
    pub stdout: Box<dyn AsyncRead + Send + Unpin>,
    /// Its stderr.
    pub stderr: Box<dyn AsyncRead + Send + Unpin>,
    /// Kept as long as the program shall live: usually the local client process.
    pub keep: Box<dyn Send>,
}

impl std::fmt::Debug for Launched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Launched").finish_non_exhaustive()
    }
}

impl Launched {
    /// Starts a program of this machine, which may be the client of another one. It is killed
    /// when this is dropped.
    ///
    /// Must be called inside a tokio runtime.
    pub fn program(words: &[String]) -> io::Result<Self> {
        let [program, arguments @ ..] = words else {
            return Err(io::Error::other("no program was given"));
        };
        let mut child = Command::new(program)
            .args(arguments)
            .env_remove(SUDO_PASSWORD)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A key pressed at our terminal is ours to pass on: it must not end the client.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let missing = || io::Error::other("a standard stream of the program is missing");
        Ok(Self {
            stdin: Box::new(Input(Some(child.stdin.take().ok_or_else(missing)?))),
            stdout: Box::new(child.stdout.take().ok_or_else(missing)?),
            stderr: Box::new(child.stderr.take().ok_or_else(missing)?),
            keep: Box::new(child),
        })
    }
}

/// The stdin of a program; unlike tokio's, it ends when it is shut down.
struct Input(Option<ChildStdin>);

impl AsyncWrite for Input {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.0.as_mut() {
            Some(stdin) => Pin::new(stdin).poll_write(context, bytes),
            None => Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.0.as_mut() {
            Some(stdin) => Pin::new(stdin).poll_flush(context),
            None => Poll::Ready(Ok(())),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.0 = None;
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
#[path = "launch_tests.rs"]
mod tests;
