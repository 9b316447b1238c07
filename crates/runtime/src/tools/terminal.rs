//! The tool `terminal`.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use exoshell_place::PlaceError;
use exoshell_wire::{Cause, ExecDone, FailureKind, Note, Outcome};
use serde_json::{Map, Value};

use super::answer::{CallTimings, Leftover, Status, TerminalResult};
use super::exit_hint::exit_hint;
use super::{Arguments, ToolError};
use crate::config::Terminal;
use crate::error::{ErrorKind, RuntimeError};
use crate::interrupt::Interrupt;
use crate::processes::{DEFAULT_TERMINAL, StartRequest};
use crate::redact::{Outlet as _, RedactFilter};
use crate::run::{Input, RunEnd, RunFailure, RunRequest, SUPERVISOR_KILLED};
use crate::runtime::{DEFAULT_TASK, Runtime};
use crate::transcript::Transcript;

/// The arguments of the tool. `force` is not among them: no model-facing call has it.
const KNOWN: &[&str] = &[
    "command",
    "timeout",
    "workdir",
    "env",
    "stdin",
    "pty",
    "background",
    "notify_on_complete",
    "check_interval",
    "watch_patterns",
    "lifetime",
    "task_id",
];

/// A call of the tool.
#[derive(Debug)]
pub struct TerminalRequest {
    command: String,
    task: Option<String>,
    timeout: Option<Duration>,
    workdir: Option<PathBuf>,
    env: Vec<(String, String)>,
    stdin: Option<Bytes>,
    pty: bool,
    background: Option<Background>,
    interrupt: Interrupt,
}

/// What a background start adds.
#[derive(Debug, Clone, Default)]
struct Background {
    notify: bool,
    check_interval: Option<Duration>,
    watch: Vec<String>,
    bound: bool,
}

/// The shortest time between two progress reports.
const MIN_CHECK_INTERVAL: Duration = Duration::from_secs(30);

impl TerminalRequest {
    /// Describes a command in the default task.
    pub fn new(command: impl Into<String>) -> Self {
        Self {
            command: command.into(),
            task: Some(DEFAULT_TASK.to_owned()),
            timeout: None,
            workdir: None,
            env: Vec::new(),
            stdin: None,
            pty: false,
            background: None,
            interrupt: Interrupt::new(),
        }
    }

    /// Gives it a terminal.
    #[must_use]
    pub const fn on_terminal(mut self) -> Self {
        self.pty = true;
        self
    }

    /// Runs it in this task.
    #[must_use]
    pub fn in_task(mut self, task: impl Into<String>) -> Self {
        self.task = Some(task.into());
        self
    }

    /// Runs it in a fresh session of its own, in the caller's directory and environment.
    #[must_use]
    pub fn one_shot(mut self) -> Self {
        self.task = None;
        self
    }

    /// Limits how long it may run; zero is the configured limit.
    #[must_use]
    pub const fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Runs it in this directory; the session's own does not move.
    #[must_use]
    pub fn in_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.workdir = Some(directory.into());
        self
    }

    /// Sets a variable for this command only.
    #[must_use]
    pub fn with_env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Gives it something to read.
    #[must_use]
    pub fn with_stdin(mut self, stdin: impl Into<Bytes>) -> Self {
        self.stdin = Some(stdin.into());
        self
    }

    /// Lets this stop it.
    #[must_use]
    pub fn with_interrupt(mut self, interrupt: Interrupt) -> Self {
        self.interrupt = interrupt;
        self
    }

    /// Reads a call's JSON arguments.
    pub fn from_arguments(arguments: &Map<String, Value>) -> Result<Self, ToolError> {
        let arguments = Arguments::new("terminal", arguments, KNOWN)?;
        let mut request = Self::new(arguments.required_text("command")?);
        if let Some(task) = arguments.text("task_id")? {
            request.task = Some(task);
        }
        request.timeout = arguments.seconds("timeout")?.map(Duration::from_secs_f64);
        request.workdir = arguments.text("workdir")?.map(PathBuf::from);
        request.stdin = arguments.text("stdin")?.map(Bytes::from);
        request.env = variables(&arguments)?;
        request.pty = arguments.flag("pty")?;
        request.background = background(&arguments)?;
        Ok(request)
    }

    /// Works out the limit, and what to say when it is not the one asked for.
    fn limit(&self, config: &Terminal) -> (Duration, Option<String>) {
        let asked = self.timeout.filter(|timeout| !timeout.is_zero());
        match asked {
            None => (config.timeout.min(config.max_timeout), None),
            Some(asked) if asked > config.max_timeout => {
                let note = format!(
                    "timeout {} s is over the maximum; {} s is used",
                    asked.as_secs_f64(),
                    config.max_timeout.as_secs_f64()
                );
                (config.max_timeout, Some(note))
            }
            Some(asked) => (asked, None),
        }
    }
}

