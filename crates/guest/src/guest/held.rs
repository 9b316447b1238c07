//! What counts for as long as somebody holds it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::Guest;

/// Counts as a connection while held.
#[derive(Debug)]
pub(crate) struct Connected(pub(super) Arc<Guest>);

impl Drop for Connected {
    fn drop(&mut self) {
        let mut table = self.0.table();
        table.connections = table.connections.saturating_sub(1);
        table.alone_since = Instant::now();
        drop(table);
        self.0.changed.notify_one();
    }
}

/// Counts as a request while held.
#[derive(Debug)]
pub(crate) struct Asked(pub(super) Arc<Guest>);

impl Drop for Asked {
    fn drop(&mut self) {
        let mut table = self.0.table();
        table.requests = table.requests.saturating_sub(1);
        table.busy_at = Instant::now();
    }
}

/// Lists a command as running while held.
#[derive(Debug)]
pub(crate) struct RunGuard {
    pub(super) ended: Arc<AtomicBool>,
    pub(super) guest: Arc<Guest>,
    pub(super) id: String,
}

impl RunGuard {
    /// Tells whether the command was ended from outside: with its session, or with the guest.
    pub(crate) fn was_ended(&self) -> bool {
        self.ended.load(Ordering::Relaxed)
    }
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        self.guest.table().runs.remove(&self.id);
        self.guest.changed.notify_one();
    }
}
