//! Tools: what a model calls. Every door passes its calls through [`call`].

pub(crate) mod answer;
mod exit_hint;
mod keys;
pub(crate) mod process;
pub(crate) mod schema;
pub(crate) mod terminal;

use serde_json::{Map, Value, json};

use crate::error::ErrorKind;
use crate::interrupt::Interrupt;
use crate::redact::clean_value;
use crate::runtime::Runtime;
use terminal::TerminalRequest;

/// The tools of this build.
pub(crate) const TOOLS: &[&str] = &["terminal", "process"];

/// A call that names no tool or gives it arguments it does not take.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// There is no such tool.
    #[error("there is no tool `{name}`; there are: {}", TOOLS.join(", "))]
    UnknownTool {
        /// What was asked for.
        name: String,
    },
    /// The arguments are not an object.
    #[error("the arguments of a tool are one JSON object, not {found}")]
    NotAnObject {
        /// What they are.
        found: &'static str,
    },
    /// There is no such argument.
    #[error("`{tool}` takes no argument `{name}`; it takes: {known}")]
    UnknownArgument {
        /// The tool.
        tool: &'static str,
        /// The argument.
        name: String,
        /// What it takes.
        known: String,
    },
    /// An argument is missing.
    #[error("`{tool}` needs the argument `{name}`")]
    MissingArgument {
        /// The tool.
        tool: &'static str,
        /// The argument.
        name: &'static str,
    },
    /// An argument has the wrong type or a value that makes no sense.
    #[error("the argument `{name}` takes {takes}, not {found}")]
    BadArgument {
        /// The argument.
        name: &'static str,
        /// What it takes.
        takes: &'static str,
        /// What was given.
        found: String,
    },
    /// The argument exists, but this build cannot do it.
    #[error("`{name}` is not available: {why}")]
    Unsupported {
        /// The argument.
        name: &'static str,
        /// Why.
        why: &'static str,
    },
}

impl ToolError {
    /// Tells the kind.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Unsupported { .. } => ErrorKind::Unsupported,
            _ => ErrorKind::Usage,
        }
    }

    /// Returns the answer a caller gets: one JSON object, as always.
    pub fn to_json(&self) -> Value {
        json!({
            "output": "",
            "exit_code": -1,
            "error": self.to_string(),
            "error_kind": self.kind(),
            "status": "error",
        })
    }
}

/// Calls a tool for a task and returns its answer, always one JSON object.
///
/// `task` is the door's choice and goes before a `task_id` among the arguments.
pub async fn call(
    runtime: &Runtime,
    tool: &str,
    arguments: &Value,
    task: Option<&str>,
    interrupt: Interrupt,
) -> Value {
    let mut answer = answer(runtime, tool, arguments, task, interrupt).await;
    // Errors quote arguments, hints name files: every text can hold a secret. Output went through
    // a filter before it was cut.
    if let Value::Object(answer) = &mut answer {
        let redactor = runtime.redactor();
        for (_, value) in answer.iter_mut().filter(|(name, _)| *name != "output") {
            clean_value(&redactor, value);
        }
    }
    answer
}

async fn answer(
    runtime: &Runtime,
    tool: &str,
    arguments: &Value,
    task: Option<&str>,
    interrupt: Interrupt,
) -> Value {
    if let ("process", Value::Object(arguments)) = (tool, arguments) {
        return tokio::select! {
            biased;
            answer = runtime.process_tool(arguments, task) => answer,
            () = interrupt.wait() => json!({
                "status": "interrupted",
                "error": "the call was interrupted; the process goes on",
            }),
        };
    }
    let result = match (tool, arguments) {
        ("terminal", Value::Object(arguments)) => {
            TerminalRequest::from_arguments(arguments).map(|request| match task {
                Some(task) => request.in_task(task),
                None => request,
            })
        }
        ("terminal" | "process", other) => Err(ToolError::NotAnObject {
            found: type_name(other),
        }),
        _ => Err(ToolError::UnknownTool {
            name: tool.to_owned(),
        }),
    };
    match result {
        Ok(request) => {
            let request = request.with_interrupt(interrupt);
            let result = runtime.terminal_or_background(request).await;
            serde_json::to_value(result).unwrap_or_else(|error| {
                json!({"output": "", "exit_code": -1, "error": error.to_string(),
                       "error_kind": "internal", "status": "error"})
            })
        }
        Err(error) => error.to_json(),
    }
}

