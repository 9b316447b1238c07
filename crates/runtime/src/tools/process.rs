//! The tool `process`: looking at processes and acting on them.

use std::time::Duration;

use bytes::Bytes;
use exoshell_wire::{
    Action, ProcessState, ProcessStatus, RawBytes, ReadFrom, TerminalSize, WaitReason, Waited,
};
use serde_json::{Map, Value, json};

use super::answer::{Refused, Status};
use super::keys::key_bytes;
use super::{Arguments, ToolError};
use crate::error::{ErrorKind, RuntimeError};
use crate::processes::ProcessView;
use crate::record::now;
use crate::redact::Redactor;
use crate::runtime::Runtime;

const KNOWN: &[&str] = &[
    "action",
    "session_id",
    "process_id",
    "data",
    "keys",
    "timeout",
    "until",
    "offset",
    "limit",
    "signal",
    "cols",
    "rows",
    "task_id",
];

const ACTIONS: &str = "list, poll, log, wait, kill, write, submit, close, signal, resize or screen";

/// The most one poll or page reads.
const MAX_READ: u64 = 4 * 1024 * 1024;

/// How much of what was shown before is read again.
const LEAD: u64 = 1024;

/// How many lines a page has when nobody says.
const PAGE: u64 = 200;

/// A call of the tool, read.
struct Call<'a> {
    runtime: &'a Runtime,
    arguments: Arguments<'a>,
    /// Whose processes the caller may see; `None` is all of this home.
    task: Option<String>,
}

/// Why a call has no good answer.
enum Fault {
    Tool(ToolError),
    Runtime(RuntimeError),
}

impl<E: Into<RuntimeError>> From<E> for Fault {
    fn from(error: E) -> Self {
        Self::Runtime(error.into())
    }
}

impl From<ToolError> for Fault {
    fn from(error: ToolError) -> Self {
        Self::Tool(error)
    }
}

impl Runtime {
    /// Runs the tool `process`; the answer is always one object.
    pub(crate) async fn process_tool(
        &self,
        arguments: &Map<String, Value>,
        task: Option<&str>,
    ) -> Value {
        match self.try_process_tool(arguments, task).await {
            Ok(answer) => answer,
            Err(Fault::Tool(error)) => {
                json!({"error": error.to_string(), "error_kind": error.kind(), "status": "error"})
            }
            Err(Fault::Runtime(error @ RuntimeError::Refused(_))) => refused(&error),
            Err(Fault::Runtime(error)) => json!({
                "error": error.to_string(),
                "error_kind": error.kind(),
                "status": if error.kind() == ErrorKind::PlaceLost { "lost" } else { "error" },
                "hint": error.hint(),
            }),
        }
    }

    async fn try_process_tool(
        &self,
        arguments: &Map<String, Value>,
        task: Option<&str>,
    ) -> Result<Value, Fault> {
        let arguments = Arguments::new("process", arguments, KNOWN)?;
        let task = match task {
            Some(task) => Some(task.to_owned()),
            None => arguments.text("task_id")?,
        };
        let action = arguments.required_text("action")?;
        let call = Call {
            runtime: self,
            arguments,
            task,
        };
        match action.as_str() {
            "list" => call.list().await,
            "poll" => call.poll().await,
            "log" => call.log().await,
            "wait" => call.wait().await,
            "kill" => call.kill().await,
            "write" => call.write(false).await,
            "submit" => call.write(true).await,
            "close" => call.act(Action::Close).await,
            "signal" => {
                let signal = call.signal()?;
                call.act(Action::Signal { signal }).await
            }
            "resize" => {
                let size = call.size()?;
                call.act(Action::Resize(size)).await
            }
            "screen" => call.screen().await,
            other => Err(ToolError::BadArgument {
                name: "action",
                takes: ACTIONS,
                found: format!("`{other}`"),
            }
            .into()),
        }
    }
}

/// Answers a call that the guard or a person refused.
fn refused(error: &RuntimeError) -> Value {
    let mut answer = json!({
        "error": error.to_string(),
        "error_kind": error.kind(),
        "hint": error.hint(),
    });
    if let RuntimeError::Refused(refusal) = error {
        put(&mut answer, "status", json!(Status::from(refusal.kind)));
        if let Ok(Value::Object(fields)) = serde_json::to_value(Refused::from(refusal.as_ref())) {
            for (name, value) in fields {
                put(&mut answer, &name, value);
            }
        }
    }
    answer
}

