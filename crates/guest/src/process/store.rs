//! The output of one process: a ring in memory, rotated files on disk, offsets for all of it.
//!
//! Every byte has an offset that never changes. Memory and disk are bounded whatever the process
//! writes and whether anyone reads; what had to go is known by its offsets.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

/// How much is kept in memory; at least the last 200 KB are always there.
const RING: usize = 256 * 1024;

/// Into how many files the disk's share is cut; the oldest goes when a new one is needed.
const SEGMENTS: u64 = 4;

/// How many lines lie between two entries of the line index.
const INDEX_STEP: u64 = 256;

/// One process's output.
#[derive(Debug)]
pub(crate) struct Store {
    inner: Mutex<Inner>,
    end: watch::Sender<u64>,
}

#[derive(Debug)]
struct Inner {
    ring: VecDeque<u8>,
    end: u64,
    newlines: u64,
    /// Offsets of lines 0, 256, 512, … that are still kept, and the number of the first entry.
    index: VecDeque<u64>,
    index_first: u64,
    last_byte: u8,
    disk: Disk,
}

#[derive(Debug)]
struct Disk {
    path: PathBuf,
    segment_bytes: u64,
    segments: VecDeque<Segment>,
    next_number: u64,
    failed: bool,
}

#[derive(Debug)]
struct Segment {
    path: PathBuf,
    file: File,
    start: u64,
    bytes: u64,
}

/// A piece of output.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    /// The offset of its first byte.
    pub(crate) start: u64,
    pub(crate) bytes: Vec<u8>,
}