/// Reads what only a background start takes; in the foreground it has no meaning and is left.
fn background(arguments: &Arguments<'_>) -> Result<Option<Background>, ToolError> {
    let background = Background {
        notify: arguments.flag("notify_on_complete")?,
        check_interval: arguments
            .seconds("check_interval")?
            .filter(|seconds| *seconds > 0.0)
            .map(Duration::from_secs_f64),
        watch: arguments.texts("watch_patterns")?,
        bound: match arguments.text("lifetime")?.as_deref() {
            None | Some("detached") => false,
            Some("session") => true,
            Some(other) => {
                return Err(ToolError::BadArgument {
                    name: "lifetime",
                    takes: "`detached` or `session`",
                    found: format!("`{other}`"),
                });
            }
        },
    };
    Ok(arguments.flag("background")?.then_some(background))
}

fn variables(arguments: &Arguments<'_>) -> Result<Vec<(String, String)>, ToolError> {
    let bad = |found: &Value| ToolError::BadArgument {
        name: "env",
        takes: "an object of strings",
        found: found.to_string(),
    };
    match arguments.get("env") {
        None => Ok(Vec::new()),
        Some(Value::Object(variables)) => variables
            .iter()
            .map(|(name, value)| match value {
                Value::String(text) => Ok((name.clone(), text.clone())),
                other => Err(bad(other)),
            })
            .collect(),
        Some(other) => Err(bad(other)),
    }
}

impl Runtime {
    /// Runs the tool `terminal` as it was called: in the foreground, or as a process.
    pub(crate) async fn terminal_or_background(
        &self,
        mut request: TerminalRequest,
    ) -> TerminalResult {
        match request.background.take() {
            None => self.terminal(request).await,
            Some(background) => self.start_in_background(request, background).await,
        }
    }

    async fn start_in_background(
        &self,
        request: TerminalRequest,
        background: Background,
    ) -> TerminalResult {
        let began = std::time::Instant::now();
        let interval = background.check_interval;
        let raised = interval.map(|asked| asked.max(MIN_CHECK_INTERVAL));
        let task = request.task.unwrap_or_else(|| DEFAULT_TASK.to_owned());
        let start = StartRequest {
            command: request.command,
            task: task.clone(),
            workdir: request.workdir,
            env: request.env,
            timeout: request.timeout.filter(|timeout| !timeout.is_zero()),
            terminal: request.pty.then_some(DEFAULT_TERMINAL),
            bound: background.bound,
            notify: background.notify,
            watch: background.watch,
            check_interval: raised,
            input: request.stdin.clone(),
        };
        let mut result = match self.start_process(start).await {
            Ok(status) => {
                let hints = self.take_notes(&task);
                TerminalResult {
                    session_id: Some(status.id),
                    pid: Some(status.pid),
                    cwd: Some(status.cwd.display()),
                    hint: (!hints.is_empty()).then(|| hints.join("; ")),
                    ..TerminalResult::default()
                }
            }
            Err(error) => failed(
                &RunFailure {
                    error,
                    started: false,
                },
                Transcript::new(0),
            ),
        };
        if interval != raised {
            let seconds = MIN_CHECK_INTERVAL.as_secs();
            result.check_interval_note = Some(format!("check_interval was raised to {seconds} s"));
        }
        result.duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        result.clean(&self.redactor());
        result
    }

    /// Starts a transcript whose secrets are hidden before it is cut.
    pub(crate) fn transcript(&self) -> Transcript {
        let filter = RedactFilter::new(&self.redactor());
        let limit = self.inner.config.terminal.output_limit_chars;
        Transcript::with_filter(limit, Box::new(filter))
    }

    /// Runs the tool `terminal` in the foreground. Dropping the future ends the command.
    pub async fn terminal(&self, request: TerminalRequest) -> TerminalResult {
        let config = &self.inner.config.terminal;
        let (timeout, timeout_note) = request.limit(config);
        self.inner
            .keeper
            .add_variables(request.env.iter().map(|(name, value)| (name, value)));
        // Made with the first byte: until then more secrets may become known.
        let mut transcript = None;
        let run = RunRequest {
            command: request.command,
            task: request.task,
            timeout: Some(timeout),
            workdir: request.workdir,
            env: request.env,
            merge: true,
            terminal: request.pty.then_some(DEFAULT_TERMINAL),
            spill: true,
            input: request.stdin.map_or(Input::Empty, Input::Bytes),
            typed: false,
            persist: None,
            interrupt: request.interrupt,
        };
        let command = run.command.clone();
        let began = std::time::Instant::now();
        let ended = self.execute(run, |_, bytes| {
            transcript
                .get_or_insert_with(|| self.transcript())
                .push(bytes);
        });
        let ended = ended.await;
        let transcript = transcript.unwrap_or_else(|| self.transcript());
        let mut result = match ended {
            Ok(end) => finished(&end, transcript, &command),
            Err(failure) => failed(&failure, transcript),
        };
        result.duration_ms = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        result.timeout_note = timeout_note;
        result.clean(&self.redactor());
        result
    }
}

