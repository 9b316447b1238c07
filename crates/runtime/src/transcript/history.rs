//! The text above the rows being edited.

use memchr::memrchr;

use super::TextSink;

/// Bounds the rows that can still be edited.
pub(super) const ROWS: usize = 64;

/// Bounds a row that can still be edited: bytes of text here, characters in the screen's cells.
pub(super) const ROW_CAP: usize = 4096;

/// Makes trimming rare enough to cost nothing per byte.
const SLACK: usize = 64 * 1024;

/// Keeps the most recent text as one string, from which rows are taken back only when the cursor
/// returns to them.
///
/// What a later cursor move can reach is decided by the text alone, never by when it was trimmed.
#[derive(Debug, Clone, Default)]
pub(super) struct History {
    text: String,
    /// Nothing before this offset can be taken back.
    sealed: usize,
    /// The length kept by the last trim.
    kept: usize,
}

impl History {
    pub(super) fn push(&mut self, text: &str, sink: &mut dyn TextSink) {
        self.text.push_str(text);
        self.trim(sink);
    }

    pub(super) fn push_cells(&mut self, cells: &[char], sink: &mut dyn TextSink) {
        self.text.extend(cells);
        self.trim(sink);
    }

    /// Makes the text so far final: the row that follows continues its last line.
    pub(super) fn seal(&mut self) {
        self.sealed = self.text.len();
    }

    /// Tells whether the last line has no text that could be overwritten.
    pub(super) fn at_row_start(&self) -> bool {
        self.text.len() == self.sealed || self.text.ends_with('\n')
    }

    /// Takes back the last line, the one without a line feed.
    pub(super) fn take_row(&mut self, cells: &mut Vec<char>) {
        let (start, whole) = self.row_start(self.text.len());
        if !whole {
            self.sealed = start;
        }
        cells.extend(self.text[start..].chars());
        self.text.truncate(start);
    }

    /// Takes back the line above the one taken last, and says whether there was one.
    pub(super) fn take_row_above(&mut self, cells: &mut Vec<char>) -> bool {
        if self.text.len() == self.sealed || !self.text.ends_with('\n') {
            return false;
        }
        self.text.pop();
        self.take_row(cells);
        true
    }

    /// Hands all text to the sink.
    pub(super) fn finish(self, sink: &mut dyn TextSink) {
        if !self.text.is_empty() {
            sink.push(&self.text);
        }
    }

    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.text.capacity()
    }

    /// Finds where the editable row that ends at `end` starts, and whether that is its whole line.
    fn row_start(&self, end: usize) -> (usize, bool) {
        // One byte more than a row holds, so that the line feed before a full row is seen.
        let from = end.saturating_sub(ROW_CAP + 1).max(self.sealed);
        match memrchr(b'\n', &self.text.as_bytes()[from..end]) {
            Some(at) => (from + at + 1, true),
            None if end - from <= ROW_CAP => (from, true),
            None => {
                let mut start = end - ROW_CAP;
                while !self.text.is_char_boundary(start) {
                    start += 1;
                }
                (start, false)
            }
        }
    }

    /// Hands on what no cursor move can reach any more, when there is enough of it.
    fn trim(&mut self, sink: &mut dyn TextSink) {
        if self.text.len() < 2 * self.kept + SLACK {
            return;
        }
        let (mut start, mut whole) = self.row_start(self.text.len());
        for _ in 0..ROWS {
            if !whole || start <= self.sealed {
                break;
            }
            (start, whole) = self.row_start(start - 1);
        }
        if start > 0 {
            sink.push(&self.text[..start]);
            self.text.drain(..start);
        }
        self.sealed = 0;
        self.kept = self.text.len();
    }
}
