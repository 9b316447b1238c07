//! The command line door: words in, words out. Everything else is the runtime's.

mod args;
mod bench;
mod commands;
mod output;
mod password;
mod prompt;
mod raw_terminal;

use std::process::ExitCode;

fn main() -> ExitCode {
    commands::main()
}
