//! Private keys: everything between `BEGIN … PRIVATE KEY` and its end.

use super::class::{BASE64, Class};
use super::found::{Found, Hit, Rest, View};

pub(super) const BEGIN: &[u8] = b"-----BEGIN ";
pub(super) const PUTTY: &[u8] = b"Private-Lines: ";

const LABEL: Class = Class::of(b"A-Z0-9 ");

/// Headers of keys with a passphrase and of PGP blocks.
const HEADERS: &[&[u8]] = &[
    b"Proc-Type:",
    b"DEK-Info:",
    b"Comment:",
    b"Version:",
    b"Hash:",
];

/// Longest number that may stand before a line, as `cat -n` writes it.
const NUMBER: usize = 7;

/// Looks for the start of a private key.
pub(super) fn find(view: &View<'_>, place: usize) -> Found {
    match view.literal(place, BEGIN) {
        Some(true) => {}
        Some(false) => return Found::No,
        // The line itself says nothing: it may go.
        None => {
            return Found::More {
                hold: view.bytes.len(),
            };
        }
    }
    let label = place + BEGIN.len();
    let run = view.run(label, LABEL, 48);
    if run.open {
        return Found::More {
            hold: view.bytes.len(),
        };
    }
    let words = view.part(label, run.end);
    if !words.windows(11).any(|window| window == b"PRIVATE KEY") {
        return Found::No;
    }
    match view.literal(run.end, b"-----") {
        Some(true) => after(view, run.end + 5),
        Some(false) => Found::No,
        None => Found::More {
            hold: view.bytes.len(),
        },
    }
}

/// Looks for the private lines of a `PuTTY` key.
pub(super) fn find_putty(view: &View<'_>, place: usize) -> Found {
    match view.literal(place, PUTTY) {
        Some(true) => {}
        Some(false) => return Found::No,
        None => {
            return Found::More {
                hold: view.bytes.len(),
            };
        }
    }
    let run = view.run(place + PUTTY.len(), Class::of(b"0-9"), 6);
    if run.open {
        return Found::More {
            hold: view.bytes.len(),
        };
    }
    body(run.end)
}

/// Tells a key from a program that mentions the line.
fn after(view: &View<'_>, place: usize) -> Found {
    match view.at(place) {
        Some(byte) if BASE64.has(byte) || b"\n\r\\ \t".contains(&byte) => body(place),
        None if !view.complete => Found::More {
            hold: view.bytes.len(),
        },
        _ => Found::No,
    }
}

fn body(from: usize) -> Found {
    Found::Yes(Hit {
        from,
        to: from,
        kind: "private key",
        rest: Rest::Key(Lines::default()),
    })
}

/// Goes through the lines of a key, byte by byte.
#[derive(Debug, Clone, Default)]
pub(super) struct Lines {
    /// The line so far, as much of it as decides what it is.
    line: Vec<u8>,
    /// What is being read.
    state: State,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    /// Base64, or what may stand before it on a line.
    #[default]
    Body,
    /// A header line, up to its end.
    Header,
    /// The last line: dashes, words, dashes.
    End,
}

impl Lines {
    /// Takes a byte; tells whether it belongs to the key.
    pub(super) fn takes(&mut self, byte: u8) -> bool {
        if byte == b'\n' {
            // The end of the last line is not part of the key.
            let goes_on = self.state != State::End;
            self.line.clear();
            self.state = State::Body;
            return goes_on;
        }
        if self.line.len() < 64 {
            self.line.push(byte);
        }
        match self.state {
            State::Header => true,
            State::End => self.in_end(byte),
            State::Body => self.in_body(byte),
        }
    }

    fn in_body(&mut self, byte: u8) -> bool {
        if BASE64.has(byte) || matches!(byte, b'\\' | b'\r' | b'\t') {
            return true;
        }
        let before = &self.line[..self.line.len().saturating_sub(1)];
        match byte {
            // `Proc-Type`, `DEK-Info`.
            b'-' if before.ends_with(b"Proc") || before.ends_with(b"DEK") => true,
            b'-' => {
                self.line.clear();
                self.line.push(byte);
                self.state = State::End;
                true
            }
            b':' if HEADERS.iter().any(|header| self.line.ends_with(header)) => {
                self.state = State::Header;
                true
            }
            // Indents, line numbers and quotation marks.
            b' ' | b'|' | b':' | b'>' => {
                let number = before
                    .iter()
                    .all(|byte| byte.is_ascii_digit() || b" \t|:>".contains(byte));
                number && before.len() <= 2 * NUMBER
            }
            _ => false,
        }
    }

    /// Reads `-----END … PRIVATE KEY-----`.
    fn in_end(&self, byte: u8) -> bool {
        let dashes = self.line.iter().take_while(|byte| **byte == b'-').count();
        let closed =
            self.line.len() > 5 + dashes && self.line[..self.line.len() - 1].ends_with(b"-----");
        !closed && (LABEL.has(byte) || byte == b'-')
    }
}
