//! The terminal this program was started on, in raw mode while it stands in for another.

use exoshell_runtime::{DEFAULT_TERMINAL, TerminalSize};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};

/// Our terminal; in raw mode while held, if there is one.
#[derive(Debug)]
pub(crate) struct RawTerminal {
    before: Option<Termios>,
}

impl RawTerminal {
    /// Takes the terminal on stdin, if stdin is one: keys go through as they are pressed.
    pub(crate) fn enter_if_terminal() -> Self {
        let stdin = rustix::stdio::stdin();
        let Ok(before) = tcgetattr(stdin) else {
            return Self { before: None };
        };
        let mut raw = before.clone();
        raw.make_raw();
        match tcsetattr(stdin, OptionalActions::Flush, &raw) {
            Ok(()) => Self {
                before: Some(before),
            },
            Err(_) => Self { before: None },
        }
    }

    /// Tells whether there is a terminal and it is in raw mode.
    pub(crate) const fn is_raw(&self) -> bool {
        self.before.is_some()
    }

    /// Returns the terminal's size.
    #[expect(
        clippy::unused_self,
        reason = "the size is only of interest while it is held"
    )]
    pub(crate) fn size(&self) -> TerminalSize {
        Self::current_size()
    }

    /// Returns the size of the terminal on stdout or stdin, or the usual one.
    pub(crate) fn current_size() -> TerminalSize {
        let size =
            tcgetwinsize(rustix::stdio::stdout()).or_else(|_| tcgetwinsize(rustix::stdio::stdin()));
        match size {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => TerminalSize {
                cols: size.ws_col,
                rows: size.ws_row,
            },
            _ => DEFAULT_TERMINAL,
        }
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // A terminal that is gone needs no restoring.
            let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Flush, before);
        }
    }
}
