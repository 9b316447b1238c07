//! Quoting words for shells that are not ours to choose.

/// Quotes a word for a POSIX shell; any bytes survive.
pub fn quote(word: &str) -> String {
    if is_plain(word) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Builds the line that makes a login shell run these words: `sh`, `bash`, `zsh`, `fish` or `csh`.
///
/// They agree on what stands between single quotes, except for four characters: `'`, `\`, `!` and
/// the end of a line. Words that contain one of them travel in octal, for a POSIX shell to decode.
pub fn command_line(words: &[String]) -> String {
    let line = words
        .iter()
        .map(|word| quote(word))
        .collect::<Vec<_>>()
        .join(" ");
    if words.iter().any(|word| word.contains(is_hard)) {
        return format!("sh -c 'eval \"$(printf %b \"$0\")\"' '{}'", in_octal(&line));
    }
    line
}

/// Tells whether shells disagree on this character between single quotes.
const fn is_hard(character: char) -> bool {
    matches!(character, '\'' | '\\' | '!' | '\n' | '\r')
}

/// Writes the hard characters as `printf %b` reads them. What is left of the backslashes stands
/// before a digit, where every shell takes it as it is.
fn in_octal(line: &str) -> String {
    let mut encoded = String::with_capacity(line.len() + 64);
    for character in line.chars() {
        if is_hard(character) {
            let code = u32::from(character);
            encoded.push_str("\\0");
            for shift in [6, 3, 0] {
                encoded.push(char::from_digit((code >> shift) & 7, 8).unwrap_or('0'));
            }
        } else {
            encoded.push(character);
        }
    }
    encoded
}

/// Tells whether a word means itself in every shell.
fn is_plain(word: &str) -> bool {
    let harmless = |byte: u8| byte.is_ascii_alphanumeric() || b"_-./:,@".contains(&byte);
    !word.is_empty() && word.bytes().all(harmless)
}

#[cfg(test)]
#[path = "quote_tests.rs"]
mod tests;
