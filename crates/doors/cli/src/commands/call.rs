//! `exoshell call`.

use std::io::Read as _;

use exoshell_runtime::{RuntimeError, call};
use serde_json::{Value, json};

use super::{interrupt_on_signals, load, written};
use crate::args::CallArgs;
use crate::output;
use crate::password::ask_at_terminal;

/// Calls a tool. Whatever happens, stdout gets exactly one JSON object; the exit code is 0 when
/// the tool did its work, whatever the command inside returned.
pub(crate) async fn run(args: CallArgs) -> u8 {
    let answer = match try_run(&args).await {
        Ok(answer) => answer,
        Err(error) => json!({
            "output": "",
            "exit_code": -1,
            "error": output::without_secrets(&error.to_string()),
            "error_kind": error.kind(),
            "status": "error",
            "hint": error.hint().map(|hint| output::without_secrets(&hint)),
        }),
    };
    let shown = written(output::json(&answer));
    match answer.get("error_kind") {
        _ if shown != 0 => shown,
        None | Some(Value::Null) => 0,
        Some(kind) if kind == "denied" => output::REFUSED,
        Some(_) => output::OWN_FAILURE,
    }
}

async fn try_run(args: &CallArgs) -> Result<Value, RuntimeError> {
    let text = if args.arguments == "-" {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(|error| RuntimeError::Usage(format!("cannot read stdin: {error}")))?;
        text
    } else {
        args.arguments.clone()
    };
    let arguments: Value = serde_json::from_str(&text)
        .map_err(|error| RuntimeError::Usage(format!("the arguments are not JSON: {error}")))?;
    let runtime = ask_at_terminal(load(&args.place)?);
    let interrupt = interrupt_on_signals();
    Ok(call(
        &runtime,
        &args.tool,
        &arguments,
        args.task.as_deref(),
        interrupt,
    )
    .await)
}
