//! Finding our own lines in what a program prints.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf};
use tokio::sync::Notify;

use crate::pipe::{Complaint, readable};
use crate::{Launched, Silence};

/// How much of a program's output is looked through for an answer.
const MAX_OUTPUT: usize = 128 * 1024;

/// What stands behind the nonce in the last line.
const END: &str = "end:";

/// Reads what a program prints until it has answered, and returns the lines with our nonce.
pub(super) async fn collect(
    launched: Launched,
    nonce: &str,
    limit: Duration,
) -> Result<Vec<String>, Silence> {
    let Launched {
        stdin: _stdin,
        mut stdout,
        stderr,
        keep: _keep,
    } = launched;
    let complaint = Complaint::collect(stderr);
    let witness = Witness::new(nonce);
    let reading = async {
        let mut buffer = vec![0_u8; 8192];
        while let Ok(length @ 1..) = stdout.read(&mut buffer).await {
            if witness.note(buffer.get(..length).unwrap_or_default()) {
                break;
            }
        }
    };
    let ended = tokio::time::timeout(limit, reading).await.is_ok();
    let answers = witness.answers();
    if answers.is_empty() {
        return Err(Silence {
            said: readable(&witness.seen()),
            complaint: complaint.finish(ended).await,
            ended,
        });
    }
    Ok(answers)
}

/// Remembers the beginning of what a program prints, and finds our answers in it.
#[derive(Clone)]
pub(super) struct Witness(Arc<Notes>);

struct Notes {
    nonce: String,
    seen: Mutex<Option<Vec<u8>>>,
    ended: Notify,
}

impl Witness {
    fn new(nonce: &str) -> Self {
        Self(Arc::new(Notes {
            nonce: nonce.to_owned(),
            seen: Mutex::new(Some(Vec::new())),
            ended: Notify::new(),
        }))
    }

    /// Watches the stdout of a program.
    pub(super) fn of(launched: &mut Launched, nonce: &str) -> Self {
        let witness = Self::new(nonce);
        let nothing = Box::new(tokio::io::empty());
        launched.stdout = Box::new(Watched {
            reader: std::mem::replace(&mut launched.stdout, nothing),
            witness: witness.clone(),
        });
        witness
    }

    /// Waits for the end of the answers; what is printed must be read meanwhile.
    pub(super) async fn ended(&self) {
        self.0.ended.notified().await;
    }

    /// Returns the answers so far: what stands behind `<nonce>:`, to the end of its line.
    pub(super) fn answers(&self) -> Vec<String> {
        let seen = self.seen();
        let text = String::from_utf8_lossy(&seen);
        text.split(&format!("{}:", self.0.nonce))
            .skip(1)
            .filter_map(|rest| rest.lines().next())
            .filter(|line| *line != END)
            .map(|line| line.chars().filter(|c| !c.is_control()).collect())
            .collect()
    }

    /// Stops watching.
    pub(super) fn dismiss(&self) {
        *self.0.seen.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn seen(&self) -> Vec<u8> {
        let seen = self.0.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.clone().unwrap_or_default()
    }

    /// Takes what was printed; tells whether the answers have ended.
    fn note(&self, bytes: &[u8]) -> bool {
        let mut seen = self.0.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(seen) = seen.as_mut() else {
            return false;
        };
        let marker = format!("{}:{END}", self.0.nonce);
        // Only the part a match could start in is searched again.
        let from = seen.len().saturating_sub(marker.len());
        let room = MAX_OUTPUT.saturating_sub(seen.len());
        seen.extend_from_slice(bytes.get(..bytes.len().min(room)).unwrap_or_default());
        let ended = seen.get(from..).is_some_and(|tail| {
            tail.windows(marker.len())
                .any(|part| part == marker.as_bytes())
        });
        if ended {
            self.0.ended.notify_one();
        }
        ended
    }
}

/// A reader with a witness.
struct Watched {
    reader: Box<dyn AsyncRead + Send + Unpin>,
    witness: Witness,
}

impl AsyncRead for Watched {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.reader).poll_read(context, buffer);
        self.witness
            .note(buffer.filled().get(before..).unwrap_or_default());
        polled
    }
}
