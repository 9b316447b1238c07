//! Incremental UTF-8 decoding.

use std::str::from_utf8;

/// Bounds one validated run, so that the later stages find it still in the cache.
const BLOCK: usize = 64 * 1024;

const REPLACEMENT: &str = "\u{FFFD}";

/// Decodes a byte stream as `String::from_utf8_lossy` would decode the whole of it.
#[derive(Debug, Clone, Default)]
pub(super) struct Decoder {
    /// The start of a character whose end has not arrived; the fourth byte only completes it.
    held: [u8; 4],
    held_len: usize,
    /// The text of a block with bad bytes, kept for its capacity.
    mended: String,
}

impl Decoder {
    /// Decodes the next bytes and hands the text to `emit`.
    pub(super) fn push(&mut self, bytes: &[u8], mut emit: impl FnMut(&str)) {
        let bytes = self.complete(bytes, &mut emit);
        for block in bytes.chunks(BLOCK) {
            let block = self.complete(block, &mut emit);
            self.decode(block, &mut emit);
        }
    }

    /// Ends the stream: a character cut short becomes one replacement character.
    pub(super) fn finish(&mut self, mut emit: impl FnMut(&str)) {
        if self.held_len > 0 {
            self.held_len = 0;
            emit(REPLACEMENT);
        }
    }

    /// Feeds the held start of a character from `bytes` and returns what it did not use.
    fn complete<'b>(&mut self, mut bytes: &'b [u8], emit: &mut impl FnMut(&str)) -> &'b [u8] {
        while self.held_len > 0 {
            let Some((&byte, rest)) = bytes.split_first() else {
                break;
            };
            let len = self.held_len + 1;
            self.held[len - 1] = byte;
            match from_utf8(&self.held[..len]) {
                Ok(char) => {
                    emit(char);
                    self.held_len = 0;
                    bytes = rest;
                }
                Err(error) if error.error_len().is_none() => {
                    self.held_len = len;
                    bytes = rest;
                }
                // The held bytes were a good start, so the new byte is the one that does not
                // belong: it may itself start a character and stays in `bytes`.
                Err(_) => {
                    emit(REPLACEMENT);
                    self.held_len = 0;
                }
            }
        }
        bytes
    }

    fn decode(&mut self, bytes: &[u8], emit: &mut impl FnMut(&str)) {
        match from_utf8(bytes) {
            Ok("") => return,
            Ok(text) => return emit(text),
            Err(_) => self.mended.clear(),
        }
        // Mended in one piece: bad bytes come in crowds, and every piece has its price later.
        let mut left = bytes.len();
        for chunk in bytes.utf8_chunks() {
            let bad = chunk.invalid();
            left -= chunk.valid().len() + bad.len();
            self.mended.push_str(chunk.valid());
            if left == 0 && from_utf8(bad).is_err_and(|error| error.error_len().is_none()) {
                self.held[..bad.len()].copy_from_slice(bad);
                self.held_len = bad.len();
            } else if !bad.is_empty() {
                self.mended.push_str(REPLACEMENT);
            }
        }
        if !self.mended.is_empty() {
            emit(&self.mended);
        }
    }
}

#[cfg(test)]
#[path = "utf8_tests.rs"]
mod tests;
