//! The user's own rules: allow, ask or deny by the beginning of a command and by path.

use crate::paths::covers;
use crate::run::Argument;

/// What a rule of the user says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Action {
    /// What would be asked about passes.
    Allow,
    /// A person is asked.
    Ask,
    /// It never runs.
    Deny,
}

/// One rule about commands that begin with certain words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandRule {
    /// The words a command must begin with; `*` stands for any word.
    pub prefix: Vec<String>,
    /// What then happens.
    pub action: Action,
}

/// One rule about writing to, or deleting, a path or anything below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathRule {
    /// An absolute path.
    pub path: String,
    /// What then happens.
    pub action: Action,
}

/// All rules of the user. Of several that fit, the strictest holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserRules {
    /// By command.
    pub commands: Vec<CommandRule>,
    /// By path.
    pub paths: Vec<PathRule>,
}

/// What the rules of the user say about one thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Opinion(Option<Action>);

impl Opinion {
    /// Returns the id of the rule to report.
    pub(crate) fn report(self) -> Option<&'static str> {
        match self.0 {
            Some(Action::Deny) => Some("user-deny"),
            Some(Action::Ask) => Some("user-ask"),
            _ => None,
        }
    }

    pub(crate) fn allows(self) -> bool {
        self.0 == Some(Action::Allow)
    }
}

impl CommandRule {
    /// Returns the rule for commands that begin with the words of `prefix`.
    pub fn new(prefix: &str, action: Action) -> Self {
        Self {
            prefix: prefix.split_whitespace().map(str::to_owned).collect(),
            action,
        }
    }

    fn fits(&self, words: &[Argument]) -> bool {
        !self.prefix.is_empty()
            && words.len() >= self.prefix.len()
            && self
                .prefix
                .iter()
                .zip(words)
                .enumerate()
                .all(|(index, (wanted, word))| {
                    let text = word.text.as_str();
                    // A program is named with or without its directory.
                    let name = if index == 0 && !wanted.contains('/') {
                        text.rsplit('/').next().unwrap_or(text)
                    } else {
                        text
                    };
                    wanted == "*" || wanted == name
                })
    }
}

impl UserRules {
    /// Tells whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.commands.is_empty() && self.paths.is_empty()
    }

    /// Returns what the rules say about a command. An allowance by bare name does not hold for a
    /// program given by a path, which may be another one.
    pub(crate) fn command(&self, words: &[Argument]) -> Opinion {
        let by_path = words.first().is_some_and(|first| first.text.contains('/'));
        let fitting = self.commands.iter().filter(|rule| rule.fits(words));
        let fitting = fitting.filter(|rule| {
            rule.action != Action::Allow
                || !by_path
                || rule.prefix.first().is_some_and(|first| first.contains('/'))
        });
        Opinion(fitting.map(|rule| rule.action).max())
    }

    /// Returns what the rules say about a resolved path, which may hold patterns; with `whole`,
    /// what lies below it counts as well.
    pub(crate) fn path(&self, path: &str, whole: bool) -> Opinion {
        let fitting = self
            .paths
            .iter()
            .filter(|rule| covers(path, &rule.path, whole));
        Opinion(fitting.map(|rule| rule.action).max())
    }
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
