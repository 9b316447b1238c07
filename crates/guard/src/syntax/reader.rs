//! The cursor under the parser: characters, limits, failures.

use super::heredoc::Pending;
use super::tree::List;
use crate::finding::Span;

/// How deep constructs may nest. bash itself has no limit; people stay below ten, and each level
/// costs a few kilobytes of stack in an unoptimised build.
const MAX_DEPTH: u32 = 60;

/// Steps allowed per byte of text. Each byte is read once, twice where a construct must be tried
/// in two ways; only hostile nesting of such constructs needs more.
const STEPS_PER_BYTE: usize = 12;

/// Why a text could not be parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) at: usize,
    pub(crate) what: &'static str,
    /// Whether a limit was reached and the text may well be valid.
    pub(crate) limit: bool,
}

pub(super) type Parsed<T> = Result<T, Failure>;

/// Parses one text.
#[derive(Debug)]
pub(crate) struct Parser<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    /// Where the text ends for now; here-documents are parsed in place.
    pub(super) end: usize,
    pub(super) pending: Vec<Pending>,
    pub(super) extended_globs: bool,
    depth: u32,
    steps: usize,
}

impl<'a> Parser<'a> {
    /// Starts at the beginning of `text`, already `depth` levels deep.
    pub(crate) fn new(text: &'a str, depth: u32) -> Self {
        Self {
            text,
            at: 0,
            end: text.len(),
            pending: Vec::new(),
            extended_globs: text.contains("extglob"),
            depth,
            steps: text.len() * STEPS_PER_BYTE + 1024,
        }
    }

    /// Parses the whole text. What precedes an error is returned too: bash runs it.
    pub(crate) fn script(mut self) -> (List, Option<Failure>) {
        let mut list = List::default();
        let parsed = self.items(&mut list).and_then(|()| self.ended());
        (list, parsed.err())
    }

    /// Parses the whole text and hands over each piece as soon as it is complete, so that no more
    /// than a few commands are kept. What precedes an error is handed over too: bash runs it.
    /// How many steps it took is returned as well.
    pub(crate) fn each(mut self, mut walk: impl FnMut(&List)) -> (Option<Failure>, usize) {
        let before = self.steps;
        let mut list = List::default();
        let parsed = loop {
            match self.next_item(&mut list) {
                // The text of a here-document comes after the line.
                Ok(true) if !self.pending.is_empty() => {}
                Ok(true) => {
                    walk(&list);
                    list.items.clear();
                }
                Ok(false) => break self.ended(),
                Err(failure) => break Err(failure),
            }
        };
        walk(&list);
        (parsed.err(), before.saturating_sub(self.steps))
    }

    /// Reads the last here-documents; anything else that is left is a failure.
    fn ended(&mut self) -> Parsed<()> {
        if self.peek().is_some() {
            return Err(self.failure("a closing word or sign has no opening one"));
        }
        self.here_documents()
    }

    /// Parses the whole text as the inside of double quotes or of a here-document.
    pub(crate) fn template(mut self) -> Parsed<Vec<super::Part>> {
        self.parts(super::word::Stop::End, true)
    }

    /// Returns the byte at the cursor; a backslash before a line break is not there for bash.
    pub(super) fn peek(&mut self) -> Option<u8> {
        loop {
            match self.raw(0) {
                Some(b'\\') if self.raw(1) == Some(b'\n') => self.at += 2,
                found => return found,
            }
        }
    }

    /// Returns the byte after the one at the cursor.
    pub(super) fn peek_second(&mut self) -> Option<u8> {
        self.peek()?;
        let mut ahead = 1;
        loop {
            match self.raw(ahead) {
                Some(b'\\') if self.raw(ahead + 1) == Some(b'\n') => ahead += 2,
                found => return found,
            }
        }
    }

    /// Returns the byte `ahead` of the cursor as it is written.
    pub(super) fn raw(&self, ahead: usize) -> Option<u8> {
        let at = self.at + ahead;
        self.text
            .as_bytes()
            .get(at)
            .copied()
            .filter(|_| at < self.end)
    }

