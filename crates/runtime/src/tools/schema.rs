//! What models are told about the tools.

use serde_json::{Value, json};

/// Whose format a schema has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaFormat {
    /// A list of functions, as the `OpenAI` API takes.
    OpenAi,
    /// A list of tools, as the Anthropic API takes.
    Anthropic,
    /// A list of tools, as an MCP server lists.
    Mcp,
}

struct Tool {
    name: &'static str,
    description: &'static str,
    parameters: Value,
}

fn terminal() -> Tool {
    Tool {
        name: "terminal",
        description: "Run a shell command and return its output and exit code. Directory, exported \
                      variables, functions and shell options carry over to the next call. Output \
                      is stdout and stderr as a person would have seen it; very long output is cut \
                      in the middle and kept in `output_file`. stdin is empty unless given; \
                      nothing waits for input. Processes left running are named in \
                      `left_running`.",
        parameters: json!({
            "type": "object",
            "properties": {
                "command": {
                    "type": "string",
                    "description": "Shell text, run by bash."
                },
                "timeout": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "Seconds until the command and everything it started is ended (exit code 124, output so far is kept). 0 or absent: the configured limit."
                },
                "workdir": {
                    "type": "string",
                    "description": "Directory for this command only; the session stays where it is."
                },
                "stdin": {
                    "type": "string",
                    "description": "Text the command reads as its stdin."
                },
                "pty": {
                    "type": "boolean",
                    "description": "Give it a terminal (for programs that insist on one)."
                },
                "background": {
                    "type": "boolean",
                    "description": "Start it and return at once with a session_id for the tool process. For servers, watchers, long builds, REPLs."
                },
                "notify_on_complete": {
                    "type": "boolean",
                    "description": "Background: report its end as an event."
                },
                "check_interval": {
                    "type": "integer",
                    "minimum": 30,
                    "description": "Background: report progress every so many seconds."
                },
                "watch_patterns": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "Background: report output lines that match one of these regular expressions."
                },
                "lifetime": {
                    "type": "string",
                    "enum": ["detached", "session"],
                    "description": "Background: detached (default) survives the caller, session ends with it."
                },
                "env": {
                    "type": "object",
                    "additionalProperties": {"type": "string"},
                    "description": "Variables for this command only."
                }
            },
            "required": ["command"],
            "additionalProperties": false
        }),
    }
}

fn process() -> Tool {
    Tool {
        name: "process",
        description: "Look at and act on background processes started with terminal(background=true). \
                      list; poll (new output since the last look); log (a page of lines); wait \
                      (for the exit, or until a line matches); kill (the whole tree); write, submit \
                      (write and press Enter), close (end of stdin); signal; resize; screen (what \
                      a terminal shows now).",
        parameters: json!({
            "type": "object",
            "properties": {
                "action": {
                    "type": "string",
                    "enum": ["list", "poll", "log", "wait", "kill", "write", "submit", "close", "signal", "resize", "screen"]
                },
                "session_id": {
                    "type": "string",
                    "description": "The id that terminal returned; all actions but list need it."
                },
                "data": {"type": "string", "description": "write, submit: the text."},
                "keys": {
                    "type": "array",
                    "items": {"type": "string"},
                    "description": "write: keys by name after the text, such as up, ctrl-c, escape."
                },
                "timeout": {"type": "integer", "minimum": 0, "description": "wait: seconds."},
                "until": {
                    "type": "string",
                    "description": "wait: return when a new line matches this regular expression."
                },
                "offset": {
                    "type": "integer",
                    "description": "log: first line, from 0; negative counts from the end. Absent: the last page."
                },
                "limit": {"type": "integer", "minimum": 1, "description": "log: how many lines (200)."},
                "signal": {"type": "string", "description": "signal: its name, such as INT."},
                "cols": {"type": "integer", "minimum": 1, "description": "resize."},
                "rows": {"type": "integer", "minimum": 1, "description": "resize."}
            },
            "required": ["action"],
            "additionalProperties": false
        }),
    }
}

/// Returns the schemas of all tools in one format. The order never changes.
pub fn schemas(format: SchemaFormat) -> Value {
    let tools = [terminal(), process()];
    let list: Vec<Value> = tools
        .into_iter()
        .map(|tool| match format {
            SchemaFormat::OpenAi => json!({
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                }
            }),
            SchemaFormat::Anthropic => json!({
                "name": tool.name,
                "description": tool.description,
                "input_schema": tool.parameters,
            }),
            SchemaFormat::Mcp => json!({
                "name": tool.name,
                "description": tool.description,
                "inputSchema": tool.parameters,
            }),
        })
        .collect();
    Value::Array(list)
}
