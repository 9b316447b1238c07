//! What may be shown to people, and how.

use std::ffi::OsStr;

use exoshell_redact::looks_secret;

/// Stands for a value that is not shown.
pub(super) const HIDDEN: &str = "***";

/// Longest part of a bad value that an error message quotes.
const SHOWN_CHARS: usize = 80;

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
