//! How places live: table `[places]`.

use super::super::env;
use super::super::slot::Slot;
use super::{Key, SOME};

pub(super) static KEYS: &[Key] = &[
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
];
