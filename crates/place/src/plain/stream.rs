//! The caller's end of a command under way.

use bytes::Bytes;
use tokio::sync::{mpsc, watch};

use crate::{ExecEvent, PlaceError};

/// What the caller sends: stdin, or its end.
pub(super) type Food = Option<Bytes>;

/// A command under way. Dropping it cancels the command.
#[derive(Debug)]
pub struct PlainStream {
    events: mpsc::Receiver<Result<ExecEvent, PlaceError>>,
    cancel: watch::Sender<bool>,
    feed: Option<mpsc::Sender<Food>>,
}

impl PlainStream {
    pub(super) const fn new(
        events: mpsc::Receiver<Result<ExecEvent, PlaceError>>,
        cancel: watch::Sender<bool>,
        feed: Option<mpsc::Sender<Food>>,
    ) -> Self {
        Self {
            events,
            cancel,
            feed,
        }
    }

    /// Waits for what happens next. Cancel-safe.
    pub async fn next(&mut self) -> Result<ExecEvent, PlaceError> {
        let over = || PlaceError::Nonsense("the command has ended".to_owned());
        self.events.recv().await.ok_or_else(over)?
    }

    /// Asks for the command to be ended; [`ExecEvent::Done`] still comes.
    pub fn cancel(&self) {
        self.cancel.send_replace(true);
    }

    /// Returns the handle that feeds the command's stdin.
    pub fn stdin(&self) -> PlainStdin {
        PlainStdin(self.feed.clone())
    }
}

/// Feeds the stdin of a command that was started with one.
#[derive(Debug, Clone)]
pub struct PlainStdin(Option<mpsc::Sender<Food>>);

impl PlainStdin {
    /// Sends some bytes, as fast as the command reads.
    pub async fn send(&self, bytes: Bytes) -> Result<(), PlaceError> {
        self.give(Some(bytes)).await
    }

    /// Ends the stdin.
    pub async fn finish(&self) -> Result<(), PlaceError> {
        self.give(None).await
    }

    async fn give(&self, food: Food) -> Result<(), PlaceError> {
        let over = "the command reads no stdin any more";
        match &self.0 {
            Some(feed) if feed.send(food).await.is_ok() => Ok(()),
            _ => Err(PlaceError::Unsendable(over.to_owned())),
        }
    }
}
