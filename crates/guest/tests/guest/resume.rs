//! A command whose pipe is lost, taken up again.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use bytes::Bytes;
use exoshell_mux::{Channel, Item};
use exoshell_wire::{
    Cause, Exec, ExecDone, FailureKind, Outcome, Request, Resume, Resumed, SessionRef, stream,
};
use proptest::prelude::Rng as _;
use proptest::test_runner::{RngAlgorithm, TestRng};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::task::JoinHandle;

use crate::host::{
    Host, LIMIT, answer, connect, exec, guest, hello, is_alive, read_reply, receive, until,
};

/// As much as the real host allows to be on its way.
const WINDOW: u32 = 1024 * 1024;

/// A guest that ends with the test.
struct World {
    root: TempDir,
    dir: PathBuf,
}

impl World {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("guest");
        let status = guest()
            .args(["start", "--exit-after-ms", "5000", "--dir"])
            .arg(&dir)
            .status()
            .unwrap();
        assert!(status.success());
        Self { root, dir }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    async fn shut_down(self) {
        let host = Host::new(&self.dir).await;
        let () = host.ask(&Request::Shutdown).await;
        until("the guest ends", || !self.dir.join("guest.sock").exists()).await;
    }
}

/// A pipe to a guest that can be cut or stopped.
struct Pipe {
    task: JoinHandle<()>,
}

impl Pipe {
    /// Opens a pipe that is cut after so many bytes from the guest or to it.
    async fn open(dir: &Path, from_guest: usize, to_guest: usize) -> io::Result<(Self, Host)> {
        let socket = connect(dir).await;
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let task = tokio::spawn(carry(socket, theirs, from_guest, to_guest));
        let (reader, writer) = tokio::io::split(ours);
        let host = Host::over(reader, writer, hello()).await?;
        Ok((Self { task }, host))
    }

    /// Cuts it: both sides see its end.
    fn cut(self) {
        self.task.abort();
    }
}

async fn carry(
    socket: UnixStream,
    host: tokio::io::DuplexStream,
    mut from_guest: usize,
    mut to_guest: usize,
) {
    let (mut socket_reader, mut socket_writer) = socket.into_split();
    let (mut host_reader, mut host_writer) = tokio::io::split(host);
    let down = async {
        let mut buffer = vec![0; 8192];
        while from_guest > 0 {
            let most = from_guest.min(buffer.len());
            let length = socket_reader.read(&mut buffer[..most]).await.unwrap_or(0);
            if length == 0 || host_writer.write_all(&buffer[..length]).await.is_err() {
                return;
            }
            from_guest -= length;
        }
    };
    let up = async {
        let mut buffer = vec![0; 8192];
        while to_guest > 0 {
            let most = to_guest.min(buffer.len());
            let length = host_reader.read(&mut buffer[..most]).await.unwrap_or(0);
            if length == 0 || socket_writer.write_all(&buffer[..length]).await.is_err() {
                return;
            }
            to_guest -= length;
        }
    };
    tokio::select! {
        () = down => {}
        () = up => {}
    }
}

/// A host that loses its pipe again and again.
struct Stubborn<'a> {
    dir: &'a Path,
    exec: Exec,
    command: &'a str,
    input: Bytes,
    heard: [Vec<u8>; 2],
    /// Whether the next try goes on with what was started.
    sent: bool,
    resumed: u32,
    restarted: u32,
}

impl<'a> Stubborn<'a> {
    fn new(dir: &'a Path, exec: Exec, command: &'a str, input: Vec<u8>) -> Self {
        Self {
            dir,
            exec,
            command,
            input: input.into(),
            heard: [Vec::new(), Vec::new()],
            sent: false,
            resumed: 0,
            restarted: 0,
        }
    }

    fn resume(&self) -> Resume {
        Resume {
            id: self.exec.id.clone(),
            stdout: self.heard[0].len() as u64,
            stderr: self.heard[1].len() as u64,
        }
    }

