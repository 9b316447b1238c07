//! A recorded conversation, byte by byte.
//!
//! `tests/recorded.txt` is what builds in the field send. A change of an entry is a change of
//! the protocol; new kinds of messages are added at the end. When a change is intended, the
//! failing test prints the new text.

use std::fmt::Write as _;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{
    Acknowledge, Act, Acted, Action, Cause, EndSession, Events, Exec, ExecDone, ExecStarted, FIN,
    Failure, FailureKind, FileEntry, FileKind, FileRemoved, FileRoot, FileSent, FilesScanned,
    Follow, FollowAt, Frame, FrameDecoder, GetFile, GuestHello, GuestInfo, Happened, HostHello,
    Kind, Note, OpenSession, Outcome, OutputRead, PasswordWanted, Passwords, Preamble,
    ProcessEvent, ProcessInfo, ProcessState, ProcessStatus, Processes, PutFile, RawBytes, ReadFrom,
    ReadOutput, Redact, RemoveFile, Reply, Request, Resume, Resumed, ScanFiles, Screen,
    SecretValues, SessionEnded, SessionInfo, SessionOpened, SessionRef, SessionSpec, Shell,
    ShellKind, Spill, SpillFile, Start, TerminalSize, Timings, Wait, WaitReason, Waited,
    WriteInput, stream,
};

const RECORDED: &str = include_str!("../tests/recorded.txt");
const PROTOCOL: &str = include_str!("../../../docs/protocol.md");
const NONCE: &str = "9f86d081884c7d65";

/// One frame of the conversation.
struct Entry {
    who: &'static str,
    frame: Frame,
    /// Compares a decoded body with the Rust value it stands for.
    check: Check,
}

type Check = Box<dyn Fn(&[u8])>;

