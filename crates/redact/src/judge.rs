//! Tells random text from words.

/// What can be counted in a text.
#[derive(Debug, Default)]
struct Counts {
    lower: usize,
    upper: usize,
    digits: usize,
    others: usize,
    distinct: usize,
    /// How often a digit and a letter meet.
    switches: usize,
    /// How often a capital and a small letter meet.
    turns: usize,
    /// Letters that stand in something like a word.
    wordy: usize,
}

fn count(text: &[u8]) -> Counts {
    let mut counts = Counts::default();
    let mut seen = [false; 256];
    let mixed = [
        u8::is_ascii_lowercase,
        u8::is_ascii_uppercase,
        u8::is_ascii_digit,
    ]
    .iter()
    .all(|kind| text.iter().any(kind));
    // Among capitals, small letters and digits, short words come up by chance.
    let mut word = Word {
        least: if mixed { 5 } else { 4 },
        ..Word::default()
    };
    let mut before = 0;
    for &byte in text {
        if !std::mem::replace(&mut seen[usize::from(byte)], true) {
            counts.distinct += 1;
        }
        match byte {
            b'a'..=b'z' => counts.lower += 1,
            b'A'..=b'Z' => counts.upper += 1,
            b'0'..=b'9' => counts.digits += 1,
            _ => counts.others += 1,
        }
        if byte.is_ascii_alphabetic() && u8::is_ascii_digit(&before)
            || byte.is_ascii_digit() && u8::is_ascii_alphabetic(&before)
        {
            counts.switches += 1;
        }
        if byte.is_ascii_uppercase() && before.is_ascii_lowercase()
            || byte.is_ascii_lowercase() && before.is_ascii_uppercase()
        {
            counts.turns += 1;
        }
        counts.wordy += word.push(byte, before);
        before = byte;
    }
    counts.wordy += word.end();
    counts
}

/// The letters since the last border between words.
#[derive(Default)]
struct Word {
    /// How many letters a word has at least.
    least: usize,
    capitals: usize,
    letters: usize,
    vowels: usize,
    cluster: usize,
    longest_cluster: usize,
}

impl Word {
    /// Takes a byte; returns how many letters the word that ends before it had.
    fn push(&mut self, byte: u8, before: u8) -> usize {
        let border = !byte.is_ascii_alphabetic()
            || (byte.is_ascii_uppercase() && before.is_ascii_lowercase())
            || (byte.is_ascii_lowercase() && before.is_ascii_uppercase() && self.letters > 1);
        let ended = if border { self.end() } else { 0 };
        if byte.is_ascii_alphabetic() {
            self.letters += 1;
            self.capitals += usize::from(byte.is_ascii_uppercase());
            if b"aeiouyAEIOUY".contains(&byte) {
                self.vowels += 1;
                self.cluster = 0;
            } else {
                self.cluster += 1;
                self.longest_cluster = self.longest_cluster.max(self.cluster);
            }
        }
        ended
    }

    fn end(&mut self) -> usize {
        let least = self.least;
        let word = std::mem::replace(
            self,
            Self {
                least,
                ..Self::default()
            },
        );
        let shouted = least > 4 && word.capitals > 1;
        let pronounced = !shouted && word.vowels * 5 >= word.letters && word.longest_cluster <= 3;
        if word.letters >= least && pronounced {
            word.letters
        } else {
            0
        }
    }
}

/// Tells whether text looks as if it had been drawn at random: letters and digits mixed, no words.
pub(super) fn looks_random(text: &[u8]) -> bool {
    let text = &text[..text.len().min(super::found::JUDGED)];
    let counts = count(text);
    let letters = counts.lower + counts.upper;
    if counts.digits == 0 {
        return is_scrambled(text.len(), &counts);
    }
    if letters == 0 || counts.distinct < 6.max(text.len().min(24) / 3) {
        return false;
    }
    let words = counts.wordy * 100 / letters;
    words < 40 || (counts.switches >= 4 && words < 75) || (counts.switches >= 8)
}

/// Tells whether text without digits is drawn at random: capitals and small letters change more
/// often than in any name. One token in thirty of twenty letters has no digit.
const fn is_scrambled(length: usize, counts: &Counts) -> bool {
    let letters = counts.lower + counts.upper;
    let often = if length >= 24 { 4 } else { 3 };
    length >= 16
        && counts.turns * often >= length
        && counts.others * 8 <= length
        && counts.wordy * 100 < letters * 40
        && counts.distinct >= 10
}

/// Tells whether text is nothing but hexadecimal digits, at least `min` of them.
pub(super) fn is_hex(text: &[u8], min: usize) -> bool {
    text.len() >= min && text.iter().all(u8::is_ascii_hexdigit)
}

