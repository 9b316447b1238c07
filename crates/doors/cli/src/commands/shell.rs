//! `exoshell shell`: a prompt into a task's session.

use std::io::{BufRead as _, IsTerminal as _};

use exoshell_runtime::{Interrupt, RunRequest, Runtime, RuntimeError, TerminalRequest};
use rustyline::DefaultEditor;
use rustyline::error::ReadlineError;

use super::{load, written};
use crate::args::ShellArgs;
use crate::output;
use crate::password::ask_at_terminal;

/// Reads commands until the end of input and runs each in the session. Returns the exit code of
/// the last one.
pub(crate) async fn run(args: ShellArgs) -> u8 {
    match try_run(&args).await {
        Ok(code) => code,
        Err(error) => output::error(&error, args.json),
    }
}

async fn try_run(args: &ShellArgs) -> Result<u8, RuntimeError> {
    let runtime = ask_at_terminal(load(&args.place)?);
    let mut lines = Lines::new()?;
    let mut cwd = String::new();
    let mut code = 0;
    while let Some(line) = lines.next(&format!("{} {cwd}> ", args.task))? {
        let command = line.trim();
        if command.is_empty() {
            continue;
        }
        if let Some(rest) = command
            .strip_prefix("exit")
            .or(command.strip_prefix("logout"))
            && (rest.is_empty() || rest.trim().parse::<u8>().is_ok())
        {
            return Ok(rest.trim().parse().unwrap_or(code));
        }
        (code, cwd) = one(&runtime, args, command).await;
    }
    Ok(code)
}

/// Runs one command. Ctrl-C ends the command, not the prompt.
async fn one(runtime: &Runtime, args: &ShellArgs, command: &str) -> (u8, String) {
    let interrupt = Interrupt::new();
    let stop = interrupt.clone();
    let watcher = tokio::spawn(async move {
        if tokio::signal::ctrl_c().await.is_ok() {
            stop.set();
        }
    });
    let outcome = if args.json {
        let request = TerminalRequest::new(command)
            .in_task(&args.task)
            .with_interrupt(interrupt);
        let result = runtime.terminal(request).await;
        let shown = written(output::json(&result));
        let code = match result.error_kind {
            Some(kind) if result.exit_code < 0 => output::code(kind),
            _ => u8::try_from(result.exit_code).unwrap_or(output::OWN_FAILURE),
        };
        (code.max(shown), result.cwd.unwrap_or_default())
    } else {
        let request = RunRequest::new(command)
            .in_task(&args.task)
            .with_interrupt(interrupt);
        match runtime.run(request, super::run::stream).await {
            Ok(end) => (super::run::report(&end), end.done.cwd.display()),
            Err(error) => (output::error(&error, false), String::new()),
        }
    };
    watcher.abort();
    outcome
}

/// Where commands come from: an edited line at a terminal, plain lines otherwise.
enum Lines {
    Terminal(Box<DefaultEditor>),
    Plain,
}

impl Lines {
    fn new() -> Result<Self, RuntimeError> {
        if !std::io::stdin().is_terminal() {
            return Ok(Self::Plain);
        }
        DefaultEditor::new()
            .map(|editor| Self::Terminal(Box::new(editor)))
            .map_err(|error| RuntimeError::Usage(format!("cannot use this terminal: {error}")))
    }

    fn next(&mut self, prompt: &str) -> Result<Option<String>, RuntimeError> {
        let unreadable =
            |error: &dyn std::fmt::Display| RuntimeError::Usage(format!("cannot read: {error}"));
        match self {
            Self::Terminal(editor) => match editor.readline(prompt) {
                Ok(line) => {
                    let _ = editor.add_history_entry(&line);
                    Ok(Some(line))
                }
                Err(ReadlineError::Interrupted) => Ok(Some(String::new())),
                Err(ReadlineError::Eof) => Ok(None),
                Err(error) => Err(unreadable(&error)),
            },
            Self::Plain => {
                let mut line = String::new();
                match std::io::stdin().lock().read_line(&mut line) {
                    Ok(0) => Ok(None),
                    Ok(_) => Ok(Some(line)),
                    Err(error) => Err(unreadable(&error)),
                }
            }
        }
    }
}
