//! Asking the person at the terminal for a sudo password.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::time::Duration;

use exoshell_runtime::{Password, PasswordFuture, PasswordRequest, Runtime};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetpgrp, tcsetattr};
use zeroize::Zeroizing;

/// How long the person may take.
const LIMIT: Duration = Duration::from_secs(45);

/// How often the terminal is looked at; nobody notices less.
const KEY_PAUSE: Duration = Duration::from_millis(20);

/// Longer lines are no passwords.
const MAX_LINE: usize = 1024;

/// Lets sudo ask the person, if one is there.
pub(crate) fn ask_at_terminal(runtime: Runtime) -> Runtime {
    if io::stdin().is_terminal() && io::stderr().is_terminal() {
        return runtime.with_password_prompt(prompt);
    }
    runtime
}

fn prompt(request: PasswordRequest) -> PasswordFuture {
    Box::pin(async move {
        let line = ask(&request).await.ok()?;
        (!line.is_empty()).then(|| Password::new(line))
    })
}

async fn ask(request: &PasswordRequest) -> io::Result<Zeroizing<Vec<u8>>> {
    let terminal = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open("/dev/tty")?;
    // In the background the terminal is somebody else's.
    if tcgetpgrp(&terminal)? != rustix::process::getpgrp() {
        return Ok(Zeroizing::default());
    }
    let terminal = Quiet::new(terminal)?;
    let again = if request.attempt > 1 {
        "that was wrong; "
    } else {
        ""
    };
    terminal.say(&format!(
        "exoshell: {again}sudo wants a password in `{}` (Enter: none, {} s): ",
        request.place.escape_debug(),
        LIMIT.as_secs()
    ));
    let line = tokio::time::timeout(LIMIT, terminal.read_line()).await;
    line.unwrap_or_else(|_| Ok(Zeroizing::default()))
}

/// The terminal, which does not show what is typed while this is held.
struct Quiet {
    terminal: File,
    before: Termios,
}

impl Quiet {
    fn new(terminal: File) -> io::Result<Self> {
        let before = tcgetattr(&terminal)?;
        let mut quiet = before.clone();
        quiet.local_modes.remove(LocalModes::ECHO);
        quiet.local_modes.insert(LocalModes::ICANON);
        // What was typed before the question is no answer to it.
        tcsetattr(&terminal, OptionalActions::Flush, &quiet)?;
        Ok(Self { terminal, before })
    }

    fn say(&self, text: &str) {
        // Without a question the person will not answer, and that is an answer.
        let _ = (&self.terminal).write_all(text.as_bytes());
    }

    /// Reads a line; one that is too long is none.
    async fn read_line(&self) -> io::Result<Zeroizing<Vec<u8>>> {
        // With room for all of it: what a vector leaves behind when it grows is not wiped.
        let mut line = Zeroizing::new(Vec::with_capacity(MAX_LINE));
        let mut buffer = Zeroizing::new([0_u8; 256]);
        loop {
            let length = match rustix::io::read(&self.terminal, &mut buffer[..]) {
                Ok(length) => length,
                Err(Errno::AGAIN | Errno::INTR) => {
                    tokio::time::sleep(KEY_PAUSE).await;
                    continue;
                }
                Err(errno) => return Err(errno.into()),
            };
            let bytes = buffer.get(..length).unwrap_or_default();
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let taken = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
            if line.len() + taken.len() > MAX_LINE {
                return Ok(Zeroizing::default());
            }
            line.extend_from_slice(taken);
            if end.is_some() || bytes.is_empty() {
                return Ok(line);
            }
        }
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        // The newline that was typed was not shown.
        self.say("\n");
        // A terminal that is gone needs no restoring.
        let _ = tcsetattr(&self.terminal, OptionalActions::Flush, &self.before);
    }
}
