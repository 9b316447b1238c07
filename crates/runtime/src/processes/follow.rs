//! Following a process, whatever becomes of the connection.

use std::sync::Arc;

use bytes::Bytes;
use exoshell_place::{FollowEvent, Link, PlaceError};
use exoshell_wire::{Follow, ProcessStatus, ReadFrom};

use crate::places::slot::Slot;
use crate::redact::{QUIET, RedactStream};

/// The output of a process as it comes, without its secrets. A lost connection is made again, and
/// nothing comes twice. Dropping it stops the following, not the process.
#[derive(Debug)]
pub struct FollowStream {
    id: String,
    slot: Arc<Slot>,
    link: Link,
    stream: exoshell_place::FollowStream,
    /// The offset of the next byte, once it is known.
    position: Option<u64>,
    redact: RedactStream,
    /// Whether what is held back was looked at since output came.
    relaxed: bool,
    /// The end, when it waits for what was held back.
    done: Option<Box<ProcessStatus>>,
}

impl FollowStream {
    pub(super) fn start(
        slot: Arc<Slot>,
        link: Link,
        id: String,
        from: ReadFrom,
        redact: RedactStream,
    ) -> Result<Self, PlaceError> {
        let stream = link.follow(Follow {
            id: id.clone(),
            from,
        })?;
        Ok(Self {
            id,
            slot,
            link,
            stream,
            position: None,
            redact,
            relaxed: true,
            done: None,
        })
    }

    /// Returns the offset in the process's output behind what has arrived. Hiding secrets changes
    /// lengths, so what was handed out cannot be counted instead.
    pub const fn position(&self) -> Option<u64> {
        self.position
    }

    /// Returns what is held back because it may be the start of a secret: for a reader that stops
    /// before the end.
    pub fn rest(&mut self) -> Bytes {
        self.redact.finish().into()
    }

    /// Waits for what comes next. Cancel-safe.
    pub async fn next(&mut self) -> Result<FollowEvent, PlaceError> {
        if let Some(status) = self.done.take() {
            return Ok(FollowEvent::Done(status));
        }
        loop {
            let waits = self.redact.held() > 0 && !self.relaxed;
            let event = tokio::select! {
                biased;
                event = self.stream.next() => event,
                () = tokio::time::sleep(QUIET), if waits => {
                    self.relaxed = true;
                    let shown = self.redact.relax();
                    if shown.is_empty() {
                        continue;
                    }
                    return Ok(FollowEvent::Output(shown.into()));
                }
            };
            match event {
                Ok(FollowEvent::At(at)) => {
                    let again = self.position.replace(at.offset) == Some(at.offset);
                    if !again {
                        return Ok(FollowEvent::At(at));
                    }
                }
                Ok(FollowEvent::Output(bytes)) => {
                    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                    self.position = self.position.map(|at| at.saturating_add(length));
                    self.relaxed = false;
                    return Ok(FollowEvent::Output(self.redact.push(&bytes).into()));
                }
                Ok(FollowEvent::Done(status)) => {
                    let rest = self.rest();
                    if rest.is_empty() {
                        return Ok(FollowEvent::Done(status));
                    }
                    self.done = Some(status);
                    return Ok(FollowEvent::Output(rest));
                }
                Err(error) => self.go_on(error).await?,
            }
        }
    }

    /// Follows on from where a lost connection stopped.
    async fn go_on(&mut self, lost: PlaceError) -> Result<(), PlaceError> {
        let Some(position) = self.position.filter(|_| self.slot.can_regain(&lost)) else {
            return Err(lost);
        };
        self.link = self.slot.regain(&self.link).await?;
        let (id, from) = (self.id.clone(), ReadFrom::Byte(position));
        match self.link.follow(Follow { id, from }) {
            Ok(stream) => self.stream = stream,
            // Lost again already; the old stream says so once more.
            Err(error) if self.slot.can_regain(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}
