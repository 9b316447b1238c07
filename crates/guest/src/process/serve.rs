//! Requests about processes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use exoshell_mux::{Channel, Item};
use exoshell_wire::{
    Acknowledge, Act, Acted, Action, Events, Failure, FailureKind, Follow, FollowAt, OutputRead,
    ProcessState, ProcessStatus, Processes, ReadFrom, ReadOutput, Reply, Start, Wait, WaitReason,
    Waited, WriteInput, stream,
};

use super::watch::{Lines, parse};
use super::{Shared, start};
use crate::connection::answer;
use crate::guest::Guest;

/// How much is read from a store at once.
const PIECE: usize = 32 * 1024;

/// The most a single read may ask for.
const MAX_READ: u64 = 16 * 1024 * 1024;

fn find(guest: &Guest, id: &str) -> Result<Shared, Failure> {
    guest.process(id).ok_or_else(|| {
        Failure::new(
            FailureKind::NoProcess,
            format!("there is no process `{id}`; it may have ended over an hour ago"),
        )
    })
}

/// Starts a process. A bound one ends with the connection that asked for it.
pub(crate) async fn start_process(guest: Arc<Guest>, mut channel: Channel, request: Start) {
    let command = match crate::exec::receive_command(&mut channel).await {
        Some(Ok(command)) => command,
        Some(Err(failure)) => {
            return answer(channel, &Reply::<ProcessStatus>::Failed(failure));
        }
        None => return,
    };
    let connection = channel.sender();
    let started = start(&guest, &request, &command).await;
    let session = match &request.exec.session {
        exoshell_wire::SessionRef::Key(key) => guest.session(key),
        exoshell_wire::SessionRef::OneShot(_) => None,
    };
    match started {
        Ok(process) => {
            let status = process.status().await;
            answer(channel, &Reply::Ok(status));
            if request.bound {
                tokio::spawn(async move {
                    tokio::select! {
                        () = process.over() => {}
                        () = connection.connection_closed() => {
                            process.kill(ProcessState::Killed, request.exec.grace_ms).await;
                        }
                    }
                });
            }
        }
        Err(failure) => answer(channel, &Reply::<ProcessStatus>::Failed(failure)),
    }
    if let Some(session) = session {
        guest.prepare(&session);
    }
}

/// Lists processes.
pub(crate) async fn list(
    guest: &Guest,
    request: &Processes,
) -> Result<Vec<ProcessStatus>, Failure> {
    let processes = match &request.id {
        Some(id) => vec![find(guest, id)?],
        None => guest.processes(request.session.as_deref()),
    };
    let mut list = Vec::with_capacity(processes.len());
    for process in processes {
        list.push(process.status().await);
    }
    list.sort_by_key(|status| status.started_ms);
    Ok(list)
}

/// Sends a part of a process's output.
pub(crate) async fn output(guest: &Guest, channel: Channel, request: &ReadOutput) {
    let process = match find(guest, &request.id) {
        Ok(process) => process,
        Err(failure) => return answer(channel, &Reply::<OutputRead>::Failed(failure)),
    };
    let (mut offset, first_line) = locate(&process, request.from);
    let start = offset;
    let mut bytes_left = request.max_bytes.min(MAX_READ);
    let mut lines_left = request.max_lines.unwrap_or(u64::MAX);
    let mut first = None;
    while bytes_left > 0 && lines_left > 0 {
        let most = usize::try_from(bytes_left).unwrap_or(usize::MAX).min(PIECE);
        let mut piece = process.store.read(offset, most);
        first.get_or_insert(piece.start);
        cut_lines(&mut piece.bytes, &mut lines_left);
        if piece.bytes.is_empty() {
            break;
        }
        offset = piece.start + piece.bytes.len() as u64;
        bytes_left -= piece.bytes.len() as u64;
        if channel
            .send(stream::STDOUT, Bytes::from(piece.bytes))
            .await
            .is_err()
        {
            return;
        }
    }
    let read = OutputRead {
        start: first.unwrap_or(start),
        end: offset,
        first_line,
        status: process.status().await,
    };
    answer(channel, &Reply::Ok(read));
}

/// Cuts behind the last line that is wanted.
fn cut_lines(bytes: &mut Vec<u8>, lines_left: &mut u64) {
    let ends = bytes.iter().enumerate().filter(|(_, b)| **b == b'\n');
    let mut seen = 0;
    let mut cut = None;
    for (position, _) in ends {
        seen += 1;
        if seen == *lines_left {
            cut = Some(position + 1);
            break;
        }
    }
    *lines_left -= seen;
    if let Some(cut) = cut {
        bytes.truncate(cut);
    }
}

/// Returns the offset to begin at, and its line.
fn locate(process: &Shared, from: ReadFrom) -> (u64, u64) {
    match from {
        ReadFrom::Byte(offset) => (offset.min(process.store.end()), 0),
        ReadFrom::Line(line) => process.store.find_line(line),
        ReadFrom::Tail(bytes) => (process.store.end().saturating_sub(bytes), 0),
    }
}