impl Store {
    /// Makes an empty store whose files begin with `path`.
    pub(crate) fn new(path: PathBuf, disk_bytes: u64) -> Self {
        Self {
            inner: Mutex::new(Inner {
                ring: VecDeque::new(),
                end: 0,
                newlines: 0,
                index: VecDeque::from([0]),
                index_first: 0,
                last_byte: b'\n',
                disk: Disk {
                    path,
                    segment_bytes: disk_bytes / SEGMENTS,
                    segments: VecDeque::new(),
                    next_number: 0,
                    failed: disk_bytes < SEGMENTS,
                },
            }),
            end: watch::Sender::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds output.
    pub(crate) fn push(&self, bytes: &[u8]) {
        let mut inner = self.lock();
        inner.push(bytes);
        let end = inner.end;
        drop(inner);
        self.end.send_replace(end);
    }

    /// Returns a receiver that changes whenever output was added.
    pub(crate) fn grown(&self) -> watch::Receiver<u64> {
        self.end.subscribe()
    }

    /// Returns the offset behind the last byte.
    pub(crate) fn end(&self) -> u64 {
        self.lock().end
    }

    /// Returns the offset of the oldest byte that is kept.
    pub(crate) fn start(&self) -> u64 {
        self.lock().start()
    }

    /// Counts lines; an unfinished last one counts.
    pub(crate) fn lines(&self) -> u64 {
        let inner = self.lock();
        inner.newlines + u64::from(inner.last_byte != b'\n')
    }

    /// Reads up to `max` bytes from an offset on, or from the oldest byte behind it.
    pub(crate) fn read(&self, offset: u64, max: usize) -> Piece {
        self.lock().read(offset, max)
    }

    /// Returns the last bytes, at most `max`.
    pub(crate) fn tail(&self, max: usize) -> Piece {
        let inner = self.lock();
        inner.read(inner.end.saturating_sub(max as u64), max)
    }

    /// Finds the offset of a line, and the line it really is: a later one where that line is
    /// not kept any more, the end where there is none yet.
    pub(crate) fn find_line(&self, line: u64) -> (u64, u64) {
        self.lock().find_line(line)
    }

    /// Removes the files.
    pub(crate) fn remove_files(&self) {
        let mut inner = self.lock();
        for segment in inner.disk.segments.drain(..) {
            let _ = fs::remove_file(segment.path);
        }
        inner.disk.failed = true;
    }
}

impl Inner {
    fn push(&mut self, bytes: &[u8]) {
        let Some(last) = bytes.last() else {
            return;
        };
        for position in memchr::memchr_iter(b'\n', bytes) {
            self.newlines += 1;
            if self.newlines.is_multiple_of(INDEX_STEP) {
                self.index.push_back(self.end + position as u64 + 1);
            }
        }
        self.last_byte = *last;
        let overflows = self.ring.len() + bytes.len() > RING;
        if overflows || !self.disk.segments.is_empty() {
            if self.disk.segments.is_empty() {
                // The disk begins where the output does; the ring still has all of it.
                let (front, back) = self.ring.as_slices();
                let earlier = [front, back].concat();
                let start = self.end - earlier.len() as u64;
                self.disk.append(start, &earlier);
            }
            self.disk.append(self.end, bytes);
        }
        self.end += bytes.len() as u64;
        let kept = bytes
            .get(bytes.len().saturating_sub(RING)..)
            .unwrap_or_default();
        let surplus = (self.ring.len() + kept.len()).saturating_sub(RING);
        self.ring.drain(..surplus.min(self.ring.len()));
        self.ring.extend(kept);
        let start = self.start();
        while self.index.get(1).is_some_and(|next| *next <= start) {
            self.index.pop_front();
            self.index_first += 1;
        }
    }

    fn start(&self) -> u64 {
        let ring = self.end - self.ring.len() as u64;
        let disk = self.disk.segments.front().map(|segment| segment.start);
        disk.map_or(ring, |disk| disk.min(ring))
    }

    fn read(&self, offset: u64, max: usize) -> Piece {
        let start = offset.clamp(self.start(), self.end);
        let ring_start = self.end - self.ring.len() as u64;
        if start < ring_start
            && let Some(bytes) = self.disk.read(start, max)
        {
            return Piece { start, bytes };
        }
        let start = start.max(ring_start);
        let skip = usize::try_from(start - ring_start).unwrap_or(usize::MAX);
        let bytes = self.ring.iter().skip(skip).take(max).copied().collect();
        Piece { start, bytes }
    }

    fn find_line(&self, line: u64) -> (u64, u64) {
        let entry = (line / INDEX_STEP).saturating_sub(self.index_first);
        let entry = usize::try_from(entry).unwrap_or(usize::MAX);
        let entry = entry.min(self.index.len().saturating_sub(1));
        let mut at = (self.index_first + entry as u64) * INDEX_STEP;
        let mut offset = self.index.get(entry).copied().unwrap_or(0);
        if offset < self.start() {
            // The entry's line is cut: the first whole line behind it is the oldest there is.
            offset = self.start();
            let Some((next, skipped)) = self.next_line(offset) else {
                return (self.end, at + 1);
            };
            let _ = skipped;
            offset = next;
            at = self.line_at(offset);
        }
        while at < line {
            match self.next_line(offset) {
                Some((next, _)) => {
                    offset = next;
                    at += 1;
                }
                None => return (self.end, at + u64::from(self.last_byte != b'\n')),
            }
        }
        (offset, at)
    }

    /// Counts the newlines before an offset, backwards from the end.
    fn line_at(&self, offset: u64) -> u64 {
        let mut behind = 0;
        let mut at = offset;
        while at < self.end {
            let piece = self.read(at, 64 * 1024);
            if piece.bytes.is_empty() {
                break;
            }
            behind += memchr::memchr_iter(b'\n', &piece.bytes).count() as u64;
            at = piece.start + piece.bytes.len() as u64;
        }
        self.newlines - behind
    }

    /// Finds the start of the line behind the one at an offset.
    fn next_line(&self, offset: u64) -> Option<(u64, u64)> {
        let mut at = offset;
        loop {
            let piece = self.read(at, 16 * 1024);
            if piece.bytes.is_empty() {
                return None;
            }
            if let Some(position) = piece.bytes.iter().position(|b| *b == b'\n') {
                let next = piece.start + position as u64 + 1;
                return Some((next, next - offset));
            }
            at = piece.start + piece.bytes.len() as u64;
        }
    }
}

impl Disk {
    fn append(&mut self, offset: u64, mut bytes: &[u8]) {
        let mut offset = offset;
        while !bytes.is_empty() && !self.failed {
            let full = self
                .segments
                .back()
                .is_none_or(|segment| segment.bytes >= self.segment_bytes);
            if full && self.rotate(offset).is_err() {
                self.give_up();
                return;
            }
            let Some(segment) = self.segments.back_mut() else {
                return;
            };
            let room = self.segment_bytes - segment.bytes;
            let room = usize::try_from(room).unwrap_or(usize::MAX);
            let (piece, rest) = bytes.split_at(room.min(bytes.len()));
            if segment.file.write_all(piece).is_err() {
                self.give_up();
                return;
            }
            segment.bytes += piece.len() as u64;
            offset += piece.len() as u64;
            bytes = rest;
        }
    }

    fn rotate(&mut self, start: u64) -> std::io::Result<()> {
        if self.segments.len() as u64 >= SEGMENTS
            && let Some(oldest) = self.segments.pop_front()
        {
            let _ = fs::remove_file(oldest.path);
        }
        let path = self
            .path
            .with_extension(format!("{}.log", self.next_number));
        self.next_number += 1;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        self.segments.push_back(Segment {
            path,
            file,
            start,
            bytes: 0,
        });
        Ok(())
    }

    /// A disk that is full must not leave a hole between its files and the ring.
    fn give_up(&mut self) {
        self.failed = true;
        for segment in self.segments.drain(..) {
            let _ = fs::remove_file(segment.path);
        }
    }

    fn read(&self, offset: u64, max: usize) -> Option<Vec<u8>> {
        let segment = self
            .segments
            .iter()
            .find(|s| offset >= s.start && offset < s.start + s.bytes)?;
        let available = usize::try_from(segment.start + segment.bytes - offset).ok()?;
        let mut bytes = vec![0; max.min(available)];
        segment
            .file
            .read_exact_at(&mut bytes, offset - segment.start)
            .ok()?;
        Some(bytes)
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
