//! A whole pipe: opening and accepting channels.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use exoshell_wire::MAX_CONTROL;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc;

use crate::channel::Channel;
use crate::pump;
use crate::sender::SendError;
#[cfg(test)]
use crate::state::Held;
use crate::state::{CloseReason, Shared};

/// How many requests may wait to be accepted.
const ACCEPT_QUEUE: usize = 256;

/// Which side of the pipe this is; each side opens channels with its own numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Opens odd channels.
    Host,
    /// Opens even channels.
    Guest,
}

impl Role {
    const fn first_channel(self) -> u32 {
        match self {
            Self::Host => 1,
            Self::Guest => 2,
        }
    }

    /// Tells whether a channel number belongs to the other side.
    pub(crate) const fn is_theirs(self, channel: u32) -> bool {
        channel != 0 && channel % 2 != self.first_channel() % 2
    }
}

/// How a connection behaves.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// How often to ask for a sign of life; the connection counts as lost when three in a row
    /// brought none. `None` trusts the pipe to report its own end.
    pub heartbeat: Option<Duration>,
}

/// A handle to a connection; clones share it. It ends when every handle and the
/// [`Incoming`] are dropped, or when the pipe does.
#[derive(Debug, Clone)]
pub struct Connection {
    shared: Arc<Shared>,
    guard: Arc<CloseOnDrop>,
}

/// Ends the connection with its last handle.
#[derive(Debug)]
pub(crate) struct CloseOnDrop(Arc<Shared>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close(CloseReason::Dropped);
    }
}

/// The channels the other side opens.
#[derive(Debug)]
pub struct Incoming {
    requests: mpsc::Receiver<(Channel, Bytes)>,
    _guard: Arc<CloseOnDrop>,
}

impl Incoming {
    /// Waits for the next channel and the body of its request; `None` at the end.
    pub async fn accept(&mut self) -> Option<(Channel, Bytes)> {
        self.requests.recv().await
    }
}

impl Connection {
    /// Starts talking over a pipe whose hellos were exchanged already.
    ///
    /// `early` are bytes that were read behind the hello. Must be called inside a tokio runtime.
    pub fn start<R, W>(
        reader: R,
        writer: W,
        role: Role,
        options: Options,
        early: &[u8],
    ) -> (Self, Incoming)
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let shared = Arc::new(Shared::new(role.first_channel()));
        let (accept, requests) = mpsc::channel(ACCEPT_QUEUE);
        pump::spawn(&shared, (reader, writer), role, options, accept, early);
        let guard = Arc::new(CloseOnDrop(Arc::clone(&shared)));
        let connection = Self {
            shared,
            guard: Arc::clone(&guard),
        };
        let incoming = Incoming {
            requests,
            _guard: guard,
        };
        (connection, incoming)
    }

    /// Opens a channel with a request.
    pub fn open(&self, body: Vec<u8>) -> Result<Channel, SendError> {
        if body.len() > MAX_CONTROL {
            return Err(SendError::TooLong { length: body.len() });
        }
        let mut state = self.shared.lock();
        if let Some(reason) = &state.closed {
            return Err(reason.clone().into());
        }
        let (id, wakers) = state.ask(body)?;
        drop(state);
        self.shared.work.notify_one();
        Ok(Channel::new(id, Arc::clone(&self.shared), wakers))
    }

    /// Tells why the connection is over, if it is.
    pub fn closed(&self) -> Option<CloseReason> {
        self.shared.lock().closed.clone()
    }

    /// Waits for the end of the connection.
    pub async fn wait_closed(&self) -> CloseReason {
        self.shared.wait_closed().await
    }

    /// Waits until everything that may be sent was written to the pipe, so that the process may
    /// exit after its last reply.
    pub async fn flushed(&self) -> Result<(), CloseReason> {
        loop {
            let written = self.shared.written.notified();
            {
                let state = self.shared.lock();
                if let Some(reason) = &state.closed {
                    return Err(reason.clone());
                }
                if state.is_idle() {
                    return Ok(());
                }
            }
            written.await;
        }
    }

    /// Closes the connection now, for every handle.
    ///
    /// What was queued already is still written if the pipe takes it within a second.
    pub fn close(&self) {
        self.guard.0.close(CloseReason::Dropped);
    }

    /// Counts what the connection holds.
    #[cfg(test)]
    pub(crate) fn held(&self) -> Held {
        self.shared.lock().held()
    }

    /// Returns what every task of the connection holds, to see the tasks end.
    #[cfg(test)]
    pub(crate) fn tasks(&self) -> std::sync::Weak<Shared> {
        Arc::downgrade(&self.shared)
    }
}
