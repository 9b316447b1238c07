//! What an exit code that looks like a failure really means.

/// Explains a benign exit code of the command that decided it: the last of the last pipeline.
pub(crate) fn exit_hint(command: &str, code: i32) -> Option<&'static str> {
    let program = last_program(command)?;
    match (program, code) {
        ("grep" | "egrep" | "fgrep" | "rg" | "ag" | "ack", 1) => {
            Some("exit code 1 means that nothing matched, which is no error")
        }
        ("diff" | "colordiff" | "cmp", 1) => {
            Some("exit code 1 means that the files differ, which is no error")
        }
        ("test" | "[", 1) => Some("exit code 1 means that the condition is false"),
        ("find", 1) => {
            Some("exit code 1 means that some places could not be read; the rest is above")
        }
        ("curl", 6) => Some("curl could not resolve the host"),
        ("curl", 7) => Some("curl could not connect to the host"),
        ("curl", 22) => Some("the server answered with an HTTP error"),
        ("curl", 28) => Some("curl timed out"),
        _ => None,
    }
}

/// Finds the program of the last simple command by a plain reading of the text. Quoted operators
/// can mislead it; a hint is all that depends on it.
fn last_program(command: &str) -> Option<&str> {
    let line = command
        .lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with('#'))?;
    let last = line
        .rsplit(['|', ';', '&'])
        .find(|part| !part.trim().is_empty())?;
    let word = last
        .split_whitespace()
        .find(|word| !word.contains('=') && !matches!(*word, "sudo" | "command" | "!" | "time"))?;
    word.rsplit('/').next()
}

#[cfg(test)]
#[path = "exit_hint_tests.rs"]
mod tests;
