//! What the tests of this crate have in common.

use std::time::Duration;

use exoshell_place::{ExecEvent, Link, LinkOptions, Pipe, Place as _, PlaceError, Progress};
use exoshell_wire::{Exec, Outcome, SessionRef, SessionSpec, stream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::SshPlace;

pub(crate) async fn link(pipe: Pipe) -> Link {
    let options = LinkOptions {
        build: "test".to_owned(),
        linger: true,
        max_warm_shells: 2,
        heartbeat: Some(Duration::from_secs(5)),
    };
    Link::open(pipe, &options).await.unwrap()
}

/// Waits for the end of a guest that said goodbye.
pub(crate) async fn wait_until_gone(place: &SshPlace) {
    let gone = async {
        while place.open_existing().await.unwrap().is_some() {
            tokio::task::yield_now().await;
        }
    };
    let limit = Duration::from_secs(10);
    tokio::time::timeout(limit, gone).await.expect("it ends");
}

pub(crate) async fn connected(place: &SshPlace) -> Link {
    link(place.open(&Progress::default()).await.unwrap()).await
}

pub(crate) fn spec() -> SessionSpec {
    serde_json::from_str("{}").unwrap()
}

/// Runs a command through the guest; returns its code and output.
pub(crate) async fn run(link: &Link, command: &str) -> (Outcome, String) {
    run_in(link, SessionRef::OneShot(spec()), command).await
}

pub(crate) async fn run_in(link: &Link, session: SessionRef, command: &str) -> (Outcome, String) {
    let exec = Exec {
        id: exoshell_place::nonce().unwrap(),
        session,
        workdir: None,
        env: Vec::new(),
        timeout_ms: Some(20_000),
        grace_ms: 1000,
        lease_ms: 60_000,
        merge: true,
        terminal: None,
        stdin: false,
        persist: false,
        spill: None,
        sudo: false,
        redact: None,
    };
    let command = command.as_bytes().to_vec().into();
    let mut running = link.exec(exec, command).await.unwrap();
    let mut output = Vec::new();
    loop {
        match running.next().await.unwrap() {
            ExecEvent::Output { stream, bytes } if stream == stream::STDOUT => {
                output.extend_from_slice(&bytes);
            }
            ExecEvent::Done(done) => {
                return (done.outcome, String::from_utf8_lossy(&output).into_owned());
            }
            _ => {}
        }
    }
}

pub(crate) async fn output_of(place: &SshPlace, words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let mut launched = place.launch(&words).await.unwrap();
    launched.stdin.shutdown().await.unwrap();
    let mut output = Vec::new();
    launched.stdout.read_to_end(&mut output).await.unwrap();
    String::from_utf8(output).unwrap()
}

pub(crate) async fn fails(place: &SshPlace) -> PlaceError {
    let progress = Progress::default();
    let opened = tokio::time::timeout(Duration::from_secs(90), place.open(&progress));
    let error = opened.await.expect("an answer").expect_err("a failure");
    println!("{error}\n  -> {:?}", error.hint());
    error
}
