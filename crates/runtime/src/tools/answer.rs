//! The answer of the tool `terminal`.

use serde::Serialize;

use crate::approvals::{Refusal, RefusalKind};
use crate::error::ErrorKind;

/// How a call ended that did not end by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Status {
    /// It ran into its limit.
    Timeout,
    /// The caller stopped it.
    Interrupted,
    /// It was not run, or its end is not known.
    Error,
    /// It was not run: the guard or a person said no.
    Blocked,
    /// It was not run: a person has to say yes first.
    ApprovalRequired,
}

impl From<RefusalKind> for Status {
    fn from(kind: RefusalKind) -> Self {
        match kind {
            RefusalKind::Required => Self::ApprovalRequired,
            RefusalKind::Blocked | RefusalKind::Denied => Self::Blocked,
        }
    }
}

/// A process that a command left running.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Leftover {
    /// Its process id in the place.
    pub pid: u32,
    /// Its command line.
    pub command: String,
}

/// What was refused, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Refused {
    /// What was to be run, with invisible characters made visible.
    pub command: String,
    /// Why, in a sentence.
    pub description: String,
    /// What the guard calls it, as `category:target`.
    pub pattern_key: String,
    /// The stored question that the user can answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
}

impl From<&Refusal> for Refused {
    fn from(refusal: &Refusal) -> Self {
        Self {
            command: refusal.command.clone(),
            description: refusal.description.clone(),
            pattern_key: refusal.pattern_key.clone(),
            approval_id: refusal.approval_id.clone(),
        }
    }
}

/// Where the time of a call went.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CallTimings {
    /// Until the command's shell had it.
    pub spawn_ms: f64,
    /// While it ran.
    pub run_ms: f64,
    /// Collecting the rest of its output and its state.
    pub drain_ms: f64,
    /// Whether a shell stood ready for it.
    pub warm: bool,
}

/// The answer: always one object, never an exception.
#[derive(Debug, Clone, PartialEq, Serialize, Default)]
pub struct TerminalResult {
    /// What the command wrote, as a person would have seen it.
    pub output: String,
    /// Its exit code; -1 where nothing was run or its end is not known.
    pub exit_code: i32,
    /// What went wrong on our side, if anything did.
    pub error: Option<String>,
    /// The kind of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_kind: Option<ErrorKind>,
    /// What exactly is wrong with the backend, for programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_reason: Option<&'static str>,
    /// The id of the process that was started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Its process id in the place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Said when the interval is not the one asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub check_interval_note: Option<String>,
    /// How it ended, if not by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Status>,
    /// What was refused, as the user sees it.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub refused: Option<Refused>,
    /// The signal that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The session's directory afterwards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// How long the call took.
    pub duration_ms: u64,
    /// Whether something was cut out of `output`.
    #[serde(skip_serializing_if = "is_false")]
    pub truncated: bool,
    /// How many characters the output has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_chars: Option<u64>,
    /// How many lines it has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_lines: Option<u64>,
    /// Where the raw output is kept, in the place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_file: Option<String>,
    /// What is missing from that file, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_file_note: Option<String>,
    /// Said when the limit is not the one asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_note: Option<String>,
    /// What the command left running.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_running: Vec<Leftover>,
    /// What could not be ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_killed: Vec<Leftover>,
    /// What the caller should know.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    /// Where the time went.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timings: Option<CallTimings>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes fields by reference"
)]
const fn is_false(value: &bool) -> bool {
    !*value
}
