//! What the user's settings say about an intent.

use std::path::Path;

use exoshell_guard::{
    Action, ApprovalKey, Category, CommandRule, Context, Finding, Grants, Guard, Mode, PathRule,
    Span, Target, UserRules, Verdict,
};

use super::allow_list;
use super::intent::{Intent, fed};
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
        if !intent.slot.spec.is_checked() {
            return self.guard.check_user_rules(text, &context);
        }
        match intent.kind {
            AttemptKind::File => self.guard.check_write(text, &context),
            AttemptKind::Code => script(text),
            _ => self.guard.check(text, &context),
        }
    }

    /// Judges what is written to a process that runs: to a shell it is a command, to most others
    /// it is data.
    pub(crate) fn judge_input(&self, intent: &Intent<'_>, process: &str) -> Finding {
        if !intent.slot.spec.is_checked() || only_keys(intent.text) {
            return Finding::harmless();
        }
        let context = self.context(intent);
        let mut script = String::new();
        fed(&mut script, process, intent.text);
        let alone = self.guard.check(process, &context);
        let mut finding = self.guard.check(&script, &context);
        let before = finding.keys.len();
        finding
            .keys
            .retain(|key| key.category != Category::ShellExec && !alone.keys.contains(key));
        let is_shell = before > finding.keys.len() + alone.keys.len();
        if finding.verdict != Verdict::Block && finding.keys.is_empty() {
            let whole = intent.text.ends_with(['\n', '\r']);
            return if is_shell && !whole {
                question(
                    Category::DynamicCommand,
                    "It writes a part of a line to a shell, which cannot be judged.",
                    intent.text.len(),
                )
            } else {
                Finding::harmless()
            };
        }
        finding.span = Span::new(0, intent.text.len());
        finding
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

/// Tells whether a text is nothing but keys that write no character: control keys, arrows.
fn only_keys(text: &str) -> bool {
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let mut after = &rest[first.len_utf8()..];
        if !first.is_control() || first == '\n' || first == '\r' {
            return false;
        }
        if let Some(sequence) = (first == '\u{1b}')
            .then(|| after.strip_prefix('[').or(after.strip_prefix('O')))
            .flatten()
        {
            let end = sequence.find(|c: char| !c.is_ascii_digit() && c != ';');
            after = sequence
                .get(end.map_or(sequence.len(), |at| at + 1)..)
                .unwrap_or("");
        }
        rest = after;
    }
    true
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