/// Returns the exit code a shell would show for an end.
pub(crate) fn exit_code(done: &ExecDone) -> i32 {
    match (done.cause, done.outcome) {
        (Cause::Timeout, _) => 124,
        (Cause::Interrupted, _) => 130,
        (Cause::Ended, Outcome::Exited(code)) => code,
        (Cause::Ended, Outcome::Signalled(signal)) => 128 + signal,
        (Cause::Ended, Outcome::Unknown) => -1,
    }
}

fn finished(end: &RunEnd, transcript: Transcript, command: &str) -> TerminalResult {
    let done = &end.done;
    let cut = transcript.finish();
    let mut result = TerminalResult {
        exit_code: exit_code(done),
        cwd: Some(done.cwd.display()),
        truncated: cut.truncated,
        output: cut.text,
        left_running: done.leftovers.iter().map(leftover).collect(),
        not_killed: done.unkillable.iter().map(leftover).collect(),
        timings: Some(CallTimings {
            spawn_ms: milliseconds(done.timings.spawn_us),
            run_ms: milliseconds(done.timings.run_us),
            drain_ms: milliseconds(done.timings.drain_us),
            warm: done.timings.warm,
        }),
        ..TerminalResult::default()
    };
    if cut.truncated {
        result.output_chars = Some(cut.total_chars);
        result.output_lines = Some(cut.total_lines);
        result.output_file = done.spill.as_ref().map(|spill| spill.path.display());
        result.output_file_note = done.spill.as_ref().and_then(|s| s.incomplete.clone());
    }
    match (done.cause, done.outcome) {
        (Cause::Timeout, _) => {
            result.status = Some(Status::Timeout);
            let seconds = end.timeout.as_secs_f64();
            last_line(
                &mut result.output,
                &format!("[Command timed out after {seconds} s]"),
            );
        }
        (Cause::Interrupted, _) => {
            result.status = Some(Status::Interrupted);
            last_line(&mut result.output, "[Command interrupted]");
        }
        (Cause::Ended, Outcome::Signalled(number)) => result.signal = Some(signal_name(number)),
        (Cause::Ended, Outcome::Unknown) => {
            result.status = Some(Status::Error);
            result.error_kind = Some(ErrorKind::PlaceLost);
            result.error = Some(SUPERVISOR_KILLED.to_owned());
        }
        (Cause::Ended, Outcome::Exited(_)) => {}
    }
    let mut hints = end.notes();
    if result.status.is_none() {
        hints.extend(exit_hint(command, result.exit_code).map(str::to_owned));
    }
    result.hint = (!hints.is_empty()).then(|| hints.join("; "));
    result
}

fn failed(failure: &RunFailure, transcript: Transcript) -> TerminalResult {
    let cut = transcript.finish();
    let mut result = TerminalResult {
        output: if failure.started {
            cut.text
        } else {
            String::new()
        },
        truncated: failure.started && cut.truncated,
        exit_code: -1,
        error: Some(failure.error.to_string()),
        error_kind: Some(failure.error.kind()),
        error_reason: failure.error.reason(),
        status: Some(Status::Error),
        hint: failure.error.hint(),
        ..TerminalResult::default()
    };
    if let RuntimeError::Refused(refusal) = &failure.error {
        result.status = Some(refusal.kind.into());
        result.refused = Some(refusal.as_ref().into());
    }
    if let RuntimeError::Place(PlaceError::Failed(refused)) = &failure.error {
        match refused.kind {
            FailureKind::Workdir => result.exit_code = 126,
            FailureKind::Ended => {
                result.exit_code = 130;
                result.status = Some(Status::Interrupted);
                result.error = None;
                result.error_kind = None;
            }
            _ => {}
        }
    }
    result
}

fn leftover(process: &exoshell_wire::ProcessInfo) -> Leftover {
    Leftover {
        pid: process.pid,
        command: process.command.display(),
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds with three digits are all that is told"
)]
fn milliseconds(microseconds: u64) -> f64 {
    microseconds as f64 / 1000.0
}

fn last_line(output: &mut String, line: &str) {
    if !output.is_empty() && !output.ends_with('\n') {
        output.push('\n');
    }
    output.push_str(line);
    output.push('\n');
}

/// Says a note of the guest in a sentence; notes without a use for the caller are left out.
pub(crate) fn note_text(note: &Note) -> Option<String> {
    match note {
        Note::DirectoryGone { gone, used } => Some(format!(
            "the directory `{}` does not exist (any more); the command ran in `{}`",
            gone.display(),
            used.display()
        )),
        Note::LoginFailed { why } => Some(why.clone()),
        Note::NoBash { shell } => Some(format!(
            "there is no bash here; `{}` is used, which keeps directory, exported variables and \
             umask between calls, but no functions, aliases or options",
            shell.display()
        )),
        Note::NoGuest { why } => Some(format!(
            "no guest can run here ({why}), so commands run in a plain shell, which is slower: \
             only directory and exported variables carry over between calls, and there are no \
             background processes, no terminals and no copy of output that was cut"
        )),
        Note::StateNotCaptured => None,
    }
}

/// Names a signal as `kill -l` does, with the prefix people search for.
fn signal_name(number: i32) -> String {
    let name = match number {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return format!("signal {number}"),
    };
    name.to_owned()
}
