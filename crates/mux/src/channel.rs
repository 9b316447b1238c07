//! One request and its streams, as its owner sees it.

use std::sync::Arc;

use bytes::Bytes;
use exoshell_wire::{FIN, Frame, INITIAL_WINDOW, Kind, MAX_CONTROL, MAX_DATA};
use tokio::sync::Notify;

use crate::state::{CloseReason, OUT_QUEUE, Shared};

/// Something that arrived on a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// Bytes of one stream; `last` says that the stream ends with them.
    Data {
        /// The stream.
        stream: u8,
        /// The bytes, possibly none.
        bytes: Bytes,
        /// Whether nothing follows on this stream.
        last: bool,
    },
    /// A JSON event.
    Event(Bytes),
    /// The JSON reply; nothing follows it.
    Reply(Bytes),
    /// The asking side wants the work stopped.
    Cancel,
    /// No reply will come.
    Reset,
}

/// Why something could not be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The connection is over.
    #[error(transparent)]
    Closed(#[from] CloseReason),
    /// The message is over the cap of a control frame.
    #[error("a message of {length} bytes is over the cap of {MAX_CONTROL}")]
    TooLong {
        /// Its length.
        length: usize,
    },
}

/// One end of an open channel.
///
/// Dropping the asking end sends a cancel; dropping the answering end without a reply sends a
/// reset. Either way the other side learns of it and nothing leaks.
#[derive(Debug)]
pub struct Channel {
    id: u32,
    asking: bool,
    window: u64,
    shared: Arc<Shared>,
    readable: Arc<Notify>,
    writable: Arc<Notify>,
}

impl Channel {
    pub(crate) fn new(
        id: u32,
        asking: bool,
        shared: Arc<Shared>,
        (readable, writable): (Arc<Notify>, Arc<Notify>),
    ) -> Self {
        Self {
            id,
            asking,
            window: u64::from(INITIAL_WINDOW),
            shared,
            readable,
            writable,
        }
    }

    /// Returns the channel's number on this connection.
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Lets the peer send this much before it must wait, for bulk transfers.
    pub fn raise_window(&mut self, bytes: u32) {
        let bytes = u64::from(bytes);
        if bytes <= self.window {
            return;
        }
        let more = bytes - self.window;
        self.window = bytes;
        let mut state = self.shared.lock();
        if let Some(lane) = state.lanes.get_mut(&self.id) {
            lane.receive_credit += more;
            state.grant(self.id, more);
        }
        drop(state);
        self.shared.work.notify_one();
    }

    /// Waits for the next item; `Err` when the connection is over.
    ///
    /// Taking data grants the peer new credit. Cancel-safe.
    pub async fn receive(&mut self) -> Result<Item, CloseReason> {
        loop {
            if let Some(item) = self.try_receive()? {
                return Ok(item);
            }
            self.readable.notified().await;
        }
    }

    /// Takes the next item if one is there.
    pub fn try_receive(&mut self) -> Result<Option<Item>, CloseReason> {
        let mut state = self.shared.lock();
        let Some(lane) = state.lanes.get_mut(&self.id) else {
            return Err(state.closed.clone().unwrap_or(CloseReason::Dropped));
        };
        let Some(item) = lane.inbox.pop_front() else {
            return state.closed.clone().map_or(Ok(None), Err);
        };
        if let Item::Data { bytes, .. } = &item {
            lane.consumed += bytes.len() as u64;
            // Grants in quarters of the window keep credit frames rare and the pipe busy.
            if lane.consumed >= self.window / 4 {
                let amount = std::mem::take(&mut lane.consumed);
                lane.receive_credit += amount;
                state.grant(self.id, amount);
                drop(state);
                self.shared.work.notify_one();
            }
        }
        Ok(Some(item))
    }

