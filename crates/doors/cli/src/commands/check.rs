//! `exoshell check`: what the guard thinks of a command, without running it.

use std::io::{self, BufRead as _, Write as _};

use exoshell_runtime::config::{Config, Environment, Resolved};
use exoshell_runtime::{Checker, RuntimeError};
use serde_json::{Value, json};

use super::written;
use crate::args::CheckArgs;
use crate::output;

/// It would be asked about.
const ASKED: u8 = 76;

/// Judges one command, or one JSON record per line.
pub(crate) fn run(args: &CheckArgs) -> u8 {
    match try_run(args) {
        Ok(code) => code,
        Err(error) => output::error(&error, args.json),
    }
}

fn try_run(args: &CheckArgs) -> Result<u8, RuntimeError> {
    let environment = Environment::from_process();
    let config = Resolved::load(&environment, Config::default())?;
    let checker = Checker::new(&config, &environment, args.cwd.as_deref());
    if args.jsonl {
        return lines(&checker);
    }
    let command = args.command.join(" ");
    let found = checker.check(&command);
    let code = match found.verdict.name() {
        "allow" => 0,
        "ask" => ASKED,
        _ => output::REFUSED,
    };
    let shown = if args.json {
        written(output::json(&checker.describe(&command)))
    } else {
        let cause = found.span.of(&command);
        let text = if found.why.is_empty() {
            format!("{}\n", found.verdict)
        } else {
            format!(
                "{}: {}\n  category  {}\n  rule      {}\n  because   {}\n",
                found.verdict,
                found.why,
                found.category,
                found.rule,
                exoshell_runtime::visible(cause),
            )
        };
        written(output::data(text.as_bytes()))
    };
    Ok(if shown == 0 { code } else { shown })
}

/// Answers each line of stdin with a line: a JSON string, or an object with `command`, whose `id`
/// is repeated.
fn lines(checker: &Checker) -> Result<u8, RuntimeError> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for (index, line) in io::stdin().lock().lines().enumerate() {
        let line = line.map_err(|error| {
            RuntimeError::Usage(format!("cannot read line {} of stdin: {error}", index + 1))
        })?;
        if line.trim().is_empty() {
            continue;
        }
        let mut answer = match serde_json::from_str::<Value>(&line) {
            Ok(Value::String(command)) => checker.describe(&command),
            Ok(Value::Object(record)) => match record.get("command") {
                Some(Value::String(command)) => {
                    let mut answer = checker.describe(command);
                    if let (Some(id), Value::Object(fields)) = (record.get("id"), &mut answer) {
                        fields.insert("id".to_owned(), id.clone());
                    }
                    answer
                }
                _ => json!({"error": "the record has no text `command`"}),
            },
            Ok(_) => json!({"error": "a line is a JSON string, or an object with `command`"}),
            Err(error) => json!({"error": format!("not JSON: {error}")}),
        };
        if let (true, Value::Object(fields)) = (answer.get("error").is_some(), &mut answer) {
            fields.insert("line".to_owned(), json!(index + 1));
        }
        let wrote = serde_json::to_writer(&mut out, &answer)
            .map_err(io::Error::from)
            .and_then(|()| out.write_all(b"\n"));
        if wrote.is_err() {
            return Ok(written(wrote));
        }
    }
    Ok(written(out.flush()))
}
