//! Simple commands: what is run, and with what.

use super::state::{MAX_ITEMS, Variable};
use super::stream::{Origin, Stream};
use super::{READ, Run};
use crate::finding::{Span, Target};
use crate::syntax::{Assign, Command, Value, Word};
use crate::text::{self, UNKNOWN};
use crate::{tools, visible};

/// One argument and the word it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Argument {
    pub(crate) text: String,
    pub(crate) span: Span,
}

/// A command to be judged: its name and its arguments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'a> {
    /// The last part of the command word.
    pub(crate) name: &'a str,
    /// The command word as it stands.
    pub(crate) word: &'a str,
    /// The arguments without the command word.
    pub(crate) arguments: &'a [Argument],
    pub(crate) span: Span,
    /// Whether the arguments are names found by `find`, `xargs` and the like.
    pub(crate) bulk: bool,
}

impl<'a> Call<'a> {
    /// Returns the texts of the arguments.
    pub(crate) fn texts(&self) -> impl DoubleEndedIterator<Item = &'a str> + use<'a> {
        self.arguments.iter().map(|argument| argument.text.as_str())
    }

    /// Returns the arguments from `index` on.
    pub(crate) fn from(&self, index: usize) -> &'a [Argument] {
        self.arguments.get(index..).unwrap_or_default()
    }

    /// Returns the span of the argument at `index`, or of the command.
    pub(crate) fn span_of(&self, index: usize) -> Span {
        self.arguments
            .get(index)
            .map_or(self.span, |argument| argument.span)
    }
}

/// Names that a pattern in the command word is tried against.
const GUESSES: &[&str] = &[
    "rm", "dd", "sh", "bash", "dash", "zsh", "shutdown", "reboot", "halt", "poweroff", "mkfs",
    "kill", "killall5", "init", "find", "shred", "chmod", "curl", "wget", "python", "python3",
    "perl", "git", "sudo", "cat", "nc",
];