    /// Sends bytes of a stream, in pieces as large as frames may be, as credit allows.
    pub async fn send(&self, stream: u8, mut bytes: Bytes) -> Result<(), SendError> {
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(MAX_DATA));
            self.send_piece(stream, piece).await?;
        }
        Ok(())
    }

    /// Ends a stream.
    pub async fn finish(&self, stream: u8) -> Result<(), SendError> {
        self.send_piece(stream | FIN, Bytes::new()).await
    }

    /// Sends a last piece of a stream and ends it with one frame, when it fits one.
    pub async fn send_all(&self, stream: u8, bytes: Bytes) -> Result<(), SendError> {
        if bytes.len() <= MAX_DATA {
            return self.send_piece(stream | FIN, bytes).await;
        }
        self.send(stream, bytes).await?;
        self.finish(stream).await
    }

    async fn send_piece(&self, flags: u8, piece: Bytes) -> Result<(), SendError> {
        loop {
            {
                let mut state = self.shared.lock();
                if let Some(reason) = &state.closed {
                    return Err(reason.clone().into());
                }
                let Some(lane) = state.lanes.get_mut(&self.id) else {
                    return Err(CloseReason::Dropped.into());
                };
                if lane.out_bytes < OUT_QUEUE {
                    lane.out_bytes += piece.len();
                    lane.out
                        .push_back(Frame::new(Kind::Data, flags, self.id, piece));
                    if state.enqueue(self.id) {
                        drop(state);
                        self.shared.work.notify_one();
                    }
                    return Ok(());
                }
            }
            self.writable.notified().await;
        }
    }

    /// Waits until everything queued on this channel was handed to the pipe.
    pub async fn flushed(&self) -> Result<(), CloseReason> {
        loop {
            {
                let state = self.shared.lock();
                if let Some(reason) = &state.closed {
                    return Err(reason.clone());
                }
                match state.lanes.get(&self.id) {
                    Some(lane) if !lane.out.is_empty() => {}
                    _ => return Ok(()),
                }
            }
            self.writable.notified().await;
        }
    }

    /// Sends an event, in order with the channel's data.
    pub fn event(&self, body: Vec<u8>) -> Result<(), SendError> {
        self.control(Kind::Event, body)
    }

    /// Sends the reply, in order with the channel's data; nothing may follow.
    pub fn reply(self, body: Vec<u8>) -> Result<(), SendError> {
        self.control(Kind::Reply, body)
    }

    /// Asks the answering side to stop; its reply still comes.
    pub fn cancel(&self) {
        self.shared
            .send_urgent(Frame::new(Kind::Cancel, 0, self.id, Bytes::new()));
    }

    fn control(&self, kind: Kind, body: Vec<u8>) -> Result<(), SendError> {
        if body.len() > MAX_CONTROL {
            return Err(SendError::TooLong { length: body.len() });
        }
        let mut state = self.shared.lock();
        if let Some(reason) = &state.closed {
            return Err(reason.clone().into());
        }
        if let Some(lane) = state.lanes.get_mut(&self.id) {
            lane.ended_here |= kind == Kind::Reply;
            lane.out.push_back(Frame::new(kind, 0, self.id, body));
            state.enqueue(self.id);
        }
        drop(state);
        self.shared.work.notify_one();
        Ok(())
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        let Some(lane) = state.lanes.get_mut(&self.id) else {
            return;
        };
        lane.orphaned = true;
        let unread: u64 = lane
            .inbox
            .drain(..)
            .map(|item| match item {
                Item::Data { bytes, .. } => bytes.len() as u64,
                _ => 0,
            })
            .sum();
        let credit = unread + std::mem::take(&mut lane.consumed);
        lane.receive_credit += credit;
        if self.asking {
            // What was still to be sent is of no use to work that is being cancelled.
            if !lane.ended_there {
                lane.out.clear();
                lane.out_bytes = 0;
                let cancel = Frame::new(Kind::Cancel, 0, self.id, Bytes::new());
                state.urgent.push_back(cancel);
                state.grant(self.id, credit);
            }
        } else if !lane.ended_here {
            lane.ended_here = true;
            lane.out
                .push_back(Frame::new(Kind::Reset, 0, self.id, Bytes::new()));
            state.enqueue(self.id);
        }
        state.reap(self.id);
        drop(state);
        self.shared.work.notify_one();
    }
}
