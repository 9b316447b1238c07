//! Which containers nobody will come back for.

use std::time::Duration;

use crate::records::Container;

/// Tells whether a container is an orphan that may be removed: ours, of this profile, ended, and
/// longer ago than twice its lifetime. What is not known for sure is left alone.
pub(crate) fn is_orphan(
    container: &Container,
    now: i64,
    lifetime: Duration,
    profile: &str,
) -> bool {
    if lifetime.is_zero() {
        // It was never meant to end by itself, so no age says that it is forgotten.
        return false;
    }
    let patience = i64::try_from(lifetime.as_secs().saturating_mul(2)).unwrap_or(i64::MAX);
    container.is_ours(profile)
        && container.state == "exited"
        && container
            .finished
            .is_some_and(|finished| now.saturating_sub(finished) > patience)
}

#[cfg(test)]
#[path = "orphans_tests.rs"]
mod tests;
