//! Real servers for tests: an sshd per test, the container engines that `cargo xtask test` starts,
//! networks that lose packets, and parts of this machine with processes of their own.
//!
//! Nothing here is skipped: what is missing is a panic that says how to get it.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "only tests use it, and a test that cannot go on fails"
)]

mod engine;
mod machine;
mod net;
mod room;
mod sshd;

pub use engine::{Container, Engine, image};
pub use machine::Process;
pub use net::Net;
pub use room::Room;
pub use sshd::{Jump, Sshd, SshdOptions};

use std::env;
use std::time::{Duration, Instant};

/// Returns a variable that `cargo xtask test` sets for tests that need a server.
#[track_caller]
pub fn wanted(name: &str) -> String {
    let name = format!("EXOSHELL_TEST_{name}");
    env::var(&name).unwrap_or_else(|_missing| {
        panic!(
            "`{name}` is not set, so there is no server for this test: start it with \
             `cargo xtask servers start` and `eval \"$(cargo xtask servers env)\"`, or run \
             `cargo xtask test`"
        )
    })
}

/// Looks at a condition until it holds, and tells whether it did in time.
pub(crate) fn wait_until(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        if holds() {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