impl Call<'_> {
    fn id(&self) -> Result<String, ToolError> {
        match self.arguments.text("session_id")? {
            Some(id) => Ok(id),
            None => self
                .arguments
                .text("process_id")?
                .ok_or(ToolError::MissingArgument {
                    tool: "process",
                    name: "session_id",
                }),
        }
    }

    fn task(&self) -> Option<&str> {
        self.task.as_deref()
    }

    async fn list(&self) -> Result<Value, Fault> {
        let views = self.runtime.processes(self.task()).await?;
        let processes: Vec<Value> = views.iter().map(describe).collect();
        Ok(json!({ "processes": processes }))
    }

    /// Returns what is new since the caller's last look.
    async fn poll(&self) -> Result<Value, Fault> {
        let id = self.id()?;
        let status = match self.runtime.process(&id, self.task()).await? {
            ProcessView::Known(status) => status,
            other => return Ok(describe(&other)),
        };
        let record = self.runtime.inner.processes.get(&id);
        let position = record.as_ref().map_or(0, |record| record.position);
        let mut record = match record {
            Some(record) => record,
            None => self.runtime.adopted_record(&status).await?,
        };
        // A poll of much more than an answer can hold shows its end.
        let from = position.max(status.output_end.saturating_sub(MAX_READ));
        // A little of what was shown before is read again: a secret may go on from there.
        let lead = ReadFrom::Byte(from.saturating_sub(LEAD));
        let (bytes, read) = self
            .runtime
            .kept_output(&id, self.task(), lead, MAX_READ + LEAD, None)
            .await?;
        let shown = from.saturating_sub(read.start);
        let shown = usize::try_from(shown).map_or(bytes.len(), |shown| shown.min(bytes.len()));
        let (earlier, new) = bytes.split_at(shown);
        let fresh = Fresh::new(&self.runtime.redactor(), earlier, new, &read.status);
        let skipped = read.start.max(from).saturating_sub(position);
        record.position = read.end.saturating_sub(fresh.held as u64);
        self.runtime.inner.processes.add(&record)?;
        let mut answer = describe(&ProcessView::Known(Box::new(read.status)));
        self.put_text(&mut answer, &fresh.text);
        if skipped > 0 {
            put(&mut answer, "dropped_bytes", json!(skipped));
        }
        Ok(answer)
    }

    fn put_text(&self, answer: &mut Value, bytes: &[u8]) {
        let mut transcript = self.runtime.transcript();
        transcript.push(bytes);
        let cut = transcript.finish();
        put(answer, "output", json!(cut.text));
        if cut.truncated {
            put(answer, "truncated", json!(true));
            put(answer, "output_chars", json!(cut.total_chars));
        }
    }

    /// Returns a page of the output, in lines; a negative offset counts from the end.
    async fn log(&self) -> Result<Value, Fault> {
        let id = self.id()?;
        let offset = self.arguments.whole("offset", i64::MIN)?;
        let limit = self.arguments.whole("limit", 1)?.unwrap_or(0);
        let limit = u64::try_from(limit).unwrap_or(0).clamp(0, 100_000);
        let limit = if limit == 0 { PAGE } else { limit };
        let ProcessView::Known(status) = self.runtime.process(&id, self.task()).await? else {
            return Err(RuntimeError::Lost {
                what: format!("the process `{id}`"),
            }
            .into());
        };
        let first = match offset {
            None => status.lines.saturating_sub(limit),
            Some(back) if back < 0 => status.lines.saturating_sub(back.unsigned_abs()),
            Some(line) => u64::try_from(line).unwrap_or(0),
        };
        let from = ReadFrom::Line(first);
        let (bytes, read) = self
            .runtime
            .kept_output(&id, self.task(), from, MAX_READ, Some(limit))
            .await?;
        let lines = memchr::memchr_iter(b'\n', &bytes).count() as u64
            + u64::from(bytes.last().is_some_and(|b| *b != b'\n'));
        let mut answer = describe(&ProcessView::Known(Box::new(read.status.clone())));
        self.put_text(&mut answer, &bytes);
        put(&mut answer, "total_lines", json!(read.status.lines));
        let showing = if lines == 0 {
            "nothing".to_owned()
        } else {
            format!(
                "lines {} to {}",
                read.first_line,
                read.first_line + lines - 1
            )
        };
        put(&mut answer, "showing", json!(showing));
        if read.status.output_start > 0 {
            put(
                &mut answer,
                "dropped_bytes",
                json!(read.status.output_start),
            );
        }
        Ok(answer)
    }

    async fn wait(&self) -> Result<Value, Fault> {
        let id = self.id()?;
        let config = &self.runtime.inner.config.terminal;
        let asked = self
            .arguments
            .seconds("timeout")?
            .map(Duration::from_secs_f64);
        let timeout = asked.filter(|t| !t.is_zero()).unwrap_or(config.timeout);
        let limit = timeout.min(config.max_timeout);
        let until = match self.arguments.text("until")? {
            Some(text) if text != "exit" => {
                let record = self.runtime.inner.processes.get(&id);
                Some((text, record.map_or(0, |record| record.position)))
            }
            _ => None,
        };
        let waited = self
            .runtime
            .wait_process(&id, self.task(), limit, until)
            .await?;
        let Waited { reason, line, .. } = waited;
        let mut answer = self.poll().await?;
        let reason = match reason {
            WaitReason::Ended => "exited",
            WaitReason::Matched => "matched",
            WaitReason::TimeUp => "time_up",
        };
        put(&mut answer, "wait", json!(reason));
        if let Some(line) = line {
            put(&mut answer, "matched_line", json!(line.display()));
        }
        if timeout > limit {
            let note = format!("the wait was cut to {} s", limit.as_secs_f64());
            put(&mut answer, "timeout_note", json!(note));
        }
        Ok(answer)
    }

    async fn kill(&self) -> Result<Value, Fault> {
        let id = self.id()?;
        let acted = self.runtime.kill_process(&id, self.task()).await?;
        let mut answer = describe(&ProcessView::Known(Box::new(acted.status)));
        if !acted.unkillable.is_empty() {
            let names: Vec<String> = acted.unkillable.iter().map(RawBytes::display).collect();
            put(&mut answer, "not_killed", json!(names));
        }
        Ok(answer)
    }

    async fn write(&self, enter: bool) -> Result<Value, Fault> {
        let id = self.id()?;
        let mut bytes = self
            .arguments
            .text("data")?
            .unwrap_or_default()
            .into_bytes();
        if let Some(Value::Array(keys)) = self.arguments.get("keys") {
            for key in keys {
                bytes.extend(key_bytes(key.as_str().unwrap_or_default())?);
            }
        } else if self.arguments.get("keys").is_some() {
            return Err(ToolError::BadArgument {
                name: "keys",
                takes: "a list of key names",
                found: "something else".to_owned(),
            }
            .into());
        }
        let status = self
            .runtime
            .write_to_process(&id, self.task(), Bytes::from(bytes), enter)
            .await?;
        Ok(describe(&ProcessView::Known(Box::new(status))))
    }

    async fn act(&self, action: Action) -> Result<Value, Fault> {
        let id = self.id()?;
        let acted = self
            .runtime
            .act_on_process(&id, self.task(), action)
            .await?;
        Ok(describe(&ProcessView::Known(Box::new(acted.status))))
    }

    async fn screen(&self) -> Result<Value, Fault> {
        let id = self.id()?;
        let acted = self
            .runtime
            .act_on_process(&id, self.task(), Action::Screen)
            .await?;
        let mut answer = describe(&ProcessView::Known(Box::new(acted.status)));
        if let Some(screen) = acted.screen {
            put(&mut answer, "screen", json!(screen.rows.join("\n")));
            put(
                &mut answer,
                "cursor",
                json!([screen.cursor_row, screen.cursor_col]),
            );
            put(&mut answer, "alternate_screen", json!(screen.alternate));
        }
        Ok(answer)
    }

    fn signal(&self) -> Result<i32, ToolError> {
        let name = match self.arguments.get("signal") {
            Some(Value::Number(number)) => number.to_string(),
            _ => self.arguments.required_text("signal")?,
        };
        parse_signal(&name).ok_or(ToolError::BadArgument {
            name: "signal",
            takes: "a signal's name or number, such as `INT` or 2",
            found: format!("`{name}`"),
        })
    }

    fn size(&self) -> Result<TerminalSize, ToolError> {
        let side = |name: &'static str| {
            let value = self.arguments.whole(name, 1)?;
            let value = value.ok_or(ToolError::MissingArgument {
                tool: "process",
                name,
            })?;
            u16::try_from(value).map_err(|_large| ToolError::BadArgument {
                name,
                takes: "a whole number from 1 to 65535",
                found: value.to_string(),
            })
        };
        Ok(TerminalSize {
            cols: side("cols")?,
            rows: side("rows")?,
        })
    }
}

