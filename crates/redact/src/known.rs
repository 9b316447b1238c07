//! Values that are known to be secret.

use std::collections::BTreeMap;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

use super::found::{Found, Hit, Rest, View};
use super::judge::{self, Given};
use super::names::{self, Promise};

/// Shortest value that is hidden: shorter ones stand in harmless text too often.
pub(super) const SHORTEST: usize = 8;
/// Longest piece that is looked for at once.
const LONGEST: usize = 512;
/// Shortest value whose base64 is looked for as well.
const ENCODED: usize = 12;

/// Values of secret-looking variables that are no secrets, but words of everyday output.
#[rustfmt::skip]
const EVERYDAY: &[&str] = &[
    "password", "postgres", "username", "changeme", "disabled", "required", "standard", "optional",
    "production", "development", "localhost", "anonymous", "keychain", "keyring", "external",
    "internal", "credential",
];

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

/// Tells whether a variable with this name is likely to hold a secret.
pub fn looks_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
}

/// Says which values are secret, and which are not to be hidden.
///
/// Its debug form shows names only.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Secrets {
    variables: Vec<(String, Vec<u8>)>,
    values: Vec<(String, Vec<u8>)>,
    pass: Vec<String>,
}

impl Secrets {
    /// Knows no value.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the values of those variables that hold secrets, by their names and values.
    #[must_use]
    pub fn variables<N, V>(mut self, variables: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        self.variables
            .extend(variables.into_iter().map(|(name, value)| {
                let name = String::from_utf8_lossy(name.as_ref()).into_owned();
                (name, value.as_ref().to_vec())
            }));
        self
    }

    /// Adds a value that is secret whatever it looks like, such as a password that was typed.
    #[must_use]
    pub fn value(mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) -> Self {
        self.values.push((name.into(), value.into()));
        self
    }

    /// Exempts variables by name: their values are not hidden, whatever they look like.
    #[must_use]
    pub fn pass<N: Into<String>>(mut self, names: impl IntoIterator<Item = N>) -> Self {
        self.pass.extend(names.into_iter().map(Into::into));
        self
    }
}

impl fmt::Debug for Secrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Secrets")
            .field(
                "names",
                &self.values.iter().map(|(name, _)| name).collect::<Vec<_>>(),
            )
            .field("pass", &self.pass)
            .finish_non_exhaustive()
    }
}

/// Tells whether a variable holds a secret, by its name and its value.
pub fn holds_secret(name: &str, value: &[u8]) -> bool {
    let usable = value.len() >= SHORTEST
        && !judge::is_location(value)
        && !EVERYDAY
            .iter()
            .any(|word| value.eq_ignore_ascii_case(word.as_bytes()));
    if !usable {
        return false;
    }
    match names::promise(name.as_bytes()) {
        Promise::Password | Promise::Token => true,
        _ => {
            looks_secret(name)
                && (judge::is_token(value) || judge::is_password(value, Given::Quoted))
        }
    }
}

/// The values to look for.
#[derive(Default)]
pub(super) struct Known {
    /// The longest first.
    values: Vec<(Vec<u8>, &'static str)>,
    pass: Vec<String>,
    passed: Vec<Vec<u8>>,
}

impl Known {
    pub(super) fn new(secrets: &Secrets) -> Self {
        let mut pieces: BTreeMap<Vec<u8>, &'static str> = BTreeMap::new();
        let mut passed = Vec::new();
        let found = secrets.variables.iter();
        let found = found.filter(|(name, value)| {
            holds_secret(name, value) || (value.len() >= SHORTEST && secrets.pass.contains(name))
        });
        for (name, value) in secrets.values.iter().chain(found) {
            if secrets.pass.contains(name) {
                passed.push(value.clone());
                continue;
            }
            for piece in forms(value) {
                pieces.entry(piece).or_insert("secret value");
            }
        }
        pieces.retain(|piece, _| !passed.iter().any(|value| contains(value, piece)));
        let mut values: Vec<_> = pieces.into_iter().collect();
        values.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        Self {
            values,
            pass: secrets.pass.clone(),
            passed,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn value(&self, at: usize) -> &[u8] {
        &self.values[at].0
    }

    /// Tells whether nothing of a value would be new.
    pub(super) fn knows(&self, value: &[u8]) -> bool {
        self.is_passed(value) || forms(value).iter().all(|form| self.has(form))
    }

    fn has(&self, form: &[u8]) -> bool {
        self.values.iter().any(|(value, _)| value == form)
    }

    /// Tells whether the value of this name is not to be hidden.
    pub(super) fn passes(&self, name: &[u8]) -> bool {
        self.pass.iter().any(|pass| pass.as_bytes() == name)
    }

    /// Tells whether a text is part of a value that is not to be hidden.
    pub(super) fn is_passed(&self, text: &[u8]) -> bool {
        self.passed.iter().any(|value| contains(value, text))
    }

    /// Looks for a value at a place.
    pub(super) fn find(&self, at: usize, view: &View<'_>, place: usize) -> Found {
        let (value, kind) = &self.values[at];
        match view.literal(place, value) {
            Some(true) => Found::Yes(Hit {
                from: place,
                to: place + value.len(),
                kind,
                rest: Rest::Nothing,
            }),
            Some(false) => Found::No,
            None => Found::More { hold: place },
        }
    }

    /// Returns how far values that start between two places reach; `None` when that is not known yet.
    pub(super) fn reach(&self, view: &View<'_>, from: usize, to: usize) -> Option<usize> {
        let mut reach = to;
        for place in from..to {
            for (value, _) in &self.values {
                if view.at(place) != value.first().copied() {
                    continue;
                }
                match view.literal(place, value) {
                    Some(true) => reach = reach.max(place + value.len()),
                    Some(false) => {}
                    None => return None,
                }
            }
        }
        Some(reach)
    }
}

impl fmt::Debug for Known {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Known")
            .field("values", &self.values.len())
            .field("pass", &self.pass)
            .finish_non_exhaustive()
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    memchr::memmem::find(text, part).is_some()
}

/// Returns the forms in which a value is looked for: its lines, in pieces of bounded length, as
/// they are, escaped for JSON and addresses, and in base64.
fn forms(value: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    for line in value.split(|byte| matches!(byte, b'\n' | b'\r')) {
        if line.len() < SHORTEST {
            continue;
        }
        let count = line.len().div_ceil(LONGEST);
        forms.extend(line.chunks(line.len().div_ceil(count)).map(<[u8]>::to_vec));
        if line.len() <= LONGEST {
            forms.extend(escaped(line));
            forms.extend(encoded(line));
        }
    }
    forms.retain(|form| form.len() >= SHORTEST);
    forms
}

fn escaped(line: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let mut percent = Vec::new();
    for &byte in line {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            percent.push(byte);
        } else {
            percent.extend(format!("%{byte:02X}").bytes());
        }
    }
    let text = String::from_utf8_lossy(line);
    let json = serde_json::to_string(&*text).unwrap_or_default();
    let json = json.trim_matches('"').as_bytes().to_vec();
    [percent, json, text.into_owned().into_bytes()].into_iter()
}

/// Returns the base64 of a value at each of the three ways it can lie in a longer text, without
/// the letters that depend on what stands around it.
fn encoded(line: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let long = line.len() >= ENCODED;
    (0..3).filter(move |_| long).map(|shift| {
        let mut text = vec![0; shift];
        text.extend_from_slice(line);
        let whole = text.len() / 3 * 4;
        let skipped = [0, 2, 3][shift];
        let base64 = STANDARD_NO_PAD.encode(&text);
        base64.as_bytes()[skipped..whole.max(skipped)].to_vec()
    })
}
