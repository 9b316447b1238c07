//! The streaming path from bytes to final text.

use super::TextSink;
use super::parser::Parser;
use super::screen::Screen;
use super::utf8::Decoder;

/// Turns a byte stream into the text that stays visible, as it becomes final.
///
/// It behaves as a terminal without a right edge and 64 rows high: rows that leave its top are
/// final and go to the sink.
///
/// - All ECMA-48 sequences (CSI, OSC, DCS, SOS, PM, APC, two-byte and charset escapes, and their
///   C1 forms) and all control characters but line feed and tab are removed.
/// - Carriage return, backspace, `CSI A B C D E F G`, save and restore cursor, `CSI K`, `CSI J`
///   (to the end), `CSI X`, `CSI P` and `CSI @` edit the rows in the window.
/// - Whatever would hide text a person has seen has no effect: `CSI H`, `CSI 2J`, `CSI 3J`,
///   absolute rows, scroll regions, the alternate screen.
/// - Every character takes one column, wide and combining ones and tabs too.
/// - Only the last 4096 bytes of an unfinished line can still be overwritten.
/// - Moving right past the end of a row stops at column 256.
/// - An unterminated sequence ends at the latest after 256 characters (CSI), at the end of the line
///   or after 128 Ki characters (OSC, SOS, PM, APC) or after 4096 characters (DCS, which may hold
///   line feeds). What it swallowed until then is dropped.
#[derive(Debug, Clone, Default)]
pub struct Normaliser {
    decoder: Decoder,
    parser: Parser,
    screen: Screen,
}

impl Normaliser {
    /// Starts with an empty window.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes and hands text that became final to `sink`.
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn TextSink) {
        self.decoder.push(bytes, |text| {
            self.parser.feed(text, &mut self.screen, sink);
        });
    }

    /// Ends the stream and hands the rest of the text to `sink`.
    pub fn finish(mut self, sink: &mut dyn TextSink) {
        self.decoder.finish(|text| {
            self.parser.feed(text, &mut self.screen, sink);
        });
        self.screen.finish(sink);
    }

    #[cfg(test)]
    fn held_bytes(&self) -> usize {
        self.screen.held_bytes()
    }
}

#[cfg(test)]
#[path = "normaliser_tests.rs"]
mod tests;
