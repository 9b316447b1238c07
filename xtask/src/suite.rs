//! The one test command: what CI runs, in the same order.

use std::io::{BufRead as _, BufReader, IsTerminal as _};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::servers::Running;
use crate::tally::Tally;
use crate::{Result, cargo, packages};

/// How much of the suite to run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    /// Everything.
    Full,
    /// Without what rarely breaks alone: the docs.
    Fast,
}

/// One cargo command of the suite.
struct Step {
    title: &'static str,
    arguments: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
    extent: Extent,
}

/// What needs no servers, in its order; the tests come before the docs.
const STEPS: [Step; 3] = [
    Step {
        title: "format",
        arguments: &["fmt", "--all", "--check"],
        environment: &[],
        extent: Extent::Fast,
    },
    Step {
        title: "lints",
        arguments: &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--locked",
            "--",
            "-D",
            "warnings",
        ],
        environment: &[],
        extent: Extent::Fast,
    },
    Step {
        title: "docs",
        arguments: &["doc", "--workspace", "--no-deps", "--locked"],
        environment: &[("RUSTDOCFLAGS", "-D warnings")],
        extent: Extent::Full,
    },
];

/// The words of the command that runs all tests.
const TESTS: [&str; 4] = ["test", "--workspace", "--locked", "--no-fail-fast"];

/// Runs the suite and stops at the first failure.
pub(crate) fn run(extent: Extent) -> Result<()> {
    let start = Instant::now();
    timed("packages", packages::install_missing)?;
    timed("toolchain", add_missing_components)?;
    let (docs, checks): (Vec<&Step>, Vec<&Step>) =
        STEPS.iter().partition(|step| step.extent == Extent::Full);
    for step in checks {
        timed(step.title, || step.run())?;
    }
    let tally = with_servers()?;
    if extent == Extent::Full {
        for step in docs {
            timed(step.title, || step.run())?;
        }
    }
    println!("\n{tally}");
    println!(
        "\n== everything passed ({:.1} s)",
        start.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Runs the tests between the start and the end of the servers.
fn with_servers() -> Result<Tally> {
    let servers = timed("servers", Running::start)?;
    let tally = timed("tests", || test(&servers));
    let stopped = timed("servers stop", || servers.stop());
    let tally = tally?;
    stopped?;
    Ok(tally)
}

/// Runs all tests and counts those of the conformance suite.
fn test(servers: &Running) -> Result<Tally> {
    let shown = format!("cargo {}", TESTS.join(" "));
    println!("{shown}");
    let (reader, writer) = std::io::pipe()?;
    let color = if std::io::stdout().is_terminal() {
        "always"
    } else {
        "auto"
    };
    let environment = servers.environment().iter();
    let mut command = cargo();
    command
        .args(TESTS)
        .env("CARGO_TERM_COLOR", color)
        .envs(environment.map(|(name, value)| (name, value)))
        // Both into one pipe: cargo names the binary on stderr, the binary counts on stdout.
        .stdout(writer.try_clone()?)
        .stderr(writer);
    let mut child = command.spawn()?;
    // Our ends of the pipe go with it, or it would never end.
    drop(command);
    let mut tally = Tally::default();
    for line in BufReader::new(reader).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        println!("{line}");
        tally.see(&line);
    }
    let status = child.wait()?;
    if !status.success() {
        return Err(format!(
            "tests failed ({status}); to repeat it: cargo xtask servers start; \
             eval \"$(cargo xtask servers env)\"; {shown}"
        )
        .into());
    }
    tally.check()?;
    Ok(tally)
}

/// Puts a heading before a step and its time after it.
fn timed<T>(title: &str, step: impl FnOnce() -> Result<T>) -> Result<T> {
    println!("\n== {title}");
    let start = Instant::now();
    let result = step();
    let outcome = if result.is_ok() { "done" } else { "failed" };
    println!(
        "== {title}: {outcome} ({:.1} s)",
        start.elapsed().as_secs_f64()
    );
    result
}

impl Step {
    fn run(&self) -> Result<()> {
        println!("{}", self.shown());
        let status = cargo()
            .args(self.arguments)
            .envs(self.environment.iter().copied())
            .status()?;
        if status.success() {
            Ok(())
        } else {
            Err(format!(
                "{} failed ({status}); to repeat it: {}",
                self.title,
                self.shown()
            )
            .into())
        }
    }

    /// The command as one would type it.
    fn shown(&self) -> String {
        let variables = self
            .environment
            .iter()
            .map(|(name, value)| format!("{name}='{value}'"));
        let words = self.arguments.iter().map(ToString::to_string);
        variables
            .chain(["cargo".to_owned()])
            .chain(words)
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// Rustup's minimal profile comes without these two.
fn add_missing_components() -> Result<()> {
    let missing: Vec<&str> = [("fmt", "rustfmt"), ("clippy", "clippy")]
        .into_iter()
        .filter(|(subcommand, _)| {
            let version = cargo()
                .args([subcommand, "--version"])
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            !version.is_ok_and(|status| status.success())
        })
        .map(|(_, component)| component)
        .collect();
    if missing.is_empty() {
        println!("rustfmt and clippy are there");
        return Ok(());
    }
    let shown = format!("rustup component add {}", missing.join(" "));
    println!("{shown}");
    match Command::new("rustup")
        .args(["component", "add"])
        .args(missing)
        .status()
    {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{shown}` failed ({status})").into()),
        Err(error) => Err(format!("cannot run `{shown}`: {error}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_can_be_repeated_by_what_it_prints() {
        let shown = STEPS.map(|step| step.shown());
        assert_eq!(
            shown,
            [
                "cargo fmt --all --check",
                "cargo clippy --workspace --all-targets --locked -- -D warnings",
                "RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --locked",
            ]
        );
    }
}
