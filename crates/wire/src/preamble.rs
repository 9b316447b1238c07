//! The first line of a pipe: proof that a guest, not a login banner, is talking.

use crate::limits::MAX_NOISE;

const MAGIC: &[u8] = b"\x01EXOSHELL-GUEST ";

/// The line a guest writes before its first frame: the magic and the host's nonce.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preamble {
    nonce: String,
}

impl Preamble {
    /// Builds the preamble for a nonce the host chose.
    pub fn new(nonce: impl Into<String>) -> Self {
        Self {
            nonce: nonce.into(),
        }
    }

    /// Returns the bytes to write.
    pub fn encode(&self) -> Vec<u8> {
        let mut line = MAGIC.to_vec();
        line.extend_from_slice(self.nonce.as_bytes());
        line.push(b'\n');
        line
    }
}

/// Looks for a preamble behind whatever a place prints first.
#[derive(Debug)]
pub struct PreambleScanner {
    wanted: Vec<u8>,
    seen: Vec<u8>,
}

impl PreambleScanner {
    /// Starts looking for this preamble.
    pub fn new(preamble: &Preamble) -> Self {
        Self {
            wanted: preamble.encode(),
            seen: Vec::new(),
        }
    }

    /// Takes received bytes; once the preamble is there, returns what follows it.
    ///
    /// `Ok(None)` asks for more. `Err` means the noise is over [`MAX_NOISE`].
    pub fn push(&mut self, bytes: &[u8]) -> Result<Option<Vec<u8>>, NoiseOverflow> {
        // Only the part a match could start in is searched again.
        let from = self.seen.len().saturating_sub(self.wanted.len());
        self.seen.extend_from_slice(bytes);
        // The verdict must not depend on how the bytes were cut, so what starts behind the
        // allowed noise does not count even if it is here already.
        let limit = MAX_NOISE + self.wanted.len();
        let end = self.seen.len().min(limit);
        let found = self.seen.get(from..end).and_then(|tail| {
            tail.windows(self.wanted.len())
                .position(|window| window == self.wanted)
        });
        if let Some(position) = found {
            let rest = self.seen.split_off(from + position + self.wanted.len());
            self.seen.truncate(from + position);
            return Ok(Some(rest));
        }
        if self.seen.len() >= limit {
            self.seen.truncate(limit);
            return Err(NoiseOverflow);
        }
        Ok(None)
    }

    /// Returns the noise that came before the preamble, for error texts.
    pub fn noise(&self) -> &[u8] {
        &self.seen
    }
}

/// More than [`MAX_NOISE`] bytes came and none of them was the preamble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no guest answered within {MAX_NOISE} bytes of output")]
pub struct NoiseOverflow;
