//! A conversation with a guest.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use exoshell_mux::{Channel, ChannelSender, Connection, Item, Options, Role};
use exoshell_wire::{
    Acknowledge, Act, Acted, EndSession, Events, Exec, ExecDone, ExecStarted, Follow, FollowAt,
    Frame, FrameDecoder, GuestHello, GuestInfo, HostHello, Kind, OpenSession, OutputRead,
    PROTOCOL_VERSION, PasswordWanted, Passwords, ProcessEvent, ProcessStatus, Processes,
    ReadOutput, Reply, Request, Resume, Resumed, SecretValues, SessionEnded, SessionOpened, Start,
    Wait, Waited, WriteInput, stream,
};
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::{Pipe, PlaceError};

/// How long a guest may take to say hello.
const HELLO_LIMIT: Duration = Duration::from_secs(20);

/// How much output may be on its way to us before the guest waits. It keeps as much to send it
/// again, so a larger window would lose what is on its way when a pipe is cut.
pub(crate) const OUTPUT_WINDOW: u32 = 1024 * 1024;

/// How a link is opened.
#[derive(Debug, Clone)]
pub struct LinkOptions {
    /// This build, for people.
    pub build: String,
    /// Whether the guest may stay when its last host is gone.
    pub linger: bool,
    /// How many idle warm shells the guest may keep.
    pub max_warm_shells: u32,
    /// How often both sides ask for a sign of life; `None` trusts the pipe.
    pub heartbeat: Option<Duration>,
}

/// An open conversation with a guest; clones share it.
#[derive(Debug, Clone)]
pub struct Link {
    connection: Connection,
    hello: Arc<GuestHello>,
}

impl Link {
    /// Says hello on a fresh pipe.
    pub async fn open(pipe: Pipe, options: &LinkOptions) -> Result<Self, PlaceError> {
        match tokio::time::timeout(HELLO_LIMIT, Self::greet(pipe, options)).await {
            Ok(link) => link,
            Err(_) => Err(PlaceError::NoHello {
                message: format!("nothing came within {} s", HELLO_LIMIT.as_secs()),
            }),
        }
    }

    async fn greet(mut pipe: Pipe, options: &LinkOptions) -> Result<Self, PlaceError> {
        let host = HostHello {
            min_version: PROTOCOL_VERSION,
            max_version: PROTOCOL_VERSION,
            build: options.build.clone(),
            required: Vec::new(),
            linger: options.linger,
            max_warm_shells: Some(options.max_warm_shells),
            heartbeat_ms: options
                .heartbeat
                .map(|period| u64::try_from(period.as_millis()).unwrap_or(u64::MAX)),
        };
        let body = serde_json::to_vec(&host).map_err(|e| PlaceError::Nonsense(e.to_string()))?;
        let frame = Frame::new(Kind::Hello, 0, 0, body);
        let unreachable = |error: io::Error| PlaceError::Unreachable {
            message: error.to_string(),
        };
        pipe.writer
            .write_all(&frame.encode())
            .await
            .map_err(unreachable)?;
        pipe.writer.flush().await.map_err(unreachable)?;
        let mut decoder = FrameDecoder::default();
        decoder.extend(&pipe.early);
        let hello = read_hello(&mut pipe, &mut decoder).await?;
        let early = decoder.buffer().to_vec();
        let mux = Options {
            heartbeat: options.heartbeat,
        };
        let (connection, _incoming) =
            Connection::start(pipe.reader, pipe.writer, Role::Host, mux, &early);
        Ok(Self {
            connection,
            hello: Arc::new(hello),
        })
    }

    /// Returns what the guest said of itself.
    pub fn hello(&self) -> &GuestHello {
        &self.hello
    }

    /// Tells whether the pipe is still open.
    pub fn is_open(&self) -> bool {
        self.connection.closed().is_none()
    }

    /// Waits until the pipe has ended.
    pub async fn closed(&self) {
        self.connection.wait_closed().await;
    }

    /// Makes sure that a session exists.
    pub async fn open_session(&self, request: OpenSession) -> Result<SessionOpened, PlaceError> {
        self.ask(&Request::OpenSession(request)).await
    }

