//! Events of processes, from every place of a home.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use exoshell_place::Link;
use exoshell_wire::{Acknowledge, Events, ProcessEvent};
use tokio::sync::mpsc;

use crate::config::Backend;
use crate::error::RuntimeError;
use crate::record::check_task;
use crate::redact::Outlet as _;
use crate::runtime::Runtime;

/// How often new places are looked for while events are followed.
const LOOK_PERIOD: Duration = Duration::from_secs(2);

/// How many events of one place may wait.
const QUEUE: usize = 64;

/// Events of processes, each delivered until it is acknowledged.
#[derive(Debug)]
pub struct ProcessEvents {
    runtime: Runtime,
    consumer: String,
    follow: bool,
    sender: mpsc::Sender<Arrived>,
    receiver: mpsc::Receiver<Arrived>,
    /// The places that are listened to.
    sources: HashSet<String>,
    /// Where an event that was handed out came from.
    origins: HashMap<(String, u64), Link>,
}

#[derive(Debug)]
enum Arrived {
    Event(Box<ProcessEvent>, Link),
    /// A place has no more.
    Ended(String),
}

impl ProcessEvents {
    /// Waits for the next event; `None` when there are no more. Cancel-safe.
    pub async fn next(&mut self) -> Result<Option<ProcessEvent>, RuntimeError> {
        loop {
            if self.sources.is_empty() && !self.follow {
                return Ok(None);
            }
            let arrived = tokio::select! {
                arrived = self.receiver.recv() => arrived,
                () = tokio::time::sleep(LOOK_PERIOD), if self.follow => {
                    self.look().await;
                    continue;
                }
            };
            match arrived {
                Some(Arrived::Event(mut event, link)) => {
                    event.clean(&self.runtime.redactor());
                    self.origins
                        .insert((event.id.clone(), event.sequence), link);
                    return Ok(Some(*event));
                }
                Some(Arrived::Ended(label)) => {
                    self.sources.remove(&label);
                }
                None => return Ok(None),
            }
        }
    }

    /// Says that this event and all before it from the same place were dealt with; they never
    /// come again.
    pub async fn acknowledge(&mut self, event: &ProcessEvent) -> Result<(), RuntimeError> {
        let key = (event.id.clone(), event.sequence);
        let Some(link) = self.origins.remove(&key) else {
            return Ok(());
        };
        let request = Acknowledge {
            consumer: self.consumer.clone(),
            sequence: event.sequence,
        };
        Ok(link.acknowledge(request).await?)
    }

    /// Listens to every place that is there and not yet listened to.
    async fn look(&mut self) {
        for slot in self.runtime.known_slots().unwrap_or_default() {
            if self.sources.contains(&slot.label) {
                continue;
            }
            // A place that is gone or out of reach has no events now.
            if let Ok(Some(link)) = slot.existing().await {
                self.listen(slot.label.clone(), link);
            }
        }
    }

    fn listen(&mut self, label: String, link: Link) {
        let request = Events {
            consumer: self.consumer.clone(),
            follow: self.follow,
        };
        let Ok(mut stream) = link.events(request) else {
            return;
        };
        self.sources.insert(label.clone());
        let sender = self.sender.clone();
        tokio::spawn(async move {
            while let Ok(Some(event)) = stream.next().await {
                let arrived = Arrived::Event(Box::new(event), link.clone());
                if sender.send(arrived).await.is_err() {
                    return;
                }
            }
            // Nobody to tell means nobody to care.
            let _ = sender.send(Arrived::Ended(label)).await;
        });
    }
}

impl Runtime {
    /// Returns the events of all processes of this home that `consumer` has not acknowledged,
    /// and with `follow` those that come.
    pub async fn process_events(
        &self,
        consumer: &str,
        follow: bool,
    ) -> Result<ProcessEvents, RuntimeError> {
        check_task(consumer)?;
        let local = self.local_slot()?;
        if follow && self.config().terminal.backend == Backend::Local {
            // Whoever waits for events is there before the first process.
            self.guest(&local, "", self.inner.config.terminal.timeout)
                .await?;
        }
        let (sender, receiver) = mpsc::channel(QUEUE);
        let mut events = ProcessEvents {
            runtime: self.clone(),
            consumer: consumer.to_owned(),
            follow,
            sender,
            receiver,
            sources: HashSet::new(),
            origins: HashMap::new(),
        };
        events.look().await;
        Ok(events)
    }
}
