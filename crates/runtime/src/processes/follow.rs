//! Following a process, whatever becomes of the connection.

use std::sync::Arc;

use exoshell_place::{FollowEvent, Link, PlaceError};
use exoshell_wire::{Follow, ReadFrom};

use crate::places::slot::Slot;

/// The output of a process as it comes. A lost connection is made again, and nothing comes twice.
/// Dropping it stops the following, not the process.
#[derive(Debug)]
pub struct FollowStream {
    id: String,
    slot: Arc<Slot>,
    link: Link,
    stream: exoshell_place::FollowStream,
    /// The offset of the next byte, once it is known.
    position: Option<u64>,
}

impl FollowStream {
    pub(super) fn start(
        slot: Arc<Slot>,
        link: Link,
        id: String,
        from: ReadFrom,
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
        })
    }

    /// Waits for what comes next. Cancel-safe.
    pub async fn next(&mut self) -> Result<FollowEvent, PlaceError> {
        loop {
            match self.stream.next().await {
                Ok(FollowEvent::At(at)) => {
                    let again = self.position.replace(at.offset) == Some(at.offset);
                    if !again {
                        return Ok(FollowEvent::At(at));
                    }
                }
                Ok(FollowEvent::Output(bytes)) => {
                    let length = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                    self.position = self.position.map(|at| at.saturating_add(length));
                    return Ok(FollowEvent::Output(bytes));
                }
                Ok(done @ FollowEvent::Done(_)) => return Ok(done),
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
