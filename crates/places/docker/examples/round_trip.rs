//! Measures `true` through the pipe of a container beside the engine's own `exec`.
//!
//! Run it as `cargo run --release -p exoshell-place-docker --example round_trip -- PROGRAM IMAGE
//! [ARGUMENT…]`; the engine is the one that the program would use, and further arguments go to its
//! `run`.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "an example for people at a terminal"
)]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use exoshell_place::{ExecEvent, Link, LinkOptions, Place as _, Progress};
use exoshell_place_docker::{DockerPlace, DockerSettings};
use exoshell_wire::{Exec, OpenSession, SessionRef, SessionSpec};

const ROUNDS: usize = 200;
const EXECS: usize = 20;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut words = std::env::args().skip(1);
    let program = words.next().unwrap_or_else(|| "docker".to_owned());
    let image = words.next().unwrap_or_else(|| "debian:12".to_owned());
    let home = tempfile::tempdir().unwrap();
    let settings = DockerSettings {
        program: Some((&program).into()),
        image: image.clone(),
        extra_args: words.collect(),
        ..DockerSettings::default()
    };
    let place = DockerPlace::new(settings, home.path(), "bench");
    let begin = Instant::now();
    let pipe = place.open(&Progress::default()).await.unwrap();
    let options = LinkOptions {
        build: "bench".to_owned(),
        linger: true,
        max_warm_shells: 4,
        heartbeat: None,
    };
    let link = Link::open(pipe, &options).await.unwrap();
    println!("place made and open: {:.0} ms", millis(begin.elapsed()));
    let begin = Instant::now();
    drop(place.open(&Progress::default()).await.unwrap());
    println!("opened once more: {:.1} ms", millis(begin.elapsed()));
    let key = open_session(&link).await;
    for pause in [0, 20] {
        let mut times = Vec::new();
        for round in 0..ROUNDS {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            let begin = Instant::now();
            run_true(&link, &key, &format!("{pause}-{round}")).await;
            times.push(begin.elapsed());
        }
        println!(
            "`true` through the pipe, {pause} ms apart: {:.2} ms",
            median(times)
        );
    }
    let id = place.inspect().await.unwrap().id.unwrap();
    let exec = plain(&program, EXECS, &["exec", &id, "sh", "-c", "true"]);
    println!("`{program} exec sh -c true`: {exec:.1} ms");
    let run = plain(
        &program,
        5,
        &["run", "--rm", "--entrypoint", "/bin/true", &image],
    );
    println!("`{program} run --rm /bin/true`: {run:.0} ms");
    place.destroy().await.unwrap();
}

async fn open_session(link: &Link) -> String {
    let key = "bench".to_owned();
    let spec = SessionSpec {
        cwd: None,
        env: None,
        env_remove: Vec::new(),
        extra_env: Vec::new(),
        login_timeout_ms: None,
        umask: None,
        idle_ms: None,
        ttl_ms: None,
    };
    let request = OpenSession {
        key: key.clone(),
        spec,
        only_existing: false,
    };
    link.open_session(request).await.unwrap();
    key
}

async fn run_true(link: &Link, key: &str, id: &str) {
    let exec = Exec {
        id: id.to_owned(),
        session: SessionRef::Key(key.to_owned()),
        workdir: None,
        env: Vec::new(),
        timeout_ms: Some(60_000),
        grace_ms: 500,
        lease_ms: 0,
        merge: true,
        terminal: None,
        stdin: false,
        persist: true,
        spill: None,
        sudo: false,
        redact: None,
    };
    let mut stream = link.exec(exec, Bytes::from_static(b"true")).await.unwrap();
    while !matches!(stream.next().await.unwrap(), ExecEvent::Done(_)) {}
}

fn plain(program: &str, times: usize, words: &[&str]) -> f64 {
    let run = || {
        let begin = Instant::now();
        let status = Command::new(program)
            .args(words)
            .stdin(Stdio::null())
            .status();
        assert!(status.unwrap().success());
        begin.elapsed()
    };
    median((0..times).map(|_| run()).collect())
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times.get(times.len() / 2).copied().map_or(0.0, millis)
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
