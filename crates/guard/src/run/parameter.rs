//! The value of `$name` and `${…}`.

use super::Run;
use super::expand::Expanded;
use super::state::Variable;
use crate::finding::Target;
use crate::syntax::{Fetch, Operation, Parameter, Part};
use crate::text::{Escapes, MAX_TEXT, UNKNOWN, first, from, matches, uncertain, unescape, upto};

impl Run<'_> {
    pub(super) fn parameter(&mut self, parameter: &Parameter, quoted: bool) -> Expanded {
        let subscript = parameter
            .subscript
            .as_deref()
            .map(|parts| self.subscript(parts));
        let value = self.fetched(parameter, subscript.as_deref(), quoted);
        self.operate(parameter, value)
    }

    /// Expands a subscript, which is an expression.
    pub(super) fn subscript(&mut self, parts: &[Part]) -> String {
        let text = self.single(parts);
        if !matches!(text.as_str(), "@" | "*") {
            self.evaluates(&text);
        }
        text
    }

    /// Returns the value before its operation, `None` when nothing is known of it.
    fn fetched(
        &mut self,
        parameter: &Parameter,
        subscript: Option<&str>,
        quoted: bool,
    ) -> Option<Expanded> {
        match parameter.fetch {
            Fetch::Length => {
                let value = self.value(&parameter.name, subscript, quoted)?;
                let length = match value {
                    Expanded::One(text) if !uncertain(&text) => text.chars().count(),
                    Expanded::Many(items) => items.len(),
                    Expanded::One(_) => return None,
                };
                Some(Expanded::One(length.to_string()))
            }
            Fetch::Indirect => {
                let Some(Expanded::One(name)) = self.value(&parameter.name, subscript, quoted)
                else {
                    return None;
                };
                let (name, subscript) =
                    match name.strip_suffix(']').and_then(|name| name.split_once('[')) {
                        Some((array, subscript)) => (array.to_owned(), Some(subscript.to_owned())),
                        None => (name, None),
                    };
                if let Some(subscript) = &subscript {
                    self.expanded_again(subscript);
                }
                self.value(&name, subscript.as_deref(), quoted)
            }
            Fetch::Value => self.value(&parameter.name, subscript, quoted),
        }
    }

    fn value(&mut self, name: &str, subscript: Option<&str>, quoted: bool) -> Option<Expanded> {
        if is_positional(name) {
            self.took_parameters = true;
            return self.positional(name, quoted);
        }
        let variable = self.state.variable(name);
        match (variable, subscript) {
            (Some(Variable::Array(items)), Some("*")) if quoted => {
                Some(Expanded::One(items.join(" ")))
            }
            (Some(Variable::Array(items)), Some("@" | "*")) => Some(Expanded::Many(items.clone())),
            (Some(Variable::Array(items)), Some(index)) => {
                let index: i64 = index.trim().parse().ok()?;
                let at = if index < 0 {
                    index.saturating_add(i64::try_from(items.len()).ok()?)
                } else {
                    index
                };
                let item = usize::try_from(at).ok().and_then(|at| items.get(at));
                Some(Expanded::One(item.cloned().unwrap_or_default()))
            }
            (Some(Variable::Array(items)), None) => {
                Some(Expanded::One(items.first().cloned().unwrap_or_default()))
            }
            (Some(Variable::Scalar(text)), None | Some("0" | "@" | "*")) => {
                Some(Expanded::One(text.clone()))
            }
            (Some(Variable::Scalar(_)), Some(_)) => None,
            (None, _) => self.special(name),
        }
    }

    fn positional(&self, name: &str, quoted: bool) -> Option<Expanded> {
        if name == "0" {
            return self
                .state
                .name
                .as_deref()
                .map(|name| Expanded::One(name.to_owned()));
        }
        let known = self.state.positional.as_ref()?;
        Some(match name {
            "#" => Expanded::One(known.len().to_string()),
            "*" if quoted => Expanded::One(known.join(" ")),
            "@" | "*" => Expanded::Many(known.to_vec()),
            _ => {
                let index: usize = name.parse().ok()?;
                Expanded::One(
                    known
                        .get(index.wrapping_sub(1))
                        .cloned()
                        .unwrap_or_default(),
                )
            }
        })
    }

    fn special(&self, name: &str) -> Option<Expanded> {
        match name {
            "PWD" => Some(Expanded::One(self.state.cwd.as_deref()?.to_owned())),
            "BASH" | "SHELL" => Some(Expanded::One("/bin/bash".to_owned())),
            _ => None,
        }
    }

    fn operate(&mut self, parameter: &Parameter, value: Option<Expanded>) -> Expanded {
        let unknown = || Expanded::One(UNKNOWN.to_string());
        match &parameter.operation {
            Operation::None => value.unwrap_or_else(unknown),
            Operation::Names => unknown(),
            Operation::Fallback { sign, word } => self.fallback(parameter, *sign, word, value),
            Operation::TrimStart { pattern, longest } => {
                let pattern = self.pattern(pattern);
                each(value, |text| trim_start(text, &pattern, *longest))
            }
            Operation::TrimEnd { pattern, longest } => {
                let pattern = self.pattern(pattern);
                each(value, |text| trim_end(text, &pattern, *longest))
            }
            Operation::Replace { pattern, with, all } => {
                let pattern = self.pattern(pattern);
                let with = self.single(with);
                each(value, |text| replace(text, &pattern, &with, *all))
            }
            Operation::Slice { from, length } => {
                let from = self.arithmetic(from);
                let length = length.as_deref().map(|parts| self.arithmetic(parts));
                slice(value, &parameter.name, &from, length.as_deref())
            }
            Operation::Other(parts) => {
                let what = self.pattern(parts);
                match what.as_str() {
                    // `@Q` and its kin keep a plain text as it is.
                    "Q" => value.unwrap_or_else(unknown),
                    "E" => each(value, |text| Some(unescape(text, Escapes::Quotes).0)),
                    "P" => self.prompt(value.as_ref()),
                    "U" => each(value, |text| Some(text.to_uppercase())),
                    "L" => each(value, |text| Some(text.to_lowercase())),
                    // `^` and `,`: tried as lower case, in which the names of commands are written.
                    _ => each(value, |text| Some(text.to_lowercase())),
                }
            }
        }
    }

    /// `@P` expands a value as a prompt: its substitutions are run.
    fn prompt(&mut self, value: Option<&Expanded>) -> Expanded {
        let texts = match value {
            None => vec![UNKNOWN.to_string()],
            Some(Expanded::One(text)) => vec![text.clone()],
            Some(Expanded::Many(items)) => items.clone(),
        };
        for text in texts {
            if uncertain(&text) {
                self.report("unknown-code", self.here, Target::None, "");
            }
            let plain = unescape(&text, Escapes::Quotes).0;
            self.expanded_again(&text);
            self.expanded_again(&plain);
        }
        Expanded::One(UNKNOWN.to_string())
    }

    fn fallback(
        &mut self,
        parameter: &Parameter,
        sign: char,
        word: &[Part],
        value: Option<Expanded>,
    ) -> Expanded {
        let other = self.single(word);
        match (sign, value) {
            // A message on stderr; the script ends there.
            ('?', value) => value.unwrap_or(Expanded::One(UNKNOWN.to_string())),
            ('+', Some(Expanded::One(text))) if text.is_empty() => Expanded::One(text),
            ('+', _) => Expanded::One(other),
            (_, Some(Expanded::One(text))) if text.is_empty() => Expanded::One(other),
            (_, Some(value)) => value,
            ('=', None) => {
                self.assign(&parameter.name, other.clone());
                Expanded::One(other)
            }
            // The variable may be set outside of this text: then its value is not known.
            (_, None) => Expanded::One(other),
        }
    }
}