    /// Ends a session and what runs in it.
    pub async fn end_session(
        &self,
        key: &str,
        grace: Duration,
    ) -> Result<SessionEnded, PlaceError> {
        let grace_ms = u64::try_from(grace.as_millis()).unwrap_or(u64::MAX);
        let key = key.to_owned();
        self.ask(&Request::EndSession(EndSession { key, grace_ms }))
            .await
    }

    /// Asks what the guest holds.
    pub async fn info(&self) -> Result<GuestInfo, PlaceError> {
        self.ask(&Request::Info).await
    }

    /// Ends everything and the guest itself, and waits for its end.
    pub async fn shut_down(&self) -> Result<(), PlaceError> {
        let result = self.ask::<()>(&Request::Shutdown).await;
        self.closed().await;
        result
    }

    /// Starts a command. Nothing was run if this fails.
    pub async fn exec(&self, exec: Exec, command: Bytes) -> Result<ExecStream, PlaceError> {
        let mut channel = self.open_channel(&Request::Exec(Box::new(exec)))?;
        channel.raise_window(OUTPUT_WINDOW);
        channel.send_all(stream::COMMAND, command).await?;
        Ok(ExecStream { channel })
    }

    /// Goes on with a command whose pipe was lost. What was not received comes again, then
    /// everything as if nothing had happened.
    ///
    /// The first event is [`ExecEvent::Resumed`], or the stream fails: with
    /// [`FailureKind::NoRun`](exoshell_wire::FailureKind::NoRun) when this guest never started the
    /// command, with [`FailureKind::RunOver`](exoshell_wire::FailureKind::RunOver) when it is too
    /// late. Only the first allows to start it again, and only if the guest is the same: another
    /// [`GuestHello::incarnation`] knows nothing of what ran before it.
    pub fn resume(&self, request: Resume) -> Result<ExecStream, PlaceError> {
        let mut channel = self.open_channel(&Request::Resume(request))?;
        channel.raise_window(OUTPUT_WINDOW);
        Ok(ExecStream { channel })
    }

    /// Answers when sudo asks for a password in a command or a process, for as long as the
    /// stream is held.
    pub fn passwords(&self, id: &str) -> Result<PasswordStream, PlaceError> {
        let id = id.to_owned();
        let channel = self.open_channel(&Request::Passwords(Passwords { id }))?;
        Ok(PasswordStream { channel })
    }

    /// Starts a process that outlives this request.
    pub async fn start(&self, start: Start, command: Bytes) -> Result<ProcessStatus, PlaceError> {
        let mut channel = self.open_channel(&Request::Start(Box::new(start)))?;
        channel.send_all(stream::COMMAND, command).await?;
        reply(&mut channel).await
    }

    /// Lists processes: all, those of a session, or one.
    pub async fn processes(&self, filter: Processes) -> Result<Vec<ProcessStatus>, PlaceError> {
        self.ask(&Request::Processes(filter)).await
    }

    /// Reads a part of a process's output.
    pub async fn output(&self, request: ReadOutput) -> Result<(Vec<u8>, OutputRead), PlaceError> {
        let mut channel = self.open_channel(&Request::Output(request))?;
        let mut output = Vec::new();
        loop {
            match channel.receive().await? {
                Item::Data { bytes, .. } => output.extend_from_slice(&bytes),
                Item::Reply(body) => return Ok((output, read_reply(&body)?)),
                Item::Reset => return Err(dropped()),
                _ => {}
            }
        }
    }

    /// Follows a process's output.
    pub fn follow(&self, request: Follow) -> Result<FollowStream, PlaceError> {
        let mut channel = self.open_channel(&Request::Follow(request))?;
        channel.raise_window(OUTPUT_WINDOW);
        Ok(FollowStream { channel })
    }

    /// Waits for the end of a process, or a line of its output.
    pub async fn wait_process(&self, request: Wait) -> Result<Waited, PlaceError> {
        self.ask(&Request::Wait(request)).await
    }

    /// Acts on a process.
    pub async fn act(&self, request: Act) -> Result<Acted, PlaceError> {
        self.ask(&Request::Act(request)).await
    }

