//! Putting one layer on top of those before it.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use super::error::{ConfigError, Site};
use super::keys::{self, Key};
use super::locate::Anchor;
use super::resolved::{Resolved, Source};
use super::schema::Config;
use super::secret::{shown, shown_value};
use super::slot::{Entry, MAX_SECONDS, Slot};

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
        let (config, origin, anchor) = (&mut self.config, self.origin, self.anchor);
        match &key.slot {
            Slot::Seconds { min, layer, target } => put(layer(config), target(resolved), |given| {
                let given = origin.within(key, given, *min..=MAX_SECONDS)?;
                Duration::try_from_secs_f64(given)
                    .map_err(|_out_of_range| origin.bad(key, &given.to_string()))
            }),
            Slot::Count {
                min,
                max,
                layer,
                target,
            } => put(layer(config), target(resolved), |given| {
                origin.within(key, given, *min..=*max)
            }),
            Slot::Amount {
                min,
                max,
                layer,
                target,
            } => put(layer(config), target(resolved), |given| {
                origin.within(key, given, *min..=*max)
            }),
            Slot::Text { layer, target } => {
                let given = layer(config);
                given.take_if(|text| text.is_empty());
                put(given, target(resolved), |text| origin.text(key, text))
            }
            Slot::Words {
                each,
                layer,
                target,
            } => put(layer(config), target(resolved), |words| {
                origin.words(key, *each, words)
            }),
            Slot::Switch { layer, target } => put(layer(config), target(resolved), Ok),
            Slot::Folder {
                unset,
                layer,
                target,
            } => {
                let given = layer(config);
                given.take_if(|path| is_unset(path, unset));
                put(given, target(resolved), |path| {
                    if has_nul(&path) {
                        return Err(origin.bad(key, &path.to_string_lossy()));
                    }
                    anchor.resolve(&path).map(Some)
                })
            }
            Slot::Choice(choice) => Ok((choice.apply)(config, resolved)),
            Slot::Variables {
                strict,
                layer,
                target,
            } => put(layer(config), target(resolved), |given| {
                origin.variables(key, *strict, given)
            }),
            Slot::Names {
                strict,
                layer,
                target,
            } => put(layer(config), target(resolved), |names| {
                origin.names(key, *strict, names)
            }),
        }
    }
}

/// Puts a checked value in place; tells whether there was one.
fn put<T, U>(
    given: &mut Option<T>,
    target: &mut U,
    check: impl FnOnce(T) -> Result<U, ConfigError>,
) -> Result<bool, ConfigError> {
    let Some(given) = given.take() else {
        return Ok(false);
    };
    *target = check(given)?;
    Ok(true)
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

    fn within<T: PartialOrd + ToString>(
        self,
        key: &Key,
        given: T,
        range: RangeInclusive<T>,
    ) -> Result<T, ConfigError> {
        if range.contains(&given) {
            return Ok(given);
        }
        Err(self.bad(key, &given.to_string()))
    }

    fn text(self, key: &Key, text: String) -> Result<Option<String>, ConfigError> {
        if text.chars().any(char::is_control) {
            return Err(self.bad(key, &text));
        }
        Ok(Some(text))
    }

    fn words(self, key: &Key, each: Entry, words: Vec<String>) -> Result<Vec<String>, ConfigError> {
        match words.iter().find(|word| !each.fits(word)) {
            None => Ok(words),
            Some(bad) => Err(ConfigError::BadValue {
                site: self.site(key, None),
                value: shown(bad),
                takes: if bad.contains('\0') {
                    format!("{} without NUL", each.takes())
                } else {
                    each.takes().to_owned()
                },
            }),
        }
    }

    fn variables(
        self,
        key: &Key,
        strict: bool,
        given: BTreeMap<String, String>,
    ) -> Result<BTreeMap<String, String>, ConfigError> {
        for (name, value) in &given {
            if strict {
                check_name(key, self, name)?;
            }
            if value.contains('\0') {
                return Err(ConfigError::BadValue {
                    site: self.site(key, Some(name)),
                    value: shown_value(name, value.as_ref()),
                    takes: "a string without NUL".to_owned(),
                });
            }
        }
        Ok(given)
    }

    fn names(
        self,
        key: &Key,
        strict: bool,
        names: Vec<String>,
    ) -> Result<Vec<String>, ConfigError> {
        if strict {
            names
                .iter()
                .try_for_each(|name| check_name(key, self, name))?;
        }
        Ok(names)
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
