//! What a rule says about one place in the text.

use super::class::Class;

/// How far past its start a rule looks before it decides.
pub(super) const JUDGED: usize = 256;

/// The text that is known so far.
#[derive(Clone, Copy)]
pub(super) struct View<'a> {
    /// What was read, with what came before the place in question.
    pub(super) bytes: &'a [u8],
    /// Whether nothing more will come.
    pub(super) complete: bool,
}

/// What a rule found.
pub(super) enum Found {
    /// There is no secret here.
    No,
    /// More text is needed; what stands before `hold` is no part of a secret.
    More {
        /// Where the secret would start.
        hold: usize,
    },
    /// There is one.
    Yes(Hit),
}

/// Where a secret is.
pub(super) struct Hit {
    /// Its first byte.
    pub(super) from: usize,
    /// The byte after the last one that is known.
    pub(super) to: usize,
    /// What it is, in words.
    pub(super) kind: &'static str,
    /// What else belongs to it.
    pub(super) rest: Rest,
}

/// What follows the known part of a secret and belongs to it.
#[derive(Debug, Clone)]
pub(super) enum Rest {
    /// Nothing.
    Nothing,
    /// All further bytes of this set.
    Run(Class),
    /// The lines of a private key.
    Key(super::pem::Lines),
}

/// A run of bytes of one set.
pub(super) struct Run {
    /// The byte after the last.
    pub(super) end: usize,
    /// Whether it ends only because no more text is known yet.
    pub(super) open: bool,
    /// Whether it ends only because it is long enough to decide.
    pub(super) cut: bool,
}

impl<'a> View<'a> {
    /// Returns the byte at a place, if it is known.
    #[inline]
    pub(super) fn at(&self, place: usize) -> Option<u8> {
        self.bytes.get(place).copied()
    }

    /// Returns the byte before a place.
    #[inline]
    pub(super) fn before(&self, place: usize) -> Option<u8> {
        self.at(place.checked_sub(1)?)
    }

    /// Returns a part of the text; nothing where there is none.
    #[inline]
    pub(super) fn part(&self, from: usize, to: usize) -> &'a [u8] {
        self.bytes.get(from..to).unwrap_or_default()
    }

    /// Returns what follows a place.
    #[inline]
    pub(super) fn from(&self, place: usize) -> &'a [u8] {
        self.bytes.get(place..).unwrap_or_default()
    }

    /// Measures the run of bytes of a set from a place on, at most `limit` bytes.
    #[inline]
    pub(super) fn run(&self, from: usize, class: Class, limit: usize) -> Run {
        let text = self.from(from);
        let text = &text[..text.len().min(limit)];
        let length = text
            .iter()
            .position(|byte| !class.has(*byte))
            .unwrap_or(text.len());
        let end = from + length;
        Run {
            end,
            cut: length == limit,
            open: length < limit && end >= self.bytes.len() && !self.complete,
        }
    }

    /// Tells whether a literal stands at a place; `None` when that is not known yet.
    #[inline]
    pub(super) fn literal(&self, place: usize, literal: &[u8]) -> Option<bool> {
        let text = self.from(place);
        if text.len() >= literal.len() {
            return Some(text.starts_with(literal));
        }
        if literal.starts_with(text) && !self.complete {
            return None;
        }
        Some(false)
    }

    /// Tells whether a word can start at a place: no letter or digit stands before it, unless it
    /// is the end of an escape (`\n`, a colour).
    #[inline]
    pub(super) fn starts_word(&self, place: usize) -> bool {
        let Some(before) = self.before(place) else {
            return true;
        };
        !before.is_ascii_alphanumeric() || self.ends_escape(place)
    }

    fn ends_escape(&self, place: usize) -> bool {
        let head = &self.bytes[..place];
        match head {
            [.., b'\\', b'n' | b't' | b'r'] => true,
            [.., b'%', a, b] => a.is_ascii_hexdigit() && b.is_ascii_hexdigit(),
            [rest @ .., b'm'] => {
                let digits = rest
                    .iter()
                    .rev()
                    .take(24)
                    .take_while(|byte| byte.is_ascii_digit() || **byte == b';')
                    .count();
                rest[..rest.len() - digits].ends_with(b"\x1b[")
            }
            _ => false,
        }
    }
}
