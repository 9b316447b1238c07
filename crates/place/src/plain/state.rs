//! What a session keeps between two commands.

use std::collections::BTreeMap;

use super::script::is_name;

type Variables = BTreeMap<Vec<u8>, Vec<u8>>;

/// Variables that belong to a shell and not to the session.
const NEVER_KEPT: &[&[u8]] = &[
    b"_",
    b"PWD",
    b"SHLVL",
    b"SHELLOPTS",
    b"BASHOPTS",
    b"BASH_EXECUTION_STRING",
    b"PPID",
    b"UID",
    b"EUID",
    b"exo",
    b"exo_gone",
];

/// Where a command starts: a directory and what differs from the place's own environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Start {
    /// The directory; `None` is the place's own.
    pub(super) cwd: Option<Vec<u8>>,
    /// Variables to set, and those to remove.
    pub(super) variables: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

/// What a shell says of itself before it takes the command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ready {
    pub(super) pid: u32,
    pub(super) bash: bool,
    /// Whether the session's directory could not be entered.
    pub(super) gone: bool,
    pub(super) state: State,
}

/// Directory and exported variables of a shell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct State {
    pub(super) cwd: Vec<u8>,
    pub(super) variables: Variables,
}

impl Ready {
    /// Reads the report; `None` when it is not understood.
    pub(super) fn parse(report: &[u8]) -> Option<Self> {
        let mut parts = report.splitn(5, |byte| *byte == 0);
        let pid = std::str::from_utf8(parts.next()?).ok()?.parse().ok()?;
        let bash = !parts.next()?.is_empty();
        let gone = !parts.next()?.is_empty();
        let cwd = parts.next()?.strip_suffix(b"\n")?.to_vec();
        let variables = exports(parts.next()?)?;
        let state = State { cwd, variables };
        Some(Self {
            pid,
            bash,
            gone,
            state,
        })
    }
}

impl State {
    /// Reads the report; `None` when something else got between, or it is not understood.
    pub(super) fn parse(report: &[u8]) -> Option<Self> {
        let mut parts = report.split(|byte| *byte == 0);
        let cwd = parts.next()?.strip_suffix(b"\n")?;
        let (first, second) = (parts.next()?, parts.next()?);
        let whole = first == second && parts.next().is_none() && cwd.starts_with(b"/");
        let variables = whole.then(|| exports(first)).flatten()?;
        Some(Self {
            cwd: cwd.to_vec(),
            variables,
        })
    }

    /// Puts what changed since `before` on top of what a session has.
    pub(super) fn carry_over(self, before: &Self, session: &mut Start) {
        for name in before.variables.keys() {
            if !self.variables.contains_key(name) {
                session.variables.insert(name.clone(), None);
            }
        }
        if self.cwd != before.cwd {
            session.cwd = Some(self.cwd);
        }
        for (name, value) in self.variables {
            if before.variables.get(&name) != Some(&value) {
                session.variables.insert(name, Some(value));
            }
        }
    }
}

/// Reads what `export -p` printed, in the form of any shell.
fn exports(mut input: &[u8]) -> Option<Variables> {
    let mut variables = Variables::new();
    while !input.is_empty() {
        input = match input.strip_prefix(b"declare -") {
            Some(rest) => rest.get(rest.iter().position(|byte| *byte == b' ')? + 1..)?,
            None => input.strip_prefix(b"export ")?,
        };
        let end = input.iter().position(|byte| matches!(byte, b'=' | b'\n'))?;
        let (name, rest) = input.split_at_checked(end)?;
        input = rest;
        let mut value = None;
        if let Some(rest) = input.strip_prefix(b"=") {
            let (read, rest) = word(rest)?;
            value = Some(read);
            input = rest;
        }
        input = input.strip_prefix(b"\n")?;
        if let Some(value) = value.filter(|_| is_name(name) && !NEVER_KEPT.contains(&name)) {
            variables.insert(name.to_vec(), value);
        }
    }
    Some(variables)
}

/// Reads one word and undoes every quoting that shells print; returns what follows, too.
fn word(mut input: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let mut out = Vec::new();
    while let Some((first, rest)) = input.split_first() {
        input = match (first, rest.first()) {
            (b' ' | b'\n', _) => break,
            // An array, which cannot be exported anyway.
            (b'(', _) => return None,
            (b'\'', _) => {
                let end = memchr::memchr(b'\'', rest)?;
                out.extend_from_slice(rest.get(..end)?);
                rest.get(end + 1..)?
            }
            (b'"', _) => double_quoted(rest, &mut out)?,
            (b'$', Some(b'\'')) => ansi_quoted(rest.get(1..)?, &mut out)?,
            (b'\\', Some(escaped)) => {
                out.push(*escaped);
                rest.get(1..)?
            }
            (other, _) => {
                out.push(*other);
                rest
            }
        };
    }
    Some((out, input))
}

fn double_quoted<'a>(mut input: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        let (first, rest) = input.split_first()?;
        input = match (first, rest.first()) {
            (b'"', _) => return Some(rest),
            (b'\\', Some(escaped @ (b'$' | b'`' | b'"' | b'\\'))) => {
                out.push(*escaped);
                rest.get(1..)?
            }
            (other, _) => {
                out.push(*other);
                rest
            }
        };
    }
}

/// Undoes `$'…'`, which bash prints around control characters.
fn ansi_quoted<'a>(mut input: &'a [u8], out: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        let (first, rest) = input.split_first()?;
        input = rest;
        match first {
            b'\'' => return Some(rest),
            b'\\' => {
                let (escaped, rest) = rest.split_first()?;
                input = rest;
                out.push(match escaped {
                    b'a' => 7,
                    b'b' => 8,
                    b't' => b'\t',
                    b'n' => b'\n',
                    b'v' => 11,
                    b'f' => 12,
                    b'r' => b'\r',
                    b'e' | b'E' => 27,
                    b'0'..=b'7' => {
                        let digits = rest.get(..2)?;
                        input = rest.get(2..)?;
                        octal(&[&[*escaped], digits].concat())?
                    }
                    other => *other,
                });
            }
            other => out.push(*other),
        }
    }
}

fn octal(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok()
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
