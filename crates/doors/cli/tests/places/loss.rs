//! A remote host whose network loses every packet for a while.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Seek as _, Write as _};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use exoshell_runtime::{
    ErrorKind, EventKind, FollowEvent, Interrupt, OutputStream, ProcessView, ReadFrom, RunEnd,
    RunRequest, Runtime, RuntimeError, StartRequest, TerminalRequest, WaitReason,
};
use exoshell_testkit::{Net, Process, SshdOptions};

use crate::site::{Site, Sleep};
use crate::support::{Answer, block_on, quoted, runtime};

const SECOND: Duration = Duration::from_secs(1);

/// How long packets are lost: longer than anybody waits for a sign of life, shorter than a lease.
const OUTAGE: Duration = Duration::from_secs(30);

/// When a loss must be known: three heartbeats of 5 s, and a little.
const NOTICE: Duration = Duration::from_secs(17);

fn far_away() -> (Net, Site) {
    let net = Net::new();
    let site = Site::on(SshdOptions::default().behind(&net).start(), &[]);
    (net, site)
}

/// Counts the lines of a file on the host.
fn runs(site: &Site, name: &str) -> usize {
    fs::read_to_string(site.host().home().join(name)).map_or(0, |text| text.lines().count())
}

/// Waits until a command has said so in a file of the host.
async fn begun(site: &Site, name: &str) {
    let deadline = Instant::now() + 60 * SECOND;
    while runs(site, name) == 0 {
        assert!(Instant::now() < deadline, "`{name}` was never run");
        tokio::time::sleep(SECOND / 20).await;
    }
}

/// Runs a command and returns all of its stdout with its end.
async fn collect(runtime: &Runtime, request: RunRequest) -> (String, Result<RunEnd, RuntimeError>) {
    let text = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&text);
    let end = runtime
        .run(request.with_timeout(300 * SECOND), move |stream, bytes| {
            if stream == OutputStream::Stdout {
                sink.lock().unwrap().extend_from_slice(bytes);
            }
        })
        .await;
    let text = String::from_utf8(text.lock().unwrap().clone()).unwrap();
    (text, end)
}

fn numbered(range: std::ops::RangeInclusive<u32>, form: impl Fn(u32) -> String) -> String {
    range.map(form).collect()
}

