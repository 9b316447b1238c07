//! Putting one layer on top of those before it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::error::{ConfigError, Site};
use super::keys::{self, Key};
use super::locate::Anchor;
use super::resolved::{Resolved, Source};
use super::schema::Config;
use super::secret::{shown, shown_value};
use super::slot::{MAX_SECONDS, Slot};

/// Says where a layer came from.
#[derive(Clone, Copy)]
pub(super) enum Origin<'a> {
    /// A file, with the line of each key.
    File {
        path: &'a Path,
        lines: &'a BTreeMap<&'static str, usize>,
    },
    /// The environment.
    Environment,
    /// Flags, or the embedding program.
    Overrides,
}

/// Holds a layer with what is needed to resolve it.
pub(super) struct Layer<'a> {
    /// What it says.
    pub(super) config: Config,
    /// Where it came from.
    pub(super) origin: Origin<'a>,
    /// What its relative paths start from.
    pub(super) anchor: Anchor<'a>,
}

impl Layer<'_> {
    /// Checks every value the layer has and puts it in place.
    pub(super) fn apply(mut self, resolved: &mut Resolved) -> Result<(), ConfigError> {
        for key in keys::all() {
            if self.apply_key(key, resolved)? {
                resolved.sources.insert(key.name, self.origin.source(key));
            }
        }
        Ok(())
    }

    /// Applies one key; tells whether the layer had a value for it.
    fn apply_key(&mut self, key: &Key, resolved: &mut Resolved) -> Result<bool, ConfigError> {
        let (config, origin) = (&mut self.config, self.origin);
        match &key.slot {
            Slot::Seconds { min, layer, target } => {
                let Some(given) = layer(config).take() else {
                    return Ok(false);
                };
                let valid = (*min..=MAX_SECONDS)
                    .contains(&given)
                    .then(|| Duration::try_from_secs_f64(given).ok())
                    .flatten();
                *target(resolved) = valid.ok_or_else(|| origin.bad(key, &given.to_string()))?;
            }
            Slot::Count {
                min,
                max,
                layer,
                target,
            } => {
                let Some(given) = layer(config).take() else {
                    return Ok(false);
                };
                let valid = (*min..=*max).contains(&given).then_some(given);
                *target(resolved) = valid.ok_or_else(|| origin.bad(key, &given.to_string()))?;
            }
            Slot::Amount {
                min,
                max,
                layer,
                target,
            } => {
                let Some(given) = layer(config).take() else {
                    return Ok(false);
                };
                let valid = (*min..=*max).contains(&given).then_some(given);
                *target(resolved) = valid.ok_or_else(|| origin.bad(key, &given.to_string()))?;
            }
            Slot::Text { layer, target } => {
                let Some(given) = layer(config).take() else {
                    return Ok(false);
                };
                if given.chars().any(char::is_control) {
                    return Err(origin.bad(key, &given));
                }
                if given.is_empty() {
                    return Ok(false);
                }
                *target(resolved) = Some(given);
            }
            Slot::Words { layer, target } => {
                let Some(given) = layer(config).take() else {
                    return Ok(false);
                };
                if let Some(bad) = given.iter().find(|word| word.contains('\0')) {
                    return Err(ConfigError::BadValue {
                        site: origin.site(key, None),
                        value: shown(bad),
                        takes: "a list of strings without NUL".to_owned(),
                    });
                }
                *target(resolved) = given;
            }
            Slot::Switch { layer, target } => {
                let Some(given) = layer(config).take() else {
                    return Ok(false);
                };
                *target(resolved) = given;
            }
            Slot::Folder {
                unset,
                layer,
                target,
            } => {
                let Some(given) = layer(config).take().filter(|path| !is_unset(path, unset)) else {
                    return Ok(false);
                };
                if has_nul(&given) {
                    return Err(origin.bad(key, &given.to_string_lossy()));
                }
                *target(resolved) = Some(self.anchor.resolve(&given)?);
            }
            Slot::Choice(choice) => return Ok((choice.apply)(config, resolved)),
            Slot::Variables {
                strict,
                layer,
                target,
            } => {
                let Some(given) = layer(config).take() else {
                    return Ok(false);
                };
                for (name, value) in &given {
                    if *strict {
                        check_name(key, origin, name)?;
                    }
                    if value.contains('\0') {
                        return Err(ConfigError::BadValue {
                            site: origin.site(key, Some(name)),
                            value: shown_value(name, value.as_ref()),
                            takes: "a string without NUL".to_owned(),
                        });
                    }
                }
                *target(resolved) = given;
            }
            Slot::Names {
                strict,
                layer,
                target,
            } => {
                let Some(given) = layer(config).take() else {
                    return Ok(false);
                };
                if *strict {
                    given
                        .iter()
                        .try_for_each(|name| check_name(key, origin, name))?;
                }
                *target(resolved) = given;
            }
        }
        Ok(true)
    }
}

impl Origin<'_> {
    fn source(self, key: &Key) -> Source {
        match self {
            Self::File { path, .. } => Source::File(path.to_owned()),
            Self::Environment => Source::Environment(key.variable.unwrap_or(key.name)),
            Self::Overrides => Source::Flag,
        }
    }

    fn site(self, key: &Key, part: Option<&str>) -> Site {
        let path_of_key = part.map_or_else(
            || key.name.to_owned(),
            |part| format!("{}.{}", key.name, shown(part)),
        );
        match self {
            Self::File { path, lines } => Site::File {
                path: path.to_owned(),
                line: lines.get(key.name).copied(),
                key: path_of_key,
            },
            Self::Environment => Site::Variable {
                name: key.variable.unwrap_or(key.name).to_owned(),
            },
            Self::Overrides => Site::Override { key: path_of_key },
        }
    }

    fn bad(self, key: &Key, value: &str) -> ConfigError {
        ConfigError::BadValue {
            site: self.site(key, None),
            value: shown(value),
            takes: key.slot.takes(),
        }
    }
}

/// Refuses what no shell could export as a variable.
fn check_name(key: &Key, origin: Origin<'_>, name: &str) -> Result<(), ConfigError> {
    if is_variable_name(name) {
        return Ok(());
    }
    Err(ConfigError::BadValue {
        site: origin.site(key, None),
        value: shown(name),
        takes: "names of letters, digits and `_` that do not start with a digit".to_owned(),
    })
}

/// Tells whether a shell could export a variable of this name.
pub(crate) fn is_variable_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

fn is_unset(path: &Path, unset: &[&str]) -> bool {
    path.as_os_str().is_empty() || unset.iter().any(|word| path.as_os_str() == *word)
}

fn has_nul(path: &Path) -> bool {
    path.as_os_str().as_encoded_bytes().contains(&0)
}

#[cfg(test)]
#[path = "apply_tests.rs"]
mod tests;
