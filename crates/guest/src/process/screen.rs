//! What a person would see on a process's terminal.

use std::num::NonZeroU16;
use std::sync::{Mutex, PoisonError};

use exoshell_wire::{RawBytes, Screen, TerminalSize};

/// Sizes of zero are refused before they come here.
fn sized(value: u16) -> NonZeroU16 {
    NonZeroU16::new(value).unwrap_or(NonZeroU16::MIN)
}

/// A terminal emulator behind a process.
pub(crate) struct Emulator(Mutex<vt100::Parser>);

impl std::fmt::Debug for Emulator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Emulator")
    }
}

impl Emulator {
    /// Makes an empty screen.
    pub(crate) fn new(size: TerminalSize) -> Self {
        Self(Mutex::new(vt100::Parser::new(
            sized(size.rows),
            sized(size.cols),
            0,
        )))
    }

    /// Draws what the process wrote.
    pub(crate) fn push(&self, bytes: &[u8]) {
        self.lock().process(bytes);
    }

    /// Changes the size.
    pub(crate) fn resize(&self, size: TerminalSize) {
        self.lock()
            .screen_mut()
            .set_size(sized(size.rows), sized(size.cols));
    }

    /// Returns what it shows.
    pub(crate) fn screen(&self) -> Screen {
        let parser = self.lock();
        let screen = parser.screen();
        let (_, cols) = screen.size();
        let (cursor_row, cursor_col) = screen.cursor_position();
        let mut rows: Vec<String> = screen
            .rows(0, cols.get())
            .map(|row| row.trim_end().to_owned())
            .collect();
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        Screen {
            rows,
            cursor_row,
            cursor_col,
            alternate: screen.alternate_screen(),
            offset: 0,
            drawn: RawBytes(screen.state_formatted().into_bytes()),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, vt100::Parser> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
