//! Sets of bytes.

/// A set of bytes, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Class([u64; 4]);

impl Class {
    /// Makes the set of these bytes; `a-z` stands for a range, a leading `-` for itself.
    pub(super) const fn of(spec: &[u8]) -> Self {
        let mut bits = [0; 4];
        let mut at = 0;
        while at < spec.len() {
            let first = spec[at];
            let range = at > 0 || first != b'-';
            let last = if range && at + 2 < spec.len() && spec[at + 1] == b'-' {
                at += 2;
                spec[at]
            } else {
                first
            };
            let mut byte = first as usize;
            while byte <= last as usize {
                bits[byte / 64] |= 1 << (byte % 64);
                byte += 1;
            }
            at += 1;
        }
        Self(bits)
    }

    /// Makes the set of all bytes that are not in this one.
    pub(super) const fn inverse(self) -> Self {
        let Self([a, b, c, d]) = self;
        Self([!a, !b, !c, !d])
    }

    /// Tells whether a byte is in the set.
    #[inline]
    pub(super) const fn has(self, byte: u8) -> bool {
        self.0[(byte >> 6) as usize] & (1 << (byte & 63)) != 0
    }
}

pub(super) const HEX: Class = Class::of(b"0-9a-fA-F");
pub(super) const UPPER: Class = Class::of(b"A-Z0-9");
pub(super) const ALNUM: Class = Class::of(b"0-9A-Za-z");
pub(super) const WORD: Class = Class::of(b"0-9A-Za-z_");
pub(super) const URLSAFE: Class = Class::of(b"-0-9A-Za-z_");
pub(super) const DOTTED: Class = Class::of(b"-0-9A-Za-z_.");
pub(super) const PADDED: Class = Class::of(b"-0-9A-Za-z_.=");
pub(super) const BASE64: Class = Class::of(b"0-9A-Za-z+/=");
pub(super) const TOKEN68: Class = Class::of(b"-0-9A-Za-z._~+/=");
pub(super) const PATH: Class = Class::of(b"-0-9A-Za-z_/");
pub(super) const QUERY: Class = Class::of(b"-0-9A-Za-z_%+/=.~");
