//! Text as the static run sees it, and the small transformations that hide a command in it.
//!
//! A text is a plain string in which three characters stand for what is not known: they are not
//! characters of Unicode, so they are taken out of the input before it is read.

/// Any text, also none: the value of something that is only known when the command runs.
pub(crate) const UNKNOWN: char = '\u{10FFFF}';
/// An active `*`.
pub(crate) const STAR: char = '\u{10FFFE}';
/// An active `?` or `[…]`.
pub(crate) const ONE: char = '\u{1FFFF}';

/// Texts are not followed beyond this length; a longer one counts as unknown.
pub(crate) const MAX_TEXT: usize = 64 * 1024;

/// Returns the text from a byte on, nothing where no character begins there.
pub(crate) fn from(text: &str, at: usize) -> &str {
    text.get(at..).unwrap_or_default()
}

/// Returns the text up to a byte, nothing where no character begins there.
pub(crate) fn upto(text: &str, at: usize) -> &str {
    text.get(..at).unwrap_or_default()
}

/// Splits off the first character.
pub(crate) fn first(text: &str) -> Option<(char, &str)> {
    let mut characters = text.chars();
    let first = characters.next()?;
    Some((first, characters.as_str()))
}

/// Tells whether some of the text is not known.
pub(crate) fn uncertain(text: &str) -> bool {
    !text.is_ascii() && text.contains(UNKNOWN)
}

/// Returns the text with its patterns as they were written.
pub(crate) fn inactive(text: String) -> String {
    if text.is_ascii() {
        text
    } else {
        text.replace(STAR, "*").replace(ONE, "?")
    }
}

/// Tells whether the text holds an active pattern.
pub(crate) fn globbed(text: &str) -> bool {
    !text.is_ascii() && text.contains([STAR, ONE])
}

/// Returns the text as it was written, for sentences.
pub(crate) fn shown(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|character| match character {
            UNKNOWN => '…',
            STAR => '*',
            ONE => '?',
            other => other,
        })
        .take(80)
        .collect();
    crate::visible::visible(&plain)
}

/// Activates the patterns in unquoted text. A bracket around one character is that character.
pub(crate) fn activate(text: &str, into: &mut String) {
    if !text.contains(['*', '?', '[']) {
        into.push_str(text);
        return;
    }
    let mut rest = text;
    while let Some((character, after)) = first(rest) {
        rest = after;
        match character {
            '*' => into.push(STAR),
            '?' => into.push(ONE),
            '[' => match bracket(rest) {
                Some((inside, after)) => {
                    let mut characters = inside.chars();
                    match (characters.next(), characters.next()) {
                        (Some(only), None) => into.push(only),
                        _ => into.push(ONE),
                    }
                    rest = after;
                }
                None => into.push('['),
            },
            other => into.push(other),
        }
    }
}

/// Splits `a-z]rest` at the bracket that closes it, if it does soon.
fn bracket(text: &str) -> Option<(&str, &str)> {
    let window = text.char_indices().nth(64).map_or(text.len(), |(at, _)| at);
    let skip = usize::from(text.starts_with(['!', '^', ']']));
    let skip = skip + usize::from(skip > 0 && from(text, skip).starts_with(']'));
    let end = text
        .get(skip..window)?
        .find([']', '/'])
        .map(|at| at + skip)?;
    let inside = upto(text, end);
    let after = from(text, end).strip_prefix(']')?;
    (!inside.is_empty()).then_some((inside, after))
}

/// Tells whether a text with active patterns, or a plain pattern with `*`, could be `name`.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let (mut pattern, mut name) = (pattern.chars(), name.chars());
    let mut back = None;
    loop {
        let (rest, left) = (pattern.clone(), name.clone());
        match (pattern.next(), name.next()) {
            (None, None) => return true,
            (Some('*' | STAR | UNKNOWN), _) => {
                back = Some((pattern.clone(), left.clone()));
                name = left;
                continue;
            }
            (Some('?' | ONE), Some(_)) => continue,
            (Some(wanted), Some(found)) if wanted == found => continue,
            (Some(_), None)
                if rest
                    .clone()
                    .all(|character| matches!(character, '*' | STAR | UNKNOWN)) =>
            {
                return true;
            }
            _ => {}
        }
        // The last star takes one character more.
        let Some((after_star, mut tried)) = back.take() else {
            return false;
        };
        if tried.next().is_none() {
            return false;
        }
        pattern = after_star.clone();
        name = tried.clone();
        back = Some((after_star, tried));
    }
}

