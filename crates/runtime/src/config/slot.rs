//! The types a key can have: what each takes, how it is read, and how it is written.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

pub(super) use super::entry::Entry;
use super::resolved::Resolved;
use super::schema::{Config, masked};
use super::secret::shown;

/// Longest time a setting may name: ten years.
pub(super) const MAX_SECONDS: f64 = 315_360_000.0;

/// Reaches a field of a layer.
type Layer<T> = fn(&mut Config) -> &mut Option<T>;
/// Reaches a field of the resolved configuration.
type Target<T> = fn(&mut Resolved) -> &mut T;

/// Holds a key's type, its limits, and where its value is kept.
pub(super) enum Slot {
    /// A time, given in seconds.
    Seconds {
        min: f64,
        layer: Layer<f64>,
        target: Target<Duration>,
    },
    /// A whole number.
    Count {
        min: usize,
        max: usize,
        layer: Layer<usize>,
        target: Target<usize>,
    },
    /// A number that need not be whole.
    Amount {
        min: f64,
        max: f64,
        layer: Layer<f64>,
        target: Target<f64>,
    },
    /// A word or name; empty means that nothing was given.
    Text {
        layer: Layer<String>,
        target: Target<Option<String>>,
    },
    /// A list of words. An entry that is no string is kept as it is written, for whoever uses the
    /// list to pass over.
    Words {
        /// What each of them must be.
        each: Entry,
        layer: Layer<Vec<String>>,
        target: Target<Vec<String>>,
    },
    /// Yes or no.
    Switch {
        layer: Layer<bool>,
        target: Target<bool>,
    },
    /// A path; empty, or one of `unset`, means that nothing was given.
    Folder {
        unset: &'static [&'static str],
        layer: Layer<PathBuf>,
        target: Target<Option<PathBuf>>,
    },
    /// One of a few names.
    Choice(Choice),
    /// Environment variables with values. Where it is not strict, bad names are left to whoever
    /// uses them.
    Variables {
        strict: bool,
        layer: Layer<BTreeMap<String, String>>,
        target: Target<BTreeMap<String, String>>,
    },
    /// Names of environment variables, likewise.
    Names {
        strict: bool,
        layer: Layer<Vec<String>>,
        target: Target<Vec<String>>,
    },
}

/// Holds how a key that takes one of a few names is read and kept.
pub(super) struct Choice {
    /// Lists the names.
    pub(super) names: fn() -> Vec<&'static str>,
    /// Reads a name into a layer; false = no such name.
    pub(super) read: fn(&str, &mut Config) -> bool,
    /// Moves the value from a layer; false = the layer has none.
    pub(super) apply: fn(&mut Config, &mut Resolved) -> bool,
    /// Names the resolved value.
    pub(super) show: fn(&Resolved) -> &'static str,
}

/// Says why a TOML value was not read.
#[derive(Debug, PartialEq)]
pub(super) enum Mismatch {
    /// It has another type.
    Type { found: &'static str },
    /// An entry of it, at this place in the table or list and this byte of the file, is not a string.
    Entry {
        part: String,
        offset: usize,
        found: &'static str,
    },
    /// It has the right type, but says something the key does not take.
    Value(String),
}

impl Slot {
    /// Returns what the key takes, for people.
    pub(super) fn takes(&self) -> String {
        match self {
            Self::Seconds { min, .. } => {
                format!("a number of seconds from {min} to {MAX_SECONDS} (10 years)")
            }
            Self::Count { min, max, .. } => format!("a whole number from {min} to {max}"),
            Self::Amount { min, max, .. } => format!("a number from {min} to {max}"),
            Self::Text { .. } => "a line of text".to_owned(),
            Self::Words { each, .. } => each.takes().to_owned(),
            Self::Switch { .. } => "`true` or `false`".to_owned(),
            Self::Folder { .. } => "a path".to_owned(),
            Self::Choice(choice) => {
                let names = (choice.names)();
                let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
                match quoted.split_last() {
                    Some((last, [])) => last.clone(),
                    Some((last, others)) => format!("{} or {last}", others.join(", ")),
                    None => String::new(),
                }
            }
            Self::Variables { .. } => "a table of variables, each a name with a string".to_owned(),
            Self::Names { .. } => "a list of variable names".to_owned(),
        }
    }

