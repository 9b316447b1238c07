//! Tables by name that never change: found faster than by the usual hash, which withstands hostile
//! keys. Here only the questions are hostile; the keys are ours.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A table that is made once.
pub(crate) type Names<T> = HashMap<&'static str, T, BuildHasherDefault<Mix>>;

/// Multiplies and shifts, eight bytes at once.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Mix(u64);

impl Mix {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for Mix {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.add(u64::from_le_bytes(*word));
        }
        let rest = rest
            .iter()
            .fold(0, |word, byte| (word << 8) | u64::from(*byte));
        self.add(rest);
    }

    fn write_u8(&mut self, byte: u8) {
        self.add(u64::from(byte));
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }
}
