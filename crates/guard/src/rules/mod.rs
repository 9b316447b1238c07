//! The rules as data: what each one finds, how grave it is, and examples that a test checks.
//!
//! A rule is either a list of patterns over a program's options and operands, see
//! `tools/pattern.rs`, or it has none and is reported by the code in `tools` that
//! knows the program. Both kinds carry commands they must catch and near twins they must spare.

mod cloud;
mod code;
mod packages;
mod system;

use std::sync::LazyLock;

use crate::finding::{Category, Verdict};
use crate::names::Names;

/// One rule.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// A short name that stays the same between versions.
    pub id: &'static str,
    /// What a command found by it would do.
    pub category: Category,
    /// What is wrong, as a sentence without its end.
    pub why: &'static str,
    /// Patterns; none when code decides.
    pub patterns: &'static [&'static str],
    /// Commands it finds.
    pub catches: &'static [&'static str],
    /// Commands like them that nothing finds.
    pub spares: &'static [&'static str],
}

impl Rule {
    /// Returns the verdict that goes with its category.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        match self.category {
            Category::Harmless => Verdict::Allow,
            Category::WipeRoot
            | Category::WipeHome
            | Category::WipeSystem
            | Category::DiskFormat
            | Category::DiskOverwrite
            | Category::ForkBomb
            | Category::KillAll
            | Category::HostShutdown => Verdict::Block,
            _ if self.id == "user-deny" => Verdict::Block,
            _ => Verdict::Ask,
        }
    }
}

/// All rules.
pub fn all() -> impl Iterator<Item = &'static Rule> {
    [code::RULES, system::RULES, packages::RULES, cloud::RULES]
        .into_iter()
        .flatten()
}

static BY_ID: LazyLock<Names<&'static Rule>> =
    LazyLock::new(|| all().map(|rule| (rule.id, rule)).collect());

/// Returns the rule with this id.
pub(crate) fn find(id: &str) -> Option<&'static Rule> {
    BY_ID.get(id).copied()
}

#[cfg(test)]
#[path = "rules_tests.rs"]
mod tests;
