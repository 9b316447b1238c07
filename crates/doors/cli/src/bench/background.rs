//! Background processes: starting, polling, typing, and what a thousand of them cost.

use std::process::Command;
use std::time::{Duration, Instant};

use bytes::Bytes;
use exoshell_runtime::{
    DEFAULT_TERMINAL, FollowEvent, FollowStream, Interrupt, ReadFrom, Runtime, StartRequest, call,
};
use serde_json::json;

use super::Failure;
use super::lab::{Home, Lab};
use super::plain;
use super::row::{Row, Unit};
use super::stats::Samples;

/// The names of the rows.
pub(super) const NAMES: &[&str] = &[
    "process, start",
    "process, poll",
    "process, key to echo on a terminal",
    "process, 100 MB into its store",
    "1,000 idle processes, true",
];

const TASK: &str = "bench";

/// How long the plain terminal may take to show a key.
const SHOWN_LIMIT: Duration = Duration::from_secs(5);

/// Measures the rows in homes of their own.
pub(super) async fn measure(lab: &Lab) -> Result<Vec<Row>, Failure> {
    let home = lab.home()?;
    home.call(TASK, "true").await?;
    let mut rows = vec![
        start(lab, &home).await?,
        poll(lab, &home).await?,
        store(lab, &home).await?,
    ];
    rows.insert(2, echo(lab, &home).await?);
    home.end().await?;
    let home = lab.home()?;
    rows.push(crowd(lab, &home).await?);
    home.end().await?;
    Ok(rows)
}

async fn start(lab: &Lab, home: &Home) -> Result<Row, Failure> {
    let mut ours = Samples::default();
    let mut plain = Samples::default();
    for _ in 0..lab.rounds(100, 20) {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let began = Instant::now();
        let request = StartRequest::new("true", TASK);
        home.runtime().start_process(request).await?;
        ours.push(began.elapsed());
        plain.push(plain::bash("setsid -f true")?);
    }
    Ok(Row::new(
        NAMES[0],
        Unit::Ms,
        ours.median(),
        "bash -c 'setsid -f true'",
        plain.median(),
    )
    .with_p95(ours.p95(), plain.p95()))
}

async fn poll(lab: &Lab, home: &Home) -> Result<Row, Failure> {
    let request = StartRequest::new("seq 1000; sleep 600", TASK);
    let process = home.runtime().start_process(request).await?;
    let file = home.path().join("log");
    std::fs::write(&file, "0123456789\n".repeat(400))?;
    let mut ours = Samples::default();
    let mut plain = Samples::default();
    for _ in 0..lab.rounds(100, 20) {
        let arguments = json!({"action": "poll", "session_id": process.id});
        let began = Instant::now();
        let answer = call(
            home.runtime(),
            "process",
            &arguments,
            None,
            Interrupt::new(),
        )
        .await;
        ours.push(began.elapsed());
        if answer.get("status") != Some(&json!("running")) {
            return Err(answer.to_string().into());
        }
        let mut tail = Command::new("tail");
        tail.arg("-c").arg("1000").arg(&file);
        plain.push(plain::silent(tail)?);
    }
    home.runtime().kill_process(&process.id, None).await?;
    Ok(Row::new(
        NAMES[1],
        Unit::Ms,
        ours.median(),
        "tail -c 1000 FILE",
        plain.median(),
    )
    .with_p95(ours.p95(), plain.p95()))
}

/// A key's way to a program on a terminal and back to whoever looks.
async fn echo(lab: &Lab, home: &Home) -> Result<Row, Failure> {
    let runtime = home.runtime();
    let request = StartRequest::new("cat", TASK).on_terminal(DEFAULT_TERMINAL);
    let process = runtime.start_process(request).await?;
    let mut output = runtime
        .follow_process(&process.id, None, ReadFrom::Byte(0))
        .await?;
    let tmux = Tmux::start();
    let mut ours = Samples::default();
    let mut plain = Samples::default();
    for number in 0..lab.rounds(60, 10) {
        let began = Instant::now();
        type_key(runtime, &process.id, &mut output).await?;
        ours.push(began.elapsed());
        if let Ok(tmux) = &tmux {
            plain.push(tmux.type_marker(number)?);
        }
    }
    runtime.kill_process(&process.id, None).await?;
    let row = match tmux {
        Ok(_) => Row::new(
            NAMES[2],
            Unit::Ms,
            ours.median(),
            "tmux send-keys, capture-pane",
            plain.median(),
        )
        .with_p95(ours.p95(), plain.p95()),
        Err(error) => Row::told(NAMES[2], Unit::Ms, ours.median())
            .with_note(format!("there is no tmux beside it: {error}")),
    };
    Ok(row)
}