    /// Tries once over a pipe that is cut somewhere; after `patience` items the host itself
    /// loses what lies unread.
    async fn attempt(&mut self, budget: [usize; 2], patience: usize) -> Option<ExecDone> {
        let (pipe, host) = Pipe::open(self.dir, budget[0], budget[1]).await.ok()?;
        let mut channel = if self.sent {
            host.open(&Request::Resume(self.resume()))
        } else {
            self.sent = true;
            let channel = host.open(&Request::Exec(Box::new(self.exec.clone())));
            let command = Bytes::from(self.command.to_owned());
            let _ = channel.send_all(stream::COMMAND, command).await;
            channel
        };
        channel.raise_window(WINDOW);
        for _ in 0..patience {
            let item = tokio::time::timeout(LIMIT, channel.receive())
                .await
                .unwrap();
            match item.ok()? {
                Item::Data { stream, bytes, .. } => {
                    self.heard[usize::from(stream) - 1].extend_from_slice(&bytes);
                }
                Item::Event(body) => self.begin_input(&channel, &body),
                Item::Reply(body) => match read_reply::<ExecDone>(&body) {
                    Ok(done) => return Some(done),
                    Err(failure) if failure.kind == FailureKind::NoRun => {
                        self.sent = false;
                        self.restarted += 1;
                        return None;
                    }
                    // It arrived after all.
                    Err(failure) if failure.kind == FailureKind::Duplicate => return None,
                    Err(failure) => panic!("{failure:?}"),
                },
                item => panic!("unexpected: {item:?}"),
            }
        }
        pipe.cut();
        host.connection.wait_closed().await;
        None
    }

    /// Sends the stdin that the guest has not taken over.
    fn begin_input(&mut self, channel: &Channel, event: &[u8]) {
        let at = match serde_json::from_slice::<Resumed>(event) {
            Ok(resumed) => {
                self.resumed += 1;
                resumed
            }
            Err(_) => Resumed::default(),
        };
        if at.stdin_ended || !self.exec.stdin {
            assert_eq!(at.stdin, self.input.len() as u64);
            return;
        }
        let rest = self.input.slice(usize::try_from(at.stdin).unwrap()..);
        let sender = channel.sender();
        tokio::spawn(async move {
            let _ = sender.send_all(stream::STDIN, rest).await;
        });
    }

    /// Tries until it is done; the pipe is cut within `span` bytes.
    async fn insist(&mut self, rng: &mut TestRng, span: usize) -> ExecDone {
        let mut below = |limit: usize| usize::try_from(rng.next_u32()).unwrap() % limit + 1;
        for _ in 0..5000 {
            // Often early, in the middle of hellos and small frames; sometimes late enough for
            // the largest frame.
            let span = if below(2) == 1 { 2000 } else { span };
            let budget = [below(span), below(span)];
            let patience = below(200);
            if let Some(done) = self.attempt(budget, patience).await {
                return done;
            }
        }
        panic!("it never gets through: {} resumed", self.resumed);
    }
}

fn leased(id: &str, lease_ms: u64) -> Exec {
    Exec {
        lease_ms,
        ..exec(id)
    }
}

fn rng(seed: u8) -> TestRng {
    TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32])
}

#[tokio::test]
async fn a_pipe_cut_anywhere_loses_nothing_and_runs_nothing_twice() {
    let world = World::new();
    let count = world.file("count");
    let command = format!(
        "echo run >> {}; i=0
         while IFS= read -r line; do
           printf 'out %d %s\\n' $i \"$line\"; [ $((i % 3)) = 0 ] && echo \"err $i\" >&2; i=$((i+1))
         done
         seq 1 60000; seq 1 30000 >&2; exit 7",
        count.display()
    );
    let lines: Vec<String> = (0..4000).map(|i| format!("line {}", i * 7)).collect();
    let numbers = |last: u32| (1..=last).map(|i| format!("{i}\n"));
    let echoed = lines.iter().enumerate();
    let stdout: String = echoed
        .map(|(i, line)| format!("out {i} {line}\n"))
        .chain(numbers(60_000))
        .collect();
    let stderr: String = (0..4000)
        .step_by(3)
        .map(|i| format!("err {i}\n"))
        .chain(numbers(30_000))
        .collect();
    let input = (lines.join("\n") + "\n").into_bytes();
    for (seed, span) in [(1, 50_000), (2, 100_000), (3, 400_000)] {
        let exec = Exec {
            stdin: true,
            ..leased(&format!("run-{seed}"), 60_000)
        };
        let mut host = Stubborn::new(&world.dir, exec, &command, input.clone());
        let done = host.insist(&mut rng(seed), span).await;
        assert!(host.heard[0] == stdout.as_bytes(), "stdout differs");
        assert!(host.heard[1] == stderr.as_bytes(), "stderr differs");
        assert_eq!(done.outcome, Outcome::Exited(7));
        assert_eq!(done.cause, Cause::Ended);
        assert_eq!(done.stdout_bytes, stdout.len() as u64);
        assert_eq!(done.stderr_bytes, stderr.len() as u64);
        let runs = std::fs::read_to_string(&count).unwrap();
        assert_eq!(runs, "run\n", "after {} restarts", host.restarted);
        assert!(host.resumed > 3, "{} resumed", host.resumed);
        std::fs::remove_file(&count).unwrap();
    }
    world.shut_down().await;
}

