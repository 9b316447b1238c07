//! The secrets that one runtime knows.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use exoshell_redact::{Redactor, Secrets, holds_secret};
use exoshell_wire::{RawBytes, Redact, SecretValues};

use crate::config::{Environment, Resolved, dotenv, env, is_stripped};

/// The most values that are kept of those that guests tell; the oldest go first. What a guest says
/// is not to be trusted, so it can neither fill the memory nor push out what this side knows.
const MAX_TOLD: usize = 256;

/// The longest value that is taken from a guest.
const LONGEST_TOLD: usize = 16 * 1024;

/// Where a runtime keeps the secrets it knows, and the redactor made of them; clones share them,
/// and may outlive the runtime.
///
/// Its debug form shows no value.
#[derive(Clone)]
pub struct Keeper {
    config: Arc<Resolved>,
    environment: Arc<Environment>,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    /// From the environment and the configuration; read when first needed.
    given: Option<Given>,
    /// Those that came later.
    added: Vec<(String, Vec<u8>)>,
    /// Those that guests told: the values of secret variables in their places.
    told: VecDeque<Vec<u8>>,
    redactor: Option<Redactor>,
}

struct Given {
    /// By name and value.
    variables: Vec<(String, Vec<u8>)>,
    /// Which of them commands on this machine do not have.
    withheld: Vec<Vec<u8>>,
}

impl Keeper {
    pub(crate) fn new(config: Arc<Resolved>, environment: Arc<Environment>) -> Self {
        Self {
            config,
            environment,
            inner: Arc::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a value that is secret whatever it looks like.
    pub(crate) fn add(&self, name: &str, value: &[u8]) {
        let mut inner = self.lock();
        if inner.added.iter().any(|(_, known)| known == value) {
            return;
        }
        inner.added.push((name.to_owned(), value.to_vec()));
        inner.redactor = None;
    }

    /// Adds values that a guest says are secret.
    pub(crate) fn add_told(&self, values: &SecretValues) {
        if values.is_empty() || !self.config.secrets.redact {
            return;
        }
        let known = self.redactor();
        let mut inner = self.lock();
        for RawBytes(value) in &values.0 {
            // Most places have what the caller has, which is hidden already.
            if value.len() > LONGEST_TOLD || known.knows(value) {
                continue;
            }
            if inner.told.len() >= MAX_TOLD {
                inner.told.pop_front();
            }
            inner.told.push_back(value.clone());
            inner.redactor = None;
        }
    }

    /// Adds the values of those variables that hold secrets.
    pub(crate) fn add_variables<'a>(
        &self,
        variables: impl IntoIterator<Item = (&'a String, &'a String)>,
    ) {
        for (name, value) in variables {
            if holds_secret(name, value.as_bytes()) {
                self.add(name, value.as_bytes());
            }
        }
    }

    /// Returns the redactor for what is known now; one that hides nothing where that is wanted.
    pub fn redactor(&self) -> Redactor {
        if self.config.secrets.redact {
            self.strict_redactor()
        } else {
            Redactor::off()
        }
    }

    /// Returns the redactor for what is known now, for what is kept: the audit and questions.
    pub(crate) fn strict_redactor(&self) -> Redactor {
        let config = &*self.config;
        let mut inner = self.lock();
        let Inner {
            given,
            added,
            told,
            redactor,
        } = &mut *inner;
        let given = given.get_or_insert_with(|| Given::read(config, &self.environment));
        let make = || {
            let known = given.variables.iter().chain(added.iter());
            let secrets = Secrets::new().pass(config.secrets.pass.iter().cloned());
            let secrets = known.fold(secrets, |secrets, (name, value)| {
                secrets.value(name.as_str(), value.as_slice())
            });
            Redactor::new(&told.iter().fold(secrets, |secrets, value| {
                secrets.value("", value.as_slice())
            }))
        };
        redactor.get_or_insert_with(make).clone()
    }

    /// Returns what a guest is told to hide. Only one on this machine is told values: a place that
    /// does not have a secret must not get it by being asked to hide it. What such a place prints
    /// of them all the same is hidden when it arrives here.
    pub(crate) fn for_guest(&self, local: bool) -> Option<Redact> {
        let config = &*self.config;
        if !config.secrets.redact {
            return None;
        }
        let pass = config.secrets.pass.clone();
        let mut values = SecretValues::default();
        if local {
            let mut inner = self.lock();
            let Inner { given, added, .. } = &mut *inner;
            let given = given.get_or_insert_with(|| Given::read(config, &self.environment));
            let added = added.iter().filter(|(name, _)| !pass.contains(name));
            let known = given.withheld.iter().chain(added.map(|(_, value)| value));
            values = SecretValues(known.cloned().map(RawBytes).collect());
        }
        Some(Redact { pass, values })
    }
}

impl Given {
    /// Collects the secrets of the caller's environment, of the configuration and of the values
    /// that containers get.
    fn read(config: &Resolved, environment: &Environment) -> Self {
        let mut found: BTreeMap<(String, Vec<u8>), bool> = BTreeMap::new();
        let pass = &config.secrets.pass;
        let mut note = |name: &str, value: &[u8], sure: bool, withheld: bool| {
            // A passed value must be known as well: it may be part of another one.
            if sure || holds_secret(name, value) || pass.iter().any(|passed| passed == name) {
                found.insert((name.to_owned(), value.to_vec()), withheld);
            }
        };
        let terminal = &config.terminal;
        for (name, value) in environment.iter() {
            let name = name.to_string_lossy();
            let withheld = is_stripped(&name, &terminal.env_remove, &terminal.env_pass);
            let sure = name == env::SUDO_PASSWORD;
            note(&name, value.as_encoded_bytes(), sure, withheld);
        }
        for (name, value) in &terminal.env {
            note(name, value.as_bytes(), false, false);
        }
        // One that others can read is not forwarded, but hidden all the same.
        let forwarded = dotenv::read_to_hide(&config.home.join(".env"));
        for (name, value) in config.docker.env.iter().chain(&forwarded) {
            note(name, value.as_bytes(), false, true);
        }
        let withheld = found
            .iter()
            .filter(|((name, _), withheld)| **withheld && !pass.contains(name))
            .map(|((_, value), _)| value.clone())
            .collect();
        Self {
            variables: found.into_keys().collect(),
            withheld,
        }
    }
}

impl std::fmt::Debug for Keeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let inner = self.lock();
        f.debug_struct("Keeper")
            .field("added", &inner.added.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "keeper_tests.rs"]
mod tests;
