//! Running commands of this machine.

use std::io;
use std::process::Stdio;
use std::time::Duration;

use exoshell_place::bootstrap::command_line;
use exoshell_place::{PlaceError, SUDO_PASSWORD, Trouble};
use tokio::process::Command;

use crate::template::GUEST;

/// How long the commands that put a file or remove a place may take.
const COMMAND_LIMIT: Duration = Duration::from_secs(300);

/// Reports a command that cannot even be started.
pub(crate) fn no_program(words: &[String], error: &io::Error) -> PlaceError {
    let program = words.first().map_or(GUEST, String::as_str);
    PlaceError::backend(
        Trouble::NoProgram,
        format!("`{program}` cannot be run: {error}"),
        "install it, or write its whole path into the template",
    )
}

/// Runs a command of this machine and expects it to succeed.
pub(crate) async fn run_to_end(words: &[String]) -> Result<(), PlaceError> {
    let [program, arguments @ ..] = words else {
        return Ok(());
    };
    let child = Command::new(program)
        .args(arguments)
        .env_remove(SUDO_PASSWORD)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| no_program(words, &error))?;
    let line = command_line(words);
    let ended = match tokio::time::timeout(COMMAND_LIMIT, child.wait_with_output()).await {
        Ok(Ok(ended)) => ended,
        Ok(Err(error)) => return Err(no_program(words, &error)),
        Err(_) => {
            return Err(PlaceError::backend(
                Trouble::TooSlow,
                format!("`{line}` took over {} s", COMMAND_LIMIT.as_secs()),
                "run it by hand and see what it waits for",
            ));
        }
    };
    if ended.status.success() {
        return Ok(());
    }
    let said: String = String::from_utf8_lossy(&ended.stderr)
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(500)
        .collect();
    Err(PlaceError::backend(
        Trouble::DoesNotStart,
        format!("`{line}` failed ({}): `{}`", ended.status, said.trim()),
        "run it by hand and mend it; it must succeed",
    ))
}
