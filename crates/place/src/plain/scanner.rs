//! Telling a command's output from the reports among it.

use bytes::{Buf as _, Bytes, BytesMut};
use memchr::memmem;

use super::script::MARK;

/// How much of what comes before the first report is kept, to explain why none comes.
const MAX_NOISE: usize = 8 * 1024;

/// How long a report may be.
const MAX_REPORT: usize = 16 * 1024 * 1024;

/// A part of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// What the command wrote.
    Text(Bytes),
    /// A report: its kind and its content.
    Report(u8, Bytes),
    /// The end, with the exit code. Nothing that follows is of interest.
    End(i32),
}

/// Where the bytes belong that are no marker.
#[derive(Debug, PartialEq, Eq)]
enum Inside {
    Noise,
    Text,
    Report(u8),
    End,
    Over,
}

/// Finds the reports in a stream, however it is cut into reads.
#[derive(Debug)]
pub(super) struct Scanner {
    marker: Vec<u8>,
    held: BytesMut,
    inside: Inside,
    noise: Vec<u8>,
    report: BytesMut,
}

impl Scanner {
    /// Looks for reports that carry this nonce.
    pub(super) fn new(nonce: &str) -> Self {
        Self {
            marker: [&[MARK], nonce.as_bytes()].concat(),
            held: BytesMut::new(),
            inside: Inside::Noise,
            noise: Vec::new(),
            report: BytesMut::new(),
        }
    }

    /// Returns what came before the first report, or its beginning.
    pub(super) fn noise(&self) -> &[u8] {
        &self.noise
    }

    /// Takes bytes as they were read.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        if self.inside != Inside::Over {
            self.held.extend_from_slice(bytes);
        }
    }

    /// Returns the next part, if it is there.
    pub(super) fn next(&mut self) -> Option<Piece> {
        loop {
            if self.inside == Inside::End {
                return self.end();
            }
            let Some(at) = memmem::find(&self.held, &self.marker) else {
                let safe = self.held.len() - self.possible_marker();
                return self.take(safe);
            };
            if at > 0 {
                if let Some(piece) = self.take(at) {
                    return Some(piece);
                }
                continue;
            }
            let kind = *self.held.get(self.marker.len())?;
            self.held.advance(self.marker.len() + 1);
            if let Some(report) = self.enter(kind) {
                return Some(report);
            }
        }
    }

    /// Returns the rest, when nothing more will come.
    pub(super) fn rest(&mut self) -> Option<Piece> {
        self.take(self.held.len())
    }

    /// Tells how many of the last bytes may be the beginning of a marker.
    fn possible_marker(&self) -> usize {
        let start = self.held.len().saturating_sub(self.marker.len() - 1);
        let tail = self.held.get(start..).unwrap_or_default();
        let begins = |at: &usize| self.marker.starts_with(tail.get(*at..).unwrap_or_default());
        let first = memchr::memchr_iter(MARK, tail).find(begins);
        first.map_or(0, |at| tail.len() - at)
    }

    /// Takes bytes that are no marker to where they belong.
    fn take(&mut self, length: usize) -> Option<Piece> {
        if length == 0 {
            return None;
        }
        let bytes = self.held.split_to(length);
        match self.inside {
            Inside::Text => return Some(Piece::Text(bytes.freeze())),
            Inside::Noise => {
                let room = MAX_NOISE.saturating_sub(self.noise.len());
                let kept = bytes.get(..length.min(room)).unwrap_or_default();
                self.noise.extend_from_slice(kept);
            }
            Inside::Report(_) if self.report.len() + length <= MAX_REPORT => {
                self.report.extend_from_slice(&bytes);
            }
            Inside::Report(_) | Inside::End | Inside::Over => {}
        }
        None
    }

    fn enter(&mut self, kind: u8) -> Option<Piece> {
        match kind {
            b'E' => {
                let Inside::Report(kind) = self.inside else {
                    return None;
                };
                self.inside = Inside::Text;
                return Some(Piece::Report(kind, self.report.split().freeze()));
            }
            b'X' => self.inside = Inside::End,
            kind => {
                self.inside = Inside::Report(kind);
                self.report.clear();
            }
        }
        None
    }

    fn end(&mut self) -> Option<Piece> {
        let length = memchr::memchr(b';', &self.held)?;
        let digits = self.held.split_to(length);
        let code = std::str::from_utf8(&digits)
            .ok()
            .and_then(|code| code.parse().ok());
        self.inside = Inside::Over;
        self.held.clear();
        Some(Piece::End(code.unwrap_or(-1)))
    }
}

#[cfg(test)]
#[path = "scanner_tests.rs"]
mod tests;
