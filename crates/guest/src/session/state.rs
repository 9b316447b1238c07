//! What a session carries from one command to the next.

use std::collections::{BTreeMap, BTreeSet};

use super::quote::quote;

/// A variable as the shell exports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Variable {
    /// A plain exported string.
    Text(Vec<u8>),
    /// Anything else: an array, or one with more attributes.
    Declared {
        /// The letters of its attributes.
        flags: Vec<u8>,
        value: Value,
    },
}

/// The value of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// Exported, but without a value.
    Unset,
    Text(Vec<u8>),
    /// The elements, as the shell prints them.
    Array(Vec<u8>),
}

impl Variable {
    /// Returns the statement that makes it.
    fn statement(&self, name: &[u8]) -> Vec<u8> {
        match self {
            Self::Text(text) => [b"\\builtin export ", name, b"=", &quote(text)].concat(),
            Self::Declared { flags, value } => {
                let word = match value {
                    Value::Unset => name.to_vec(),
                    Value::Text(text) => [name, b"=", &quote(text)].concat(),
                    // Quoted as a whole: the bare form is no argument of a builtin.
                    Value::Array(elements) => quote(&[name, b"=", elements].concat()),
                };
                [b"\\builtin declare -", flags.as_slice(), b" ", &word].concat()
            }
        }
    }
}

/// A shell function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Function {
    /// Its definition as the shell prints it.
    pub(crate) text: Vec<u8>,
    /// Whether it is exported.
    pub(crate) exported: bool,
}

type Named<T> = BTreeMap<Vec<u8>, T>;

/// The state of a shell between two commands.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ShellState {
    pub(crate) variables: Named<Variable>,
    pub(crate) functions: Named<Function>,
    /// Alias names and the statements that make them.
    pub(crate) aliases: Named<Vec<u8>>,
    /// The `shopt` options that are on.
    pub(crate) shopts: BTreeSet<Vec<u8>>,
    /// The `set -o` options that are on.
    pub(crate) options: BTreeSet<Vec<u8>>,
    pub(crate) umask: u32,
    pub(crate) cwd: Vec<u8>,
    /// Environment entries whose names no shell can hold; passed on untouched.
    pub(crate) foreign: Named<Vec<u8>>,
}

/// Variables that belong to the shell or to us, never to the session.
const NEVER_KEPT: &[&[u8]] = &[
    b"_",
    b"PWD",
    b"SHLVL",
    b"SHELLOPTS",
    b"BASHOPTS",
    b"BASH_EXECUTION_STRING",
    b"SECONDS",
    b"BASHPID",
    b"PPID",
    b"UID",
    b"EUID",
];

/// Variables that change how a shell starts, so they are set once it has.
const SET_AFTER_START: &[&[u8]] = &[
    b"BASH_ENV",
    b"ENV",
    b"POSIXLY_CORRECT",
    b"BASH_XTRACEFD",
    b"BASH_COMPAT",
    b"PS4",
    b"IFS",
];

/// How variables begin that steer the loading of any program: one that breaks it must not break
/// the session's own shell.
const STEER_LOADING: &[&[u8]] = &[
    b"LD_",
    b"GCONV_PATH",
    b"LOCPATH",
    b"GLIBC_TUNABLES",
    b"MALLOC_",
];

/// Options that would break the next command if they were carried over.
const NEVER_CARRIED: &[&[u8]] = &[
    b"errexit",
    b"nounset",
    b"xtrace",
    b"verbose",
    b"noexec",
    b"onecmd",
    b"privileged",
    b"monitor",
    b"keyword",
    b"interactive-comments",
    b"restricted_shell",
    b"login_shell",
];

/// The longest value that goes into an `execve` environment; the kernel's cap for one string is
/// 128 KiB.
const MAX_ENVIRONMENT_VALUE: usize = 100_000;

/// Tells whether a variable may be part of a session.
pub(crate) fn is_kept(name: &[u8]) -> bool {
    !NEVER_KEPT.contains(&name)
}

/// Tells whether a function may be part of a session. These names are what our own words to the
/// shell begin with.
pub(crate) fn is_kept_function(name: &[u8]) -> bool {
    !matches!(name, b"builtin" | b"exec")
}

/// Tells whether an option may be carried over.
pub(crate) fn is_carried(name: &[u8]) -> bool {
    !NEVER_CARRIED.contains(&name)
}

