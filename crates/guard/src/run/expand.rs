//! Words become arguments: tilde, parameters, substitutions, splitting, patterns.

use super::simple::Argument;
use super::state::Variable;
use super::stream::Stream;
use super::{READ, Run, brace};
use crate::finding::{Span, Target};
use crate::syntax::{Parser, Part, Word};
use crate::text::{self, MAX_TEXT, UNKNOWN};

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Expanded {
    One(String),
    /// One field each when quoted.
    Many(Vec<String>),
}

impl Expanded {
    /// How much work it is to handle the value; an item of a list weighs more than its text.
    pub(super) fn weight(&self) -> usize {
        match self {
            Self::One(text) => text.len(),
            Self::Many(items) => items.iter().map(|item| item.len() + 32).sum(),
        }
    }
}

/// Fields under construction.
#[derive(Debug, Default)]
struct Fields {
    done: Vec<String>,
    current: Option<String>,
}

impl Fields {
    fn current(&mut self) -> &mut String {
        self.current.get_or_insert_default()
    }

    fn cut(&mut self) {
        self.done.extend(self.current.take());
    }

    fn quoted(&mut self, value: Expanded) {
        match value {
            Expanded::One(text) => self.current().push_str(&text),
            Expanded::Many(items) => {
                for (index, item) in items.into_iter().enumerate() {
                    if index > 0 {
                        self.cut();
                    }
                    self.current().push_str(&item);
                }
            }
        }
    }

    /// Splits at the separators; what is left may be a pattern.
    fn split(&mut self, text: &str, separates: impl Fn(char) -> bool) {
        let mut pieces = text.split(separates).peekable();
        while let Some(piece) = pieces.next() {
            if !piece.is_empty() {
                text::activate(piece, self.current());
            }
            if pieces.peek().is_some() {
                self.cut();
            }
        }
    }

    fn unquoted(&mut self, value: Expanded, separates: impl Fn(char) -> bool) {
        match value {
            Expanded::One(text) => self.split(&text, separates),
            Expanded::Many(items) => {
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        self.cut();
                    }
                    self.split(item, &separates);
                }
            }
        }
    }
}

