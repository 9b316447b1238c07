//! Output on its way to a host that may go and come back.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use exoshell_mux::ChannelSender;
use exoshell_wire::{Failure, FailureKind, MAX_DATA};
use tokio::sync::Notify;

use super::log::{Gap, Log, Offsets};

/// How much that was told is kept: the largest window a host may open, and what waits for the
/// pipe in front of it. A host has taken everything before that, or it could not have been sent.
const KEEP: usize = 1280 * 1024;

/// How much is held altogether. A command that writes more while nobody listens has to wait.
const HOLD: usize = KEEP + 256 * 1024;

/// The output of one command and who listens to it.
#[derive(Debug, Default)]
pub(crate) struct Audience {
    state: Mutex<State>,
    /// Wakes the teller: there is something to tell, or somebody else to tell it.
    news: Notify,
    /// Wakes those who wait for something to be told.
    told: Notify,
}

#[derive(Debug, Default)]
struct State {
    log: Log,
    host: Option<ChannelSender>,
    /// Counts the hosts, so that what was meant for one is not noted for the next.
    round: u64,
    abandoned: bool,
}

/// Something to tell.
struct Piece {
    host: ChannelSender,
    round: u64,
    stream: u8,
    bytes: Bytes,
}

impl Audience {
    /// Builds the audience of one host, and starts telling it.
    pub(super) fn new(host: ChannelSender) -> Arc<Self> {
        let audience = Arc::new(Self::default());
        audience.state().host = Some(host);
        tokio::spawn(Arc::clone(&audience).tell());
        audience
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes output, once there is room for it. When nobody will ever listen it is dropped.
    pub(crate) async fn push(&self, stream: u8, bytes: &Bytes) {
        loop {
            let told = self.told.notified();
            {
                let mut state = self.state();
                if state.abandoned {
                    return;
                }
                state.log.forget(KEEP);
                if state.log.len() + bytes.len() <= HOLD {
                    state.log.push(stream, bytes);
                    break;
                }
            }
            told.await;
        }
        self.news.notify_one();
    }

    /// Goes on with another host, from where it is; `event` is what it hears first.
    pub(super) fn attach(
        &self,
        host: ChannelSender,
        from: Offsets,
        event: Vec<u8>,
    ) -> Result<(), Failure> {
        let mut state = self.state();
        state.log.rewind(from).map_err(refusal)?;
        let _ = host.event(event);
        state.host = Some(host);
        state.round += 1;
        drop(state);
        self.news.notify_one();
        self.told.notify_waiters();
        Ok(())
    }

    /// Notes that nobody listens for now.
    pub(super) fn detach(&self) {
        let mut state = self.state();
        state.host = None;
        state.round += 1;
        drop(state);
        self.told.notify_waiters();
    }

    /// Notes that nobody will listen any more.
    pub(super) fn abandon(&self) {
        let mut state = self.state();
        state.abandoned = true;
        state.host = None;
        state.round += 1;
        state.log = Log::default();
        drop(state);
        self.news.notify_one();
        self.told.notify_waiters();
    }

    /// Waits until the present host was told everything.
    pub(super) async fn all_told(&self) {
        loop {
            let told = self.told.notified();
            {
                let mut state = self.state();
                if state.host.is_some() && state.log.peek(1).is_none() {
                    return;
                }
            }
            told.await;
        }
    }

    /// Takes the log, at the end.
    pub(super) fn finish(&self) -> Log {
        let mut state = self.state();
        state.log.forget(KEEP);
        let mut log = std::mem::take(&mut state.log);
        drop(state);
        self.abandon();
        log.shrink();
        log
    }

    async fn tell(self: Arc<Self>) {
        loop {
            // Nobody else waits here, and `notify_one` is remembered, so nothing is missed.
            let Some(piece) = self.next_piece() else {
                if self.state().abandoned {
                    return;
                }
                self.news.notified().await;
                continue;
            };
            let length = piece.bytes.len();
            let sent = tokio::select! {
                biased;
                sent = piece.host.send(piece.stream, piece.bytes) => sent.is_ok(),
                // A dead pipe takes nothing for a long time.
                () = self.round_over(piece.round) => continue,
            };
            self.note(piece.round, length, sent);
        }
    }

    fn next_piece(&self) -> Option<Piece> {
        let mut state = self.state();
        let host = state.host.clone()?;
        let (stream, bytes) = state.log.peek(MAX_DATA)?;
        Some(Piece {
            host,
            round: state.round,
            stream,
            bytes,
        })
    }

    /// Notes what became of a piece, unless another host has come since.
    fn note(&self, round: u64, length: usize, sent: bool) {
        let mut state = self.state();
        if state.round != round {
            return;
        }
        if sent {
            state.log.advance(length);
        } else {
            // Whoever watches the pipe sees its end as well.
            state.host = None;
        }
        drop(state);
        self.told.notify_waiters();
    }

    async fn round_over(&self, round: u64) {
        loop {
            let told = self.told.notified();
            if self.state().round != round {
                return;
            }
            told.await;
        }
    }
}

/// Explains why a run cannot be told from somewhere on.
pub(super) fn refusal(gap: Gap) -> Failure {
    match gap {
        Gap::Forgotten => Failure::new(
            FailureKind::RunOver,
            "the output from there on is not kept any more",
        ),
        Gap::Ahead => Failure::new(
            FailureKind::BadRequest,
            "the command has not written that much",
        ),
    }
}
