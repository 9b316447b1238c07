//! Shells, and everything that runs text as code.

use std::rc::Rc;

use super::{Handler, Table};
use crate::finding::{Span, Target};
use crate::run::{Argument, Call, Origin, READ, Run, Stream};
use crate::text::{self, UNKNOWN};

/// Shells whose language is that of bash, near enough.
pub(super) const SHELLS: &[&str] = &[
    "sh", "bash", "dash", "zsh", "ksh", "ksh93", "mksh", "ash", "rbash", "yash", "posh", "fish",
    "csh", "tcsh", "oksh", "hush", "osh", "ysh",
];

pub(super) const TABLE: Table = &[
    (SHELLS, shell as Handler),
    (&["eval"], eval),
    (&["source", "."], source),
    (&["trap"], trap),
];

/// How code is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// By a shell.
    Shell,
    /// By another interpreter, whose language is not read here.
    Interpreter,
    /// As a program of its own, most likely a script.
    Program,
}

impl Run<'_> {
    /// Notes that a text is run as shell code, and walks it.
    pub(crate) fn executes_text(&mut self, code: &str, span: Span) -> Stream {
        let known =
            code.trim_matches(|character: char| character == UNKNOWN || character.is_whitespace());
        let origin = self.substituted;
        let rule = if origin.has(Origin::NETWORK) && text::uncertain(code) {
            "downloaded-code"
        } else if text::uncertain(code) && (known.is_empty() || origin.has(Origin::DECODED)) {
            if origin.has(Origin::DECODED) {
                "hidden-code"
            } else {
                "unknown-code"
            }
        } else {
            "shell-string"
        };
        self.report(rule, span, Target::None, "");
        self.substituted = Origin::NONE;
        self.script(code, span)
    }

    /// Notes that what flows in is run as code.
    pub(crate) fn executes_stream(&mut self, stream: &Stream, kind: Kind, span: Span) -> Stream {
        let known = stream.text.as_deref().filter(|code| !text::uncertain(code));
        let rule = if stream.origin.has(Origin::NETWORK) {
            "downloaded-code"
        } else if stream.origin.has(Origin::DECODED) {
            "hidden-code"
        } else if kind == Kind::Interpreter {
            "interpreter-string"
        } else if known.is_some() {
            "shell-string"
        } else {
            "hidden-code"
        };
        self.report(rule, span, Target::None, "");
        self.handle(stream.weight() * READ);
        match (&stream.text, kind) {
            (Some(code), Kind::Shell | Kind::Program) => {
                let code = code.clone();
                self.reading(None, |run| run.subshell(|run| run.script(&code, span)))
            }
            _ => Stream::unknown(),
        }
    }
}

/// What a shell is told to run.
#[derive(Debug, Default)]
struct Invocation {
    /// The letters that are switched on; `h` also stands for help and version.
    letters: String,
    /// The index of the first operand.
    operands: usize,
    startup: Option<usize>,
}

fn invocation(call: &Call<'_>) -> Invocation {
    let mut found = Invocation::default();
    let mut at = 0;
    while let Some(argument) = call.arguments.get(at) {
        let text = argument.text.as_str();
        at += 1;
        match text {
            "--" | "-" => break,
            "--rcfile" | "--init-file" => {
                found.startup = Some(at);
                at += 1;
            }
            "--help" | "--version" => found.letters.push('h'),
            "--command" | "--init-command" => found.letters.push('c'),
            "--no-execute" | "--noexec" => found.letters.push('n'),
            _ if text.starts_with("--") => {}
            _ if text.len() > 1 && text.starts_with(['-', '+']) => {
                let letters = crate::text::from(text, 1);
                if text.starts_with('-') {
                    // A letter `h` is about hashing and asks for nothing.
                    found
                        .letters
                        .extend(letters.chars().filter(|letter| *letter != 'h'));
                }
                // `-o name` and `-O name` take the next argument.
                at += letters.matches(['o', 'O']).count();
            }
            _ => {
                at -= 1;
                break;
            }
        }
    }
    found.operands = at.min(call.arguments.len());
    found
}

pub(super) fn shell(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let found = invocation(call);
    let operands = call.from(found.operands);
    let on = |letter: char| found.letters.contains(letter);
    if on('h') || (on('n') && !on('i')) {
        return Stream::unknown();
    }
    if let Some(file) = found.startup.and_then(|at| call.arguments.get(at)) {
        run.executes_file(&file.text, Kind::Shell, file.span);
    }
    if on('c') {
        let Some((code, rest)) = operands.split_first() else {
            return Stream::silent();
        };
        return shell_string(run, code, rest);
    }
    match operands.split_first() {
        Some((file, rest)) if !on('s') => shell_file(run, file, rest),
        _ => {
            let Some(stream) = run.stdin.clone() else {
                return Stream::unknown();
            };
            run.executes_stream(&stream, Kind::Shell, call.span)
        }
    }
}

/// `sh -c code name argument …`
fn shell_string(run: &mut Run<'_>, code: &Argument, rest: &[Argument]) -> Stream {
    let parameters: Vec<String> = rest
        .iter()
        .skip(1)
        .map(|argument| argument.text.clone())
        .collect();
    run.subshell(|run| {
        run.state.set_parameters(parameters);
        run.state.name = rest.first().map(|name| Rc::from(name.text.as_str()));
        run.executes_text(&code.text, code.span)
    })
}

fn shell_file(run: &mut Run<'_>, file: &Argument, rest: &[Argument]) -> Stream {
    if text::uncertain(&file.text) && run.substituted.has(Origin::NETWORK) {
        run.report("downloaded-code", file.span, Target::None, "");
    }
    let parameters: Vec<String> = rest.iter().map(|argument| argument.text.clone()).collect();
    run.subshell(|run| {
        run.state.set_parameters(parameters);
        run.executes_file(&file.text, Kind::Shell, file.span);
    });
    Stream::unknown()
}

fn eval(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let code: Vec<&str> = call.texts().skip_while(|text| *text == "--").collect();
    if code.is_empty() {
        return Stream::silent();
    }
    // Active patterns were written as such and are so again.
    let code = text::inactive(code.join(" "));
    let span = Span::new(call.span_of(0).start, call.span.end);
    run.executes_text(&code, span)
}

fn source(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let Some(file) = call.arguments.first() else {
        return Stream::silent();
    };
    run.executes_file(&file.text, Kind::Shell, file.span);
    Stream::unknown()
}

/// `trap code SIGNAL …`
fn trap(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let mut arguments = call
        .arguments
        .iter()
        .filter(|argument| argument.text != "--");
    if let Some(code) = arguments.next()
        && arguments.next().is_some()
        && !code.text.starts_with('-')
    {
        run.subshell(|run| run.script(&code.text, code.span));
        run.leaves_code(&code.text, false, code.span);
    }
    Stream::silent()
}