impl Run<'_> {
    pub(super) fn simple(
        &mut self,
        assigns: &[Assign],
        words: &[Word],
        arrays: &[Assign],
        command: &Command,
    ) -> Stream {
        self.substituted = Origin::NONE;
        self.deceptive_words(words);
        let arguments = self.arguments(words);
        let substituted = std::mem::take(&mut self.substituted);
        let redirected = self.redirects(&command.redirects);
        self.substituted = substituted;
        if arguments.is_empty() {
            for assign in assigns.iter().chain(arrays) {
                self.set(assign);
                if assign.subscript.is_none() {
                    self.judge_variable(assign);
                }
            }
            let output = redirected
                .stdin
                .clone()
                .filter(|_| assigns.is_empty())
                .unwrap_or_else(Stream::silent);
            return self.written(&redirected, output);
        }
        // Assignments in front last for this command only.
        let outer = (!assigns.is_empty()).then(|| self.state.clone());
        for assign in assigns {
            self.set(assign);
            self.judge_variable(assign);
        }
        for assign in arrays {
            self.set(assign);
        }
        let stdin = redirected.stdin.clone().or_else(|| self.stdin.clone());
        self.handle(stdin.as_ref().map_or(0, Stream::weight));
        if redirected.network {
            let span = Span::new(command.span.start, command.span.end);
            let rule = if stdin
                .as_ref()
                .is_some_and(|stream| stream.origin.has(Origin::SECRET))
            {
                "secrets-sent"
            } else {
                "shell-socket"
            };
            self.report(rule, span, Target::Remote, "");
        }
        let consumed = redirected.stdin.is_none();
        let mut left = None;
        let output = self.reading(stdin, |run| {
            let output = run.run_words(&arguments, command.span, false);
            left = run.stdin.take();
            output
        });
        if consumed {
            self.stdin = left;
        }
        if let Some(outer) = outer {
            let inner = std::mem::replace(&mut self.state, outer);
            self.state.after_subshell(&inner);
            self.state.cwd = inner.cwd;
        }
        self.written(&redirected, output)
    }

    fn judge_variable(&mut self, assign: &Assign) {
        let value = self
            .state
            .scalar(&assign.name)
            .unwrap_or_default()
            .to_owned();
        self.environment(&assign.name, &value, assign.span);
    }

    /// Control characters outside of quotes are in no honest command.
    fn deceptive_words(&mut self, words: &[Word]) {
        for word in words {
            for part in word.parts.iter() {
                let crate::syntax::Part::Text {
                    text,
                    quoted: false,
                } = part
                else {
                    continue;
                };
                let text = text.trim_end_matches('\r');
                if text.bytes().any(|byte| byte.is_ascii_control()) {
                    self.report("hidden-characters", word.span, Target::None, text);
                }
            }
        }
    }

    fn set(&mut self, assign: &Assign) {
        if let Some(subscript) = &assign.subscript {
            self.subscript(subscript);
        }
        self.leaves_table(&assign.name);
        match &assign.value {
            Value::Scalar(word) => {
                let mut text = self.single(&word.parts);
                if assign.subscript.is_some() {
                    self.set_item(assign, text);
                    return;
                }
                if assign.append {
                    let before = match self.state.variable(&assign.name) {
                        Some(Variable::Scalar(before)) => before.clone(),
                        _ => UNKNOWN.to_string(),
                    };
                    text = before + &text;
                }
                if !self.handle(text.len()) || text.len() > text::MAX_TEXT {
                    text = UNKNOWN.to_string();
                }
                self.assign(&assign.name, text);
            }
            Value::Array(words) => {
                let items = self
                    .arguments(words)
                    .into_iter()
                    .map(|argument| argument.text);
                // `[key]=value` items of an associative array count by their value.
                let items = items.map(|item| {
                    match item
                        .strip_prefix('[')
                        .and_then(|rest| rest.split_once("]="))
                    {
                        Some((_, value)) => value.to_owned(),
                        None => item,
                    }
                });
                let mut all = match self.state.variable(&assign.name) {
                    Some(Variable::Array(before)) if assign.append => before.clone(),
                    Some(Variable::Scalar(before)) if assign.append => vec![before.clone()],
                    _ => Vec::new(),
                };
                all.extend(items);
                self.handle(all.len() * 32);
                self.state.set_array(&assign.name, all);
            }
        }
    }

    fn set_item(&mut self, assign: &Assign, text: String) {
        let index = assign
            .subscript
            .as_deref()
            .map(|parts| self.single(parts))
            .unwrap_or_default();
        let mut items = match self.state.variable(&assign.name) {
            Some(Variable::Array(items)) => items.clone(),
            Some(Variable::Scalar(first)) => vec![first.clone()],
            None => Vec::new(),
        };
        self.handle(items.len() * 32);
        match index.trim().parse::<usize>() {
            Ok(at) => {
                if items.len() <= at {
                    items.resize(at.min(MAX_ITEMS) + 1, String::new());
                }
                if let Some(item) = items.get_mut(at) {
                    *item = text;
                }
            }
            Err(_) => items.push(text),
        }
        self.state.set_array(&assign.name, items);
    }

    /// Judges a command given as arguments, the first being the command word.
    pub(crate) fn run_words(&mut self, words: &[Argument], span: Span, bulk: bool) -> Stream {
        let Some((first, arguments)) = words.split_first() else {
            return Stream::silent();
        };
        // Programs read their words, and wrappers in wrappers the same ones again.
        let read: usize = words.iter().map(|word| word.text.len() * READ + 32).sum();
        if !self.handle(read) {
            return Stream::unknown();
        }
        self.deceptive_call(first, arguments);
        let user = self.user_rules.command(words);
        if let Some(rule) = user.report() {
            self.report(rule, first.span, Target::None, &first.text);
        }
        let allowed = self.allowed || user.allows();
        let outer = std::mem::replace(&mut self.allowed, allowed);
        let output = self.deeper(span, |run| run.resolve(first, arguments, span, bulk));
        self.allowed = outer;
        output
    }

    /// Finds out which command a command word means.
    fn resolve(
        &mut self,
        first: &Argument,
        arguments: &[Argument],
        span: Span,
        bulk: bool,
    ) -> Stream {
        let word = first.text.as_str();
        let name = word.rsplit('/').next().unwrap_or(word);
        let call = Call {
            name,
            word,
            arguments,
            span,
            bulk,
        };
        if text::uncertain(name) || (name.is_empty() && !word.is_empty()) {
            return self.dynamic(first, &call);
        }
        if text::globbed(name) {
            return self.globbed(first, &call);
        }
        if let Some(output) = self.function_or_alias(&call) {
            return output;
        }
        tools::judge(self, &call)
    }

    /// The name is not known: judged as if the unknown part were empty, and asked about.
    fn dynamic(&mut self, first: &Argument, call: &Call<'_>) -> Stream {
        let rule = if self.substituted.has(Origin::NETWORK) {
            "downloaded-code"
        } else if self.substituted.has(Origin::DECODED) {
            "hidden-code"
        } else {
            "unknown-command"
        };
        self.report(rule, first.span, Target::None, &first.text);
        let nothing = |text: &str| text.chars().all(|sign| matches!(sign, '/' | UNKNOWN));
        if nothing(call.word) {
            let known = call.arguments.iter().position(|word| !nothing(&word.text));
            let known = known.unwrap_or(call.arguments.len());
            self.run_words(call.from(known), call.span, call.bulk);
            return Stream::unknown();
        }
        let mut words = Vec::with_capacity(call.arguments.len() + 1);
        words.push(Argument {
            text: call.word.replace(UNKNOWN, ""),
            span: first.span,
        });
        words.extend_from_slice(call.arguments);
        self.run_words(&words, call.span, call.bulk);
        Stream::unknown()
    }

    /// The name is a pattern: judged as every command worth fearing that it can mean.
    fn globbed(&mut self, first: &Argument, call: &Call<'_>) -> Stream {
        let mut guessed = false;
        for guess in GUESSES
            .iter()
            .filter(|guess| text::matches(call.name, guess))
            .take(6)
        {
            guessed = true;
            let call = Call {
                name: guess,
                word: guess,
                ..*call
            };
            tools::judge(self, &call);
        }
        if guessed || !call.word.contains('/') {
            self.report("unknown-command", first.span, Target::None, &first.text);
        }
        Stream::unknown()
    }

    fn function_or_alias(&mut self, call: &Call<'_>) -> Option<Stream> {
        if call.word.contains('/') {
            return None;
        }
        let alias = self
            .state
            .alias(call.name)
            .filter(|alias| !alias.is_empty())
            .map(str::to_owned);
        if let Some(alias) = alias {
            return Some(self.call_alias(&alias, call));
        }
        let body = self.state.function(call.name)?;
        let arguments = call.texts().map(str::to_owned).collect();
        Some(self.call_function(call.name, &body, arguments, call.span))
    }

    fn call_alias(&mut self, alias: &str, call: &Call<'_>) -> Stream {
        let mut script = alias.to_owned();
        for argument in call.texts() {
            script.push(' ');
            script.push_str(&quoted(argument));
        }
        // An alias is not looked up again inside itself.
        self.state.set_alias(call.name, "");
        let output = if self.state.aliases_expand {
            self.script(&script, call.span)
        } else {
            // Aliases are off in scripts, but a person's shell may have them on.
            self.at_most_ask(|run| run.script(&script, call.span))
        };
        self.state.set_alias(call.name, alias);
        output
    }

    fn deceptive_call(&mut self, first: &Argument, arguments: &[Argument]) {
        let name = first.text.rsplit('/').next().unwrap_or_default();
        if self.deceives(name) {
            self.report("false-letters", first.span, Target::None, &first.text);
        }
        for argument in arguments {
            let text = argument.text.as_str();
            let option = text
                .strip_prefix('-')
                .map(|rest| rest.split('=').next().unwrap_or(rest));
            let hidden =
                option.is_some_and(|option| !option.contains([' ', '\n']) && self.deceives(option));
            if hidden || visible::false_dash(text) && !text.contains(' ') {
                self.report("false-letters", argument.span, Target::None, text);
            }
        }
    }

    fn deceives(&self, text: &str) -> bool {
        if text.is_ascii() && !text.bytes().any(|byte| byte.is_ascii_control()) {
            return false;
        }
        let plain: String = text
            .chars()
            .filter(|character| !matches!(*character, UNKNOWN | text::STAR | text::ONE))
            .collect();
        let plain = plain.trim_end_matches('\n');
        visible::imitates(plain) && self.calls.is_empty()
    }
}

/// Quotes an argument so that a shell reads it back.
pub(crate) fn quoted(text: &str) -> String {
    let plain = !text.is_empty()
        && text.chars().all(|character| {
            character.is_ascii_alphanumeric()
                || "-_./=:,@%+".contains(character)
                || character == text::STAR
        });
    if plain {
        return text.replace(text::STAR, "*");
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}
