//! Keeping the head and the tail of a text of any length.

use super::TextSink;

/// Bounds a transcript whose caller has no wish of its own, in characters.
pub const DEFAULT_LIMIT: usize = 50_000;

/// Bounds the growth between two trims of the tail, beyond the part it keeps.
const SLACK: usize = 8 * 1024;

/// Holds a text after the cut, and what the cut left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cut {
    /// The text; when truncated, with one line in it that says what is missing.
    pub text: String,
    /// Whether anything is missing.
    pub truncated: bool,
    /// The characters of the whole text.
    pub total_chars: u64,
    /// The lines of the whole text; a last line without a line feed counts.
    pub total_lines: u64,
    /// The characters kept, without the line that says what is missing.
    pub shown_chars: u64,
    /// The characters left out.
    pub omitted_chars: u64,
    /// The lines that were left out in whole or in part.
    pub omitted_lines: u64,
}

/// Keeps at most a number of characters: all, or the first 40 % and the last 60 % of them.
///
/// Each part is shortened to whole lines where that costs less than a tenth of it. The line that
/// says what is missing comes on top of the limit.
#[derive(Debug, Clone)]
pub struct HeadTail {
    head: String,
    head_chars: usize,
    head_limit: usize,
    tail: String,
    tail_chars: usize,
    tail_limit: usize,
    /// The last character dropped from the tail was a line feed.
    gap_ends_line: bool,
    total_chars: u64,
    total_feeds: u64,
}

impl HeadTail {
    /// Starts an empty text that keeps at most `limit_chars` characters.
    #[must_use]
    pub fn new(limit_chars: usize) -> Self {
        // Divided first, so that no limit is too large to compute with.
        let head_limit = limit_chars / 5 * 2 + limit_chars % 5 * 2 / 5;
        Self {
            head: String::new(),
            head_chars: 0,
            head_limit,
            tail: String::new(),
            tail_chars: 0,
            tail_limit: limit_chars - head_limit,
            gap_ends_line: false,
            total_chars: 0,
            total_feeds: 0,
        }
    }

    /// Takes the next piece of text.
    pub fn push(&mut self, text: &str) {
        let mut rest = text;
        while !rest.is_empty() {
            let mut end = rest.len().min(SLACK);
            while !rest.is_char_boundary(end) {
                end -= 1;
            }
            self.push_piece(&rest[..end]);
            rest = &rest[end..];
        }
    }

    /// Ends the text and hands it over.
    #[must_use]
    pub fn finish(mut self) -> Cut {
        self.trim_tail();
        let total_lines = self.total_feeds + u64::from(!self.ends_line());
        let mut cut = Cut {
            truncated: self.omitted_chars() > 0,
            total_chars: self.total_chars,
            total_lines,
            ..Cut::default()
        };
        if cut.truncated {
            self.cut_at_lines();
            cut.omitted_chars = self.omitted_chars();
            let shown_feeds = count_feeds(&self.head) + count_feeds(&self.tail);
            cut.omitted_lines = self.total_feeds - shown_feeds + u64::from(!self.gap_ends_line);
        }
        cut.shown_chars = cut.total_chars - cut.omitted_chars;
        cut.text = self.head;
        if cut.truncated {
            if !cut.text.is_empty() && !cut.text.ends_with('\n') {
                cut.text.push('\n');
            }
            let notice = format!(
                "[… {} of {} characters left out ({} of {} lines) …]\n",
                cut.omitted_chars, cut.total_chars, cut.omitted_lines, cut.total_lines
            );
            cut.text.push_str(&notice);
        }
        cut.text.push_str(&self.tail);
        cut
    }

    fn push_piece(&mut self, piece: &str) {
        let mut chars = piece.chars().count();
        self.total_chars += chars as u64;
        self.total_feeds += count_feeds(piece);
        let mut rest = piece;
        let room = self.head_limit - self.head_chars;
        if room > 0 {
            let taken = chars.min(room);
            let (head, tail) = piece.split_at(byte_offset(piece, chars, taken));
            self.head.push_str(head);
            self.head_chars += taken;
            chars -= taken;
            rest = tail;
        }
        self.tail.push_str(rest);
        self.tail_chars += chars;
        if self.tail_chars > self.tail_limit.saturating_mul(2).saturating_add(SLACK) {
            self.trim_tail();
        }
    }

    fn trim_tail(&mut self) {
        let excess = self.tail_chars.saturating_sub(self.tail_limit);
        self.drop_from_tail(excess);
    }

    fn drop_from_tail(&mut self, chars: usize) {
        let end = byte_offset(&self.tail, self.tail_chars, chars);
        if let Some(last) = self.tail.as_bytes()[..end].last() {
            self.gap_ends_line = *last == b'\n';
            self.tail.drain(..end);
            self.tail_chars -= chars;
        }
    }

    fn omitted_chars(&self) -> u64 {
        self.total_chars - (self.head_chars + self.tail_chars) as u64
    }

    /// Tells whether the whole text is empty or ends with a line feed.
    fn ends_line(&self) -> bool {
        if self.total_chars == 0 {
            return true;
        }
        if !self.tail.is_empty() {
            return self.tail.ends_with('\n');
        }
        if self.omitted_chars() > 0 {
            return self.gap_ends_line;
        }
        self.head.ends_with('\n')
    }

    /// Moves both edges of the gap to the ends of lines, where that is cheap.
    fn cut_at_lines(&mut self) {
        if let Some(feed) = self.head.rfind('\n') {
            let cost = self.head[feed + 1..].chars().count();
            if cost * 10 < self.head_chars {
                self.head.truncate(feed + 1);
                self.head_chars -= cost;
            }
        }
        if !self.gap_ends_line
            && let Some(feed) = self.tail.find('\n')
        {
            let cost = self.tail[..=feed].chars().count();
            if cost * 10 < self.tail_chars {
                self.drop_from_tail(cost);
            }
        }
    }
}

impl Default for HeadTail {
    fn default() -> Self {
        Self::new(DEFAULT_LIMIT)
    }
}

impl TextSink for HeadTail {
    fn push(&mut self, text: &str) {
        Self::push(self, text);
    }
}

fn count_feeds(text: &str) -> u64 {
    memchr::memchr_iter(b'\n', text.as_bytes()).count() as u64
}

/// Finds where the first `wanted` of a text's `chars` characters end.
fn byte_offset(text: &str, chars: usize, wanted: usize) -> usize {
    if text.len() == chars {
        return wanted;
    }
    text.char_indices()
        .nth(wanted)
        .map_or(text.len(), |(at, _)| at)
}

#[cfg(test)]
#[path = "cut_tests.rs"]
mod tests;