    /// Returns what the key takes when it is set by the environment, for people.
    pub(super) fn takes_as_text(&self) -> String {
        let json = match self {
            Self::Words { .. } | Self::Variables { .. } => ", as JSON",
            _ => "",
        };
        self.takes() + json
    }

    /// Reads the text of an environment variable into a layer; false = it does not parse.
    pub(super) fn read_text(&self, text: &OsStr, config: &mut Config) -> bool {
        if let Self::Folder { layer, .. } = self {
            // Not trimmed and not decoded: every byte of a path counts.
            *layer(config) = Some(text.into());
            return true;
        }
        let Some(text) = text.to_str().map(str::trim) else {
            return false;
        };
        match self {
            Self::Seconds { layer, .. } | Self::Amount { layer, .. } => {
                put(text.parse().ok(), layer(config))
            }
            Self::Count { layer, .. } => put(text.parse().ok(), layer(config)),
            Self::Switch { layer, .. } => put(switch(text), layer(config)),
            Self::Text { layer, .. } => put(Some(text.to_owned()), layer(config)),
            Self::Choice(choice) => (choice.read)(text, config),
            Self::Words { layer, .. } => put(words(text), layer(config)),
            Self::Names { layer, .. } => {
                let names = words(text).or_else(|| Some(listed(text)));
                put(names, layer(config))
            }
            Self::Variables { layer, .. } => put(variables(text), layer(config)),
            Self::Folder { .. } => false,
        }
    }

    /// Reads a value of the file into a layer.
    pub(super) fn read_toml(
        &self,
        value: &DeValue<'_>,
        config: &mut Config,
    ) -> Result<(), Mismatch> {
        match (self, value) {
            (
                Self::Seconds { layer, .. } | Self::Amount { layer, .. },
                DeValue::Integer(number),
            ) => {
                let parsed = i32::from_str_radix(number.as_str(), number.radix());
                *layer(config) = Some(
                    parsed
                        .map(f64::from)
                        .map_err(|_far_out| Mismatch::Value(number.to_string()))?,
                );
            }
            (Self::Seconds { layer, .. } | Self::Amount { layer, .. }, DeValue::Float(number)) => {
                *layer(config) = Some(number.as_str().parse().unwrap_or(f64::NAN));
            }
            (Self::Count { layer, .. }, DeValue::Integer(number)) => {
                let parsed = usize::from_str_radix(number.as_str(), number.radix());
                *layer(config) =
                    Some(parsed.map_err(|_far_out| Mismatch::Value(number.to_string()))?);
            }
            (Self::Text { layer, .. }, DeValue::String(text)) => {
                *layer(config) = Some(text.to_string());
            }
            (Self::Switch { layer, .. }, DeValue::Boolean(value)) => *layer(config) = Some(*value),
            (Self::Folder { layer, .. }, DeValue::String(path)) => {
                *layer(config) = Some(path.as_ref().into());
            }
            (Self::Choice(choice), DeValue::String(name)) => {
                if !(choice.read)(name, config) {
                    return Err(Mismatch::Value(name.to_string()));
                }
            }
            (_, DeValue::Array(items)) => return self.read_list(items, config),
            (_, DeValue::Table(table)) => return self.read_table(table, config),
            (_, other) => {
                return Err(Mismatch::Type {
                    found: type_name(other),
                });
            }
        }
        Ok(())
    }

