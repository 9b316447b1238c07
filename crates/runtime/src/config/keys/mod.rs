//! Every configuration key, declared once.

mod approval;
mod command;
mod container;
mod docker;
mod guard;
mod log;
mod places;
mod secrets;
mod ssh;
mod sync;
mod terminal;

use super::slot::Slot;

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
    all().find(|key| key.name == name)
}

/// Tells whether there is a table of this name.
pub(super) fn is_table(name: &str) -> bool {
    all().any(|key| key.parts().0 == name)
}

/// Shortest time where none at all makes no sense.
const SOME: f64 = 0.001;

/// All tables, in the order of the template.
static TABLES: &[&[Key]] = &[
    terminal::KEYS,
    places::KEYS,
    container::KEYS,
    docker::KEYS,
    ssh::KEYS,
    command::KEYS,
    sync::KEYS,
    approval::KEYS,
    guard::KEYS,
    secrets::KEYS,
    log::KEYS,
];

/// Goes through all keys, in the order of the template; keys of one table stand together.
pub(super) fn all() -> impl Iterator<Item = &'static Key> {
    TABLES.iter().copied().flatten()
}

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
