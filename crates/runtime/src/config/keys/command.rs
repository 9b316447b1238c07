//! Any launcher that gives a pipe: table `[command]`.

use super::super::slot::{Entry, Slot};
use super::Key;

pub(super) static KEYS: &[Key] = &[
    Key {
        name: "command.launch",
        variable: None,
        help: "Words of a command that starts a program in the place, as [\"kubectl\", \"exec\", \"-i\", \"POD\", \"--\"].",
        slot: Slot::Words {
            each: Entry::Any,
            layer: |c| &mut c.command.launch,
            target: |r| &mut r.command.launch,
        },
    },
    Key {
        name: "command.put",
        variable: None,
        help: "Words of a command that copies {file} to {target} in the place; empty = through the pipe.",
        slot: Slot::Words {
            each: Entry::Any,
            layer: |c| &mut c.command.put,
            target: |r| &mut r.command.put,
        },
    },
    Key {
        name: "command.destroy",
        variable: None,
        help: "Words of a command that removes the place; empty = nothing to remove.",
        slot: Slot::Words {
            each: Entry::Any,
            layer: |c| &mut c.command.destroy,
            target: |r| &mut r.command.destroy,
        },
    },
    Key {
        name: "command.guest_path",
        variable: None,
        help: "Where the guest is in the place; empty = found by itself.",
        slot: Slot::Text {
            layer: |c| &mut c.command.guest_path,
            target: |r| &mut r.command.guest_path,
        },
    },
];
