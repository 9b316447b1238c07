//! All rules, and the fast search for places where one of them may hold.

use std::collections::HashSet;
use std::fmt;

use super::found::{Found, View};
use super::known::Known;
use super::shapes::SHAPES;
use super::{names, pem, special, url};

/// What may hold at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Rule {
    Shape(usize),
    Known(usize),
    Name(&'static str),
    Url,
    Jwt,
    Aws,
    Bearer,
    Telegram,
    Azure,
    Discord,
    Twilio,
    Pem,
    Putty,
}

/// A rule and what a text must have where it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Entry {
    gram: u32,
    /// The fourth byte, if it must be a certain one.
    fourth: Option<u8>,
    rule: Rule,
}

/// A secret can start here if no letter or digit stands before.
const AT_WORD: u8 = 1;
/// A secret can start here wherever it stands.
const ANYWHERE: u8 = 2;

/// The rules by the three bytes that a text must have where they hold.
///
/// A table of bits, small enough for the processor's first cache, says for any three bytes whether
/// a rule starts so; in ordinary text that is seldom the case, and only then the rules are asked.
pub(super) struct Rules {
    bits: Box<[u64; 1024]>,
    /// Where the rules of a slot start.
    starts: Vec<u16>,
    /// The rules by slot.
    entries: Vec<Entry>,
    /// Whether a secret can start with this byte, or with these two.
    one: Vec<u8>,
    two: Vec<u8>,
    pub(super) known: Known,
}

impl Rules {
    pub(super) fn new(known: Known) -> Self {
        let mut rules = Self {
            bits: Box::new([0; 1024]),
            starts: vec![0; 65_537],
            entries: Vec::new(),
            one: vec![0; 256],
            two: vec![0; 65_536],
            known,
        };
        for (at, shape) in SHAPES.iter().enumerate() {
            let heads = if shape.keeps_prefix { 0 } else { AT_WORD };
            rules.add(shape.prefix.as_bytes(), Rule::Shape(at), heads);
        }
        for anchor in names::ANCHORS {
            rules.add(anchor.as_bytes(), Rule::Name(anchor), 0);
        }
        rules.add(b"://", Rule::Url, 0);
        rules.add(b"eyJ", Rule::Jwt, AT_WORD);
        for id in [b"AKIA", b"ASIA", b"ABIA", b"ACCA"] {
            rules.add(id, Rule::Aws, AT_WORD);
        }
        rules.add(b"bearer", Rule::Bearer, 0);
        rules.add(b":AA", Rule::Telegram, 0);
        rules.add(pem::BEGIN, Rule::Pem, 0);
        rules.add(pem::PUTTY, Rule::Putty, 0);
        for digit in b'0'..=b'9' {
            rules.add(&[digit, b'Q', b'~'], Rule::Azure, ANYWHERE);
        }
        for digit in *b"0123456789abcdef" {
            rules.add(&[b'S', b'K', digit], Rule::Twilio, AT_WORD);
        }
        // The base64 of a number starts so.
        for first in *b"MNO" {
            for second in *b"DTjz" {
                for third in *b"AEIMQUYcgk" {
                    rules.add(&[first, second, third], Rule::Discord, AT_WORD);
                }
            }
        }
        for at in 0..rules.known.len() {
            let value = rules.known.value(at).to_vec();
            rules.add(&value, Rule::Known(at), ANYWHERE);
        }
        // Rules that look at the whole place need to be there once.
        let mut seen = HashSet::new();
        rules.entries.retain(|entry| seen.insert(*entry));
        rules.entries.sort_by_key(|entry| slot(entry.gram));
        for entry in &rules.entries {
            rules.starts[slot(entry.gram) + 1] += 1;
        }
        for at in 1..rules.starts.len() {
            rules.starts[at] += rules.starts[at - 1];
        }
        rules
    }

    fn add(&mut self, start: &[u8], rule: Rule, heads: u8) {
        let [a, b, c, ..] = start else { return };
        let gram = gram(*a, *b, *c);
        let slot = slot(gram);
        self.bits[slot / 64] |= 1 << (slot % 64);
        let fourth = start.get(3).copied().map(fold);
        let entry = Entry { gram, fourth, rule };
        self.entries.push(entry);
        self.one[usize::from(fold(*a))] |= heads;
        self.two[pair(*a, *b)] |= heads;
    }

