//! What happened to processes, kept until every consumer has dealt with it.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use exoshell_wire::{Happened, ProcessEvent};
use tokio::sync::watch;

/// How many events are kept for consumers that do not come back.
const MAX_EVENTS: usize = 4096;

/// How many consumers' positions are kept.
const MAX_CONSUMERS: usize = 256;

/// The journal of one guest.
#[derive(Debug)]
pub(crate) struct Journal {
    inner: Mutex<Inner>,
    newest: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Inner {
    events: VecDeque<ProcessEvent>,
    next: u64,
    /// The next event each consumer has not acknowledged.
    positions: HashMap<String, u64>,
}

impl Journal {
    pub(crate) fn new() -> Self {
        let inner = Inner {
            next: 1,
            ..Inner::default()
        };
        Self {
            inner: Mutex::new(inner),
            newest: watch::Sender::new(0),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event.
    pub(crate) fn add(&self, id: &str, session: Option<&str>, happened: Happened) {
        let mut inner = self.lock();
        let sequence = inner.next;
        inner.next += 1;
        inner.events.push_back(ProcessEvent {
            sequence,
            time_ms: now_ms(),
            id: id.to_owned(),
            session: session.map(str::to_owned),
            happened,
        });
        if inner.events.len() > MAX_EVENTS {
            inner.events.pop_front();
        }
        drop(inner);
        self.newest.send_replace(sequence);
    }

    /// Returns a receiver that changes whenever an event was added.
    pub(crate) fn grown(&self) -> watch::Receiver<u64> {
        self.newest.subscribe()
    }

    /// Returns what a consumer has not acknowledged, from `after` on at least. A consumer that
    /// is new here gets everything that is kept.
    pub(crate) fn pending(&self, consumer: &str, after: u64) -> Vec<ProcessEvent> {
        let inner = self.lock();
        let position = inner.positions.get(consumer).copied().unwrap_or(0);
        let from = position.max(after + 1);
        let mut events: Vec<ProcessEvent> = inner
            .events
            .iter()
            .filter(|event| event.sequence >= from)
            .cloned()
            .collect();
        // What is older than all that is kept was given up unread.
        if let Some(oldest) = inner.events.front()
            && position > 0
            && oldest.sequence > from
        {
            let mut notice = oldest.clone();
            let count = oldest.sequence - from;
            notice.sequence = oldest.sequence - 1;
            notice.happened = Happened::Dropped { count };
            events.insert(0, notice);
        }
        events
    }

    /// Notes that a consumer has dealt with all events up to this one.
    pub(crate) fn acknowledge(&self, consumer: &str, sequence: u64) {
        let mut inner = self.lock();
        if inner.positions.len() >= MAX_CONSUMERS && !inner.positions.contains_key(consumer) {
            let laziest = inner.positions.iter().min_by_key(|(_, p)| **p);
            if let Some(name) = laziest.map(|(name, _)| name.clone()) {
                inner.positions.remove(&name);
            }
        }
        let next = inner.next;
        let position = inner.positions.entry(consumer.to_owned()).or_insert(0);
        *position = (*position).max(sequence.saturating_add(1).min(next));
    }
}

/// Returns the time as events carry it.
pub(crate) fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, crate::milliseconds)
}

#[cfg(test)]
#[path = "journal_tests.rs"]
mod tests;
