//! One channel, as the tasks of the connection see it.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use exoshell_wire::{FIN, Frame, INITIAL_WINDOW, Kind, MAX_CONTROL, MAX_DATA, STREAM_MASK};
use tokio::sync::Notify;

use crate::channel::Item;
use crate::state::CloseReason;

/// How many bytes of data one channel may have queued for the pipe. A few frames keep the pipe
/// busy; more would only add delay behind it.
pub(crate) const OUT_QUEUE: usize = 4 * MAX_DATA;

/// How many items that cost no credit one channel may hold unread before the peer counts as
/// hostile.
const MAX_UNREAD_ITEMS: usize = 4096;

/// How many bytes of them.
const MAX_UNREAD_CONTROL: usize = 4 * MAX_CONTROL;

/// Bodies up to this size are copied out of the read buffer, so that an unread line does not
/// keep the whole buffer alive.
const DETACH_LIMIT: usize = 8 * 1024;

/// What the users of a channel wait on.
#[derive(Debug, Default)]
pub(crate) struct Wakers {
    /// Wakes the owner, the only one who receives, when there is something to take.
    pub(crate) readable: Notify,
    /// Wakes everyone who waits for `out` to shrink.
    pub(crate) writable: Notify,
}

impl Wakers {
    pub(crate) fn wake_all(&self) {
        self.readable.notify_one();
        self.writable.notify_waiters();
    }
}

/// One channel.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts; an enum of all their combinations says less"
)]
pub(crate) struct Lane {
    /// Frames waiting for the pipe, in order.
    pub(crate) out: VecDeque<Frame>,
    /// Data bytes in `out`.
    pub(crate) out_bytes: usize,
    /// Data bytes the peer allows us.
    pub(crate) send_credit: u64,
    /// Items waiting for the owner.
    inbox: VecDeque<Item>,
    /// How many of them cost no credit.
    unread_items: usize,
    /// The bytes of those.
    unread_control: usize,
    /// Data bytes the peer may have on their way to the owner.
    pub(crate) window: u64,
    /// Data bytes we still allow the peer.
    pub(crate) receive_credit: u64,
    /// Data bytes that are out of the way and not granted again yet.
    pub(crate) consumed: u64,
    /// Data bytes already allowed that the peer was not told of yet.
    pub(crate) to_grant: u64,
    /// We sent the request.
    pub(crate) asking: bool,
    /// The owner is gone; what arrives is dropped until the last item.
    pub(crate) orphaned: bool,
    /// We sent the last item.
    pub(crate) ended_here: bool,
    /// The peer sent the last item.
    pub(crate) ended_there: bool,
    /// The peer asked us to stop.
    pub(crate) cancelled: bool,
    /// The lane stands in the ready queue.
    pub(crate) queued: bool,
    pub(crate) wakers: Arc<Wakers>,
}

impl Lane {
    /// Builds a lane; both sides start with the initial window.
    pub(crate) fn new(asking: bool) -> Self {
        Self {
            out: VecDeque::new(),
            out_bytes: 0,
            send_credit: u64::from(INITIAL_WINDOW),
            inbox: VecDeque::new(),
            unread_items: 0,
            unread_control: 0,
            window: u64::from(INITIAL_WINDOW),
            receive_credit: u64::from(INITIAL_WINDOW),
            consumed: 0,
            to_grant: 0,
            asking,
            orphaned: false,
            ended_here: false,
            ended_there: false,
            cancelled: false,
            queued: false,
            wakers: Arc::default(),
        }
    }

    pub(crate) fn may_send(&self) -> bool {
        match self.out.front() {
            None => false,
            Some(frame) if frame.kind == Kind::Data => self.send_credit >= frame.body.len() as u64,
            Some(_) => true,
        }
    }

    /// Takes the next frame for the pipe, if the peer allows it.
    pub(crate) fn take_out(&mut self) -> Option<Frame> {
        if !self.may_send() {
            return None;
        }
        let frame = self.out.pop_front()?;
        if frame.kind == Kind::Data {
            self.send_credit = self.send_credit.saturating_sub(frame.body.len() as u64);
            self.out_bytes = self.out_bytes.saturating_sub(frame.body.len());
        }
        self.wakers.writable.notify_waiters();
        Some(frame)
    }

    /// Forgets what was still to be sent.
    pub(crate) fn clear_out(&mut self) {
        self.out.clear();
        self.out_bytes = 0;
        self.wakers.writable.notify_waiters();
    }

    /// Tells whether nothing more can happen on it.
    pub(crate) fn is_over(&self) -> bool {
        (self.ended_there || self.ended_here) && self.out.is_empty() && self.orphaned
    }

    /// Takes the next item for the owner.
    pub(crate) fn take_item(&mut self) -> Option<Item> {
        let item = self.inbox.pop_front()?;
        if let Some(bytes) = uncredited(&item) {
            self.unread_items = self.unread_items.saturating_sub(1);
            self.unread_control = self.unread_control.saturating_sub(bytes);
        }
        Some(item)
    }

