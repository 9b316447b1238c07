//! The commented file that `exoshell config init` writes.

use std::fmt::Write as _;

use serde_json::Value;

use super::keys;
use super::resolved::Resolved;
use super::schema::Config;

const HEADER: &str = "\
# Exoshell configuration. Every key is here with its default: remove the `#` before a key to change it.
# The environment variable named with a key wins over this file, and a flag wins over both.
";

impl Config {
    /// Returns a configuration file with every key, commented out, with its default and a line that explains it.
    pub fn template() -> String {
        let mut text = HEADER.to_owned();
        let mut defaults = Resolved::new("");
        let mut current = "";
        for key in keys::all() {
            let (table, name) = key.parts();
            // Writing to a String cannot fail.
            if table != current {
                let _ = write!(text, "\n[{table}]\n");
                current = table;
            }
            let variable = key
                .variable
                .map(|name| format!(" ({name})"))
                .unwrap_or_default();
            let _ = writeln!(text, "# {}{variable}", key.help);
            let _ = writeln!(
                text,
                "#{name} = {}",
                toml_literal(&key.slot.value(&mut defaults))
            );
        }
        text
    }
}

/// Writes a default as TOML, which for all we have is also how JSON is written.
fn toml_literal(value: &Value) -> String {
    match value {
        Value::Null => "\"\"".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
