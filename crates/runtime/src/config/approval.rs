//! The settings of the guard, as the rest of the system uses them.

use std::time::Duration;

use super::choices::ApprovalMode;

/// Holds when a person is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approval {
    /// What happens to commands that need a yes.
    pub mode: ApprovalMode,
    /// What was allowed for good, as `category:target`.
    pub allow: Vec<String>,
    /// How long a person who is asked has to answer.
    pub timeout: Duration,
    /// How long a call waits for an answer from another program.
    pub wait: Duration,
    /// How long a question can be answered from another program.
    pub expiry: Duration,
}

/// Holds the user's own rules.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GuardRules {
    /// Commands that pass, by their first words.
    pub allow: Vec<String>,
    /// Commands that are asked about.
    pub ask: Vec<String>,
    /// Commands that never run.
    pub deny: Vec<String>,
    /// Paths that may be written.
    pub allow_paths: Vec<String>,
    /// Paths whose writing is asked about.
    pub ask_paths: Vec<String>,
    /// Paths that are never written.
    pub deny_paths: Vec<String>,
}

impl Default for Approval {
    fn default() -> Self {
        Self {
            mode: ApprovalMode::default(),
            allow: Vec::new(),
            timeout: Duration::from_secs(60),
            wait: Duration::ZERO,
            expiry: Duration::from_secs(3600),
        }
    }
}
