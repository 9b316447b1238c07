//! Keeps secrets out of what leaves the runtime.
//!
//! Two kinds of things are hidden: text that has the shape of a secret (keys of providers with their
//! prefixes, web tokens, private keys, passwords in addresses, values after names such as
//! `DB_PASSWORD=`), and values that are known to be secret ([`Secrets`]), also in base64 and escaped
//! for JSON or an address. In their place stands what they were, such as `[redacted: github token]`.
//!
//! Text that merely looks random stays: hashes, UUIDs, base64. The rest is a limit by nature: a
//! secret that a command transforms in another way cannot be found.

mod class;
mod filter;
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

pub use filter::RedactFilter;
pub use known::{Secrets, holds_secret};
pub use stream::RedactStream;

use crate::config::{Environment, Resolved, dotenv, env};
use known::Known;
use rules::Rules;
use stream::Scan;

/// Hides secrets. A copy is cheap and shares the rules.
#[derive(Debug, Clone)]
pub struct Redactor(Arc<Rules>);

impl Redactor {
    /// Hides what has the shape of a secret, and these values.
    pub fn new(secrets: &Secrets) -> Self {
        Self(Arc::new(Rules::new(Known::new(secrets))))
    }

    /// Knows the secrets of the caller's environment, of the configuration and of the values that
    /// containers get; the variables in `pass` are not hidden.
    pub fn for_config(config: &Resolved, environment: &Environment, pass: &[String]) -> Self {
        let variables = environment
            .iter()
            .map(|(name, value)| (name.as_encoded_bytes(), value.as_encoded_bytes()));
        // What is wrong with the file is told by those who forward from it.
        let forwarded = dotenv::read(&config.home.join(".env"), &mut Vec::new());
        let mut secrets = Secrets::new()
            .pass(pass.iter().cloned())
            .variables(variables)
            .variables(&config.terminal.env)
            .variables(&config.docker.env)
            .variables(&forwarded);
        if let Some(password) = environment.get(env::SUDO_PASSWORD) {
            secrets = secrets.value(env::SUDO_PASSWORD, password.as_encoded_bytes());
        }
        Self::new(&secrets)
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
        let mut out = Vec::with_capacity(bytes.len());
        let mut scan = Scan::default();
        scan.run(&self.0, bytes, true, &mut out);
        if scan.hidden {
            Cow::Owned(out)
        } else {
            Cow::Borrowed(bytes)
        }
    }

    /// Starts a stream.
    pub fn stream(&self) -> RedactStream {
        RedactStream::new(Arc::clone(&self.0))
    }

    /// Makes a filter for a [`Transcript`](crate::transcript::Transcript).
    pub fn filter(&self) -> RedactFilter {
        RedactFilter::new(self.stream())
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
