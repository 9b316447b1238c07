//! Options as programs read them: bundled, abbreviated, with values, in any order, up to `--`.

use crate::run::Argument;
use crate::text::{first, from, upto};

/// How one program reads its options.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grammar<'g> {
    /// Single letters that take a value.
    pub(crate) short: &'g str,
    /// Long names that take a value in the next argument.
    pub(crate) long: &'g [&'g str],
    /// Whether options may follow operands.
    pub(crate) permutes: bool,
    /// Whether `-name` is one long option and not a bundle.
    pub(crate) single_dash: bool,
}

impl<'g> Grammar<'g> {
    /// The usual: options anywhere, none that takes a value is known.
    pub(crate) const PLAIN: Self = Self {
        short: "",
        long: &[],
        permutes: true,
        single_dash: false,
    };

    pub(crate) const fn new(short: &'g str, long: &'g [&'g str]) -> Self {
        Self {
            short,
            long,
            ..Self::PLAIN
        }
    }

    /// Options end at the first operand.
    pub(crate) const fn stopping(self) -> Self {
        Self {
            permutes: false,
            ..self
        }
    }

    /// `-name` is a long option.
    pub(crate) const fn dashed(self) -> Self {
        Self {
            single_dash: true,
            ..self
        }
    }
}

/// One option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flag<'a> {
    /// A letter, or a long name without its dashes.
    pub(crate) name: &'a str,
    pub(crate) long: bool,
    pub(crate) value: Option<&'a str>,
    /// The index of the argument.
    pub(crate) at: usize,
}

/// One operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operand<'a> {
    pub(crate) text: &'a str,
    pub(crate) at: usize,
    /// Whether it follows an option that may have wanted it as its value.
    pub(crate) doubtful: bool,
}

/// Arguments sorted into options and operands.
#[derive(Debug, Default)]
pub(crate) struct Options<'a> {
    pub(crate) flags: Vec<Flag<'a>>,
    pub(crate) operands: Vec<Operand<'a>>,
}

impl<'a> Options<'a> {
    pub(crate) fn parse(arguments: &'a [Argument], grammar: Grammar<'_>) -> Self {
        let mut options = Self::default();
        let mut at = 0;
        let mut ended = false;
        while let Some(argument) = arguments.get(at) {
            let text = argument.text.as_str();
            let next = arguments.get(at + 1).map(|next| next.text.as_str());
            if ended || text.len() < 2 || !text.starts_with('-') {
                let doubtful = !ended
                    && options
                        .flags
                        .last()
                        .is_some_and(|flag| flag.at + 1 == at && flag.value.is_none());
                options.operands.push(Operand { text, at, doubtful });
                ended |= !grammar.permutes;
            } else if text == "--" {
                ended = true;
            } else if let Some(name) = text.strip_prefix("--") {
                at += options.long(name, next, grammar, at);
            } else if grammar.single_dash {
                at += options.long(from(text, 1), next, grammar, at);
            } else {
                at += options.bundle(from(text, 1), next, grammar, at);
            }
            at += 1;
        }
        options
    }

    /// Adds a long option; returns how many further arguments it used.
    fn long(
        &mut self,
        name: &'a str,
        next: Option<&'a str>,
        grammar: Grammar<'_>,
        at: usize,
    ) -> usize {
        if let Some((name, value)) = name.split_once('=') {
            self.flags.push(Flag {
                name,
                long: true,
                value: Some(value),
                at,
            });
            return 0;
        }
        let wants = grammar.long.iter().any(|known| {
            *known == name || (!grammar.single_dash && name.len() > 2 && known.starts_with(name))
        });
        let value = if wants { next } else { None };
        self.flags.push(Flag {
            name,
            long: true,
            value,
            at,
        });
        usize::from(value.is_some())
    }

    fn bundle(
        &mut self,
        letters: &'a str,
        next: Option<&'a str>,
        grammar: Grammar<'_>,
        at: usize,
    ) -> usize {
        let mut rest = letters;
        while let Some((letter, after)) = first(rest) {
            let name = upto(rest, letter.len_utf8());
            rest = after;
            if !grammar.short.contains(letter) {
                self.flags.push(Flag {
                    name,
                    long: false,
                    value: None,
                    at,
                });
                continue;
            }
            let value = if rest.is_empty() { next } else { Some(rest) };
            self.flags.push(Flag {
                name,
                long: false,
                value,
                at,
            });
            return usize::from(rest.is_empty() && value.is_some());
        }
        0
    }

    /// Tells whether a letter is among the options.
    pub(crate) fn short(&self, letters: &str) -> bool {
        self.flags
            .iter()
            .any(|flag| !flag.long && letters.contains(flag.name))
    }

    /// Tells whether a long option is there, perhaps abbreviated.
    pub(crate) fn long_flag(&self, full: &str) -> bool {
        self.flags
            .iter()
            .any(|flag| flag.long && abbreviates(flag.name, full))
    }

    /// Tells whether one of the letters or the long option is there.
    pub(crate) fn has(&self, letters: &str, full: &str) -> bool {
        self.short(letters) || self.long_flag(full)
    }

    /// Returns the values of a letter or a long option.
    pub(crate) fn values(
        &self,
        letters: &str,
        full: &str,
    ) -> impl Iterator<Item = (&'a str, usize)> {
        self.flags.iter().filter_map(move |flag| {
            let named = if flag.long {
                abbreviates(flag.name, full)
            } else {
                letters.contains(flag.name)
            };
            flag.value.filter(|_| named).map(|value| (value, flag.at))
        })
    }

    /// Returns the first value of a letter or a long option.
    pub(crate) fn value(&self, letters: &str, full: &str) -> Option<&'a str> {
        self.values(letters, full).map(|(value, _)| value).next()
    }

    /// Returns the texts of the operands.
    pub(crate) fn texts(&self) -> impl DoubleEndedIterator<Item = &'a str> {
        self.operands.iter().map(|operand| operand.text)
    }

    /// Tells whether the program would only print its help or version.
    pub(crate) fn asks_for_help(&self) -> bool {
        self.flags.iter().any(|flag| {
            flag.long && flag.value.is_none() && (flag.name == "help" || flag.name == "version")
        })
    }
}

/// Tells whether `name` is `full` or a beginning of it that is long enough.
pub(crate) fn abbreviates(name: &str, full: &str) -> bool {
    name == full || (!name.is_empty() && full.starts_with(name))
}
