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

/// Returns the schemas of all tools in one format. The order never changes.
pub fn schemas(format: SchemaFormat) -> Value {
    let tools = [terminal()];
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
