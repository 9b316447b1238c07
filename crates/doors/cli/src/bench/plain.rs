//! The plain tools that our numbers stand beside.

use std::io::{self, Read as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How much one read of the counting reader may bring: a whole pipe.
const READ_SIZE: usize = 64 * 1024;

/// Runs `bash -c COMMAND` with this process's environment and times spawn and wait.
pub(super) fn bash(command: &str) -> io::Result<Duration> {
    let mut bash = Command::new("bash");
    bash.arg("-c").arg(command);
    silent(bash)
}

/// Runs a program without streams and times spawn and wait.
pub(super) fn silent(mut command: Command) -> io::Result<Duration> {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let began = Instant::now();
    let status = command.status()?;
    let time = began.elapsed();
    check(status.success(), &command)?;
    Ok(time)
}

/// Runs `bash -c COMMAND`, collects what it writes, and times all of it.
pub(super) fn bash_output(command: &str) -> io::Result<Duration> {
    let mut bash = Command::new("bash");
    bash.arg("-c").arg(command).stdin(Stdio::null());
    let began = Instant::now();
    let output = bash.output()?;
    let time = began.elapsed();
    check(output.status.success(), &bash)?;
    Ok(time)
}

/// Runs `cat FILE` into a reader in this process and returns the time and the bytes it read.
pub(super) fn cat(file: &Path) -> io::Result<(Duration, u64)> {
    let mut cat = Command::new("cat");
    cat.arg(file);
    counted(cat)
}

/// Runs a program into a reader in this process and returns the time and the bytes it read.
pub(super) fn counted(mut command: Command) -> io::Result<(Duration, u64)> {
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let mut buffer = vec![0_u8; READ_SIZE];
    let mut bytes = 0_u64;
    let began = Instant::now();
    let mut child = command.spawn()?;
    if let Some(mut pipe) = child.stdout.take() {
        loop {
            match pipe.read(&mut buffer)? {
                0 => break,
                length => bytes += length as u64,
            }
        }
    }
    let status = child.wait()?;
    let time = began.elapsed();
    check(status.success(), &command)?;
    Ok((time, bytes))
}

fn check(success: bool, command: &Command) -> io::Result<()> {
    if success {
        return Ok(());
    }
    let program = command.get_program().to_string_lossy();
    Err(io::Error::other(format!("`{program}` failed")))
}
