//! What is hidden in the things that a guest keeps of a command.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use exoshell_redact::{Redactor, Secrets, holds_secret};
use exoshell_wire::{Exec, RawBytes, Redact, SecretValues};

use crate::session::state::{ShellState, Value, Variable};

/// The secrets of one command: those of the variables it has, and those that the host named.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hidden {
    /// Nothing when the host does not want anything hidden.
    secrets: Option<Secrets>,
    told: SecretValues,
}

impl Hidden {
    /// Collects the secrets of a command that starts from a state.
    pub(crate) fn new(state: &ShellState, exec: &Exec) -> Self {
        let Some(Redact { pass, values }) = &exec.redact else {
            return Self::default();
        };
        let mut secrets = Secrets::new().pass(pass.iter().cloned());
        let mut told = Vec::new();
        for (name, variable) in &state.variables {
            let (Variable::Text(value)
            | Variable::Declared {
                value: Value::Text(value),
                ..
            }) = variable
            else {
                continue;
            };
            let name = String::from_utf8_lossy(name);
            let passed = pass.iter().any(|passed| *passed == name);
            if !passed && !holds_secret(&name, value) {
                continue;
            }
            if !passed {
                told.push(RawBytes(value.clone()));
            }
            secrets = secrets.value(name, value.as_slice());
        }
        for RawBytes(value) in &values.0 {
            secrets = secrets.value("", value.as_slice());
        }
        Self {
            secrets: Some(secrets),
            told: SecretValues(told),
        }
    }

    /// Returns the values of the command's secret variables, for the host to hide.
    pub(crate) const fn told(&self) -> &SecretValues {
        &self.told
    }
}

/// How many redactors are kept at hand.
const KEPT: usize = 4;

/// The redactors that were used last. Most commands have the same secrets, and the tables of a
/// redactor are worth sharing.
#[derive(Debug, Default)]
pub(crate) struct Redactors(Mutex<VecDeque<(Secrets, Redactor)>>);

impl Redactors {
    /// Returns the redactor of a command.
    fn of(&self, hidden: &Hidden) -> Redactor {
        let Some(secrets) = &hidden.secrets else {
            return Redactor::off();
        };
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, redactor)) = kept.iter().find(|(known, _)| known == secrets) {
            return redactor.clone();
        }
        let redactor = Redactor::new(secrets);
        if kept.len() >= KEPT {
            kept.pop_front();
        }
        kept.push_back((secrets.clone(), redactor.clone()));
        redactor
    }
}

/// The redactor of a command, made when it is needed: most commands say little and keep nothing.
#[derive(Debug, Clone)]
pub(crate) struct LazyRedactor {
    redactors: Arc<Redactors>,
    hidden: Hidden,
}

impl LazyRedactor {
    pub(crate) const fn new(redactors: Arc<Redactors>, hidden: Hidden) -> Self {
        Self { redactors, hidden }
    }

    /// Makes it, or finds the one that another command has.
    pub(crate) fn get(&self) -> Redactor {
        self.redactors.of(&self.hidden)
    }

    /// Hides shapes only.
    #[cfg(test)]
    pub(crate) fn shapes() -> Self {
        let secrets = Some(Secrets::new());
        let told = SecretValues::default();
        Self::new(Arc::default(), Hidden { secrets, told })
    }
}
