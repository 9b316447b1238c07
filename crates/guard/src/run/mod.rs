//! The static run: a script is walked as a shell would, with what is known of its values.
//!
//! Every branch is taken, every loop runs over its known items, functions are entered, nested
//! shells are parsed. What a simple command would do is judged by [`crate::tools`]. Nothing is
//! ever executed. Each step costs fuel, so that no text can keep the guard busy.

mod brace;
mod expand;
mod later;
mod parameter;
mod redirect;
mod simple;
mod state;
mod stream;
mod walk;

use crate::context::Context;
use crate::finding::{ApprovalKey, Category, Finding, Span, Target, Verdict};
use crate::paths::Paths;
use crate::policy::UserRules;
use crate::rules;
use crate::syntax::Parser;
use crate::text;

pub(crate) use redirect::network_path;
pub(crate) use simple::{Argument, Call};
pub(crate) use stream::{Origin, Stream};

/// How deep scripts in scripts, functions and wrappers are followed.
const MAX_DEPTH: u32 = 40;

/// Steps of one run. The largest harmless commands seen need some thousand.
const FUEL: u32 = 60_000;

/// How many bytes of text may be handled for one step.
const BYTES_PER_STEP: usize = 64;

/// How much dearer it is to read text as code than to copy it.
pub(crate) const READ: usize = 8;

/// How many steps of the parser are as dear as one of the run.
const PARSER_STEPS: usize = 32;

/// How many different keys a finding lists.
const MAX_KEYS: usize = 8;

/// One static run.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own about the walk"
)]
pub(crate) struct Run<'a> {
    pub(crate) context: &'a Context,
    pub(crate) user_rules: &'a UserRules,
    pub(crate) home: String,
    pub(crate) state: state::State,
    /// What the current command would read; `None` is whatever the task's own input is.
    pub(crate) stdin: Option<Stream>,
    /// What is typed to the whole command, wherever it is read from.
    pub(crate) fed: Option<Stream>,
    /// Functions being walked, with whether each was entered in a pipe or in the background.
    calls: Vec<String>,
    /// How many pipes and background lists surround the current command.
    aside: u32,
    /// Recursive calls met in the stages of the current pipeline.
    recursions: u32,
    /// Where a nested script stands in the text, while one is walked.
    outer: Option<Span>,
    /// Where the current command stands.
    here: Span,
    /// What nested code can be at worst: inside a container nothing is blocked.
    ceiling: Verdict,
    /// Nothing counts but the user's own rules, and what hides a command from them.
    pub(crate) only_user_rules: bool,
    /// The user's own rules allow the current command.
    allowed: bool,
    /// Where the substitutions of the current command got their text.
    pub(crate) substituted: Origin,
    /// How many process substitutions there were.
    processes: u32,
    /// Variables whose values are evaluated when they are set.
    integers: Vec<String>,
    /// Whether a positional parameter was looked up.
    took_parameters: bool,
    depth: u32,
    fuel: u32,
    exhausted: bool,
    finding: Finding,
    /// How grave the finding is, to compare with the next.
    gravity: u8,
    /// How many wrappers around the current command run it on another machine or in a container.
    away: u32,
    /// A `sudo` was met here that may ask for a password.
    sudo: bool,
}

impl<'a> Run<'a> {
    pub(crate) fn new(context: &'a Context, user_rules: &'a UserRules) -> Self {
        let home = if context.home.is_empty() {
            "/home/user"
        } else {
            context.home.trim_end_matches('/')
        };
        let home = if home.is_empty() { "/" } else { home };
        Self {
            context,
            user_rules,
            home: home.to_owned(),
            state: state::State::new(&context.cwd, home),
            stdin: None,
            fed: None,
            calls: Vec::new(),
            aside: 0,
            recursions: 0,
            outer: None,
            here: Span::default(),
            ceiling: Verdict::Block,
            only_user_rules: false,
            allowed: false,
            substituted: Origin::NONE,
            processes: 0,
            integers: Vec::new(),
            took_parameters: false,
            depth: 0,
            fuel: FUEL,
            exhausted: false,
            finding: Finding::harmless(),
            gravity: 0,
            away: 0,
            sudo: false,
        }
    }

