//! The connection of one command to its host, which may be lost and taken up again.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use exoshell_mux::{Channel, Item};
use exoshell_wire::{Exec, ExecDone, Reply, Resumed, stream};
use serde::Serialize;
use tokio::sync::mpsc;

use super::audience::Audience;
use super::resume::{Finished, Listed, Resumption};
use crate::connection::answer;
use crate::guest::Guest;
use crate::output::Sink;

/// What is heard from the host, and of it.
#[derive(Debug)]
pub(super) enum Heard {
    /// Bytes for the command's stdin.
    Input {
        /// The bytes.
        bytes: Bytes,
        /// Whether none follow.
        last: bool,
    },
    /// The host wants the command stopped.
    Cancel,
    /// The pipe is lost; the lease runs.
    Away,
    /// A host took the command up again.
    Back,
    /// No host will come any more.
    LeaseOver,
}

/// A command's line to its host.
#[derive(Debug)]
pub(super) struct Line {
    channel: Option<Channel>,
    /// The host of this channel was heard to cancel.
    cancelled: bool,
    lease: Option<Lease>,
    over: bool,
    /// How much stdin was taken over, and whether that was all.
    input: Resumed,
}

/// What lets a command outlive its pipe.
#[derive(Debug)]
struct Lease {
    time: Duration,
    /// When it is over, while nobody is there.
    ends: Instant,
    audience: Arc<Audience>,
    resumptions: mpsc::Receiver<Resumption>,
    listed: Listed,
}

impl Line {
    /// Builds the line of a command whose id was just claimed.
    pub(super) fn new(guest: &Arc<Guest>, channel: Channel, exec: &Exec) -> Self {
        let time = Duration::from_millis(exec.lease_ms);
        let lease = (!time.is_zero()).then(|| {
            let (listed, resumptions) = Listed::new(guest, &exec.id);
            Lease {
                time,
                ends: Instant::now(),
                audience: Audience::new(channel.sender()),
                resumptions,
                listed,
            }
        });
        Self {
            channel: Some(channel),
            cancelled: false,
            lease,
            over: false,
            input: Resumed::default(),
        }
    }

    /// Returns where the command's output goes.
    pub(super) fn sink(&self) -> Sink {
        match (&self.lease, &self.channel) {
            (Some(lease), _) => Sink::Audience(Arc::clone(&lease.audience)),
            (None, Some(channel)) => Sink::Channel(channel.sender()),
            (None, None) => Sink::Nobody,
        }
    }

    /// Sends an event; a host that is away misses it.
    pub(super) fn event(&self, event: &impl Serialize) {
        if let (Some(channel), Ok(body)) = (&self.channel, serde_json::to_vec(event)) {
            let _ = channel.event(body);
        }
    }

    /// Tells whether nobody will ask for the result any more.
    pub(super) const fn is_over(&self) -> bool {
        self.over
    }

    /// Waits for what happens next; stdin is taken only when it is wanted. Cancel-safe.
    pub(super) async fn next(&mut self, wants_input: bool) -> Heard {
        if self.over {
            return std::future::pending().await;
        }
        let Some(channel) = &mut self.channel else {
            return self.wait_for_host().await;
        };
        let sender = channel.sender();
        loop {
            tokio::select! {
                biased;
                resumption = next_resumption(self.lease.as_mut()) => {
                    // One that cannot be served leaves the host that is here.
                    return self.take_up(resumption);
                }
                lost = sender.cancelled(), if !self.cancelled => {
                    if lost.is_err() {
                        return self.lose();
                    }
                    self.cancelled = true;
                    return Heard::Cancel;
                }
                () = sender.connection_closed(), if self.cancelled => return self.lose(),
                item = channel.receive(), if wants_input => {
                    // Anything else is seen on the next round.
                    if let Ok(Item::Data { stream: stream::STDIN, bytes, last }) = item {
                        self.input.stdin += bytes.len() as u64;
                        self.input.stdin_ended |= last;
                        return Heard::Input { bytes, last };
                    }
                }
            }
        }
    }

    fn lose(&mut self) -> Heard {
        self.channel = None;
        let Some(lease) = &mut self.lease else {
            self.over = true;
            return Heard::LeaseOver;
        };
        lease.audience.detach();
        lease.ends = Instant::now() + lease.time;
        Heard::Away
    }

    /// Waits for a host to come back, for as long as the lease allows.
    async fn wait_for_host(&mut self) -> Heard {
        let Some(lease) = &mut self.lease else {
            return std::future::pending().await;
        };
        let ends = lease.ends;
        let resumption = tokio::select! {
            biased;
            resumption = next_resumption(Some(&mut *lease)) => resumption,
            () = tokio::time::sleep_until(ends.into()) => {
                lease.audience.abandon();
                self.over = true;
                return Heard::LeaseOver;
            }
        };
        self.take_up(resumption)
    }

    /// Goes on with another host. The one before, should it still be there, hears a reset.
    fn take_up(&mut self, Resumption { channel, from }: Resumption) -> Heard {
        let Some(lease) = &mut self.lease else {
            return Heard::Away;
        };
        let event = serde_json::to_vec(&self.input).unwrap_or_default();
        match lease.audience.attach(channel.sender(), from, event) {
            Ok(()) => {
                self.channel = Some(channel);
                self.cancelled = false;
                Heard::Back
            }
            Err(failure) => {
                answer(channel, &Reply::<ExecDone>::Failed(failure));
                Heard::Away
            }
        }
    }

    /// Tells the result, behind all output, and keeps it for a host that comes back.
    pub(super) async fn conclude(mut self, result: &Reply<ExecDone>) {
        let reply = serde_json::to_vec(result).unwrap_or_default();
        if self.lease.is_some() {
            self.tell_all().await;
        }
        let sender = self.channel.take().map(|channel| {
            let sender = channel.sender();
            // A host that is gone does not need it.
            let _ = channel.reply(reply.clone());
            sender
        });
        if let Some(lease) = self.lease.take() {
            lease.keep(reply, self.input, sender.is_some());
        }
        if let Some(sender) = sender {
            // The answer is on its way before anything is prepared, and whoever waits for it
            // gets the processor first.
            let _ = sender.flushed().await;
            std::thread::yield_now();
        }
    }

    /// Waits until the host has all output, or is gone.
    async fn tell_all(&mut self) {
        let Some(audience) = self.lease.as_ref().map(|lease| Arc::clone(&lease.audience)) else {
            return;
        };
        while self.channel.is_some() {
            tokio::select! {
                biased;
                _ = self.next(false) => {}
                () = audience.all_told() => return,
            }
        }
    }
}

/// Waits for a host that wants the command; for ever without a lease.
async fn next_resumption(lease: Option<&mut Lease>) -> Resumption {
    if let Some(lease) = lease
        && let Some(resumption) = lease.resumptions.recv().await
    {
        return resumption;
    }
    std::future::pending().await
}

impl Lease {
    /// Keeps the result for as long as the lease is.
    fn keep(mut self, reply: Vec<u8>, input: Resumed, delivered: bool) {
        let finished = Finished::new(self.audience.finish(), reply, input, self.time, delivered);
        let finished = self.listed.finish(finished);
        self.resumptions.close();
        while let Ok(resumption) = self.resumptions.try_recv() {
            tokio::spawn(Arc::clone(&finished).tell(resumption));
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.audience.abandon();
        // Whoever came too late hears why.
        self.resumptions.close();
        while let Ok(resumption) = self.resumptions.try_recv() {
            resumption.refuse();
        }
    }
}
