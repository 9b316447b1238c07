//! Finding our own lines in what a program prints.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, ReadBuf};

use crate::pipe::{Complaint, readable};
use crate::{Launched, Silence};

/// How much of a program's output is looked through for an answer.
const MAX_OUTPUT: usize = 128 * 1024;

/// Reads all a program prints, and finds the lines with our nonce.
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
    let mut output = Vec::new();
    let reading = read_all(&mut stdout, &mut output);
    let ended = tokio::time::timeout(limit, reading).await.is_ok();
    let answers = answers(&output, nonce);
    if answers.is_empty() {
        return Err(Silence {
            said: readable(&output),
            complaint: complaint.finish(ended).await,
            ended,
        });
    }
    Ok(answers)
}

/// Reads to the end and keeps the beginning.
async fn read_all(reader: &mut (dyn AsyncRead + Send + Unpin), output: &mut Vec<u8>) {
    let mut buffer = vec![0_u8; 8192];
    while let Ok(length @ 1..) = reader.read(&mut buffer).await {
        let room = MAX_OUTPUT.saturating_sub(output.len());
        output.extend_from_slice(buffer.get(..length.min(room)).unwrap_or_default());
    }
}

/// Finds what stands behind `<nonce>:`, up to the end of its line each time.
pub(super) fn answers(output: &[u8], nonce: &str) -> Vec<String> {
    let text = String::from_utf8_lossy(output);
    text.split(&format!("{nonce}:"))
        .skip(1)
        .filter_map(|rest| rest.lines().next())
        .map(|line| line.chars().filter(|c| !c.is_control()).collect())
        .collect()
}

/// Remembers the beginning of what a program prints, for whoever finds no guest there.
#[derive(Clone)]
pub(super) struct Witness(Arc<Mutex<Option<Vec<u8>>>>);

impl Witness {
    /// Watches the stdout of a program.
    pub(super) fn of(launched: &mut Launched) -> Self {
        let witness = Self(Arc::new(Mutex::new(Some(Vec::new()))));
        let nothing = Box::new(tokio::io::empty());
        launched.stdout = Box::new(Watched {
            reader: std::mem::replace(&mut launched.stdout, nothing),
            witness: witness.clone(),
        });
        witness
    }

    /// Returns what was printed so far.
    pub(super) fn seen(&self) -> Vec<u8> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.clone().unwrap_or_default()
    }

    /// Stops watching.
    pub(super) fn dismiss(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn note(&self, bytes: &[u8]) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(seen) = seen.as_mut() {
            let room = MAX_OUTPUT.saturating_sub(seen.len());
            seen.extend_from_slice(bytes.get(..bytes.len().min(room)).unwrap_or_default());
        }
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
