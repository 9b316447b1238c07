//! Turns the raw bytes of a command's output into the text a person would have seen, and cuts it.
//!
//! The stages run in a fixed order, each within bounded memory, whatever the size of the stream:
//!
//! 1. decode: bytes become UTF-8, bad ones U+FFFD, as `String::from_utf8_lossy` would do at once;
//! 2. normalise: escape sequences go, overwritten and erased text goes ([`Normaliser`]);
//! 3. filter: the seam for redaction ([`TextFilter`]), before the cut so that no secret can hide
//!    by being split at the edge of what is kept;
//! 4. cut: head and tail stay, the middle goes ([`HeadTail`]).
//!
//! No stage's result depends on how the stream was divided into chunks.

mod cut;
mod history;
mod normaliser;
mod parser;
mod screen;
mod utf8;

use std::fmt;

pub use cut::{Cut, DEFAULT_LIMIT, HeadTail};
pub use normaliser::Normaliser;

/// Receives text in order, in pieces of any size.
pub trait TextSink {
    /// Takes the next piece of text.
    fn push(&mut self, text: &str);
}

impl TextSink for String {
    fn push(&mut self, text: &str) {
        self.push_str(text);
    }
}

/// Rewrites text on its way from the normaliser to the cut.
///
/// Pieces end anywhere, also in the middle of a word: a filter that looks for patterns holds back
/// what may be the start of one, and hands it over in [`TextFilter::finish`].
pub trait TextFilter {
    /// Takes the next piece of text and hands on what is certain.
    fn push(&mut self, text: &str, out: &mut dyn TextSink);

    /// Hands on what was held back: no more text will come.
    fn finish(&mut self, out: &mut dyn TextSink);
}

/// Collects a command's output as cut, readable text.
pub struct Transcript {
    normaliser: Normaliser,
    filter: Option<Box<dyn TextFilter + Send>>,
    cut: HeadTail,
    raw_bytes: u64,
}

impl Transcript {
    /// Starts an empty transcript that keeps at most `limit_chars` characters.
    #[must_use]
    pub fn new(limit_chars: usize) -> Self {
        Self {
            normaliser: Normaliser::new(),
            filter: None,
            cut: HeadTail::new(limit_chars),
            raw_bytes: 0,
        }
    }

    /// Starts an empty transcript whose text passes `filter` before it is cut.
    #[must_use]
    pub fn with_filter(limit_chars: usize, filter: Box<dyn TextFilter + Send>) -> Self {
        Self {
            filter: Some(filter),
            ..Self::new(limit_chars)
        }
    }

    /// Takes the next bytes of the output.
    pub fn push(&mut self, bytes: &[u8]) {
        self.raw_bytes += bytes.len() as u64;
        match &mut self.filter {
            None => self.normaliser.push(bytes, &mut self.cut),
            Some(filter) => self.normaliser.push(
                bytes,
                &mut Filtered {
                    filter: filter.as_mut(),
                    out: &mut self.cut,
                },
            ),
        }
    }

    /// Counts the bytes taken so far.
    #[must_use]
    pub fn raw_bytes(&self) -> u64 {
        self.raw_bytes
    }

    /// Ends the output and hands over its text.
    #[must_use]
    pub fn finish(mut self) -> Cut {
        match &mut self.filter {
            None => self.normaliser.finish(&mut self.cut),
            Some(filter) => {
                self.normaliser.finish(&mut Filtered {
                    filter: filter.as_mut(),
                    out: &mut self.cut,
                });
                filter.finish(&mut self.cut);
            }
        }
        self.cut.finish()
    }
}

impl Default for Transcript {
    fn default() -> Self {
        Self::new(DEFAULT_LIMIT)
    }
}

impl fmt::Debug for Transcript {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transcript")
            .field("raw_bytes", &self.raw_bytes)
            .field("filtered", &self.filter.is_some())
            .finish_non_exhaustive()
    }
}

/// Makes a filter and what follows it one sink.
struct Filtered<'a> {
    filter: &'a mut (dyn TextFilter + Send),
    out: &'a mut HeadTail,
}

impl TextSink for Filtered<'_> {
    fn push(&mut self, text: &str) {
        self.filter.push(text, self.out);
    }
}

#[cfg(test)]
#[path = "mod_tests.rs"]
mod tests;