    /// Sends bytes to a process.
    pub async fn write_process(
        &self,
        request: WriteInput,
        bytes: Bytes,
    ) -> Result<ProcessStatus, PlaceError> {
        let mut channel = self.open_channel(&Request::Write(request))?;
        channel.send_all(stream::STDIN, bytes).await?;
        reply(&mut channel).await
    }

    /// Asks for events.
    pub fn events(&self, request: Events) -> Result<EventStream, PlaceError> {
        let channel = self.open_channel(&Request::Events(request))?;
        Ok(EventStream { channel })
    }

    /// Says which events were dealt with.
    pub async fn acknowledge(&self, request: Acknowledge) -> Result<(), PlaceError> {
        self.ask(&Request::Acknowledge(request)).await
    }

    pub(crate) fn open_channel(&self, request: &Request) -> Result<Channel, PlaceError> {
        let body = serde_json::to_vec(request).map_err(|e| PlaceError::Nonsense(e.to_string()))?;
        Ok(self.connection.open(body)?)
    }

    pub(crate) async fn ask<T: DeserializeOwned>(
        &self,
        request: &Request,
    ) -> Result<T, PlaceError> {
        let mut channel = self.open_channel(request)?;
        reply(&mut channel).await
    }
}

pub(crate) async fn reply<T: DeserializeOwned>(channel: &mut Channel) -> Result<T, PlaceError> {
    loop {
        match channel.receive().await? {
            Item::Reply(body) => return read_reply(&body),
            Item::Reset => return Err(dropped()),
            _ => {}
        }
    }
}

pub(crate) fn dropped() -> PlaceError {
    PlaceError::Nonsense("the guest dropped the request".to_owned())
}

pub(crate) fn read_reply<T: DeserializeOwned>(body: &[u8]) -> Result<T, PlaceError> {
    let reply: Reply<T> =
        serde_json::from_slice(body).map_err(|e| PlaceError::Nonsense(e.to_string()))?;
    Ok(Result::from(reply)?)
}

async fn read_hello(pipe: &mut Pipe, decoder: &mut FrameDecoder) -> Result<GuestHello, PlaceError> {
    let no_hello = |message: String| PlaceError::NoHello { message };
    let frame = loop {
        match decoder.next_frame() {
            Ok(Some(frame)) => break frame,
            Ok(None) => {}
            Err(error) => return Err(no_hello(error.to_string())),
        }
        match pipe.reader.read_buf(decoder.buffer()).await {
            Ok(0) => return Err(no_hello("the pipe ended".to_owned())),
            Ok(_) => {}
            Err(error) => return Err(no_hello(error.to_string())),
        }
    };
    if frame.kind != Kind::Hello {
        return Err(no_hello("the first frame is no hello".to_owned()));
    }
    let hello: GuestHello =
        serde_json::from_slice(&frame.body).map_err(|error| no_hello(error.to_string()))?;
    match hello.refusal {
        Some(reason) => Err(PlaceError::Refused { reason }),
        None => Ok(hello),
    }
}

/// What following a process brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FollowEvent {
    /// Where the next bytes begin, and how many before them are lost.
    At(FollowAt),
    /// Output.
    Output(Bytes),
    /// The process has ended and all of its output was sent.
    Done(Box<ProcessStatus>),
}

/// The output of a process as it comes. Dropping it stops the following, not the process.
#[derive(Debug)]
pub struct FollowStream {
    channel: Channel,
}

impl FollowStream {
    /// Waits for what comes next. Cancel-safe.
    pub async fn next(&mut self) -> Result<FollowEvent, PlaceError> {
        loop {
            match self.channel.receive().await? {
                Item::Data { bytes, .. } if !bytes.is_empty() => {
                    return Ok(FollowEvent::Output(bytes));
                }
                Item::Event(body) => {
                    if let Ok(at) = serde_json::from_slice(&body) {
                        return Ok(FollowEvent::At(at));
                    }
                }
                Item::Reply(body) => return Ok(FollowEvent::Done(Box::new(read_reply(&body)?))),
                Item::Reset => return Err(dropped()),
                Item::Data { .. } | Item::Cancel => {}
            }
        }
    }
}

/// Events of a guest's processes, as they come.
#[derive(Debug)]
pub struct EventStream {
    channel: Channel,
}