    /// Drops everything the owner will not read any more. Returns how much data that was.
    pub(crate) fn abandon(&mut self) -> u64 {
        self.orphaned = true;
        self.unread_items = 0;
        self.unread_control = 0;
        // Senders must not wait for room any more.
        self.wakers.writable.notify_waiters();
        self.inbox.drain(..).map(|item| data_length(&item)).sum()
    }

    /// Handles a frame of the peer. Returns how much data was swallowed, as nobody reads it.
    pub(crate) fn deliver(&mut self, frame: Frame) -> Result<u64, CloseReason> {
        let item = self.judge(frame)?;
        if matches!(item, Item::Reply(_) | Item::Reset) {
            self.ended_there = true;
            // Nobody on the other side reads any more.
            self.clear_out();
        }
        if item == Item::Cancel {
            self.cancelled = true;
            self.wakers.writable.notify_waiters();
        }
        if self.orphaned {
            // Nobody reads here either, but the peer must be able to finish.
            return Ok(data_length(&item));
        }
        self.push_item(item)?;
        self.wakers.readable.notify_one();
        Ok(0)
    }

    /// Turns a frame into an item if the peer may send it now.
    fn judge(&mut self, frame: Frame) -> Result<Item, CloseReason> {
        if self.ended_there {
            return Err(CloseReason::Protocol("a frame after the reply"));
        }
        match (frame.kind, self.asking) {
            (Kind::Data, _) => {
                let length = frame.body.len() as u64;
                self.receive_credit = self
                    .receive_credit
                    .checked_sub(length)
                    .ok_or(CloseReason::Protocol("data without credit"))?;
                Ok(Item::Data {
                    stream: frame.flags & STREAM_MASK,
                    bytes: detach(frame.body),
                    last: frame.flags & FIN != 0,
                })
            }
            (Kind::Event, _) => Ok(Item::Event(detach(frame.body))),
            (Kind::Reply, true) => Ok(Item::Reply(detach(frame.body))),
            (Kind::Reset, true) => Ok(Item::Reset),
            (Kind::Cancel, false) => Ok(Item::Cancel),
            (Kind::Cancel, true) => Err(CloseReason::Protocol("a cancel from the answering side")),
            _ => Err(CloseReason::Protocol("an answer from the asking side")),
        }
    }

    fn push_item(&mut self, item: Item) -> Result<(), CloseReason> {
        let Some(item) = self.merge(item) else {
            return Ok(());
        };
        if let Some(bytes) = uncredited(&item) {
            self.unread_items += 1;
            self.unread_control += bytes;
            if self.unread_items > MAX_UNREAD_ITEMS || self.unread_control > MAX_UNREAD_CONTROL {
                return Err(CloseReason::Protocol("too much unread on a channel"));
            }
        }
        self.inbox.push_back(item);
        Ok(())
    }

    /// Appends data to the unread data of the same stream, so that many small frames cost what
    /// their bytes cost. Returns the item if that cannot be.
    fn merge(&mut self, item: Item) -> Option<Item> {
        let Item::Data {
            stream,
            bytes,
            last,
        } = item
        else {
            return Some(item);
        };
        match self.inbox.back_mut() {
            _ if bytes.is_empty() && !last => None,
            Some(Item::Data {
                stream: tail_stream,
                bytes: tail,
                last: tail_last,
            }) if *tail_stream == stream && !*tail_last && tail.len() + bytes.len() <= MAX_DATA => {
                let mut merged = std::mem::take(tail)
                    .try_into_mut()
                    .unwrap_or_else(|shared| BytesMut::from(&shared[..]));
                merged.extend_from_slice(&bytes);
                *tail = merged.freeze();
                *tail_last = last;
                None
            }
            _ => Some(Item::Data {
                stream,
                bytes,
                last,
            }),
        }
    }

    /// Returns how many bytes wait on this lane, both ways.
    #[cfg(test)]
    pub(crate) fn held_bytes(&self) -> usize {
        let unread: u64 = self.inbox.iter().map(data_length).sum();
        self.out_bytes + usize::try_from(unread).unwrap() + self.unread_control
    }
}

/// Returns the size of an item that costs the peer no credit.
fn uncredited(item: &Item) -> Option<usize> {
    match item {
        Item::Data { bytes, .. } if !bytes.is_empty() => None,
        Item::Event(bytes) | Item::Reply(bytes) => Some(bytes.len()),
        _ => Some(0),
    }
}

fn data_length(item: &Item) -> u64 {
    match item {
        Item::Data { bytes, .. } => bytes.len() as u64,
        _ => 0,
    }
}

fn detach(body: Bytes) -> Bytes {
    if body.len() <= DETACH_LIMIT {
        Bytes::copy_from_slice(&body)
    } else {
        body
    }
}
