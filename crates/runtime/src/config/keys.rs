//! Every configuration key, declared once.

use super::choices::{Backend, LogLevel, Named, Persist};
use super::env;
use super::slot::{Choice, Slot};

/// Declares one key.
pub(super) struct Key {
    /// Dotted path: table and name.
    pub(super) name: &'static str,
    /// The environment variable that sets it, if there is one.
    pub(super) variable: Option<&'static str>,
    /// One line for people.
    pub(super) help: &'static str,
    /// Its type, its limits and where its value is kept.
    pub(super) slot: Slot,
}

impl Key {
    /// Returns the table and the name within it.
    pub(super) fn parts(&self) -> (&'static str, &'static str) {
        self.name.split_once('.').unwrap_or(("", self.name))
    }
}

/// Finds a key by its dotted path.
pub(super) fn find(name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.name == name)
}

/// Tells whether there is a table of this name.
pub(super) fn is_table(name: &str) -> bool {
    KEYS.iter().any(|key| key.parts().0 == name)
}

/// Shortest time where none at all makes no sense.
const SOME: f64 = 0.001;

/// Values of `terminal.cwd` that harnesses write when they mean no value.
const NO_DIRECTORY: &[&str] = &[".", "./", "auto", "cwd"];

/// All keys, in the order of the template; keys of one table stand together.
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
            layer: |c| &mut c.terminal.env,
            target: |r| &mut r.terminal.env,
        },
    },
    Key {
        name: "terminal.env_remove",
        variable: None,
        help: "Names of variables that commands do not get, besides the known credentials.",
        slot: Slot::Names {
            layer: |c| &mut c.terminal.env_remove,
            target: |r| &mut r.terminal.env_remove,
        },
    },
    Key {
        name: "terminal.env_pass",
        variable: None,
        help: "Names of variables that commands get even if they are credentials.",
        slot: Slot::Names {
            layer: |c| &mut c.terminal.env_pass,
            target: |r| &mut r.terminal.env_pass,
        },
    },
    Key {
        name: "places.lifetime_seconds",
        variable: Some(env::TERMINAL_LIFETIME_SECONDS),
        help: "Time without activity before a place is cleaned up.",
        slot: Slot::Seconds {
            min: SOME,
            layer: |c| &mut c.places.lifetime_seconds,
            target: |r| &mut r.places.lifetime,
        },
    },
    Key {
        name: "places.session_ttl_seconds",
        variable: None,
        help: "Time without use that a session's state is kept.",
        slot: Slot::Seconds {
            min: SOME,
            layer: |c| &mut c.places.session_ttl_seconds,
            target: |r| &mut r.places.session_ttl,
        },
    },
    Key {
        name: "places.batch",
        variable: Some(env::EXOSHELL_BATCH),
        help: "Give each task a work directory of its own.",
        slot: Slot::Switch {
            layer: |c| &mut c.places.batch,
            target: |r| &mut r.places.batch,
        },
    },
    Key {
        name: "places.sandbox_dir",
        variable: Some(env::TERMINAL_SANDBOX_DIR),
        help: "Folder that these work directories are made in; empty = the base directory.",
        slot: Slot::Folder {
            unset: &[],
            layer: |c| &mut c.places.sandbox_dir,
            target: |r| &mut r.places.sandbox_dir,
        },
    },
    Key {
        name: "places.disk_warning_gb",
        variable: Some(env::TERMINAL_DISK_WARNING_GB),
        help: "Disk use of all places above which there is a warning; 0 = never.",
        slot: Slot::Count {
            min: 0,
            max: 1_000_000,
            layer: |c| &mut c.places.disk_warning_gb,
            target: |r| &mut r.places.disk_warning_gb,
        },
    },
    Key {
        name: "places.linger",
        variable: None,
        help: "The local guest stays for the next caller; false = it ends with its last connection.",
        slot: Slot::Switch {
            layer: |c| &mut c.places.linger,
            target: |r| &mut r.places.linger,
        },
    },
    Key {
        name: "places.max_warm_shells",
        variable: None,
        help: "Prepared shells kept at the same time, over all sessions.",
        slot: Slot::Count {
            min: 0,
            max: 10_000,
            layer: |c| &mut c.places.max_warm_shells,
            target: |r| &mut r.places.max_warm_shells,
        },
    },
    Key {
        name: "places.guest_dir",
        variable: Some(env::EXOSHELL_GUEST_DIR),
        help: "Folder with guest programs for further architectures; empty = only the built-in one.",
        slot: Slot::Folder {
            unset: &[],
            layer: |c| &mut c.places.guest_dir,
            target: |r| &mut r.places.guest_dir,
        },
    },
    Key {
        name: "log.level",
        variable: Some(env::EXOSHELL_LOG),
        help: "How much is logged: off, error, warn, info, debug or trace.",
        slot: Slot::Choice(Choice {
            names: LogLevel::names,
            read: |text, c| store(LogLevel::from_name(text), &mut c.log.level),
            apply: |c, r| take(&mut c.log.level, &mut r.log.level),
            show: |r| r.log.level.name(),
        }),
    },
];

/// Stores a parsed choice; tells whether there was one.
fn store<T>(parsed: Option<T>, layer: &mut Option<T>) -> bool {
    let valid = parsed.is_some();
    if valid {
        *layer = parsed;
    }
    valid
}

/// Moves a choice from a layer to its target; tells whether there was one.
fn take<T>(layer: &mut Option<T>, target: &mut T) -> bool {
    layer.take().map(|value| *target = value).is_some()
}

#[cfg(test)]
#[path = "keys_tests.rs"]
mod tests;