/// Sends a process's output as it comes, until the process and its output have ended.
pub(crate) async fn follow(guest: &Guest, channel: Channel, request: &Follow) {
    let process = match find(guest, &request.id) {
        Ok(process) => process,
        Err(failure) => return answer(channel, &Reply::<ProcessStatus>::Failed(failure)),
    };
    let (mut offset, _) = locate(&process, request.from);
    let mut grown = process.store.grown();
    let cancelled = channel.sender();
    let mut told = None;
    loop {
        grown.mark_unchanged();
        let over = process.state().is_over();
        let piece = process.store.read(offset, PIECE);
        if told != Some(piece.start) {
            let at = FollowAt {
                offset: piece.start,
                dropped: piece.start.saturating_sub(offset),
            };
            let _ = channel.event(serde_json::to_vec(&at).unwrap_or_default());
        }
        offset = piece.start + piece.bytes.len() as u64;
        told = Some(offset);
        if !piece.bytes.is_empty() {
            tokio::select! {
                sent = channel.send(stream::STDOUT, Bytes::from(piece.bytes)) => {
                    if sent.is_err() {
                        return;
                    }
                }
                _ = cancelled.cancelled() => return,
            }
            continue;
        }
        if over {
            break;
        }
        tokio::select! {
            _ = grown.changed() => {}
            () = process.over() => {}
            _ = cancelled.cancelled() => return,
        }
    }
    answer(channel, &Reply::Ok(process.status().await));
}

/// Waits for the end of a process, or for a line.
pub(crate) async fn wait(guest: &Guest, request: &Wait) -> Result<Waited, Failure> {
    let process = find(guest, &request.id)?;
    let until = request.until.as_deref().map(parse).transpose()?;
    let limit = Duration::from_millis(request.timeout_ms);
    let matching = async {
        let Some(expression) = until else {
            return std::future::pending().await;
        };
        let mut grown = process.store.grown();
        let mut lines = Lines::default();
        let mut offset = request.from_byte;
        loop {
            grown.mark_unchanged();
            let piece = process.store.read(offset, PIECE);
            offset = piece.start + piece.bytes.len() as u64;
            let mut found = None;
            lines.push(&piece.bytes, |line| {
                if found.is_none() && expression.is_match(&String::from_utf8_lossy(line)) {
                    found = Some(line.to_vec());
                }
            });
            // A prompt has no line end, and is waited for all the same.
            if found.is_none() && piece.bytes.is_empty() {
                let text = String::from_utf8_lossy(lines.unfinished());
                if !text.is_empty() && expression.is_match(&text) {
                    found = Some(lines.unfinished().to_vec());
                }
            }
            match found {
                Some(line) => return line,
                None if piece.bytes.is_empty() => {
                    let _ = grown.changed().await;
                }
                None => {}
            }
        }
    };
    let (reason, line) = tokio::select! {
        biased;
        line = matching => (WaitReason::Matched, Some(line)),
        () = process.over() => (WaitReason::Ended, None),
        () = tokio::time::sleep(limit) => (WaitReason::TimeUp, None),
    };
    Ok(Waited {
        reason,
        line: line.map(exoshell_wire::RawBytes),
        status: process.status().await,
    })
}

/// Acts on a process.
pub(crate) async fn act(guest: &Guest, request: &Act) -> Result<Acted, Failure> {
    let process = find(guest, &request.id)?;
    let mut screen = None;
    let mut unkillable = Vec::new();
    match request.action {
        Action::Kill { grace_ms } => {
            unkillable = process.kill(ProcessState::Killed, grace_ms).await;
        }
        Action::Signal { signal } => {
            if process.state().is_over() {
                return Err(Failure::new(
                    FailureKind::NotPossible,
                    format!("the process `{}` has ended", process.id),
                ));
            }
            process.signal(signal).await;
        }
        Action::Close => process.close_input().await?,
        Action::Resize(size) => process.resize(size)?,
        Action::Screen => screen = Some(process.screen()?),
    }
    Ok(Acted {
        status: process.status().await,
        screen,
        unkillable,
    })
}

/// Passes bytes on to a process.
pub(crate) async fn write(guest: Arc<Guest>, mut channel: Channel, request: WriteInput) {
    let result = pass_on(&guest, &mut channel, &request).await;
    if let Some(result) = result {
        answer(channel, &Reply::from(result));
    }
}

async fn pass_on(
    guest: &Guest,
    channel: &mut Channel,
    request: &WriteInput,
) -> Option<Result<ProcessStatus, Failure>> {
    let process = match find(guest, &request.id) {
        Ok(process) => process,
        Err(failure) => return Some(Err(failure)),
    };
    let limit = tokio::time::sleep(Duration::from_millis(request.timeout_ms));
    tokio::pin!(limit);
    loop {
        let (bytes, last) = match channel.receive().await.ok()? {
            Item::Data { bytes, last, .. } => (bytes, last),
            Item::Cancel => return None,
            _ => continue,
        };
        let mut bytes = bytes.to_vec();
        if last && request.enter {
            bytes.extend_from_slice(process.enter());
        }
        tokio::select! {
            written = process.write(&bytes) => {
                if let Err(failure) = written {
                    return Some(Err(failure));
                }
            }
            () = &mut limit => {
                return Some(Err(Failure::new(
                    FailureKind::NotPossible,
                    format!("the process `{}` does not read; part of the input may be lost", process.id),
                )));
            }
        }
        if last {
            return Some(Ok(process.status().await));
        }
    }
}

/// Sends events until the consumer has enough.
pub(crate) async fn events(guest: &Guest, channel: Channel, request: &Events) {
    let journal = guest.journal();
    let mut grown = journal.grown();
    let cancelled = channel.sender();
    let mut after = 0;
    loop {
        grown.mark_unchanged();
        for event in journal.pending(&request.consumer, after) {
            after = event.sequence;
            let Ok(body) = serde_json::to_vec(&event) else {
                continue;
            };
            if channel.event(body).is_err() || channel.sender().flushed().await.is_err() {
                return;
            }
        }
        if !request.follow {
            break;
        }
        tokio::select! {
            _ = grown.changed() => {}
            _ = cancelled.cancelled() => return,
        }
    }
    answer(channel, &Reply::Ok(()));
}

/// Notes what a consumer has dealt with.
pub(crate) fn acknowledge(guest: &Guest, request: &Acknowledge) {
    guest
        .journal()
        .acknowledge(&request.consumer, request.sequence);
}
