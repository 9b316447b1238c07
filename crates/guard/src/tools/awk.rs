//! `awk`: its programs can run commands and write files.

use super::options::{Grammar, Options};
use super::shell::Kind;
use super::{Handler, Table};
use crate::finding::Target;
use crate::run::{Call, Run, Stream};
use crate::text::{first, from, upto};

pub(super) const TABLE: Table = &[(
    &["awk", "gawk", "mawk", "nawk", "original-awk", "goawk"],
    awk as Handler,
)];

/// One piece of a program that matters here.
#[derive(Debug, PartialEq, Eq)]
enum Token {
    Name(String),
    Text(String),
    Sign(char),
    Pipe,
    Output,
    Other,
}

fn awk(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(
        call.arguments,
        Grammar::new(
            "FvfieElE",
            &[
                "file",
                "assign",
                "field-separator",
                "source",
                "include",
                "exec",
                "load",
            ],
        )
        .stopping(),
    );
    if options.asks_for_help() {
        return Stream::unknown();
    }
    let mut programs: Vec<&str> = options
        .values("e", "source")
        .map(|(text, _)| text)
        .collect();
    let mut files = &options.operands[..];
    for (file, at) in options.values("fE", "file") {
        run.executes_file(file, Kind::Interpreter, call.span_of(at));
    }
    let from_file = options.values("fE", "file").next().is_some();
    if programs.is_empty()
        && !from_file
        && let Some((first, rest)) = options.operands.split_first()
    {
        programs.push(first.text);
        files = rest;
    }
    for program in programs {
        judge(run, call, program);
    }
    if options
        .values("i", "include")
        .any(|(name, _)| name.contains("inplace"))
    {
        for file in files {
            run.writes_to(file.text, false, call.span_of(file.at));
        }
    }
    super::effects::passes_through(run, call, true)
}

/// Looks for `system(…)`, pipes to and from commands, and files that are written.
fn judge(run: &mut Run<'_>, call: &Call<'_>, program: &str) {
    let tokens = tokens(program);
    for (at, token) in tokens.iter().enumerate() {
        let next = tokens.get(at + 1);
        match token {
            Token::Name(name) if name == "system" && next == Some(&Token::Sign('(')) => {
                run.report("tool-runs-command", call.span, Target::None, "awk system()");
                if let (Some(Token::Text(command)), Some(Token::Sign(')'))) =
                    (tokens.get(at + 2), tokens.get(at + 3))
                {
                    let command = command.clone();
                    run.subshell(|run| run.script(&command, call.span));
                }
            }
            Token::Pipe => {
                let from = at.checked_sub(1).and_then(|before| tokens.get(before));
                let command = if matches!(next, Some(Token::Name(name)) if name == "getline") {
                    from
                } else {
                    next
                };
                run.report("tool-runs-command", call.span, Target::None, "awk pipe");
                if let Some(Token::Text(command)) = command {
                    let command = command.clone();
                    run.subshell(|run| run.script(&command, call.span));
                }
            }
            Token::Output => {
                if let Some(Token::Text(file)) = next {
                    run.writes_to(file, false, call.span);
                }
            }
            _ => {}
        }
    }
}

/// Splits a program; regular expressions and comments are skipped.
fn tokens(program: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = program;
    while let Some((character, after)) = first(rest) {
        rest = match character {
            '"' => {
                let (text, after) = string(after);
                tokens.push(Token::Text(
                    crate::text::unescape(&text, crate::text::Escapes::Echo).0,
                ));
                after
            }
            '#' => from(rest, rest.find('\n').unwrap_or(rest.len())),
            '/' if begins_regex(tokens.last()) => {
                tokens.push(Token::Other);
                after_regex(after)
            }
            '|' if after.starts_with('|') => {
                tokens.push(Token::Sign('|'));
                from(after, 1)
            }
            '|' => {
                tokens.push(Token::Pipe);
                after.strip_prefix('&').unwrap_or(after)
            }
            '>' => {
                let appended = after.strip_prefix('>').unwrap_or(after);
                tokens.push(if after.starts_with('=') {
                    Token::Sign('=')
                } else {
                    Token::Output
                });
                appended
            }
            _ if character.is_alphabetic() || character == '_' => {
                let end = rest
                    .find(|next: char| !next.is_alphanumeric() && next != '_')
                    .unwrap_or(rest.len());
                tokens.push(Token::Name(upto(rest, end).to_owned()));
                from(rest, end)
            }
            _ if character.is_whitespace() => after,
            _ => {
                tokens.push(Token::Sign(character));
                after
            }
        };
        if tokens.len() > 20_000 {
            break;
        }
    }
    tokens
}

/// A slash after a value divides; elsewhere it begins a regular expression.
fn begins_regex(before: Option<&Token>) -> bool {
    match before {
        None | Some(Token::Pipe | Token::Output) => true,
        Some(Token::Sign(sign)) => {
            !matches!(sign, ')' | ']') && !sign.is_ascii_digit() && *sign != '$'
        }
        Some(Token::Name(name)) => matches!(name.as_str(), "print" | "return" | "in"),
        Some(Token::Text(_) | Token::Other) => false,
    }
}

fn string(text: &str) -> (String, &str) {
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return (upto(text, at).to_owned(), from(text, at + 1)),
            _ => {}
        }
    }
    (text.to_owned(), "")
}

fn after_regex(text: &str) -> &str {
    let mut escaped = false;
    for (at, character) in text.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '/' => return from(text, at + 1),
            '\n' => return from(text, at),
            _ => {}
        }
    }
    ""
}
