//! A world per test: its own home folder, user and work directory, and the real binary.

mod answer;
mod background;
mod embedded;
mod person;
mod processes;
mod program;
mod world;

pub(crate) use answer::Answer;
pub(crate) use background::Host;
pub(crate) use embedded::{block_on, runtime};
pub(crate) use person::{Person, processes_with};
pub(crate) use processes::{Process, alive, children_named, descriptors, processes_naming};
pub(crate) use program::{Program, Ran};
pub(crate) use world::{EXOSHELL, PATH, World};

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How long anything may take that should be quick, on a loaded machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until a condition holds; panics when it does not in time.
#[track_caller]
pub(crate) fn wait_until(limit: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + limit;
    while !holds() {
        assert!(Instant::now() < deadline, "not within {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns an argument of `sleep` that no other process on this machine has.
pub(crate) fn unique_sleep() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("600.{}{number:04}", std::process::id())
}

/// Writes bytes as the hexadecimal digits that [`HEX`] prints.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digits: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.concat()
}

/// A shell filter that prints its stdin as hexadecimal digits.
pub(crate) const HEX: &str = "od -An -v -tx1 | tr -d ' \\n'";

/// Quotes a text for any shell.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
