//! How commands run: table `[terminal]`.

use super::super::choices::{Backend, Named, Persist};
use super::super::env;
use super::super::slot::{Choice, Slot};
use super::{Key, SOME, store, take};

/// Values of `terminal.cwd` that harnesses write when they mean no value.
const NO_DIRECTORY: &[&str] = &[".", "./", "auto", "cwd"];

pub(super) static KEYS: &[Key] = &[
    Key {
        name: "terminal.backend",
        variable: Some(env::TERMINAL_ENV),
        help: "Kind of place that tasks use.",
        slot: Slot::Choice(Choice {
            names: Backend::names,
            read: |text, c| store(Backend::from_name(text), &mut c.terminal.backend),
            apply: |c, r| take(&mut c.terminal.backend, &mut r.terminal.backend),
            show: |r| r.terminal.backend.name(),
        }),
    },
    Key {
        name: "terminal.cwd",
        variable: Some(env::TERMINAL_CWD),
        help: "Directory that sessions start in; empty = the caller's.",
        slot: Slot::Folder {
            unset: NO_DIRECTORY,
            layer: |c| &mut c.terminal.cwd,
            target: |r| &mut r.terminal.cwd,
        },
    },
    Key {
        name: "terminal.timeout_seconds",
        variable: Some(env::TERMINAL_TIMEOUT),
        help: "How long a foreground command may take.",
        slot: Slot::Seconds {
            min: SOME,
            layer: |c| &mut c.terminal.timeout_seconds,
            target: |r| &mut r.terminal.timeout,
        },
    },
    Key {
        name: "terminal.max_timeout_seconds",
        variable: Some(env::TERMINAL_MAX_FOREGROUND_TIMEOUT),
        help: "Longest timeout a call may ask for; a longer one is clamped.",
        slot: Slot::Seconds {
            min: SOME,
            layer: |c| &mut c.terminal.max_timeout_seconds,
            target: |r| &mut r.terminal.max_timeout,
        },
    },
    Key {
        name: "terminal.kill_grace_seconds",
        variable: None,
        help: "Time between asking a command to end (TERM) and ending it (KILL).",
        slot: Slot::Seconds {
            min: 0.0,
            layer: |c| &mut c.terminal.kill_grace_seconds,
            target: |r| &mut r.terminal.kill_grace,
        },
    },
    Key {
        name: "terminal.output_limit_chars",
        variable: None,
        help: "Characters of output in a result; the middle of longer output is left out.",
        slot: Slot::Count {
            min: 1,
            max: 100_000_000,
            layer: |c| &mut c.terminal.output_limit_chars,
            target: |r| &mut r.terminal.output_limit_chars,
        },
    },
    Key {
        name: "terminal.spill_limit_mb",
        variable: None,
        help: "Megabytes of full output kept on disk per command.",
        slot: Slot::Count {
            min: 1,
            max: 1_000_000,
            layer: |c| &mut c.terminal.spill_limit_mb,
            target: |r| &mut r.terminal.spill_limit_mb,
        },
    },
    Key {
        name: "terminal.login_timeout_seconds",
        variable: None,
        help: "How long the login shell may take when its environment is captured.",
        slot: Slot::Seconds {
            min: SOME,
            layer: |c| &mut c.terminal.login_timeout_seconds,
            target: |r| &mut r.terminal.login_timeout,
        },
    },
    Key {
        name: "terminal.persist",
        variable: None,
        help: "\"persist\": directory and variables carry over to the next call; \"reset\": each call starts afresh.",
        slot: Slot::Choice(Choice {
            names: Persist::names,
            read: |text, c| store(Persist::from_name(text), &mut c.terminal.persist),
            apply: |c, r| take(&mut c.terminal.persist, &mut r.terminal.persist),
            show: |r| r.terminal.persist.name(),
        }),
    },
    Key {
        name: "terminal.env",
        variable: None,
        help: "Variables that commands get in addition, as { NAME = \"value\" }.",
        slot: Slot::Variables {
            strict: true,
            layer: |c| &mut c.terminal.env,
            target: |r| &mut r.terminal.env,
        },
    },
    Key {
        name: "terminal.env_remove",
        variable: None,
        help: "Names of variables that commands do not get, besides the known credentials.",
        slot: Slot::Names {
            strict: true,
            layer: |c| &mut c.terminal.env_remove,
            target: |r| &mut r.terminal.env_remove,
        },
    },
    Key {
        name: "terminal.env_pass",
        variable: None,
        help: "Names of variables that commands get even if they are credentials.",
        slot: Slot::Names {
            strict: true,
            layer: |c| &mut c.terminal.env_pass,
            target: |r| &mut r.terminal.env_pass,
        },
    },
];
