//! `exoshell ps`, `logs`, `wait` and `kill`.

use std::io::Write as _;
use std::time::Duration;

use exoshell_runtime::{
    Action, FollowEvent, ProcessView, ReadFrom, Runtime, RuntimeError, WaitReason,
    describe_process, parse_signal, state_code, state_name,
};
use serde_json::{Value, json};

use super::places::{span, table};
use super::{load, written};
use crate::args::{KillArgs, LogsArgs, PlaceArgs, PsArgs, WaitArgs};
use crate::output;

/// How long `wait` waits when nobody says: as long as it takes.
const FOR_EVER: Duration = Duration::from_secs(10 * 365 * 24 * 3600);

/// The most `logs` reads at once.
const PAGE_BYTES: u64 = 8 * 1024 * 1024;

/// Lists processes.
pub(crate) async fn list(args: PsArgs) -> u8 {
    finish(try_list(&args).await, args.json)
}

fn finish(result: Result<u8, RuntimeError>, as_json: bool) -> u8 {
    result.unwrap_or_else(|error| output::error(&error, as_json))
}

async fn try_list(args: &PsArgs) -> Result<u8, RuntimeError> {
    let mut views = load(&PlaceArgs::default())?
        .processes(args.task.as_deref())
        .await?;
    if !args.all {
        views.retain(|view| match view {
            ProcessView::Known(status) => !status.state.is_over(),
            ProcessView::Lost(_) => false,
            ProcessView::Unreachable(_) => true,
        });
    }
    if args.json {
        let list: Vec<Value> = views.iter().map(describe_process).collect();
        return Ok(written(output::json(&json!({ "processes": list }))));
    }
    if views.is_empty() {
        output::talk(
            "no processes; `exoshell run --background …` starts one, `ps --all` lists ended ones",
        );
        return Ok(0);
    }
    let header = ["ID", "TASK", "STATE", "PID", "AGE", "COMMAND"].map(str::to_owned);
    let rows: Vec<[String; 6]> = views.iter().map(row).collect();
    Ok(written(output::text(&table(&header, &rows))))
}

fn row(view: &ProcessView) -> [String; 6] {
    let first_line = |text: &str| {
        let line = text.lines().next().unwrap_or_default();
        line.chars().take(60).filter(|c| !c.is_control()).collect()
    };
    match view {
        ProcessView::Known(status) => {
            let state = match state_code(status.state) {
                Some(code) => format!("{} ({code})", state_name(status.state)),
                None => state_name(status.state).to_owned(),
            };
            let task = status.session.as_deref().unwrap_or_default();
            [
                status.id.clone(),
                task.strip_prefix("task:").unwrap_or(task).to_owned(),
                state,
                status.pid.to_string(),
                span(status.uptime_ms / 1000),
                first_line(&status.command.display()),
            ]
        }
        ProcessView::Lost(record) | ProcessView::Unreachable(record) => [
            record.id.clone(),
            record.task.clone(),
            if matches!(view, ProcessView::Lost(_)) {
                "lost".to_owned()
            } else {
                "unreachable".to_owned()
            },
            String::new(),
            String::new(),
            first_line(&record.command),
        ],
    }
}

/// Prints a process's output, raw as it was written.
pub(crate) async fn logs(args: LogsArgs) -> u8 {
    finish(try_logs(&args).await, args.json)
}

async fn try_logs(args: &LogsArgs) -> Result<u8, RuntimeError> {
    let runtime = load(&PlaceArgs::default())?;
    if args.json {
        return json_logs(&runtime, args).await;
    }
    let from = match args.tail {
        None => ReadFrom::Byte(0),
        Some(lines) => match runtime.process(&args.id, None).await? {
            ProcessView::Known(status) => ReadFrom::Line(status.lines.saturating_sub(lines)),
            _ => ReadFrom::Byte(0),
        },
    };
    let mut stream = runtime.follow_process(&args.id, None, from).await?;
    let end = match runtime.process(&args.id, None).await? {
        ProcessView::Known(status) => status.output_end,
        _ => 0,
    };
    loop {
        match stream.next().await? {
            FollowEvent::At(at) => {
                if at.dropped > 0 {
                    output::talk(&format!(
                        "exoshell: {} bytes before this were dropped (the configured limit)",
                        at.dropped
                    ));
                }
            }
            FollowEvent::Output(bytes) => {
                let mut out = std::io::stdout().lock();
                if out.write_all(&bytes).and_then(|()| out.flush()).is_err() {
                    return Ok(0);
                }
            }
            FollowEvent::Done(_) => return Ok(0),
        }
        if !args.follow && stream.position().is_some_and(|at| at >= end) {
            return Ok(written(output::data(&stream.rest())));
        }
    }
}

