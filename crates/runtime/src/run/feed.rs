//! A command's stdin, also across a lost connection.

use std::collections::VecDeque;

use bytes::Bytes;
use exoshell_place::plain::PlainStdin;
use exoshell_place::{PlaceError, StdinSender};
use tokio::sync::mpsc;

use super::Input;

/// How much of what was sent is kept for sending it again: more than can be under way.
const KEPT: usize = 1024 * 1024;

/// How many outlets may wait: each follows a lost connection.
const OUTLETS: usize = 16;

/// The stdin of a command.
#[derive(Debug)]
pub(super) enum Stdin {
    Guest(StdinSender),
    Plain(PlainStdin),
}

impl Stdin {
    async fn send(&self, bytes: Bytes) -> Result<(), PlaceError> {
        match self {
            Self::Guest(stdin) => stdin.send(bytes).await,
            Self::Plain(stdin) => stdin.send(bytes).await,
        }
    }

    async fn finish(&self) -> Result<(), PlaceError> {
        match self {
            Self::Guest(stdin) => stdin.finish().await,
            Self::Plain(stdin) => stdin.finish().await,
        }
    }
}

/// Where stdin goes from now on, and from which byte.
#[derive(Debug)]
pub(super) struct Outlet {
    pub(super) stdin: Stdin,
    pub(super) from: u64,
    /// Whether the guest has seen its end already.
    pub(super) ended: bool,
}

/// Passes stdin on while it is held. A command that stops reading ends it.
#[derive(Debug)]
pub(super) struct Feeder {
    outlets: mpsc::Sender<Outlet>,
    task: tokio::task::JoinHandle<()>,
}

impl Feeder {
    pub(super) fn start(input: Input) -> Option<Self> {
        if matches!(input, Input::Empty) {
            return None;
        }
        let (outlets, receiver) = mpsc::channel(OUTLETS);
        let task = tokio::spawn(async move { Feed::new(receiver).run(input).await });
        Some(Self { outlets, task })
    }

    /// Gives it another outlet.
    pub(super) fn attach(&self, outlet: Outlet) {
        // A feeder that is done needs none, and only the last one counts.
        let _ = self.outlets.try_send(outlet);
    }
}

impl Drop for Feeder {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Feed {
    outlets: mpsc::Receiver<Outlet>,
    outlet: Option<Stdin>,
    /// What was sent last.
    kept: VecDeque<Bytes>,
    kept_bytes: usize,
    /// How many bytes were sent in all.
    sent: u64,
}

/// There will be no other outlet.
struct Over;

impl Feed {
    const fn new(outlets: mpsc::Receiver<Outlet>) -> Self {
        Self {
            outlets,
            outlet: None,
            kept: VecDeque::new(),
            kept_bytes: 0,
            sent: 0,
        }
    }

    async fn run(mut self, input: Input) {
        let mut pieces = match input {
            Input::Empty => return,
            Input::Bytes(bytes) => {
                let (sender, receiver) = mpsc::channel(1);
                // The only piece, and room for it.
                let _ = sender.try_send(bytes);
                receiver
            }
            Input::Stream(pieces) => pieces,
        };
        loop {
            let piece = tokio::select! {
                piece = pieces.recv() => piece,
                outlet = self.outlets.recv() => {
                    match outlet {
                        Some(outlet) => {
                            if self.switch(outlet).await.is_err() { return }
                            continue;
                        }
                        None => return,
                    }
                }
            };
            let Some(piece) = piece else { break };
            self.remember(&piece);
            if self.send(piece).await.is_err() {
                return;
            }
        }
        self.end().await;
    }

    /// Sends a piece, if need be on later outlets.
    async fn send(&mut self, piece: Bytes) -> Result<(), Over> {
        if let Some(stdin) = &self.outlet
            && stdin.send(piece).await.is_ok()
        {
            return Ok(());
        }
        // The next outlet says what is missing, this piece included.
        let outlet = self.outlets.recv().await.ok_or(Over)?;
        Box::pin(self.switch(outlet)).await
    }

    /// Ends the stdin, also of outlets that come later.
    async fn end(&mut self) {
        if let Some(stdin) = &self.outlet {
            // The command may be gone; then it needs no end of its stdin.
            let _ = stdin.finish().await;
        }
        while let Some(outlet) = self.outlets.recv().await {
            let ended = outlet.ended;
            if self.switch(outlet).await.is_err() {
                return;
            }
            if let Some(stdin) = &self.outlet
                && !ended
            {
                let _ = stdin.finish().await;
            }
        }
    }

    /// Goes on with another outlet, from the byte it asks for.
    async fn switch(&mut self, outlet: Outlet) -> Result<(), Over> {
        let missing = self.since(outlet.from);
        self.outlet = Some(outlet.stdin);
        for piece in missing {
            let Some(stdin) = &self.outlet else { break };
            if stdin.send(piece).await.is_err() {
                let outlet = self.outlets.recv().await.ok_or(Over)?;
                return Box::pin(self.switch(outlet)).await;
            }
        }
        Ok(())
    }

    fn remember(&mut self, piece: &Bytes) {
        self.sent += piece.len() as u64;
        self.kept_bytes += piece.len();
        self.kept.push_back(piece.clone());
        while let Some(front) = self.kept.front() {
            if self.kept_bytes - front.len() < KEPT {
                break;
            }
            self.kept_bytes -= front.len();
            self.kept.pop_front();
        }
    }

    /// Returns what was sent from this byte on.
    fn since(&self, from: u64) -> Vec<Bytes> {
        let mut at = self.sent - self.kept_bytes as u64;
        let mut missing = Vec::new();
        for piece in &self.kept {
            let skip = usize::try_from(from.saturating_sub(at)).unwrap_or(usize::MAX);
            at += piece.len() as u64;
            if skip < piece.len() {
                missing.push(piece.slice(skip..));
            }
        }
        missing
    }
}
