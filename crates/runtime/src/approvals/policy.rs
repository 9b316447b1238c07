//! What the user's settings say about an intent.

use std::path::Path;

use exoshell_guard::{
    Action, ApprovalKey, Category, CommandRule, Context, Finding, Grants, Guard, Input as Fed,
    Mode, PathRule, Span, Target, UserRules, Verdict,
};

use super::allow_list;
use super::intent::{Input, Intent};
use super::nested::inside_guest;
use crate::audit::AttemptKind;
use crate::config::env::{EXOSHELL_EXEC_ASK, EXOSHELL_GATEWAY_SESSION};
use crate::config::{ApprovalMode, Environment, Resolved, Source};

/// The guard with everything that decides about its findings.
#[derive(Debug)]
pub(crate) struct Policy {
    guard: Guard,
    mode: Mode,
    /// Whether a command in a guest started this program: nothing then loosens anything.
    nested: bool,
    gateway: Option<String>,
    asks_later: bool,
    home: String,
    temp: Vec<String>,
    controls: Vec<String>,
}

impl Policy {
    /// Reads the settings once. A program that descends from a guest gets the strict ones.
    pub(crate) fn new(config: &Resolved, environment: &Environment) -> Self {
        let nested = inside_guest();
        let mode = match config.approval.mode {
            ApprovalMode::Deny => Mode::Deny,
            _ if nested => Mode::Ask,
            ApprovalMode::Ask => Mode::Ask,
            ApprovalMode::Workspace => Mode::Workspace,
            ApprovalMode::Auto => Mode::Auto,
        };
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let variable = |name: &str| {
            let value = environment.get(name)?;
            Some(value.to_string_lossy().into_owned())
        };
        Self {
            guard: Guard::with_rules(rules(config, environment, nested)),
            mode,
            nested,
            gateway: variable(EXOSHELL_GATEWAY_SESSION),
            asks_later: environment.get(EXOSHELL_GATEWAY_SESSION).is_some()
                || environment.get(EXOSHELL_EXEC_ASK).is_some(),
            home: environment.user_home().map(text).unwrap_or_default(),
            temp: variable("TMPDIR").into_iter().collect(),
            controls: controls(config),
        }
    }

    pub(crate) const fn mode(&self) -> Mode {
        self.mode
    }

    pub(crate) const fn is_nested(&self) -> bool {
        self.nested
    }

    /// Tells whether a gateway asks its person itself, after the call.
    pub(crate) const fn asks_later(&self) -> bool {
        self.asks_later
    }

    /// Returns for whom a gateway calls.
    pub(crate) fn gateway(&self) -> Option<&str> {
        self.gateway.as_deref()
    }

    /// Names whom an answer for the session holds for.
    pub(crate) fn session(&self, task: &str) -> String {
        match &self.gateway {
            Some(gateway) => format!("gateway:{gateway}"),
            None => format!("task:{task}"),
        }
    }

    /// Judges an intent whose script is `text`.
    pub(crate) fn judge(&self, intent: &Intent<'_>, text: &str) -> Finding {
        let context = self.context(intent);
        let lossy;
        let input = match intent.input {
            Input::Empty => Fed::Empty,
            Input::Unknown => Fed::Unknown,
            Input::Bytes(bytes) => {
                lossy = String::from_utf8_lossy(bytes);
                Fed::Text(&lossy)
            }
        };
        if !intent.slot.spec.is_checked() {
            return self.guard.check_user_rules_fed(text, input, &context);
        }
        match intent.kind {
            AttemptKind::File => self.guard.check_write(text, &context),
            AttemptKind::Code => script(text),
            _ => self.guard.check_fed(text, input, &context),
        }
    }

    /// Judges what is written to a process that runs, and tells whether it is code: to a shell it
    /// is, to most others it is data.
    pub(crate) fn judge_input(&self, intent: &Intent<'_>, process: &str) -> (Finding, bool) {
        if !intent.slot.spec.is_checked() || only_stops(intent.text) {
            return (Finding::harmless(), false);
        }
        let context = Context {
            persists: true,
            ..self.context(intent)
        };
        let alone = self.guard.check(process, &context);
        let mut finding = self
            .guard
            .check_fed(process, Fed::Text(intent.text), &context);
        let is_shell = finding
            .keys
            .iter()
            .any(|key| key.category == Category::ShellExec);
        finding
            .keys
            .retain(|key| key.category != Category::ShellExec && !alone.keys.contains(key));
        finding.span = Span::new(0, intent.text.len());
        if finding.verdict == Verdict::Block || !finding.keys.is_empty() {
            return (finding, true);
        }
        let finding = match is_shell.then(|| unclear(intent.text)).flatten() {
            Some(why) => question(Category::DynamicCommand, why, intent.text.len()),
            None => Finding::harmless(),
        };
        (finding, is_shell)
    }