async fn type_key(runtime: &Runtime, id: &str, output: &mut FollowStream) -> Result<(), Failure> {
    runtime
        .write_to_process(id, None, Bytes::from_static(b"x"), false)
        .await?;
    loop {
        match output.next().await? {
            FollowEvent::Output(_) => return Ok(()),
            FollowEvent::At(_) => {}
            FollowEvent::Done(_) => return Err("the process ended".into()),
        }
    }
}

/// A tmux server of our own.
struct Tmux {
    socket: String,
}

impl Tmux {
    fn start() -> std::io::Result<Self> {
        let socket = format!("exoshell-bench-{}", std::process::id());
        let tmux = Self { socket };
        let mut command = tmux.command();
        command.args(["-f", "/dev/null", "new-session", "-d", "cat"]);
        plain::silent(command)?;
        Ok(tmux)
    }

    fn command(&self) -> Command {
        let mut command = Command::new("tmux");
        command.arg("-L").arg(&self.socket);
        command
    }

    /// Types a word and looks until it is on the screen.
    fn type_marker(&self, number: usize) -> std::io::Result<Duration> {
        let marker = format!("k{number}k");
        let began = Instant::now();
        let mut keys = self.command();
        keys.args(["send-keys", &marker]);
        plain::silent(keys)?;
        while began.elapsed() < SHOWN_LIMIT {
            let pane = self.command().args(["capture-pane", "-p", "-J"]).output()?;
            if String::from_utf8_lossy(&pane.stdout).contains(&marker) {
                return Ok(began.elapsed());
            }
        }
        Err(std::io::Error::other("tmux does not show what was typed"))
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        let mut command = self.command();
        command.arg("kill-server");
        // A server that is gone is what was wanted.
        let _ = plain::silent(command);
    }
}

/// What a process writes goes into a store that nobody reads.
async fn store(lab: &Lab, home: &Home) -> Result<Row, Failure> {
    const WRITE: &str = "head -c 100000000 /dev/zero | tr '\\0' 'x'";
    let file = home.path().join("plain.log");
    let mut ours = Samples::default();
    let mut plain = Samples::default();
    for _ in 0..lab.rounds(5, 2) {
        let began = Instant::now();
        let process = home
            .runtime()
            .start_process(StartRequest::new(WRITE, TASK))
            .await?;
        let waited = home
            .runtime()
            .wait_process(&process.id, None, Duration::from_secs(60), None)
            .await?;
        ours.push(began.elapsed());
        if waited.status.output_end != 100_000_000 {
            return Err(format!("{} bytes arrived", waited.status.output_end).into());
        }
        plain.push(plain::bash(&format!("{WRITE} > '{}'", file.display()))?);
    }
    Ok(Row::new(
        NAMES[3],
        Unit::Ms,
        ours.median(),
        "the same > FILE",
        plain.median(),
    ))
}

/// A foreground command while a thousand processes idle.
async fn crowd(lab: &Lab, home: &Home) -> Result<Row, Failure> {
    const PAUSE: Duration = Duration::from_millis(20);
    let mut alone = Samples::default();
    for _ in 0..lab.rounds(100, 20) {
        tokio::time::sleep(PAUSE).await;
        alone.push(home.call(TASK, "true").await?.time);
    }
    let count = lab.rounds(1000, 100);
    for _ in 0..count {
        home.runtime()
            .start_process(StartRequest::new("exec sleep 600", TASK))
            .await?;
    }
    let mut crowded = Samples::default();
    for _ in 0..lab.rounds(100, 20) {
        tokio::time::sleep(PAUSE).await;
        crowded.push(home.call(TASK, "true").await?.time);
    }
    Ok(Row::new(
        NAMES[4],
        Unit::Ms,
        crowded.median(),
        "true with none",
        alone.median(),
    )
    .with_p95(crowded.p95(), alone.p95())
    .at_most_times(2.0)
    .with_note(format!("{count} processes")))
}
