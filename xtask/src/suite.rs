//! The one test command: what CI runs, in the same order.

use std::process::{Command, Stdio};
use std::time::Instant;

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

const STEPS: [Step; 4] = [
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
        title: "tests",
        arguments: &["test", "--workspace", "--locked"],
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

/// Runs the suite and stops at the first failure.
pub(crate) fn run(extent: Extent) -> Result<()> {
    let start = Instant::now();
    timed("packages", packages::install_missing)?;
    timed("toolchain", add_missing_components)?;
    for step in &STEPS {
        if extent == Extent::Full || step.extent == Extent::Fast {
            timed(step.title, || step.run())?;
        }
    }
    println!(
        "\n== everything passed ({:.1} s)",
        start.elapsed().as_secs_f64()
    );
    Ok(())
}

/// Puts a heading before a step and its time after it.
fn timed(title: &str, step: impl FnOnce() -> Result<()>) -> Result<()> {
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
                "cargo test --workspace --locked",
                "RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --locked",
            ]
        );
    }
}
