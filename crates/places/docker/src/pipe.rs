//! Reaching the guest in a container.

use std::time::Duration;

use exoshell_place::{Launched, Pipe, PlaceError, nonce};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::classify;
use crate::engine::Engine;

/// How long a guest may take to announce itself.
const ANNOUNCE_LIMIT: Duration = Duration::from_secs(20);

/// What the guest says where none is running.
const NO_GUEST: &str = "no guest here";

/// How an attempt to reach the guest ended.
#[derive(Debug)]
pub(crate) enum Attached {
    /// It answers.
    Pipe(Box<Pipe>),
    /// The container does not run, or is gone.
    Stopped,
    /// The container runs, but there is no guest in it; this is why.
    Without(String),
}

/// How a guest is called.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    /// The guest's path in the container.
    pub(crate) guest: &'a str,
    /// Its folders.
    pub(crate) dirs: &'a [&'a str],
    /// Whether one must be running already.
    pub(crate) existing: bool,
}

/// Opens a pipe to the guest of a container.
pub(crate) async fn attach(
    engine: &Engine,
    container: &str,
    call: Call<'_>,
) -> Result<Attached, PlaceError> {
    let nonce = nonce()?;
    let mut program = vec![call.guest.to_owned(), "attach".to_owned()];
    for dir in call.dirs {
        program.extend(["--dir".to_owned(), (*dir).to_owned()]);
    }
    program.extend(["--nonce".to_owned(), nonce.clone()]);
    if call.existing {
        program.push("--existing".to_owned());
    }
    let launched = match engine.exec(container, &program).await {
        Ok(launched) => launched,
        Err(error) => return understand(&error.to_string(), call.guest).ok_or(error),
    };
    match Pipe::announced(launched, &nonce, ANNOUNCE_LIMIT).await {
        Ok(pipe) => Ok(Attached::Pipe(Box::new(pipe))),
        Err(silence) => {
            let text = format!("{}\n{}", silence.complaint, silence.said);
            match understand(&text, call.guest) {
                Some(attached) => Ok(attached),
                // A container that ends takes its programs along without a word.
                None => match engine.container(container).await? {
                    Some(found) if found.is_running() => Err(silence.into()),
                    _ => Ok(Attached::Stopped),
                },
            }
        }
    }
}

/// Reads out of an engine's or guest's words that it is not there.
fn understand(text: &str, guest: &str) -> Option<Attached> {
    if classify::is_gone(text) || classify::is_stopped(text) {
        Some(Attached::Stopped)
    } else if text.contains(NO_GUEST) || classify::guest_cannot_run(text, guest) {
        Some(Attached::Without(classify::quote(text)))
    } else {
        None
    }
}

/// What a program in a container printed.
#[derive(Debug, Default)]
pub(crate) struct Printed {
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs a short program in a container to its end.
pub(crate) async fn run(
    engine: &Engine,
    container: &str,
    program: &[String],
    input: &[u8],
    limit: Duration,
) -> Result<Printed, PlaceError> {
    /// No program that we run prints more.
    const MAX_OUTPUT: u64 = 64 * 1024;
    let Launched {
        mut stdin,
        stdout,
        stderr,
        keep,
    } = engine.exec(container, program).await?;
    let work = async {
        let write = async move {
            // One that ends early says why by itself.
            let _ = stdin.write_all(input).await;
            let _ = stdin.shutdown().await;
            // The pipe of a client process ends only when it is closed.
            drop(stdin);
        };
        let (mut out, mut complaint) = (Vec::new(), Vec::new());
        let (mut stdout, mut stderr) = (stdout.take(MAX_OUTPUT), stderr.take(MAX_OUTPUT));
        let (read, complaints) = (
            stdout.read_to_end(&mut out),
            stderr.read_to_end(&mut complaint),
        );
        // What was read before an error is all there is.
        let _ = tokio::join!(write, read, complaints);
        Printed {
            stdout: String::from_utf8_lossy(&out).into_owned(),
            stderr: String::from_utf8_lossy(&complaint).into_owned(),
        }
    };
    let printed = tokio::time::timeout(limit, work).await;
    drop(keep);
    printed.map_err(|_late| {
        classify::too_slow(
            engine.name(),
            "run a program in the container",
            limit.as_secs(),
        )
    })
}
