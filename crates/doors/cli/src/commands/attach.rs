//! `exoshell attach`: a person at a process's terminal.

use std::io::Write as _;

use bytes::Bytes;
use exoshell_runtime::{
    Action, FollowEvent, ProcessView, ReadFrom, Runtime, RuntimeError, state_code,
};
use tokio::io::AsyncReadExt as _;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;

use super::load;
use crate::args::PlaceArgs;
use crate::output;
use crate::raw_terminal::RawTerminal;

/// Ctrl-], which few programs use.
const DETACH: u8 = 0x1d;

/// Shows a process's terminal and passes keys on, until it ends or the person detaches.
pub(crate) async fn run(id: &str) -> u8 {
    match try_run(id).await {
        Ok(code) => code,
        Err(error) => output::error(&error, false),
    }
}

async fn try_run(id: &str) -> Result<u8, RuntimeError> {
    let runtime = load(&PlaceArgs::default())?;
    match runtime.process(id, None).await? {
        ProcessView::Known(status) if status.terminal.is_none() => {
            return Err(RuntimeError::Usage(format!(
                "the process `{id}` has no terminal; `exoshell logs -f {id}` shows its output"
            )));
        }
        ProcessView::Known(status) if status.state.is_over() => {
            return Err(RuntimeError::Usage(format!(
                "the process `{id}` has ended; `exoshell logs {id}` shows its output"
            )));
        }
        ProcessView::Known(_) => {}
        _ => {
            return Err(RuntimeError::Lost {
                what: format!("the process `{id}`"),
            });
        }
    }
    let terminal = RawTerminal::enter_if_terminal();
    if !terminal.is_raw() {
        return Err(RuntimeError::Usage(
            "`attach` needs a terminal; use `exoshell logs -f` and `exoshell call process`"
                .to_owned(),
        ));
    }
    output::talk("[attached; Ctrl-] detaches]\r");
    let end = talk(&runtime, id).await;
    // Leaves colours and hidden cursors of the process behind.
    let _ = output::data(b"\x1b[0m\x1b[?25h\x1b[?1049l\r\n");
    drop(terminal);
    match end? {
        End::Detached => {
            output::talk(&format!("[detached from {id}; it goes on]"));
            Ok(0)
        }
        End::Over(code) => {
            output::talk(&format!("[{id} ended]"));
            Ok(u8::try_from(code).unwrap_or(output::OWN_FAILURE))
        }
    }
}

enum End {
    Detached,
    Over(i32),
}

async fn talk(runtime: &Runtime, id: &str) -> Result<End, RuntimeError> {
    resize(runtime, id).await;
    let acted = runtime.act_on_process(id, None, Action::Screen).await?;
    let offset = match acted.screen {
        Some(screen) => {
            show(b"\x1b[2J\x1b[H");
            show(&screen.drawn.0);
            screen.offset
        }
        None => 0,
    };
    let mut stream = runtime
        .follow_process(id, None, ReadFrom::Byte(offset))
        .await?;
    let mut keys = read_keys();
    let mut resized = signal(SignalKind::window_change()).ok();
    loop {
        let next_size = async {
            match &mut resized {
                Some(resized) => resized.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            event = stream.next() => match event? {
                FollowEvent::At(_) => {}
                FollowEvent::Output(bytes) => show(&bytes),
                FollowEvent::Done(status) => {
                    return Ok(End::Over(state_code(status.state).unwrap_or(0)));
                }
            },
            pressed = keys.recv() => {
                let Some(bytes) = pressed else {
                    return Ok(End::Detached);
                };
                let before = bytes.iter().position(|b| *b == DETACH);
                let passed = bytes.slice(..before.unwrap_or(bytes.len()));
                if !passed.is_empty() {
                    // A process that ended meanwhile is seen by the stream.
                    match runtime.type_to_process(id, passed).await {
                        Err(error @ RuntimeError::Refused(_)) => return Err(error),
                        _ended => {}
                    }
                }
                if before.is_some() {
                    return Ok(End::Detached);
                }
            }
            _ = next_size => resize(runtime, id).await,
        }
    }
}

async fn resize(runtime: &Runtime, id: &str) {
    let size = RawTerminal::current_size();
    // A size that cannot be set leaves the old one.
    let _ = runtime.act_on_process(id, None, Action::Resize(size)).await;
}

fn show(bytes: &[u8]) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(bytes).and_then(|()| out.flush());
}

fn read_keys() -> mpsc::Receiver<Bytes> {
    let (sender, keys) = mpsc::channel(16);
    tokio::spawn(async move {
        let mut stdin = tokio::io::stdin();
        let mut buffer = [0_u8; 1024];
        while let Ok(length) = stdin.read(&mut buffer).await {
            let bytes = Bytes::copy_from_slice(buffer.get(..length).unwrap_or_default());
            if length == 0 || sender.send(bytes).await.is_err() {
                return;
            }
        }
    });
    keys
}