    fn context(&self, intent: &Intent<'_>) -> Context {
        let local = intent.slot.spec.is_local();
        Context {
            cwd: intent.directory.clone().unwrap_or_default(),
            home: if local {
                self.home.clone()
            } else {
                String::new()
            },
            workspace: intent.workspace.clone(),
            temp: if local { self.temp.clone() } else { Vec::new() },
            controls: self.controls.clone(),
            persists: intent.persists,
        }
    }
}

/// Returns what was allowed for good, as it stands in the file now.
pub(super) fn always(config: &Resolved) -> Grants {
    let listed = match config.source("approval.allow") {
        Source::Flag => config.approval.allow.clone(),
        // The file may have changed since; one that cannot be read allows nothing.
        _ => allow_list::read(&config.config_file).unwrap_or_default(),
    };
    let mut grants = Grants::default();
    for key in listed.iter().filter_map(|text| ApprovalKey::parse(text)) {
        grants.insert(key);
    }
    grants
}

/// Tells whether a text is nothing but keys that stop something or end the input.
fn only_stops(text: &str) -> bool {
    const STOPS: &[char] = &['\u{3}', '\u{4}', '\u{1a}', '\u{1c}'];
    text.chars().all(|key| STOPS.contains(&key))
}

/// Says why nobody can tell what a shell will make of what is typed, if so: the line is made of
/// what was typed before, by keys that edit it, or by a history.
fn unclear(text: &str) -> Option<&'static str> {
    let printed = text.trim_end_matches(['\n', '\r']);
    if printed.len() == text.len() || printed.ends_with('\\') {
        return Some("It writes a part of a line to a shell, which cannot be judged.");
    }
    let edits = |key: char| key.is_control() && key != '\n' && key != '\t';
    if printed.contains(edits) {
        return Some("It sends keys to a shell that can change what its line says.");
    }
    let history = |line: &str| {
        let line = line.trim_start();
        line.contains('!') || line.starts_with('^') || line.starts_with("fc ") || line == "fc"
    };
    printed
        .lines()
        .any(history)
        .then_some("It may make a shell repeat and change an earlier line.")
}

/// A script can do anything, so it is a question of its own.
fn script(text: &str) -> Finding {
    question(
        Category::InterpreterExec,
        "It runs a script, which can do anything that you can.",
        text.len(),
    )
}

fn question(category: Category, why: &str, length: usize) -> Finding {
    let target = Target::None;
    Finding {
        verdict: Verdict::Ask,
        category,
        target,
        why: why.to_owned(),
        span: Span::new(0, length),
        keys: vec![ApprovalKey { category, target }],
        ..Finding::harmless()
    }
}

/// Names what of ours no command may write without a yes.
pub(super) fn controls(config: &Resolved) -> Vec<String> {
    [&config.home, &config.config_file]
        .map(|path| path.to_string_lossy().into_owned())
        .to_vec()
}

/// Reads the user's own rules. Where a model may have chosen the settings, none of them allows.
pub(super) fn rules(config: &Resolved, environment: &Environment, nested: bool) -> UserRules {
    let home = environment.user_home();
    let rules = &config.guard;
    let lists = [
        (Action::Allow, &rules.allow, &rules.allow_paths),
        (Action::Ask, &rules.ask, &rules.ask_paths),
        (Action::Deny, &rules.deny, &rules.deny_paths),
    ];
    let mut all = UserRules::default();
    for (action, commands, paths) in lists {
        if action == Action::Allow && nested {
            continue;
        }
        all.commands
            .extend(commands.iter().map(|text| CommandRule::new(text, action)));
        all.paths.extend(paths.iter().map(|path| PathRule {
            path: match (path.strip_prefix('~'), home) {
                (Some(rest), Some(home)) => format!("{}{rest}", home.display()),
                _ => path.clone(),
            },
            action,
        }));
    }
    all
}