/// Which escapes a text has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Escapes {
    /// Those of `$'…'`.
    Quotes,
    /// Those of `echo -e` and `printf %b`.
    Echo,
    /// Those of a `printf` format.
    Printf,
}

/// Undoes the escapes; also tells whether `\c` ended the output.
pub(crate) fn unescape(text: &str, escapes: Escapes) -> (String, bool) {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        if character != '\\' {
            push(&mut bytes, character);
            continue;
        }
        match rest.next() {
            None => bytes.push(b'\\'),
            Some('c') if escapes != Escapes::Quotes => return (lossy(bytes), true),
            Some('c') => {
                let control = rest.next().map_or(0, |next| u32::from(next) & 0x1F);
                bytes.push(u8::try_from(control).unwrap_or(b'?'));
            }
            Some(letter) => escaped(letter, escapes, &mut rest, &mut bytes),
        }
    }
    if escapes == Escapes::Quotes
        && let Some(end) = bytes.iter().position(|byte| *byte == 0)
    {
        // bash keeps strings as C does.
        bytes.truncate(end);
    }
    (lossy(bytes), false)
}

type Rest<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn escaped(letter: char, escapes: Escapes, rest: &mut Rest<'_>, bytes: &mut Vec<u8>) {
    let plain = match letter {
        'a' => 7,
        'b' => 8,
        'e' | 'E' => 27,
        'f' => 12,
        'n' => 10,
        'r' => 13,
        't' => 9,
        'v' => 11,
        '\\' | '\'' | '"' | '?' => u32::from(letter),
        'x' => match digits(rest, 16, 2) {
            Some(code) => return bytes.push(u8::try_from(code).unwrap_or(b'?')),
            None => return bytes.extend(b"\\x"),
        },
        'u' | 'U' => {
            match digits(rest, 16, if letter == 'u' { 4 } else { 8 }).and_then(char::from_u32) {
                Some(character) => return push(bytes, character),
                None => return push(bytes, letter),
            }
        }
        '0'..='7' => {
            let first = letter.to_digit(8).unwrap_or(0);
            // `echo -e` wants a zero first and then up to three digits.
            let more = if letter == '0' && escapes != Escapes::Quotes {
                3
            } else {
                2
            };
            let mut code = first;
            for _ in 0..more {
                match rest.peek().and_then(|next| next.to_digit(8)) {
                    Some(digit) => {
                        code = code * 8 + digit;
                        rest.next();
                    }
                    None => break,
                }
            }
            return bytes.push(u8::try_from(code & 0xFF).unwrap_or(b'?'));
        }
        other => {
            bytes.push(b'\\');
            return push(bytes, other);
        }
    };
    bytes.push(u8::try_from(plain).unwrap_or(b'?'));
}

fn digits(rest: &mut Rest<'_>, base: u32, most: usize) -> Option<u32> {
    let mut value = None;
    for _ in 0..most {
        let Some(digit) = rest.peek().and_then(|next| next.to_digit(base)) else {
            break;
        };
        value = Some(value.unwrap_or(0) * base + digit);
        rest.next();
    }
    value
}

fn push(bytes: &mut Vec<u8>, character: char) {
    let mut buffer = [0; 4];
    bytes.extend(character.encode_utf8(&mut buffer).as_bytes());
}

