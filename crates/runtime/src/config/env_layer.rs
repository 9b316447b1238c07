//! The layer that the environment gives.

use super::env::Environment;
use super::error::{ConfigError, Site};
use super::keys;
use super::schema::Config;
use super::secret::{HIDDEN, shown_value};
use super::slot::Slot;

/// Reads the variables of all keys; any other variable is not looked at.
pub(super) fn read(environment: &Environment) -> Result<Config, ConfigError> {
    let mut config = Config::default();
    for key in keys::all() {
        let Some((name, value)) = key
            .variable
            .and_then(|name| Some((name, environment.get(name)?)))
        else {
            continue;
        };
        if !key.slot.read_text(value, &mut config) {
            return Err(ConfigError::BadValue {
                site: Site::Variable {
                    name: name.to_owned(),
                },
                value: match key.slot {
                    // Nobody knows which part of it would be a secret.
                    Slot::Variables { .. } => HIDDEN.to_owned(),
                    _ => shown_value(name, value),
                },
                takes: key.slot.takes_as_text(),
            });
        }
    }
    Ok(config)
}

#[cfg(test)]
#[path = "env_layer_tests.rs"]
mod tests;