/// Tells whether text is a UUID.
pub(super) fn is_uuid(text: &[u8]) -> bool {
    text.len() == 36
        && text.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Tells whether text only fills a place: stars, dots, one letter again and again.
pub(super) fn is_filler(text: &[u8]) -> bool {
    let mut seen: Vec<u8> = Vec::with_capacity(4);
    for &byte in text {
        let byte = byte.to_ascii_lowercase();
        if !seen.contains(&byte) {
            seen.push(byte);
            if seen.len() > 3 {
                return false;
            }
        }
    }
    true
}

/// How placeholders start, in lower case.
#[rustfmt::skip]
const PLACEHOLDERS: &[&str] = &[
    "your", "example", "changeme", "change_me", "change-me", "dummy", "placeholder", "redacted",
    "insert", "replace", "xxx", "process.", "os.", "env.", "env:", "environ", "getenv", "import.",
    "secrets.", "config.", "self.", "this.", "settings.", "options.", "args.", "params.", "vault:",
    "arn:", "ref:", "file:", "enc[", "null", "none", "undefined", "required", "optional", "string",
    "sha256:", "sha512:", "sha1-", "sha256-", "sha384-", "sha512-", "md5:", "urn:",
];

/// Tells whether a value stands for another one: a variable, a template, an example.
pub(super) fn is_placeholder(text: &[u8]) -> bool {
    let Some(first) = text.first() else {
        return true;
    };
    if b"$<{%[*(&|".contains(first) || text.starts_with(b"...") || is_filler(text) {
        return true;
    }
    if text
        .windows(2)
        .any(|pair| pair == b"${" || pair == b"$(" || pair == b"{{")
    {
        return true;
    }
    PLACEHOLDERS.iter().any(|start| {
        text.get(..start.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(start.as_bytes()))
    })
}

/// Tells whether the password in an address only shows where one would stand.
pub(super) fn is_placeholder_in_url(text: &[u8]) -> bool {
    let template = b"$<{[*%".contains(&text[0]) && !text.iter().any(u8::is_ascii_digit)
        || text.starts_with(b"${")
        || text.starts_with(b"{{");
    template || text.iter().all(|byte| b"*.x".contains(byte))
}

/// Tells whether a value is a path or an address.
pub(super) fn is_location(text: &[u8]) -> bool {
    if text.windows(3).any(|three| three == b"://") {
        return true;
    }
    let rooted = [&b"/"[..], b"./", b"../", b"~/", b"\\\\"]
        .iter()
        .any(|root| text.starts_with(root));
    // Base64 can start with a slash as well.
    rooted && !(text.len() >= 24 && looks_random(text) && count(text).upper > 2)
}

/// Tells whether the value of a thing that is named as a token or a key is a secret.
pub(super) fn is_token(text: &[u8]) -> bool {
    if text.len() < 12 || is_placeholder(text) || is_location(text) || is_code(text) {
        return false;
    }
    let counts = count(text);
    match text.len() {
        12..=15 => {
            let kinds = [counts.lower, counts.upper, counts.digits]
                .iter()
                .filter(|count| **count > 0)
                .count();
            looks_random(text) && (kinds == 3 || counts.switches >= 3)
        }
        _ => looks_random(text) || is_hex(text, 32) || is_uuid(text),
    }
}

/// Tells whether what is assigned to a variable that is named as a token is one: anything with
/// letters and digits that stands for nothing else.
pub(super) fn is_assigned_token(text: &[u8]) -> bool {
    if text.len() < 10 || is_placeholder(text) || is_location(text) || is_code(text) {
        return false;
    }
    let counts = count(text);
    counts.digits > 0 && counts.lower + counts.upper >= 4
}

/// How a password is given.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Given {
    /// As in the output of `env`: whatever it is, it is the password.
    Plainly,
    /// Between quotes.
    Quoted,
    /// In running text or code.
    Loosely,
}

/// Tells whether the value of a thing that is named as a password is a secret.
pub(super) fn is_password(text: &[u8], given: Given) -> bool {
    if text.len() < 6 || is_placeholder(text) || is_location(text) {
        return false;
    }
    let counts = count(text);
    let letters = counts.lower + counts.upper;
    if given == Given::Plainly {
        return letters > 0 || counts.digits >= 8;
    }
    if letters == 0 || is_code(text) {
        return false;
    }
    let special = text.iter().any(|byte| b"!@#$%^&*+?~".contains(byte));
    let identifier = counts.others > 0 && !special && counts.wordy * 4 >= letters * 3;
    match given {
        _ if counts.digits == 0 && is_scrambled(text.len(), &counts) => true,
        Given::Quoted => special || (counts.digits > 0 && text.len() >= 8 && !identifier),
        _ => {
            text.len() >= 8
                && counts.digits > 0
                && !identifier
                && (special || looks_random(text) || counts.upper == 0)
        }
    }
}

/// Tells whether a value is an expression of a program.
fn is_code(text: &[u8]) -> bool {
    text.iter().any(|byte| b"()[]{}<>".contains(byte))
        || text.windows(2).any(|pair| pair == b"::" || pair == b"->")
        || text.starts_with(b"_")
        || text.starts_with(b".")
}