    /// Gives the whole command something to read.
    pub(crate) fn feed(&mut self, input: Stream) {
        self.stdin = Some(input.clone());
        self.fed = Some(input);
    }

    /// Walks the whole text and returns what was found.
    pub(crate) fn judge(mut self, command: &str) -> Finding {
        self.deceptions(command);
        self.parse_and_walk(command);
        let span = self.finding.span;
        if command.get(span.start..span.end).is_none() {
            debug_assert!(false, "{span:?} does not lie in {command:?}");
            self.finding.span = Span::new(0, command.len());
        }
        self.finding
    }

    /// Walks the whole text and tells whether a `sudo` in it may ask for a password.
    pub(crate) fn finds_sudo(mut self, command: &str) -> bool {
        self.parse_and_walk(command);
        self.sudo
    }

    /// Notes a `sudo` that may ask for a password, unless it runs somewhere else.
    pub(crate) fn meets_sudo(&mut self) {
        self.sudo |= self.away == 0;
    }

    /// Walks something that runs on another machine or in a container.
    pub(crate) fn elsewhere<T>(&mut self, walk: impl FnOnce(&mut Self) -> T) -> T {
        self.away += 1;
        let result = walk(self);
        self.away -= 1;
        result
    }

    /// Walks the whole text and returns how much fuel that took; `None` when there was too little.
    #[cfg(test)]
    pub(crate) fn fuel_used(mut self, command: &str) -> Option<u32> {
        self.parse_and_walk(command);
        (!self.exhausted).then_some(FUEL - self.fuel)
    }

    /// Judges the write of one file.
    pub(crate) fn judge_write(mut self, path: &str) -> Finding {
        let span = Span::new(0, path.len());
        let home = self.home.clone();
        let path = path
            .strip_prefix("~/")
            .map_or_else(|| path.to_owned(), |rest| format!("{home}/{rest}"));
        self.writes_to(&path, false, span);
        self.finding
    }

    /// Characters that make the text look like another one count wherever they stand.
    fn deceptions(&mut self, command: &str) {
        let found = command
            .char_indices()
            .find(|(_, character)| crate::visible::reorders(*character) || *character == '\0');
        if let Some((at, character)) = found {
            let span = Span::new(at, at + character.len_utf8());
            self.report("hidden-characters", span, Target::None, "");
        }
    }

    fn parse_and_walk(&mut self, command: &str) -> Stream {
        let mut output = Stream::silent();
        let (failure, steps) = Parser::new(command, self.depth / 2).each(|list| {
            let printed = self.list(list);
            output.append(printed);
        });
        // The first text has been paid for by its length.
        if self.depth > 0 {
            self.step(u32::try_from(steps / PARSER_STEPS).unwrap_or(u32::MAX));
        }
        if let Some(failure) = failure {
            let span = Span::new(failure.at.min(command.len()), command.len());
            let rule = if failure.limit {
                "too-intricate"
            } else {
                "not-shell"
            };
            self.report(rule, span, Target::None, failure.what);
        }
        output
    }

    /// Walks a script that a command would run. Its findings point at `span`.
    pub(crate) fn script(&mut self, script: &str, span: Span) -> Stream {
        self.deeper(span, |run| {
            run.pointing_at(span, |run| {
                if !run.handle(script.len() * READ) || script.len() > text::MAX_TEXT {
                    run.report("too-large", span, Target::None, "");
                    return Stream::unknown();
                }
                run.parse_and_walk(script)
            })
        })
    }

    /// Walks code whose spans are not those of the text: its findings point at `span`.
    fn pointing_at<T>(&mut self, span: Span, walk: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.outer;
        self.outer = Some(outer.unwrap_or(span));
        let result = walk(self);
        self.outer = outer;
        result
    }

    /// Walks something in a subshell: only its files remain.
    pub(crate) fn subshell<T>(&mut self, walk: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.state.clone();
        let result = walk(self);
        let inner = std::mem::replace(&mut self.state, outer);
        self.state.after_subshell(&inner);
        result
    }

    /// Walks something that reads `stdin`.
    pub(crate) fn reading<T>(
        &mut self,
        stdin: Option<Stream>,
        walk: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let outer = std::mem::replace(&mut self.stdin, stdin);
        let result = walk(self);
        self.stdin = outer;
        result
    }

