//! A small host: hello, requests, and what comes back.

use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use exoshell_mux::{Channel, Connection, Item, Options, Role};
use exoshell_wire::{
    Exec, ExecDone, Failure, Frame, FrameDecoder, GuestHello, HostHello, Kind, Reply, Request,
    SessionRef, SessionSpec, stream,
};
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::UnixStream;

/// How long anything may take before a test counts as stuck.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// Returns a command that runs the guest, with nothing of the test's environment.
pub(crate) fn guest() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_exoshell-guest"));
    command
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// A program that is ended with the test.
pub(crate) struct Ended(pub(crate) Child);

impl Ended {
    /// Waits for its end.
    pub(crate) fn wait(&mut self) -> ExitStatus {
        let began = Instant::now();
        loop {
            if let Some(status) = self.0.try_wait().unwrap() {
                return status;
            }
            assert!(began.elapsed() < LIMIT, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Sends it a signal.
    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.0);
        rustix::process::kill_process(pid, signal).unwrap();
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits for a guest to listen in a folder, and connects.
pub(crate) async fn connect(dir: &Path) -> UnixStream {
    let began = Instant::now();
    loop {
        match UnixStream::connect(dir.join("guest.sock")).await {
            Ok(socket) => return socket,
            Err(error) => assert!(began.elapsed() < LIMIT, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A host's end of a conversation.
pub(crate) struct Host {
    pub(crate) connection: Connection,
    pub(crate) hello: GuestHello,
}

impl Host {
    /// Connects to the guest of a folder.
    pub(crate) async fn new(dir: &Path) -> Self {
        let (reader, writer) = connect(dir).await.into_split();
        Self::over(reader, writer, hello()).await.unwrap()
    }

    /// Says hello over any pipe.
    pub(crate) async fn over<R, W>(
        mut reader: R,
        mut writer: W,
        hello: HostHello,
    ) -> std::io::Result<Self>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        let frame = Frame::new(Kind::Hello, 0, 0, serde_json::to_vec(&hello).unwrap());
        writer.write_all(&frame.encode()).await?;
        let mut decoder = FrameDecoder::default();
        let frame = loop {
            if let Some(frame) = decoder.next_frame().unwrap() {
                break frame;
            }
            if reader.read_buf(decoder.buffer()).await? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        };
        let hello = serde_json::from_slice(&frame.body).unwrap();
        let early = decoder.buffer().to_vec();
        let (connection, _) =
            Connection::start(reader, writer, Role::Host, Options::default(), &early);
        Ok(Self { connection, hello })
    }

    /// Opens a channel with a request.
    pub(crate) fn open(&self, request: &Request) -> Channel {
        let body = serde_json::to_vec(request).unwrap();
        self.connection.open(body).unwrap()
    }

    /// Asks, and returns the answer.
    pub(crate) async fn ask<T: DeserializeOwned>(&self, request: &Request) -> T {
        let mut channel = self.open(request);
        answer(&mut channel).await.unwrap()
    }

    /// Runs a command and returns its stdout.
    pub(crate) async fn run(&self, id: &str, command: &str) -> (String, ExecDone) {
        self.run_exec(exec(id), command).await
    }

    /// Runs a command as described.
    pub(crate) async fn run_exec(&self, exec: Exec, command: &str) -> (String, ExecDone) {
        let mut channel = self.start(exec, command).await;
        let mut output = Vec::new();
        loop {
            match receive(&mut channel).await {
                Item::Data { bytes, .. } => output.extend_from_slice(&bytes),
                Item::Reply(body) => {
                    let done = read_reply(&body).unwrap();
                    return (String::from_utf8(output).unwrap(), done);
                }
                Item::Event(_) => {}
                item => panic!("unexpected: {item:?}"),
            }
        }
    }

    /// Starts a command.
    pub(crate) async fn start(&self, exec: Exec, command: &str) -> Channel {
        let channel = self.open(&Request::Exec(Box::new(exec)));
        let command = Bytes::from(command.to_owned());
        channel.send_all(stream::COMMAND, command).await.unwrap();
        channel
    }
}

/// Takes the next item; fails when the connection is over.
pub(crate) async fn receive(channel: &mut Channel) -> Item {
    let item = tokio::time::timeout(LIMIT, channel.receive()).await;
    item.expect("nothing comes").expect("the pipe is lost")
}

/// Waits for the answer of a request.
pub(crate) async fn answer<T: DeserializeOwned>(channel: &mut Channel) -> Result<T, Failure> {
    loop {
        if let Item::Reply(body) = receive(channel).await {
            return read_reply(&body);
        }
    }
}

pub(crate) fn read_reply<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice::<Reply<T>>(body).unwrap().into()
}

pub(crate) fn hello() -> HostHello {
    HostHello {
        min_version: 1,
        max_version: 1,
        build: "test".to_owned(),
        required: Vec::new(),
        linger: true,
        max_warm_shells: None,
        heartbeat_ms: None,
    }
}

pub(crate) fn spec() -> SessionSpec {
    SessionSpec {
        cwd: None,
        env: None,
        env_remove: Vec::new(),
        extra_env: Vec::new(),
        login_timeout_ms: None,
        umask: None,
        idle_ms: None,
        ttl_ms: None,
    }
}

/// Describes a command in a session of its own.
pub(crate) fn exec(id: &str) -> Exec {
    Exec {
        id: id.to_owned(),
        session: SessionRef::OneShot(spec()),
        workdir: None,
        env: Vec::new(),
        timeout_ms: None,
        grace_ms: 2000,
        lease_ms: 0,
        merge: false,
        terminal: None,
        stdin: false,
        persist: false,
        spill: None,
        sudo: false,
        redact: None,
    }
}

/// Tells whether a process exists and is no zombie.
pub(crate) fn is_alive(pid: u32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap().starts_with(" Z"))
}

/// Waits until a condition holds.
pub(crate) async fn until(what: &str, condition: impl Fn() -> bool) {
    let began = Instant::now();
    while !condition() {
        assert!(began.elapsed() < LIMIT, "it never happens: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
