//! The environment of scripts that a model wrote.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use exoshell_redact::looks_secret;

use super::env::Environment;

/// Variables that programs need to work at all.
const SAFE: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "TERM",
    "TMPDIR",
    "TMP",
    "TEMP",
    "SHELL",
    "LOGNAME",
    "PYTHONPATH",
    "VIRTUAL_ENV",
];

/// Beginnings of names that are as safe.
const SAFE_PREFIXES: &[&str] = &["LC_", "XDG_", "CONDA"];

/// Returns the variables that a script may see: the safe ones, of these none whose name looks like
/// a secret's, and those in `pass`, whatever they are called.
///
/// What is not on the list is left out, for a list of what is dangerous is never complete.
pub fn script_environment(
    environment: &Environment,
    pass: &[String],
) -> BTreeMap<OsString, OsString> {
    environment
        .iter()
        .filter(|(name, _)| is_given(name, pass))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

fn is_given(name: &OsStr, pass: &[String]) -> bool {
    // A name that is not UTF-8 is on no list.
    let Some(name) = name.to_str() else {
        return false;
    };
    let listed =
        SAFE.contains(&name) || SAFE_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    (listed && !looks_secret(name)) || pass.iter().any(|passed| passed == name)
}

#[cfg(test)]
#[path = "script_tests.rs"]
mod tests;
