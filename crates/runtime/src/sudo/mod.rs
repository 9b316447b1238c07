//! Passwords for sudo: where they come from, and how long they are kept.
//!
//! A command that runs `sudo` by the guard's grammar is *armed* where a password can be had: its
//! guest may then ask for one, and only when sudo itself does. Nothing is asked for ahead, so
//! `sudo` without a password, a ticket that is still valid and `sudo -n` stay what they are.

mod asking;
mod cache;
mod password;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use exoshell_guard::{Context, Guard};
use exoshell_place::Link;

pub(crate) use asking::{Answers, Asking};
use cache::Cache;
use password::Provider;
pub use password::{Password, PasswordFuture, PasswordRequest};

use crate::config::{Environment, env};
use crate::places::slot::Slot;
use crate::runtime::Runtime;

/// What is said of a password that sudo did not take.
const WRONG: &str = "the sudo password was wrong; it was tried once and is not kept";

/// What a model in a gateway is told, where nobody can be asked.
const GATEWAY_HINT: &str = "sudo may have wanted a password, and none is set up here: ask the user \
                            to set SUDO_PASSWORD in the environment of exoshell or to allow sudo \
                            without a password (NOPASSWD in sudoers), and do not guess one";

/// Whose password it is: a task in a place.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) task: String,
    pub(crate) place: String,
}

/// Where passwords come from.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    callback: Option<Provider>,
    prompt: Option<Provider>,
    cache: Cache,
    /// For whom the one of the environment was wrong.
    refused: Mutex<HashSet<Key>>,
}

impl Sources {
    fn environment(&self, environment: &Environment, key: &Key) -> Option<Password> {
        let refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.contains(key) {
            return None;
        }
        let value = environment.get(env::SUDO_PASSWORD)?;
        Some(Password::new(value.as_encoded_bytes()))
    }

    /// Forgets everything that was wrong.
    fn refuse(&self, key: &Key) {
        self.cache.forget(key);
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        refused.insert(key.clone());
    }

    fn has_any(&self, environment: &Environment, key: &Key) -> bool {
        self.callback.is_some()
            || self.prompt.is_some()
            || self.cache.holds(key)
            || self.environment(environment, key).is_some()
    }
}

/// What a command has to do with sudo.
#[derive(Debug, Clone)]
pub(crate) enum SudoUse {
    /// It runs none that could ask for a password.
    None,
    /// It runs one, and there is no password to be had.
    Without,
    /// It runs one, which may ask.
    Armed(Arc<Asking>),
}

impl SudoUse {
    /// Tells whether the guest may be asked.
    pub(crate) const fn is_armed(&self) -> bool {
        matches!(self, Self::Armed(_))
    }

    /// Returns what the caller should know, once the command has ended.
    pub(crate) fn remark(&self, environment: &Environment, exit_code: i32) -> Option<String> {
        let hint = || {
            let gateway = [env::EXOSHELL_GATEWAY_SESSION, env::EXOSHELL_EXEC_ASK]
                .iter()
                .any(|name| environment.get(name).is_some());
            (gateway && exit_code != 0).then(|| GATEWAY_HINT.to_owned())
        };
        match self {
            Self::None => None,
            Self::Without => hint(),
            Self::Armed(asking) => {
                asking.ended(exit_code);
                if asking.was_wrong() {
                    return Some(WRONG.to_owned());
                }
                asking.had_none().then(hint).flatten()
            }
        }
    }
}

impl Runtime {
    /// Makes this the first to be asked when sudo wants a password. It is asked again when what
    /// it gave was wrong; [`None`] means that it has none. What it gives is kept for the task and
    /// its place, in memory, for 15 minutes.
    ///
    /// Has no effect on a runtime that was cloned before.
    #[must_use]
    pub fn with_password_provider(
        mut self,
        provider: impl Fn(PasswordRequest) -> PasswordFuture + Send + Sync + 'static,
    ) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.passwords.callback = Some(Provider::new(provider));
        }
        self
    }

    /// Makes this the last to be asked: a person, when nobody else has a password.
    ///
    /// Has no effect on a runtime that was cloned before.
    #[must_use]
    pub fn with_password_prompt(
        mut self,
        prompt: impl Fn(PasswordRequest) -> PasswordFuture + Send + Sync + 'static,
    ) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.passwords.prompt = Some(Provider::new(prompt));
        }
        self
    }

    /// Finds out what a command has to do with sudo. Without a link there is no guest to help.
    pub(crate) fn sudo_use(
        &self,
        slot: &Slot,
        link: Option<&Link>,
        task: &str,
        command: &str,
    ) -> SudoUse {
        // Root is never asked for a password.
        let is_root = link.is_some_and(|link| link.hello().uid == 0);
        if is_root || !Guard::new().runs_sudo(command, &Context::default()) {
            return SudoUse::None;
        }
        let key = Key {
            task: task.to_owned(),
            place: slot.label.clone(),
        };
        let can = |link: &Link| {
            let capabilities = &link.hello().capabilities;
            capabilities.iter().any(|able| able == exoshell_wire::SUDO)
        };
        let inner = &self.inner;
        if link.is_some_and(can) && inner.passwords.has_any(&inner.environment, &key) {
            return SudoUse::Armed(Arc::new(Asking::new(self, key, command)));
        }
        SudoUse::Without
    }
}

#[cfg(test)]
#[path = "sudo_tests.rs"]
mod tests;
