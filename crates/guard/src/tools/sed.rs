//! `sed`: its scripts can run commands and write files.

use super::options::{Grammar, Options};
use super::{Handler, Table};
use crate::finding::Target;
use crate::run::{Call, Run, Stream};
use crate::text::{UNKNOWN, first, from, upto};

pub(super) const TABLE: Table = &[(&["sed", "ssed"], sed as Handler)];

/// What a script does besides editing.
#[derive(Debug, Default, PartialEq, Eq)]
struct Script {
    /// Commands it runs; an empty one is the input itself.
    commands: Vec<String>,
    files: Vec<String>,
}

fn sed(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(
        call.arguments,
        Grammar::new("efl", &["expression", "file", "line-length"]),
    );
    if options.asks_for_help() {
        return Stream::unknown();
    }
    let mut scripts: Vec<&str> = options
        .values("e", "expression")
        .map(|(script, _)| script)
        .collect();
    let mut files = &options.operands[..];
    let has_script = !scripts.is_empty() || options.values("f", "file").next().is_some();
    if !has_script && let Some((first, rest)) = options.operands.split_first() {
        scripts.push(first.text);
        files = rest;
    }
    for (file, at) in options.values("f", "file") {
        script_file(run, call, file, at);
    }
    for script in scripts {
        let found = read(script);
        for file in &found.files {
            run.writes_to(file, false, call.span);
        }
        if !options.long_flag("sandbox") {
            for command in found.commands {
                run.report(
                    "tool-runs-command",
                    call.span,
                    Target::None,
                    if command.is_empty() {
                        "sed e"
                    } else {
                        &command
                    },
                );
                run.subshell(|run| run.script(&command, call.span));
            }
        }
    }
    // `-i.bak` and `-E -i` alike; `-n -i` too.
    let in_place = options.flags.iter().any(|flag| {
        (flag.long && "in-place".starts_with(flag.name))
            || (!flag.long && (flag.name == "i" || flag.name == "I"))
    });
    if in_place {
        for file in files {
            run.writes_to(file.text, false, call.span_of(file.at));
        }
    }
    let mut output = super::effects::passes_through(run, call, true);
    output.origin = output.origin.with(crate::run::Origin::NONE);
    output
}

/// A script that comes with the input, or was made by this very command.
fn script_file(run: &mut Run<'_>, call: &Call<'_>, file: &str, at: usize) {
    let path = run.paths().absolute(file);
    let input = file == "-" || path == "/dev/stdin" || path == "/dev/fd/0";
    let stream = if input {
        run.stdin.clone()
    } else {
        run.state.file(&path).cloned()
    };
    let Some(stream) = stream else { return };
    let runs = stream.text.as_deref().is_none_or(|script| {
        let found = read(script);
        !found.commands.is_empty() || !found.files.is_empty() || script.contains(UNKNOWN)
    });
    if runs {
        run.report(
            "tool-runs-command",
            call.span_of(at),
            Target::None,
            "sed -f",
        );
    }
}

/// Reads a script command by command.
fn read(script: &str) -> Script {
    let mut found = Script::default();
    let mut rest = script;
    // Each round consumes at least one character.
    while let Some(after) = one(rest, &mut found) {
        rest = after;
    }
    found
}

fn one<'s>(script: &'s str, found: &mut Script) -> Option<&'s str> {
    let script = script.trim_start_matches(|character: char| {
        character.is_whitespace() || matches!(character, ';' | '{' | '}')
    });
    let script = skip_addresses(script);
    let mut characters = script.chars();
    let command = characters.next()?;
    let rest = characters.as_str();
    let line_end = |text: &'s str| text.split_at(text.find('\n').unwrap_or(text.len()));
    match command {
        's' => substitute(rest, found),
        'y' => {
            let (delimiter, rest) = first(rest)?;
            let rest = after_delimiter(rest, delimiter)?;
            after_delimiter(rest, delimiter)
        }
        'e' => {
            let (command, after) = line_end(rest);
            found.commands.push(command.trim().to_owned());
            Some(after)
        }
        'w' | 'W' => {
            let (file, after) = line_end(rest);
            found.files.push(file.trim().to_owned());
            Some(after)
        }
        'a' | 'i' | 'c' => {
            // The text may continue over lines that end with a backslash.
            let mut rest = rest;
            loop {
                let (line, after) = line_end(rest);
                rest = after.strip_prefix('\n').unwrap_or(after);
                if !line.ends_with('\\') || rest.is_empty() {
                    return Some(rest);
                }
            }
        }
        'r' | 'R' | '#' | ':' | 'b' | 't' | 'T' => {
            let end = if matches!(command, 'b' | 't' | 'T') {
                rest.find(['\n', ';', '}'])
            } else {
                rest.find('\n')
            };
            Some(from(rest, end.unwrap_or(rest.len())))
        }
        _ => Some(rest),
    }
}

fn substitute<'s>(rest: &'s str, found: &mut Script) -> Option<&'s str> {
    let (delimiter, rest) = first(rest)?;
    let rest = after_delimiter(rest, delimiter)?;
    let mut rest = after_delimiter(rest, delimiter)?;
    loop {
        let (flag, after) = first(rest)?;
        match flag {
            'e' => found.commands.push(String::new()),
            'w' => {
                let end = after.find('\n').unwrap_or(after.len());
                found.files.push(upto(after, end).trim().to_owned());
                return Some(from(after, end));
            }
            'g' | 'p' | 'i' | 'I' | 'm' | 'M' | '0'..='9' => {}
            _ => return Some(rest),
        }
        rest = after;
    }
}

/// Skips `1,$`, `/regex/`, `\%regex%`, `!` and the like.
fn skip_addresses(script: &str) -> &str {
    let mut rest = script;
    loop {
        let Some((sign, after)) = first(rest) else {
            return rest;
        };
        rest = match sign {
            '/' => match after_delimiter(after, '/') {
                Some(after) => after.trim_start_matches(['I', 'M']),
                None => return "",
            },
            '\\' => {
                let Some((delimiter, after)) = first(after) else {
                    return "";
                };
                match after_delimiter(after, delimiter) {
                    Some(after) => after.trim_start_matches(['I', 'M']),
                    None => return "",
                }
            }
            '0'..='9' | '$' | ',' | '~' | '+' | '!' | ' ' | '\t' => after,
            _ => return rest,
        };
    }
}

/// Returns what follows the next unescaped delimiter. Brackets hide it, as in a regex.
fn after_delimiter(text: &str, delimiter: char) -> Option<&str> {
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        if escaped {
            escaped = false;
        } else if character == '\\' {
            escaped = true;
        } else if character == delimiter {
            return Some(from(text, at + character.len_utf8()));
        }
    }
    None
}
