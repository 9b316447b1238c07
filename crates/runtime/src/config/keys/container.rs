//! What containers may use: table `[container]`.

use super::super::env;
use super::super::slot::Slot;
use super::Key;

pub(super) static KEYS: &[Key] = &[
    Key {
        name: "container.cpu",
        variable: Some(env::TERMINAL_CONTAINER_CPU),
        help: "Processors a container may use; 0 = no limit.",
        slot: Slot::Amount {
            min: 0.0,
            max: 100_000.0,
            layer: |c| &mut c.container.cpu,
            target: |r| &mut r.container.cpu,
        },
    },
    Key {
        name: "container.memory_mb",
        variable: Some(env::TERMINAL_CONTAINER_MEMORY),
        help: "Megabytes of memory a container may use; 0 = no limit.",
        slot: Slot::Count {
            min: 0,
            max: 100_000_000,
            layer: |c| &mut c.container.memory_mb,
            target: |r| &mut r.container.memory_mb,
        },
    },
    Key {
        name: "container.disk_mb",
        variable: Some(env::TERMINAL_CONTAINER_DISK),
        help: "Megabytes its filesystem may grow by, where the storage can limit it; 0 = no limit.",
        slot: Slot::Count {
            min: 0,
            max: 1_000_000_000,
            layer: |c| &mut c.container.disk_mb,
            target: |r| &mut r.container.disk_mb,
        },
    },
    Key {
        name: "container.persistent",
        variable: Some(env::TERMINAL_CONTAINER_PERSISTENT),
        help: "Keep /root and /workspace in folders of this machine, under `places.sandbox_dir`.",
        slot: Slot::Switch {
            layer: |c| &mut c.container.persistent,
            target: |r| &mut r.container.persistent,
        },
    },
];
