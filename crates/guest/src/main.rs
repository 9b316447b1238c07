//! The program inside every place; see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    let code = exoshell_guest::run(std::env::args_os()).unwrap_or_else(|error| {
        let text = format!("exoshell-guest: {error}\n");
        // Nobody listens when this fails too.
        let _ = rustix::io::write(rustix::stdio::stderr(), text.as_bytes());
        error.exit_code()
    });
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}
