//! A command from its launch to its end.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use exoshell_wire::{
    Cause, ExecDone, Failure, FailureKind, Note, Outcome, ProcessInfo, RawBytes, SecretValues,
    Timings, stream,
};
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;

use super::ending::end_tree;
use super::reader::Reader;
use super::scanner::Piece;
use super::state::{Ready, Start, State};
use super::stream::Food;
use super::{Busy, PlainCommand, script};
use crate::pipe::readable;
use crate::{ExecEvent, Launched, PlaceError, Trouble};

/// How long a shell may take to be ready.
const READY_LIMIT: Duration = Duration::from_secs(60);

/// How long the streams may take to end once the command has.
const DRAIN_LIMIT: Duration = Duration::from_secs(2);

/// What a command needs on its way.
pub(super) struct Running {
    pub(super) shell: Busy,
    pub(super) nonce: String,
    pub(super) start: Start,
    /// Whether its session is new.
    pub(super) fresh: bool,
    pub(super) command: PlainCommand,
    pub(super) feed: mpsc::Sender<Food>,
    pub(super) tell: mpsc::Sender<Result<ExecEvent, PlaceError>>,
    pub(super) cancelled: watch::Receiver<bool>,
}

/// The program's streams and what was seen on them.
struct Streams {
    out: Reader,
    err: Reader,
    feeder: Pin<Box<dyn Future<Output = ()> + Send>>,
    fed: bool,
    /// An event the caller has not taken yet.
    waiting: Option<ExecEvent>,
    code: Option<i32>,
    state: Option<State>,
    sent: [u64; 2],
}

/// How a command came to its end.
struct End {
    cause: Cause,
    unkillable: Vec<ProcessInfo>,
    at: Instant,
}

impl Running {
    /// Runs the command; the answer says whether it was started.
    pub(super) async fn run(
        mut self,
        launched: Launched,
        food: mpsc::Receiver<Food>,
        answer: oneshot::Sender<Result<(), PlaceError>>,
    ) {
        let began = Instant::now();
        let mut streams = Streams {
            out: Reader::new(launched.stdout, &self.nonce),
            err: Reader::new(launched.stderr, &self.nonce),
            feeder: Box::pin(feed(launched.stdin, food)),
            fed: false,
            waiting: None,
            code: None,
            state: None,
            sent: [0; 2],
        };
        let mut cancelled = self.cancelled.clone();
        let ready = tokio::select! {
            ready = self.prepare(&mut streams) => ready,
            // Nobody waits any more. The shell ends with its stdin.
            _ = cancelled.wait_for(|cancelled| *cancelled) => return,
        };
        let started = ready.and_then(|ready| {
            self.give(script::line(&self.command.command))?;
            Ok(ready)
        });
        let ready = match started {
            Ok(ready) => ready,
            Err(error) => {
                let _ = answer.send(Err(error));
                return;
            }
        };
        // The command is on its way only when the streams are looked at again.
        if answer.send(Ok(())).is_err() {
            return;
        }
        let pid = ready.pid;
        streams.waiting = Some(ExecEvent::Started {
            pid,
            secrets: SecretValues::default(),
        });
        let started = Instant::now();
        let end = self.follow(&mut streams, pid).await;
        let timings = Timings {
            spawn_us: micros(started - began),
            run_us: micros(end.at - started),
            drain_us: micros(end.at.elapsed()),
            warm: false,
        };
        let done = self.conclude(streams, &ready, end, timings);
        let _ = self.tell.send(Ok(ExecEvent::Done(Box::new(done)))).await;
        drop(launched.keep);
    }

    fn give(&self, line: Vec<u8>) -> Result<(), PlaceError> {
        let gone = |_full| PlaceError::Nonsense("the shell stopped reading".to_owned());
        self.feed.try_send(Some(line.into())).map_err(gone)
    }

    /// Brings the shell to where the command starts.
    async fn prepare(&self, streams: &mut Streams) -> Result<Ready, PlaceError> {
        let shell = script::shell(&self.nonce, self.command.merge, self.command.stdin);
        let workdir = self.command.workdir.as_ref().map(AsRef::as_ref);
        let prelude = script::prelude(&self.nonce, &self.start, workdir);
        let nonce = script::line(self.nonce.as_bytes());
        let lines = [
            nonce,
            script::line(shell.as_bytes()),
            script::line(&prelude),
        ];
        self.give(lines.concat())?;
        let limit = tokio::time::sleep(READY_LIMIT);
        tokio::pin!(limit);
        loop {
            let piece = tokio::select! {
                piece = streams.out.next() => piece,
                _ = streams.err.next(), if !streams.err.ended => continue,
                () = &mut streams.feeder, if !streams.fed => {
                    streams.fed = true;
                    continue;
                }
                () = &mut limit => return Err(streams.no_shell(Trouble::TooSlow)),
            };
            match piece {
                Some(Piece::Report(b'R', report)) => {
                    let unclear = || PlaceError::Nonsense("a shell's report".to_owned());
                    return Ready::parse(&report).ok_or_else(unclear);
                }
                Some(Piece::Report(b'W', why)) => return Err(self.cannot_enter(&why)),
                Some(Piece::End(_)) | None => {
                    streams.last_words().await;
                    return Err(streams.no_shell(Trouble::DoesNotStart));
                }
                Some(_) => {}
            }
        }
    }

    fn cannot_enter(&self, why: &[u8]) -> PlaceError {
        let path = self.command.workdir.clone().unwrap_or_default().display();
        let why = String::from_utf8_lossy(why);
        let message = format!("cannot enter the working directory `{path}`: {why}");
        Failure::new(FailureKind::Workdir, message).into()
    }

