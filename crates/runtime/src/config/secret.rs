//! What may be shown to people, and how.

use std::ffi::OsStr;

/// Stands for a value that is not shown.
pub(super) const HIDDEN: &str = "***";

/// Words that make a variable's name look like a secret's.
const SECRET_WORDS: [&str; 7] = [
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "CREDENTIAL",
    "PASSWD",
    "AUTH",
];

/// Longest part of a bad value that an error message quotes.
const SHOWN_CHARS: usize = 80;

/// Tells whether a variable with this name is likely to hold a secret.
pub fn looks_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// Returns the value of a variable in a form fit for an error message.
pub(super) fn shown_value(name: &str, value: &OsStr) -> String {
    if looks_secret(name) {
        return HIDDEN.to_owned();
    }
    shown(&value.to_string_lossy())
}

/// Returns text cut to a readable length, with everything that is not printable escaped.
pub(super) fn shown(text: &str) -> String {
    let mut result = String::new();
    for (index, character) in text.chars().enumerate() {
        if index == SHOWN_CHARS {
            result.push('…');
            break;
        }
        match character {
            '"' | '\'' => result.push(character),
            _ => result.extend(character.escape_debug()),
        }
    }
    result
}

#[cfg(test)]
#[path = "secret_tests.rs"]
mod tests;
