//! Files that remote places get: table `[sync]`.

use super::super::slot::{Entry, Slot};
use super::Key;

pub(super) static KEYS: &[Key] = &[Key {
    name: "sync.paths",
    variable: None,
    help: "Files and folders, each as \"LOCAL:REMOTE[:ro|:rw]\"; those with rw come back when they changed.",
    slot: Slot::Words {
        each: Entry::Any,
        layer: |c| &mut c.sync.paths,
        target: |r| &mut r.sync.paths,
    },
}];
