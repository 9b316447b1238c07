//! Words: quotes, escapes and expansions become parts.

use std::rc::Rc;

use super::reader::{Parsed, Parser, begins_name, continues_name, ends_word};
use super::tree::{Direction, Fetch, List, Operation, Parameter, Part, Parts, Word};

/// Where a run of parts ends. Only `Blank` stops at the signs of the grammar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// At the end of an ordinary word.
    Blank,
    /// At the end of a regular expression in `[[ ]]`.
    Regex,
    /// At the closing double quote.
    Quote,
    /// At the `}` of a parameter expansion.
    Brace,
    /// At its `}` or at the `/` before the replacement.
    BraceOrSlash,
    /// At its `}` or at the `:` before the length.
    BraceOrColon,
    /// At the `))` of an expression.
    Arithmetic,
    /// At a `;` or the `))` of `for ((`.
    ArithmeticOrSemicolon,
    /// At the `]` of a subscript.
    Bracket,
    /// At the `)` of an extended pattern.
    Pattern,
    /// At the end of the text.
    End,
}

/// The text collected so far, in parts.
#[derive(Debug, Default)]
struct Collector {
    parts: Vec<Part>,
    text: String,
    quoted: bool,
}

impl Collector {
    /// Makes the following text quoted or not.
    fn switch(&mut self, quoted: bool) -> &mut String {
        if self.quoted != quoted {
            self.flush();
            self.quoted = quoted;
        }
        &mut self.text
    }

    fn flush(&mut self) {
        if !self.text.is_empty() {
            let text = std::mem::take(&mut self.text);
            self.parts.push(Part::Text {
                text,
                quoted: self.quoted,
            });
        }
    }

    /// Adds quoted text, which counts even when it is empty.
    fn quoted(&mut self, text: String) {
        self.flush();
        self.parts.push(Part::Text { text, quoted: true });
    }

    fn push(&mut self, part: Part) {
        self.flush();
        self.parts.push(part);
    }
}

