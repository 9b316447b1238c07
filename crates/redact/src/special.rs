//! Secrets that need more than a prefix.

use super::class::{BASE64, Class, DOTTED, TOKEN68, UPPER, URLSAFE};
use super::found::{Found, Hit, JUDGED, Rest, View};
use super::judge;

/// Longest header of a JSON web token that is looked at.
const HEADER: usize = 1024;

/// Length of the secret part of an AWS key.
const AWS_SECRET: usize = 40;

fn yes(from: usize, to: usize, kind: &'static str) -> Found {
    Found::Yes(Hit {
        from,
        to,
        kind,
        rest: Rest::Nothing,
    })
}

/// Looks for a JSON web token: two or more parts of base64, the first one a JSON object.
pub(super) fn jwt(view: &View<'_>, place: usize) -> Found {
    if !view.starts_word(place) || view.before(place).is_some_and(|byte| b"+/".contains(&byte)) {
        return Found::No;
    }
    match view.literal(place, b"eyJ") {
        Some(true) => {}
        Some(false) => return Found::No,
        None => return Found::More { hold: place },
    }
    let header = view.run(place, URLSAFE, HEADER);
    if header.open {
        return Found::More { hold: place };
    }
    match view.at(header.end) {
        None if !view.complete => return Found::More { hold: place },
        Some(b'.') if header.end - place >= 16 => {}
        _ => return Found::No,
    }
    let payload = view.run(header.end + 1, DOTTED, 16);
    if payload.open {
        return Found::More { hold: place };
    }
    if !payload.cut {
        return Found::No;
    }
    Found::Yes(Hit {
        from: place,
        to: payload.end,
        kind: "json web token",
        rest: Rest::Run(DOTTED),
    })
}

/// Looks for an AWS key id, and the secret that may follow it.
pub(super) fn aws(view: &View<'_>, place: usize) -> Found {
    if !view.starts_word(place) {
        return Found::No;
    }
    let run = view.run(place, UPPER, 21);
    if run.open {
        return Found::More { hold: place };
    }
    let id = view.part(place, run.end);
    let known = [&b"AKIA"[..], b"ASIA", b"ABIA", b"ACCA"]
        .iter()
        .any(|start| id.starts_with(start));
    if id.len() != 20
        || !known
        || view
            .at(run.end)
            .is_some_and(|byte| byte.is_ascii_lowercase())
    {
        return Found::No;
    }
    let gap = view.run(run.end, Class::of(b",:;|\"' \t/"), 6);
    if gap.open {
        return Found::More { hold: place };
    }
    let secret = view.run(gap.end, BASE64, AWS_SECRET + 1);
    if secret.open {
        return Found::More { hold: place };
    }
    let text = view.part(gap.end, secret.end);
    if gap.end > run.end && text.len() == AWS_SECRET && judge::looks_random(text) {
        return yes(place, secret.end, "aws key");
    }
    yes(place, run.end, "aws key id")
}

/// Looks for `Bearer` and a token.
pub(super) fn bearer(view: &View<'_>, place: usize) -> Found {
    const WORD: &[u8] = b"bearer";
    if !view.starts_word(place) {
        return Found::No;
    }
    let text = view.from(place);
    let seen = text.len().min(WORD.len());
    if !text[..seen].eq_ignore_ascii_case(&WORD[..seen]) {
        return Found::No;
    }
    let gap = place + WORD.len();
    match view.at(gap) {
        None if !view.complete => {
            return Found::More {
                hold: view.bytes.len(),
            };
        }
        Some(b' ' | b'+') => {}
        _ => return Found::No,
    }
    let run = view.run(gap + 1, TOKEN68, JUDGED);
    if run.open {
        return Found::More { hold: gap + 1 };
    }
    let token = view.part(gap + 1, run.end);
    if token.len() < 16 || judge::is_placeholder(token) || !judge::looks_random(token) {
        return Found::No;
    }
    Found::Yes(Hit {
        from: gap + 1,
        to: run.end,
        kind: "bearer token",
        rest: if run.cut {
            Rest::Run(TOKEN68)
        } else {
            Rest::Nothing
        },
    })
}

/// Looks for the second half of a Telegram bot's token: digits, a colon, `AA…`.
pub(super) fn telegram(view: &View<'_>, place: usize) -> Found {
    let digits = view.bytes[..place]
        .iter()
        .rev()
        .take(12)
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    if !(8..=11).contains(&digits) {
        return Found::No;
    }
    let run = view.run(place + 1, URLSAFE, 37);
    if run.open {
        return Found::More { hold: place + 1 };
    }
    let text = view.part(place + 1, run.end);
    if !(34..=36).contains(&text.len()) || !text.starts_with(b"AA") {
        return Found::No;
    }
    yes(place + 1, run.end, "telegram token")
}

/// Looks for the client secret of an Azure application: three letters, a digit, `Q~`, 31 and more.
pub(super) fn azure(view: &View<'_>, place: usize) -> Found {
    let run = view.run(place, Class::of(b"-0-9A-Za-z_.~"), 48);
    if run.open {
        return Found::More { hold: place };
    }
    let text = view.part(place, run.end);
    let lead = view.part(place.saturating_sub(3), place);
    let fits = (34..=44).contains(&text.len())
        && text.get(1..3) == Some(b"Q~")
        && lead.len() == 3
        && lead
            .iter()
            .all(|byte| URLSAFE.has(*byte) || *byte == b'~' || *byte == b'.');
    if !fits {
        return Found::No;
    }
    yes(place, run.end, "azure client secret")
}

/// Looks for the token of a Discord bot: the base64 of a number, six bytes, the rest.
pub(super) fn discord(view: &View<'_>, place: usize) -> Found {
    if !view.starts_word(place) {
        return Found::No;
    }
    let run = view.run(place, DOTTED, 88);
    if run.open {
        return Found::More { hold: place };
    }
    let text = view.part(place, run.end);
    let mut parts = text.split(|byte| *byte == b'.');
    let lengths = [parts.next(), parts.next(), parts.next(), parts.next()]
        .map(|part| part.map_or(0, <[u8]>::len));
    let fits = (23..=28).contains(&lengths[0])
        && lengths[1] == 6
        && (27..=40).contains(&lengths[2])
        && lengths[3] == 0;
    if !fits || !judge::looks_random(text) {
        return Found::No;
    }
    yes(place, run.end, "discord token")
}

/// Looks for the key of a Twilio account: `SK` and 32 hexadecimal digits.
pub(super) fn twilio(view: &View<'_>, place: usize) -> Found {
    if !view.starts_word(place) {
        return Found::No;
    }
    let run = view.run(place + 2, Class::of(b"0-9a-f"), 33);
    if run.open {
        return Found::More { hold: place };
    }
    let whole = view.part(place, place + 2) == b"SK";
    let ends = !view
        .at(run.end)
        .is_some_and(|byte| byte.is_ascii_alphanumeric());
    if !whole || run.end - place != 34 || !ends {
        return Found::No;
    }
    yes(place, run.end, "twilio key")
}
