//! Watching a process's output for lines that match.

use std::time::{Duration, Instant};

use exoshell_wire::{Failure, FailureKind, Happened, RawBytes};
use regex_lite::Regex;

/// The least time between two events of one process.
const QUIET: Duration = Duration::from_secs(5);

/// How many matches may be held back before the watch is switched off.
const FLOOD: u64 = 1000;

/// The longest line that is looked at; the rest of a longer one is skipped.
const MAX_LINE: usize = 8 * 1024;

/// Reads a regular expression.
pub(crate) fn parse(pattern: &str) -> Result<Regex, Failure> {
    Regex::new(pattern).map_err(|error| {
        Failure::new(
            FailureKind::BadRequest,
            format!("`{pattern}` is not a regular expression: {error}"),
        )
    })
}

/// Cuts a stream into lines, however it arrives.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    partial: Vec<u8>,
}

impl Lines {
    /// Takes bytes and hands on every line they complete.
    pub(crate) fn push(&mut self, bytes: &[u8], mut line: impl FnMut(&[u8])) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|b| *b == b'\n') {
            let (head, tail) = rest.split_at(end);
            self.extend(head);
            line(&self.partial);
            self.partial.clear();
            rest = tail.get(1..).unwrap_or_default();
        }
        self.extend(rest);
    }

    /// Returns what came since the last line end.
    pub(crate) fn unfinished(&self) -> &[u8] {
        &self.partial
    }

    fn extend(&mut self, bytes: &[u8]) {
        let room = MAX_LINE.saturating_sub(self.partial.len());
        self.partial
            .extend_from_slice(bytes.get(..room.min(bytes.len())).unwrap_or_default());
    }
}

/// The watch of one process.
#[derive(Debug)]
pub(crate) struct Watch {
    patterns: Vec<Regex>,
    lines: Lines,
    last: Option<Instant>,
    suppressed: u64,
    off: bool,
}

impl Watch {
    pub(crate) fn new(patterns: &[String]) -> Result<Self, Failure> {
        Ok(Self {
            patterns: patterns
                .iter()
                .map(|p| parse(p))
                .collect::<Result<_, _>>()?,
            lines: Lines::default(),
            last: None,
            suppressed: 0,
            off: patterns.is_empty(),
        })
    }

    /// Takes output and returns what is worth an event.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Vec<Happened> {
        if self.off {
            return Vec::new();
        }
        let mut lines = std::mem::take(&mut self.lines);
        let mut events = Vec::new();
        lines.push(bytes, |line| self.look(line, &mut events));
        self.lines = lines;
        events
    }

    /// Looks at the last line, which may lack its line end.
    pub(crate) fn finish(&mut self) -> Vec<Happened> {
        let mut events = Vec::new();
        let lines = std::mem::take(&mut self.lines);
        if !self.off && !lines.unfinished().is_empty() {
            self.look(lines.unfinished(), &mut events);
        }
        self.off = true;
        events
    }

    fn look(&mut self, line: &[u8], events: &mut Vec<Happened>) {
        if self.off {
            return;
        }
        let text = String::from_utf8_lossy(line);
        let Some(pattern) = self.patterns.iter().find(|p| p.is_match(&text)) else {
            return;
        };
        if self.last.is_some_and(|last| last.elapsed() < QUIET) {
            self.suppressed += 1;
            if self.suppressed >= FLOOD {
                self.off = true;
                events.push(Happened::WatchOff {
                    why: format!(
                        "over {FLOOD} lines matched within {} s; the watch is switched off",
                        QUIET.as_secs()
                    ),
                });
            }
            return;
        }
        self.last = Some(Instant::now());
        events.push(Happened::Matched {
            pattern: pattern.as_str().to_owned(),
            line: RawBytes(
                line.get(..line.len().min(1000))
                    .unwrap_or_default()
                    .to_vec(),
            ),
            suppressed: std::mem::take(&mut self.suppressed),
        });
    }
}

#[cfg(test)]
#[path = "watch_tests.rs"]
mod tests;
