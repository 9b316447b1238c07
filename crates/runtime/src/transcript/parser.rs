//! The ECMA-48 parser between decoded text and the screen.

use super::TextSink;
use super::screen::{Erase, Screen};

/// Bounds a CSI sequence; real ones are a few dozen characters long.
const CSI_CAP: usize = 256;

/// Bounds the intermediates of an escape sequence, which could otherwise swallow a row of blanks.
const INTERMEDIATES_CAP: usize = 4;

/// Bounds a string that ends at the end of the line anyway; clipboard contents are the longest.
const LINE_STRING_CAP: usize = 128 * 1024;

/// Bounds a device control string, which may hold line feeds: low, since text of an interrupted
/// program may follow it.
const DEVICE_STRING_CAP: usize = 4096;

#[derive(Debug, Clone, Copy, Default)]
enum State {
    #[default]
    Ground,
    /// After ESC, with the number of intermediates seen.
    Escape(usize),
    Csi(Csi),
    /// In the contents of OSC, DCS, SOS, PM or APC.
    String {
        left: usize,
        one_line: bool,
    },
}

/// Holds what a control sequence said so far.
#[derive(Debug, Clone, Copy, Default)]
struct Csi {
    len: usize,
    /// The first parameter, if given.
    first: Option<usize>,
    /// The first parameter has ended.
    more: bool,
    /// There was a private marker or an intermediate, so the final character has another meaning.
    foreign: bool,
}

/// Splits text into what is printed and what moves the cursor, and removes the rest.
#[derive(Debug, Clone, Default)]
pub(super) struct Parser {
    state: State,
}

impl Parser {
    /// Takes the next text and applies it to `screen`.
    pub(super) fn feed(&mut self, text: &str, screen: &mut Screen, sink: &mut dyn TextSink) {
        let mut rest = text;
        while let Some(char) = rest.chars().next() {
            let used = match self.state {
                State::Ground => {
                    let plain = find_control(rest.as_bytes());
                    if plain > 0 {
                        screen.text(&rest[..plain], sink);
                        plain
                    } else {
                        self.control(char, screen, sink);
                        char.len_utf8()
                    }
                }
                State::Escape(intermediates) => self.escape(intermediates, char, screen, sink),
                State::Csi(csi) => self.csi(csi, char, screen, sink),
                State::String { left, one_line } => self.string(left, one_line, rest),
            };
            rest = &rest[used..];
        }
    }

    fn control(&mut self, char: char, screen: &mut Screen, sink: &mut dyn TextSink) {
        match char {
            '\r' => screen.carriage_return(),
            '\x08' => screen.left(1),
            '\x1B' => self.state = State::Escape(0),
            '\u{80}'..='\u{9F}' => {
                let code = u32::from(char) - 0x40;
                self.simple_escape(char::from_u32(code).unwrap_or('\0'), screen, sink);
            }
            _ => {}
        }
    }

    /// Takes one character after ESC and returns how many bytes it used: none when the character
    /// does not belong to the sequence.
    fn escape(
        &mut self,
        intermediates: usize,
        char: char,
        screen: &mut Screen,
        sink: &mut dyn TextSink,
    ) -> usize {
        self.state = State::Ground;
        match char {
            ' '..='/' if intermediates < INTERMEDIATES_CAP => {
                self.state = State::Escape(intermediates + 1);
            }
            '0'..='~' if intermediates == 0 => self.simple_escape(char, screen, sink),
            '0'..='~' => {}
            _ => return 0,
        }
        char.len_utf8()
    }

    /// Applies ESC with the one character that follows it, or the C1 control it stands for.
    fn simple_escape(&mut self, char: char, screen: &mut Screen, sink: &mut dyn TextSink) {
        match char {
            '[' => self.state = State::Csi(Csi::default()),
            // `k` is no standard: screen and tmux set the window's title with it.
            ']' | 'X' | '^' | '_' | 'k' => {
                self.state = State::String {
                    left: LINE_STRING_CAP,
                    one_line: true,
                };
            }
            'P' => {
                self.state = State::String {
                    left: DEVICE_STRING_CAP,
                    one_line: false,
                };
            }
            'D' | 'E' => screen.text("\n", sink),
            'M' => screen.up(1),
            '7' => screen.save_cursor(),
            '8' => screen.restore_cursor(),
            _ => {}
        }
    }

