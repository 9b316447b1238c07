//! What a file contains, in short.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

/// A SHA-256; its text is 64 lowercase hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest([u8; 32]);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is no SHA-256.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a SHA-256 is 64 lowercase hex digits")]
pub struct NotADigest;

impl FromStr for Digest {
    type Err = NotADigest;

    fn from_str(text: &str) -> Result<Self, NotADigest> {
        let digit = |byte: u8| match byte {
            b'0'..=b'9' => Some(byte - b'0'),
            b'a'..=b'f' => Some(byte - b'a' + 10),
            _ => None,
        };
        let (pairs, []) = text.as_bytes().as_chunks::<2>() else {
            return Err(NotADigest);
        };
        let bytes: Option<Vec<u8>> = pairs
            .iter()
            .map(|[high, low]| Some(digit(*high)? << 4 | digit(*low)?))
            .collect();
        let bytes = bytes.ok_or(NotADigest)?;
        <[u8; 32]>::try_from(bytes)
            .map(Self)
            .map_err(|_wrong_length| NotADigest)
    }
}

/// The length and hash of some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content {
    /// How many bytes there are.
    pub size: u64,
    /// Their hash.
    pub digest: Digest,
}

impl Content {
    /// Returns the content of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        let mut hasher = Hasher::default();
        hasher.update(bytes);
        hasher.finish()
    }
}

/// Computes a [`Content`] piece by piece.
#[derive(Debug, Clone, Default)]
pub struct Hasher {
    size: u64,
    sha: Sha256,
}

impl Hasher {
    /// Takes the next piece.
    pub fn update(&mut self, bytes: &[u8]) {
        self.size += bytes.len() as u64;
        self.sha.update(bytes);
    }

    /// Returns how many bytes were taken.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Returns the content of all pieces.
    pub fn finish(self) -> Content {
        Content {
            size: self.size,
            digest: Digest(self.sha.finalize().into()),
        }
    }
}

#[cfg(test)]
#[path = "content_tests.rs"]
mod tests;