pub(crate) const fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Reads the arguments of one tool, strictly.
pub(crate) struct Arguments<'a> {
    tool: &'static str,
    values: &'a Map<String, Value>,
}

impl<'a> Arguments<'a> {
    /// Takes the arguments if all of them are known.
    pub(crate) fn new(
        tool: &'static str,
        values: &'a Map<String, Value>,
        known: &[&str],
    ) -> Result<Self, ToolError> {
        match values.keys().find(|name| !known.contains(&name.as_str())) {
            Some(name) => Err(ToolError::UnknownArgument {
                tool,
                name: name.clone(),
                known: known.join(", "),
            }),
            None => Ok(Self { tool, values }),
        }
    }

    /// Returns an argument that is there; null counts as absent.
    pub(crate) fn get(&self, name: &str) -> Option<&'a Value> {
        self.values.get(name).filter(|value| !value.is_null())
    }

    pub(crate) fn text(&self, name: &'static str) -> Result<Option<String>, ToolError> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(bad(name, "a string", other)),
        }
    }

    pub(crate) fn required_text(&self, name: &'static str) -> Result<String, ToolError> {
        self.text(name)?.ok_or(ToolError::MissingArgument {
            tool: self.tool,
            name,
        })
    }

    pub(crate) fn flag(&self, name: &'static str) -> Result<bool, ToolError> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(Value::String(text)) if text == "true" => Ok(true),
            Some(Value::String(text)) if text == "false" => Ok(false),
            Some(other) => Err(bad(name, "true or false", other)),
        }
    }

    /// Reads a whole number that is at least `least`.
    pub(crate) fn whole(&self, name: &'static str, least: i64) -> Result<Option<i64>, ToolError> {
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let number = match value {
            Value::Number(number) => number.as_i64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        match number {
            Some(number) if number >= least => Ok(Some(number)),
            _ if least >= 1 => Err(bad(name, "a whole number from 1 on", value)),
            _ => Err(bad(name, "a whole number", value)),
        }
    }

    pub(crate) fn texts(&self, name: &'static str) -> Result<Vec<String>, ToolError> {
        const TAKES: &str = "a list of strings";
        match self.get(name) {
            None => Ok(Vec::new()),
            Some(Value::Array(list)) => list
                .iter()
                .map(|item| match item {
                    Value::String(text) => Ok(text.clone()),
                    other => Err(bad(name, TAKES, other)),
                })
                .collect(),
            Some(other) => Err(bad(name, TAKES, other)),
        }
    }

    /// Reads a number of seconds; models often send numbers as strings.
    pub(crate) fn seconds(&self, name: &'static str) -> Result<Option<f64>, ToolError> {
        const TAKES: &str = "a number of seconds from 0 to 315360000";
        let Some(value) = self.get(name) else {
            return Ok(None);
        };
        let number = match value {
            Value::Number(number) => number.as_f64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        match number {
            Some(number) if (0.0..=315_360_000.0).contains(&number) => Ok(Some(number)),
            _ => Err(bad(name, TAKES, value)),
        }
    }
}

fn bad(name: &'static str, takes: &'static str, found: &Value) -> ToolError {
    let mut found = found.to_string();
    if found.len() > 80 {
        let cut = (0..=77).rev().find(|at| found.is_char_boundary(*at));
        found.truncate(cut.unwrap_or(0));
        found.push('…');
    }
    ToolError::BadArgument { name, takes, found }
}

#[cfg(test)]
#[path = "tools_tests.rs"]
mod tests;