    fn csi(
        &mut self,
        mut csi: Csi,
        char: char,
        screen: &mut Screen,
        sink: &mut dyn TextSink,
    ) -> usize {
        self.state = State::Ground;
        csi.len += 1;
        match char {
            '@'..='~' => {
                csi.apply(char, screen, sink);
                return 1;
            }
            _ if csi.len > CSI_CAP => return 0,
            '0'..='9' if csi.more => {}
            '0'..='9' => {
                let digit = char.to_digit(10).map_or(0, |digit| digit as usize);
                let first = csi.first.unwrap_or(0);
                csi.first = Some(first.saturating_mul(10).saturating_add(digit));
            }
            ':' | ';' => csi.more = true,
            ' '..='?' => csi.foreign = true,
            _ => return 0,
        }
        self.state = State::Csi(csi);
        1
    }

    /// Skips the contents of a string, up to its end or to what cannot be in it.
    fn string(&mut self, left: usize, one_line: bool, text: &str) -> usize {
        let mut skipped = 0;
        for (at, char) in text.char_indices() {
            let next = match char {
                '\x07' | '\x18' | '\x1A' | '\u{9C}' => Some((State::Ground, char.len_utf8())),
                '\x1B' => Some((State::Escape(0), 1)),
                '\u{80}'..='\u{9F}' => Some((State::Ground, 0)),
                '\n' | '\r' if one_line => Some((State::Ground, 0)),
                _ if skipped == left => Some((State::Ground, 0)),
                _ => None,
            };
            if let Some((state, used)) = next {
                self.state = state;
                return at + used;
            }
            skipped += 1;
        }
        self.state = State::String {
            left: left - skipped,
            one_line,
        };
        text.len()
    }
}

impl Csi {
    fn apply(self, end: char, screen: &mut Screen, sink: &mut dyn TextSink) {
        if self.foreign {
            return;
        }
        let count = self.first.unwrap_or(1).max(1);
        match (end, self.first.unwrap_or(0)) {
            ('A', _) => screen.up(count),
            ('B' | 'e', _) => screen.down(count),
            ('C' | 'a', _) => screen.right(count),
            ('D', _) => screen.left(count),
            ('E', _) => screen.next_row(count, sink),
            ('F', _) => {
                screen.up(count);
                screen.carriage_return();
            }
            ('G' | '`', _) => screen.column(count - 1),
            ('J', 0) => screen.erase_below(),
            ('K', 0) => screen.erase_in_row(Erase::Right),
            ('K', 1) => screen.erase_in_row(Erase::Left),
            ('K', 2) => screen.erase_in_row(Erase::All),
            ('X', _) => screen.blank(count),
            ('P', _) => screen.delete(count),
            ('@', _) => screen.insert(count),
            // With parameters, `s` sets margins.
            ('s', _) if self.first.is_none() && !self.more => screen.save_cursor(),
            ('u', _) => screen.restore_cursor(),
            _ => {}
        }
    }
}

/// Finds the first control character that is not a line feed or a tab, or else the end.
fn find_control(text: &[u8]) -> usize {
    let (blocks, rest) = text.as_chunks::<32>();
    let mut at = 0;
    for block in blocks {
        // No early exit: without one the compiler makes this a handful of vector instructions.
        if block.iter().fold(false, |hit, byte| hit | suspect(*byte))
            && let Some(found) = find_control_in(text, at, at + block.len())
        {
            return found;
        }
        at += block.len();
    }
    find_control_in(text, at, at + rest.len()).unwrap_or(text.len())
}

fn find_control_in(text: &[u8], from: usize, to: usize) -> Option<usize> {
    (from..to).find(|&at| {
        suspect(text[at]) && (text[at] != 0xC2 || text.get(at + 1).is_some_and(|next| *next < 0xA0))
    })
}

/// Tells whether a byte is a control character, or may start a C1 one.
fn suspect(byte: u8) -> bool {
    byte < 0x20 && byte != b'\n' && byte != b'\t' || byte == 0x7F || byte == 0xC2
}

#[cfg(test)]
#[path = "parser_tests.rs"]
mod tests;
