//! Commands: lists, pipelines, compound commands, redirections.

use std::cell::OnceCell;
use std::rc::Rc;

use super::heredoc::Pending;
use super::reader::{Parsed, Parser, begins_name, continues_name, ends_word};
use super::tree::{
    Arm, Assign, Body, Command, Item, List, Part, Pipeline, Redirect, RedirectKind, Value, Word,
};
use super::word::Stop;

/// Words that end a list where a command could begin.
const CLOSING: &[&str] = &["then", "elif", "else", "fi", "do", "done", "esac", "}"];

/// Returns the word if it has a meaning of its own where a command can begin.
fn reserved(word: &[u8]) -> Option<&'static str> {
    Some(match word {
        b"if" => "if",
        b"then" => "then",
        b"fi" => "fi",
        b"for" => "for",
        b"do" => "do",
        b"done" => "done",
        b"{" => "{",
        b"}" => "}",
        b"[[" => "[[",
        b"case" => "case",
        b"esac" => "esac",
        b"in" => "in",
        b"else" => "else",
        b"elif" => "elif",
        b"while" => "while",
        b"until" => "until",
        b"function" => "function",
        b"!" => "!",
        b"time" => "time",
        b"select" => "select",
        b"coproc" => "coproc",
        _ => return None,
    })
}

