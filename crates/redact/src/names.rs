//! Values that are secret because of the name before them: `DB_PASSWORD=…`, `"api_key": "…"`.

use super::class::Class;
use super::found::{Found, Hit, JUDGED, Rest, View};
use super::judge::{self, Given};

/// Words that a name must contain to be looked at.
pub(super) const ANCHORS: &[&str] = &["pass", "pwd", "secret", "token", "key", "cred", "auth"];

/// Longest name that is looked at, before and after the word in question.
pub(super) const NAME: usize = 64;
/// Most blanks between a name and its value.
const BLANKS: usize = 12;

const NAMES: Class = Class::of(b"-0-9A-Za-z_.");
/// What can stand between a name and its value.
const AFTER: Class = Class::of(b"=: \t\\\"'`]>,");
const BLANK: Class = Class::of(b" \t");
const LOOSE: Class = Class::of(b"\0- \"'`,;&|<>()[]{}\x7f").inverse();
const LINE: Class = Class::of(b"\0- \"'`\x7f").inverse();

/// What a name promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Promise {
    Nothing,
    Password,
    Token,
    /// A name that many harmless things have as well.
    Key,
    /// The header of that name.
    Authorization,
}

/// Words after which a name is about a secret without being one.
#[rustfmt::skip]
const ABOUT: &[&str] = &[
    "file", "files", "path", "paths", "dir", "folder", "name", "names", "id", "ids", "type",
    "types", "url", "uri", "hash", "length", "len", "count", "limit", "size", "ttl", "expiry",
    "expires", "expiration", "policy", "arn", "version", "alg", "algorithm", "fingerprint",
    "public", "field", "label", "regex", "pattern", "prompt", "format", "mode", "enabled",
    "required", "index", "ref", "provider", "method", "scheme", "header", "hint", "status", "date",
    "at", "time", "endpoint", "class", "usage", "used", "budget", "per", "map", "set", "list",
    "store", "ring", "chain", "word", "words", "board", "frame", "frames", "pair", "sock", "source",
    "manager", "helper", "command", "cmd", "rotation", "age", "checksum", "digest", "usages", "ops",
    "counts", "total",
];

/// Words before `key` that make it a secret.
#[rustfmt::skip]
const SECRET_KEYS: &[&str] = &[
    "api", "access", "secret", "private", "account", "encryption", "encrypt", "signing", "master",
    "auth", "service", "app", "application", "storage", "admin", "client", "consumer", "deploy",
    "license", "integration", "write", "webhook", "jwt", "session", "hmac", "shared",
    "subscription", "server", "cipher", "fernet", "crypto", "symmetric", "anon", "management",
    "functions", "rest",
];

/// Words before `key` that make it none.
#[rustfmt::skip]
const PUBLIC_KEYS: &[&str] = &[
    "public", "pub", "cache", "primary", "foreign", "sort", "partition", "host", "hash", "object",
    "idempotency", "routing", "row", "gpg", "registry", "map", "lookup", "group", "s3", "dedup",
    "dict", "config", "sort", "order", "trans", "unique", "publishable", "site", "metadata",
    "label", "no", "the", "any", "press", "resource",
];

/// Most words of a name that are looked at.
const WORDS: usize = 16;

/// Tells what a name promises about its value.
pub(super) fn promise(name: &[u8]) -> Promise {
    let mut words: [&[u8]; WORDS] = [&[]; WORDS];
    let mut count = 0;
    let mut from = 0;
    while let Some(start) = name[from..].iter().position(u8::is_ascii_alphabetic) {
        if count == WORDS {
            break;
        }
        let word = &name[from + start..];
        let end = word.windows(2).position(|pair| {
            !pair[1].is_ascii_alphabetic()
                || (pair[1].is_ascii_uppercase() && pair[0].is_ascii_lowercase())
        });
        let end = end.map_or(word.len(), |end| end + 1);
        words[count] = &word[..end];
        count += 1;
        from += start + end;
    }
    let upper = !name.iter().any(u8::is_ascii_lowercase);
    promise_of(&words[..count], upper)
}

/// Tells whether two words are the same but for capitals.
fn same(word: &[u8], other: &[u8]) -> bool {
    word.eq_ignore_ascii_case(other)
}

/// Tells whether a word ends so.
fn ends(word: &[u8], end: &[u8]) -> bool {
    word.len() >= end.len() && same(&word[word.len() - end.len()..], end)
}

