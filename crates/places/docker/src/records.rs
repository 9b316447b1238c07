//! What engines say about containers and images.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::names;

/// The labels we put on containers.
pub(crate) mod label {
    /// Marks every container of ours.
    pub(crate) const PRODUCT: &str = "exoshell";
    /// The task's name, made safe.
    pub(crate) const TASK: &str = "exoshell.task";
    /// A hash of the task's exact name: two tasks never share a container.
    pub(crate) const TASK_ID: &str = "exoshell.task-id";
    /// Whose container it is.
    pub(crate) const PROFILE: &str = "exoshell.profile";
    /// The container's own name. Labels go with `commit` into images and so to containers that
    /// others make of them; a name does not.
    pub(crate) const NAME: &str = "exoshell.name";
    /// A hash of the settings it was made with; the single ones follow behind a dot.
    pub(crate) const CONFIG: &str = "exoshell.config";
    /// The start of the guest's hash.
    pub(crate) const GUEST: &str = "exoshell.guest";
    /// The limits that could not be enforced, joined by dots.
    pub(crate) const UNENFORCED: &str = "exoshell.unenforced";
}

/// A container, as far as we care.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Container {
    pub(crate) id: String,
    /// Its name, without the slash that Docker writes before it.
    pub(crate) name: String,
    pub(crate) image: String,
    pub(crate) image_id: String,
    /// `running`, `exited`, `created`, `paused`, …
    pub(crate) state: String,
    /// Its main process's exit code.
    pub(crate) exit_code: i64,
    /// When it was made, in seconds since 1970.
    pub(crate) created: Option<i64>,
    /// When it ended last, in seconds since 1970.
    pub(crate) finished: Option<i64>,
    pub(crate) labels: BTreeMap<String, String>,
}

impl Container {
    /// Reads the record of one container, as Docker and Podman write it.
    pub(crate) fn read(record: &Value) -> Option<Self> {
        let state = record.get("State")?;
        let config = record.get("Config");
        let text = |value: Option<&Value>| Some(value?.as_str()?.to_owned());
        let time = |value: Option<&Value>| parse_time(value?.as_str()?);
        let labels = config
            .and_then(|config| config.get("Labels")?.as_object())
            .map(|labels| {
                labels
                    .iter()
                    .filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())))
                    .collect()
            });
        Some(Self {
            id: text(record.get("Id"))?,
            name: text(record.get("Name"))
                .unwrap_or_default()
                .trim_start_matches('/')
                .to_owned(),
            image: text(config.and_then(|config| config.get("Image")))
                .or_else(|| text(record.get("ImageName")))
                .unwrap_or_default(),
            image_id: text(record.get("Image")).unwrap_or_default(),
            state: text(state.get("Status"))?.to_lowercase(),
            exit_code: state.get("ExitCode").and_then(Value::as_i64).unwrap_or(0),
            created: time(record.get("Created")),
            finished: time(state.get("FinishedAt")),
            labels: labels.unwrap_or_default(),
        })
    }

    /// Tells whether programs can be run in it.
    pub(crate) fn is_running(&self) -> bool {
        self.state == "running"
    }

    /// Tells whether we made it, for this profile. Labels alone do not say so: a container of an
    /// image that was committed from one of ours has them all, but not the name they tell of.
    pub(crate) fn is_ours(&self, profile: &str) -> bool {
        self.label(label::PRODUCT) == "1"
            && self.label(label::PROFILE) == profile
            && !self.name.is_empty()
            && self.label(label::NAME) == self.name
    }

    /// Returns the value of a label, or nothing.
    pub(crate) fn label(&self, name: &str) -> &str {
        self.labels.get(name).map_or("", String::as_str)
    }

    /// Returns the id as people know it.
    pub(crate) fn short_id(&self) -> &str {
        self.id.get(..12).unwrap_or(&self.id)
    }

    /// Returns the limits that could not be enforced when it was made.
    pub(crate) fn unenforced(&self) -> Vec<String> {
        self.label(label::UNENFORCED)
            .split('.')
            .filter(|name| !name.is_empty())
            .map(str::to_owned)
            .collect()
    }
}

/// An image, as far as we care.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Image {
    pub(crate) os: String,
    pub(crate) arch: String,
    pub(crate) workdir: String,
    pub(crate) user: String,
}

impl Image {
    /// Reads the record of one image, as Docker and Podman write it.
    pub(crate) fn read(record: &Value) -> Option<Self> {
        let config = record.get("Config");
        let text = |value: Option<&Value>| {
            let text = value.and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        record.get("Id")?;
        Some(Self {
            os: text(record.get("Os")),
            arch: text(record.get("Architecture")),
            workdir: text(config.and_then(|config| config.get("WorkingDir"))),
            user: text(config.and_then(|config| config.get("User"))),
        })
    }

    /// Tells whether its programs run as root unless told otherwise.
    pub(crate) fn runs_as_root(&self) -> bool {
        names::is_root(&self.user)
    }
}

/// Reads a time such as `2026-11-15T23:41:50.23Z` or with `+02:00`; seconds since 1970.
///
/// The engines write the year 1 for "never", which is no time.
pub(crate) fn parse_time(text: &str) -> Option<i64> {
    let number = |from: usize, to: usize| -> Option<i64> { text.get(from..to)?.parse().ok() };
    let separators = [(4, "-"), (7, "-"), (13, ":"), (16, ":")];
    if !separators
        .iter()
        .all(|(at, mark)| text.get(*at..at + 1) == Some(mark))
    {
        return None;
    }
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let zone = text
        .get(19..)?
        .trim_start_matches(|c: char| c == '.' || c.is_ascii_digit());
    let offset = match zone.as_bytes() {
        [b'Z' | b'z'] => 0,
        [sign @ (b'+' | b'-'), ..] => {
            let hours: i64 = zone.get(1..3)?.parse().ok()?;
            let minutes: i64 = zone.get(zone.len().checked_sub(2)?..)?.parse().ok()?;
            let seconds = hours * 3600 + minutes * 60;
            if *sign == b'-' { -seconds } else { seconds }
        }
        _ => return None,
    };
    Some(days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset)
}

/// Counts the days since 1970 of a date in the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years are taken to begin in March, so that a leap day is the last of its year.
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
#[path = "records_tests.rs"]
mod tests;
