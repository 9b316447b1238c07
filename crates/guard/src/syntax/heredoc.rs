//! Here-documents: announced on one line, read after it.

use std::cell::OnceCell;
use std::rc::Rc;

use super::reader::{Parsed, Parser};
use super::tree::{Part, Parts, Word};
use super::word::Stop;

/// A here-document whose text has not been reached.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) delimiter: String,
    pub(super) quoted: bool,
    pub(super) strip_tabs: bool,
    pub(super) body: Rc<OnceCell<Word>>,
}

impl Parser<'_> {
    /// Reads the texts of all here-documents announced so far; the cursor is at a line's start.
    pub(super) fn here_documents(&mut self) -> Parsed<()> {
        for pending in std::mem::take(&mut self.pending) {
            let start = self.at;
            let end = self.body_end(&pending)?;
            let next = self.at;
            let word = self.body(&pending, start, end)?;
            let _ = pending.body.set(word);
            self.at = next;
        }
        Ok(())
    }

    /// Finds the line that ends the text; the cursor moves behind it. A missing one is the end of
    /// the text: bash warns and goes on.
    fn body_end(&mut self, pending: &Pending) -> Parsed<usize> {
        loop {
            let line_start = self.at;
            if line_start >= self.end {
                return Ok(line_start.min(self.end));
            }
            let line = self.logical_line(!pending.quoted)?;
            let line = if pending.strip_tabs {
                line.trim_start_matches('\t')
            } else {
                &line
            };
            if line == pending.delimiter {
                return Ok(line_start);
            }
        }
    }

    /// Reads one line; where the text is expanded, a backslash joins it with the next.
    fn logical_line(&mut self, joins: bool) -> Parsed<String> {
        let mut line = String::new();
        loop {
            match self.raw(0) {
                None => return Ok(line),
                Some(b'\n') => {
                    self.bump()?;
                    return Ok(line);
                }
                Some(b'\\') if !joins => self.character(&mut line)?,
                Some(b'\\') => {
                    self.bump()?;
                    match self.raw(0) {
                        Some(b'\n') => self.bump()?,
                        Some(_) => {
                            line.push('\\');
                            self.character(&mut line)?;
                        }
                        None => line.push('\\'),
                    }
                }
                Some(_) => self.run_of(&mut line, |byte| byte == b'\n' || byte == b'\\')?,
            }
        }
    }

    fn body(&mut self, pending: &Pending, start: usize, end: usize) -> Parsed<Word> {
        let raw = self.text.get(start..end).unwrap_or_default();
        let mut parts = if pending.quoted || !raw.contains(['$', '`', '\\']) {
            vec![Part::Text {
                text: raw.to_owned(),
                quoted: true,
            }]
        } else {
            let outer = (self.end, std::mem::take(&mut self.pending));
            (self.at, self.end) = (start, end);
            let parts = self.parts(Stop::End, true);
            (self.end, self.pending) = outer;
            parts?
        };
        if pending.strip_tabs {
            strip_tabs(&mut parts);
        }
        Ok(Word {
            parts: Parts::Many(parts),
            span: crate::finding::Span::new(start, end),
        })
    }
}

/// Removes the tabs at the start of each line.
fn strip_tabs(parts: &mut [Part]) {
    let mut line_start = true;
    for part in parts {
        let Part::Text { text, .. } = part else {
            line_start = false;
            continue;
        };
        let mut stripped = String::with_capacity(text.len());
        for character in text.chars() {
            if !(line_start && character == '\t') {
                stripped.push(character);
                line_start = character == '\n';
            }
        }
        *text = stripped;
    }
}