#[tokio::test]
async fn bulk_output_survives_cuts_with_a_full_window_on_its_way() {
    let world = World::new();
    let command = "seq 1 3000000";
    let mut host = Stubborn::new(&world.dir, leased("bulk", 60_000), command, Vec::new());
    let done = host.insist(&mut rng(9), 3_000_000).await;
    assert_eq!(done.outcome, Outcome::Exited(0));
    let mut expected = Vec::new();
    for i in 1..=3_000_000 {
        expected.extend_from_slice(format!("{i}\n").as_bytes());
    }
    assert!(host.heard[0] == expected, "stdout differs");
    assert!(host.resumed > 3, "{} resumed", host.resumed);
    world.shut_down().await;
}

/// Starts a command over a pipe and waits for its first output.
async fn started(world: &World, exec: Exec, command: &str) -> (Pipe, Host, Channel, String) {
    let (pipe, host) = Pipe::open(&world.dir, usize::MAX, usize::MAX)
        .await
        .unwrap();
    let mut channel = host.start(exec, command).await;
    loop {
        if let Item::Data { bytes, .. } = receive(&mut channel).await {
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            return (pipe, host, channel, text);
        }
    }
}

fn resume(id: &str, stdout: usize) -> Request {
    Request::Resume(Resume {
        id: id.to_owned(),
        stdout: stdout as u64,
        stderr: 0,
    })
}

/// Takes a command up, and collects everything to its end.
async fn collect(host: &Host, request: &Request) -> (Resumed, String, ExecDone) {
    let mut channel = host.open(request);
    let Item::Event(event) = receive(&mut channel).await else {
        panic!("the first thing is not the event");
    };
    let resumed = serde_json::from_slice(&event).unwrap();
    let mut text = Vec::new();
    loop {
        match receive(&mut channel).await {
            Item::Data { bytes, .. } => text.extend_from_slice(&bytes),
            Item::Reply(body) => {
                let done = read_reply(&body).unwrap();
                return (resumed, String::from_utf8(text).unwrap(), done);
            }
            item => panic!("unexpected: {item:?}"),
        }
    }
}

async fn failure(host: &Host, request: &Request) -> FailureKind {
    let mut channel = host.open(request);
    answer::<ExecDone>(&mut channel).await.unwrap_err().kind
}

#[tokio::test]
async fn a_command_that_ends_while_nobody_is_there_is_collected() {
    let world = World::new();
    let go = world.file("go");
    let command = format!(
        "echo first; until [ -e {0} ]; do sleep 0.02; done; echo second; echo over > {0}.done; exit 3",
        go.display()
    );
    let (pipe, ..) = started(&world, leased("away", 60_000), &command).await;
    pipe.cut();
    let host = Host::new(&world.dir).await;
    std::fs::write(&go, b"").unwrap();
    until("it ends", || world.file("go.done").exists()).await;
    // As often as it takes, and even twice: the answer may get lost too.
    for from in [0, 6] {
        let (_, text, done) = collect(&host, &resume("away", from)).await;
        assert_eq!(text, &"first\nsecond\n"[from..]);
        assert_eq!(done.outcome, Outcome::Exited(3));
        assert_eq!((done.cause, done.stdout_bytes), (Cause::Ended, 13));
    }
    assert_eq!(
        failure(&host, &resume("away", 14)).await,
        FailureKind::BadRequest
    );
    world.shut_down().await;
}