impl EventStream {
    /// Waits for the next event; `None` when there are no more. Cancel-safe.
    pub async fn next(&mut self) -> Result<Option<ProcessEvent>, PlaceError> {
        loop {
            match self.channel.receive().await? {
                Item::Event(body) => {
                    // An event this build does not know is none of ours.
                    if let Ok(event) = serde_json::from_slice(&body) {
                        return Ok(Some(event));
                    }
                }
                Item::Reply(body) => {
                    read_reply::<()>(&body)?;
                    return Ok(None);
                }
                Item::Reset => return Err(dropped()),
                Item::Data { .. } | Item::Cancel => {}
            }
        }
    }
}

/// The questions of a command's sudo.
#[derive(Debug)]
pub struct PasswordStream {
    channel: Channel,
}

impl PasswordStream {
    /// Waits for the next question; `None` when there are no more. Cancel-safe.
    pub async fn next(&mut self) -> Result<Option<PasswordWanted>, PlaceError> {
        loop {
            match self.channel.receive().await? {
                Item::Event(body) => {
                    if let Ok(wanted) = serde_json::from_slice(&body) {
                        return Ok(Some(wanted));
                    }
                }
                Item::Reply(body) => {
                    read_reply::<()>(&body)?;
                    return Ok(None);
                }
                Item::Reset => return Err(dropped()),
                Item::Data { .. } | Item::Cancel => {}
            }
        }
    }

    /// Answers a question with a line, newline included; an empty one says that there is no
    /// password. Returns once it is on its way.
    pub async fn give(&self, line: Bytes) -> Result<(), PlaceError> {
        self.channel.send(stream::STDIN, line).await?;
        Ok(self.channel.flushed().await?)
    }
}

/// Something a running command did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecEvent {
    /// Its shell runs it now.
    Started {
        /// The shell's process id in the place.
        pid: u32,
        /// The values of secret variables that it has.
        secrets: SecretValues,
    },
    /// It goes on: the host shall send stdin from there on.
    Resumed(Resumed),
    /// It wrote something.
    Output {
        /// [`stream::STDOUT`] or [`stream::STDERR`].
        stream: u8,
        /// What it wrote.
        bytes: Bytes,
    },
    /// It ended; nothing follows.
    Done(Box<ExecDone>),
}

/// A command under way. Dropping it cancels the command.
#[derive(Debug)]
pub struct ExecStream {
    channel: Channel,
}

impl ExecStream {
    /// Waits for what happens next. Cancel-safe.
    pub async fn next(&mut self) -> Result<ExecEvent, PlaceError> {
        loop {
            match self.channel.receive().await? {
                Item::Data { stream, bytes, .. } if !bytes.is_empty() => {
                    return Ok(ExecEvent::Output { stream, bytes });
                }
                Item::Event(body) => {
                    if let Ok(ExecStarted { pid, secrets }) = serde_json::from_slice(&body) {
                        return Ok(ExecEvent::Started { pid, secrets });
                    }
                    // An event of a newer guest is none of ours.
                    if let Ok(resumed) = serde_json::from_slice(&body) {
                        return Ok(ExecEvent::Resumed(resumed));
                    }
                }
                Item::Reply(body) => return Ok(ExecEvent::Done(Box::new(read_reply(&body)?))),
                Item::Reset => return Err(dropped()),
                Item::Data { .. } | Item::Cancel => {}
            }
        }
    }

    /// Asks the guest to end the command; [`ExecEvent::Done`] still comes.
    pub fn cancel(&self) {
        self.channel.cancel();
    }

    /// Returns the handle that feeds the command's stdin.
    pub fn stdin(&self) -> StdinSender {
        StdinSender(self.channel.sender())
    }
}

/// Feeds the stdin of a command that was started with one.
#[derive(Debug, Clone)]
pub struct StdinSender(ChannelSender);

impl StdinSender {
    /// Sends some bytes, as fast as the command reads.
    pub async fn send(&self, bytes: Bytes) -> Result<(), PlaceError> {
        Ok(self.0.send(stream::STDIN, bytes).await?)
    }

    /// Ends the stdin.
    pub async fn finish(&self) -> Result<(), PlaceError> {
        Ok(self.0.finish(stream::STDIN).await?)
    }
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;