/// Decoded bytes as text; what is not UTF-8 is replaced.
fn lossy(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Decodes base64, or base32 for `bits` = 5; blanks are skipped, other signs end it.
pub(crate) fn decode_base(text: &str, bits: u32) -> String {
    let mut bytes = Vec::new();
    let (mut held, mut count) = (0_u32, 0);
    for byte in text.bytes().filter(|byte| !byte.is_ascii_whitespace()) {
        let value = match (bits, byte) {
            (_, b'A'..=b'Z') => byte - b'A',
            (6, b'a'..=b'z') => byte - b'a' + 26,
            (6, b'0'..=b'9') => byte - b'0' + 52,
            (6, b'+' | b'-') => 62,
            (6, b'/' | b'_') => 63,
            (5, b'2'..=b'7') => byte - b'2' + 26,
            _ => break,
        };
        held = (held << bits) | u32::from(value);
        count += bits;
        if count >= 8 {
            count -= 8;
            bytes.push(u8::try_from((held >> count) & 0xFF).unwrap_or(0));
            held &= (1 << count) - 1;
        }
    }
    lossy(bytes)
}

/// Decodes pairs of hexadecimal digits.
pub(crate) fn decode_hex(text: &str) -> String {
    let digits: Vec<u8> = text
        .chars()
        .filter_map(|character| character.to_digit(16))
        .filter_map(|digit| u8::try_from(digit).ok())
        .collect();
    lossy(
        digits
            .as_chunks()
            .0
            .iter()
            .map(|[high, low]| high * 16 + low)
            .collect(),
    )
}

/// Writes what `printf` would print, as long as its parts are known.
pub(crate) fn printf(format: &str, arguments: &[&str]) -> String {
    let mut output = String::new();
    let mut arguments = arguments.iter();
    loop {
        let before = arguments.len();
        let ended = printf_once(format, &mut arguments, &mut output);
        let used = before != arguments.len();
        if ended || arguments.len() == 0 || !used || output.len() > MAX_TEXT {
            return output;
        }
    }
}

fn printf_once(
    format: &str,
    arguments: &mut std::slice::Iter<'_, &str>,
    output: &mut String,
) -> bool {
    let mut rest = format;
    while let Some((before, after)) = rest.split_once('%') {
        let (text, ended) = unescape(before, Escapes::Printf);
        output.push_str(&text);
        if ended {
            return true;
        }
        rest =
            after.trim_start_matches(|flag: char| flag.is_ascii_digit() || "-+ #.".contains(flag));
        let Some((letter, after)) = first(rest) else {
            break;
        };
        rest = after;
        match letter {
            '%' => output.push('%'),
            'b' => output.push_str(&unescape(arguments.next().unwrap_or(&""), Escapes::Echo).0),
            'c' => output.extend(arguments.next().unwrap_or(&"").chars().next()),
            _ => output.push_str(arguments.next().unwrap_or(&"")),
        }
    }
    let (text, ended) = unescape(rest, Escapes::Printf);
    output.push_str(&text);
    ended
}

/// Does what `tr` does with two sets of the same kind of ranges.
pub(crate) fn translate(text: &str, from: &str, to: &str) -> String {
    let from = character_set(from);
    let to = character_set(to);
    text.chars()
        .map(
            |character| match from.iter().position(|known| *known == character) {
                Some(at) => to.get(at).or(to.last()).copied().unwrap_or(character),
                None => character,
            },
        )
        .collect()
}

fn character_set(set: &str) -> Vec<char> {
    let set = match set {
        "[:lower:]" => "a-z",
        "[:upper:]" => "A-Z",
        other => other,
    };
    let characters: Vec<char> = unescape(set, Escapes::Echo).0.chars().collect();
    let mut expanded = Vec::new();
    let mut rest = characters.as_slice();
    while expanded.len() < 512 {
        rest = match rest {
            [first, '-', last, after @ ..] if last >= first && last.is_ascii() => {
                expanded.extend(*first..=*last);
                after
            }
            [first, after @ ..] => {
                expanded.push(*first);
                after
            }
            [] => break,
        };
    }
    expanded
}

#[cfg(test)]
#[path = "text_tests.rs"]
mod tests;
