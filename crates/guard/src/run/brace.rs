//! Brace expansion, on the parts of a word.

use crate::syntax::Part;

/// How many words one brace expansion may become.
const MAX_WORDS: usize = 64;

/// How many numbers of a range are taken, besides its last one.
const MAX_NUMBERS: usize = 15;

/// How deep braces in braces are followed.
const MAX_NESTING: u32 = 12;

/// How many characters a word with braces may have, and all words made of it together.
const MAX_CHARACTERS: usize = 16 * 1024;

/// `-2147483648..2147483647..-2147483648` is the longest range.
const LONGEST_RANGE: usize = 37;

/// One character of unquoted text, or a part as a whole.
#[derive(Debug, Clone, Copy)]
enum Atom<'p> {
    Character(char),
    Part(&'p Part),
}

type Atoms<'p> = Vec<Atom<'p>>;

/// What a word with braces becomes.
#[derive(Debug)]
pub(super) struct Words {
    pub(super) words: Vec<Vec<Part>>,
    /// Whether some are missing because a limit was reached; numbers of a range do not count.
    pub(super) incomplete: bool,
}

/// Returns the words a word becomes, `None` when it has no braces to expand.
pub(super) fn expand(parts: &[Part]) -> Option<Words> {
    let candidate = parts
        .iter()
        .any(|part| matches!(part, Part::Text { text, quoted: false } if text.contains('{')));
    if !candidate {
        return None;
    }
    let mut atoms = Vec::new();
    for part in parts {
        match part {
            Part::Text {
                text,
                quoted: false,
            } => atoms.extend(text.chars().map(Atom::Character)),
            other => atoms.push(Atom::Part(other)),
        }
    }
    let mut expansion = Expansion {
        words: vec![Vec::with_capacity(atoms.len())],
        listed: false,
        incomplete: false,
    };
    if atoms.len() > MAX_CHARACTERS {
        let unread = pairs(&atoms).iter().any(Option::is_some);
        return unread.then(|| Words {
            words: vec![parts.to_vec()],
            incomplete: true,
        });
    }
    expansion.sequence(&atoms, MAX_NESTING);
    if expansion.words.len() == 1 && !expansion.incomplete {
        return None;
    }
    Some(Words {
        words: expansion.words.iter().map(|word| parts_of(word)).collect(),
        incomplete: expansion.incomplete,
    })
}

/// The words made so far.
#[derive(Debug)]
struct Expansion<'p> {
    words: Vec<Atoms<'p>>,
    /// Whether the words differ by more than the numbers of ranges.
    listed: bool,
    incomplete: bool,
}

