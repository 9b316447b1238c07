//! What the tasks of one connection share.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use exoshell_wire::{FIN, Frame, FrameError, INITIAL_WINDOW, Kind, STREAM_MASK};
use tokio::sync::Notify;

use crate::channel::Item;

/// How many bytes of data one channel may have queued for the pipe. Two frames keep the pipe
/// busy; more would only add delay behind it.
pub(crate) const OUT_QUEUE: usize = 128 * 1024;

/// How many events one channel may hold unread before the peer counts as hostile.
const MAX_UNREAD_ITEMS: usize = 4096;

/// How many channels one peer may hold open.
const MAX_CHANNELS: usize = 65_536;

/// Why a connection ended.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CloseReason {
    /// The pipe ended between two frames.
    #[error("the other side closed the pipe")]
    Closed,
    /// The pipe ended inside a frame.
    #[error("the pipe was cut in the middle of a frame")]
    Cut,
    /// Reading or writing failed.
    #[error("the pipe failed: {0}")]
    Io(String),
    /// The bytes are no frames.
    #[error("the pipe carries something that is not our protocol: {0}")]
    Frame(#[from] FrameError),
    /// The peer broke a rule of the protocol.
    #[error("the other side broke the protocol: {0}")]
    Protocol(&'static str),
    /// Nothing was heard for too long.
    #[error("nothing was heard from the other side for {0} seconds")]
    Silent(u64),
    /// This side closed it.
    #[error("the connection was closed on this side")]
    Dropped,
}

/// One channel, as the tasks see it.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "four independent facts; an enum of their sixteen combinations says less"
)]
pub(crate) struct Lane {
    /// Frames waiting for the pipe, in order.
    pub(crate) out: VecDeque<Frame>,
    /// Data bytes in `out`.
    pub(crate) out_bytes: usize,
    /// Data bytes the peer allows us.
    pub(crate) send_credit: u64,
    /// Items waiting for the owner.
    pub(crate) inbox: VecDeque<Item>,
    /// Data bytes we still allow the peer.
    pub(crate) receive_credit: u64,
    /// Data bytes the owner consumed that were not granted again yet.
    pub(crate) consumed: u64,
    /// The owner is gone; what arrives is dropped until the last item.
    pub(crate) orphaned: bool,
    /// We sent the last item.
    pub(crate) ended_here: bool,
    /// The peer sent the last item.
    pub(crate) ended_there: bool,
    /// Wakes the owner when `inbox` grows.
    pub(crate) readable: Arc<Notify>,
    /// Wakes the owner when `out` shrinks.
    pub(crate) writable: Arc<Notify>,
    /// The lane stands in the ready queue.
    queued: bool,
}

impl Lane {
    fn may_send(&self) -> bool {
        match self.out.front() {
            None => false,
            Some(frame) if frame.kind == Kind::Data => self.send_credit >= frame.body.len() as u64,
            Some(_) => true,
        }
    }

    /// Tells whether nothing more can happen on it.
    fn is_over(&self) -> bool {
        (self.ended_there || self.ended_here) && self.out.is_empty() && self.orphaned
    }
}

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) lanes: HashMap<u32, Lane>,
    /// Frames that go before all lanes.
    pub(crate) urgent: VecDeque<Frame>,
    /// Lanes that can send, in turn.
    ready: VecDeque<u32>,
    pub(crate) closed: Option<CloseReason>,
    pub(crate) next_channel: u32,
}

#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Wakes the writer.
    pub(crate) work: Notify,
    /// Wakes whoever waits for the end.
    pub(crate) ended: Notify,
}

impl Shared {
    pub(crate) fn new(first_channel: u32) -> Self {
        Self {
            state: Mutex::new(State {
                next_channel: first_channel,
                ..State::default()
            }),
            work: Notify::new(),
            ended: Notify::new(),
        }
    }

    /// Locks the state. It stays consistent even if a holder panicked, so poison is ignored.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a frame that goes before all data.
    pub(crate) fn send_urgent(&self, frame: Frame) {
        self.lock().urgent.push_back(frame);
        self.work.notify_one();
    }

    /// Ends the connection; the first reason stays.
    pub(crate) fn close(&self, reason: CloseReason) {
        let mut state = self.lock();
        if state.closed.is_none() {
            state.closed = Some(reason);
        }
        for lane in state.lanes.values() {
            lane.readable.notify_one();
            lane.writable.notify_one();
        }
        drop(state);
        self.work.notify_one();
        self.ended.notify_waiters();
    }
}