#[tokio::test]
async fn a_lease_that_is_over_ends_the_whole_tree() {
    let world = World::new();
    let command = "sleep 1000 & echo $! $$; wait";
    let (pipe, _host, _channel, text) = started(&world, leased("short", 600), command).await;
    let pids: Vec<u32> = text
        .split_whitespace()
        .map(|p| p.parse().unwrap())
        .collect();
    let began = Instant::now();
    pipe.cut();
    until("the tree ends", || pids.iter().all(|pid| !is_alive(*pid))).await;
    assert!(began.elapsed() >= Duration::from_millis(600));
    let host = Host::new(&world.dir).await;
    assert_eq!(
        failure(&host, &resume("short", 0)).await,
        FailureKind::RunOver
    );
    world.shut_down().await;
}

#[tokio::test]
async fn the_timeout_runs_while_nobody_is_there() {
    let world = World::new();
    let exec = Exec {
        timeout_ms: Some(500),
        ..leased("timed", 60_000)
    };
    let (pipe, _host, _channel, text) = started(&world, exec, "echo $$; sleep 1000").await;
    pipe.cut();
    let pid = text.trim().parse().unwrap();
    until("it is stopped", || !is_alive(pid)).await;
    let host = Host::new(&world.dir).await;
    let (_, _, done) = collect(&host, &resume("timed", text.len())).await;
    assert_eq!(done.cause, Cause::Timeout);
    world.shut_down().await;
}

#[tokio::test]
async fn a_new_host_takes_over_from_a_pipe_that_only_looks_alive() {
    let world = World::new();
    let exec = Exec {
        stdin: true,
        ..leased("half", 60_000)
    };
    let command = "echo ready; read -r a; echo got $a; read -r b; echo got $b";
    let (_pipe, old, mut channel, text) = started(&world, exec, command).await;
    assert_eq!(text, "ready\n");
    channel
        .send(stream::STDIN, Bytes::from("one\n"))
        .await
        .unwrap();
    let Item::Data { bytes, .. } = receive(&mut channel).await else {
        panic!("no output");
    };
    assert_eq!(bytes, "got one\n");

    let host = Host::new(&world.dir).await;
    let mut taken = host.open(&resume("half", 6));
    let Item::Event(event) = receive(&mut taken).await else {
        panic!("no event");
    };
    let resumed: Resumed = serde_json::from_slice(&event).unwrap();
    assert_eq!((resumed.stdin, resumed.stdin_ended), (4, false));
    assert_eq!(receive(&mut channel).await, Item::Reset);
    // Neither its input nor its end means anything any more.
    let _ = channel.send(stream::STDIN, Bytes::from("stale\n")).await;
    drop((channel, old));
    taken
        .send_all(stream::STDIN, Bytes::from("two\n"))
        .await
        .unwrap();
    let mut text = Vec::new();
    let done: ExecDone = loop {
        match receive(&mut taken).await {
            Item::Data { bytes, .. } => text.extend_from_slice(&bytes),
            Item::Reply(body) => break read_reply(&body).unwrap(),
            item => panic!("unexpected: {item:?}"),
        }
    };
    assert_eq!(text, b"got one\ngot two\n");
    assert_eq!(done.outcome, Outcome::Exited(0));
    world.shut_down().await;
}

#[tokio::test]
async fn a_command_nobody_listens_to_waits_instead_of_losing_output() {
    let world = World::new();
    let command = format!(
        "echo $$; seq 1 1000000; echo x > {}",
        world.file("x").display()
    );
    let (pipe, _host, _channel, text) = started(&world, leased("wait", 60_000), &command).await;
    pipe.cut();
    let pid = text.lines().next().unwrap().parse().unwrap();
    // More than is held: it cannot get to its end.
    tokio::time::sleep(Duration::from_millis(700)).await;
    assert!(is_alive(pid) && !world.file("x").exists());
    let host = Host::new(&world.dir).await;
    let (_, rest, done) = collect(&host, &resume("wait", text.len())).await;
    let all = text + &rest;
    assert!(all.ends_with("\n999999\n1000000\n"));
    assert_eq!(all.lines().count(), 1_000_001);
    assert_eq!(done.stdout_bytes, all.len() as u64);
    world.shut_down().await;
}