/// Reads a signal as people write it.
pub fn parse_signal(name: &str) -> Option<i32> {
    const NAMES: &[(&str, i32)] = &[
        ("HUP", 1),
        ("INT", 2),
        ("QUIT", 3),
        ("ABRT", 6),
        ("KILL", 9),
        ("USR1", 10),
        ("SEGV", 11),
        ("USR2", 12),
        ("PIPE", 13),
        ("ALRM", 14),
        ("TERM", 15),
        ("CHLD", 17),
        ("CONT", 18),
        ("STOP", 19),
        ("TSTP", 20),
        ("TTIN", 21),
        ("TTOU", 22),
        ("URG", 23),
        ("WINCH", 28),
    ];
    let upper = name.trim().to_ascii_uppercase();
    let short = upper.strip_prefix("SIG").unwrap_or(&upper);
    if let Ok(number) = short.parse::<i32>() {
        return NAMES.iter().find(|(_, n)| *n == number).map(|(_, n)| *n);
    }
    NAMES.iter().find(|(n, _)| *n == short).map(|(_, n)| *n)
}

/// What a poll shows of the bytes that came since the last one.
struct Fresh {
    text: Vec<u8>,
    /// How many bytes at the end are left for the next poll: they may be the start of a secret, or
    /// of a character.
    held: usize,
}