/// Returns what `cksum` prints for these bytes.
fn cksum(bytes: &[u8]) -> String {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    let output = Command::new("cksum").stdin(file).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

/// Follows a process to its end and returns what came.
async fn follow(runtime: &Runtime, id: &str) -> String {
    let mut stream = runtime
        .follow_process(id, None, ReadFrom::Byte(0))
        .await
        .unwrap();
    let mut all = Vec::new();
    loop {
        match stream.next().await.unwrap() {
            FollowEvent::At(at) => assert_eq!((at.offset, at.dropped), (0, 0)),
            FollowEvent::Output(bytes) => all.extend_from_slice(&bytes),
            FollowEvent::Done(_) => return String::from_utf8(all).unwrap(),
        }
    }
}

/// Waits for the first word that a connection was lost.
async fn loss_of(runtime: Runtime) -> Instant {
    let mut events = runtime.events();
    loop {
        let event = events.next().await.unwrap();
        if matches!(&event.kind, EventKind::Progress { step } if step.contains("lost")) {
            return Instant::now();
        }
    }
}

/// Writes megabytes, all of which must come.
async fn flood(runtime: Runtime) {
    let command = "echo run >>flood; for i in $(seq 1 90); do seq -f \"$i.%g\" 1 5000; \
                   sleep 0.5; done; exit 3";
    let (text, end) = collect(&runtime, RunRequest::new(command).in_task("flood")).await;
    assert_eq!(end.unwrap().exit_code(), 3);
    let block = |i: u32| numbered(1..=5000, |number| format!("{i}.{number}\n"));
    assert!(text == numbered(1..=90, block), "{} bytes", text.len());
}

/// Reads megabytes, all of which must arrive.
async fn sum(runtime: Runtime) {
    let command =
        "echo run >>sum; for i in $(seq 1 80); do head -c 100000; sleep 0.5; done | cksum";
    let bytes: Vec<u8> = (0..8_000_000_u32)
        .map(|number| number.to_le_bytes()[1] ^ 0x5a)
        .collect();
    let expected = cksum(&bytes);
    let request = TerminalRequest::new(command)
        .in_task("sum")
        .with_timeout(300 * SECOND)
        .with_stdin(bytes);
    let result = runtime.terminal(request).await;
    assert_eq!((result.exit_code, result.output), (0, expected));
}

/// A process that is followed and waited for.
async fn behind(runtime: Runtime) {
    let command =
        "echo run >>behind; for i in $(seq 1 80); do echo \"b$i\"; sleep 0.5; done; exit 5";
    let started = runtime.start_process(StartRequest::new(command, "behind"));
    let id = started.await.unwrap().id;
    let (followed, waited) = tokio::join!(
        follow(&runtime, &id),
        runtime.wait_process(&id, None, 120 * SECOND, None)
    );
    assert_eq!(waited.unwrap().reason, WaitReason::Ended);
    let read = runtime.process_output(&id, None, ReadFrom::Byte(0), 1 << 20, None);
    let (log, _) = read.await.unwrap();
    let log = String::from_utf8(log).unwrap();
    assert_eq!(followed, log);
    assert_eq!(log, numbered(1..=80, |number| format!("b{number}\n")));
}

/// A command that answers every line it reads, and others that read and write a lot, while
/// nothing gets through for 30 s.
#[test]
fn thirty_seconds_without_packets_lose_nothing_and_run_nothing_twice() {
    let (net, site) = far_away();
    let runtime = runtime(&site);
    block_on(async {
        let lost = tokio::spawn(loss_of(runtime.clone()));
        let echo = "echo run >>echo; i=0; while read -r l; do i=$((i+1)); echo \"$i:$l\"; done; \
                    echo 'not all' >&2; exit 7";
        let mut talk = RunRequest::new(echo).in_task("talk");
        let mouth = talk.feed();
        let talk = tokio::spawn({
            let runtime = runtime.clone();
            async move { collect(&runtime, talk).await }
        });
        let others = [
            tokio::spawn(flood(runtime.clone())),
            tokio::spawn(sum(runtime.clone())),
            tokio::spawn(behind(runtime.clone())),
        ];
        for name in ["echo", "flood", "sum", "behind"] {
            begun(&site, name).await;
        }
        let line = |number: u32| format!("line {number} {}\n", "x".repeat(50));
        for number in 1..=20 {
            mouth.send(line(number).into()).await.unwrap();
        }
        net.drop_packets();
        let dropped = Instant::now();
        // Some of it goes into a pipe that nobody empties.
        for number in 21..=80 {
            mouth.send(line(number).into()).await.unwrap();
            tokio::time::sleep(SECOND / 4).await;
        }
        let noticed = lost.await.unwrap() - dropped;
        assert!(noticed < NOTICE, "noticed after {noticed:?}");
        assert!(noticed > 9 * SECOND, "too soon: {noticed:?}");
        tokio::time::sleep(OUTAGE.saturating_sub(dropped.elapsed())).await;
        net.pass_packets();
        for number in 81..=90 {
            mouth.send(line(number).into()).await.unwrap();
        }
        drop(mouth);
        let (text, end) = talk.await.unwrap();
        assert_eq!(end.unwrap().exit_code(), 7);
        let expected = numbered(1..=90, |number| format!("{number}:{}", line(number)));
        assert_eq!(text, expected);
        let back = dropped.elapsed();
        assert!(back < 60 * SECOND, "back only after {back:?}");
        for other in others {
            other.await.unwrap();
        }
        for name in ["echo", "flood", "sum", "behind"] {
            assert_eq!(runs(&site, name), 1, "{name}");
        }
    });
}

/// What is asked for while nothing gets through, of a guest that was reached before.
#[test]
fn what_is_started_while_packets_are_lost_runs_once() {
    let (net, site) = far_away();
    let runtime = runtime(&site);
    block_on(async {
        let ready = runtime
            .terminal(TerminalRequest::new("cd /usr; export A=1"))
            .await;
        assert_eq!(ready.exit_code, 0, "{ready:?}");
        net.drop_packets();
        let home = quoted(site.host().home().to_str().unwrap());
        let spawn = |command: String, task: &str| {
            let runtime = runtime.clone();
            let request = TerminalRequest::new(command).in_task(task);
            tokio::spawn(async move { runtime.terminal(request).await })
        };
        // One in a session that is there, one in a new one, and a process.
        let known = spawn(format!("echo run >>{home}/known; pwd; echo $A"), "default");
        let fresh = spawn(format!("echo run >>{home}/fresh; echo fresh"), "other");
        let process = tokio::spawn({
            let runtime = runtime.clone();
            let command = format!("echo run >>{home}/process; read -r l; echo got $l");
            async move {
                let request = StartRequest::new(command, "default");
                runtime.start_process(request).await
            }
        });
        // And one of another program, which has to connect first.
        let other = tokio::task::spawn_blocking({
            let command = format!("echo run >>{home}/stranger; echo $A");
            let program = site.start_call(&serde_json::json!({"command": command}));
            move || program.finish_within(120 * SECOND)
        });
        tokio::time::sleep(OUTAGE).await;
        assert_eq!(runs(&site, "known") + runs(&site, "fresh"), 0);
        net.pass_packets();
        let known = known.await.unwrap();
        assert_eq!(
            (known.exit_code, known.output.as_str()),
            (0, "/usr\n1\n"),
            "{known:?}"
        );
        let fresh = fresh.await.unwrap();
        assert_eq!(
            (fresh.exit_code, fresh.output.as_str()),
            (0, "fresh\n"),
            "{fresh:?}"
        );
        let process = process.await.unwrap().unwrap();
        let status = runtime
            .write_to_process(&process.id, None, "it".into(), true)
            .await;
        assert_eq!(status.unwrap().id, process.id);
        let waited = runtime
            .wait_process(&process.id, None, 60 * SECOND, None)
            .await;
        assert_eq!(waited.unwrap().reason, WaitReason::Ended);
        let other = other.await.unwrap();
        Answer::parse(&other.out).printed("1\n");
        for name in ["known", "fresh", "process", "stranger"] {
            assert_eq!(runs(&site, name), 1, "{name}");
        }
        let listed = runtime.processes(None).await.unwrap();
        let ids: BTreeSet<&str> = listed.iter().map(ProcessView::id).collect();
        assert_eq!(ids, BTreeSet::from([process.id.as_str()]), "{listed:?}");
    });
}

#[test]
fn a_loss_for_longer_than_the_lease_ends_the_command_there() {
    let (net, site) = far_away();
    let runtime = runtime(&site);
    let sleep = Sleep::new();
    block_on(async {
        let ready = runtime.terminal(TerminalRequest::new("cd /usr")).await;
        assert_eq!(ready.exit_code, 0, "{ready:?}");
        let command = sleep.fill("echo before; trap '' TERM; setsid sleep N & sleep N");
        let call = tokio::spawn({
            let runtime = runtime.clone();
            let request = TerminalRequest::new(command).with_timeout(300 * SECOND);
            async move { runtime.terminal(request).await }
        });
        let deadline = Instant::now() + 60 * SECOND;
        while sleep.count() < 2 {
            assert!(Instant::now() < deadline, "it was never run");
            tokio::time::sleep(SECOND / 20).await;
        }
        let (stop, other) = (Interrupt::new(), Sleep::new());
        let stopped = tokio::spawn({
            let command = other.fill("echo x >>stopped; sleep N");
            let request = TerminalRequest::new(command).in_task("stopped");
            let request = request
                .with_timeout(300 * SECOND)
                .with_interrupt(stop.clone());
            let runtime = runtime.clone();
            async move { runtime.terminal(request).await }
        });
        begun(&site, "stopped").await;
        net.drop_packets();
        let dropped = Instant::now();
        // Whoever waits for a connection can stop waiting.
        tokio::time::sleep(25 * SECOND).await;
        stop.set();
        let stopped = stopped.await.unwrap();
        assert_eq!(stopped.exit_code, 130, "{stopped:?}");
        assert!(dropped.elapsed() < 28 * SECOND, "{:?}", dropped.elapsed());
        let result = call.await.unwrap();
        let took = dropped.elapsed();
        assert_eq!(result.error_kind, Some(ErrorKind::PlaceLost), "{result:?}");
        assert_eq!((result.exit_code, result.output.as_str()), (-1, "before\n"));
        assert!(took > 60 * SECOND && took < 85 * SECOND, "{took:?}");
        // The lease, the grace, and a little.
        let left = |process: &Process| {
            process.command.contains(&sleep.0) || process.command.contains(&other.0)
        };
        while site.host().visitors().iter().any(left) {
            assert!(dropped.elapsed() < 95 * SECOND, "it still runs there");
            tokio::time::sleep(SECOND / 20).await;
        }
        net.pass_packets();
        let next = runtime.terminal(TerminalRequest::new("pwd")).await;
        assert_eq!(
            (next.exit_code, next.output.as_str()),
            (0, "/usr\n"),
            "{next:?}"
        );
    });
}