fn json<T>(who: &'static str, kind: Kind, channel: u32, value: T) -> Entry
where
    T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug + 'static,
{
    let body = serde_json::to_vec(&value).unwrap();
    Entry {
        who,
        frame: Frame::new(kind, 0, channel, body),
        check: Box::new(move |body| assert_eq!(serde_json::from_slice::<T>(body).unwrap(), value)),
    }
}

fn raw(who: &'static str, kind: Kind, flags: u8, channel: u32, body: &'static [u8]) -> Entry {
    Entry {
        who,
        frame: Frame::new(kind, flags, channel, body),
        check: Box::new(move |found| assert_eq!(found, body)),
    }
}

fn ask(channel: u32, request: Request) -> Entry {
    json("host", Kind::Request, channel, request)
}

fn answer<T>(channel: u32, value: T) -> Entry
where
    T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug + 'static,
{
    json("guest", Kind::Reply, channel, Reply::Ok(value))
}

fn exec(id: &str) -> Exec {
    Exec {
        id: id.into(),
        session: SessionRef::Key("task-1".into()),
        workdir: None,
        env: Vec::new(),
        timeout_ms: Some(120_000),
        grace_ms: 2000,
        lease_ms: 30_000,
        merge: false,
        terminal: None,
        stdin: false,
        persist: true,
        spill: None,
        sudo: false,
        redact: None,
    }
}

fn done() -> ExecDone {
    ExecDone {
        outcome: Outcome::Exited(0),
        cause: Cause::Ended,
        cwd: "/srv/app".into(),
        leftovers: Vec::new(),
        unkillable: Vec::new(),
        spill: None,
        notes: Vec::new(),
        timings: Timings {
            spawn_us: 40,
            run_us: 900,
            drain_us: 60,
            warm: true,
        },
        stdout_bytes: 4,
        stderr_bytes: 4,
    }
}

fn leftover() -> ProcessInfo {
    ProcessInfo {
        id: "left-1".into(),
        pid: 4250,
        start_time: 771_234,
        command: "sleep 600".into(),
        session: Some("task-1".into()),
    }
}

fn session() -> SessionInfo {
    SessionInfo {
        key: "task-1".into(),
        cwd: "/srv/app".into(),
        age_ms: 5,
        idle_ms: 0,
        running: 0,
        leftovers: 0,
    }
}

fn hellos() -> Vec<Entry> {
    let host = HostHello {
        min_version: 1,
        max_version: 1,
        build: "0.1.0".into(),
        required: vec!["merge".into()],
        linger: true,
        max_warm_shells: Some(64),
        heartbeat_ms: None,
    };
    let guest = GuestHello {
        version: 1,
        build: "0.1.0+2c26b46b".into(),
        incarnation: "b5bb9d8014a0f9b1".into(),
        os: "linux".into(),
        arch: "x86_64".into(),
        uid: 1000,
        pid: 4211,
        shells: vec![Shell {
            kind: ShellKind::Bash,
            path: "/bin/bash".into(),
        }],
        capabilities: vec!["merge".into()],
        proc_fs: true,
        refusal: None,
    };
    vec![
        json("host", Kind::Hello, 0, host),
        json("guest", Kind::Hello, 0, guest),
    ]
}

fn opening() -> Vec<Entry> {
    let spec = SessionSpec {
        cwd: Some("/srv/app".into()),
        env: Some(vec![
            ("HOME".into(), "/home/dev".into()),
            ("ODD".into(), RawBytes(b"\xff\x00\xfe".to_vec())),
        ]),
        env_remove: Vec::new(),
        extra_env: vec![("CI".into(), "1".into())],
        login_timeout_ms: Some(5000),
        umask: Some(18),
        idle_ms: Some(600_000),
        ttl_ms: Some(86_400_000),
    };
    let open = OpenSession {
        key: "task-1".into(),
        spec,
        only_existing: false,
    };
    let opened = SessionOpened {
        created: true,
        session: session(),
        notes: vec![Note::LoginFailed {
            why: "the login shell took longer than 5 s".into(),
        }],
    };
    vec![ask(1, Request::OpenSession(open)), answer(1, opened)]
}

fn a_command() -> Vec<Entry> {
    let mut run = exec("run-1");
    run.workdir = Some("src".into());
    run.env = vec![("LANG".into(), "C".into())];
    run.stdin = true;
    run.spill = Some(Spill {
        after_bytes: 1_048_576,
        max_bytes: 1_073_741_824,
    });
    run.redact = Some(Redact {
        pass: vec!["CI_KEY".into()],
        values: SecretValues(vec!["not-a-real-one".into()]),
    });
    let mut ended = done();
    ended.leftovers = vec![leftover()];
    ended.spill = Some(SpillFile {
        path: "/tmp/exoshell/run-1".into(),
        bytes: 8,
        incomplete: None,
    });
    ended.notes = vec![Note::StateNotCaptured];
    vec![
        ask(3, Request::Exec(Box::new(run))),
        raw(
            "host",
            Kind::Data,
            stream::COMMAND | FIN,
            3,
            b"cat; echo bad >&2\n",
        ),
        raw("host", Kind::Data, stream::STDIN, 3, b"one"),
        raw("host", Kind::Data, stream::STDIN | FIN, 3, b"\n"),
        json(
            "guest",
            Kind::Event,
            3,
            ExecStarted {
                pid: 4242,
                secrets: SecretValues(vec!["nor-is-this".into()]),
            },
        ),
        raw("guest", Kind::Data, stream::STDOUT, 3, b"one\n"),
        raw("guest", Kind::Data, stream::STDERR, 3, b"bad\n"),
        raw("host", Kind::Credit, 0, 3, &[0, 0, 1, 0]),
        raw("guest", Kind::Data, stream::STDOUT | FIN, 3, b""),
        raw("guest", Kind::Data, stream::STDERR | FIN, 3, b""),
        answer(3, ended),
    ]
}

fn a_cancelled_command() -> Vec<Entry> {
    let mut ended = done();
    ended.outcome = Outcome::Signalled(15);
    ended.cause = Cause::Interrupted;
    ended.stdout_bytes = 0;
    ended.stderr_bytes = 0;
    vec![
        ask(5, Request::Exec(Box::new(exec("run-2")))),
        raw("host", Kind::Data, stream::COMMAND | FIN, 5, b"sleep 600\n"),
        json(
            "guest",
            Kind::Event,
            5,
            ExecStarted {
                pid: 4243,
                secrets: SecretValues::default(),
            },
        ),
        raw("host", Kind::Cancel, 0, 5, b""),
        answer(5, ended),
    ]
}

fn failures() -> Vec<Entry> {
    let failure = Failure::new(FailureKind::Duplicate, "the id `run-2` was used before");
    let mut lost = exec("run-3");
    lost.session = SessionRef::OneShot(SessionSpec {
        cwd: None,
        env: None,
        env_remove: Vec::new(),
        extra_env: Vec::new(),
        login_timeout_ms: None,
        umask: None,
        idle_ms: None,
        ttl_ms: None,
    });
    vec![
        ask(7, Request::Exec(Box::new(exec("run-2")))),
        json("guest", Kind::Reply, 7, Reply::<ExecDone>::Failed(failure)),
        ask(9, Request::Exec(Box::new(lost))),
        raw("guest", Kind::Reset, 0, 9, b""),
    ]
}

fn the_rest() -> Vec<Entry> {
    let info = GuestInfo {
        pid: 4211,
        uptime_ms: 60_000,
        connections: 1,
        sessions: vec![session()],
        leftovers: vec![leftover()],
        warm_shells: 1,
        own_pids: vec![4211, 4212],
    };
    let end = EndSession {
        key: "task-1".into(),
        grace_ms: 2000,
    };
    let ended = SessionEnded {
        existed: true,
        ended: 1,
    };
    vec![
        raw("host", Kind::Ping, 0, 0, b""),
        raw("guest", Kind::Pong, 0, 0, b""),
        ask(11, Request::Info),
        answer(11, info),
        ask(13, Request::EndSession(end)),
        answer(13, ended),
        ask(15, Request::Shutdown),
        answer(15, ()),
    ]
}

fn status() -> ProcessStatus {
    ProcessStatus {
        id: "proc_1".into(),
        session: Some("task-1".into()),
        command: "make watch".into(),
        cwd: "/srv/app".into(),
        pid: 4300,
        state: ProcessState::Running,
        started_ms: 1_794_780_123_479,
        uptime_ms: 1500,
        ended_ago_ms: None,
        output_end: 6,
        output_start: 0,
        lines: 1,
        terminal: Some(SIZE),
        adopted: false,
        alive: 2,
    }
}

const SIZE: TerminalSize = TerminalSize {
    cols: 120,
    rows: 30,
};

fn a_process() -> Vec<Entry> {
    let start = Start {
        exec: Exec {
            terminal: Some(SIZE),
            timeout_ms: None,
            ..exec("proc_1")
        },
        bound: false,
        notify: true,
        watch: vec!["^ready".into()],
        check_interval_ms: Some(30_000),
        disk_bytes: 268_435_456,
    };
    let list = Processes {
        id: None,
        session: Some("task-1".into()),
    };
    let read = ReadOutput {
        id: "proc_1".into(),
        from: ReadFrom::Byte(0),
        max_bytes: 65_536,
        max_lines: Some(200),
    };
    let was_read = OutputRead {
        start: 0,
        end: 6,
        first_line: 0,
        status: status(),
    };
    let follow = Follow {
        id: "proc_1".into(),
        from: ReadFrom::Tail(1000),
    };
    let at = FollowAt {
        offset: 0,
        dropped: 0,
    };
    vec![
        ask(17, Request::Start(Box::new(start))),
        raw("host", Kind::Data, stream::COMMAND | FIN, 17, b"make watch"),
        answer(17, status()),
        ask(19, Request::Processes(list)),
        answer(19, vec![status()]),
        ask(21, Request::Output(read)),
        raw("guest", Kind::Data, stream::STDOUT, 21, b"ready\n"),
        answer(21, was_read),
        ask(23, Request::Follow(follow)),
        json("guest", Kind::Event, 23, at),
        raw("guest", Kind::Data, stream::STDOUT, 23, b"ready\n"),
        raw("host", Kind::Cancel, 0, 23, b""),
        raw("guest", Kind::Reset, 0, 23, b""),
    ]
}

fn acting_on_a_process() -> Vec<Entry> {
    let id = || "proc_1".to_owned();
    let wait = Wait {
        id: id(),
        timeout_ms: 60_000,
        until: Some("listening on".into()),
        from_byte: 6,
    };
    let waited = Waited {
        reason: WaitReason::TimeUp,
        line: None,
        status: status(),
    };
    let screen = Screen {
        rows: vec!["ready".into()],
        cursor_row: 1,
        cursor_col: 0,
        alternate: false,
        offset: 6,
        drawn: "ready\r\n".into(),
    };
    let acted = |screen| Acted {
        status: status(),
        screen,
        unkillable: Vec::new(),
    };
    let act = |action| Request::Act(Act { id: id(), action });
    let write = WriteInput {
        id: id(),
        enter: true,
        timeout_ms: 10_000,
    };
    vec![
        ask(25, Request::Wait(wait)),
        answer(25, waited),
        ask(27, act(Action::Screen)),
        answer(27, acted(Some(screen))),
        ask(29, act(Action::Resize(SIZE))),
        answer(29, acted(None)),
        ask(31, act(Action::Kill { grace_ms: 2000 })),
        answer(31, acted(None)),
        ask(33, Request::Write(write)),
        raw("host", Kind::Data, stream::STDIN | FIN, 33, b"r"),
        answer(33, status()),
    ]
}

fn events() -> Vec<Entry> {
    let consumer = || "cli".to_owned();
    let event = ProcessEvent {
        sequence: 7,
        time_ms: 1_794_780_200_000,
        id: "proc_1".into(),
        session: Some("task-1".into()),
        happened: Happened::Completed {
            state: ProcessState::Exited { code: Some(0) },
            tail: "ready\n".into(),
        },
    };
    let wanted = Events {
        consumer: consumer(),
        follow: false,
    };
    let dealt_with = Acknowledge {
        consumer: consumer(),
        sequence: 7,
    };
    vec![
        ask(35, Request::Events(wanted)),
        json("guest", Kind::Event, 35, event),
        answer(35, ()),
        ask(37, Request::Acknowledge(dealt_with)),
        answer(37, ()),
    ]
}

fn a_resumed_command() -> Vec<Entry> {
    let resume = |id: &str| {
        Request::Resume(Resume {
            id: id.into(),
            stdout: 2,
            stderr: 4,
        })
    };
    let resumed = Resumed {
        stdin: 3,
        stdin_ended: false,
    };
    let failed = |channel, kind, message: &str| {
        let reply = Reply::<ExecDone>::Failed(Failure::new(kind, message));
        json("guest", Kind::Reply, channel, reply)
    };
    vec![
        ask(39, resume("run-4")),
        json("guest", Kind::Event, 39, resumed),
        raw("host", Kind::Data, stream::STDIN | FIN, 39, b"\n"),
        raw("guest", Kind::Data, stream::STDOUT, 39, b"e\n"),
        answer(39, done()),
        ask(41, resume("run-5")),
        failed(
            41,
            FailureKind::NoRun,
            "this guest never started a command `run-5`",
        ),
        ask(43, resume("run-2")),
        failed(43, FailureKind::RunOver, "the command is over"),
    ]
}

/// What later builds say in a hello and of a session.
fn additions() -> Vec<Entry> {
    let host = HostHello {
        min_version: 1,
        max_version: 1,
        build: "0.2.0".into(),
        required: vec!["resume".into()],
        linger: true,
        max_warm_shells: None,
        heartbeat_ms: Some(15_000),
    };
    let open = OpenSession {
        key: "task-2".into(),
        spec: SessionSpec {
            cwd: None,
            env: None,
            env_remove: vec!["AWS_SECRET_ACCESS_KEY".into()],
            extra_env: vec![("CI".into(), "1".into())],
            login_timeout_ms: None,
            umask: None,
            idle_ms: None,
            ttl_ms: None,
        },
        only_existing: false,
    };
    vec![
        json("host", Kind::Hello, 0, host),
        ask(45, Request::OpenSession(open)),
    ]
}

const SHA256: &str = "98ea6e4f216f2fb4b69fff9b3a44842c38686ca685f3f55dc48c5d3fb1107be4";

fn looking_at_files() -> Vec<Entry> {
    let scan = ScanFiles {
        root: "~/.config/tool".into(),
        paths: Some(vec!["settings".into(), RawBytes(b"odd\xff".to_vec())]),
        max_entries: 100_000,
        max_file_bytes: 268_435_456,
    };
    let entry = FileEntry {
        path: "settings".into(),
        kind: FileKind::File,
        mode: 0o600,
        mtime_ns: 1_794_780_123_479_000_000,
        size: Some(3),
        sha256: Some(SHA256.into()),
        why: None,
    };
    let line = || {
        let mut line = serde_json::to_vec(&entry).unwrap();
        line.push(b'\n');
        line
    };
    let check = {
        let entry = entry.clone();
        move |body: &[u8]| {
            assert_eq!(serde_json::from_slice::<FileEntry>(body).unwrap(), entry);
        }
    };
    let scanned = FilesScanned {
        root: FileRoot::Folder,
        entries: 1,
    };
    vec![
        ask(47, Request::ScanFiles(scan)),
        Entry {
            who: "guest",
            frame: Frame::new(Kind::Data, stream::STDOUT, 47, line()),
            check: Box::new(check),
        },
        answer(47, scanned),
    ]
}

fn moving_files() -> Vec<Entry> {
    let root = || RawBytes::from("~/.config/tool");
    let path = || RawBytes::from("settings");
    let put = PutFile {
        root: root(),
        path: path(),
        mode: 0o400,
        size: 3,
        sha256: SHA256.into(),
    };
    let get = GetFile {
        root: root(),
        path: path(),
        max_bytes: 268_435_456,
    };
    let sent = FileSent {
        size: 3,
        sha256: SHA256.into(),
    };
    let remove = RemoveFile {
        root: root(),
        path: path(),
    };
    let full = Failure::new(
        FailureKind::DiskFull,
        "no space is left for `/home/dev/.config/tool/settings`",
    );
    vec![
        ask(49, Request::PutFile(put.clone())),
        raw("host", Kind::Data, stream::STDIN | FIN, 49, b"hi\n"),
        answer(49, ()),
        ask(51, Request::GetFile(get)),
        raw("guest", Kind::Data, stream::STDOUT, 51, b"hi\n"),
        answer(51, sent),
        ask(53, Request::RemoveFile(remove)),
        answer(53, FileRemoved { existed: true }),
        ask(55, Request::PutFile(put)),
        json("guest", Kind::Reply, 55, Reply::<()>::Failed(full)),
    ]
}

fn a_password() -> Vec<Entry> {
    let exec = Exec {
        sudo: true,
        ..exec("run-6")
    };
    let id = || "run-6".to_owned();
    vec![
        ask(57, Request::Exec(Box::new(exec))),
        raw(
            "host",
            Kind::Data,
            stream::COMMAND | FIN,
            57,
            b"sudo id -u\n",
        ),
        json(
            "guest",
            Kind::Event,
            57,
            ExecStarted {
                pid: 4300,
                secrets: SecretValues::default(),
            },
        ),
        ask(59, Request::Passwords(Passwords { id: id() })),
        json("guest", Kind::Event, 59, PasswordWanted { attempt: 1 }),
        raw("host", Kind::Data, stream::STDIN, 59, b"open sesame\n"),
        answer(59, ()),
    ]
}

fn conversation() -> Vec<Entry> {
    [
        hellos(),
        opening(),
        a_command(),
        a_cancelled_command(),
        failures(),
        the_rest(),
        a_process(),
        acting_on_a_process(),
        events(),
        a_resumed_command(),
        additions(),
        looking_at_files(),
        moving_files(),
        a_password(),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn push_hex(text: &mut String, bytes: &[u8]) {
    for line in bytes.chunks(32) {
        text.push_str("   ");
        for word in line.chunks(4) {
            text.push(' ');
            for byte in word {
                write!(text, "{byte:02x}").unwrap();
            }
        }
        text.push('\n');
    }
}

/// Writes the conversation as the recorded file has it.
fn render(entries: &[Entry]) -> String {
    let mut text = String::from(
        "# One conversation between a host and a guest, every byte of it, in order.\n\
         # `>` is from the host, `<` from the guest; then the body for people; then header and\n\
         # body in hex. Kept true by `conversation_tests.rs`, explained in `docs/protocol.md`.\n",
    );
    let preamble = Preamble::new(NONCE).encode();
    writeln!(text, "\n< preamble\n  # \"{}\"", preamble.escape_ascii()).unwrap();
    push_hex(&mut text, &preamble);
    for entry in entries {
        let Frame {
            kind,
            flags,
            channel,
            body,
        } = &entry.frame;
        let arrow = if entry.who == "host" { '>' } else { '<' };
        write!(
            text,
            "\n{arrow} {kind:?} channel {channel} flags {flags:#04x}\n"
        )
        .unwrap();
        match kind {
            Kind::Hello | Kind::Request | Kind::Event | Kind::Reply => {
                writeln!(text, "  # {}", String::from_utf8_lossy(body)).unwrap();
            }
            _ => writeln!(text, "  # \"{}\"", body.escape_ascii()).unwrap(),
        }
        push_hex(&mut text, &entry.frame.header());
        push_hex(&mut text, body);
    }
    text
}

/// Reads the bytes of each recorded entry, preamble first.
fn recorded_bytes() -> Vec<Vec<u8>> {
    let mut entries: Vec<Vec<u8>> = Vec::new();
    for line in RECORDED.lines() {
        if line.starts_with(['<', '>']) {
            entries.push(Vec::new());
        } else if let Some(hex) = line.strip_prefix("    ") {
            let digits: Vec<u8> = hex.bytes().filter(|b| *b != b' ').collect();
            for pair in digits.chunks(2) {
                let pair = std::str::from_utf8(pair).unwrap();
                let byte = u8::from_str_radix(pair, 16).unwrap();
                entries.last_mut().unwrap().push(byte);
            }
        }
    }
    entries
}

#[test]
fn the_recording_is_what_this_build_says() {
    let now = render(&conversation());
    assert_eq!(RECORDED, now, "the recording should be:\n{now}");
}

#[test]
fn the_recorded_bytes_mean_the_rust_values_and_encode_to_themselves() {
    let recorded = recorded_bytes();
    let (preamble, frames) = recorded.split_first().unwrap();
    assert_eq!(*preamble, Preamble::new(NONCE).encode());
    let entries = conversation();
    assert_eq!(frames.len(), entries.len());
    for (bytes, entry) in frames.iter().zip(entries) {
        let mut decoder = FrameDecoder::default();
        decoder.extend(bytes);
        let frame = decoder.next_frame().unwrap().unwrap();
        assert!(decoder.is_at_boundary());
        (entry.check)(&frame.body);
        assert_eq!(frame, entry.frame);
        assert_eq!(frame.encode(), bytes);
    }
}

#[test]
fn the_examples_in_the_protocol_document_are_recorded_ones() {
    let recorded: Vec<serde_json::Value> = conversation()
        .iter()
        .filter_map(|entry| serde_json::from_slice(&entry.frame.body).ok())
        .collect();
    let examples: Vec<&str> = PROTOCOL
        .split("```json\n")
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert!(examples.len() > 10);
    for example in examples {
        let value: serde_json::Value = serde_json::from_str(example).unwrap();
        assert!(recorded.contains(&value), "nobody says {example}");
    }
}
