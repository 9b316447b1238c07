//! Redaction of a stream, piece by piece.

use std::sync::Arc;

use super::found::{Found, Hit, Rest, View};
use super::rules::Rules;

/// How much of the text before a place rules may look at.
const CONTEXT: usize = 192;

/// Largest part that is worked on at once, so that it stays in the processor's cache.
const PART: usize = 64 * 1024;

/// Longest held text that [`RedactStream::relax`] lets go.
const HARMLESS: usize = 4;

/// Hides secrets in a stream of bytes.
///
/// What comes out does not depend on how the stream was divided: a secret that is split over
/// several pieces is found all the same. Text that cannot be part of a secret is handed on at once;
/// at most a few kilobytes are held back.
#[derive(Debug)]
pub struct RedactStream {
    /// Nothing where nothing is to be hidden.
    rules: Option<Arc<Rules>>,
    /// Some text that was handed on, for context, and what is held back.
    text: Vec<u8>,
    scan: Scan,
    /// Whether the last that was handed on was let go before it was certain.
    relaxed: bool,
}

impl RedactStream {
    pub(super) fn new(rules: Option<Arc<Rules>>) -> Self {
        Self {
            rules,
            text: Vec::new(),
            scan: Scan::default(),
            relaxed: false,
        }
    }

    /// Takes the next bytes and returns those that are certain.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::with_capacity(bytes.len());
        self.push_into(bytes, &mut out);
        out
    }

    /// Takes the next bytes and appends those that are certain.
    pub fn push_into(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let Some(rules) = &self.rules else {
            return out.extend_from_slice(bytes);
        };
        let before = out.len();
        for part in bytes.chunks(PART) {
            self.text.extend_from_slice(part);
            self.scan.run(rules, &self.text, false, out);
            forget(&mut self.text, &mut self.scan);
        }
        self.relaxed &= out.len() == before;
    }

    /// Returns what was held back: no more bytes will come. The stream can start anew after it.
    pub fn finish(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        self.finish_into(&mut out);
        out
    }

    /// Appends what was held back: no more bytes will come.
    pub fn finish_into(&mut self, out: &mut Vec<u8>) {
        if let Some(rules) = &self.rules {
            self.scan.run(rules, &self.text, true, out);
        }
        self.text.clear();
        self.scan = Scan::default();
        self.relaxed = false;
    }

    /// Returns what is held back if it is too short to tell anything, for the sake of a person who
    /// waits. What follows is still hidden if it turns out to be a secret.
    ///
    /// That happens once for each word: whoever prints a secret letter by letter shows no more of it.
    pub fn relax(&mut self) -> Vec<u8> {
        if self.relaxed || self.held() > HARMLESS || self.scan.pending.is_some() {
            return Vec::new();
        }
        let out = self.text[self.scan.sent..].to_vec();
        self.scan.sent = self.text.len();
        if !out.is_empty() {
            self.scan.mark = None;
            self.relaxed = true;
        }
        out
    }

    /// Tells how many bytes are held back.
    pub fn held(&self) -> usize {
        self.text.len() - self.scan.sent
    }
}

/// Drops text that no rule will look at again.
fn forget(text: &mut Vec<u8>, scan: &mut Scan) {
    let done = scan.sent.min(scan.next).saturating_sub(CONTEXT);
    if done > 0 {
        text.drain(..done);
        scan.moved(done);
    }
}

/// Where the work on a text stands.
#[derive(Default)]
pub(super) struct Scan {
    /// The next place to look at.
    next: usize,
    /// How much was handed on.
    sent: usize,
    /// What still belongs to the last secret.
    rest: Option<Rest>,
    /// A secret further on.
    pending: Option<Hit>,
    /// What stands at the end of what was handed on, if it is a mark.
    mark: Option<&'static str>,
    /// Whether anything was hidden.
    pub(super) hidden: bool,
}

impl std::fmt::Debug for Scan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scan")
            .field("next", &self.next)
            .field("sent", &self.sent)
            .finish_non_exhaustive()
    }
}