impl State {
    /// Opens a lane; both sides start with the initial window.
    pub(crate) fn open(&mut self, channel: u32) -> (Arc<Notify>, Arc<Notify>) {
        let lane = self.lanes.entry(channel).or_default();
        lane.send_credit = u64::from(INITIAL_WINDOW);
        lane.receive_credit = u64::from(INITIAL_WINDOW);
        (Arc::clone(&lane.readable), Arc::clone(&lane.writable))
    }

    /// Puts a lane in line if it can send. Returns whether the writer has work.
    pub(crate) fn enqueue(&mut self, channel: u32) -> bool {
        let Some(lane) = self.lanes.get_mut(&channel) else {
            return false;
        };
        if !lane.may_send() {
            return false;
        }
        if !lane.queued {
            lane.queued = true;
            self.ready.push_back(channel);
        }
        true
    }

    /// Takes the next frame for the pipe: urgent ones first, then one per lane in turn.
    pub(crate) fn next_out(&mut self) -> Option<Frame> {
        if let Some(frame) = self.urgent.pop_front() {
            return Some(frame);
        }
        while let Some(channel) = self.ready.pop_front() {
            let Some(lane) = self.lanes.get_mut(&channel) else {
                continue;
            };
            lane.queued = false;
            if !lane.may_send() {
                continue;
            }
            let Some(frame) = lane.out.pop_front() else {
                continue;
            };
            if frame.kind == Kind::Data {
                lane.send_credit = lane.send_credit.saturating_sub(frame.body.len() as u64);
                lane.out_bytes = lane.out_bytes.saturating_sub(frame.body.len());
            }
            lane.writable.notify_one();
            if !self.reap(channel) {
                self.enqueue(channel);
            }
            return Some(frame);
        }
        None
    }

    /// Forgets a lane that is over. Returns whether it was.
    pub(crate) fn reap(&mut self, channel: u32) -> bool {
        let over = self.lanes.get(&channel).is_some_and(Lane::is_over);
        if over {
            self.lanes.remove(&channel);
        }
        over
    }

    /// Handles a frame for an open lane. Frames for unknown lanes are late, not wrong.
    pub(crate) fn deliver(&mut self, frame: Frame) -> Result<(), CloseReason> {
        let channel = frame.channel;
        let Some(lane) = self.lanes.get_mut(&channel) else {
            return Ok(());
        };
        let item = match frame.kind {
            Kind::Data => {
                let length = frame.body.len() as u64;
                lane.receive_credit = lane
                    .receive_credit
                    .checked_sub(length)
                    .ok_or(CloseReason::Protocol("data without credit"))?;
                Item::Data {
                    stream: frame.flags & STREAM_MASK,
                    bytes: frame.body,
                    last: frame.flags & FIN != 0,
                }
            }
            Kind::Event => Item::Event(frame.body),
            Kind::Reply => Item::Reply(frame.body),
            Kind::Cancel => Item::Cancel,
            Kind::Reset => Item::Reset,
            _ => return Ok(()),
        };
        lane.ended_there |= matches!(item, Item::Reply(_) | Item::Reset);
        if lane.orphaned {
            // Nobody reads any more, but the peer must be able to finish.
            if let Item::Data { bytes, .. } = &item {
                let length = bytes.len() as u64;
                lane.receive_credit += length;
                self.grant(channel, length);
            }
            self.reap(channel);
            return Ok(());
        }
        if lane.inbox.len() >= MAX_UNREAD_ITEMS {
            return Err(CloseReason::Protocol("too many unread items on a channel"));
        }
        lane.inbox.push_back(item);
        lane.readable.notify_one();
        Ok(())
    }

    /// Adds credit the peer granted. Returns whether the writer has work.
    pub(crate) fn credit(&mut self, channel: u32, body: &Bytes) -> Result<bool, CloseReason> {
        let amount = body
            .first_chunk::<4>()
            .map(|bytes| u32::from_le_bytes(*bytes))
            .ok_or(CloseReason::Protocol("a credit frame without an amount"))?;
        if let Some(lane) = self.lanes.get_mut(&channel) {
            lane.send_credit = lane.send_credit.saturating_add(u64::from(amount));
        }
        Ok(self.enqueue(channel))
    }

    /// Queues a credit frame.
    pub(crate) fn grant(&mut self, channel: u32, amount: u64) {
        let amount = u32::try_from(amount).unwrap_or(u32::MAX);
        let body = Bytes::copy_from_slice(&amount.to_le_bytes());
        self.urgent
            .push_back(Frame::new(Kind::Credit, 0, channel, body));
    }

    /// Tells whether the peer may open one more channel.
    pub(crate) fn has_room(&self) -> bool {
        self.lanes.len() < MAX_CHANNELS
    }
}
