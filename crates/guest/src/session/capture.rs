//! Reading a shell's state as the shell itself prints it.
//!
//! The shell writes sections with a NUL behind each, which no value can contain, and an end
//! mark; a capture without the mark was cut and is not used at all.

use super::quote::{read_word, skip_value};
use super::state::{Function, ShellState, Variable, is_carried, is_kept};

/// The builtins that print a bash's state, to be run with the state descriptor as stdout.
pub(crate) const BASH_CAPTURE: &str = concat!(
    r"\builtin declare -px; \builtin printf '\0'; ",
    r"\builtin declare -F; \builtin printf '\0'; ",
    r"\builtin declare -f; \builtin printf '\0'; ",
    r"\builtin alias -p; \builtin printf '\0'; ",
    r"\builtin shopt -p; \builtin printf '\0'; ",
    r"\builtin set +o; \builtin printf '\0'; ",
    r"\builtin umask; \builtin printf '\0'; ",
    r"\builtin pwd; \builtin printf '\0END\0'",
);

/// The same for a POSIX `sh`, which can print less of it.
pub(crate) const SH_CAPTURE: &str =
    r"export -p; printf '\0'; umask; printf '\0'; pwd; printf '\0END\0'";

const END: &[u8] = b"END";

/// Reads what [`BASH_CAPTURE`] printed; `None` when it is cut or not understood.
pub(crate) fn parse_bash(bytes: &[u8]) -> Option<ShellState> {
    let mut sections = bytes.split(|byte| *byte == 0);
    let mut state = ShellState::default();
    parse_declarations(sections.next()?, &mut state)?;
    let names = sections.next()?;
    parse_functions(names, sections.next()?, &mut state)?;
    parse_aliases(sections.next()?, &mut state)?;
    parse_switches(
        sections.next()?,
        b"shopt -s ",
        b"shopt -u ",
        &mut state.shopts,
    );
    parse_switches(sections.next()?, b"set -o ", b"set +o ", &mut state.options);
    parse_place(sections.next()?, sections.next()?, &mut state)?;
    (sections.next()? == END).then_some(state)
}

/// Reads what [`SH_CAPTURE`] printed.
pub(crate) fn parse_sh(bytes: &[u8]) -> Option<ShellState> {
    let mut sections = bytes.split(|byte| *byte == 0);
    let mut state = ShellState::default();
    parse_declarations(sections.next()?, &mut state)?;
    parse_place(sections.next()?, sections.next()?, &mut state)?;
    (sections.next()? == END).then_some(state)
}

fn parse_place(umask: &[u8], cwd: &[u8], state: &mut ShellState) -> Option<()> {
    let umask = std::str::from_utf8(umask).ok()?.trim();
    state.umask = u32::from_str_radix(umask, 8).ok()?;
    state.cwd = cwd.strip_suffix(b"\n")?.to_vec();
    state.cwd.starts_with(b"/").then_some(())
}

/// Reads `declare -x NAME="value"` and `export NAME='value'` statements.
fn parse_declarations(mut input: &[u8], state: &mut ShellState) -> Option<()> {
    while !input.is_empty() {
        let statement = input;
        let flags = if let Some(rest) = input.strip_prefix(b"declare -") {
            let end = rest.iter().position(|b| *b == b' ')?;
            input = rest.get(end + 1..)?;
            rest.get(..end)?
        } else {
            input = input.strip_prefix(b"export ")?;
            b"x"
        };
        let end = input.iter().position(|b| matches!(b, b'=' | b'\n'))?;
        let (name, rest) = input.split_at_checked(end)?;
        input = rest;
        let value = if input.first() == Some(&b'=') {
            input = input.get(1..)?;
            let raw = skip_value(&mut input)?;
            Some(raw)
        } else {
            None
        };
        let text = statement.get(..statement.len() - input.len())?;
        input = input.strip_prefix(b"\n")?;
        if !is_kept(name) {
            continue;
        }
        let variable = match value {
            Some(mut raw) if flags == b"x" && raw.first() != Some(&b'(') => {
                Variable::Text(read_word(&mut raw)?)
            }
            _ => Variable::Statement(text.to_vec()),
        };
        state.variables.insert(name.to_vec(), variable);
    }
    Some(())
}

/// Splits the function bodies by the names listed before them, in the same order: a body ends
/// with a brace at the start of a line, right before the next name's header or the end.
fn parse_functions(names: &[u8], bodies: &[u8], state: &mut ShellState) -> Option<()> {
    let listed: Vec<(&[u8], bool)> = names
        .split(|b| *b == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| {
            let rest = line.strip_prefix(b"declare -")?;
            let space = rest.iter().position(|b| *b == b' ')?;
            let exported = rest.get(..space)?.contains(&b'x');
            Some((rest.get(space + 1..)?, exported))
        })
        .collect::<Option<_>>()?;
    let mut rest = bodies;
    for (index, (name, exported)) in listed.iter().enumerate() {
        let header = [name, &b" ()"[..]].concat();
        if !rest.starts_with(&header) {
            return None;
        }
        let end = match listed.get(index + 1) {
            Some((next, _)) => {
                let mark = [&b"\n}\n"[..], next, b" ()"].concat();
                rest.windows(mark.len()).position(|w| w == mark)? + 3
            }
            None => rest.len(),
        };
        let (text, after) = rest.split_at_checked(end)?;
        rest = after;
        let text = text.strip_suffix(b"\n").unwrap_or(text);
        let function = Function {
            text: text.to_vec(),
            exported: *exported,
        };
        state.functions.insert(name.to_vec(), function);
    }
    Some(())
}

fn parse_aliases(mut input: &[u8], state: &mut ShellState) -> Option<()> {
    while !input.is_empty() {
        let statement = input;
        input = input.strip_prefix(b"alias ")?;
        input = input.strip_prefix(b"-- ").unwrap_or(input);
        let end = input.iter().position(|b| *b == b'=')?;
        let (name, rest) = input.split_at_checked(end)?;
        input = rest.get(1..)?;
        read_word(&mut input)?;
        let text = statement.get(..statement.len() - input.len())?;
        input = input.strip_prefix(b"\n")?;
        state.aliases.insert(name.to_vec(), text.to_vec());
    }
    Some(())
}

fn parse_switches(
    input: &[u8],
    on: &[u8],
    off: &[u8],
    into: &mut std::collections::BTreeMap<Vec<u8>, bool>,
) {
    for line in input.split(|b| *b == b'\n') {
        let (name, value) = match (line.strip_prefix(on), line.strip_prefix(off)) {
            (Some(name), _) => (name, true),
            (_, Some(name)) => (name, false),
            _ => continue,
        };
        if is_carried(name) {
            into.insert(name.to_vec(), value);
        }
    }
}

#[cfg(test)]
#[path = "capture_tests.rs"]
mod tests;
