//! Why something was not run, in words for a model.

use serde::Serialize;

/// How it was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RefusalKind {
    /// The guard never lets it run.
    Blocked,
    /// A person, or the mode, said no.
    Denied,
    /// A person has to say yes first.
    Required,
}

impl RefusalKind {
    /// Returns the name used in the audit.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Denied => "denied",
            Self::Required => "approval_required",
        }
    }
}

/// Something that was not run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.message())]
#[non_exhaustive]
pub struct Refusal {
    /// How it was refused.
    pub kind: RefusalKind,
    /// What was to be run, as a person may see it.
    pub command: String,
    /// Why, in a sentence.
    pub description: String,
    /// What the guard calls it, as `category:target`.
    pub pattern_key: String,
    /// The stored question, by which a person can answer.
    pub approval_id: Option<String>,
}

impl Refusal {
    fn message(&self) -> String {
        let why = self.description.trim_end_matches('.');
        match self.kind {
            RefusalKind::Blocked => format!(
                "blocked, and not run: {why}. Do not try it again, and not in another form either; \
                 tell the user instead."
            ),
            RefusalKind::Denied => format!(
                "not run, because the user did not allow it: {why}. Do not try it again, and not in \
                 another form either; ask the user how to go on."
            ),
            RefusalKind::Required => format!(
                "not run, because it needs the user's approval: {why}. Ask the user; once they have \
                 approved it, send exactly the same call again."
            ),
        }
    }

    /// Returns what can be done about it. It is read by models: how to loosen things is not said.
    pub(crate) fn hint(&self) -> Option<String> {
        let id = self.approval_id.as_ref()?;
        (self.kind == RefusalKind::Required)
            .then(|| format!("the question is stored as {id}; only the user can answer it"))
    }
}
