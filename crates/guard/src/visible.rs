//! Text as a person must see it, and text that tries to look like something else.

use std::fmt::Write as _;

/// Returns `text` with every character that hides, reorders or imitates made visible.
///
/// Line breaks and tabs stay; other control characters, bidirectional marks, zero-width and odd
/// blanks, private and unassigned ones are written as `<U+202E>`. A letter that looks like an
/// ASCII one keeps its shape and is followed by its code.
#[must_use]
pub fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        if hidden(character) {
            let _ = write!(shown, "<U+{:04X}>", u32::from(character));
        } else if lookalike(character).is_some() {
            let _ = write!(shown, "{character}<U+{:04X}>", u32::from(character));
        } else {
            shown.push(character);
        }
    }
    shown
}

/// Tells whether a character is not seen as itself on a screen.
pub(crate) fn hidden(character: char) -> bool {
    match character {
        '\t' | '\n' => false,
        _ if character.is_control() => true,
        _ if character.is_ascii() => false,
        _ => bidi(character) || invisible(character) || odd_blank(character) || private(character),
    }
}

/// Tells whether a character changes the direction of text.
pub(crate) fn bidi(character: char) -> bool {
    matches!(character, '\u{061C}' | '\u{200E}' | '\u{200F}')
        || matches!(character, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Tells whether a character reorders what is around it; the plain marks do not.
pub(crate) fn reorders(character: char) -> bool {
    matches!(character, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}')
}

/// Tells whether a character has no width.
pub(crate) fn invisible(character: char) -> bool {
    matches!(
        character,
        '\u{00AD}'
            | '\u{034F}'
            | '\u{115F}'
            | '\u{1160}'
            | '\u{17B4}'
            | '\u{17B5}'
            | '\u{3164}'
            | '\u{FEFF}'
            | '\u{FFA0}'
    ) || matches!(
        character,
        '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200D}' | '\u{2060}'..='\u{2065}' | '\u{206A}'..='\u{206F}'
    ) || matches!(character, '\u{FFF9}'..='\u{FFFB}' | '\u{E0000}'..='\u{E0FFF}' | '\u{FE00}'..='\u{FE0F}')
}

/// Tells whether a character looks like a space and is none to the shell.
pub(crate) fn odd_blank(character: char) -> bool {
    matches!(
        character,
        '\u{00A0}' | '\u{1680}' | '\u{2000}'
            ..='\u{200A}'
                | '\u{2028}'
                | '\u{2029}'
                | '\u{202F}'
                | '\u{205F}'
                | '\u{3000}'
                | '\u{2800}'
    )
}

fn private(character: char) -> bool {
    let code = u32::from(character);
    matches!(code, 0xE000..=0xF8FF | 0xF_0000..=0x10_FFFF | 0xFDD0..=0xFDEF)
        || code & 0xFFFE == 0xFFFE
}

/// Letters of other scripts that are drawn like an ASCII letter, and that letter.
const LOOKALIKES: &[(char, char)] = &[
    // Cyrillic.
    ('а', 'a'),
    ('А', 'A'),
    ('В', 'B'),
    ('с', 'c'),
    ('С', 'C'),
    ('ԁ', 'd'),
    ('е', 'e'),
    ('Е', 'E'),
    ('һ', 'h'),
    ('Н', 'H'),
    ('і', 'i'),
    ('І', 'I'),
    ('ј', 'j'),
    ('Ј', 'J'),
    ('к', 'k'),
    ('К', 'K'),
    ('ӏ', 'l'),
    ('м', 'm'),
    ('М', 'M'),
    ('о', 'o'),
    ('О', 'O'),
    ('р', 'p'),
    ('Р', 'P'),
    ('ԛ', 'q'),
    ('г', 'r'),
    ('ѕ', 's'),
    ('Ѕ', 'S'),
    ('т', 't'),
    ('Т', 'T'),
    ('ѵ', 'v'),
    ('ԝ', 'w'),
    ('х', 'x'),
    ('Х', 'X'),
    ('у', 'y'),
    ('У', 'Y'),
    ('ь', 'b'),
    ('п', 'n'),
    ('З', '3'),
    // Greek.
    ('α', 'a'),
    ('Α', 'A'),
    ('Β', 'B'),
    ('ϲ', 'c'),
    ('ε', 'e'),
    ('Ε', 'E'),
    ('Η', 'H'),
    ('ι', 'i'),
    ('Ι', 'I'),
    ('κ', 'k'),
    ('Κ', 'K'),
    ('Μ', 'M'),
    ('ν', 'v'),
    ('Ν', 'N'),
    ('ο', 'o'),
    ('Ο', 'O'),
    ('ρ', 'p'),
    ('Ρ', 'P'),
    ('τ', 't'),
    ('Τ', 'T'),
    ('υ', 'u'),
    ('χ', 'x'),
    ('Χ', 'X'),
    ('γ', 'y'),
    ('Υ', 'Y'),
    ('Ζ', 'Z'),
    // Latin, Armenian and others that are not what they seem.
    ('ı', 'i'),
    ('ɑ', 'a'),
    ('ɡ', 'g'),
    ('ɩ', 'i'),
    ('ⅼ', 'l'),
    ('ⅰ', 'i'),
    ('ⅿ', 'm'),
    ('ⅽ', 'c'),
    ('ⅾ', 'd'),
    ('ո', 'n'),
    ('ս', 'u'),
    ('հ', 'h'),
    ('օ', 'o'),
    ('ց', 'g'),
    ('ʀ', 'r'),
    ('ᴍ', 'm'),
    ('ꞅ', 'r'),
    ('ꮁ', 'r'),
    ('ɾ', 'r'),
    ('ᴦ', 'r'),
    ('ⲅ', 'r'),
    ('ſ', 's'),
    // Signs.
    ('∕', '/'),
    ('⁄', '/'),
    ('⧸', '/'),
    ('․', '.'),
    ('ꓸ', '.'),
    ('‚', ','),
    (';', ';'),
    ('∶', ':'),
    ('ǀ', '|'),
    ('∣', '|'),
    ('‹', '<'),
    ('›', '>'),
    ('∗', '*'),
    ('٭', '*'),
    ('˜', '~'),
    ('∼', '~'),
    ('‐', '-'),
    ('‑', '-'),
    ('‒', '-'),
    ('–', '-'),
    ('—', '-'),
    ('―', '-'),
    ('−', '-'),
    ('﹘', '-'),
    ('﹣', '-'),
    ('➖', '-'),
    ('⁃', '-'),
    ('˗', '-'),
];

/// Returns the ASCII character that `character` is drawn like.
pub(crate) fn lookalike(character: char) -> Option<char> {
    match u32::from(character) {
        0..=0x7F => None,
        // The wide forms of East Asian type.
        code @ 0xFF01..=0xFF5E => char::from_u32(code - 0xFEE0),
        // Mathematical letters: runs of 52 over the alphabet.
        code @ 0x1D400..=0x1D6A3 => mathematical(code),
        code @ 0x1D7CE..=0x1D7FF => char::from_digit((code - 0x1D7CE) % 10, 10),
        _ => LOOKALIKES
            .iter()
            .find(|(shape, _)| *shape == character)
            .map(|(_, ascii)| *ascii),
    }
}

fn mathematical(code: u32) -> Option<char> {
    let place = (code - 0x1D400) % 52;
    let base = if place < 26 {
        u32::from('A')
    } else {
        u32::from('a') - 26
    };
    char::from_u32(base + place)
}

/// Tells whether a dash-like sign other than `-` begins this word.
pub(crate) fn false_dash(word: &str) -> bool {
    let mut characters = word.chars();
    let dash = characters
        .next()
        .is_some_and(|first| lookalike(first) == Some('-'));
    dash && characters
        .next()
        .is_some_and(|next| next.is_ascii_alphanumeric() || lookalike(next) == Some('-'))
}

/// Tells whether a name imitates an ASCII name or hides something in itself.
///
/// Letters of another script are fine while they do not stand in for ASCII ones: `скрипт.sh` is,
/// `гm` and `сat` are not.
pub(crate) fn imitates(name: &str) -> bool {
    if name.is_ascii() {
        return name.bytes().any(|byte| byte.is_ascii_control());
    }
    if name
        .chars()
        .any(|character| hidden(character) || ('\u{FF01}'..='\u{FF5E}').contains(&character))
    {
        return true;
    }
    name.split(|character: char| !character.is_alphabetic())
        .any(imitates_run)
}

/// A run of letters imitates when all its foreign letters have an ASCII shape.
fn imitates_run(run: &str) -> bool {
    let mut foreign = run
        .chars()
        .filter(|character| !character.is_ascii())
        .peekable();
    foreign.peek().is_some() && foreign.all(|character| lookalike(character).is_some())
}

#[cfg(test)]
#[path = "visible_tests.rs"]
mod tests;