impl<'p> Expansion<'p> {
    /// Appends every expansion of `atoms` to every word.
    fn sequence(&mut self, atoms: &[Atom<'p>], nesting: u32) {
        let pairs = pairs(atoms);
        let mut at = 0;
        while at < atoms.len() {
            let braces = pairs.get(at).copied().flatten().and_then(|pair| {
                let inside = atoms.get(at + 1..pair.close)?;
                Some((Alternatives::of(inside, pair.listed)?, pair.close))
            });
            if let Some((alternatives, close)) = braces {
                let Some(nesting) = nesting.checked_sub(1) else {
                    self.incomplete = true;
                    return;
                };
                self.multiply(&alternatives, nesting);
                if self.incomplete {
                    return;
                }
                at = close + 1;
                continue;
            }
            // Nothing changes up to the next brace that may be expanded.
            let end = pairs
                .iter()
                .enumerate()
                .skip(at + 1)
                .find_map(|(at, pair)| pair.map(|_| at))
                .unwrap_or(atoms.len());
            let plain = atoms.get(at..end).unwrap_or_default();
            if self.words.len() * plain.len() > MAX_CHARACTERS {
                self.incomplete = true;
                return;
            }
            for word in &mut self.words {
                word.extend_from_slice(plain);
            }
            at = end;
        }
    }

    /// Replaces every word by that word with each of the alternatives.
    fn multiply(&mut self, alternatives: &Alternatives<'_, 'p>, nesting: u32) {
        let most = match alternatives {
            Alternatives::Range(_) => (MAX_WORDS / self.words.len().max(1)).max(1),
            Alternatives::List(list) => {
                let most = (MAX_WORDS / list.len()).max(1);
                self.incomplete |= list.len() > MAX_WORDS;
                self.incomplete |= self.listed && self.words.len() > most;
                self.listed = true;
                self.words.truncate(most);
                MAX_WORDS
            }
        };
        let mut next = Vec::new();
        let mut characters = 0;
        for word in &self.words {
            for alternative in alternatives.iter().take(most) {
                let mut grown = Self {
                    words: vec![word.clone()],
                    listed: false,
                    incomplete: false,
                };
                grown.sequence(alternative, nesting);
                self.incomplete |= grown.incomplete;
                self.listed |= grown.listed;
                characters += grown.words.iter().map(Vec::len).sum::<usize>();
                next.append(&mut grown.words);
                if next.len() > MAX_WORDS || characters > MAX_CHARACTERS {
                    self.incomplete = true;
                }
                if self.incomplete {
                    next.truncate(MAX_WORDS);
                    self.words = next;
                    return;
                }
            }
        }
        self.words = next;
    }
}

/// The closing brace of an opening one.
#[derive(Debug, Clone, Copy)]
struct Pair {
    close: usize,
    /// Whether a comma stands between them, and not in further braces.
    listed: bool,
}

/// Finds the closing brace of each opening one.
fn pairs(atoms: &[Atom<'_>]) -> Vec<Option<Pair>> {
    let mut pairs = vec![None; atoms.len()];
    let mut open = Vec::new();
    for (at, atom) in atoms.iter().enumerate() {
        match atom {
            Atom::Character('{') => open.push((at, false)),
            Atom::Character(',') => {
                if let Some((_, listed)) = open.last_mut() {
                    *listed = true;
                }
            }
            Atom::Character('}') => {
                let Some((start, listed)) = open.pop() else {
                    continue;
                };
                let range = at - start <= LONGEST_RANGE + 1;
                if let Some(pair) = pairs.get_mut(start).filter(|_| listed || range) {
                    *pair = Some(Pair { close: at, listed });
                }
            }
            _ => {}
        }
    }
    pairs
}

/// What stands between braces.
#[derive(Debug)]
enum Alternatives<'a, 'p> {
    List(Vec<&'a [Atom<'p>]>),
    Range(Vec<Atoms<'p>>),
}

impl<'a, 'p> Alternatives<'a, 'p> {
    fn of(inside: &'a [Atom<'p>], listed: bool) -> Option<Self> {
        if !listed {
            return range(inside).map(Self::Range);
        }
        let mut depth = 0_u32;
        let list = inside.split(|atom| {
            match atom {
                Atom::Character('{') => depth += 1,
                Atom::Character('}') => depth = depth.saturating_sub(1),
                _ => {}
            }
            depth == 0 && matches!(atom, Atom::Character(','))
        });
        Some(Self::List(list.collect()))
    }

    fn iter(&self) -> impl Iterator<Item = &[Atom<'p>]> {
        let (list, range) = match self {
            Self::List(list) => (list.as_slice(), &[][..]),
            Self::Range(range) => (&[][..], range.as_slice()),
        };
        list.iter().copied().chain(range.iter().map(Vec::as_slice))
    }
}

/// Returns the items of `1..5` or `a..e`.
fn range<'p>(inside: &[Atom<'_>]) -> Option<Vec<Atoms<'p>>> {
    let mut text = String::new();
    for atom in inside {
        match atom {
            Atom::Character(character) => text.push(*character),
            Atom::Part(_) => return None,
        }
    }
    let (first, last) = text.split_once("..")?;
    let last = last.split_once("..").map_or(last, |(last, _)| last);
    let atoms = |word: String| word.chars().map(Atom::Character).collect();
    if let (Ok(first), Ok(last)) = (first.parse::<i32>(), last.parse::<i32>()) {
        let (low, high) = (first.min(last), first.max(last));
        return Some(
            (low..high)
                .take(MAX_NUMBERS)
                .chain([high])
                .map(|number| atoms(number.to_string()))
                .collect(),
        );
    }
    let mut ends = (first.chars(), last.chars());
    match (ends.0.next(), ends.0.next(), ends.1.next(), ends.1.next()) {
        (Some(first), None, Some(last), None)
            if first.is_ascii_alphabetic() && last.is_ascii_alphabetic() =>
        {
            Some(
                (first.min(last)..=first.max(last))
                    .map(|letter| atoms(letter.to_string()))
                    .collect(),
            )
        }
        _ => None,
    }
}

fn parts_of(atoms: &[Atom<'_>]) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut text = String::new();
    let flush = |text: &mut String, parts: &mut Vec<Part>| {
        if !text.is_empty() {
            parts.push(Part::Text {
                text: std::mem::take(text),
                quoted: false,
            });
        }
    };
    for atom in atoms {
        match atom {
            Atom::Character(character) => text.push(*character),
            Atom::Part(part) => {
                flush(&mut text, &mut parts);
                parts.push((*part).clone());
            }
        }
    }
    flush(&mut text, &mut parts);
    parts
}
