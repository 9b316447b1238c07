//! All processes of a guest.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Shared;

/// How many finished processes stay listed.
const MAX_FINISHED: usize = 64;

/// The processes, by id.
#[derive(Debug)]
pub(crate) struct ProcessTable {
    all: BTreeMap<String, Shared>,
    /// How long finished ones stay.
    keep: Duration,
}

impl ProcessTable {
    pub(crate) const fn new(keep: Duration) -> Self {
        Self {
            all: BTreeMap::new(),
            keep,
        }
    }

    pub(crate) fn add(&mut self, process: Shared) {
        self.all.insert(process.id.clone(), process);
        self.forget_old();
    }

    pub(crate) fn get(&self, id: &str) -> Option<Shared> {
        self.all.get(id).cloned()
    }

    /// Lists all, or those of one session.
    pub(crate) fn list(&self, session: Option<&str>) -> Vec<Shared> {
        self.all
            .values()
            .filter(|process| session.is_none() || process.session.as_deref() == session)
            .cloned()
            .collect()
    }

    /// Tells whether one of them lives, or is kept for somebody to ask how it ended: its result,
    /// and the event of its end, are nowhere else.
    pub(crate) fn holds_any(&self) -> bool {
        self.all
            .values()
            .any(|process| process.ended().is_none_or(|at| at.elapsed() <= self.keep))
    }

    /// Tells whether one of a session's lives.
    pub(crate) fn session_lives(&self, key: &str) -> bool {
        self.all
            .values()
            .any(|p| p.session.as_deref() == Some(key) && !p.state().is_over())
    }

    /// Takes out those of a session.
    pub(crate) fn take_session(&mut self, key: &str) -> Vec<Shared> {
        let taken = self.list(Some(key));
        for process in &taken {
            self.all.remove(&process.id);
        }
        taken
    }

    /// Takes out all.
    pub(crate) fn take_all(&mut self) -> Vec<Shared> {
        std::mem::take(&mut self.all).into_values().collect()
    }

    /// Forgets finished ones that are too old or too many, oldest first.
    pub(crate) fn forget_old(&mut self) {
        let mut finished: Vec<_> = self
            .all
            .values()
            .filter_map(|process| Some((process.ended()?, process.id.clone())))
            .collect();
        finished.sort();
        let surplus = finished.len().saturating_sub(MAX_FINISHED);
        for (index, (ended, id)) in finished.into_iter().enumerate() {
            if (index < surplus || ended.elapsed() > self.keep)
                && let Some(process) = self.all.remove(&id)
            {
                process.store.remove_files();
            }
        }
    }
}