impl Fresh {
    fn new(redactor: &Redactor, earlier: &[u8], new: &[u8], status: &ProcessStatus) -> Self {
        let mut stream = redactor.stream();
        stream.push(earlier);
        stream.relax();
        let mut text = stream.push(new);
        if status.state.is_over() {
            stream.finish_into(&mut text);
            return Self { text, held: 0 };
        }
        text.extend(stream.relax());
        let unfinished = unfinished_character(&text);
        text.truncate(text.len() - unfinished);
        Self {
            text,
            held: (stream.held() + unfinished).min(new.len()),
        }
    }
}

/// Counts the bytes at the end that begin a character without finishing it.
fn unfinished_character(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let Some(byte) = bytes.get(bytes.len() - back) else {
            return 0;
        };
        let needed = match byte {
            0xc2..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf4 => 4,
            0x80..=0xbf => continue,
            _ => return 0,
        };
        return if needed > back { back } else { 0 };
    }
    0
}

fn put(answer: &mut Value, name: &str, value: Value) {
    if let Value::Object(map) = answer {
        map.insert(name.to_owned(), value);
    }
}

/// Names a state as the tool does.
pub const fn state_name(state: ProcessState) -> &'static str {
    match state {
        ProcessState::Running => "running",
        ProcessState::Exited { .. } => "exited",
        ProcessState::Signalled { .. } => "signalled",
        ProcessState::Killed => "killed",
        ProcessState::Timeout => "timeout",
    }
}

/// Returns the exit code a shell would show; `None` while it runs or when nobody knows.
pub const fn state_code(state: ProcessState) -> Option<i32> {
    match state {
        ProcessState::Running => None,
        ProcessState::Exited { code } => code,
        ProcessState::Signalled { signal } => Some(128 + signal),
        ProcessState::Killed => Some(137),
        ProcessState::Timeout => Some(124),
    }
}

/// Describes a process in the tool's words.
pub fn describe(view: &ProcessView) -> Value {
    match view {
        ProcessView::Known(status) => describe_known(status),
        ProcessView::Lost(record) => json!({
            "session_id": record.id,
            "status": "lost",
            "command": record.command,
            "task_id": record.task,
            "exit_code": null,
            "uptime_seconds": now().saturating_sub(record.started),
            "output": "",
            "error": "the guest that ran it is gone (killed, or the machine restarted), so neither its output nor its exit code is known",
        }),
        ProcessView::Unreachable(record) => json!({
            "session_id": record.id,
            "status": "unreachable",
            "command": record.command,
            "task_id": record.task,
            "exit_code": null,
            "uptime_seconds": now().saturating_sub(record.started),
            "output": "",
            "error": "its place cannot be reached now, so nobody knows how it is; it may well go on",
        }),
    }
}

fn describe_known(status: &ProcessStatus) -> Value {
    let mut answer = json!({
        "session_id": status.id,
        "status": state_name(status.state),
        "exit_code": state_code(status.state),
        "command": status.command.display(),
        "cwd": status.cwd.display(),
        "pid": status.pid,
        "uptime_seconds": status.uptime_ms / 1000,
        "started_at_ms": status.started_ms,
    });
    if let Some(task) = status
        .session
        .as_deref()
        .and_then(|s| s.strip_prefix("task:"))
    {
        put(&mut answer, "task_id", json!(task));
    }
    if let Some(ago) = status.ended_ago_ms {
        put(&mut answer, "ended_seconds_ago", json!(ago / 1000));
    }
    if status.terminal.is_some() {
        put(&mut answer, "pty", json!(true));
    }
    if status.adopted {
        put(&mut answer, "adopted", json!(true));
    }
    if let ProcessState::Signalled { signal } = status.state {
        put(&mut answer, "signal", json!(signal));
    }
    answer
}

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