fn is_positional(name: &str) -> bool {
    matches!(name, "@" | "*" | "#") || name.bytes().all(|byte| byte.is_ascii_digit())
}

/// Changes every known item.
fn each(value: Option<Expanded>, change: impl Fn(&str) -> Option<String>) -> Expanded {
    let change = |text: String| {
        if uncertain(&text) {
            UNKNOWN.to_string()
        } else {
            change(&text).unwrap_or_else(|| UNKNOWN.to_string())
        }
    };
    match value {
        None => Expanded::One(UNKNOWN.to_string()),
        Some(Expanded::One(text)) => Expanded::One(change(text)),
        Some(Expanded::Many(items)) => Expanded::Many(items.into_iter().map(change).collect()),
    }
}

/// Longer texts are not tried against patterns: that would be quadratic.
const MAX_MATCHED: usize = 256;

fn trim_start(text: &str, pattern: &str, longest: bool) -> Option<String> {
    if text.len() > MAX_MATCHED || uncertain(pattern) {
        return None;
    }
    let ends = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    let mut found = ends.filter(|end| matches(pattern, upto(text, *end)));
    let end = if longest {
        found.next_back_of()
    } else {
        found.next()
    };
    Some(from(text, end.unwrap_or(0)).to_owned())
}

fn trim_end(text: &str, pattern: &str, longest: bool) -> Option<String> {
    if text.len() > MAX_MATCHED || uncertain(pattern) {
        return None;
    }
    let starts = text.char_indices().map(|(at, _)| at).chain([text.len()]);
    let mut found = starts.filter(|start| matches(pattern, from(text, *start)));
    let start = if longest {
        found.next()
    } else {
        found.next_back_of()
    };
    Some(upto(text, start.unwrap_or(text.len())).to_owned())
}

