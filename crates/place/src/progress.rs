//! Telling a person that something long is going on.

use std::sync::Arc;

type Report = dyn Fn(&str) + Send + Sync;

/// Takes one line per step of something long; clones share the receiver.
#[derive(Clone, Default)]
pub struct Progress(Option<Arc<Report>>);

impl Progress {
    /// Hands every step to this function, which must not block.
    pub fn new(report: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(report)))
    }

    /// Reports a step: a short line without a final dot, such as `pulling debian:12 (3 of 7)`.
    pub fn step(&self, line: &str) {
        if let Some(report) = &self.0 {
            report(line);
        }
    }
}

impl std::fmt::Debug for Progress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Progress").field(&self.0.is_some()).finish()
    }
}
