//! Writing to the terminal: data to stdout, talk to stderr.

use std::io::{self, IsTerminal as _, Write};

use exoshell_runtime::{ErrorKind, RuntimeError};
use serde::Serialize;
use serde_json::json;

/// Our own failure.
pub(crate) const OWN_FAILURE: u8 = 125;

/// The guard said no.
pub(crate) const REFUSED: u8 = 77;

/// Writes data. A reader that went away is no error of ours: the text was delivered as far as
/// anyone wanted it.
pub(crate) fn data(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

/// Writes a line of talk.
pub(crate) fn talk(text: &str) {
    // Without a stderr there is nobody to talk to.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Prints a value as JSON.
pub(crate) fn json<T: Serialize>(value: &T) -> io::Result<()> {
    let mut text = serde_json::to_vec_pretty(value)?;
    text.push(b'\n');
    data(&text)
}

/// Tells whether colour is welcome on stderr.
pub(crate) fn colour() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) && io::stderr().is_terminal()
}

/// Reports an error: what, why and what to do next. Returns the exit code of its kind.
pub(crate) fn error(error: &RuntimeError, as_json: bool) -> u8 {
    let mut text = error.to_string();
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    if as_json {
        let value = json!({
            "error": text,
            "error_kind": error.kind(),
            "error_reason": error.reason(),
            "hint": error.hint(),
        });
        let _ = json(&value);
        return error.exit_code();
    }
    let (red, plain) = if colour() {
        ("\x1b[31m", "\x1b[0m")
    } else {
        ("", "")
    };
    talk(&format!("exoshell: {red}error{plain}: {text}"));
    if let Some(hint) = error.hint() {
        talk(&format!("  hint: {hint}"));
    }
    error.exit_code()
}

/// Returns the exit code of an error's kind.
pub(crate) const fn code(kind: ErrorKind) -> u8 {
    match kind {
        ErrorKind::Denied => REFUSED,
        _ => OWN_FAILURE,
    }
}