#[tokio::test]
async fn a_host_can_cancel_what_it_took_up() {
    let world = World::new();
    let (pipe, _host, _channel, text) =
        started(&world, leased("stop", 60_000), "echo $$; sleep 1000").await;
    pipe.cut();
    let host = Host::new(&world.dir).await;
    let mut channel = host.open(&resume("stop", text.len()));
    assert!(matches!(receive(&mut channel).await, Item::Event(_)));
    channel.cancel();
    let done: ExecDone = answer(&mut channel).await.unwrap();
    assert_eq!(done.cause, Cause::Interrupted);
    world.shut_down().await;
}

#[tokio::test]
async fn what_was_never_started_and_what_is_over_are_told_apart() {
    let world = World::new();
    let host = Host::new(&world.dir).await;
    assert_eq!(
        failure(&host, &resume("never", 0)).await,
        FailureKind::NoRun
    );
    host.run("plain", "true").await;
    assert_eq!(
        failure(&host, &resume("plain", 0)).await,
        FailureKind::RunOver
    );
    host.run_exec(leased("brief", 50), "true").await;
    tokio::time::sleep(Duration::from_millis(60)).await;
    assert_eq!(
        failure(&host, &resume("brief", 0)).await,
        FailureKind::RunOver
    );
    world.shut_down().await;
}

#[tokio::test]
async fn a_start_that_failed_is_told_again() {
    let world = World::new();
    let host = Host::new(&world.dir).await;
    let mut exec = leased("nowhere", 60_000);
    let SessionRef::OneShot(spec) = &mut exec.session else {
        panic!("not of its own");
    };
    spec.cwd = Some("/".into());
    exec.workdir = Some("/nowhere/at/all".into());
    let mut channel = host.start(exec, "true").await;
    let refused = answer::<ExecDone>(&mut channel).await.unwrap_err();
    assert_eq!(refused.kind, FailureKind::Workdir);
    // Nothing was started, so the host may try again under the same name.
    assert_eq!(
        failure(&host, &resume("nowhere", 0)).await,
        FailureKind::NoRun
    );
    world.shut_down().await;
}

#[tokio::test]
async fn a_silent_host_is_noticed_when_it_asks_for_heartbeats() {
    let world = World::new();
    let socket = connect(&world.dir).await;
    let (mut ours, theirs) = tokio::io::duplex(64 * 1024);
    let (mut reader, mut writer) = socket.into_split();
    let (mut from, mut to) = tokio::io::split(theirs);
    let down = tokio::spawn(async move { tokio::io::copy(&mut reader, &mut to).await });
    let up = tokio::spawn(async move {
        let copied = tokio::io::copy(&mut from, &mut writer).await;
        drop(copied);
        // The pipe stays open, but nothing comes through it.
        std::future::pending::<()>().await;
        drop(writer);
    });
    let hello = exoshell_wire::HostHello {
        heartbeat_ms: Some(100),
        ..hello()
    };
    let frame = |kind, channel, flags, body: Vec<u8>| {
        exoshell_wire::Frame::new(kind, flags, channel, body).encode()
    };
    let json = serde_json::to_vec(&hello).unwrap();
    ours.write_all(&frame(exoshell_wire::Kind::Hello, 0, 0, json))
        .await
        .unwrap();
    let request = Request::Exec(Box::new(leased("mute", 300)));
    let json = serde_json::to_vec(&request).unwrap();
    let pid_file = world.file("pid");
    let command = format!("echo $$ > {}; sleep 1000", pid_file.display());
    // The guest speaks first: it must have read the hello before anything else is sent.
    let mut answer = [0; 64];
    assert!(ours.read(&mut answer).await.unwrap() > 0);
    for bytes in [
        frame(exoshell_wire::Kind::Request, 1, 0, json),
        frame(
            exoshell_wire::Kind::Data,
            1,
            stream::COMMAND | exoshell_wire::FIN,
            command.into_bytes(),
        ),
    ] {
        ours.write_all(&bytes).await.unwrap();
    }
    let pid = || std::fs::read_to_string(&pid_file).ok()?.trim().parse().ok();
    until("it runs", || pid().is_some()).await;
    // Nobody answers the guest's pings.
    until("it is ended", || !is_alive(pid().unwrap())).await;
    up.abort();
    down.abort();
    world.shut_down().await;
}
