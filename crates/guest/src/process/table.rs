//! All processes of a guest.

use std::collections::BTreeMap;
use std::time::Duration;

use super::Shared;

/// How many finished processes stay listed.
const MAX_FINISHED: usize = 64;

/// How long they stay.
const FINISHED_AGE: Duration = Duration::from_secs(3600);

/// The processes, by id.
#[derive(Debug, Default)]
pub(crate) struct ProcessTable(BTreeMap<String, Shared>);

impl ProcessTable {
    pub(crate) fn add(&mut self, process: Shared) {
        self.0.insert(process.id.clone(), process);
        self.forget_old();
    }

    pub(crate) fn get(&self, id: &str) -> Option<Shared> {
        self.0.get(id).cloned()
    }

    /// Lists all, or those of one session.
    pub(crate) fn list(&self, session: Option<&str>) -> Vec<Shared> {
        self.0
            .values()
            .filter(|process| session.is_none() || process.session.as_deref() == session)
            .cloned()
            .collect()
    }

    /// Tells whether one of them lives.
    pub(crate) fn has_living(&self) -> bool {
        self.0.values().any(|process| !process.state().is_over())
    }

    /// Tells whether one of a session's lives.
    pub(crate) fn session_lives(&self, key: &str) -> bool {
        self.0
            .values()
            .any(|p| p.session.as_deref() == Some(key) && !p.state().is_over())
    }

    /// Takes out those of a session.
    pub(crate) fn take_session(&mut self, key: &str) -> Vec<Shared> {
        let taken = self.list(Some(key));
        for process in &taken {
            self.0.remove(&process.id);
        }
        taken
    }

    /// Takes out all.
    pub(crate) fn take_all(&mut self) -> Vec<Shared> {
        std::mem::take(&mut self.0).into_values().collect()
    }

    /// Forgets finished ones that are too old or too many, oldest first.
    pub(crate) fn forget_old(&mut self) {
        let mut finished: Vec<_> = self
            .0
            .values()
            .filter_map(|process| Some((process.ended()?, process.id.clone())))
            .collect();
        finished.sort();
        let surplus = finished.len().saturating_sub(MAX_FINISHED);
        for (index, (ended, id)) in finished.into_iter().enumerate() {
            if (index < surplus || ended.elapsed() > FINISHED_AGE)
                && let Some(process) = self.0.remove(&id)
            {
                process.store.remove_files();
            }
        }
    }
}
