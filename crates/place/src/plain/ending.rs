//! Ending a command in its place.

use std::sync::Arc;
use std::time::Duration;

use exoshell_wire::{ProcessInfo, RawBytes};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::script;
use crate::{Launched, Place};

/// How long the work may take beyond the grace.
const LIMIT: Duration = Duration::from_secs(30);

/// Ends a command's shell and everything it started; returns what is still alive.
///
/// Where the place cannot be asked, nobody knows, so the shell itself is returned.
pub(super) async fn end_tree(
    place: Arc<dyn Place>,
    shell: u32,
    grace: Duration,
) -> Vec<ProcessInfo> {
    let words = ["sh", "-c", script::ENDER].map(str::to_owned);
    let work = async {
        let launched = place.launch(&words).await.ok()?;
        let tenths = grace.as_millis().div_ceil(100);
        let said = ask(launched, &format!("{shell} {tenths}\n")).await?;
        survivors(&said)
    };
    match tokio::time::timeout(grace + LIMIT, work).await {
        Ok(Some(left)) => left,
        Ok(None) | Err(_) => vec![process(shell, 0, b"")],
    }
}

async fn ask(mut launched: Launched, line: &str) -> Option<Vec<u8>> {
    launched.stdin.write_all(line.as_bytes()).await.ok()?;
    launched.stdin.flush().await.ok()?;
    let mut said = Vec::new();
    let mut complaint = Vec::new();
    let (read, _) = tokio::join!(
        launched.stdout.read_to_end(&mut said),
        launched.stderr.read_to_end(&mut complaint),
    );
    read.ok()?;
    Some(said)
}

/// Reads the list of those alive; `None` when it does not come to its end.
fn survivors(said: &[u8]) -> Option<Vec<ProcessInfo>> {
    let mut left = Vec::new();
    for line in said.split(|byte| *byte == b'\n') {
        // A place may print things of its own.
        let Some(at) = memchr::memchr(script::MARK, line) else {
            continue;
        };
        let line = line.get(at + 1..)?;
        if line == b"end" {
            return Some(left);
        }
        let mut fields = line.splitn(3, |byte| *byte == b' ');
        let mut number = || {
            std::str::from_utf8(fields.next()?)
                .ok()?
                .parse::<u64>()
                .ok()
        };
        let (pid, start_time) = (number()?, number()?);
        let command = fields.next().unwrap_or_default();
        left.push(process(u32::try_from(pid).ok()?, start_time, command));
    }
    None
}

fn process(pid: u32, start_time: u64, command: &[u8]) -> ProcessInfo {
    ProcessInfo {
        id: String::new(),
        pid,
        start_time,
        command: RawBytes(command.to_vec()),
        session: None,
    }
}