    /// Hands the output on until the command has ended or was ended.
    async fn follow(&mut self, streams: &mut Streams, pid: u32) -> End {
        let mut end = End {
            cause: Cause::Ended,
            unkillable: Vec::new(),
            at: Instant::now(),
        };
        let deadline = self.command.timeout.map(|limit| Instant::now() + limit);
        let mut ending: Option<Pin<Box<dyn Future<Output = Vec<ProcessInfo>> + Send>>> = None;
        let mut drain: Option<Instant> = None;
        loop {
            let mut stop = None;
            let idle = ending.is_none() && drain.is_none();
            tokio::select! {
                permit = self.tell.reserve(), if streams.waiting.is_some() => {
                    match (permit, streams.waiting.take()) {
                        (Ok(permit), Some(event)) => permit.send(Ok(event)),
                        _ => stop = Some(Cause::Interrupted),
                    }
                }
                piece = streams.out.next(), if streams.reads() && !streams.out.ended => {
                    streams.take(stream::STDOUT, piece);
                }
                piece = streams.err.next(), if streams.reads() && !streams.err.ended => {
                    streams.take(stream::STDERR, piece);
                }
                () = &mut streams.feeder, if !streams.fed => streams.fed = true,
                _ = self.cancelled.wait_for(|cancelled| *cancelled), if idle => {
                    stop = Some(Cause::Interrupted);
                }
                () = until(deadline), if idle => stop = Some(Cause::Timeout),
                left = finished(&mut ending) => {
                    end.unkillable = left;
                    ending = None;
                    drain = Some(Instant::now() + DRAIN_LIMIT);
                }
                () = until(drain) => return end,
            }
            // The pipe is gone without a word: whatever still runs there has no one to report to.
            let lost = streams.out.ended && streams.code.is_none() && end.cause == Cause::Ended;
            if ending.is_none() && drain.is_none() {
                if let Some(cause) = stop {
                    end.cause = cause;
                }
                if stop.is_some() || lost {
                    end.at = Instant::now();
                    let place = Arc::clone(&self.shell.0.place);
                    ending = Some(Box::pin(end_tree(place, pid, self.command.grace)));
                } else if streams.out.ended {
                    end.at = Instant::now();
                    drain = Some(end.at + DRAIN_LIMIT);
                }
            }
            let silent = streams.out.ended && streams.err.ended && streams.waiting.is_none();
            if silent && ending.is_none() {
                return end;
            }
        }
    }

    fn conclude(&self, streams: Streams, ready: &Ready, end: End, timings: Timings) -> ExecDone {
        let inner = &self.shell.0;
        let mut notes = inner.notes(self.fresh, ready, &self.start);
        let captured = streams.state.is_some();
        if !captured && self.command.persist && self.command.session.is_some() {
            notes.push(Note::StateNotCaptured);
        }
        let outcome = match streams.code {
            // Only a shell that could not report was surely ended by a signal.
            Some(code @ 129..=192) if !captured => Outcome::Signalled(code - 128),
            Some(code) => Outcome::Exited(code),
            None => Outcome::Unknown,
        };
        let state = streams.state;
        ExecDone {
            outcome,
            cause: end.cause,
            cwd: RawBytes(inner.carry_over(&self.command, ready, state)),
            leftovers: Vec::new(),
            unkillable: end.unkillable,
            spill: None,
            notes,
            timings,
            stdout_bytes: streams.sent[0],
            stderr_bytes: streams.sent[1],
        }
    }
}

impl Streams {
    /// Tells whether there is room for more output.
    const fn reads(&self) -> bool {
        self.waiting.is_none()
    }

    fn take(&mut self, number: u8, piece: Option<Piece>) {
        match piece {
            Some(Piece::Text(bytes)) => {
                let sent = &mut self.sent[usize::from(number == stream::STDERR)];
                *sent += bytes.len() as u64;
                self.waiting = Some(ExecEvent::Output {
                    stream: number,
                    bytes,
                });
            }
            Some(Piece::Report(b'S', report)) => self.state = State::parse(&report),
            Some(Piece::End(code)) if number == stream::STDOUT => self.code = Some(code),
            _ => {}
        }
    }

    /// Reads what is left on stderr, which may explain why there is no shell.
    async fn last_words(&mut self) {
        let rest = async { while !self.err.ended && self.err.next().await.is_some() {} };
        let _ = tokio::time::timeout(DRAIN_LIMIT, rest).await;
    }

    fn no_shell(&self, trouble: Trouble) -> PlaceError {
        let said = [self.err.noise(), self.out.noise()].map(readable);
        let said = said.iter().find(|text| !text.is_empty());
        let message = match said {
            Some(text) => format!("no shell answers in the place; it said `{text}`"),
            None => "no shell answers in the place".to_owned(),
        };
        PlaceError::backend(trouble, message, "check that `sh` can be run there")
    }
}

/// Passes lines and stdin on, until there are no more or nobody reads them.
async fn feed(mut stdin: Box<dyn AsyncWrite + Send + Unpin>, mut food: mpsc::Receiver<Food>) {
    while let Some(Some(bytes)) = food.recv().await {
        if write(&mut stdin, &bytes).await.is_err() {
            return;
        }
    }
    let _ = stdin.shutdown().await;
}

async fn write(stdin: &mut (dyn AsyncWrite + Send + Unpin), bytes: &Bytes) -> std::io::Result<()> {
    stdin.write_all(bytes).await?;
    stdin.flush().await
}

async fn until(time: Option<Instant>) {
    match time {
        Some(time) => tokio::time::sleep_until(time).await,
        None => std::future::pending().await,
    }
}

async fn finished<T>(work: &mut Option<Pin<Box<dyn Future<Output = T> + Send>>>) -> T {
    match work {
        Some(work) => work.await,
        None => std::future::pending().await,
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