impl Parser<'_> {
    /// Reads a word of the grammar, if one begins here.
    pub(super) fn word(&mut self) -> Parsed<Option<Word>> {
        self.word_until(Stop::Blank)
    }

    pub(super) fn word_until(&mut self, stop: Stop) -> Parsed<Option<Word>> {
        let Some(first) = self.peek() else {
            return Ok(None);
        };
        let start = self.at;
        if stop == Stop::Blank {
            if ends_word(first) && !matches!(first, b'<' | b'>') {
                return Ok(None);
            }
            if let Some(word) = self.plain_word()? {
                return Ok(Some(word));
            }
        }
        let parts = self.parts(stop, false)?;
        let span = self.span_from(start);
        let parts = Parts::Many(parts);
        Ok((self.at > start).then_some(Word { parts, span }))
    }

    /// Reads a word that means nothing but itself: most are such.
    fn plain_word(&mut self) -> Parsed<Option<Word>> {
        let rest = self.rest();
        let length = rest
            .iter()
            .position(|byte| !plain_byte(*byte))
            .unwrap_or(rest.len());
        let ends = rest
            .get(length)
            .is_none_or(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'|' | b'&' | b')'));
        if length == 0 || !ends {
            return Ok(None);
        }
        let start = self.at;
        self.spend(1 + length / 8)?;
        self.at += length;
        let text = self.text.get(start..self.at).unwrap_or_default().to_owned();
        Ok(Some(Word {
            parts: Parts::One(Part::Text {
                text,
                quoted: false,
            }),
            span: self.span_from(start),
        }))
    }

    /// Reads parts up to `stop`, which is not consumed. `quoted` is the inside of double quotes.
    pub(super) fn parts(&mut self, stop: Stop, quoted: bool) -> Parsed<Vec<Part>> {
        self.deeper(|parser| {
            let mut collected = Collector {
                quoted,
                ..Collector::default()
            };
            let mut nesting = 0_u32;
            while let Some(byte) = parser.peek() {
                if parser.stops(stop, byte, nesting)? {
                    break;
                }
                nest(stop, byte, &mut nesting);
                parser.part(stop, byte, quoted, &mut collected)?;
            }
            collected.flush();
            Ok(collected.parts)
        })
    }

    /// Tells whether the byte at the cursor ends this run of parts.
    fn stops(&mut self, stop: Stop, byte: u8, nesting: u32) -> Parsed<bool> {
        let closes = nesting == 0;
        Ok(match stop {
            Stop::Blank => {
                let process = matches!(byte, b'<' | b'>') && self.peek_second() == Some(b'(');
                ends_word(byte) && !process
            }
            Stop::Regex => closes && matches!(byte, b' ' | b'\t' | b'\n' | b')'),
            Stop::Quote => byte == b'"',
            Stop::Brace => byte == b'}',
            Stop::BraceOrSlash => matches!(byte, b'}' | b'/'),
            Stop::BraceOrColon => closes && matches!(byte, b'}' | b':'),
            Stop::Arithmetic | Stop::ArithmeticOrSemicolon => {
                if byte == b')' && closes && self.peek_second() != Some(b')') {
                    return Err(self.failure("the expression does not end with `))`"));
                }
                let semicolon = byte == b';' && stop == Stop::ArithmeticOrSemicolon;
                closes && (byte == b')' || semicolon)
            }
            Stop::Bracket => closes && byte == b']',
            Stop::Pattern => byte == b')',
            Stop::End => false,
        })
    }

    /// Reads one part, or one character of text.
    fn part(&mut self, stop: Stop, byte: u8, quoted: bool, into: &mut Collector) -> Parsed<()> {
        match byte {
            b'\\' => self.escape(stop, quoted, into),
            // Expressions are read like double quotes, but their quotes are removed.
            b'\'' if !quoted => self.single_quotes(into),
            b'"' if !quoted
                || matches!(stop, Stop::Brace | Stop::BraceOrSlash | Stop::Arithmetic) =>
            {
                self.double_quotes(into)
            }
            b'`' => self.backquotes(quoted, into),
            b'$' => self.dollar(quoted, into),
            b'<' | b'>' if stop == Stop::Blank && !quoted => self.process(byte, into),
            b'?' | b'*' | b'+' | b'@' | b'!' if !quoted && self.begins_pattern(stop) => {
                self.pattern(into)
            }
            _ if quoted && matches!(stop, Stop::Quote | Stop::End) && byte != b'"' => self
                .run_of(into.switch(true), |byte| {
                    matches!(byte, b'"' | b'$' | b'`' | b'\\')
                }),
            _ if stop == Stop::Blank && !quoted && plain_byte(byte) => {
                self.run_of(into.switch(false), |byte| !plain_byte(byte))
            }
            _ => self.character(into.switch(quoted)),
        }
    }

    fn escape(&mut self, stop: Stop, quoted: bool, into: &mut Collector) -> Parsed<()> {
        self.bump()?;
        // The line break after it is gone already, by `peek`, unless it is the last byte.
        let Some(next) = self.raw(0) else {
            into.switch(quoted).push('\\');
            return Ok(());
        };
        let brace =
            next == b'}' && matches!(stop, Stop::Brace | Stop::BraceOrSlash | Stop::BraceOrColon);
        if quoted && !brace && !matches!(next, b'$' | b'`' | b'"' | b'\\') {
            into.switch(true).push('\\');
            return Ok(());
        }
        self.character(into.switch(true))?;
        if !quoted {
            into.flush();
        }
        Ok(())
    }

    fn single_quotes(&mut self, into: &mut Collector) -> Parsed<()> {
        let text = self.raw_until_quote()?;
        into.quoted(text);
        Ok(())
    }

    /// Reads from one single quote to the next, as it is.
    fn raw_until_quote(&mut self) -> Parsed<String> {
        let open = self.at;
        self.bump()?;
        let mut text = String::new();
        loop {
            match self.raw(0) {
                None => {
                    self.at = open;
                    return Err(self.failure("a single quote is not closed"));
                }
                Some(b'\'') => {
                    self.bump()?;
                    return Ok(text);
                }
                Some(_) => self.run_of(&mut text, |byte| byte == b'\'')?,
            }
        }
    }

    fn double_quotes(&mut self, into: &mut Collector) -> Parsed<()> {
        let open = self.at;
        self.bump()?;
        let parts = self.parts(Stop::Quote, true)?;
        if !self.take("\"")? {
            self.at = open;
            return Err(self.failure("a double quote is not closed"));
        }
        into.flush();
        if parts.is_empty() {
            into.quoted(String::new());
        }
        into.parts.extend(parts);
        Ok(())
    }

    /// Reads `` `…` ``: the text is unescaped once, then parsed on its own.
    fn backquotes(&mut self, quoted: bool, into: &mut Collector) -> Parsed<()> {
        let open = self.at;
        self.bump()?;
        let mut text = String::new();
        loop {
            match self.raw(0) {
                None => {
                    self.at = open;
                    return Err(self.failure("a backquote is not closed"));
                }
                Some(b'`') => break,
                Some(b'\\') => {
                    let next = self.raw(1);
                    let removed =
                        matches!(next, Some(b'\\' | b'`' | b'$')) || (quoted && next == Some(b'"'));
                    if removed {
                        self.bump()?;
                    } else {
                        text.push('\\');
                        self.bump()?;
                        continue;
                    }
                    self.character(&mut text)?;
                }
                Some(_) => self.character(&mut text)?,
            }
        }
        self.bump()?;
        let (list, failure) = self.nested(&text)?;
        if let Some(mut failure) = failure {
            failure.at = open;
            return Err(failure);
        }
        into.push(Part::Substitution {
            list: Rc::new(list),
            quoted,
            within: Some(self.span_from(open)),
        });
        Ok(())
    }

    /// Parses a text taken out of this one.
    fn nested(&mut self, text: &str) -> Parsed<(List, Option<super::Failure>)> {
        let depth = self.depth();
        self.deeper(|_| Ok(Parser::new(text, depth + 4).script()))
    }

    fn process(&mut self, byte: u8, into: &mut Collector) -> Parsed<()> {
        self.bump()?;
        self.peek();
        self.bump()?;
        let list = self.list_until(")")?;
        let direction = if byte == b'<' {
            Direction::From
        } else {
            Direction::Into
        };
        into.push(Part::Process {
            list: Rc::new(list),
            direction,
        });
        Ok(())
    }

    /// Parses a list and the sign that closes it.
    fn list_until(&mut self, close: &'static str) -> Parsed<List> {
        let outer = std::mem::take(&mut self.pending);
        let mut list = List::default();
        self.deeper(|parser| parser.items(&mut list))?;
        if !self.pending.is_empty() {
            return Err(self.failure("a here-document does not end inside its substitution"));
        }
        self.pending = outer;
        if !self.take(close)? {
            return Err(self.failure("a substitution is not closed"));
        }
        Ok(list)
    }

    fn begins_pattern(&mut self, stop: Stop) -> bool {
        let place = matches!(
            stop,
            Stop::Blank | Stop::Pattern | Stop::Brace | Stop::BraceOrSlash
        );
        place && self.peek_second() == Some(b'(')
    }

    /// Reads `@(…)` and its kin. What it matches is not worked out: it may be anything.
    fn pattern(&mut self, into: &mut Collector) -> Parsed<()> {
        self.bump()?;
        self.peek();
        self.bump()?;
        let parts = self.parts(Stop::Pattern, false)?;
        if !self.take(")")? {
            return Err(self.failure("a pattern is not closed"));
        }
        into.switch(false).push('*');
        for part in parts {
            if !matches!(part, Part::Text { .. }) {
                into.push(part);
            }
        }
        Ok(())
    }

    /// Reads what begins with a dollar sign.
    fn dollar(&mut self, quoted: bool, into: &mut Collector) -> Parsed<()> {
        match self.peek_second() {
            Some(b'\'') if !quoted => {
                self.bump()?;
                self.peek();
                let text = self.ansi_quotes()?;
                into.quoted(text);
                Ok(())
            }
            Some(b'"') if !quoted => {
                self.bump()?;
                self.peek();
                self.double_quotes(into)
            }
            Some(b'(') => self.parenthesis(quoted, into),
            Some(b'[') => {
                self.bump()?;
                self.peek();
                self.bump()?;
                let parts = self.parts(Stop::Bracket, true)?;
                if !self.take("]")? {
                    return Err(self.failure("an expression is not closed"));
                }
                into.push(Part::Arithmetic {
                    parts: Rc::new(parts),
                });
                Ok(())
            }
            Some(b'{') => {
                self.bump()?;
                self.peek();
                self.bump()?;
                let part = self.braces(quoted)?;
                into.push(part);
                Ok(())
            }
            Some(next) if begins_name(next) => {
                self.bump()?;
                let name = self.name()?;
                into.push(plain(name, quoted));
                Ok(())
            }
            Some(b'0'..=b'9' | b'@' | b'*' | b'#' | b'?' | b'-' | b'$' | b'!') => {
                self.bump()?;
                self.peek();
                let mut name = String::new();
                self.character(&mut name)?;
                into.push(plain(name, quoted));
                Ok(())
            }
            _ => self.character(into.switch(quoted)),
        }
    }

    /// Reads a name of letters, digits and underscores.
    pub(super) fn name(&mut self) -> Parsed<String> {
        let mut name = String::new();
        while let Some(byte) = self.peek().filter(|byte| continues_name(*byte)) {
            name.push(char::from(byte));
            self.bump()?;
        }
        Ok(name)
    }

    /// Reads `$((…))` if it is an expression, else `$(…)`.
    fn parenthesis(&mut self, quoted: bool, into: &mut Collector) -> Parsed<()> {
        self.bump()?;
        self.peek();
        self.bump()?;
        if self.peek() == Some(b'(') {
            let back = (self.at, self.pending.len());
            self.bump()?;
            let parts = self.parts(Stop::Arithmetic, true);
            match parts {
                Ok(parts) if self.peek() == Some(b')') => {
                    self.bump()?;
                    self.peek();
                    self.bump()?;
                    into.push(Part::Arithmetic {
                        parts: Rc::new(parts),
                    });
                    return Ok(());
                }
                Err(failure) if failure.limit => return Err(failure),
                _ => {
                    self.at = back.0;
                    self.pending.truncate(back.1);
                }
            }
        }
        let list = self.list_until(")")?;
        into.push(Part::Substitution {
            list: Rc::new(list),
            quoted,
            within: None,
        });
        Ok(())
    }

    /// Parses a function substitution `${ …; }`; the cursor is behind the brace.
    pub(super) fn function_substitution(&mut self, quoted: bool) -> Parsed<Part> {
        let list = self.list_until("}")?;
        Ok(Part::Substitution {
            list: Rc::new(list),
            quoted,
            within: None,
        })
    }

    /// Reads `'…'` after a dollar sign; the cursor is at the quote.
    fn ansi_quotes(&mut self) -> Parsed<String> {
        let open = self.at;
        self.bump()?;
        let mut raw = String::new();
        loop {
            match self.raw(0) {
                None => {
                    self.at = open;
                    return Err(self.failure("a single quote is not closed"));
                }
                Some(b'\'') => {
                    self.bump()?;
                    return Ok(crate::text::unescape(&raw, crate::text::Escapes::Quotes).0);
                }
                Some(b'\\') => {
                    self.character(&mut raw)?;
                    if self.raw(0).is_some() {
                        self.character(&mut raw)?;
                    }
                }
                Some(_) => self.character(&mut raw)?,
            }
        }
    }
}

/// Tells whether a byte means nothing but itself in an unquoted word.
fn plain_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'-' | b'_' | b'.' | b'/' | b':' | b'=' | b',' | b'%' | b'{' | b'}' | b'~' | b'#'
        )
}

fn plain(name: String, quoted: bool) -> Part {
    let parameter = Parameter {
        name,
        subscript: None,
        fetch: Fetch::Value,
        operation: Operation::None,
    };
    Part::Parameter {
        parameter: Rc::new(parameter),
        quoted,
    }
}

/// Counts the signs that must close before the run can end.
fn nest(stop: Stop, byte: u8, nesting: &mut u32) {
    let (open, close) = match stop {
        Stop::Arithmetic | Stop::ArithmeticOrSemicolon | Stop::Regex => (b'(', b')'),
        Stop::Bracket => (b'[', b']'),
        Stop::BraceOrColon => (b'?', b':'),
        _ => return,
    };
    if byte == open {
        *nesting += 1;
    } else if byte == close {
        *nesting = nesting.saturating_sub(1);
    }
}
