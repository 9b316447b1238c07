//! What finished commands left running.

use std::collections::BTreeMap;

use exoshell_process::ProcessEntry;
use exoshell_wire::{ProcessInfo, RawBytes};

use crate::tree::Tree;

/// The processes one command left running.
#[derive(Debug, Clone)]
pub(crate) struct Leftover {
    pub(crate) id: String,
    pub(crate) session: Option<String>,
    tree: Tree,
}

impl Leftover {
    /// Lists what of it is alive.
    pub(crate) async fn processes(&self) -> Vec<ProcessInfo> {
        let alive = self.tree.list().await;
        describe(&self.id, self.session.as_deref(), alive)
    }
}

/// Turns a supervisor's entries into what the host is told.
pub(crate) fn describe(
    id: &str,
    session: Option<&str>,
    entries: Vec<ProcessEntry>,
) -> Vec<ProcessInfo> {
    entries
        .into_iter()
        .map(|entry| ProcessInfo {
            id: id.to_owned(),
            pid: entry.pid,
            start_time: entry.start_time,
            command: RawBytes(entry.command),
            session: session.map(str::to_owned),
        })
        .collect()
}

/// All of them, by the id of the command.
#[derive(Debug, Default)]
pub(crate) struct Leftovers(BTreeMap<String, Leftover>);

impl Leftovers {
    pub(crate) fn add(&mut self, id: String, session: Option<String>, tree: Tree) {
        let leftover = Leftover {
            id: id.clone(),
            session,
            tree,
        };
        self.0.insert(id, leftover);
    }

    pub(crate) fn remove(&mut self, id: &str) {
        self.0.remove(id);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn list(&self) -> Vec<Leftover> {
        self.0.values().cloned().collect()
    }

    pub(crate) fn all(&self) -> Vec<Tree> {
        self.0.values().map(|l| l.tree.clone()).collect()
    }

    pub(crate) fn of_session(&self, key: &str) -> Vec<Tree> {
        self.0
            .values()
            .filter(|l| l.session.as_deref() == Some(key))
            .map(|l| l.tree.clone())
            .collect()
    }
}
