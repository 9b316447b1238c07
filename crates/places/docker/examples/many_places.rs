//! Makes many containers at once, runs five commands in each, removes them, and reports the memory
//! of this process and all of its children.
//!
//! Run it as `cargo run --release -p exoshell-place-docker --example many_places -- PROGRAM IMAGE
//! [COUNT]`.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "an example for people at a terminal"
)]

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use exoshell_place::{ExecEvent, Link, LinkOptions, Place as _, Progress};
use exoshell_place_docker::{DockerPlace, DockerSettings};
use exoshell_wire::{Exec, Outcome, SessionRef, SessionSpec};

#[tokio::main]
async fn main() {
    let mut words = std::env::args().skip(1);
    let program = words.next().unwrap_or_else(|| "docker".to_owned());
    let image = words.next().unwrap_or_else(|| "debian:12".to_owned());
    let count: usize = words.next().map_or(100, |text| text.parse().unwrap());
    let home = tempfile::tempdir().unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let watched = Arc::clone(&done);
    let watcher = std::thread::spawn(move || watch(&watched));
    let begin = Instant::now();
    let tasks: Vec<_> = (0..count)
        .map(|number| {
            let settings = DockerSettings {
                program: Some((&program).into()),
                image: image.clone(),
                ..DockerSettings::default()
            };
            let place = DockerPlace::new(settings, home.path(), format!("many-{number}"));
            tokio::spawn(use_once(place, number))
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    done.store(true, Ordering::Relaxed);
    println!(
        "{count} places made, used and removed in {:.1} s",
        begin.elapsed().as_secs_f64()
    );
    println!(
        "largest PSS of the host and its children: {} MB",
        watcher.join().unwrap() / 1024
    );
}

async fn use_once(place: DockerPlace, number: usize) {
    let pipe = place.open(&Progress::default()).await.unwrap();
    let options = LinkOptions {
        build: "bench".to_owned(),
        linger: true,
        max_warm_shells: 1,
        heartbeat: place.life().heartbeat,
    };
    let link = Link::open(pipe, &options).await.unwrap();
    for round in 0..5 {
        let text = format!("echo {number} {round}");
        let mut stream = link.exec(exec(round), text.into()).await.unwrap();
        let mut output = Vec::new();
        loop {
            match stream.next().await.unwrap() {
                ExecEvent::Output { bytes, .. } => output.extend_from_slice(&bytes),
                ExecEvent::Done(done) => {
                    assert_eq!(done.outcome, Outcome::Exited(0));
                    break;
                }
                _ => {}
            }
        }
        assert_eq!(output, format!("{number} {round}\n").into_bytes());
    }
    place.destroy().await.unwrap();
}

fn exec(round: usize) -> Exec {
    Exec {
        id: format!("round-{round}"),
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
        timeout_ms: Some(60_000),
        grace_ms: 500,
        lease_ms: 0,
        merge: true,
        terminal: None,
        stdin: false,
        persist: false,
        spill: None,
        sudo: false,
        redact: None,
    }
}

/// Looks at the memory until told to stop; returns the most that was seen, in KB.
fn watch(done: &AtomicBool) -> u64 {
    let mut most = 0;
    while !done.load(Ordering::Relaxed) {
        most = most.max(memory_of(std::process::id()));
        std::thread::sleep(Duration::from_millis(200));
    }
    most
}

fn memory_of(pid: u32) -> u64 {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
    let own: u64 = text
        .lines()
        .find_map(|line| {
            line.strip_prefix("Pss:")?
                .split_whitespace()
                .next()?
                .parse()
                .ok()
        })
        .unwrap_or(0);
    let threads = fs::read_dir(format!("/proc/{pid}/task"))
        .into_iter()
        .flatten()
        .flatten();
    let children: u64 = threads
        .filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok())
        .flat_map(|pids| {
            pids.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<u32>>()
        })
        .map(memory_of)
        .sum();
    own + children
}
