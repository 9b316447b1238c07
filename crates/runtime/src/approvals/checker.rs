//! The guard's opinion, without running anything.

use std::path::Path;

use exoshell_guard::{Context, Finding, Guard, Verdict};
use serde_json::{Value, json};

use super::policy;
use crate::config::{Environment, Resolved};

/// Judges commands as they would be judged on this machine.
#[derive(Debug)]
pub struct Checker {
    guard: Guard,
    context: Context,
}

impl Checker {
    /// Uses the user's rules; commands start in `cwd`, else in the caller's directory.
    pub fn new(config: &Resolved, environment: &Environment, cwd: Option<&Path>) -> Self {
        let here = environment.directory();
        let cwd = match (cwd, here) {
            (Some(cwd), Some(here)) => Some(here.join(cwd)),
            (Some(cwd), None) => Some(cwd.to_owned()),
            (None, here) => here.map(Path::to_owned),
        };
        let cwd = cwd.map(|path| path.to_string_lossy().into_owned());
        let home = environment.user_home().unwrap_or(Path::new(""));
        let mut context = Context::new(cwd.unwrap_or_default(), home.to_string_lossy());
        context.controls = policy::controls(config);
        Self {
            guard: Guard::with_rules(policy::rules(config, environment, false)),
            context,
        }
    }

    /// Judges a command.
    pub fn check(&self, command: &str) -> Finding {
        self.guard.check(command, &self.context)
    }

    /// Judges a command and says it as JSON.
    pub fn describe(&self, command: &str) -> Value {
        let found = self.check(command);
        if found.verdict == Verdict::Allow {
            return json!({"verdict": "allow"});
        }
        json!({
            "verdict": found.verdict.name(),
            "category": found.category.name(),
            "target": found.target.name(),
            "rule": found.rule,
            "why": found.why,
            "span": [found.span.start, found.span.end],
            "keys": found.keys.iter().map(ToString::to_string).collect::<Vec<_>>(),
        })
    }
}