fn promise_of(words: &[&[u8]], upper: bool) -> Promise {
    let is = |word: &[u8], list: &[&str]| list.iter().any(|entry| same(word, entry.as_bytes()));
    let Some(&last) = words.last() else {
        return Promise::Nothing;
    };
    if same(last, b"authorization") {
        return Promise::Authorization;
    }
    if is(last, ABOUT) {
        return Promise::Nothing;
    }
    if words.iter().any(|word| is_password(word)) {
        return Promise::Password;
    }
    if words.iter().any(|word| is_token(word)) {
        return Promise::Token;
    }
    let Some(at) = words.iter().position(|word| same(word, b"key")) else {
        return if same(last, b"auth") {
            Promise::Key
        } else {
            Promise::Nothing
        };
    };
    let before = at.checked_sub(1).map(|at| words[at]);
    match before {
        Some(word) if is(word, SECRET_KEYS) => Promise::Token,
        Some(word) if is(word, PUBLIC_KEYS) => Promise::Nothing,
        _ if upper => Promise::Token,
        Some(_) => Promise::Key,
        None => Promise::Nothing,
    }
}

fn is_password(word: &[u8]) -> bool {
    const WHOLE: &[&[u8]] = &[
        b"pass",
        b"pwd",
        b"passcode",
        b"dbpass",
        b"userpass",
        b"smtppass",
        b"ftppass",
        b"rootpass",
        b"mypass",
    ];
    const ENDS: &[&[u8]] = &[b"password", b"passwd", b"passphrase"];
    WHOLE.iter().any(|whole| same(word, whole)) || ENDS.iter().any(|end| ends(word, end))
}

fn is_token(word: &[u8]) -> bool {
    const ENDS: &[&[u8]] = &[
        b"secret",
        b"token",
        b"apikey",
        b"accesskey",
        b"secretkey",
        b"privatekey",
        b"accountkey",
        b"encryptionkey",
        b"credential",
        b"credentials",
        b"authkey",
        b"masterkey",
        b"signingkey",
    ];
    ENDS.iter().any(|end| ends(word, end))
}

/// Looks for a secret value after the name that stands around a place.
pub(super) fn find(view: &View<'_>, place: usize, exempt: &dyn Fn(&[u8]) -> bool) -> Found {
    let tail = view.run(place, NAMES, NAME);
    // Most names have no value: that is seen soonest.
    if view.at(tail.end).is_some_and(|byte| !AFTER.has(byte)) {
        return Found::No;
    }
    let start = name_start(view, place);
    if view.bytes[..start].ends_with(b"://") {
        // The user of an address.
        return Found::No;
    }
    if tail.open {
        // The name itself is no secret.
        return Found::More {
            hold: view.bytes.len(),
        };
    }
    let gap = match separator(view, start, tail.end) {
        Gap::None => return Found::No,
        Gap::Unknown => {
            return Found::More {
                hold: view.bytes.len(),
            };
        }
        Gap::Value(value) => value,
    };
    let name = view.part(start, tail.end);
    let promise = promise(trimmed(name));
    if promise == Promise::Nothing || exempt(name) {
        return Found::No;
    }
    value(view, start, promise, &gap)
}

fn name_start(view: &View<'_>, place: usize) -> usize {
    let length = view.bytes[..place]
        .iter()
        .rev()
        .take(NAME)
        .take_while(|byte| NAMES.has(**byte))
        .count();
    place - length
}

fn trimmed(name: &[u8]) -> &[u8] {
    let start = name.iter().position(|byte| !b"-.".contains(byte));
    &name[start.unwrap_or(name.len())..]
}

/// Where a value starts.
struct Start {
    place: usize,
    quote: Option<u8>,
    /// Whether the name and the value touch the `=`.
    tight: bool,
    equals: bool,
}

enum Gap {
    None,
    Unknown,
    Value(Start),
}

/// Finds the value after a name: `=`, `:`, `=>`, a blank after a flag, a tag.
fn separator(view: &View<'_>, start: usize, end: usize) -> Gap {
    let closing = view.run(end, Class::of(b"\\\"'`]"), 3);
    let blanks = view.run(closing.end, BLANK, BLANKS);
    if closing.open || blanks.open {
        return Gap::Unknown;
    }
    let mut at = blanks.end;
    let Some(byte) = view.at(at) else {
        return Gap::None;
    };
    let flag = view.part(start, end).starts_with(b"-");
    let in_tag = view.before(start) == Some(b'<') && byte == b'>';
    let listed = byte == b',' && closing.end > end;
    let netrc = blanks.end > closing.end && after_login(view, start);
    if matches!(byte, b'=' | b':') || in_tag || listed {
        let signs = view.run(at, Class::of(b"=:>,"), 3);
        if signs.open {
            return Gap::Unknown;
        }
        at = signs.end;
    } else if !((flag || netrc) && at > end) {
        return Gap::None;
    }
    let spaces = view.run(at, BLANK, BLANKS);
    let quotes = view.run(spaces.end, Class::of(b"\\\"'`"), 3);
    if spaces.open || quotes.open {
        return Gap::Unknown;
    }
    Gap::Value(Start {
        place: quotes.end,
        quote: view.before(quotes.end).filter(|_| quotes.end > spaces.end),
        tight: closing.end == blanks.end && spaces.end == at,
        equals: byte == b'=',
    })
}

