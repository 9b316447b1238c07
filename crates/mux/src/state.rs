//! What the tasks of one connection share.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use exoshell_wire::{Frame, FrameError, Kind};
use tokio::sync::Notify;
use tokio::time::{Duration, Instant};

use crate::lane::{Lane, Wakers};

/// How many channels one connection may hold open.
const MAX_CHANNELS: usize = 65_536;

/// How many pongs may wait for the pipe. A peer that asks more often without reading has had
/// its sign of life; answering all of it would let it fill our memory.
const MAX_PONGS: usize = 16;

/// The largest body of a ping, which is echoed.
const MAX_PING: usize = 64;

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

#[derive(Debug, Default)]
pub(crate) struct State {
    pub(crate) lanes: HashMap<u32, Lane>,
    /// Frames that go before all lanes.
    urgent: VecDeque<Frame>,
    /// How many of `urgent` are pongs.
    pongs: usize,
    /// Lanes whose peer is owed credit, each once. The amounts add up in the lane, so a peer
    /// that does not read costs one entry, not one frame per read.
    grants: VecDeque<u32>,
    /// Lanes that can send, in turn, each once.
    ready: VecDeque<u32>,
    pub(crate) closed: Option<CloseReason>,
    next_channel: u32,
    /// The highest channel the peer opened.
    last_theirs: u32,
    /// How many batches of frames the writer has taken.
    pub(crate) taken: u64,
    /// How many of them are written.
    pub(crate) written: u64,
}

#[derive(Debug)]
pub(crate) struct Shared {
    state: Mutex<State>,
    /// Wakes the writer; nobody else waits on it.
    pub(crate) work: Notify,
    /// Wakes everyone who waits for the end.
    pub(crate) ended: Notify,
    /// Wakes everyone who waits for the writer to catch up.
    pub(crate) written: Notify,
    /// Something arrived since the last heartbeat.
    heard: AtomicBool,
    /// When that was, in milliseconds since `began`.
    heard_ms: AtomicU64,
    began: Instant,
    /// The reader waits for the owner, not for the peer.
    pub(crate) held_up: AtomicBool,
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
            written: Notify::new(),
            heard: AtomicBool::new(false),
            heard_ms: AtomicU64::new(0),
            began: Instant::now(),
            held_up: AtomicBool::new(false),
        }
    }

    /// Locks the state. It stays consistent even if a holder panicked, so poison is ignored.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a frame that goes before all data.
    pub(crate) fn send_urgent(&self, frame: Frame) {
        let mut state = self.lock();
        if state.closed.is_none() {
            state.urgent.push_back(frame);
        }
        drop(state);
        self.work.notify_one();
    }

    /// Ends the connection; the first reason stays.
    pub(crate) fn close(&self, reason: CloseReason) {
        let mut state = self.lock();
        if state.closed.is_none() {
            state.closed = Some(reason);
        }
        for lane in state.lanes.values() {
            lane.wakers.wake_all();
        }
        drop(state);
        self.work.notify_one();
        self.written.notify_waiters();
        self.ended.notify_waiters();
    }

    /// Waits for the end of the connection.
    pub(crate) async fn wait_closed(&self) -> CloseReason {
        loop {
            // Created before the state is looked at: `notify_waiters` reaches every future that
            // exists, so an end in between is not missed.
            let ended = self.ended.notified();
            if let Some(reason) = self.lock().closed.clone() {
                return reason;
            }
            ended.await;
        }
    }

    /// Notes a sign of life.
    pub(crate) fn hear(&self) {
        let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.heard_ms.store(now, Ordering::Relaxed);
        self.heard.store(true, Ordering::Relaxed);
    }

    /// Tells how long ago the last sign of life came.
    pub(crate) fn since_heard(&self) -> Duration {
        if self.held_up.load(Ordering::Relaxed) {
            return Duration::ZERO;
        }
        let heard = Duration::from_millis(self.heard_ms.load(Ordering::Relaxed));
        self.began.elapsed().saturating_sub(heard)
    }

    /// Waits this long, or until the connection has ended; tells whether it has.
    pub(crate) async fn closes_within(&self, time: Duration) -> bool {
        tokio::time::timeout(time, self.wait_closed()).await.is_ok()
    }

    /// Tells whether the peer gave a sign of life since the last call.
    pub(crate) fn take_heard(&self) -> bool {
        self.heard.swap(false, Ordering::Relaxed) || self.held_up.load(Ordering::Relaxed)
    }
}

impl State {
    /// Opens a lane of ours with a request.
    pub(crate) fn ask(&mut self, body: Vec<u8>) -> Result<(u32, Arc<Wakers>), CloseReason> {
        let id = self.next_channel;
        // Numbers are not reused within a connection; two billion requests exhaust it.
        self.next_channel = id
            .checked_add(2)
            .ok_or(CloseReason::Protocol("the connection is out of channels"))?;
        let wakers = self.open(id, true);
        self.urgent
            .push_back(Frame::new(Kind::Request, 0, id, body));
        Ok((id, wakers))
    }

    /// Opens a lane the peer asked for. Numbers only grow, so that a late frame can never be
    /// taken for one of a newer channel.
    pub(crate) fn answer(&mut self, channel: u32) -> Result<Arc<Wakers>, CloseReason> {
        if channel <= self.last_theirs {
            return Err(CloseReason::Protocol(
                "a request on a channel that was used before",
            ));
        }
        if self.lanes.len() >= MAX_CHANNELS {
            return Err(CloseReason::Protocol("too many open channels"));
        }
        self.last_theirs = channel;
        Ok(self.open(channel, false))
    }

