//! Patterns over a program's arguments, the language of the rule tables.
//!
//! Words in order, separated by blanks, alternatives by `|`:
//! - the first word names the programs;
//! - a plain word is the next operand: `docker volume rm`; `*` is any operand; `x:y*` may use `*`;
//! - `-f|--force` wants one of these options, `--grace=0` an option with such a value;
//! - `@word` wants an operand like this anywhere after those already found;
//! - `!-n|--dry-run` or `!@word` must not be there;
//! - `$` wants no further operand.
//!
//! A program that is only asked for its help does nothing, so `--help` never matches.

use super::options::{Options, abbreviates};
use crate::run::Call;
use crate::text::matches;

/// A parsed pattern.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    programs: Vec<&'static str>,
    terms: Vec<Term>,
}

type Alternatives = Vec<&'static str>;

#[derive(Debug, Clone)]
enum Term {
    Operand(Alternatives),
    Anywhere(Alternatives),
    Nowhere(Alternatives),
    Option(Alternatives),
    NoOption(Alternatives),
    End,
}

impl Pattern {
    pub(crate) fn parse(text: &'static str) -> Self {
        let mut words = text.split_whitespace();
        let programs = words.next().unwrap_or_default().split('|').collect();
        Self {
            programs,
            terms: words.map(term).collect(),
        }
    }

    pub(crate) fn programs(&self) -> impl Iterator<Item = &'static str> {
        self.programs.iter().copied()
    }

    /// Tells whether the pattern finds this call, and at which argument.
    pub(crate) fn finds(&self, call: &Call<'_>, options: &Options<'_>) -> Option<usize> {
        let mut next = 0;
        let mut found = 0;
        for term in &self.terms {
            match term {
                Term::Operand(words) => {
                    // Operands may be passed over only if they may be the value of an option.
                    loop {
                        let operand = options.operands.get(next)?;
                        next += 1;
                        if any(words, operand.text) {
                            found = operand.at;
                            break;
                        }
                        if !operand.doubtful {
                            return None;
                        }
                    }
                }
                Term::Anywhere(words) => {
                    found = options
                        .operands
                        .get(next..)?
                        .iter()
                        .find(|operand| any(words, operand.text))?
                        .at;
                }
                Term::Nowhere(words) => {
                    if options
                        .operands
                        .iter()
                        .any(|operand| any(words, operand.text))
                    {
                        return None;
                    }
                }
                Term::Option(names) => found = option(names, call, options)?,
                Term::NoOption(names) => {
                    if option(names, call, options).is_some() {
                        return None;
                    }
                }
                Term::End => {
                    if options.operands.len() > next {
                        return None;
                    }
                }
            }
        }
        Some(found)
    }
}

fn term(word: &'static str) -> Term {
    let split = |text: &'static str| text.split('|').collect();
    if word == "$" {
        return Term::End;
    }
    if let Some(rest) = word.strip_prefix("!@") {
        return Term::Nowhere(split(rest));
    }
    if let Some(rest) = word.strip_prefix('!') {
        return Term::NoOption(split(rest));
    }
    if let Some(rest) = word.strip_prefix('@') {
        return Term::Anywhere(split(rest));
    }
    if word.starts_with('-') {
        return Term::Option(split(word));
    }
    Term::Operand(split(word))
}

fn any(words: &[&str], text: &str) -> bool {
    words.iter().any(|word| {
        if word.contains('*') {
            matches(word, text)
        } else {
            *word == text
        }
    })
}

/// Finds one of the options; the argument's index is returned.
fn option(names: &[&str], call: &Call<'_>, options: &Options<'_>) -> Option<usize> {
    names.iter().find_map(|name| {
        let (name, value) = name
            .split_once('=')
            .map_or((*name, None), |(name, value)| (name, Some(value)));
        let fits = |found: Option<&str>| {
            value.is_none_or(|wanted| found.is_some_and(|found| matches(wanted, found)))
        };
        if let Some(long) = name.strip_prefix("--") {
            let flag = options.flags.iter().find(|flag| {
                flag.long && flag.name.len() > 1 && abbreviates(flag.name, long) && fits(flag.value)
            });
            return flag.map(|flag| flag.at);
        }
        let letter = name.strip_prefix('-').unwrap_or(name);
        if letter.chars().count() == 1 {
            let flag = options
                .flags
                .iter()
                .find(|flag| !flag.long && flag.name == letter && fits(flag.value));
            return flag.map(|flag| flag.at);
        }
        call.arguments.iter().position(|argument| {
            let text = argument.text.as_str();
            text == name
                || text
                    .strip_prefix(name)
                    .and_then(|rest| rest.strip_prefix('='))
                    .is_some_and(|rest| fits(Some(rest)))
        })
    })
}
