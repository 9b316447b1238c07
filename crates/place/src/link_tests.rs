use std::path::Path;
use std::process::Stdio;

use exoshell_wire::{FailureKind, Outcome, SessionRef, SessionSpec};
use tempfile::TempDir;
use tokio::net::UnixStream;
use tokio::task::JoinHandle;

use super::*;
use crate::bundle;

/// A guest of its own for each test.
struct World {
    _root: TempDir,
    dir: std::path::PathBuf,
}

impl World {
    async fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let binary = bundle::embedded();
        let program = bundle::install(&binary, root.path()).unwrap();
        let dir = root.path().join("guest");
        let status = tokio::process::Command::new(program)
            .args(["start", "--exit-after-ms", "5000", "--dir"])
            .arg(&dir)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::null())
            .status()
            .await
            .unwrap();
        assert!(status.success());
        Self { _root: root, dir }
    }
}

/// Opens a link over a pipe that is lost when the task is aborted.
async fn open(dir: &Path, heartbeat: Option<Duration>) -> (Link, JoinHandle<()>) {
    let mut socket = UnixStream::connect(dir.join("guest.sock")).await.unwrap();
    let (ours, mut theirs) = tokio::io::duplex(64 * 1024);
    let carrier = tokio::spawn(async move {
        let _ = tokio::io::copy_bidirectional(&mut socket, &mut theirs).await;
    });
    let (reader, writer) = tokio::io::split(ours);
    let options = LinkOptions {
        build: "test".to_owned(),
        linger: true,
        max_warm_shells: 1,
        heartbeat,
    };
    let link = Link::open(Pipe::direct(reader, writer), &options)
        .await
        .unwrap();
    (link, carrier)
}

fn exec(id: &str) -> Exec {
    Exec {
        id: id.to_owned(),
        session: SessionRef::OneShot(SessionSpec {
            cwd: None,
            env: None,
            env_remove: Vec::new(),
            extra_env: Vec::new(),
            login_timeout_ms: None,
            umask: None,
            idle_ms: None,
            ttl_ms: None,
        }),
        workdir: None,
        env: Vec::new(),
        timeout_ms: None,
        grace_ms: 1000,
        lease_ms: 30_000,
        merge: false,
        terminal: None,
        stdin: true,
        persist: false,
        spill: None,
        sudo: false,
        redact: None,
    }
}

/// Collects output until it ends with something, or the command is over.
async fn collect(stream: &mut ExecStream, until: &str, text: &mut String) -> Option<ExecDone> {
    loop {
        if text.ends_with(until) {
            return None;
        }
        match stream.next().await.unwrap() {
            ExecEvent::Output { bytes, .. } => *text += std::str::from_utf8(&bytes).unwrap(),
            ExecEvent::Done(done) => return Some(*done),
            ExecEvent::Started { .. } | ExecEvent::Resumed(_) => {}
        }
    }
}

#[tokio::test]
async fn a_command_goes_on_over_the_next_link() {
    let world = World::new().await;
    let (link, carrier) = open(&world.dir, None).await;
    assert!(link.hello().capabilities.contains(&"resume".to_owned()));
    let command = Bytes::from("read a; echo $a; read b; echo $b");
    let mut stream = link.exec(exec("run"), command).await.unwrap();
    let mut text = String::new();
    stream.stdin().send(Bytes::from("one\n")).await.unwrap();
    assert!(collect(&mut stream, "one\n", &mut text).await.is_none());
    carrier.abort();
    assert!(matches!(stream.next().await, Err(PlaceError::Lost(_))));

    let (link, _carrier) = open(&world.dir, None).await;
    let resume = Resume {
        id: "run".to_owned(),
        stdout: text.len() as u64,
        stderr: 0,
    };
    let mut stream = link.resume(resume).unwrap();
    let resumed = Resumed {
        stdin: 4,
        stdin_ended: false,
    };
    assert_eq!(stream.next().await.unwrap(), ExecEvent::Resumed(resumed));
    stream.stdin().send(Bytes::from("two\n")).await.unwrap();
    stream.stdin().finish().await.unwrap();
    let done = collect(&mut stream, "nothing", &mut text).await.unwrap();
    assert_eq!(
        (text.as_str(), done.outcome),
        ("one\ntwo\n", Outcome::Exited(0))
    );
    link.shut_down().await.unwrap();
}

#[tokio::test]
async fn a_command_the_guest_never_saw_is_told_from_one_that_is_over() {
    let world = World::new().await;
    let (link, _carrier) = open(&world.dir, Some(Duration::from_millis(50))).await;
    let mut plain = exec("plain");
    plain.lease_ms = 0;
    plain.stdin = false;
    let mut stream = link.exec(plain, Bytes::from("true")).await.unwrap();
    collect(&mut stream, "nothing", &mut String::new())
        .await
        .unwrap();
    for (id, kind) in [
        ("never", FailureKind::NoRun),
        ("plain", FailureKind::RunOver),
    ] {
        let resume = Resume {
            id: id.to_owned(),
            stdout: 0,
            stderr: 0,
        };
        let mut stream = link.resume(resume).unwrap();
        let Err(PlaceError::Failed(failure)) = stream.next().await else {
            panic!("`{id}` does not fail");
        };
        assert_eq!(failure.kind, kind);
    }
    link.shut_down().await.unwrap();
}
