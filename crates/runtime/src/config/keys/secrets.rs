//! What is hidden: table `[secrets]`.

use super::super::slot::Slot;
use super::Key;

pub(super) static KEYS: &[Key] = &[
    Key {
        name: "secrets.redact",
        variable: None,
        help: "Whether secrets are hidden in everything that is shown and kept.",
        slot: Slot::Switch {
            layer: |c| &mut c.secrets.redact,
            target: |r| &mut r.secrets.redact,
        },
    },
    Key {
        name: "secrets.pass",
        variable: None,
        help: "Names of variables whose values are not hidden, and that scripts get even if they look secret.",
        slot: Slot::Names {
            strict: true,
            layer: |c| &mut c.secrets.pass,
            target: |r| &mut r.secrets.pass,
        },
    },
];
