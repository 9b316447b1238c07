//! A command under way, whatever becomes of the connection.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use exoshell_place::plain::PlainStream;
use exoshell_place::{ExecEvent, ExecStream, Link, PlaceError};
use exoshell_wire::{Exec, Failure, FailureKind, Resume, stream};

use super::Input;
use super::feed::{Feeder, Outlet, Stdin};
use crate::places::slot::Slot;
use crate::sudo::{Answers, Asking};

/// Where a command's events come from.
enum Source {
    /// A guest. The link ends with its last holder, and the command with the link.
    Guest { stream: ExecStream, link: Link },
    /// A shell of its own.
    Plain(PlainStream),
}

/// A command under way. Dropping it ends the command.
pub(super) struct Running {
    pub(super) id: String,
    slot: Arc<Slot>,
    incarnation: String,
    source: Source,
    first: Option<ExecEvent>,
    /// How much of stdout and stderr has arrived.
    received: [u64; 2],
    feeder: Option<Feeder>,
    /// Answers its sudo.
    answers: Option<Answers>,
}

/// What became of a command whose connection was lost.
pub(super) enum Recovered {
    /// It goes on.
    Resumed,
    /// The guest never got it, so it may be sent again over this link.
    NeverStarted(Link),
}

impl Running {
    /// Sends a command to a guest.
    pub(super) async fn start(
        slot: &Arc<Slot>,
        link: &Link,
        exec: Exec,
        command: Bytes,
    ) -> Result<Self, PlaceError> {
        let id = exec.id.clone();
        let stream = link.exec(exec, command).await?;
        Ok(Self {
            id,
            slot: Arc::clone(slot),
            incarnation: link.hello().incarnation.clone(),
            source: Source::Guest {
                stream,
                link: link.clone(),
            },
            first: None,
            received: [0; 2],
            feeder: None,
            answers: None,
        })
    }

    /// Follows a command that has a shell of its own.
    pub(super) fn plain(id: String, slot: &Arc<Slot>, stream: PlainStream) -> Self {
        Self {
            id,
            slot: Arc::clone(slot),
            incarnation: String::new(),
            source: Source::Plain(stream),
            first: None,
            received: [0; 2],
            feeder: None,
            answers: None,
        }
    }

    /// Waits for what happens next. Cancel-safe.
    pub(super) async fn next(&mut self) -> Result<ExecEvent, PlaceError> {
        let event = match self.first.take() {
            Some(event) => event,
            None => match &mut self.source {
                Source::Guest { stream, .. } => stream.next().await?,
                Source::Plain(stream) => stream.next().await?,
            },
        };
        Ok(event)
    }

    /// Counts what was taken over; only that need not be sent again.
    pub(super) fn took(&mut self, number: u8, length: usize) {
        let [stdout, stderr] = &mut self.received;
        let count = if number == stream::STDERR {
            stderr
        } else {
            stdout
        };
        *count += length as u64;
    }

    /// Makes an event the next one again.
    pub(super) fn put_back(&mut self, event: ExecEvent) {
        self.first = Some(event);
    }

    /// Asks for the command's end.
    pub(super) fn cancel(&self) {
        match &self.source {
            Source::Guest { stream, .. } => stream.cancel(),
            Source::Plain(stream) => stream.cancel(),
        }
    }

    /// Starts passing stdin on.
    pub(super) fn feed(&mut self, input: Input) {
        self.feeder = Feeder::start(input);
        if let Some(feeder) = &self.feeder {
            let stdin = match &self.source {
                Source::Guest { stream, .. } => Stdin::Guest(stream.stdin()),
                Source::Plain(stream) => Stdin::Plain(stream.stdin()),
            };
            feeder.attach(Outlet {
                stdin,
                from: 0,
                ended: false,
            });
        }
    }

    /// Starts to answer when its sudo asks for a password.
    pub(super) fn answer_passwords(&mut self, asking: &Arc<Asking>) {
        if let Source::Guest { link, .. } = &self.source {
            self.answers = Some(Answers::start(asking, link, &self.id));
        }
    }

    /// Tells whether the command may go on although the connection was lost.
    pub(super) fn can_recover(&self, error: &PlaceError) -> bool {
        matches!(self.source, Source::Guest { .. }) && self.slot.can_regain(error)
    }

    /// Gets the connection back while the command's lease runs, and goes on where it stopped.
    pub(super) async fn recover(&mut self, lost: PlaceError) -> Result<Recovered, PlaceError> {
        let until = Instant::now() + self.slot.life().lease;
        loop {
            let link = self.slot.reconnect(&self.incarnation, until).await;
            let link = link.map_err(|error| PlaceError::PlaceLost {
                message: format!("{lost}, and it did not come back: {error}"),
            })?;
            let [stdout, stderr] = self.received;
            let resumed = link.resume(Resume {
                id: self.id.clone(),
                stdout,
                stderr,
            });
            let Ok(mut stream) = resumed else {
                // It is lost again already.
                continue;
            };
            match stream.next().await {
                Ok(ExecEvent::Resumed(resumed)) => {
                    if let Some(feeder) = &self.feeder {
                        feeder.attach(Outlet {
                            stdin: Stdin::Guest(stream.stdin()),
                            from: resumed.stdin,
                            ended: resumed.stdin_ended,
                        });
                    }
                    if let Some(answers) = &mut self.answers {
                        answers.again(&link, &self.id);
                    }
                    self.source = Source::Guest { stream, link };
                    return Ok(Recovered::Resumed);
                }
                Err(PlaceError::Failed(Failure {
                    kind: FailureKind::NoRun,
                    ..
                })) => return Ok(Recovered::NeverStarted(link)),
                Err(error @ PlaceError::Lost(_)) if Instant::now() >= until => return Err(error),
                Err(PlaceError::Lost(_)) => {}
                Err(error) => {
                    return Err(PlaceError::PlaceLost {
                        message: format!(
                            "{lost}, and the command could not be found again: {error}"
                        ),
                    });
                }
                Ok(event) => {
                    return Err(PlaceError::Nonsense(format!(
                        "a resumed command began with {event:?}"
                    )));
                }
            }
        }
    }
}