/// Tells whether the name stands in a line of a `.netrc`.
fn after_login(view: &View<'_>, start: usize) -> bool {
    let from = start.saturating_sub(NAME);
    let line = view.part(from, start);
    let line = line
        .rsplit(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    line.windows(6).any(|window| window == b"login ")
}

/// Judges the value.
fn value(view: &View<'_>, name: usize, promise: Promise, start: &Start) -> Found {
    let mut from = start.place;
    if promise == Promise::Authorization {
        match scheme(view, from) {
            Some(after) => from = after,
            None => {
                return Found::More {
                    hold: from.min(view.bytes.len()),
                };
            }
        }
    }
    let plain = start.tight && start.equals && start.quote.is_none() && is_variable(view, name);
    let class = match start.quote {
        _ if plain => LINE,
        Some(quote @ (b'"' | b'\'' | b'`')) => quoted(quote),
        _ => LOOSE,
    };
    let run = view.run(from, class, JUDGED);
    if run.open {
        return Found::More { hold: from };
    }
    // An escaped quote ends the value, too.
    let mut to = run.end;
    while !run.cut && to > from && view.bytes[to - 1] == b'\\' {
        to -= 1;
    }
    let mut text = view.part(from, to);
    let mut cut = run.cut;
    if plain && promise == Promise::Token && !judge::is_token(text) {
        // In a command the value is a word, and whatever is assigned so to a token is one.
        let ends = |byte: &u8| byte.is_ascii_whitespace() || b";&|)<>".contains(byte);
        if let Some(length) = text.iter().position(ends) {
            (to, cut) = (from + length, false);
            text = view.part(from, to);
        }
    }
    let given = match start.quote {
        _ if plain => Given::Plainly,
        Some(_) => Given::Quoted,
        None => Given::Loosely,
    };
    let (secret, kind) = match promise {
        Promise::Nothing => (false, ""),
        Promise::Password => (judge::is_password(text, given), "password"),
        Promise::Token => {
            let assigned = plain && judge::is_assigned_token(text);
            (assigned || judge::is_token(text), "secret")
        }
        Promise::Key => {
            let random = text.len() >= 20 && judge::is_token(text);
            (
                random && !judge::is_hex(text, 1) && !judge::is_uuid(text),
                "secret",
            )
        }
        Promise::Authorization => {
            let certain = from > start.place && text.len() >= 8;
            let secret = certain || judge::is_token(text);
            (secret && !judge::is_placeholder(text), "authorization")
        }
    };
    if !secret {
        return Found::No;
    }
    Found::Yes(Hit {
        from,
        to,
        kind,
        rest: if cut { Rest::Run(class) } else { Rest::Nothing },
    })
}

const fn quoted(quote: u8) -> Class {
    match quote {
        b'"' => Class::of(b"\0-\x1f\"").inverse(),
        b'\'' => Class::of(b"\0-\x1f'").inverse(),
        _ => Class::of(b"\0-\x1f`").inverse(),
    }
}

/// Skips the scheme of an `Authorization` header; `None` when more text is needed.
fn scheme(view: &View<'_>, from: usize) -> Option<usize> {
    const SCHEMES: &[&str] = &[
        "bearer",
        "basic",
        "token",
        "digest",
        "apikey",
        "negotiate",
        "key",
    ];
    let word = view.run(from, Class::of(b"0-9A-Za-z"), 12);
    if word.open {
        return None;
    }
    let text = view.part(from, word.end);
    let known = SCHEMES
        .iter()
        .any(|scheme| text.eq_ignore_ascii_case(scheme.as_bytes()));
    if !known {
        return Some(from);
    }
    let blanks = view.run(word.end, BLANK, 4);
    (!blanks.open).then_some(blanks.end)
}

/// Tells whether a name in capitals starts a line, as in the output of `env` or `export -p`.
fn is_variable(view: &View<'_>, name: usize) -> bool {
    let head = &view.bytes[..name];
    let starts = head.is_empty()
        || head.ends_with(b"\n")
        || head.ends_with(b"\0")
        || head.ends_with(b"export ")
        || head.ends_with(b"declare -x ");
    let small = |byte: &u8| byte.is_ascii_lowercase();
    starts
        && !view
            .from(name)
            .iter()
            .take_while(|byte| **byte != b'=')
            .any(small)
}
