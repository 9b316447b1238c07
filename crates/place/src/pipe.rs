//! A byte pipe to a guest.

use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use exoshell_wire::{Preamble, PreambleScanner};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, ReadBuf};

use crate::{Launched, PlaceError};

/// How much of what a program says on its stderr is kept.
const MAX_COMPLAINT: usize = 8 * 1024;

/// How long stderr may take to end once stdout has.
const LAST_WORDS: Duration = Duration::from_secs(2);

/// An ordered, reliable byte pipe to a guest.
pub struct Pipe {
    pub(crate) reader: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) writer: Box<dyn AsyncWrite + Send + Unpin>,
    /// What was read already.
    pub(crate) early: Vec<u8>,
}

impl std::fmt::Debug for Pipe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pipe")
            .field("early", &self.early.len())
            .finish_non_exhaustive()
    }
}

/// Why no guest announced itself on a program's stdout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Silence {
    /// What it printed instead, made safe to show and cut.
    pub said: String,
    /// What it printed on stderr, likewise.
    pub complaint: String,
    /// Whether its stdout had ended; otherwise the time was up, or it printed too much.
    pub ended: bool,
}

impl Pipe {
    /// Wraps a pipe that leads straight to the guest's socket.
    pub fn direct(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self {
            reader: Box::new(reader),
            writer: Box::new(writer),
            early: Vec::new(),
        }
    }

    /// Waits until a guest announces itself with this nonce on a program's stdout, possibly
    /// behind noise of the place, and makes a pipe of the program's streams.
    pub async fn announced(
        launched: Launched,
        nonce: &str,
        limit: Duration,
    ) -> Result<Self, Silence> {
        let Launched {
            stdin,
            mut stdout,
            stderr,
            keep,
        } = launched;
        let complaint = Complaint::collect(stderr);
        let mut scanner = PreambleScanner::new(&Preamble::new(nonce));
        let found = tokio::time::timeout(limit, skip_noise(&mut stdout, &mut scanner)).await;
        let ended = match found {
            Ok(Some(early)) => {
                let reader = Kept {
                    reader: stdout,
                    _keep: keep,
                    _complaint: complaint,
                };
                return Ok(Self {
                    reader: Box::new(reader),
                    writer: stdin,
                    early,
                });
            }
            Ok(None) => true,
            Err(_late) => false,
        };
        let complaint = complaint.finish(ended).await;
        drop((stdin, keep));
        Err(Silence {
            said: readable(scanner.noise()),
            complaint,
            ended,
        })
    }
}

impl Silence {
    /// Describes it in one line.
    pub fn describe(&self) -> String {
        let how = if self.ended {
            "the pipe ended"
        } else {
            "no guest announced itself in time"
        };
        let quote = [&self.complaint, &self.said]
            .into_iter()
            .map(|text| text.trim())
            .find(|text| !text.is_empty());
        match quote {
            Some(text) => format!("{how}; it said `{text}`"),
            None => how.to_owned(),
        }
    }
}

impl From<Silence> for PlaceError {
    fn from(silence: Silence) -> Self {
        Self::NoHello {
            message: silence.describe(),
        }
    }
}

/// Reads past whatever a place prints first; `None` when that is all there is.
async fn skip_noise(
    reader: &mut (dyn AsyncRead + Send + Unpin),
    scanner: &mut PreambleScanner,
) -> Option<Vec<u8>> {
    let mut buffer = vec![0_u8; 8192];
    loop {
        let length = reader.read(&mut buffer).await.unwrap_or(0);
        if length == 0 {
            return None;
        }
        match scanner.push(buffer.get(..length).unwrap_or_default()) {
            Ok(Some(rest)) => return Some(rest),
            Ok(None) => {}
            Err(_too_much) => return None,
        }
    }
}

/// Makes foreign bytes safe to print: control characters are neutralised, the length is capped.
pub(crate) fn readable(bytes: &[u8]) -> String {
    let cut = bytes.get(..bytes.len().min(2000)).unwrap_or_default();
    let text = String::from_utf8_lossy(cut);
    let lines: Vec<String> = text
        .lines()
        .map(|line| line.chars().filter(|c| !c.is_control()).collect::<String>())
        .filter(|line| !line.trim().is_empty())
        .collect();
    lines.join("; ")
}

/// Empties a stderr and keeps its beginning.
pub(crate) struct Complaint {
    text: Arc<Mutex<Vec<u8>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Complaint {
    pub(crate) fn collect(mut stderr: Box<dyn AsyncRead + Send + Unpin>) -> Self {
        let text = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&text);
        let task = tokio::spawn(async move {
            let mut buffer = vec![0_u8; 1024];
            while let Ok(length @ 1..) = stderr.read(&mut buffer).await {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                let room = MAX_COMPLAINT.saturating_sub(kept.len());
                let fresh = buffer.get(..length.min(room)).unwrap_or_default();
                kept.extend_from_slice(fresh);
            }
        });
        Self { text, task }
    }

    pub(crate) async fn finish(mut self, ended: bool) -> String {
        if ended {
            // The last words may still be on their way; a grandchild may hold the stream open.
            let _ = tokio::time::timeout(LAST_WORDS, &mut self.task).await;
        }
        let text = self.text.lock().unwrap_or_else(PoisonError::into_inner);
        readable(&text)
    }
}

impl Drop for Complaint {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A reader that keeps its program alive.
struct Kept {
    reader: Box<dyn AsyncRead + Send + Unpin>,
    _keep: Box<dyn Send>,
    _complaint: Complaint,
}

impl AsyncRead for Kept {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.reader).poll_read(context, buffer)
    }
}

/// Returns a fresh random name: for nonces and for the ids of commands.
pub fn nonce() -> Result<String, PlaceError> {
    let mut bytes = [0_u8; 16];
    let flags = rustix::rand::GetRandomFlags::empty();
    rustix::rand::getrandom(&mut bytes, flags).map_err(|errno| PlaceError::Setup {
        action: "getting random bytes from the system".to_owned(),
        source: errno.into(),
        hint: "check that the system provides `getrandom`".to_owned(),
    })?;
    Ok(format!("{:032x}", u128::from_le_bytes(bytes)))
}
