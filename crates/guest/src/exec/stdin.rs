//! What a command reads.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;

use bytes::Bytes;
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe::Sender;

use crate::output;

/// How much stdin is held for a command that does not read it yet.
const MAX_PENDING: usize = 256 * 1024;

/// What is still to be written to a command's stdin.
pub(super) struct Stdin {
    pipe: Option<Sender>,
    pending: VecDeque<Bytes>,
    bytes: usize,
    last: bool,
}

impl Stdin {
    /// Takes the pipe, or closes it at once when nothing will come.
    pub(super) fn new(pipe: Option<OwnedFd>) -> Self {
        Self {
            pipe: pipe.and_then(|pipe| output::sender(pipe).ok()),
            pending: VecDeque::new(),
            bytes: 0,
            last: false,
        }
    }

    pub(super) const fn has_room(&self) -> bool {
        self.bytes < MAX_PENDING
    }

    pub(super) fn push(&mut self, bytes: Bytes, last: bool) {
        self.last |= last;
        if self.pipe.is_some() && !bytes.is_empty() {
            self.bytes += bytes.len();
            self.pending.push_back(bytes);
        }
        self.close_at_end();
    }

    /// Closes the pipe behind the last byte.
    fn close_at_end(&mut self) {
        if self.last && self.pending.is_empty() {
            self.pipe = None;
        }
    }

    /// Writes some of what is pending; waits for ever when there is nothing to do.
    pub(super) async fn progress(&mut self) {
        let (Some(pipe), Some(front)) = (&mut self.pipe, self.pending.front_mut()) else {
            return std::future::pending().await;
        };
        if let Ok(written) = pipe.write(front).await {
            let _ = front.split_to(written);
            self.bytes -= written;
            if front.is_empty() {
                self.pending.pop_front();
            }
        } else {
            // The command does not want to read any more.
            self.pipe = None;
            self.pending.clear();
            self.bytes = 0;
        }
        self.close_at_end();
    }
}
