//! One request and its streams, as its owner sees it.

use std::sync::Arc;

use bytes::Bytes;
use exoshell_wire::{Frame, Kind};

use crate::lane::Wakers;
use crate::sender::{ChannelSender, SendError};
use crate::state::{CloseReason, Shared};

/// Something that arrived on a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Item {
    /// Bytes of one stream; `last` says that the stream ends with them.
    Data {
        /// The stream.
        stream: u8,
        /// The bytes, none only where `last` is set. They need not be cut where the peer cut
        /// them.
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

/// One end of an open channel.
///
/// Dropping the asking end sends a cancel; dropping the answering end without a reply sends a
/// reset. Either way the other side learns of it and nothing leaks.
#[derive(Debug)]
pub struct Channel {
    sender: ChannelSender,
}

impl Channel {
    pub(crate) fn new(id: u32, shared: Arc<Shared>, wakers: Arc<Wakers>) -> Self {
        Self {
            sender: ChannelSender { id, shared, wakers },
        }
    }

    /// Returns the channel's number on this connection.
    pub const fn id(&self) -> u32 {
        self.sender.id
    }

    /// Returns a handle that other tasks can send with while this one receives.
    pub fn sender(&self) -> ChannelSender {
        self.sender.clone()
    }

    /// Lets the peer send this much before it must wait, for bulk transfers.
    pub fn raise_window(&mut self, bytes: u32) {
        self.shared()
            .lock()
            .raise_window(self.id(), u64::from(bytes));
        self.shared().work.notify_one();
    }

    /// Waits for the next item; `Err` when the connection is over.
    ///
    /// Taking data grants the peer new credit. Cancel-safe.
    pub async fn receive(&mut self) -> Result<Item, CloseReason> {
        loop {
            if let Some(item) = self.try_receive()? {
                return Ok(item);
            }
            // Only the owner waits here, and `notify_one` is remembered, so nothing is missed.
            self.sender.wakers.readable.notified().await;
        }
    }

    /// Takes the next item if one is there.
    pub fn try_receive(&mut self) -> Result<Option<Item>, CloseReason> {
        let id = self.id();
        let mut state = self.shared().lock();
        let Some(lane) = state.lanes.get_mut(&id) else {
            return Err(state.closed.clone().unwrap_or(CloseReason::Dropped));
        };
        let Some(item) = lane.take_item() else {
            return state.closed.clone().map_or(Ok(None), Err);
        };
        if let Item::Data { bytes, .. } = &item
            && state.consume(id, bytes.len() as u64)
        {
            drop(state);
            self.shared().work.notify_one();
        }
        Ok(Some(item))
    }

    /// Sends bytes of a stream; see [`ChannelSender::send`].
    pub async fn send(&self, stream: u8, bytes: Bytes) -> Result<(), SendError> {
        self.sender.send(stream, bytes).await
    }

    /// Ends a stream.
    pub async fn finish(&self, stream: u8) -> Result<(), SendError> {
        self.sender.finish(stream).await
    }

    /// Sends the last bytes of a stream and ends it; see [`ChannelSender::send_all`].
    pub async fn send_all(&self, stream: u8, bytes: Bytes) -> Result<(), SendError> {
        self.sender.send_all(stream, bytes).await
    }

    /// Waits until everything queued on this channel was written to the pipe.
    pub async fn flushed(&self) -> Result<(), CloseReason> {
        self.sender.flushed().await
    }

    /// Sends an event, in order with the channel's data.
    pub fn event(&self, body: Vec<u8>) -> Result<(), SendError> {
        self.sender.event(body)
    }

    /// Sends the reply, in order with the channel's data; nothing may follow.
    pub fn reply(self, body: Vec<u8>) -> Result<(), SendError> {
        self.sender.control(Kind::Reply, body)
    }

    /// Asks the answering side to stop; its reply still comes.
    pub fn cancel(&self) {
        self.shared()
            .send_urgent(Frame::new(Kind::Cancel, 0, self.id(), Bytes::new()));
    }

    const fn shared(&self) -> &Arc<Shared> {
        &self.sender.shared
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        let id = self.id();
        let mut state = self.shared().lock();
        let Some(lane) = state.lanes.get_mut(&id) else {
            return;
        };
        let unread = lane.abandon();
        if lane.asking && !lane.ended_there {
            // What was still to be sent is of no use to work that is being cancelled.
            lane.clear_out();
            // A connection that was lost cancels nothing: the work may be taken up again over
            // another one, and a cancel that still got through would end it.
            if matches!(state.closed, None | Some(CloseReason::Dropped)) {
                state.cancel(id);
            }
        } else if !lane.asking && !lane.ended_here {
            lane.ended_here = true;
            // Nor does a connection that was given up refuse anything: the other side must see a
            // lost connection, not an answer.
            if matches!(state.closed, None | Some(CloseReason::Dropped)) {
                if let Some(lane) = state.lanes.get_mut(&id) {
                    lane.out
                        .push_back(Frame::new(Kind::Reset, 0, id, Bytes::new()));
                }
                state.enqueue(id);
            }
        }
        state.consume(id, unread);
        state.reap(id);
        drop(state);
        self.shared().work.notify_one();
    }
}