async fn json_logs(runtime: &Runtime, args: &LogsArgs) -> Result<u8, RuntimeError> {
    let from = args
        .tail
        .map_or(ReadFrom::Byte(0), |_| ReadFrom::Tail(PAGE_BYTES));
    let (bytes, read) = runtime
        .process_output(&args.id, None, from, PAGE_BYTES, None)
        .await?;
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if let Some(lines) = args.tail {
        let lines = usize::try_from(lines).unwrap_or(usize::MAX);
        let all: Vec<&str> = text.split_inclusive('\n').collect();
        text = all[all.len().saturating_sub(lines)..].concat();
    }
    let mut answer = describe_process(&ProcessView::Known(Box::new(read.status.clone())));
    if let Value::Object(map) = &mut answer {
        map.insert("output".to_owned(), json!(text));
        map.insert("total_lines".to_owned(), json!(read.status.lines));
        map.insert("dropped_bytes".to_owned(), json!(read.status.output_start));
    }
    Ok(written(output::json(&answer)))
}

/// Waits for a process.
pub(crate) async fn wait(args: WaitArgs) -> u8 {
    finish(try_wait(&args).await, args.json)
}

async fn try_wait(args: &WaitArgs) -> Result<u8, RuntimeError> {
    let timeout = match args.timeout {
        None => FOR_EVER,
        Some(seconds) if (0.0..=315_360_000.0).contains(&seconds) => {
            Duration::from_secs_f64(seconds)
        }
        Some(seconds) => {
            return Err(RuntimeError::Usage(format!(
                "`--timeout {seconds}` must be a number of seconds from 0 on"
            )));
        }
    };
    let runtime = load(&PlaceArgs::default())?;
    let until = args.until.clone().map(|text| (text, 0));
    let waited = runtime.wait_process(&args.id, None, timeout, until).await?;
    let code = match waited.reason {
        WaitReason::Matched => 0,
        WaitReason::TimeUp => 124,
        // A code that nobody knows is no success.
        WaitReason::Ended => {
            state_code(waited.status.state).unwrap_or(i32::from(output::OWN_FAILURE))
        }
    };
    if args.json {
        let mut answer = describe_process(&ProcessView::Known(Box::new(waited.status)));
        if let Value::Object(map) = &mut answer {
            map.insert("wait".to_owned(), json!(waited.reason));
            let line = waited.line.map(|line| line.display());
            map.insert("matched_line".to_owned(), json!(line));
        }
        written(output::json(&answer));
    } else if waited.reason == WaitReason::TimeUp {
        output::talk(&format!("exoshell: `{}` still runs", args.id));
    }
    Ok(u8::try_from(code).unwrap_or(output::OWN_FAILURE))
}

/// Ends processes, or signals them.
pub(crate) async fn kill(args: KillArgs) -> u8 {
    finish(try_kill(&args).await, args.json)
}

async fn try_kill(args: &KillArgs) -> Result<u8, RuntimeError> {
    let signal = match &args.signal {
        None => None,
        Some(name) => Some(parse_signal(name).ok_or_else(|| {
            RuntimeError::Usage(format!("there is no signal `{name}`; try `INT` or `TERM`"))
        })?),
    };
    let runtime = load(&PlaceArgs::default())?;
    let mut answers = Vec::new();
    let mut code = 0;
    for id in &args.id {
        let acted = match signal {
            Some(signal) => {
                runtime
                    .act_on_process(id, None, Action::Signal { signal })
                    .await?
            }
            None => runtime.kill_process(id, None).await?,
        };
        for left in &acted.unkillable {
            output::talk(&format!("exoshell: could not be ended: {}", left.display()));
            code = output::OWN_FAILURE;
        }
        answers.push(describe_process(&ProcessView::Known(Box::new(
            acted.status,
        ))));
    }
    if args.json {
        let shown = written(output::json(&json!({ "processes": answers })));
        return Ok(code.max(shown));
    }
    Ok(code)
}
