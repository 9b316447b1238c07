//! One measured number beside what it is compared with.

use serde::{Serialize, Serializer, ser::SerializeStruct as _};

/// What a row's numbers count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// Milliseconds of a clock on the wall.
    Ms,
    /// Milliseconds of processor time.
    CpuMs,
    /// Megabytes (10⁶ bytes).
    Mb,
}

impl Unit {
    /// Returns the unit as it is written.
    pub(super) const fn text(self) -> &'static str {
        match self {
            Self::Ms => "ms",
            Self::CpuMs => "ms cpu",
            Self::Mb => "MB",
        }
    }

    const fn is_time(self) -> bool {
        matches!(self, Self::Ms | Self::CpuMs)
    }
}

/// What a row should reach, in words, and whether it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Target {
    /// In words.
    pub(super) text: String,
    /// Whether it was reached.
    pub(super) met: bool,
}

/// One row.
#[derive(Debug, Clone)]
pub(super) struct Row {
    /// Its name; stable, so that runs can be compared.
    pub(super) name: &'static str,
    /// What its numbers count.
    pub(super) unit: Unit,
    /// Our number; absent when it could not be measured.
    pub(super) ours: Option<f64>,
    /// What it is compared with.
    pub(super) baseline: &'static str,
    /// The number of that.
    pub(super) against: Option<f64>,
    /// The slowest times but for 5 of 100, ours and theirs.
    pub(super) p95: Option<(f64, f64)>,
    /// What it should reach, if anything was promised.
    pub(super) target: Option<Target>,
    /// What a reader should know.
    pub(super) note: Option<String>,
}

impl Row {
    /// Makes a row of our number beside a plain tool's.
    pub(super) const fn new(
        name: &'static str,
        unit: Unit,
        ours: f64,
        baseline: &'static str,
        against: f64,
    ) -> Self {
        Self {
            name,
            unit,
            ours: Some(ours),
            baseline,
            against: Some(against),
            p95: None,
            target: None,
            note: None,
        }
    }

    /// Makes a row that no plain tool has a number for: it is compared with its limit.
    pub(super) fn limit(name: &'static str, unit: Unit, ours: f64, limit: f64) -> Self {
        Self::new(name, unit, ours, "target", limit).at_most(limit)
    }

    /// Makes a row that is only told.
    pub(super) fn told(name: &'static str, unit: Unit, ours: f64) -> Self {
        Self {
            against: None,
            ..Self::new(name, unit, ours, "none", 0.0)
        }
    }

    /// Makes the row of something that could not be measured.
    pub(super) fn failed(name: &'static str, why: &str) -> Self {
        Self {
            ours: None,
            note: Some(format!("not measured: {why}")),
            ..Self::told(name, Unit::Ms, 0.0)
        }
    }

    /// Asks for at most this many times the plain tool's number.
    pub(super) fn at_most_times(self, limit: f64) -> Self {
        let met = self.ratio().is_some_and(|ratio| ratio <= limit);
        self.with_target(format!("≤ {limit} ×"), met)
    }

    /// Asks for at most this number.
    pub(super) fn at_most(self, limit: f64) -> Self {
        let met = self.ours.is_some_and(|ours| ours <= limit);
        let text = format!("≤ {limit} {}", self.unit.text());
        self.with_target(text, met)
    }

    /// Asks for something in words.
    pub(super) fn with_target(mut self, text: String, met: bool) -> Self {
        self.target = Some(Target { text, met });
        self
    }

    /// Adds the slow ends.
    pub(super) const fn with_p95(mut self, ours: f64, theirs: f64) -> Self {
        self.p95 = Some((ours, theirs));
        self
    }

    /// Adds a remark.
    pub(super) fn with_note(mut self, note: impl Into<String>) -> Self {
        self.note = Some(note.into());
        self
    }

    /// Returns ours / theirs.
    pub(super) fn ratio(&self) -> Option<f64> {
        match (self.ours, self.against) {
            (Some(ours), Some(against)) if against > 0.0 => Some(ours / against),
            _ => None,
        }
    }
}

/// Rounds to three digits behind the point: more is noise.
fn rounded(value: Option<f64>) -> Option<f64> {
    value.map(|value| (value * 1000.0).round() / 1000.0)
}

impl Serialize for Row {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let time = |value: Option<f64>| rounded(value.filter(|_| self.unit.is_time()));
        let mut row = serializer.serialize_struct("Row", 13)?;
        row.serialize_field("name", self.name)?;
        row.serialize_field("ours_ms", &time(self.ours))?;
        row.serialize_field("baseline", self.baseline)?;
        row.serialize_field("baseline_ms", &time(self.against))?;
        row.serialize_field("ratio", &rounded(self.ratio()))?;
        row.serialize_field("unit", self.unit.text())?;
        row.serialize_field("ours", &rounded(self.ours))?;
        row.serialize_field("baseline_value", &rounded(self.against))?;
        row.serialize_field("ours_p95", &rounded(self.p95.map(|p| p.0)))?;
        row.serialize_field("baseline_p95", &rounded(self.p95.map(|p| p.1)))?;
        row.serialize_field("target", &self.target.as_ref().map(|t| &t.text))?;
        row.serialize_field("met", &self.target.as_ref().map(|t| t.met))?;
        row.serialize_field("note", &self.note)?;
        row.end()
    }
}

#[cfg(test)]
mod tests {
    use super::{Row, Unit};

    #[test]
    fn a_row_has_the_promised_fields() {
        let row = Row::new("true", Unit::Ms, 1.5, "bash", 1.0).at_most_times(1.0);
        let value = serde_json::to_value(&row).expect("it serialises");
        assert_eq!(value["name"], "true");
        assert_eq!(value["ours_ms"], 1.5);
        assert_eq!(value["baseline"], "bash");
        assert_eq!(value["baseline_ms"], 1.0);
        assert_eq!(value["ratio"], 1.5);
        assert_eq!(value["met"], false);
    }

    #[test]
    fn what_is_no_time_has_no_milliseconds() {
        let value = serde_json::to_value(Row::limit("rss", Unit::Mb, 3.0, 15.0));
        let value = value.expect("it serialises");
        assert!(value["ours_ms"].is_null());
        assert_eq!(value["ours"], 3.0);
        assert_eq!(value["ratio"], 0.2);
        assert_eq!(value["met"], true);
    }

    #[test]
    fn what_failed_has_no_number() {
        let value = serde_json::to_value(Row::failed("x", "no disk")).expect("it serialises");
        assert!(value["ours_ms"].is_null());
        assert!(value["ratio"].is_null());
        assert_eq!(value["note"], "not measured: no disk");
    }
}
