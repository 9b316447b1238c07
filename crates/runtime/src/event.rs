//! What happens in a runtime, for whoever wants to know.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use serde::Serialize;
use tokio::sync::mpsc;

/// How many events a subscriber may leave unread before further ones are counted instead.
const QUEUE: usize = 1024;

/// Something that happened.
#[derive(Debug, Clone, Serialize)]
pub struct Event {
    /// When.
    pub time: SystemTime,
    /// In which task.
    pub task: String,
    /// What.
    #[serde(flatten)]
    pub kind: EventKind,
    /// Opaque labels the harness set for the task, for routing.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum EventKind {
    /// The task got its place.
    PlaceCreated {
        /// The backend.
        backend: &'static str,
    },
    /// A long step on the way to the task's place.
    Progress {
        /// What is being done.
        step: String,
    },
    /// A command started.
    CommandStarted {
        /// Its id.
        id: String,
    },
    /// A foreground command still runs; sent every 10 seconds.
    Activity {
        /// Its id.
        id: String,
        /// For how long it runs.
        seconds: u64,
    },
    /// A command ended.
    CommandEnded {
        /// Its id.
        id: String,
        /// Its exit code.
        exit_code: i32,
    },
    /// The task's place was cleaned up.
    PlaceRemoved,
    /// The subscriber was too slow for this many events.
    Missed {
        /// How many.
        count: u64,
    },
}

/// A subscription.
#[derive(Debug)]
pub struct Events(mpsc::Receiver<Event>);

impl Events {
    /// Waits for the next event; `None` when the runtime is gone.
    pub async fn next(&mut self) -> Option<Event> {
        self.0.recv().await
    }
}

#[derive(Debug)]
struct Subscriber {
    queue: mpsc::Sender<Event>,
    missed: u64,
}

/// Hands events to every subscriber without ever waiting for one.
#[derive(Debug, Default)]
pub(crate) struct EventHub(Mutex<Vec<Subscriber>>);

impl EventHub {
    pub(crate) fn subscribe(&self) -> Events {
        let (queue, receiver) = mpsc::channel(QUEUE);
        let subscriber = Subscriber { queue, missed: 0 };
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(subscriber);
        Events(receiver)
    }

    pub(crate) fn emit(&self, event: &Event) {
        let mut subscribers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        subscribers.retain_mut(|subscriber| subscriber.offer(event));
    }
}

impl Subscriber {
    /// Tells whether the subscriber is still there.
    fn offer(&mut self, event: &Event) -> bool {
        if self.missed > 0 {
            let mut notice = event.clone();
            notice.kind = EventKind::Missed { count: self.missed };
            match self.queue.try_send(notice) {
                Ok(()) => self.missed = 0,
                Err(mpsc::error::TrySendError::Full(_)) => {
                    self.missed += 1;
                    return true;
                }
                Err(mpsc::error::TrySendError::Closed(_)) => return false,
            }
        }
        match self.queue.try_send(event.clone()) {
            Ok(()) => true,
            Err(mpsc::error::TrySendError::Full(_)) => {
                self.missed += 1;
                true
            }
            Err(mpsc::error::TrySendError::Closed(_)) => false,
        }
    }
}

#[cfg(test)]
#[path = "event_tests.rs"]
mod tests;
