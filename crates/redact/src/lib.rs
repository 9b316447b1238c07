//! Keeps secrets out of what leaves a program.
//!
//! Two kinds of things are hidden: text that has the shape of a secret (keys of providers with their
//! prefixes, web tokens, private keys, passwords in addresses, values after names such as
//! `DB_PASSWORD=`), and values that are known to be secret ([`Secrets`]), also in base64 and escaped
//! for JSON or an address. In their place stands what they were, such as `[redacted: github token]`.
//!
//! Text that merely looks random stays: hashes, UUIDs, base64. The rest is a limit by nature: a
//! secret that a command transforms in another way cannot be found.

mod class;
mod found;
mod judge;
mod known;
mod names;
mod pem;
mod rules;
mod shapes;
mod special;
mod stream;
mod url;

use std::borrow::Cow;
use std::sync::Arc;

pub use known::{Secrets, holds_secret, looks_secret};
pub use stream::RedactStream;

use known::Known;
use rules::Rules;
use stream::Scan;

/// Hides secrets. A copy is cheap and shares the rules.
#[derive(Debug, Clone)]
pub struct Redactor(Option<Arc<Rules>>);

impl Redactor {
    /// Hides what has the shape of a secret, and these values.
    pub fn new(secrets: &Secrets) -> Self {
        Self(Some(Arc::new(Rules::new(Known::new(secrets)))))
    }

    /// Hides nothing: someone decided so.
    pub const fn off() -> Self {
        Self(None)
    }

    /// Tells whether it hides nothing at all.
    pub const fn is_off(&self) -> bool {
        self.0.is_none()
    }

    /// Tells whether a value as a whole is one that it hides, or that it was told to pass.
    pub fn knows(&self, value: &[u8]) -> bool {
        self.0.as_ref().is_none_or(|rules| rules.known.knows(value))
    }

    /// Returns the text with its secrets hidden.
    pub fn redact<'a>(&self, text: &'a str) -> Cow<'a, str> {
        match self.redact_bytes(text.as_bytes()) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(bytes) => Cow::Owned(into_text(bytes)),
        }
    }

    /// Returns the bytes with their secrets hidden; they need not be text.
    pub fn redact_bytes<'a>(&self, bytes: &'a [u8]) -> Cow<'a, [u8]> {
        let Some(rules) = &self.0 else {
            return Cow::Borrowed(bytes);
        };
        let mut out = Vec::with_capacity(bytes.len());
        let mut scan = Scan::default();
        scan.run(rules, bytes, true, &mut out);
        if scan.hidden {
            Cow::Owned(out)
        } else {
            Cow::Borrowed(bytes)
        }
    }

    /// Starts a stream.
    pub fn stream(&self) -> RedactStream {
        RedactStream::new(self.0.clone())
    }
}

impl Default for Redactor {
    /// Hides shapes only.
    fn default() -> Self {
        Self::new(&Secrets::new())
    }
}

/// Turns bytes into text; they are text already unless a known value is not.
fn into_text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

#[cfg(test)]
mod table;
#[cfg(test)]
#[path = "redact_tests.rs"]
mod tests;