impl Parser<'_> {
    /// Parses items up to the end, a closing word, `)` or `;;`.
    pub(super) fn items(&mut self, list: &mut List) -> Parsed<()> {
        while self.next_item(list)? {}
        Ok(())
    }

    /// Parses one item, if there is one; tells whether another may follow.
    pub(super) fn next_item(&mut self, list: &mut List) -> Parsed<bool> {
        self.skip_lines()?;
        if self.at_list_end() {
            return Ok(false);
        }
        list.items.push(self.item()?);
        match self.peek() {
            Some(b'\n') => {}
            Some(b';') if !matches!(self.peek_second(), Some(b';' | b'&')) => self.bump()?,
            Some(b'&') => self.bump()?,
            _ => {
                self.skip_blanks()?;
                if self.at_list_end() {
                    return Ok(false);
                }
                return Err(self.failure("two commands are not separated"));
            }
        }
        Ok(true)
    }

    fn at_list_end(&mut self) -> bool {
        match self.peek() {
            None | Some(b')') => true,
            Some(b';') => matches!(self.peek_second(), Some(b';' | b'&')),
            Some(_) => self
                .reserved_word()
                .is_some_and(|word| CLOSING.contains(&word)),
        }
    }

    /// Returns the reserved word at the cursor without stepping over it.
    fn reserved_word(&mut self) -> Option<&'static str> {
        // Most words begin with none of their letters.
        if !self.peek().is_some_and(|byte| {
            matches!(
                byte,
                b'c' | b'd'
                    | b'e'
                    | b'f'
                    | b'i'
                    | b's'
                    | b't'
                    | b'u'
                    | b'w'
                    | b'{'
                    | b'}'
                    | b'!'
                    | b'['
                    | b'\\'
            )
        }) {
            return None;
        }
        let start = self.at;
        let mut word = [0_u8; 9];
        let mut length = 0;
        while let Some(byte) = self.peek().filter(|byte| !ends_word(*byte)) {
            let Some(place) = word.get_mut(length) else {
                break;
            };
            *place = byte;
            length += 1;
            self.at += 1;
        }
        self.at = start;
        reserved(word.get(..length)?)
    }

    /// Steps over a reserved word that must come here.
    fn expect_word(&mut self, word: &'static str, what: &'static str) -> Parsed<()> {
        self.skip_lines()?;
        if self.reserved_word() == Some(word) && self.take(word)? {
            return Ok(());
        }
        Err(self.failure(what))
    }

    /// Parses pipelines joined by `&&` and `||`.
    fn item(&mut self) -> Parsed<Item> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            self.skip_blanks()?;
            let joined = (self.peek() == Some(b'&') && self.peek_second() == Some(b'&'))
                || (self.peek() == Some(b'|') && self.peek_second() == Some(b'|'));
            if !joined {
                break;
            }
            self.bump()?;
            self.peek();
            self.bump()?;
            self.skip_lines()?;
            rest.push(self.pipeline()?);
        }
        Ok(Item {
            first,
            rest,
            background: self.peek() == Some(b'&'),
        })
    }

    /// Parses `[time] [!] command | command …`.
    fn pipeline(&mut self) -> Parsed<Pipeline> {
        self.pipeline_prefix()?;
        let first = self.command()?;
        let mut rest = Vec::new();
        loop {
            self.skip_blanks()?;
            if self.peek() != Some(b'|') || self.peek_second() == Some(b'|') {
                return Ok(Pipeline { first, rest });
            }
            self.bump()?;
            self.take("&")?;
            self.skip_lines()?;
            rest.push(self.command()?);
        }
    }

    fn pipeline_prefix(&mut self) -> Parsed<()> {
        loop {
            self.skip_blanks()?;
            match self.reserved_word() {
                Some("!") => {
                    if self.extended_globs && self.peek_second() == Some(b'(') {
                        return Err(self.failure("`!(` may be a pattern or a negation"));
                    }
                    self.bump()?;
                }
                Some("time") => {
                    self.take("time")?;
                    self.skip_blanks()?;
                    let back = self.at;
                    let option = self.take("-p")? || self.take("--")?;
                    if option && self.peek().is_some_and(|byte| !ends_word(byte)) {
                        self.at = back;
                    }
                }
                _ => return Ok(()),
            }
        }
    }

    fn command(&mut self) -> Parsed<Command> {
        self.deeper(|parser| {
            parser.skip_blanks()?;
            let start = parser.at;
            let mut redirects = Vec::new();
            let (body, compound) = match parser.compound()? {
                Some(body) => (body, true),
                None => (parser.simple(&mut redirects)?, false),
            };
            if compound && !matches!(body, Body::Function { .. } | Body::Coprocess(_)) {
                parser.redirects(&mut redirects)?;
            }
            Ok(Command {
                body,
                redirects,
                span: parser.span_from(start),
            })
        })
    }

    /// Parses a compound command, if one begins here.
    fn compound(&mut self) -> Parsed<Option<Body>> {
        if self.peek() == Some(b'(') {
            return self.parenthesised().map(Some);
        }
        let Some(word) = self.reserved_word() else {
            return Ok(None);
        };
        let body = match word {
            "{" => self.group()?,
            "if" => self.conditional()?,
            "while" | "until" => self.loop_command(word)?,
            "for" | "select" => self.for_command(word)?,
            "case" => self.case()?,
            "[[" => self.test()?,
            "function" => self.function_keyword()?,
            "coproc" => self.coprocess()?,
            _ if CLOSING.contains(&word) => {
                return Err(self.failure("a closing word has no opening one"));
            }
            _ => return Ok(None),
        };
        Ok(Some(body))
    }

    /// Parses `((…))` if it is an expression, else a subshell.
    fn parenthesised(&mut self) -> Parsed<Body> {
        if self.peek_second() == Some(b'(') {
            let back = (self.at, self.pending.len());
            self.bump()?;
            self.peek();
            self.bump()?;
            match self.parts(Stop::Arithmetic, true) {
                Ok(parts) if self.peek() == Some(b')') => {
                    self.bump()?;
                    self.peek();
                    self.bump()?;
                    return Ok(Body::Arithmetic(parts));
                }
                Err(failure) if failure.limit => return Err(failure),
                _ => {
                    self.at = back.0;
                    self.pending.truncate(back.1);
                }
            }
        }
        self.bump()?;
        let list = self.inner_list()?;
        if !self.take(")")? {
            return Err(self.failure("a `(` is not closed"));
        }
        Ok(Body::Subshell(list))
    }

    fn inner_list(&mut self) -> Parsed<List> {
        let mut list = List::default();
        self.items(&mut list)?;
        if list.items.is_empty() {
            return Err(self.failure("a command is missing"));
        }
        Ok(list)
    }

    fn group(&mut self) -> Parsed<Body> {
        self.take("{")?;
        let list = self.inner_list()?;
        self.expect_word("}", "a `{` is not closed")?;
        Ok(Body::Group(list))
    }

    fn conditional(&mut self) -> Parsed<Body> {
        self.take("if")?;
        let mut branches = vec![self.inner_list()?];
        self.expect_word("then", "an `if` has no `then`")?;
        branches.push(self.inner_list()?);
        loop {
            self.skip_lines()?;
            match self.reserved_word() {
                Some("elif") => {
                    self.take("elif")?;
                    branches.push(self.inner_list()?);
                    self.expect_word("then", "an `elif` has no `then`")?;
                    branches.push(self.inner_list()?);
                }
                Some("else") => {
                    self.take("else")?;
                    branches.push(self.inner_list()?);
                }
                _ => break,
            }
        }
        self.expect_word("fi", "an `if` has no `fi`")?;
        Ok(Body::Branches(branches))
    }

    fn loop_command(&mut self, word: &str) -> Parsed<Body> {
        self.take(word)?;
        let condition = self.inner_list()?;
        let body = self.do_group()?;
        Ok(Body::Loop { condition, body })
    }

    fn do_group(&mut self) -> Parsed<List> {
        self.expect_word("do", "a loop has no `do`")?;
        let body = self.inner_list()?;
        self.expect_word("done", "a loop has no `done`")?;
        Ok(body)
    }

    fn for_command(&mut self, word: &str) -> Parsed<Body> {
        self.take(word)?;
        self.skip_blanks()?;
        if self.peek() == Some(b'(') && self.peek_second() == Some(b'(') {
            return self.for_arithmetic();
        }
        let name = self.name()?;
        if name.is_empty() {
            return Err(self.failure("a loop has no variable"));
        }
        self.skip_lines()?;
        let words = if self.reserved_word() == Some("in") {
            self.take("in")?;
            Some(self.words_to_line_end()?)
        } else {
            None
        };
        self.skip_blanks()?;
        self.take(";")?;
        self.skip_lines()?;
        let body = self.loop_body()?;
        Ok(Body::For { name, words, body })
    }

    /// Parses `do … done`, or the `{ … }` that bash also takes.
    fn loop_body(&mut self) -> Parsed<List> {
        if self.reserved_word() != Some("{") {
            return self.do_group();
        }
        match self.group()? {
            Body::Group(list) => Ok(list),
            _ => Err(self.failure("a loop has no body")),
        }
    }

    fn words_to_line_end(&mut self) -> Parsed<Vec<Word>> {
        let mut words = Vec::new();
        loop {
            self.skip_blanks()?;
            match self.word()? {
                Some(word) => words.push(word),
                None => return Ok(words),
            }
        }
    }

    fn for_arithmetic(&mut self) -> Parsed<Body> {
        self.take("((")?;
        let mut expressions = Vec::new();
        loop {
            expressions.extend(self.parts(Stop::ArithmeticOrSemicolon, true)?);
            if !self.take(";")? {
                break;
            }
            expressions.push(Part::Text {
                text: ";".to_owned(),
                quoted: true,
            });
        }
        if !self.take("))")? {
            return Err(self.failure("a `for ((` is not closed"));
        }
        self.skip_blanks()?;
        self.take(";")?;
        self.skip_lines()?;
        let body = self.loop_body()?;
        Ok(Body::ForArithmetic { expressions, body })
    }

    fn case(&mut self) -> Parsed<Body> {
        self.take("case")?;
        self.skip_blanks()?;
        let Some(word) = self.word()? else {
            return Err(self.failure("a `case` has no word"));
        };
        self.expect_word("in", "a `case` has no `in`")?;
        let mut arms = Vec::new();
        loop {
            self.skip_lines()?;
            if self.reserved_word() == Some("esac") {
                self.take("esac")?;
                return Ok(Body::Case { word, arms });
            }
            arms.push(self.arm()?);
        }
    }

    fn arm(&mut self) -> Parsed<Arm> {
        self.take("(")?;
        let mut patterns = Vec::new();
        loop {
            self.skip_blanks()?;
            match self.word()? {
                Some(pattern) => patterns.push(pattern),
                None => return Err(self.failure("a `case` has no pattern here")),
            }
            self.skip_blanks()?;
            if !self.take("|")? {
                break;
            }
        }
        if !self.take(")")? {
            return Err(self.failure("a pattern of a `case` does not end"));
        }
        let mut body = List::default();
        self.items(&mut body)?;
        self.skip_lines()?;
        // The last branch may end with `esac` alone.
        if self.peek() == Some(b';') {
            self.bump()?;
            self.take(";")?;
            self.take("&")?;
        } else if self.reserved_word() != Some("esac") {
            return Err(self.failure("a branch of a `case` does not end"));
        }
        Ok(Arm { patterns, body })
    }

    /// Parses `[[ … ]]`: only its operands matter.
    fn test(&mut self) -> Parsed<Body> {
        self.take("[[")?;
        let mut words = Vec::new();
        let mut regex = false;
        loop {
            self.skip_lines()?;
            match self.peek() {
                None => return Err(self.failure("a `[[` is not closed")),
                Some(b'(' | b')' | b'&' | b'|') if !regex => self.bump()?,
                Some(b'<' | b'>') if !regex && self.peek_second() != Some(b'(') => self.bump()?,
                Some(_) => {
                    let stop = if regex { Stop::Regex } else { Stop::Blank };
                    let Some(word) = self.word_until(stop)? else {
                        return Err(self.failure("an operand is missing"));
                    };
                    match plain_text(&word) {
                        Some("]]") => return Ok(Body::Test(words)),
                        text => regex = text == Some("=~"),
                    }
                    words.push(word);
                }
            }
        }
    }

    fn function_keyword(&mut self) -> Parsed<Body> {
        self.take("function")?;
        self.skip_blanks()?;
        let Some(word) = self.word()? else {
            return Err(self.failure("a function has no name"));
        };
        let Some(name) = plain_text(&word).map(str::to_owned) else {
            return Err(self.failure("a function's name is not plain"));
        };
        self.skip_blanks()?;
        if self.take("(")? {
            self.skip_blanks()?;
            if !self.take(")")? {
                return Err(self.failure("a function's `(` is not closed"));
            }
        }
        self.function_body(name)
    }

    fn function_body(&mut self, name: String) -> Parsed<Body> {
        self.skip_lines()?;
        let body = self.command()?;
        if matches!(body.body, Body::Simple { .. }) {
            return Err(self.failure("a function has no body"));
        }
        Ok(Body::Function {
            name,
            body: Rc::new(body),
        })
    }

    fn coprocess(&mut self) -> Parsed<Body> {
        self.take("coproc")?;
        self.skip_blanks()?;
        let back = self.at;
        // A name comes only before a compound command.
        if self.peek().is_some_and(begins_name)
            && self.reserved_word().is_none_or(|word| word != "function")
        {
            let name = self.name()?;
            self.skip_blanks()?;
            let compound = self.peek() == Some(b'(')
                || self.reserved_word().is_some_and(|word| {
                    ["{", "if", "while", "until", "for", "case", "[["].contains(&word)
                });
            if name.is_empty() || !compound {
                self.at = back;
            }
        }
        Ok(Body::Coprocess(Box::new(self.command()?)))
    }

    /// Parses assignments, words and redirections of a simple command, or a function definition.
    fn simple(&mut self, redirects: &mut Vec<Redirect>) -> Parsed<Body> {
        let start = self.at;
        let mut assigns = Vec::new();
        let mut words: Vec<Word> = Vec::new();
        let mut arrays = Vec::new();
        loop {
            self.skip_blanks()?;
            if self.redirect(redirects)? {
                continue;
            }
            if words.is_empty() {
                if let Some(assign) = self.assignment()? {
                    assigns.push(assign);
                    continue;
                }
            } else if let Some(array) = self.array_argument()? {
                arrays.push(array);
                continue;
            }
            match self.word()? {
                Some(word) => words.push(word),
                None => break,
            }
            if words.len() == 1
                && assigns.is_empty()
                && redirects.is_empty()
                && self.at_function_parens()?
            {
                return self.function_parens(&words);
            }
        }
        if self.peek() == Some(b'(') {
            return Err(self.failure("a `(` is not expected here"));
        }
        if self.at == start {
            return Err(self.failure("a command is missing"));
        }
        Ok(Body::Simple {
            assigns,
            words,
            arrays,
        })
    }

    fn at_function_parens(&mut self) -> Parsed<bool> {
        let back = self.at;
        self.skip_blanks()?;
        if self.peek() == Some(b'(') {
            return Ok(true);
        }
        self.at = back;
        Ok(false)
    }

    fn function_parens(&mut self, words: &[Word]) -> Parsed<Body> {
        self.bump()?;
        self.skip_blanks()?;
        let name = words.first().and_then(plain_text).map(str::to_owned);
        let (Some(name), true) = (name, self.take(")")?) else {
            return Err(self.failure("a `(` is not expected here"));
        };
        self.function_body(name)
    }

    /// Tells whether a name with such a sign after it may come here. A continued line may hide one.
    fn name_before(&mut self, sign: impl Fn(u8) -> bool) -> bool {
        if !self.peek().is_some_and(begins_name) {
            return false;
        }
        let after = self.rest().iter().find(|byte| !continues_name(**byte));
        after.is_some_and(|byte| *byte == b'\\' || sign(*byte))
    }

    /// Reads `name=value` and its forms, if one comes here.
    fn assignment(&mut self) -> Parsed<Option<Assign>> {
        if !self.name_before(|sign| matches!(sign, b'=' | b'+' | b'[')) {
            return Ok(None);
        }
        let start = self.at;
        let name = self.name()?;
        let subscript = if self.peek() == Some(b'[') {
            match self.subscript() {
                Ok(subscript) => subscript,
                Err(failure) if failure.limit => return Err(failure),
                Err(_) => None,
            }
        } else {
            None
        };
        let append = self.peek() == Some(b'+') && self.peek_second() == Some(b'=');
        if append {
            self.bump()?;
        }
        if self.peek() != Some(b'=') {
            self.at = start;
            return Ok(None);
        }
        self.bump()?;
        let value = self.assigned()?;
        Ok(Some(Assign {
            name,
            subscript,
            append,
            value,
            span: self.span_from(start),
        }))
    }

    fn assigned(&mut self) -> Parsed<Value> {
        if self.peek() == Some(b'(') {
            return self.array().map(Value::Array);
        }
        Ok(Value::Scalar(self.word()?.unwrap_or_default()))
    }

    fn array(&mut self) -> Parsed<Vec<Word>> {
        self.take("(")?;
        let mut items = Vec::new();
        loop {
            self.skip_lines()?;
            if self.take(")")? {
                // What sticks to the bracket belongs to the word; `#` begins no comment there.
                items.extend(self.word()?);
                return Ok(items);
            }
            match self.word()? {
                Some(word) => items.push(word),
                None => return Err(self.failure("an array is not closed")),
            }
        }
    }

    /// Reads `name=(…)` among the arguments; a scalar there is an ordinary word.
    fn array_argument(&mut self) -> Parsed<Option<Assign>> {
        if !self.name_before(|sign| matches!(sign, b'=' | b'+')) {
            return Ok(None);
        }
        let start = self.at;
        let name = self.name()?;
        let append = self.take("+")?;
        if self.take("=")? && self.peek() == Some(b'(') {
            let value = Value::Array(self.array()?);
            return Ok(Some(Assign {
                name,
                subscript: None,
                append,
                value,
                span: self.span_from(start),
            }));
        }
        self.at = start;
        Ok(None)
    }

    fn redirects(&mut self, redirects: &mut Vec<Redirect>) -> Parsed<()> {
        loop {
            self.skip_blanks()?;
            if !self.redirect(redirects)? {
                return Ok(());
            }
        }
    }

    /// Reads one redirection, if one comes here.
    fn redirect(&mut self, redirects: &mut Vec<Redirect>) -> Parsed<bool> {
        if !self
            .peek()
            .is_some_and(|byte| matches!(byte, b'<' | b'>' | b'&' | b'{' | b'0'..=b'9'))
        {
            return Ok(false);
        }
        let start = self.at;
        let descriptor = self.descriptor()?;
        let Some((kind, strip_tabs)) = self.redirect_sign()? else {
            self.at = start;
            return Ok(false);
        };
        self.skip_blanks()?;
        let from = self.at;
        let Some(target) = self.word()? else {
            return Err(self.failure("a redirection has no target"));
        };
        let body = Rc::new(OnceCell::new());
        if kind == RedirectKind::HereDocument {
            let quoted = self
                .text
                .get(from..self.at)
                .unwrap_or_default()
                .contains(['\'', '"', '\\']);
            let Some(delimiter) = delimiter(&target) else {
                return Err(self.failure("a here-document's end is not plain"));
            };
            self.pending.push(Pending {
                delimiter,
                quoted,
                strip_tabs,
                body: Rc::clone(&body),
            });
        }
        redirects.push(Redirect {
            kind,
            target,
            body,
            descriptor,
        });
        Ok(true)
    }

    /// Reads `2` or `{name}` in front of a redirection.
    fn descriptor(&mut self) -> Parsed<Option<u32>> {
        let start = self.at;
        if self.peek() == Some(b'{') {
            self.bump()?;
            let name = self.name()?;
            if !name.is_empty() && self.take("}")? && matches!(self.peek(), Some(b'<' | b'>')) {
                return Ok(Some(10));
            }
            self.at = start;
            return Ok(None);
        }
        let mut digits = String::new();
        while let Some(byte) = self.peek().filter(u8::is_ascii_digit) {
            digits.push(char::from(byte));
            self.bump()?;
        }
        if matches!(self.peek(), Some(b'<' | b'>')) {
            return Ok(digits.parse().ok());
        }
        self.at = start;
        Ok(None)
    }

    fn redirect_sign(&mut self) -> Parsed<Option<(RedirectKind, bool)>> {
        const SIGNS: &[(&str, RedirectKind)] = &[
            ("&>>", RedirectKind::Append),
            ("&>", RedirectKind::Write),
            ("<<<", RedirectKind::HereString),
            ("<<", RedirectKind::HereDocument),
            ("<>", RedirectKind::ReadWrite),
            ("<&", RedirectKind::Duplicate),
            (">&", RedirectKind::Duplicate),
            (">>", RedirectKind::Append),
            (">|", RedirectKind::Write),
            ("<", RedirectKind::Read),
            (">", RedirectKind::Write),
        ];
        if matches!(self.peek(), Some(b'<' | b'>')) && self.peek_second() == Some(b'(') {
            return Ok(None);
        }
        if !matches!(self.peek(), Some(b'<' | b'>' | b'&')) {
            return Ok(None);
        }
        for (sign, kind) in SIGNS {
            if self.take(sign)? {
                let strip_tabs = *kind == RedirectKind::HereDocument && self.take("-")?;
                return Ok(Some((*kind, strip_tabs)));
            }
        }
        Ok(None)
    }
}

/// Returns the text of a word that is one piece of unquoted text.
pub(super) fn plain_text(word: &Word) -> Option<&str> {
    match &*word.parts {
        [
            Part::Text {
                text,
                quoted: false,
            },
        ] => Some(text),
        _ => None,
    }
}

/// Returns the end line of a here-document: the word with its quotes removed, nothing expanded.
fn delimiter(word: &Word) -> Option<String> {
    let mut delimiter = String::new();
    for part in word.parts.iter() {
        match part {
            Part::Text { text, .. } => delimiter.push_str(text),
            _ => return None,
        }
    }
    Some(delimiter)
}