/// Tells whether a shell can hold a variable of this name.
pub(crate) fn is_identifier(name: &[u8]) -> bool {
    let starts = name
        .first()
        .is_some_and(|b| b.is_ascii_alphabetic() || *b == b'_');
    starts && name.iter().all(|b| b.is_ascii_alphanumeric() || *b == b'_')
}

impl ShellState {
    /// Takes an environment; the last value of a name wins.
    pub(crate) fn set_environment(&mut self, environment: &[(Vec<u8>, Vec<u8>)]) {
        for (name, value) in environment {
            if !is_identifier(name) {
                self.foreign.insert(name.clone(), value.clone());
            } else if is_kept(name) {
                self.variables
                    .insert(name.clone(), Variable::Text(value.clone()));
            }
        }
    }

    /// Takes over what another state captured from a shell that was started from this one. What
    /// such a shell is not started with is still there.
    pub(crate) fn adopt_login(&mut self, captured: Self) {
        let withheld: Vec<_> = self
            .variables
            .iter()
            .filter(|(name, variable)| match variable {
                Variable::Text(value) => !in_environment(name, value),
                Variable::Declared { .. } => true,
            })
            .map(|(name, variable)| (name.clone(), variable.clone()))
            .collect();
        self.variables = captured.variables;
        for (name, variable) in withheld {
            self.variables.entry(name).or_insert(variable);
        }
        self.functions = captured.functions;
        // Functions that came in as variables are functions now.
        self.foreign
            .retain(|name, _| !name.starts_with(b"BASH_FUNC_"));
    }

    /// Returns the value of a plain variable.
    pub(crate) fn text(&self, name: &[u8]) -> Option<&[u8]> {
        match self.variables.get(name) {
            Some(Variable::Text(value)) => Some(value),
            _ => None,
        }
    }

    /// Returns the part of the state that goes into the environment of a new shell.
    pub(crate) fn environment(&self) -> Vec<Vec<u8>> {
        let texts = self.variables.iter().filter_map(|(name, variable)| {
            let Variable::Text(value) = variable else {
                return None;
            };
            in_environment(name, value).then(|| assignment(name, value))
        });
        let foreign = self.foreign.iter().map(|(n, v)| assignment(n, v));
        // The shell takes the logical name of its directory from here, if it fits.
        let pwd = std::iter::once(assignment(b"PWD", &self.cwd));
        texts.chain(foreign).chain(pwd).collect()
    }

    /// Returns what a shell started with [`Self::environment`] in the session's directory
    /// already has, on top of what every new shell has.
    pub(crate) fn started_from(&self, baseline: &Self) -> Self {
        let mut state = baseline.clone();
        for (name, variable) in &self.variables {
            if let Variable::Text(value) = variable
                && in_environment(name, value)
            {
                state.variables.insert(name.clone(), variable.clone());
            }
        }
        state.umask = self.umask;
        state.cwd.clone_from(&self.cwd);
        state.foreign.clone_from(&self.foreign);
        state
    }

    /// Returns the script that turns a shell in state `self` into one in state `target`.
    pub(crate) fn script_to(&self, target: &Self) -> Vec<u8> {
        let mut script = Script::default();
        let functions = changed(&self.functions, &target.functions);
        let expands = |state: &Self| state.shopts.contains(EXPAND_ALIASES);
        if !functions.is_empty() && expands(self) {
            // A definition read with aliases on would have them applied a second time.
            script.line(&[b"\\builtin shopt -u expand_aliases"]);
        }
        if self.umask != target.umask {
            script.line(&[
                b"\\builtin umask ",
                format!("{:04o}", target.umask).as_bytes(),
            ]);
        }
        if self.cwd != target.cwd {
            script.line(&[
                b"\\builtin cd -- ",
                &quote(&target.cwd),
                b" || \\builtin exit 126",
            ]);
        }
        for (name, variable) in changed(&self.variables, &target.variables) {
            match variable {
                Some(variable) => script.line(&[&variable.statement(name)]),
                None => script.line(&[b"\\builtin unset -v ", name]),
            }
        }
        for (name, function) in functions {
            match function {
                Some(function) => {
                    script.line(&[&function.text]);
                    let export: &[u8] = if function.exported { b"-f " } else { b"-fn " };
                    script.line(&[b"\\builtin export ", export, name]);
                }
                None => script.line(&[b"\\builtin unset -f ", name]),
            }
        }
        for (name, alias) in changed(&self.aliases, &target.aliases) {
            match alias {
                Some(statement) => script.line(&[b"\\builtin ", statement]),
                None => script.line(&[b"\\builtin unalias -- ", &quote(name)]),
            }
        }
        self.switches_to(target, &mut script);
        if !script.0.is_empty() && expands(target) {
            script.line(&[b"\\builtin shopt -s expand_aliases"]);
        }
        script.0
    }

