//! Approvals in pure form: what a mode lets pass, and what a grant covers.

use std::collections::BTreeSet;

use crate::finding::{ApprovalKey, Category, Finding, Target, Verdict};

/// How questions are answered when no grant covers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// Every question goes to a person.
    #[default]
    Ask,
    /// Code, and deletes inside the task's own directory or temporary ones, pass; the rest asks.
    Workspace,
    /// Every question is answered with yes. What is blocked stays blocked.
    Auto,
    /// Every question is answered with no.
    Deny,
}

/// What is to be done with a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Decision {
    /// It runs.
    Run,
    /// A person is asked.
    Ask,
    /// It does not run.
    Refuse,
}

impl Mode {
    /// Returns the mode with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "ask" => Some(Self::Ask),
            "workspace" => Some(Self::Workspace),
            "auto" => Some(Self::Auto),
            "deny" => Some(Self::Deny),
            _ => None,
        }
    }

    /// Decides about a command of which this was found.
    #[must_use]
    pub fn decide(self, finding: &Finding) -> Decision {
        match (finding.verdict, self) {
            (Verdict::Block, _) | (Verdict::Ask, Self::Deny) => Decision::Refuse,
            (Verdict::Allow, _) | (Verdict::Ask, Self::Auto) => Decision::Run,
            (Verdict::Ask, Self::Ask) => Decision::Ask,
            (Verdict::Ask, Self::Workspace) => {
                let passes = !finding.more
                    && finding
                        .keys
                        .iter()
                        .all(|key| passes_in_workspace(key.category, key.target));
                if passes { Decision::Run } else { Decision::Ask }
            }
        }
    }
}

/// Tells whether the mode `workspace` lets this pass.
pub(crate) fn passes_in_workspace(category: Category, target: Target) -> bool {
    match category {
        Category::ShellExec | Category::InterpreterExec | Category::Harmless => true,
        Category::RecursiveDelete | Category::BulkDelete => {
            matches!(target, Target::Workspace | Target::Temp)
        }
        _ => false,
    }
}

/// Grants given by a person: each covers a category at one class of targets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grants {
    keys: BTreeSet<ApprovalKey>,
}

impl Grants {
    /// Remembers a yes to this finding. A block cannot be granted.
    pub fn grant(&mut self, finding: &Finding) {
        if finding.verdict == Verdict::Ask && !finding.more {
            self.keys.extend(&finding.keys);
        }
    }

    /// Adds one key, as it was stored.
    pub fn insert(&mut self, key: ApprovalKey) {
        self.keys.insert(key);
    }

    /// Takes back one key; tells whether it was there.
    pub fn revoke(&mut self, key: ApprovalKey) -> bool {
        self.keys.remove(&key)
    }

    /// Returns all keys in a fixed order.
    pub fn keys(&self) -> impl Iterator<Item = ApprovalKey> {
        self.keys.iter().copied()
    }

    /// Tells whether a yes to this finding can cover later ones: some questions are new each time.
    #[must_use]
    pub fn can_cover(finding: &Finding) -> bool {
        finding.verdict == Verdict::Ask
            && !finding.more
            && finding.keys.iter().all(|key| reusable(key.category))
    }

    /// Tells whether earlier grants cover everything in this finding.
    #[must_use]
    pub fn cover(&self, finding: &Finding) -> bool {
        finding.verdict == Verdict::Ask
            && !finding.more
            && !finding.keys.is_empty()
            && finding
                .keys
                .iter()
                .all(|key| reusable(key.category) && self.keys.contains(key))
    }
}

/// Some questions are new each time: an earlier yes says nothing about this text.
fn reusable(category: Category) -> bool {
    !matches!(
        category,
        Category::DeceptiveText
            | Category::Unparseable
            | Category::TooLarge
            | Category::SelfControl
            | Category::UserRule
    )
}

#[cfg(test)]
#[path = "approval_tests.rs"]
mod tests;
