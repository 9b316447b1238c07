//! Measures how long a record of the audit takes.
//!
//! ```sh
//! cargo run --release -p exoshell-runtime --example audit
//! ```
#![expect(clippy::print_stdout, reason = "a report for people")]

use std::time::Instant;

use exoshell_runtime::audit::{Attempt, AttemptKind, Audit, Ended, Limits, Outcome};
use exoshell_runtime::redact::Redactor;

const ATTEMPTS: u32 = 20_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let home = tempfile::tempdir()?;
    let audit = Audit::new(home.path(), Limits::default());
    let text = "cd /srv/app && cargo test --workspace 2>&1 | tail -n 40";
    let start = Instant::now();
    for _ in 0..ATTEMPTS {
        let attempt = Attempt::new("task", "local", "local", AttemptKind::Command, text);
        audit
            .start(&attempt, Redactor::default())?
            .end(&Outcome::new(Ended::Done))?;
    }
    println!("one record: {:?}", start.elapsed() / (2 * ATTEMPTS));
    let start = Instant::now();
    let report = audit.verify()?;
    println!(
        "verified {} records in {:?}, intact: {}",
        report.records,
        start.elapsed(),
        report.intact
    );
    Ok(())
}
