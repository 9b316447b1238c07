//! Reading a shell's state as the shell itself prints it.
//!
//! The shell writes sections with a NUL behind each, which no value can contain, and an end
//! mark; a capture without the mark was cut and is not used at all.

use std::collections::BTreeSet;

use super::quote::{read_word, skip_value};
use super::state::{Function, ShellState, Value, Variable, is_carried, is_kept, is_kept_function};

/// The builtins that print a bash's state to their stdout. Their stdin is what `declare -F`
/// printed, so that each function is printed by itself: bodies cannot be told apart otherwise.
pub(crate) const BASH_CAPTURE: &str = concat!(
    r"\builtin declare -px; \builtin printf '\0'; ",
    r"while IFS= \builtin read -r BASH_EXECUTION_STRING; do ",
    r#"\builtin printf 'F%s\n' "$BASH_EXECUTION_STRING"; "#,
    r#"\builtin declare -f -- "${BASH_EXECUTION_STRING##* }"; "#,
    r"\builtin printf '\0'; done; ",
    r"\builtin alias -p; \builtin printf '\0'; ",
    r#"\builtin printf '%s\0%s\0' "$BASHOPTS" "$SHELLOPTS"; "#,
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
    let aliases = loop {
        let section = sections.next()?;
        match section.strip_prefix(b"F") {
            Some(function) => parse_function(function, &mut state)?,
            None => break section,
        }
    };
    parse_aliases(aliases, &mut state)?;
    parse_switches(sections.next()?, &mut state.shopts);
    parse_switches(sections.next()?, &mut state.options);
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
        input = input.strip_prefix(b"\n")?;
        if !is_kept(name) {
            continue;
        }
        let value = match value {
            Some(raw) if raw.first() == Some(&b'(') => Value::Array(raw.to_vec()),
            Some(mut raw) => Value::Text(read_word(&mut raw)?),
            None => Value::Unset,
        };
        let variable = match value {
            Value::Text(text) if flags == b"x" => Variable::Text(text),
            value => Variable::Declared {
                flags: flags.to_vec(),
                value,
            },
        };
        state.variables.insert(name.to_vec(), variable);
    }
    Some(())
}

/// Reads one function: its line of `declare -F`, then its definition, and for an exported one
/// that line again.
fn parse_function(section: &[u8], state: &mut ShellState) -> Option<()> {
    let end = section.iter().position(|b| *b == b'\n')?;
    let (line, definition) = section.split_at_checked(end)?;
    let flags_and_name = line.strip_prefix(b"declare -")?;
    let space = flags_and_name.iter().position(|b| *b == b' ')?;
    let (flags, name) = flags_and_name.split_at_checked(space)?;
    let name = name.get(1..)?;
    let mut text = definition.get(1..)?;
    text = text.strip_suffix(b"\n").unwrap_or(text);
    if let Some(shorter) = text.strip_suffix(line) {
        text = shorter.strip_suffix(b"\n")?;
    }
    if !text.starts_with(&[name, b" ()"].concat()) {
        return None;
    }
    if is_kept_function(name) {
        let function = Function {
            text: text.to_vec(),
            exported: flags.contains(&b'x'),
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

/// Reads the names of what is switched on.
fn parse_switches(input: &[u8], into: &mut BTreeSet<Vec<u8>>) {
    let names = input.split(|b| *b == b':').filter(|name| is_carried(name));
    into.extend(names.filter(|name| !name.is_empty()).map(<[u8]>::to_vec));
}

#[cfg(test)]
#[path = "capture_tests.rs"]
mod tests;
