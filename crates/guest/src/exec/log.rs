//! The recent output of a command, in the order it was written.

use std::collections::VecDeque;

use bytes::Bytes;
use exoshell_wire::stream;

/// How many bytes of each stream, stdout first.
pub(super) type Offsets = [u64; 2];

/// Why a log cannot tell from somewhere on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gap {
    /// That part is not held any more.
    Forgotten,
    /// There is not that much output.
    Ahead,
}

/// Consecutive bytes of one stream.
#[derive(Debug)]
struct Segment {
    /// 0 for stdout, 1 for stderr.
    stream: usize,
    length: usize,
}

/// Up to where the log was told.
#[derive(Debug, Default)]
struct Cursor {
    segment: usize,
    /// Bytes of that segment.
    within: usize,
    /// Bytes of the whole log.
    byte: usize,
    /// Where each stream is here.
    offsets: Offsets,
    /// What lies before is not wanted.
    wanted: Offsets,
}

/// Holds output that was told, for telling it again, and output that is still to be told.
#[derive(Debug, Default)]
pub(super) struct Log {
    bytes: VecDeque<u8>,
    segments: VecDeque<Segment>,
    /// Where each stream is at the first byte held.
    begins: Offsets,
    ends: Offsets,
    cursor: Cursor,
}

impl Log {
    /// Returns how many bytes are held.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Adds output of one stream.
    pub(super) fn push(&mut self, number: u8, bytes: &[u8]) {
        let stream = usize::from(number != stream::STDOUT);
        match self.segments.back_mut() {
            Some(last) if last.stream == stream => last.length += bytes.len(),
            _ => self.segments.push_back(Segment {
                stream,
                length: bytes.len(),
            }),
        }
        self.ends[stream] += bytes.len() as u64;
        self.bytes.extend(bytes);
    }

    /// Forgets what was told, but for the last `keep` bytes.
    pub(super) fn forget(&mut self, keep: usize) {
        let mut left = self.cursor.byte.saturating_sub(keep);
        self.bytes.drain(..left);
        self.cursor.byte -= left;
        while let Some(front) = self.segments.front_mut() {
            let dropped = front.length.min(left);
            front.length -= dropped;
            left -= dropped;
            self.begins[front.stream] += dropped as u64;
            if self.cursor.segment == 0 {
                self.cursor.within -= dropped;
                break;
            }
            if front.length > 0 {
                break;
            }
            self.segments.pop_front();
            self.cursor.segment -= 1;
        }
    }

    /// Goes back, or forth, to where each stream was at these offsets.
    pub(super) fn rewind(&mut self, wanted: Offsets) -> Result<(), Gap> {
        for (stream, offset) in wanted.into_iter().enumerate() {
            if offset < self.begins[stream] {
                return Err(Gap::Forgotten);
            }
            if offset > self.ends[stream] {
                return Err(Gap::Ahead);
            }
        }
        self.cursor = Cursor {
            offsets: self.begins,
            wanted,
            ..Cursor::default()
        };
        self.skip_unwanted();
        Ok(())
    }

    /// Returns up to `most` bytes that are to be told next, with the number of their stream.
    pub(super) fn peek(&mut self, most: usize) -> Option<(u8, Bytes)> {
        let (stream, left) = self.skip_unwanted()?;
        let length = left.min(most);
        let number = if stream == 0 {
            stream::STDOUT
        } else {
            stream::STDERR
        };
        Some((number, self.copy(length)))
    }

    /// Notes that what was peeked at was told.
    pub(super) fn advance(&mut self, length: usize) {
        let Some(segment) = self.segments.get(self.cursor.segment) else {
            return;
        };
        self.cursor.offsets[segment.stream] += length as u64;
        self.cursor.within += length;
        self.cursor.byte += length;
    }

    /// Takes everything that is still to be told.
    pub(super) fn rest(&mut self, most: usize) -> Vec<(u8, Bytes)> {
        let mut rest = Vec::new();
        while let Some(piece) = self.peek(most) {
            self.advance(piece.1.len());
            rest.push(piece);
        }
        rest
    }

    /// Gives back memory that is not needed.
    pub(super) fn shrink(&mut self) {
        self.bytes.shrink_to_fit();
        self.segments.shrink_to_fit();
    }

    /// Moves to the next wanted byte. Returns its stream and how many follow in its segment.
    fn skip_unwanted(&mut self) -> Option<(usize, usize)> {
        loop {
            let segment = self.segments.get(self.cursor.segment)?;
            let left = segment.length - self.cursor.within;
            let stream = segment.stream;
            if left == 0 {
                // The last segment may still grow.
                if self.cursor.segment + 1 == self.segments.len() {
                    return None;
                }
                self.cursor.segment += 1;
                self.cursor.within = 0;
                continue;
            }
            let wanted = self.cursor.wanted[stream].saturating_sub(self.cursor.offsets[stream]);
            match usize::try_from(wanted).unwrap_or(usize::MAX).min(left) {
                0 => return Some((stream, left)),
                unwanted => self.advance(unwanted),
            }
        }
    }

    fn copy(&self, length: usize) -> Bytes {
        let (start, end) = (self.cursor.byte, self.cursor.byte + length);
        let (front, back) = self.bytes.as_slices();
        let split = front.len();
        let first = front.get(start.min(split)..end.min(split));
        let second = back.get(start.saturating_sub(split)..end.saturating_sub(split));
        [first.unwrap_or_default(), second.unwrap_or_default()]
            .concat()
            .into()
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
