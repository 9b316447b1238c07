//! The user's own rules: table `[guard]`. Of several that fit, the strictest holds.

use super::super::slot::{Entry, Slot};
use super::Key;

pub(super) static KEYS: &[Key] = &[
    Key {
        name: "guard.allow",
        variable: None,
        help: "Commands that pass without a question, by their first words, such as \"git push\"; * is any word.",
        slot: Slot::Words {
            each: Entry::FirstWords,
            layer: |c| &mut c.guard.allow,
            target: |r| &mut r.guard.allow,
        },
    },
    Key {
        name: "guard.ask",
        variable: None,
        help: "Commands that a person is always asked about, by their first words.",
        slot: Slot::Words {
            each: Entry::FirstWords,
            layer: |c| &mut c.guard.ask,
            target: |r| &mut r.guard.ask,
        },
    },
    Key {
        name: "guard.deny",
        variable: None,
        help: "Commands that never run, by their first words; holds in containers too.",
        slot: Slot::Words {
            each: Entry::FirstWords,
            layer: |c| &mut c.guard.deny,
            target: |r| &mut r.guard.deny,
        },
    },
    Key {
        name: "guard.allow_paths",
        variable: None,
        help: "Absolute paths that may be written and deleted without a question.",
        slot: Slot::Words {
            each: Entry::Path,
            layer: |c| &mut c.guard.allow_paths,
            target: |r| &mut r.guard.allow_paths,
        },
    },
    Key {
        name: "guard.ask_paths",
        variable: None,
        help: "Absolute paths whose writing or deleting a person is always asked about.",
        slot: Slot::Words {
            each: Entry::Path,
            layer: |c| &mut c.guard.ask_paths,
            target: |r| &mut r.guard.ask_paths,
        },
    },
    Key {
        name: "guard.deny_paths",
        variable: None,
        help: "Absolute paths that are never written or deleted; holds in containers too.",
        slot: Slot::Words {
            each: Entry::Path,
            layer: |c| &mut c.guard.deny_paths,
            target: |r| &mut r.guard.deny_paths,
        },
    },
];
