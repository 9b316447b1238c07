//! What a tool answers.

use serde_json::Value;

/// One JSON object, with the questions tests ask of it.
#[derive(Debug, Clone)]
pub(crate) struct Answer(pub(crate) Value);

impl Answer {
    #[track_caller]
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let value: Value = serde_json::from_slice(bytes).unwrap_or_else(|error| {
            panic!(
                "not one JSON object ({error}): {}",
                String::from_utf8_lossy(bytes)
            )
        });
        assert!(value.is_object(), "not an object: {value}");
        Self(value)
    }

    fn text(&self, name: &str) -> &str {
        self.0[name].as_str().unwrap_or_default()
    }

    #[track_caller]
    pub(crate) fn output(&self) -> &str {
        self.0["output"].as_str().unwrap()
    }

    #[track_caller]
    pub(crate) fn code(&self) -> i64 {
        self.0["exit_code"].as_i64().unwrap()
    }

    pub(crate) fn error(&self) -> &str {
        self.text("error")
    }

    pub(crate) fn kind(&self) -> &str {
        self.text("error_kind")
    }

    pub(crate) fn status(&self) -> &str {
        self.text("status")
    }

    pub(crate) fn hint(&self) -> &str {
        self.text("hint")
    }

    pub(crate) fn cwd(&self) -> &str {
        self.text("cwd")
    }

    /// Returns the command lines of what was left running.
    pub(crate) fn left_running(&self) -> Vec<String> {
        self.0["left_running"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|process| process["command"].as_str())
            .map(str::to_owned)
            .collect()
    }

    /// Asserts that the command itself did well and printed this.
    #[track_caller]
    pub(crate) fn printed(&self, expected: &str) -> &Self {
        assert_eq!((self.output(), self.code()), (expected, 0), "{}", self.0);
        self
    }
}
