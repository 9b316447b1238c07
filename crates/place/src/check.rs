//! What `doctor` asks of a backend.

/// How one look turned out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckOutcome {
    /// It works.
    Fine,
    /// It works, but something is missing or weaker than asked for.
    Limited,
    /// It does not work.
    Broken,
    /// Nobody has said what it should be.
    NotConfigured,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// What, in a few words: `engine`, `image`, `storage limit`.
    pub name: String,
    /// How it turned out.
    pub outcome: CheckOutcome,
    /// What was found.
    pub found: String,
    /// What to do about it; present unless it is fine.
    pub remedy: Option<String>,
}

impl Check {
    /// Reports something that works.
    pub fn fine(name: impl Into<String>, found: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            outcome: CheckOutcome::Fine,
            found: found.into(),
            remedy: None,
        }
    }

    /// Reports something that is weaker than asked for.
    pub fn limited(
        name: impl Into<String>,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            outcome: CheckOutcome::Limited,
            remedy: Some(remedy.into()),
            ..Self::fine(name, found)
        }
    }

    /// Reports something that does not work.
    pub fn broken(
        name: impl Into<String>,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            outcome: CheckOutcome::Broken,
            remedy: Some(remedy.into()),
            ..Self::fine(name, found)
        }
    }

    /// Reports something that nobody has configured.
    pub fn not_configured(
        name: impl Into<String>,
        found: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            outcome: CheckOutcome::NotConfigured,
            remedy: Some(remedy.into()),
            ..Self::fine(name, found)
        }
    }
}
