//! The program inside every place; see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    match exoshell_guest::run(std::env::args_os().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let text = format!("exoshell-guest: {error}\n");
            // Nobody listens when this fails too.
            let _ = rustix::io::write(rustix::stdio::stderr(), text.as_bytes());
            ExitCode::from(125)
        }
    }
}
