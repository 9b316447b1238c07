//! Names that settings give to images and containers, and those that they may not take.

use exoshell_place::{PlaceError, Trouble};

use crate::records::label;

/// Finds the user that extra words run everything as. The last one counts, as for the client.
pub(crate) fn user_in(words: &[String]) -> Option<&str> {
    let mut found = None;
    let mut previous = "";
    for word in words {
        let value = match word.split_once('=') {
            Some(("--user" | "-u", value)) => Some(value),
            _ if matches!(previous, "--user" | "-u") => Some(word.as_str()),
            _ => word.strip_prefix("-u").filter(|value| !value.is_empty()),
        };
        found = value.or(found);
        previous = word;
    }
    found
}

/// Tells whether a user, as engines write it, is root.
pub(crate) fn is_root(user: &str) -> bool {
    let name = user.split(':').next().unwrap_or_default();
    matches!(name, "" | "0" | "root")
}

/// Finds the extra word that would change what a container of ours is known by.
pub(crate) fn identity_in(words: &[String]) -> Option<&str> {
    let ours = |label: &str| {
        let name = label.split('=').next().unwrap_or_default();
        name == label::PRODUCT || name.starts_with(&format!("{}.", label::PRODUCT))
    };
    let mut previous = "";
    for word in words {
        let (flag, value) = match word.split_once('=') {
            Some((flag @ ("--label" | "-l" | "--name"), value)) => (flag, Some(value)),
            _ if word == "--name" => ("--name", None),
            _ => (previous, Some(word.as_str())),
        };
        if flag == "--name" || (matches!(flag, "--label" | "-l") && value.is_some_and(ours)) {
            return Some(word);
        }
        previous = word;
    }
    None
}

/// Refuses an image's name that a client would take for something else.
pub(crate) fn check_image(name: &str) -> Result<(), PlaceError> {
    let fine = !name.is_empty()
        && !name.starts_with('-')
        && !name.chars().any(|c| c.is_control() || c.is_whitespace());
    if fine {
        return Ok(());
    }
    Err(PlaceError::backend(
        Trouble::BadSetting,
        format!("`{}` is no name of an image", name.escape_debug()),
        "set the image to something like `debian:12`",
    ))
}

/// Refuses a container's name that a client would take for something else.
pub(crate) fn check_container(name: &str) -> Result<(), PlaceError> {
    let fine = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'));
    if fine {
        return Ok(());
    }
    Err(PlaceError::backend(
        Trouble::BadSetting,
        format!("`{}` is no name of a container", name.escape_debug()),
        "use a name or id that `docker ps` shows",
    ))
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