impl Run<'_> {
    /// Expands words to arguments.
    pub(crate) fn arguments(&mut self, words: &[Word]) -> Vec<Argument> {
        let mut arguments = Vec::with_capacity(words.len());
        for word in words {
            let cost = u32::try_from(word.span.end.saturating_sub(word.span.start) / 32)
                .unwrap_or(u32::MAX);
            if !self.step(cost.saturating_add(1)) {
                break;
            }
            let mut push = |text: String| {
                arguments.push(Argument {
                    text,
                    span: word.span,
                });
            };
            if let [Part::Text { text, quoted }] = &*word.parts
                && (*quoted || !text.contains(['*', '?', '[', '{', '~']))
            {
                push(text.clone());
                continue;
            }
            match brace::expand(&word.parts) {
                None => self.fields(&word.parts).into_iter().for_each(&mut push),
                Some(expanded) => {
                    if expanded.incomplete {
                        self.report(
                            "too-intricate",
                            word.span,
                            Target::None,
                            "its braces stand for too many words",
                        );
                    }
                    for parts in expanded.words {
                        if !self.step(1) {
                            break;
                        }
                        self.fields(&parts).into_iter().for_each(&mut push);
                    }
                }
            }
        }
        arguments
    }

    fn fields(&mut self, parts: &[Part]) -> Vec<String> {
        let mut fields = Fields::default();
        for (index, part) in parts.iter().enumerate() {
            match part {
                Part::Text { text, quoted: true } => fields.current().push_str(text),
                Part::Text {
                    text,
                    quoted: false,
                } => {
                    let text = if index == 0 {
                        self.tilde(text, parts.len() == 1)
                    } else {
                        None
                    }
                    .map_or_else(|| text.clone(), |(home, rest)| home + rest);
                    text::activate(&text, fields.current());
                }
                Part::Parameter { parameter, quoted } => {
                    let value = self.parameter(parameter, *quoted);
                    self.place(&mut fields, value, *quoted);
                }
                Part::Substitution {
                    list,
                    quoted,
                    within,
                } => {
                    let value = Expanded::One(self.substitution(list, *within));
                    self.place(&mut fields, value, *quoted);
                }
                Part::Process { list, direction } => {
                    let path = self.process(list, *direction);
                    fields.current().push_str(&path);
                }
                Part::Arithmetic { parts } => {
                    let value = self.arithmetic(parts);
                    fields.current().push_str(&value);
                }
            }
        }
        fields.cut();
        fields.done
    }

    fn place(&mut self, fields: &mut Fields, value: Expanded, quoted: bool) {
        // Splitting makes words.
        let dearer = if quoted { 1 } else { READ };
        if !self.handle(value.weight() * dearer) {
            fields.current().push(UNKNOWN);
            return;
        }
        if quoted {
            fields.quoted(value);
        } else {
            match self.state.scalar("IFS") {
                None | Some(" \t\n") => {
                    fields.unquoted(value, |sign| matches!(sign, ' ' | '\t' | '\n'));
                }
                Some(separators) => fields.unquoted(value, |sign| separators.contains(sign)),
            }
        }
    }

    /// Expands parts to one text, as in an assignment.
    pub(crate) fn single(&mut self, parts: &[Part]) -> String {
        let mut whole = String::new();
        for (index, part) in parts.iter().enumerate() {
            match part {
                Part::Text { text, quoted } => match self
                    .tilde(text, parts.len() == 1)
                    .filter(|_| index == 0 && !quoted)
                {
                    Some((home, rest)) => whole.extend([home.as_str(), rest]),
                    None => whole.push_str(text),
                },
                Part::Parameter { parameter, quoted } => match self.parameter(parameter, *quoted) {
                    Expanded::One(text) => whole.push_str(&text),
                    Expanded::Many(items) => whole.push_str(&items.join(" ")),
                },
                Part::Substitution { list, within, .. } => {
                    whole.push_str(&self.substitution(list, *within));
                }
                Part::Process { list, direction } => {
                    whole.push_str(&self.process(list, *direction));
                }
                Part::Arithmetic { parts } => whole.push_str(&self.arithmetic(parts)),
            }
            let handled = match part {
                Part::Text { .. } => true,
                _ => self.handle(whole.len()),
            };
            if !handled || whole.len() > MAX_TEXT {
                return UNKNOWN.to_string();
            }
        }
        whole
    }

    /// Expands parts as a pattern: unquoted signs are active.
    pub(super) fn pattern(&mut self, parts: &[Part]) -> String {
        let mut whole = String::new();
        for part in parts {
            match part {
                Part::Text {
                    text,
                    quoted: false,
                } => text::activate(text, &mut whole),
                other => {
                    let text = self.single(std::slice::from_ref(other));
                    whole.push_str(&text);
                }
            }
        }
        whole
    }

    /// Splits `~/x` into the home directory and the rest.
    fn tilde<'t>(&self, text: &'t str, whole: bool) -> Option<(String, &'t str)> {
        let after = text.strip_prefix('~')?;
        let end = after.find('/');
        if end.is_none() && !whole {
            return None;
        }
        let (user, rest) = after.split_at(end.unwrap_or(after.len()));
        let home = match user {
            "" => self.state.scalar("HOME").unwrap_or(&self.home).to_owned(),
            "+" => self
                .state
                .cwd
                .as_deref()
                .map_or_else(|| UNKNOWN.to_string(), str::to_owned),
            "-" => UNKNOWN.to_string(),
            "root" => "/root".to_owned(),
            name if name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"_-."[..].contains(&byte)) =>
            {
                format!("/home/{name}")
            }
            _ => return None,
        };
        Some((home, rest))
    }

    /// Walks `$(…)` and returns what it prints.
    fn substitution(&mut self, list: &crate::syntax::List, within: Option<Span>) -> String {
        let walk = |run: &mut Self| run.deeper(run.here, |run| run.subshell(|run| run.list(list)));
        let output = match within {
            Some(span) => self.pointing_at(span, walk),
            None => walk(self),
        };
        self.note_substitution(&output);
        match output.text {
            Some(mut text) => {
                text.truncate(text.trim_end_matches('\n').len());
                text
            }
            None => UNKNOWN.to_string(),
        }
    }

    /// Remembers where unknown text came from, for the command that runs it.
    fn note_substitution(&mut self, output: &Stream) {
        self.substituted = self.substituted.with(output.origin);
    }

    /// Walks `<(…)` or `>(…)` and returns the path that stands for it.
    fn process(
        &mut self,
        list: &crate::syntax::List,
        direction: crate::syntax::Direction,
    ) -> String {
        let span = self.here;
        let stdin = match direction {
            crate::syntax::Direction::From => self.stdin.clone(),
            crate::syntax::Direction::Into => Some(Stream::unknown()),
        };
        let output = self.deeper(span, |run| {
            run.subshell(|run| run.reading(stdin, |run| run.list(list)))
        });
        self.processes += 1;
        let path = format!("/dev/fd/{}", 63 + self.processes);
        if direction == crate::syntax::Direction::From {
            self.state.write_file(&path, output);
        }
        path
    }

    /// Walks an expression. Its subscripts are expanded again when it is evaluated, so text that
    /// looks like a substitution is one.
    pub(super) fn arithmetic(&mut self, parts: &[Part]) -> String {
        let text = self.single(parts);
        self.evaluates(&text);
        match text.trim().parse::<i64>() {
            Ok(number) => number.to_string(),
            Err(_) => UNKNOWN.to_string(),
        }
    }

    /// Notes that the values of a variable are evaluated when they are set.
    pub(crate) fn make_integer(&mut self, name: &str) {
        if !self.is_integer(name) {
            self.integers.push(name.to_owned());
        }
    }

    /// Tells whether a variable is an integer; of very many, all are taken for one.
    fn is_integer(&self, name: &str) -> bool {
        self.integers.len() > 64 || self.integers.iter().any(|integer| integer == name)
    }

    /// Walks an expression as it is evaluated: variables in it are expressions themselves, and
    /// subscripts are expanded once more.
    pub(crate) fn evaluates(&mut self, text: &str) {
        self.evaluates_to(text, 8);
    }

    fn evaluates_to(&mut self, text: &str, depth: u32) {
        self.expanded_again(text);
        if depth == 0 || !self.step(2) || !self.handle(text.len()) {
            return;
        }
        let names =
            text.split(|character: char| !(character.is_ascii_alphanumeric() || character == '_'));
        for name in names.filter(|name| {
            name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        }) {
            let value = self.state.scalar(name).filter(|value| {
                value.contains(|sign: char| sign.is_ascii_alphabetic() || sign == '_')
                    && value.len() < 1024
            });
            if let Some(value) = value.filter(|value| *value != text) {
                let value = value.to_owned();
                self.evaluates_to(&value, depth - 1);
            }
        }
    }

    /// Walks the substitutions in a text that bash expands once more.
    pub(crate) fn expanded_again(&mut self, text: &str) {
        if !text.contains("$(") && !text.contains('`') && !text.contains("${") {
            return;
        }
        if let Ok(parts) = Parser::new(text, 8).template() {
            self.pointing_at(self.here, |run| {
                run.deeper(run.here, |run| {
                    run.single(&parts);
                    Stream::unknown()
                })
            });
        }
    }

    /// Sets a variable.
    pub(crate) fn assign(&mut self, name: &str, value: String) {
        if name == "HOME" && !value.is_empty() && !text::uncertain(&value) {
            self.home.clone_from(&value);
        }
        self.leaves_table(name);
        if self.is_integer(name) {
            self.evaluates(&value);
        }
        self.state.set(name, Variable::Scalar(value));
    }
}