    /// Returns the next place, from `from` on, where a rule may hold.
    pub(super) fn next(&self, bytes: &[u8], from: usize) -> Option<usize> {
        let mut at = from;
        // Six places at a time, from eight bytes.
        while let Some(eight) = bytes.get(at..)?.first_chunk() {
            let eight = u64::from_le_bytes(*eight) | 0x2020_2020_2020_2020;
            let mut found = 0;
            for place in 0..6 {
                let [a, b, c, ..] = (eight >> (8 * place)).to_le_bytes();
                found |= self.bit(slot(gram(a, b, c))) << place;
            }
            if found != 0 {
                return Some(at + found.trailing_zeros() as usize);
            }
            at += 6;
        }
        let rest = bytes.get(at..)?.windows(3);
        let mut grams = rest.map(|window| gram(window[0], window[1], window[2]));
        Some(at + grams.position(|gram| self.bit(slot(gram)) != 0)?)
    }

    #[inline]
    fn bit(&self, slot: usize) -> u64 {
        (self.bits[slot / 64 % 1024] >> (slot % 64)) & 1
    }

    /// Asks the rules about a place.
    pub(super) fn look(&self, view: &View<'_>, place: usize) -> Found {
        let Some([a, b, c]) = view.from(place).first_chunk() else {
            return Found::No;
        };
        let gram = gram(*a, *b, *c);
        let slot = slot(gram);
        let rules = usize::from(self.starts[slot])..usize::from(self.starts[slot + 1]);
        let next = view.at(place + 3).map(fold);
        let holds = |entry: &&Entry| {
            let fourth = next.is_none() || entry.fourth.is_none() || entry.fourth == next;
            fourth && entry.gram == gram
        };
        let mut more: Option<usize> = None;
        let mut best = None;
        for entry in self.entries[rules].iter().filter(holds) {
            match self.ask(entry.rule, view, place) {
                Found::No => {}
                Found::More { hold } => more = Some(more.map_or(hold, |other| other.min(hold))),
                Found::Yes(hit) => {
                    // The longest of those that start first.
                    let better = best.as_ref().is_none_or(|other: &super::found::Hit| {
                        (hit.from, std::cmp::Reverse(hit.to))
                            < (other.from, std::cmp::Reverse(other.to))
                    });
                    if better {
                        best = Some(hit);
                    }
                }
            }
        }
        match (more, best) {
            (Some(hold), best) => Found::More {
                hold: best.map_or(hold, |hit| hold.min(hit.from)),
            },
            (None, Some(hit)) => Found::Yes(hit),
            (None, None) => Found::No,
        }
    }

    fn ask(&self, rule: Rule, view: &View<'_>, place: usize) -> Found {
        match rule {
            Rule::Shape(at) => SHAPES[at].find(view, place),
            Rule::Known(at) => self.known.find(at, view, place),
            Rule::Name(anchor) => self.ask_name(anchor, view, place),
            Rule::Url => url::find(view, place),
            Rule::Jwt => special::jwt(view, place),
            Rule::Aws => special::aws(view, place),
            Rule::Bearer => special::bearer(view, place),
            Rule::Telegram => special::telegram(view, place),
            Rule::Azure => special::azure(view, place),
            Rule::Discord => special::discord(view, place),
            Rule::Twilio => special::twilio(view, place),
            Rule::Pem => pem::find(view, place),
            Rule::Putty => pem::find_putty(view, place),
        }
    }

    fn ask_name(&self, anchor: &str, view: &View<'_>, place: usize) -> Found {
        let text = view.from(place);
        let seen = text.len().min(anchor.len());
        if !text[..seen].eq_ignore_ascii_case(&anchor.as_bytes()[..seen]) {
            return Found::No;
        }
        names::find(view, place, &|name| self.known.passes(name))
    }

    /// Returns where a secret may start at the end of the text, of which too little is known.
    pub(super) fn hold_tail(&self, view: &View<'_>, from: usize) -> usize {
        let end = view.bytes.len();
        (from.max(end.saturating_sub(2))..end)
            .find(|place| {
                let heads = match view.from(*place) {
                    [a, b, ..] => self.two[pair(*a, *b)],
                    [a] => self.one[usize::from(fold(*a))],
                    [] => 0,
                };
                heads & ANYWHERE != 0 || (heads & AT_WORD != 0 && view.starts_word(*place))
            })
            .unwrap_or(end)
    }
}

impl fmt::Debug for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rules")
            .field("rules", &self.entries.len())
            .field("known", &self.known)
            .finish_non_exhaustive()
    }
}

#[inline]
const fn fold(byte: u8) -> u8 {
    byte | 0x20
}

#[inline]
fn pair(a: u8, b: u8) -> usize {
    usize::from(fold(a)) << 8 | usize::from(fold(b))
}

#[inline]
const fn gram(a: u8, b: u8, c: u8) -> u32 {
    u32::from_le_bytes([a, b, c, 0]) | 0x0020_2020
}

#[inline]
const fn slot(gram: u32) -> usize {
    (gram.wrapping_mul(0x9E37_79B1) >> 16) as usize
}
