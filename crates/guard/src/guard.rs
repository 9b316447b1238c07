//! The check itself.

use crate::context::{Context, Input};
use crate::finding::{ApprovalKey, Category, Finding, Span, Target, Verdict};
use crate::paths::Paths;
use crate::policy::UserRules;
use crate::rules;
use crate::run::{Run, Stream};

/// Longer commands are asked about without a look. The slowest text of this length found so far
/// takes 30 ms of processor time on a busy machine, see the example `speed`; data takes a few.
pub const MAX_COMMAND: usize = 64 * 1024;

/// Judges commands and writes. It holds only the user's rules and can be shared between threads.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    rules: UserRules,
}

impl Guard {
    /// Returns a guard without rules of a user.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a guard with rules of a user.
    #[must_use]
    pub fn with_rules(rules: UserRules) -> Self {
        Self { rules }
    }

    /// Judges a command as bash would run it.
    pub fn check(&self, command: &str, context: &Context) -> Finding {
        if command.len() > MAX_COMMAND {
            return asked("too-large", Span::new(0, command.len()));
        }
        // Characters that are none stand for the unknown in here, so they may not come from outside.
        if command.is_ascii() || !command.chars().any(noncharacter) {
            return Run::new(context, &self.rules).judge(command);
        }
        let (at, _) = command
            .char_indices()
            .find(|(_, character)| noncharacter(*character))
            .unwrap_or_default();
        asked("hidden-characters", Span::new(at, command.len()))
    }

    /// Judges a command that reads this input.
    ///
    /// What a shell or an interpreter would read is judged as code, what a program would only
    /// handle is data. Input that is not known is asked about where it would be run.
    #[must_use]
    pub fn check_fed(&self, command: &str, input: Input<'_>, context: &Context) -> Finding {
        let Some(input) = stream(input) else {
            return self.check(command, context);
        };
        if command.len() > MAX_COMMAND || command.chars().any(noncharacter) {
            return self.check(command, context);
        }
        let mut run = Run::new(context, &self.rules);
        run.feed(input);
        run.judge(command)
    }

    /// Judges a command that reads this input by the user's own rules only.
    #[must_use]
    pub fn check_user_rules_fed(
        &self,
        command: &str,
        input: Input<'_>,
        context: &Context,
    ) -> Finding {
        let Some(input) = stream(input).filter(|_| !self.rules.is_empty()) else {
            return self.check_user_rules(command, context);
        };
        if command.len() > MAX_COMMAND || command.chars().any(noncharacter) {
            return self.check(command, context);
        }
        let mut run = Run::new(context, &self.rules);
        run.only_user_rules = true;
        run.feed(input);
        run.judge(command)
    }

    /// Judges a command by the user's own rules only, for places that can be thrown away.
    ///
    /// Without such rules everything passes; with them, what cannot be read is asked about.
    #[must_use]
    pub fn check_user_rules(&self, command: &str, context: &Context) -> Finding {
        if self.rules.is_empty() {
            return Finding::harmless();
        }
        if command.len() > MAX_COMMAND || command.chars().any(noncharacter) {
            return self.check(command, context);
        }
        let mut run = Run::new(context, &self.rules);
        run.only_user_rules = true;
        run.judge(command)
    }

    /// Judges a command that may not be valid text; what is not UTF-8 is asked about.
    #[must_use]
    pub fn check_bytes(&self, command: &[u8], context: &Context) -> Finding {
        match std::str::from_utf8(command) {
            Ok(command) => self.check(command, context),
            Err(error) => asked("not-text", Span::new(error.valid_up_to(), command.len())),
        }
    }

    /// Tells whether a command would run `sudo` so that it may ask for a password.
    ///
    /// Only a command word counts, wherever the shell would find one: behind `&&`, in a pipe, a
    /// function, a nested shell or behind a wrapper. A `sudo` that was told not to ask (`-n`) or
    /// where else to read (`-S`, `-A`) does not count, nor one on another machine or in a
    /// container. What is too long to be judged runs none.
    #[must_use]
    pub fn runs_sudo(&self, command: &str, context: &Context) -> bool {
        // Most commands neither say the word nor could spell it, and need no walk.
        let may = command.contains("sudo") || command.contains(EXPANDED);
        may && command.len() <= MAX_COMMAND
            && !command.chars().any(noncharacter)
            && Run::new(context, &self.rules).finds_sudo(command)
    }

    /// Judges the write, or the deletion, of one file by a tool.
    #[must_use]
    pub fn check_write(&self, path: &str, context: &Context) -> Finding {
        Run::new(context, &self.rules).judge_write(path)
    }

    /// Tells whether a path is protected: its write needs a yes.
    #[must_use]
    pub fn protects(&self, path: &str, context: &Context) -> bool {
        self.check_write(path, context).verdict != Verdict::Allow
    }
}

/// Characters by which a shell makes a word of another text.
const EXPANDED: [char; 9] = ['$', '\\', '\'', '"', '`', '{', '*', '?', '['];

fn noncharacter(character: char) -> bool {
    u32::from(character) & 0xFFFE == 0xFFFE
}

/// Returns what flows into a command; `None` when nothing does. Text that cannot be walked is not
/// known.
fn stream(input: Input<'_>) -> Option<Stream> {
    match input {
        Input::Empty | Input::Text("") => None,
        Input::Text(text) if text.chars().any(noncharacter) => Some(Stream::unknown()),
        Input::Text(text) => Some(Stream::known(text)),
        Input::Unknown => Some(Stream::unknown()),
    }
}

/// Returns a question about a text that was not walked.
fn asked(rule: &'static str, span: Span) -> Finding {
    let (category, why) =
        rules::find(rule).map_or((Category::TooLarge, ""), |rule| (rule.category, rule.why));
    Finding {
        verdict: Verdict::Ask,
        category,
        target: Target::None,
        rule,
        why: format!("{why}."),
        span,
        keys: vec![ApprovalKey {
            category,
            target: Target::None,
        }],
        more: false,
    }
}

/// Resolves a path as a command in this context would.
#[must_use]
pub fn resolve(path: &str, context: &Context) -> Option<String> {
    let paths = Paths {
        context,
        home: &context.home,
        cwd: Some(context.cwd.as_str()).filter(|cwd| !cwd.is_empty()),
    };
    let path = path.strip_prefix("~/").map_or_else(
        || path.to_owned(),
        |rest| format!("{}/{rest}", context.home),
    );
    paths.resolve(&path).map(|resolved| resolved.path)
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "fed_tests.rs"]
mod fed_tests;

#[cfg(test)]
#[path = "later_tests.rs"]
mod later_tests;

#[cfg(test)]
#[path = "protected_tests.rs"]
mod protected_tests;

#[cfg(test)]
#[path = "evaluation_tests.rs"]
mod evaluation_tests;
