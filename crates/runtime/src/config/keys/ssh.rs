//! Remote hosts: table `[ssh]`.

use super::super::env;
use super::super::slot::{Entry, Slot};
use super::Key;

pub(super) static KEYS: &[Key] = &[
    Key {
        name: "ssh.host",
        variable: Some(env::TERMINAL_SSH_HOST),
        help: "Host name, or an alias of the ssh configuration.",
        slot: Slot::Text {
            layer: |c| &mut c.ssh.host,
            target: |r| &mut r.ssh.host,
        },
    },
    Key {
        name: "ssh.user",
        variable: Some(env::TERMINAL_SSH_USER),
        help: "User name; empty = as ssh chooses.",
        slot: Slot::Text {
            layer: |c| &mut c.ssh.user,
            target: |r| &mut r.ssh.user,
        },
    },
    Key {
        name: "ssh.port",
        variable: Some(env::TERMINAL_SSH_PORT),
        help: "Port; 0 = as ssh chooses.",
        slot: Slot::Count {
            min: 0,
            max: 65_535,
            layer: |c| &mut c.ssh.port,
            target: |r| &mut r.ssh.port,
        },
    },
    Key {
        name: "ssh.key",
        variable: Some(env::TERMINAL_SSH_KEY),
        help: "Private key; empty = as ssh chooses.",
        slot: Slot::Folder {
            unset: &[],
            layer: |c| &mut c.ssh.key,
            target: |r| &mut r.ssh.key,
        },
    },
    Key {
        name: "ssh.options",
        variable: None,
        help: "Further options of ssh, each as \"Name=value\".",
        slot: Slot::Words {
            each: Entry::Any,
            layer: |c| &mut c.ssh.options,
            target: |r| &mut r.ssh.options,
        },
    },
];