    /// Returns the bytes from the cursor on.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.text
            .as_bytes()
            .get(self.at..self.end)
            .unwrap_or_default()
    }

    /// Steps over the byte at the cursor.
    pub(super) fn bump(&mut self) -> Parsed<()> {
        self.spend(1)?;
        self.at += 1;
        Ok(())
    }

    /// Steps over `wanted` if it comes next.
    pub(super) fn take(&mut self, wanted: &str) -> Parsed<bool> {
        let start = self.at;
        for byte in wanted.bytes() {
            if self.peek() != Some(byte) {
                self.at = start;
                return Ok(false);
            }
            self.bump()?;
        }
        Ok(true)
    }

    /// Copies the character at the cursor into `text` and steps over it.
    pub(super) fn character(&mut self, text: &mut String) -> Parsed<()> {
        let character = self
            .text
            .get(self.at..self.end)
            .and_then(|rest| rest.chars().next());
        let Some(character) = character else {
            return Err(self.failure("the text ends here"));
        };
        text.push(character);
        self.bump()?;
        self.at += character.len_utf8() - 1;
        Ok(())
    }

    /// Copies everything up to the first byte that `ends` into `text` and steps over it.
    pub(super) fn run_of(&mut self, text: &mut String, ends: impl Fn(u8) -> bool) -> Parsed<()> {
        let rest = self.rest();
        let length = rest
            .iter()
            .position(|byte| ends(*byte))
            .unwrap_or(rest.len());
        text.push_str(self.text.get(self.at..self.at + length).unwrap_or_default());
        self.spend(1 + length / 8)?;
        self.at += length;
        Ok(())
    }

    pub(super) fn spend(&mut self, steps: usize) -> Parsed<()> {
        self.steps = self.steps.checked_sub(steps).ok_or(Failure {
            at: self.at,
            what: "it is too intricate",
            limit: true,
        })?;
        Ok(())
    }

    pub(super) fn failure(&self, what: &'static str) -> Failure {
        Failure {
            at: self.at,
            what,
            limit: false,
        }
    }

    /// Runs `parse` one level deeper.
    pub(super) fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth >= MAX_DEPTH {
            return Err(Failure {
                at: self.at,
                what: "it is nested too deep",
                limit: true,
            });
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    pub(super) fn depth(&self) -> u32 {
        self.depth
    }

    /// Steps over blanks, but not over line breaks.
    pub(super) fn skip_blanks(&mut self) -> Parsed<()> {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.bump()?;
        }
        if self.peek() == Some(b'#') {
            self.skip_comment()?;
        }
        Ok(())
    }

    /// Steps over a comment; a backslash does not continue it.
    fn skip_comment(&mut self) -> Parsed<()> {
        self.run_of(&mut String::new(), |byte| byte == b'\n')
    }

    /// Steps over blanks, line breaks and comments, and reads here-documents that begin.
    pub(super) fn skip_lines(&mut self) -> Parsed<()> {
        loop {
            self.skip_blanks()?;
            if self.peek() != Some(b'\n') {
                return Ok(());
            }
            self.line_break()?;
        }
    }

    /// Steps over a line break and the here-documents that begin after it.
    pub(super) fn line_break(&mut self) -> Parsed<()> {
        self.bump()?;
        if self.pending.is_empty() {
            Ok(())
        } else {
            self.here_documents()
        }
    }

    pub(super) fn span_from(&self, start: usize) -> Span {
        Span::new(start, self.at)
    }
}

/// Tells whether a byte ends an unquoted word.
pub(super) fn ends_word(byte: u8) -> bool {
    matches!(
        byte,
        b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'<' | b'>' | b'(' | b')'
    )
}

/// Tells whether a byte may begin a name.
pub(super) fn begins_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

/// Tells whether a byte may continue a name.
pub(super) fn continues_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
