//! Brace expansion, on the parts of a word.

use crate::syntax::Part;

/// How many words one brace expansion may become; more of them is unknown text.
const MAX_WORDS: usize = 64;

/// How deep braces in braces are followed; deeper ones are taken as they are.
const MAX_NESTING: u32 = 12;

/// One character of unquoted text, or a part as a whole.
#[derive(Debug, Clone)]
enum Atom {
    Character(char),
    Part(Part),
}

/// Returns the words a word becomes, `None` when it has no braces to expand.
pub(super) fn expand(parts: &[Part]) -> Option<Vec<Vec<Part>>> {
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
            other => atoms.push(Atom::Part(other.clone())),
        }
    }
    if atoms.len() > 16 * 1024 {
        return None;
    }
    let mut words = vec![Vec::new()];
    let whole = sequence(&atoms, &mut words, MAX_NESTING);
    if whole && words.len() == 1 {
        return None;
    }
    Some(words.iter().map(|atoms| parts_of(atoms)).collect())
}

/// Appends every expansion of `atoms` to every word; `false` when there would be too many.
fn sequence(atoms: &[Atom], words: &mut Vec<Vec<Atom>>, nesting: u32) -> bool {
    let closing = if nesting == 0 {
        vec![None; atoms.len()]
    } else {
        pairs(atoms)
    };
    let mut at = 0;
    while at < atoms.len() {
        let alternatives = closing[at]
            .and_then(|close| alternatives(&atoms[at + 1..close]).map(|found| (found, close)));
        let Some((alternatives, close)) = alternatives else {
            for word in words.iter_mut() {
                word.push(atoms[at].clone());
            }
            at += 1;
            continue;
        };
        let mut next = Vec::new();
        for word in words.iter() {
            for alternative in &alternatives {
                let mut grown = vec![word.clone()];
                let whole = sequence(alternative, &mut grown, nesting - 1);
                next.extend(grown);
                if !whole || next.len() > MAX_WORDS {
                    next.truncate(MAX_WORDS);
                    *words = next;
                    return false;
                }
            }
        }
        *words = next;
        at = close + 1;
    }
    true
}

/// Finds the closing brace of each opening one.
fn pairs(atoms: &[Atom]) -> Vec<Option<usize>> {
    let mut closing = vec![None; atoms.len()];
    let mut open = Vec::new();
    for (at, atom) in atoms.iter().enumerate() {
        match atom {
            Atom::Character('{') => open.push(at),
            Atom::Character('}') => {
                if let Some(start) = open.pop() {
                    closing[start] = Some(at);
                }
            }
            _ => {}
        }
    }
    closing
}

/// Returns what stands between the commas, or the items of a range.
fn alternatives(inside: &[Atom]) -> Option<Vec<Vec<Atom>>> {
    let mut found = vec![Vec::new()];
    let mut depth = 0_u32;
    for atom in inside {
        match atom {
            Atom::Character(',') if depth == 0 => {
                found.push(Vec::new());
                continue;
            }
            Atom::Character('{') => depth += 1,
            Atom::Character('}') => depth = depth.saturating_sub(1),
            _ => {}
        }
        if let Some(last) = found.last_mut() {
            last.push(atom.clone());
        }
    }
    if found.len() > 1 {
        Some(found)
    } else {
        range(inside)
    }
}

/// Returns the items of `1..5` or `a..e`.
fn range(inside: &[Atom]) -> Option<Vec<Vec<Atom>>> {
    let mut text = String::new();
    for atom in inside {
        match atom {
            Atom::Character(character) => text.push(*character),
            Atom::Part(_) => return None,
        }
    }
    let (first, last) = text.split_once("..")?;
    let last = last.split_once("..").map_or(last, |(last, _)| last);
    let words: Vec<String> =
        if let (Ok(first), Ok(last)) = (first.parse::<i32>(), last.parse::<i32>()) {
            let (low, high) = (first.min(last), first.max(last));
            (low..=high)
                .take(MAX_WORDS)
                .map(|number| number.to_string())
                .collect()
        } else {
            let mut ends = (first.chars(), last.chars());
            match (ends.0.next(), ends.0.next(), ends.1.next(), ends.1.next()) {
                (Some(first), None, Some(last), None)
                    if first.is_ascii_alphabetic() && last.is_ascii_alphabetic() =>
                {
                    (first.min(last)..=first.max(last))
                        .map(String::from)
                        .collect()
                }
                _ => return None,
            }
        };
    Some(
        words
            .iter()
            .map(|word| word.chars().map(Atom::Character).collect())
            .collect(),
    )
}

fn parts_of(atoms: &[Atom]) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut text = String::new();
    for atom in atoms {
        match atom {
            Atom::Character(character) => text.push(*character),
            Atom::Part(part) => {
                if !text.is_empty() {
                    parts.push(Part::Text {
                        text: std::mem::take(&mut text),
                        quoted: false,
                    });
                }
                parts.push(part.clone());
            }
        }
    }
    if !text.is_empty() {
        parts.push(Part::Text {
            text,
            quoted: false,
        });
    }
    parts
}
