//! Passwords in addresses: `scheme://user:password@host`.

use super::class::Class;
use super::found::{Found, Hit, Rest, View};
use super::judge;

/// Longest user and password that are looked at.
const LONGEST: usize = 512;

const AUTHORITY: Class = Class::of(b"\0- /\"'<>`\\").inverse();

/// Looks for a password after `://`.
pub(super) fn find(view: &View<'_>, place: usize) -> Found {
    let scheme = view
        .before(place)
        .is_some_and(|byte| byte.is_ascii_alphanumeric());
    if !scheme || view.literal(place, b"://") != Some(true) {
        return Found::No;
    }
    let start = place + 3;
    let run = view.run(start, AUTHORITY, LONGEST);
    let text = view.part(start, run.end);
    let colon = text.iter().position(|byte| *byte == b':');
    // The user's name is shown, the password is not; a name alone may be a token.
    let secret = colon.map_or(start, |colon| start + colon + 1);
    if run.open {
        return Found::More { hold: secret };
    }
    let Some(at) = text.iter().rposition(|byte| *byte == b'@') else {
        return Found::No;
    };
    let end = start + at;
    let value = view.part(secret, end);
    let shown = match colon {
        Some(colon) if colon < at => value.is_empty() || judge::is_placeholder_in_url(value),
        _ => value.len() < 16 || judge::is_placeholder(value) || !judge::looks_random(value),
    };
    if shown || secret >= end {
        return Found::No;
    }
    Found::Yes(Hit {
        from: secret,
        to: end,
        kind: if colon.is_some() { "password" } else { "token" },
        rest: Rest::Nothing,
    })
}