    fn switches_to(&self, target: &Self, script: &mut Script) {
        for name in target.shopts.difference(&self.shopts) {
            script.line(&[b"\\builtin shopt -s ", name]);
        }
        for name in self.shopts.difference(&target.shopts) {
            script.line(&[b"\\builtin shopt -u ", name]);
        }
        for name in target.options.difference(&self.options) {
            script.line(&[b"\\builtin set -o ", name]);
        }
        for name in self.options.difference(&target.options) {
            script.line(&[b"\\builtin set +o ", name]);
        }
    }

    /// Applies what a command changed, from the state it started in to the one it ended in, to
    /// this state, so that concurrent commands merge.
    pub(crate) fn merge(&mut self, before: &Self, after: &Self, keep: Keep<'_>) {
        merge_named(
            &mut self.variables,
            &before.variables,
            &after.variables,
            |name| !keep.ignored_variables.contains(&name),
        );
        merge_named(
            &mut self.functions,
            &before.functions,
            &after.functions,
            |_| true,
        );
        merge_named(&mut self.aliases, &before.aliases, &after.aliases, |_| true);
        merge_set(&mut self.shopts, &before.shopts, &after.shopts);
        merge_set(&mut self.options, &before.options, &after.options);
        if before.umask != after.umask {
            self.umask = after.umask;
        }
        if keep.directory && before.cwd != after.cwd {
            self.cwd.clone_from(&after.cwd);
        }
    }
}

/// What of a command's changes is carried over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keep<'a> {
    /// Whether the directory is; not when the caller chose it for this command only.
    pub(crate) directory: bool,
    /// Variables that were set for this command only.
    pub(crate) ignored_variables: &'a [&'a [u8]],
}

const EXPAND_ALIASES: &[u8] = b"expand_aliases";

fn in_environment(name: &[u8], value: &[u8]) -> bool {
    value.len() <= MAX_ENVIRONMENT_VALUE
        && !SET_AFTER_START.contains(&name)
        && !STEER_LOADING.iter().any(|prefix| name.starts_with(prefix))
}

fn assignment(name: &[u8], value: &[u8]) -> Vec<u8> {
    [name, b"=", value].concat()
}

/// Lists what differs: the new value, or `None` where a name is gone.
fn changed<'a, T: PartialEq>(
    from: &'a Named<T>,
    to: &'a Named<T>,
) -> Vec<(&'a [u8], Option<&'a T>)> {
    let set = to
        .iter()
        .filter(|(name, value)| from.get(*name) != Some(*value))
        .map(|(name, value)| (name.as_slice(), Some(value)));
    let gone = from
        .keys()
        .filter(|name| !to.contains_key(*name))
        .map(|name| (name.as_slice(), None));
    set.chain(gone).collect()
}

fn merge_named<T: PartialEq + Clone>(
    into: &mut Named<T>,
    before: &Named<T>,
    after: &Named<T>,
    wanted: impl Fn(&[u8]) -> bool,
) {
    for (name, value) in changed(before, after) {
        if !wanted(name) {
            continue;
        }
        match value {
            Some(value) => {
                into.insert(name.to_vec(), value.clone());
            }
            None => {
                into.remove(name);
            }
        }
    }
}

fn merge_set(into: &mut BTreeSet<Vec<u8>>, before: &BTreeSet<Vec<u8>>, after: &BTreeSet<Vec<u8>>) {
    for gone in before.difference(after) {
        into.remove(gone);
    }
    into.extend(after.difference(before).cloned());
}

#[derive(Default)]
struct Script(Vec<u8>);

impl Script {
    fn line(&mut self, parts: &[&[u8]]) {
        for part in parts {
            self.0.extend_from_slice(part);
        }
        self.0.push(b'\n');
    }
}

#[cfg(test)]
#[path = "state_tests.rs"]
mod tests;
