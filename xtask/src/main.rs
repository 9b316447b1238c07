//! The project's own commands: `cargo xtask help`.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program for people at a terminal"
)]

mod deps;
mod packages;
mod servers;
mod suite;
mod tally;

use std::env;
use std::error::Error;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Any failure; its text is the last line a person sees.
type Result<T> = std::result::Result<T, Box<dyn Error>>;

const HELP: &str = "\
The project's own commands.

  cargo xtask test          everything CI checks: packages, format, lints, tests, docs
  cargo xtask test --fast   the same without the docs
  cargo xtask servers start the servers of the tests, to stay until they are stopped
  cargo xtask servers stop  stops them; their images stay
  cargo xtask servers env   prints where they are, for a shell to `eval`
  cargo xtask check-deps    which crate may use which (also one of the tests)
  cargo xtask help          this text
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let result = match *arguments.as_slice() {
        ["test"] => suite::run(suite::Extent::Full),
        ["test", "--fast"] => suite::run(suite::Extent::Fast),
        ["check-deps"] => deps::run(),
        ["servers", "start"] => packages::install_missing().and_then(|()| servers::start()),
        ["servers", "stop"] => servers::stop(),
        ["servers", "env"] => servers::print_environment(),
        // Not for people: it stops the servers when the test command ends without doing so.
        ["servers", "watch"] => servers::watch(),
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        _ => {
            eprint!("xtask: cannot do `{}`\n\n{HELP}", arguments.join(" "));
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\nxtask: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Returns the cargo that runs us, to be started in the root of the workspace.
fn cargo() -> Command {
    let program = env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(program);
    command.current_dir(workspace_root());
    command
}

fn workspace_root() -> &'static Path {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own)
}