    fn read_list(
        &self,
        items: &[Spanned<DeValue<'_>>],
        config: &mut Config,
    ) -> Result<(), Mismatch> {
        let (layer, strict) = match self {
            Self::Words { layer, .. } => (layer, false),
            Self::Names { layer, strict, .. } => (layer, *strict),
            _ => return Err(Mismatch::Type { found: "a list" }),
        };
        let entry = |(index, item): (usize, &Spanned<DeValue<'_>>)| {
            if strict {
                string(item, || format!("[{index}]"))
            } else {
                Ok(literal(item.get_ref()))
            }
        };
        let entries = items.iter().enumerate().map(entry);
        *layer(config) = Some(entries.collect::<Result<_, _>>()?);
        Ok(())
    }

    fn read_table(&self, table: &DeTable<'_>, config: &mut Config) -> Result<(), Mismatch> {
        let Self::Variables { layer, strict, .. } = self else {
            return Err(Mismatch::Type { found: "a table" });
        };
        let pair = |(name, value): (&Spanned<Cow<'_, str>>, &Spanned<DeValue<'_>>)| {
            let name = name.get_ref();
            let value = if *strict {
                string(value, || format!(".{}", shown(name)))?
            } else {
                literal(value.get_ref())
            };
            Ok((name.to_string(), value))
        };
        *layer(config) = Some(table.iter().map(pair).collect::<Result<_, _>>()?);
        Ok(())
    }

    /// Returns the resolved value as JSON, with secrets hidden.
    pub(super) fn value(&self, resolved: &mut Resolved) -> Value {
        match self {
            Self::Seconds { target, .. } => seconds(*target(resolved)),
            Self::Count { target, .. } => Value::from(*target(resolved)),
            Self::Amount { target, .. } => number(*target(resolved)),
            Self::Text { target, .. } => target(resolved).clone().map_or(Value::Null, Value::from),
            Self::Words { target, .. } | Self::Names { target, .. } => {
                Value::from(target(resolved).clone())
            }
            Self::Switch { target, .. } => Value::from(*target(resolved)),
            Self::Folder { target, .. } => target(resolved)
                .as_deref()
                .map_or(Value::Null, |path| Value::from(path.to_string_lossy())),
            Self::Choice(choice) => Value::from((choice.show)(resolved)),
            Self::Variables { target, .. } => masked(target(resolved))
                .into_iter()
                .map(|(name, value)| (name.to_owned(), Value::from(value)))
                .collect(),
        }
    }
}

/// Stores a parsed value; tells whether there was one.
fn put<T>(parsed: Option<T>, layer: &mut Option<T>) -> bool {
    let valid = parsed.is_some();
    *layer = parsed;
    valid
}

/// Returns a TOML value as text: a string as it is, anything else as it is written.
fn literal(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(value) => value.to_string(),
        other => format!("({})", type_name(other)),
    }
}

/// Reads a list of words from the environment: JSON.
fn words(text: &str) -> Option<Vec<String>> {
    let items: Vec<Value> = serde_json::from_str(text).ok()?;
    Some(items.iter().map(json_literal).collect())
}

/// Reads a list of names separated by commas.
fn listed(text: &str) -> Vec<String> {
    text.split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

/// Reads variables from the environment: a JSON object.
fn variables(text: &str) -> Option<BTreeMap<String, String>> {
    let pairs: BTreeMap<String, Value> = serde_json::from_str(text).ok()?;
    Some(
        pairs
            .into_iter()
            .map(|(name, value)| (name, json_literal(&value)))
            .collect(),
    )
}

fn json_literal(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns a number as people write it: a whole one without a fraction.
fn number(value: f64) -> Value {
    let text = value.to_string();
    serde_json::from_str(&text).unwrap_or_else(|_not_a_number| Value::from(text))
}

/// Reads yes or no in the ways people write it in the environment.
fn switch(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Some(true),
        "false" | "0" | "no" | "off" => Some(false),
        _ => None,
    }
}

/// Returns a string's text, or what was found in its place.
fn string(value: &Spanned<DeValue<'_>>, part: impl Fn() -> String) -> Result<String, Mismatch> {
    let text = value.get_ref().as_str().map(str::to_owned);
    text.ok_or_else(|| Mismatch::Entry {
        part: part(),
        offset: value.span().start,
        found: type_name(value.get_ref()),
    })
}

/// Returns the type of a value, with its article.
pub(super) fn type_name(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "a string",
        DeValue::Integer(_) => "an integer",
        DeValue::Float(_) => "a float",
        DeValue::Boolean(_) => "a boolean",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}

/// Returns a time as people write it: whole seconds without a fraction.
fn seconds(time: Duration) -> Value {
    if time.subsec_nanos() == 0 {
        Value::from(time.as_secs())
    } else {
        Value::from(time.as_secs_f64())
    }
}