    /// Walks something in which nothing is worse than a question.
    pub(crate) fn at_most_ask<T>(&mut self, walk: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.ceiling, Verdict::Ask);
        let result = walk(self);
        self.ceiling = outer;
        result
    }

    /// Walks one level deeper, or asks when it is too deep.
    pub(crate) fn deeper(&mut self, span: Span, walk: impl FnOnce(&mut Self) -> Stream) -> Stream {
        if self.depth >= MAX_DEPTH || !self.step(8) {
            self.report("too-intricate", span, Target::None, "it is nested too deep");
            return Stream::unknown();
        }
        self.depth += 1;
        let output = walk(self);
        self.depth -= 1;
        output
    }

    /// Uses fuel; `false` when there is none left, which is a question by itself.
    pub(crate) fn step(&mut self, cost: u32) -> bool {
        if let Some(left) = self.fuel.checked_sub(cost) {
            self.fuel = left;
            return true;
        }
        if !self.exhausted {
            self.exhausted = true;
            self.report(
                "too-intricate",
                Span::default(),
                Target::None,
                "it takes too many steps",
            );
        }
        false
    }

    /// Changes the directory for what comes next.
    pub(crate) fn enter(&mut self, directory: Option<String>) {
        // Every relative path is built on it.
        self.handle(directory.as_ref().map_or(0, String::len));
        self.state.enter(directory);
    }

    /// Uses fuel for text that is copied or looked through.
    pub(crate) fn handle(&mut self, bytes: usize) -> bool {
        let cost = u32::try_from(bytes / BYTES_PER_STEP).unwrap_or(u32::MAX);
        cost == 0 || self.step(cost)
    }

    /// Returns how paths are read by the current command.
    pub(crate) fn paths(&self) -> Paths<'_> {
        Paths {
            context: self.context,
            home: &self.home,
            cwd: self.state.cwd.as_deref(),
        }
    }

    /// Notes what a rule found. The gravest finding is kept, of equal ones the first.
    pub(crate) fn report(&mut self, rule: &'static str, span: Span, target: Target, detail: &str) {
        let Some(rule) = rules::find(rule) else {
            debug_assert!(false, "no rule has the id {rule}");
            return;
        };
        if self.only_user_rules && !counts_everywhere(rule.category) {
            return;
        }
        // What the user denies is denied inside a container, too.
        let verdict = match rule.category {
            Category::UserRule => rule.verdict(),
            _ => rule.verdict().min(self.ceiling),
        };
        if self.allowed && verdict == Verdict::Ask && rule.category != Category::SelfControl {
            return;
        }
        self.add_key(ApprovalKey {
            category: rule.category,
            target,
        });
        let gravity = gravity(verdict, rule.category, target);
        if gravity <= self.gravity {
            return;
        }
        self.gravity = gravity;
        let why = if detail.is_empty() {
            format!("{}.", rule.why)
        } else {
            format!("{}: {}.", rule.why, text::shown(detail))
        };
        self.finding.verdict = verdict;
        self.finding.category = rule.category;
        self.finding.target = target;
        self.finding.rule = rule.id;
        self.finding.why = why;
        self.finding.span = self.outer.unwrap_or(span);
    }

    fn add_key(&mut self, key: ApprovalKey) {
        if self.finding.keys.contains(&key) {
            return;
        }
        if self.finding.keys.len() < MAX_KEYS {
            self.finding.keys.push(key);
        } else {
            self.finding.more = true;
        }
    }
}

/// Tells whether a finding counts where only the user's own rules do: they cannot be applied to
/// what cannot be read.
fn counts_everywhere(category: Category) -> bool {
    matches!(
        category,
        Category::UserRule | Category::Unparseable | Category::TooLarge
    )
}

/// Orders findings: what the mode `workspace` lets pass is milder than what it asks about.
fn gravity(verdict: Verdict, category: Category, target: Target) -> u8 {
    match verdict {
        Verdict::Allow => 0,
        Verdict::Ask if crate::approval::passes_in_workspace(category, target) => 1,
        Verdict::Ask => 2,
        Verdict::Block => 3,
    }
}