    fn open(&mut self, channel: u32, asking: bool) -> Arc<Wakers> {
        let lane = Lane::new(asking);
        let wakers = Arc::clone(&lane.wakers);
        self.lanes.insert(channel, lane);
        wakers
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

    /// Takes the next frame for the pipe: urgent ones first, then credit, then one per lane in
    /// turn.
    pub(crate) fn next_out(&mut self) -> Option<Frame> {
        if let Some(frame) = self.urgent.pop_front() {
            if frame.kind == Kind::Pong {
                self.pongs = self.pongs.saturating_sub(1);
            }
            return Some(frame);
        }
        if let Some(frame) = self.next_grant() {
            return Some(frame);
        }
        while let Some(channel) = self.ready.pop_front() {
            let Some(lane) = self.lanes.get_mut(&channel) else {
                continue;
            };
            lane.queued = false;
            let Some(frame) = lane.take_out() else {
                continue;
            };
            if !self.reap(channel) {
                self.enqueue(channel);
            }
            return Some(frame);
        }
        None
    }

    fn next_grant(&mut self) -> Option<Frame> {
        while let Some(channel) = self.grants.pop_front() {
            let Some(lane) = self.lanes.get_mut(&channel) else {
                continue;
            };
            let amount = u32::try_from(lane.to_grant).unwrap_or(u32::MAX);
            lane.to_grant -= u64::from(amount);
            if lane.to_grant > 0 {
                self.grants.push_back(channel);
            }
            let body = Bytes::copy_from_slice(&amount.to_le_bytes());
            return Some(Frame::new(Kind::Credit, 0, channel, body));
        }
        None
    }

    /// Tells whether the writer has taken and written everything that may be sent.
    pub(crate) fn is_idle(&self) -> bool {
        self.urgent.is_empty()
            && self.grants.is_empty()
            && self.ready.is_empty()
            && self.written == self.taken
    }

    /// Forgets a lane that is over. Returns whether it was.
    pub(crate) fn reap(&mut self, channel: u32) -> bool {
        let over = self.lanes.get(&channel).is_some_and(Lane::is_over);
        if over && let Some(lane) = self.lanes.remove(&channel) {
            lane.wakers.wake_all();
        }
        over
    }

    /// Handles a frame for an open lane. Frames for unknown lanes are late, not wrong.
    pub(crate) fn deliver(&mut self, frame: Frame) -> Result<(), CloseReason> {
        let channel = frame.channel;
        let Some(lane) = self.lanes.get_mut(&channel) else {
            return Ok(());
        };
        let swallowed = lane.deliver(frame)?;
        self.consume(channel, swallowed);
        self.reap(channel);
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

    /// Notes that data of the peer is out of the way. Returns whether the writer has work.
    ///
    /// Grants in quarters of the window keep credit frames rare and the pipe busy.
    pub(crate) fn consume(&mut self, channel: u32, bytes: u64) -> bool {
        let Some(lane) = self.lanes.get_mut(&channel) else {
            return false;
        };
        lane.consumed += bytes;
        if lane.consumed < lane.window / 4 {
            return false;
        }
        let amount = std::mem::take(&mut lane.consumed);
        self.grant(channel, amount);
        true
    }

    /// Lets the peer send up to this much before it must wait. The caller wakes the writer.
    pub(crate) fn raise_window(&mut self, channel: u32, bytes: u64) {
        let Some(lane) = self.lanes.get_mut(&channel) else {
            return;
        };
        let more = bytes.saturating_sub(lane.window);
        lane.window += more;
        self.grant(channel, more);
    }

    fn grant(&mut self, channel: u32, amount: u64) {
        let Some(lane) = self.lanes.get_mut(&channel) else {
            return;
        };
        // Credit is of no use to a peer that has sent its last item.
        if amount == 0 || lane.ended_there {
            return;
        }
        lane.receive_credit += amount;
        if lane.to_grant == 0 {
            self.grants.push_back(channel);
        }
        lane.to_grant += amount;
    }

    /// Queues the answer to a ping.
    pub(crate) fn pong(&mut self, body: &Bytes) -> Result<(), CloseReason> {
        if body.len() > MAX_PING {
            return Err(CloseReason::Protocol("a ping that is too long"));
        }
        if self.pongs < MAX_PONGS {
            self.pongs += 1;
            let body = Bytes::copy_from_slice(body);
            self.urgent.push_back(Frame::new(Kind::Pong, 0, 0, body));
        }
        Ok(())
    }

    /// Queues a ping, unless the pipe has not even taken the one before.
    pub(crate) fn ping(&mut self) {
        if !self.urgent.iter().any(|frame| frame.kind == Kind::Ping) {
            self.urgent
                .push_back(Frame::new(Kind::Ping, 0, 0, Bytes::new()));
        }
    }

    /// Queues a cancel, before all data.
    pub(crate) fn cancel(&mut self, channel: u32) {
        self.urgent
            .push_back(Frame::new(Kind::Cancel, 0, channel, Bytes::new()));
    }

    /// Counts what the connection holds.
    #[cfg(test)]
    pub(crate) fn held(&self) -> Held {
        Held {
            lanes: self.lanes.len(),
            bytes: self.lanes.values().map(Lane::held_bytes).sum(),
            control: self.urgent.len() + self.grants.len(),
        }
    }
}

/// What a connection holds at one moment.
#[cfg(test)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Held {
    /// Open channels.
    pub(crate) lanes: usize,
    /// Bytes that wait on them, both ways.
    pub(crate) bytes: usize,
    /// Frames that go before all data.
    pub(crate) control: usize,
}
