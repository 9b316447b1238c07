//! What is logged: table `[log]`.

use super::super::choices::{LogLevel, Named};
use super::super::env;
use super::super::slot::{Choice, Slot};
use super::{Key, store, take};

pub(super) static KEYS: &[Key] = &[Key {
    name: "log.level",
    variable: Some(env::EXOSHELL_LOG),
    help: "How much is logged: off, error, warn, info, debug or trace.",
    slot: Slot::Choice(Choice {
        names: LogLevel::names,
        read: |text, c| store(LogLevel::from_name(text), &mut c.log.level),
        apply: |c, r| take(&mut c.log.level, &mut r.log.level),
        show: |r| r.log.level.name(),
    }),
}];
