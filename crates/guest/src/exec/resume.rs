//! Commands that can be taken up again: those that run, and those that ended a moment ago.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use exoshell_mux::Channel;
use exoshell_wire::{ExecDone, Failure, FailureKind, MAX_DATA, Reply, Resume, Resumed};
use tokio::sync::mpsc;

use super::audience::refusal;
use super::log::{Log, Offsets};
use crate::connection::answer;
use crate::guest::Guest;

/// How many results are kept for hosts that may not have heard them.
const MAX_FINISHED: usize = 64;

/// How many bytes of output are kept with them.
const MAX_FINISHED_BYTES: usize = 4 * 1024 * 1024;

/// How many hosts may wait for one command; more have to wait for their turn to wait.
const MAX_WAITING: usize = 4;

/// A host that wants to go on with a command, from where it is.
#[derive(Debug)]
pub(crate) struct Resumption {
    pub(super) channel: Channel,
    pub(super) from: Offsets,
}

impl Resumption {
    /// Says that it is too late.
    pub(super) fn refuse(self) {
        let failure = Failure::new(
            FailureKind::RunOver,
            "the command is over, and its result is not kept any more",
        );
        answer(self.channel, &Reply::<ExecDone>::Failed(failure));
    }
}

/// What can be taken up again.
#[derive(Debug, Default)]
pub(crate) struct Resumable {
    running: HashMap<String, mpsc::Sender<Resumption>>,
    /// The oldest first.
    finished: VecDeque<(String, Arc<Finished>)>,
}

impl Resumable {
    fn keep(&mut self, id: String, finished: Arc<Finished>) {
        self.finished.push_back((id, finished));
        let mut bytes: usize = self.finished.iter().map(|(_, kept)| kept.bytes).sum();
        while self.finished.len() > MAX_FINISHED || bytes > MAX_FINISHED_BYTES {
            let Some((_, oldest)) = self.finished.pop_front() else {
                return;
            };
            bytes -= oldest.bytes;
        }
    }

    /// Gives up what is over its time.
    pub(crate) fn forget_old(&mut self, now: Instant) {
        self.finished.retain(|(_, kept)| kept.expires > now);
    }

    /// Tells whether a result is kept that no host has heard.
    pub(crate) fn has_unheard(&self) -> bool {
        self.finished.iter().any(|(_, kept)| !kept.delivered)
    }
}

/// A running command that can be taken up, for as long as this is held.
#[derive(Debug)]
pub(super) struct Listed {
    guest: Arc<Guest>,
    id: String,
}

impl Listed {
    /// Lists a command.
    pub(super) fn new(guest: &Arc<Guest>, id: &str) -> (Self, mpsc::Receiver<Resumption>) {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        guest.resumable(|all| all.running.insert(id.to_owned(), sender));
        let listed = Self {
            guest: Arc::clone(guest),
            id: id.to_owned(),
        };
        (listed, receiver)
    }

    /// Keeps the result.
    pub(super) fn finish(&self, finished: Finished) -> Arc<Finished> {
        let finished = Arc::new(finished);
        let kept = Arc::clone(&finished);
        self.guest.resumable(|all| {
            all.running.remove(&self.id);
            all.keep(self.id.clone(), kept);
        });
        finished
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        self.guest.resumable(|all| all.running.remove(&self.id));
    }
}

/// The result of a command and the last of its output.
#[derive(Debug)]
pub(super) struct Finished {
    log: Mutex<Log>,
    bytes: usize,
    reply: Vec<u8>,
    input: Resumed,
    expires: Instant,
    /// It was sent to a host that was there.
    delivered: bool,
}

impl Finished {
    pub(super) fn new(
        log: Log,
        reply: Vec<u8>,
        input: Resumed,
        lease: Duration,
        delivered: bool,
    ) -> Self {
        Self {
            bytes: log.len(),
            log: Mutex::new(log),
            reply,
            input,
            expires: Instant::now() + lease,
            delivered,
        }
    }

    /// Tells a host what it has not heard.
    pub(super) async fn tell(self: Arc<Self>, Resumption { channel, from }: Resumption) {
        let missing = match self.missing(from) {
            Ok(missing) => missing,
            Err(failure) => return answer(channel, &Reply::<ExecDone>::Failed(failure)),
        };
        let _ = channel.event(serde_json::to_vec(&self.input).unwrap_or_default());
        for (stream, bytes) in missing {
            if channel.send(stream, bytes).await.is_err() {
                return;
            }
        }
        let _ = channel.reply(self.reply.clone());
    }

    fn missing(&self, from: Offsets) -> Result<Vec<(u8, Bytes)>, Failure> {
        let mut log = self.log.lock().unwrap_or_else(PoisonError::into_inner);
        log.rewind(from).map_err(refusal)?;
        Ok(log.rest(MAX_DATA))
    }
}

/// Lets a host go on with a command.
pub(crate) async fn resume(guest: &Guest, channel: Channel, request: Resume) {
    let resumption = Resumption {
        channel,
        from: [request.stdout, request.stderr],
    };
    let id = request.id.as_str();
    let (running, finished) = guest.resumable(|all| {
        all.forget_old(Instant::now());
        let found = all.finished.iter().rev().find(|(kept, _)| kept == id);
        let finished = found.map(|(_, finished)| Arc::clone(finished));
        (all.running.get(id).cloned(), finished)
    });
    if let Some(finished) = finished {
        return finished.tell(resumption).await;
    }
    if let Some(running) = running {
        if let Err(late) = running.send(resumption).await {
            late.0.refuse();
        }
        return;
    }
    if guest.was_claimed(id) {
        return resumption.refuse();
    }
    let failure = Failure::new(
        FailureKind::NoRun,
        format!("this guest never started a command `{id}`"),
    );
    answer(resumption.channel, &Reply::<ExecDone>::Failed(failure));
}
