//! Writing to the terminal: data to stdout, talk to stderr.

use std::io::{self, IsTerminal as _, Write};
use std::sync::OnceLock;

use exoshell_runtime::config::Environment;
use exoshell_runtime::redact::{Keeper, Redactor, Secrets};
use exoshell_runtime::{ErrorKind, RuntimeError};
use serde::Serialize;
use serde_json::json;

/// Our own failure.
pub(crate) const OWN_FAILURE: u8 = 125;

/// The guard said no.
pub(crate) const REFUSED: u8 = 77;

/// What knows the secrets, once the configuration is read.
static KEEPER: OnceLock<Keeper> = OnceLock::new();

/// Keeps these secrets out of what is said from now on.
pub(crate) fn hide_secrets(keeper: Keeper) {
    // A program that makes a second runtime makes it from the same configuration.
    let _ = KEEPER.set(keeper);
}

/// Returns what hides secrets in talk; before the configuration is read, those of the environment.
fn redactor() -> Redactor {
    if let Some(keeper) = KEEPER.get() {
        return keeper.redactor();
    }
    let environment = Environment::from_process();
    let variables = environment
        .iter()
        .map(|(name, value)| (name.as_encoded_bytes(), value.as_encoded_bytes()));
    Redactor::new(&Secrets::new().variables(variables))
}

/// Returns a text with its secrets hidden.
pub(crate) fn without_secrets(text: &str) -> String {
    redactor().redact(text).into_owned()
}

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
    let _ = writeln!(io::stderr().lock(), "{}", without_secrets(text));
}

/// Prints text for people, with its secrets hidden.
pub(crate) fn text(text: &str) -> io::Result<()> {
    data(without_secrets(text).as_bytes())
}

/// Prints a value as JSON, with its secrets hidden.
pub(crate) fn json<T: Serialize>(value: &T) -> io::Result<()> {
    let mut value = serde_json::to_value(value)?;
    exoshell_runtime::redact::clean_value(&redactor(), &mut value);
    let mut text = serde_json::to_vec_pretty(&value)?;
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
            "error": without_secrets(&text),
            "error_kind": error.kind(),
            "error_reason": error.reason(),
            "hint": error.hint().map(|hint| without_secrets(&hint)),
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
