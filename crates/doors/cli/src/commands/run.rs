//! `exoshell run`.

use std::io::{self, Write as _};
use std::time::Duration;

use bytes::Bytes;
use exoshell_runtime::{
    EventKind, Events, OutputStream, ProcessView, RunEnd, RunRequest, Runtime, RuntimeError,
    StartRequest, TerminalRequest, describe_process,
};
use tokio::io::AsyncReadExt as _;
use tokio::sync::mpsc;

use super::{interrupt_on_signals, load, written};
use crate::args::RunArgs;
use crate::output;
use crate::password::ask_at_terminal;
use crate::raw_terminal::RawTerminal;

/// Runs a command: streamed, or as one JSON object.
pub(crate) async fn run(args: RunArgs) -> u8 {
    match try_run(&args).await {
        Ok(code) => code,
        Err(error) => output::error(&error, args.json),
    }
}

async fn try_run(args: &RunArgs) -> Result<u8, RuntimeError> {
    let env = args
        .env
        .iter()
        .map(|pair| {
            pair.split_once('=').ok_or_else(|| {
                RuntimeError::Usage(format!("`--env {pair}` must look like NAME=VALUE"))
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    let timeout = args.timeout.map(check_timeout).transpose()?;
    let mut runtime = load(&args.place)?;
    // With `--pty` and `--stdin` what is typed is the command's.
    if !args.pty && !args.stdin {
        runtime = ask_at_terminal(runtime);
    }
    let command = args.command.join(" ");
    if args.background {
        return background(&runtime, args, command, &env, timeout).await;
    }
    if args.json {
        return json(&runtime, args, command, &env, timeout).await;
    }
    let mut request = RunRequest::new(command).with_interrupt(interrupt_on_signals());
    if let Some(task) = &args.task {
        request = request.in_task(task);
    }
    if let Some(directory) = &args.workdir {
        request = request.in_directory(directory);
    }
    for (name, value) in env {
        request = request.with_env(name, value);
    }
    let config = &runtime.config().terminal;
    let asked = timeout.filter(|timeout| !timeout.is_zero());
    let limit = asked.unwrap_or(config.timeout).min(config.max_timeout);
    if asked.is_some_and(|asked| asked > limit) {
        output::talk(&format!(
            "exoshell: the timeout is over the configured maximum; {} s is used",
            limit.as_secs_f64()
        ));
    }
    request = request.with_timeout(limit);
    let terminal = args.pty.then(RawTerminal::enter_if_terminal);
    if let Some(terminal) = &terminal {
        request = request.on_terminal(terminal.size());
    }
    if terminal.as_ref().is_some_and(RawTerminal::is_raw) {
        request = request.typed_by_person();
    }
    if args.stdin || terminal.as_ref().is_some_and(RawTerminal::is_raw) {
        forward_stdin(runtime.events(), request.feed());
    }
    let end = runtime.run(request, stream).await?;
    drop(terminal);
    Ok(report(&end))
}

fn check_timeout(seconds: f64) -> Result<Duration, RuntimeError> {
    if (0.0..=315_360_000.0).contains(&seconds) {
        return Ok(Duration::from_secs_f64(seconds));
    }
    Err(RuntimeError::Usage(format!(
        "`--timeout {seconds}` must be a number of seconds from 0 to 315360000"
    )))
}

/// Writes output as it comes. A reader that went away cannot stop the command; what it writes
/// from then on is dropped, as with any pipe into a finished reader.
pub(super) fn stream(stream: OutputStream, bytes: &[u8]) {
    let _ = match stream {
        OutputStream::Stdout => {
            let mut out = io::stdout().lock();
            out.write_all(bytes).and_then(|()| out.flush())
        }
        OutputStream::Stderr => io::stderr().lock().write_all(bytes),
    };
}

/// Passes stdin on once the command runs: before, an answer to a question may be typed.
fn forward_stdin(mut events: Events, sender: mpsc::Sender<Bytes>) {
    tokio::spawn(async move {
        while let Some(event) = events.next().await {
            if matches!(event.kind, EventKind::CommandStarted { .. }) {
                break;
            }
        }
        let mut stdin = tokio::io::stdin();
        let mut buffer = vec![0_u8; 32 * 1024];
        while let Ok(length) = stdin.read(&mut buffer).await {
            let piece = Bytes::copy_from_slice(buffer.get(..length).unwrap_or_default());
            if length == 0 || sender.send(piece).await.is_err() {
                return;
            }
        }
    });
}

/// Says on stderr what the exit code alone does not, and returns it.
pub(super) fn report(end: &RunEnd) -> u8 {
    for line in end.remarks() {
        output::talk(&format!("exoshell: {line}"));
    }
    u8::try_from(end.exit_code()).unwrap_or(output::OWN_FAILURE)
}

async fn background(
    runtime: &Runtime,
    args: &RunArgs,
    command: String,
    env: &[(&str, &str)],
    timeout: Option<Duration>,
) -> Result<u8, RuntimeError> {
    let task = args.task.as_deref().unwrap_or("default");
    let mut request = StartRequest::new(command, task).watching(args.watch.clone());
    if args.pty {
        request = request.on_terminal(RawTerminal::current_size());
    }
    if let Some(directory) = &args.workdir {
        request = request.in_directory(directory);
    }
    for (name, value) in env {
        request = request.with_env(*name, *value);
    }
    if let Some(timeout) = timeout.filter(|timeout| !timeout.is_zero()) {
        request = request.with_timeout(timeout);
    }
    if args.notify {
        request = request.with_notice();
    }
    let status = runtime.start_process(request).await?;
    for note in runtime.take_notes(task) {
        output::talk(&format!("exoshell: {note}"));
    }
    if args.json {
        let view = ProcessView::Known(Box::new(status));
        return Ok(written(output::json(&describe_process(&view))));
    }
    Ok(written(output::data(format!("{}\n", status.id).as_bytes())))
}

async fn json(
    runtime: &Runtime,
    args: &RunArgs,
    command: String,
    env: &[(&str, &str)],
    timeout: Option<Duration>,
) -> Result<u8, RuntimeError> {
    let mut request = TerminalRequest::new(command).with_interrupt(interrupt_on_signals());
    request = match &args.task {
        Some(task) => request.in_task(task),
        None => request.one_shot(),
    };
    if let Some(directory) = &args.workdir {
        request = request.in_directory(directory);
    }
    for (name, value) in env {
        request = request.with_env(*name, *value);
    }
    if let Some(timeout) = timeout {
        request = request.with_timeout(timeout);
    }
    if args.pty {
        request = request.on_terminal();
    }
    if args.stdin {
        let mut text = Vec::new();
        tokio::io::stdin()
            .read_to_end(&mut text)
            .await
            .map_err(|error| RuntimeError::Usage(format!("cannot read stdin: {error}")))?;
        request = request.with_stdin(text);
    }
    let result = runtime.terminal(request).await;
    let shown = written(output::json(&result));
    let code = match result.error_kind {
        Some(kind) if result.exit_code < 0 => output::code(kind),
        _ => u8::try_from(result.exit_code).unwrap_or(output::OWN_FAILURE),
    };
    Ok(if shown == 0 { code } else { shown })
}
