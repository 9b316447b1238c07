//! The sending half of a channel.

use std::sync::Arc;

use bytes::Bytes;
use exoshell_wire::{FIN, Frame, Kind, MAX_CONTROL, MAX_DATA, STREAM_MASK};

use crate::lane::{OUT_QUEUE, Wakers};
use crate::state::{CloseReason, Shared};

/// Why something could not be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SendError {
    /// The connection is over.
    #[error(transparent)]
    Closed(#[from] CloseReason),
    /// The channel is over on this side: it was replied on or dropped.
    #[error("the channel is over")]
    Ended,
    /// The message is over the cap of a control frame.
    #[error("a message of {length} bytes is over the cap of {MAX_CONTROL}")]
    TooLong {
        /// Its length.
        length: usize,
    },
}

/// Sends on a channel while its owner receives; clones share the channel.
///
/// It does not keep the channel open: once the [`Channel`](crate::Channel) is replied on or
/// dropped, sending fails with [`SendError::Ended`]. What is sent after the *peer's* reply is
/// dropped without an error: the peer is done, and its reply, which the owner still has to
/// read, says why. Pieces of several senders on one stream may alternate.
#[derive(Debug, Clone)]
pub struct ChannelSender {
    pub(crate) id: u32,
    pub(crate) shared: Arc<Shared>,
    pub(crate) wakers: Arc<Wakers>,
}

/// What became of an attempt to queue a frame.
enum Attempt {
    Queued,
    Discarded,
    Full,
}

impl ChannelSender {
    /// Returns the channel's number on this connection.
    pub const fn id(&self) -> u32 {
        self.id
    }

    /// Sends bytes of a stream, in pieces as large as frames may be, as credit allows.
    ///
    /// Not cancel-safe: dropping the future may leave any number of the pieces sent.
    pub async fn send(&self, stream: u8, mut bytes: Bytes) -> Result<(), SendError> {
        let mut waited = false;
        while !bytes.is_empty() {
            let piece = bytes.split_to(bytes.len().min(MAX_DATA));
            self.send_piece(stream, piece, &mut waited).await?;
        }
        Ok(())
    }

    /// Ends a stream.
    pub async fn finish(&self, stream: u8) -> Result<(), SendError> {
        self.send_piece(stream | FIN, Bytes::new(), &mut false)
            .await
    }

    /// Sends the last bytes of a stream and ends it, with one frame when they fit one.
    pub async fn send_all(&self, stream: u8, mut bytes: Bytes) -> Result<(), SendError> {
        let last = bytes.split_off(bytes.len().saturating_sub(1) / MAX_DATA * MAX_DATA);
        self.send(stream, bytes).await?;
        self.send_piece(stream | FIN, last, &mut false).await
    }

    /// Queues one frame when there is room. `waited` remembers that there was none before.
    async fn send_piece(
        &self,
        flags: u8,
        piece: Bytes,
        waited: &mut bool,
    ) -> Result<(), SendError> {
        debug_assert_eq!(flags & !(STREAM_MASK | FIN), 0, "there are 16 streams");
        loop {
            // Created before the attempt, so that room made in between is not missed.
            let writable = self.wakers.writable.notified();
            match self.try_send(flags, &piece)? {
                Attempt::Queued if !*waited => return Ok(()),
                Attempt::Queued | Attempt::Discarded => break,
                Attempt::Full => writable.await,
            }
            *waited = true;
        }
        // Room wakes all who wait: whoever got some lets the others have theirs before it asks
        // for more. (A fair lock would do that too, but then a future that nobody polls could
        // hold up everyone.) And where nothing slows a sender down any more, because what it
        // sends is discarded, the owner must get to see the reply.
        tokio::task::yield_now().await;
        Ok(())
    }

    fn try_send(&self, flags: u8, piece: &Bytes) -> Result<Attempt, SendError> {
        let mut state = self.shared.lock();
        if let Some(reason) = &state.closed {
            return Err(reason.clone().into());
        }
        let lane = match state.lanes.get_mut(&self.id) {
            Some(lane) if !lane.orphaned && !lane.ended_here => lane,
            _ => return Err(SendError::Ended),
        };
        if lane.ended_there {
            return Ok(Attempt::Discarded);
        }
        if lane.out_bytes >= OUT_QUEUE {
            return Ok(Attempt::Full);
        }
        lane.out_bytes += piece.len();
        lane.out
            .push_back(Frame::new(Kind::Data, flags, self.id, piece.clone()));
        if state.enqueue(self.id) {
            drop(state);
            self.shared.work.notify_one();
        }
        Ok(Attempt::Queued)
    }

    /// Sends an event, in order with the channel's data.
    pub fn event(&self, body: Vec<u8>) -> Result<(), SendError> {
        self.control(Kind::Event, body)
    }

    /// Waits until the asking side wants the work stopped; `Err` when the connection is over or
    /// the channel was replied on or dropped.
    ///
    /// Unlike [`Item::Cancel`](crate::Item::Cancel) it does not stand in line behind unread data.
    pub async fn cancelled(&self) -> Result<(), CloseReason> {
        loop {
            let changed = self.wakers.writable.notified();
            {
                let state = self.shared.lock();
                if let Some(reason) = &state.closed {
                    return Err(reason.clone());
                }
                match state.lanes.get(&self.id) {
                    Some(lane) if lane.cancelled => return Ok(()),
                    Some(lane) if !lane.orphaned => {}
                    _ => return Err(CloseReason::Dropped),
                }
            }
            changed.await;
        }
    }

    /// Waits for the end of the whole connection, whatever becomes of this channel.
    pub async fn connection_closed(&self) {
        loop {
            let ended = self.shared.ended.notified();
            if self.shared.lock().closed.is_some() {
                return;
            }
            ended.await;
        }
    }

    /// Waits until everything queued on this channel was written to the pipe.
    pub async fn flushed(&self) -> Result<(), CloseReason> {
        let mut batch = None;
        loop {
            let written = self.shared.written.notified();
            let writable = self.wakers.writable.notified();
            {
                let state = self.shared.lock();
                if let Some(reason) = &state.closed {
                    return Err(reason.clone());
                }
                let queued = |id| state.lanes.get(id).is_some_and(|lane| !lane.out.is_empty());
                if batch.is_some() || !queued(&self.id) {
                    // The last frame is in this batch or an earlier one.
                    let batch = *batch.get_or_insert(state.taken);
                    if state.written >= batch {
                        return Ok(());
                    }
                }
            }
            tokio::select! {
                () = written => {}
                () = writable => {}
            }
        }
    }

    pub(crate) fn control(&self, kind: Kind, body: Vec<u8>) -> Result<(), SendError> {
        if body.len() > MAX_CONTROL {
            return Err(SendError::TooLong { length: body.len() });
        }
        let mut state = self.shared.lock();
        if let Some(reason) = &state.closed {
            return Err(reason.clone().into());
        }
        let lane = match state.lanes.get_mut(&self.id) {
            Some(lane) if !lane.orphaned && !lane.ended_here => lane,
            _ => return Err(SendError::Ended),
        };
        if lane.ended_there {
            return Ok(());
        }
        lane.ended_here = kind == Kind::Reply;
        lane.out.push_back(Frame::new(kind, 0, self.id, body));
        state.enqueue(self.id);
        drop(state);
        self.shared.work.notify_one();
        Ok(())
    }
}
