use serde_json::{Value, json};

use super::terminal::TerminalRequest;
use super::{TOOLS, ToolError};
use crate::{SchemaFormat, schemas};

fn read(arguments: &Value) -> Result<TerminalRequest, ToolError> {
    TerminalRequest::from_arguments(arguments.as_object().unwrap())
}

fn refusal(arguments: &Value) -> String {
    read(arguments).unwrap_err().to_string()
}

#[test]
fn unknown_arguments_are_named_with_what_is_known() {
    let text = refusal(&json!({"command": "true", "comand": "x"}));
    assert!(
        text.starts_with("`terminal` takes no argument `comand`"),
        "{text}"
    );
    assert!(text.contains("workdir"));
    assert!(refusal(&json!({"command": "true", "force": true})).contains("`force`"));
}

#[test]
fn numbers_as_strings_are_accepted_and_nonsense_is_not() {
    assert!(read(&json!({"command": "true", "timeout": "5"})).is_ok());
    assert!(read(&json!({"command": "true", "timeout": 0})).is_ok());
    for bad in [
        json!(-1),
        json!("soon"),
        json!(1e12),
        json!([1]),
        json!(true),
    ] {
        let text = refusal(&json!({"command": "true", "timeout": bad}));
        assert!(
            text.contains("`timeout` takes a number of seconds"),
            "{text}"
        );
    }
}

#[test]
fn a_missing_command_is_said_to_be_missing() {
    assert_eq!(
        refusal(&json!({})),
        "`terminal` needs the argument `command`"
    );
    assert_eq!(
        refusal(&json!({"command": null})),
        "`terminal` needs the argument `command`"
    );
    assert!(refusal(&json!({"command": 5})).contains("takes a string, not 5"));
}

#[test]
fn every_tool_has_a_schema_in_every_format() {
    for format in [
        SchemaFormat::OpenAi,
        SchemaFormat::Anthropic,
        SchemaFormat::Mcp,
    ] {
        let list = schemas(format);
        let names: Vec<&str> = list
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| {
                tool.get("function").unwrap_or(tool)["name"]
                    .as_str()
                    .unwrap()
            })
            .collect();
        assert_eq!(names, TOOLS);
    }
    // What a model must not be able to ask for is nowhere in its schema.
    assert!(!schemas(SchemaFormat::Mcp).to_string().contains("force"));
}