impl Scan {
    /// Works on a text as far as it is certain; `complete` says that nothing will follow it.
    pub(super) fn run(&mut self, rules: &Rules, bytes: &[u8], complete: bool, out: &mut Vec<u8>) {
        let view = View { bytes, complete };
        loop {
            if self.swallow(bytes) {
                return;
            }
            let place = rules.next(bytes, self.next);
            if let Some(hit) = self.due(place) {
                if !self.hide(rules, &view, hit, out) {
                    return;
                }
                continue;
            }
            let Some(place) = place else {
                return self.stop(rules, &view, out);
            };
            match rules.look(&view, place) {
                Found::No => self.next = place + 1,
                Found::Yes(hit) => {
                    self.next = place + 1;
                    self.await_hit(hit);
                }
                Found::More { hold } => {
                    let hold = self.earliest(rules, &view, place, hold);
                    self.send(bytes, hold, out);
                    self.next = place;
                    return;
                }
            }
        }
    }

    /// Hands on what is certain at the end of the text.
    fn stop(&mut self, rules: &Rules, view: &View<'_>, out: &mut Vec<u8>) {
        let end = view.bytes.len();
        if view.complete {
            self.send(view.bytes, end, out);
            self.next = end;
            return;
        }
        let tail = self.next.max(end.saturating_sub(2));
        let hold = rules.hold_tail(view, tail);
        self.send(view.bytes, hold, out);
        self.next = tail;
    }

    /// Skips what belongs to the last secret; tells whether that is all there is.
    fn swallow(&mut self, bytes: &[u8]) -> bool {
        let Some(rest) = &mut self.rest else {
            return false;
        };
        let text = &bytes[self.next..];
        let length = match rest {
            Rest::Nothing => Some(0),
            Rest::Run(class) => text.iter().position(|byte| !class.has(*byte)),
            Rest::Key(lines) => text.iter().position(|byte| !lines.takes(*byte)),
        };
        self.next += length.unwrap_or(text.len());
        self.sent = self.next;
        if length.is_some() {
            self.rest = None;
        }
        length.is_none()
    }

    /// Remembers a secret; of two, the one that starts first and reaches furthest.
    fn await_hit(&mut self, hit: Hit) {
        let better = self
            .pending
            .as_ref()
            .is_none_or(|other| (hit.from, other.to) < (other.from, hit.to));
        if better {
            self.pending = Some(hit);
        }
    }

    /// Takes the remembered secret if nothing can come before it.
    fn due(&mut self, place: Option<usize>) -> Option<Hit> {
        let from = self.pending.as_ref()?.from;
        if place.is_some_and(|place| place < from) {
            return None;
        }
        self.pending.take()
    }

    /// Puts a mark in the place of a secret; tells whether enough was known for that.
    fn hide(&mut self, rules: &Rules, view: &View<'_>, hit: Hit, out: &mut Vec<u8>) -> bool {
        let from = hit.from.max(self.sent);
        if rules.known.is_passed(view.part(hit.from, hit.to)) && hit.from < hit.to {
            return true;
        }
        let Some(to) = rules.known.reach(view, hit.from, hit.to) else {
            self.send(view.bytes, from, out);
            self.pending = Some(hit);
            return false;
        };
        self.send(view.bytes, from, out);
        if self.mark != Some(hit.kind) {
            out.extend_from_slice(b"[redacted: ");
            out.extend_from_slice(hit.kind.as_bytes());
            out.push(b']');
        }
        self.mark = Some(hit.kind);
        self.hidden = true;
        self.sent = to.max(self.sent);
        self.next = self.sent;
        self.rest = Some(hit.rest);
        true
    }

    /// Returns where the first secret may start, from `place` on, given what the rule there holds.
    fn earliest(&self, rules: &Rules, view: &View<'_>, place: usize, hold: usize) -> usize {
        let mut hold = self.pending.as_ref().map_or(hold, |hit| hold.min(hit.from));
        let mut from = place + 1;
        while let Some(place) = rules.next(view.bytes, from).filter(|place| *place < hold) {
            match rules.look(view, place) {
                Found::No => {}
                Found::More { hold: other } => hold = hold.min(other),
                Found::Yes(hit) => hold = hold.min(hit.from),
            }
            from = place + 1;
        }
        let tail = from.max(view.bytes.len().saturating_sub(2));
        hold.min(rules.hold_tail(view, tail))
    }

    /// Hands on the text before a place.
    fn send(&mut self, bytes: &[u8], to: usize, out: &mut Vec<u8>) {
        if to > self.sent {
            out.extend_from_slice(&bytes[self.sent..to]);
            self.sent = to;
            self.mark = None;
        }
    }

    /// Follows the text that moved to the front.
    fn moved(&mut self, by: usize) {
        self.next -= by;
        self.sent -= by;
        if let Some(hit) = &mut self.pending {
            hit.from -= by;
            hit.to -= by;
        }
    }
}