/// The last item of an iterator that only goes forward.
trait LastOf: Iterator {
    fn next_back_of(self) -> Option<Self::Item>;
}

impl<I: Iterator> LastOf for I {
    fn next_back_of(self) -> Option<I::Item> {
        self.last()
    }
}

fn replace(text: &str, pattern: &str, with: &str, all: bool) -> Option<String> {
    if text.len() > MAX_MATCHED || uncertain(pattern) || pattern.is_empty() {
        return None;
    }
    if let Some(anchored) = pattern.strip_prefix('#') {
        return Some(
            text.strip_prefix(anchored)
                .map_or_else(|| text.to_owned(), |rest| format!("{with}{rest}")),
        );
    }
    if let Some(anchored) = pattern.strip_prefix('%') {
        return Some(
            text.strip_suffix(anchored)
                .map_or_else(|| text.to_owned(), |rest| format!("{rest}{with}")),
        );
    }
    let mut output = String::new();
    let mut rest = text;
    while let Some((character, after)) = first(rest) {
        let mut ends = rest
            .char_indices()
            .map(|(at, character)| at + character.len_utf8());
        if let Some(end) = ends.rfind(|end| matches(pattern, upto(rest, *end))) {
            output.push_str(with);
            rest = from(rest, end);
            if !all {
                break;
            }
        } else {
            output.push(character);
            rest = after;
        }
        if output.len() > MAX_TEXT {
            return None;
        }
    }
    output.push_str(rest);
    Some(output)
}

fn slice(value: Option<Expanded>, name: &str, from: &str, length: Option<&str>) -> Expanded {
    let unknown = Expanded::One(UNKNOWN.to_string());
    let Ok(from) = from.parse::<i64>() else {
        return unknown;
    };
    let length = match length.map(str::parse::<i64>) {
        None => None,
        Some(Ok(length)) => Some(length),
        Some(Err(_)) => return unknown,
    };
    let range = |count: usize| {
        let count = i64::try_from(count).unwrap_or(i64::MAX);
        let start = if from < 0 {
            count.saturating_add(from)
        } else {
            from
        }
        .clamp(0, count);
        let end = match length {
            None => count,
            Some(length) if length < 0 => count.saturating_add(length),
            Some(length) => start.saturating_add(length),
        };
        let end = end.clamp(start, count);
        (
            usize::try_from(start).unwrap_or(0),
            usize::try_from(end - start).unwrap_or(0),
        )
    };
    match value {
        None => unknown,
        Some(Expanded::One(text)) if uncertain(&text) => unknown,
        Some(Expanded::One(text)) => {
            let (skip, take) = range(text.chars().count());
            Expanded::One(text.chars().skip(skip).take(take).collect())
        }
        Some(Expanded::Many(mut items)) => {
            // `${@:1}` counts from the first parameter.
            if name == "@" || name == "*" {
                items.insert(0, "bash".to_owned());
            }
            let (skip, take) = range(items.len());
            Expanded::Many(items.into_iter().skip(skip).take(take).collect())
        }
    }
}
