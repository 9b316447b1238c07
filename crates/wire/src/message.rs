//! What host and guest ask and answer.
//!
//! Every message is JSON of these types. New fields carry `#[serde(default)]` and unknown ones
//! are ignored, so that either side may be a version ahead.

use serde::{Deserialize, Serialize};

use crate::files::{GetFile, PutFile, RemoveFile, ScanFiles};
use crate::known::known;
use crate::process::{
    Acknowledge, Act, Events, Follow, Processes, ReadOutput, Start, TerminalSize, Wait, WriteInput,
};
use crate::raw::RawBytes;
use crate::sudo::Passwords;

/// Stream numbers on an exec channel.
pub mod stream {
    /// Host to guest: the command text.
    pub const COMMAND: u8 = 0;
    /// Host to guest: what the command reads as its stdin.
    pub const STDIN: u8 = 1;
    /// Guest to host: the command's stdout (and stderr, when merged).
    pub const STDOUT: u8 = 1;
    /// Guest to host: the command's stderr, when kept apart.
    pub const STDERR: u8 = 2;
}

/// A request, which opens a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Request {
    /// Makes sure that a session exists.
    OpenSession(OpenSession),
    /// Runs a command; its text follows as data on [`stream::COMMAND`].
    Exec(Box<Exec>),
    /// Goes on with a command whose pipe was lost.
    Resume(Resume),
    /// Answers when sudo asks for a password.
    Passwords(Passwords),
    /// Starts a process that outlives the request; its text follows likewise.
    Start(Box<Start>),
    /// Lists processes.
    Processes(Processes),
    /// Sends a part of a process's output as data on [`stream::STDOUT`], then replies.
    Output(ReadOutput),
    /// Sends a process's output as it comes, until its end or a cancel.
    Follow(Follow),
    /// Waits for the end of a process.
    Wait(Wait),
    /// Acts on a process.
    Act(Act),
    /// Sends bytes (data on [`stream::STDIN`]) to a process.
    Write(WriteInput),
    /// Sends events from a position on, as they come, until a cancel.
    Events(Events),
    /// Says which events a consumer has dealt with.
    Acknowledge(Acknowledge),
    /// Ends a session and everything that runs in it.
    EndSession(EndSession),
    /// Tells what the guest holds.
    Info,
    /// Looks at files.
    ScanFiles(ScanFiles),
    /// Writes a file; its bytes follow as data on [`stream::STDIN`].
    PutFile(PutFile),
    /// Sends a file as data on [`stream::STDOUT`], then replies.
    GetFile(GetFile),
    /// Removes a file.
    RemoveFile(RemoveFile),
    /// Ends every process and session, answers, and exits.
    Shutdown,
}

/// Makes sure that a session exists; concurrent openers share one creation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenSession {
    /// The session's name.
    pub key: String,
    /// What it starts from, if it has to be created.
    pub spec: SessionSpec,
    /// A cheap first try: fail with [`FailureKind::NoSession`] instead of creating.
    #[serde(default)]
    pub only_existing: bool,
}

/// What a session starts from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSpec {
    /// The first working directory; `None` is the guest's choice (home).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<RawBytes>,
    /// The environment; `None` is the place's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env: Option<Vec<(RawBytes, RawBytes)>>,
    /// Names removed from `env` before `extra_env` is added.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_remove: Vec<RawBytes>,
    /// Variables added on top of `env`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra_env: Vec<(RawBytes, RawBytes)>,
    /// Whether to capture the login shell's environment first, and how long that may take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login_timeout_ms: Option<u64>,
    /// The umask; `None` is the guest's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub umask: Option<u32>,
    /// How long an unused session's warm shell is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_ms: Option<u64>,
    /// How long an unused session is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl_ms: Option<u64>,
}

/// Which session a command runs in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionRef {
    /// A session that was opened.
    Key(String),
    /// A fresh one for this command only.
    OneShot(SessionSpec),
}

/// Keeps the raw output on the place's disk once it is large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spill {
    /// Output up to this size is not written to disk.
    pub after_bytes: u64,
    /// The file is never larger.
    pub max_bytes: u64,
}

/// Runs a command.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a field of its own on the wire, and any of them may be set"
)]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exec {
    /// The host's name for this run; a second request with the same id is refused, so a retry
    /// can never run a command twice.
    pub id: String,
    /// Where it runs.
    pub session: SessionRef,
    /// The directory for this command only; may start with `~` or be relative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workdir: Option<RawBytes>,
    /// Variables for this command only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<(RawBytes, RawBytes)>,
    /// When to stop it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// How long TERM may take before KILL.
    pub grace_ms: u64,
    /// How long it may outlive a lost pipe.
    #[serde(default)]
    pub lease_ms: u64,
    /// Whether stderr goes into stdout, in the order written.
    #[serde(default)]
    pub merge: bool,
    /// Gives it a terminal of this size; stdout and stderr are then one stream.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TerminalSize>,
    /// Whether stdin follows as data on [`stream::STDIN`]; otherwise it is empty.
    #[serde(default)]
    pub stdin: bool,
    /// Whether what the command changed in its shell is carried over.
    #[serde(default)]
    pub persist: bool,
    /// Where large output is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spill: Option<Spill>,
    /// Whether a `sudo` in it may ask the host for a password; see [`Passwords`].
    #[serde(default, skip_serializing_if = "is_false")]
    pub sudo: bool,
    /// Hides secrets in what is kept in the place: large output, and a process's output and
    /// command. The output that is sent is as it was written. Without it nothing is hidden.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redact: Option<Redact>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes fields by reference"
)]
const fn is_false(value: &bool) -> bool {
    !*value
}

/// What is hidden beside text with the shape of a secret and the values of secret variables.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Redact {
    /// Names of variables whose values are not hidden.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pass: Vec<String>,
    /// Further values to hide. Only a guest on the host's own machine is told any: a place must
    /// not learn a secret by being asked to hide it.
    #[serde(default, skip_serializing_if = "SecretValues::is_empty")]
    pub values: SecretValues,
}

/// Values that are secret. The debug form shows none of them.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SecretValues(pub Vec<RawBytes>);

impl SecretValues {
    /// Tells whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl std::fmt::Debug for SecretValues {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} values", self.0.len())
    }
}

/// The event that says a command's shell now runs it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecStarted {
    /// The shell's process id in the place.
    pub pid: u32,
    /// The values of secret variables that the command has, so that the host can hide them. Told
    /// only when [`Exec::redact`] is there.
    #[serde(default, skip_serializing_if = "SecretValues::is_empty")]
    pub secrets: SecretValues,
}

/// Goes on with a command that has a lease, on another channel: what the host has not received
/// is sent again, then output as it comes and the same reply as to [`Request::Exec`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resume {
    /// The id of the [`Exec`].
    pub id: String,
    /// How many bytes of [`stream::STDOUT`] the host has received.
    #[serde(default)]
    pub stdout: u64,
    /// How many bytes of [`stream::STDERR`].
    #[serde(default)]
    pub stderr: u64,
}

/// The event that says a command goes on: what comes first on a channel of [`Request::Resume`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {
    /// How many bytes of stdin the guest has taken over; the host sends what follows them.
    pub stdin: u64,
    /// Whether it has seen the end of stdin.
    #[serde(default)]
    pub stdin_ended: bool,
}

/// How the command's shell ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It exited with this code.
    Exited(i32),
    /// A signal ended it.
    Signalled(i32),
    /// Its supervisor disappeared, so nobody knows.
    Unknown,
}

/// What made the command end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The command itself.
    Ended,
    /// Its timeout.
    Timeout,
    /// A cancel by the host.
    Interrupted,
}

/// Something the caller should know about, by kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Note {
    /// The session's directory is gone; the command ran in another.
    DirectoryGone {
        /// The directory that is gone.
        gone: RawBytes,
        /// Where the command ran.
        used: RawBytes,
    },
    /// The login environment could not be captured.
    LoginFailed {
        /// Why, and what is done instead.
        why: String,
    },
    /// There is no bash in the place.
    NoBash {
        /// The shell in use.
        shell: RawBytes,
    },
    /// No guest can run in the place, so the command ran in a plain shell. Made by the host.
    NoGuest {
        /// Why no guest can run there.
        why: String,
    },
    /// The command ended its shell so that what it changed could not be seen.
    StateNotCaptured,
}

/// A process that a finished command left running, or one that could not be killed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessInfo {
    /// The guest's name for the group of leftovers it belongs to.
    pub id: String,
    /// Its process id in the place.
    pub pid: u32,
    /// Its start time in clock ticks since boot; pid and start time together are its identity.
    pub start_time: u64,
    /// Its command line.
    pub command: RawBytes,
    /// The session it belongs to, if it still has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// Where the raw output is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpillFile {
    /// The file, in the place.
    pub path: RawBytes,
    /// Its size.
    pub bytes: u64,
    /// What is missing from it and why, if anything is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete: Option<String>,
}

/// Where the time went, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timings {
    /// Until a shell was there to take the command.
    pub spawn_us: u64,
    /// While the command ran.
    pub run_us: u64,
    /// Collecting output and state after its end.
    pub drain_us: u64,
    /// Whether a warm shell was used.
    pub warm: bool,
}

/// The reply to [`Request::Exec`]; all output was sent before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecDone {
    /// How the shell ended.
    pub outcome: Outcome,
    /// What made it end.
    pub cause: Cause,
    /// The session's directory afterwards.
    pub cwd: RawBytes,
    /// What is left running.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub leftovers: Vec<ProcessInfo>,
    /// What could not be killed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unkillable: Vec<ProcessInfo>,
    /// Where the raw output is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spill: Option<SpillFile>,
    /// What the caller should know.
    #[serde(
        default,
        deserialize_with = "known",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub notes: Vec<Note>,
    /// Where the time went.
    pub timings: Timings,
    /// Bytes sent on [`stream::STDOUT`].
    pub stdout_bytes: u64,
    /// Bytes sent on [`stream::STDERR`].
    pub stderr_bytes: u64,
}

/// The reply to [`Request::OpenSession`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionOpened {
    /// Whether this request created it.
    pub created: bool,
    /// Its state now.
    pub session: SessionInfo,
    /// What the caller should know.
    #[serde(
        default,
        deserialize_with = "known",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub notes: Vec<Note>,
}

/// A session as seen from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionInfo {
    /// Its name.
    pub key: String,
    /// Its directory.
    pub cwd: RawBytes,
    /// How long it exists.
    pub age_ms: u64,
    /// How long nothing ran in it.
    pub idle_ms: u64,
    /// How many commands run in it now.
    pub running: u32,
    /// What commands left running in it.
    pub leftovers: u32,
}

/// Ends a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndSession {
    /// Its name.
    pub key: String,
    /// How long TERM may take before KILL.
    pub grace_ms: u64,
}

/// The reply to [`Request::EndSession`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEnded {
    /// Whether there was such a session.
    pub existed: bool,
    /// How many commands and groups of leftovers were ended.
    pub ended: u32,
}

/// The reply to [`Request::Info`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestInfo {
    /// The guest's process id.
    pub pid: u32,
    /// How long it runs.
    pub uptime_ms: u64,
    /// How many hosts are connected.
    pub connections: u32,
    /// Its sessions, by key.
    pub sessions: Vec<SessionInfo>,
    /// What commands left running.
    pub leftovers: Vec<ProcessInfo>,
    /// How many warm shells stand ready.
    pub warm_shells: u32,
    /// The guest's own processes (itself, the spawner, supervisors), for measuring.
    pub own_pids: Vec<u32>,
}

/// Why a request failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum FailureKind {
    /// The request makes no sense.
    BadRequest,
    /// There is no such session.
    NoSession,
    /// There is no such process.
    NoProcess,
    /// The process has ended, or cannot do that.
    NotPossible,
    /// The id was used before.
    Duplicate,
    /// This guest never started such a command, so it may be sent again.
    NoRun,
    /// The command was started, but its lease is over or its output is not kept any more.
    RunOver,
    /// The working directory cannot be entered.
    Workdir,
    /// Nothing could be started.
    Spawn,
    /// There is no shell in the place.
    NoShell,
    /// The session ended while the request waited.
    Ended,
    /// There is no such file.
    NoFile,
    /// A symbolic link is in the way; none is followed.
    Link,
    /// Something on the way to a file is no folder.
    NotAFolder,
    /// Something else is where a regular file is meant.
    NotAFile,
    /// The place's user may not do that, or its file system is read-only.
    NotAllowed,
    /// No space is left.
    DiskFull,
    /// There is more than was asked for.
    TooMuch,
    /// The bytes are not the ones that were announced.
    Damaged,
    /// Something else, which is a defect.
    #[serde(other)]
    Internal,
}

/// A failed request: nothing was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// The kind, for programs.
    pub kind: FailureKind,
    /// The text, for people.
    pub message: String,
}

impl Failure {
    /// Builds a failure.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

/// A reply: the answer or the failure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply<T> {
    /// The answer.
    Ok(T),
    /// Why there is none.
    Failed(Failure),
}

impl<T> From<Result<T, Failure>> for Reply<T> {
    fn from(result: Result<T, Failure>) -> Self {
        match result {
            Ok(value) => Self::Ok(value),
            Err(failure) => Self::Failed(failure),
        }
    }
}

impl<T> From<Reply<T>> for Result<T, Failure> {
    fn from(reply: Reply<T>) -> Self {
        match reply {
            Reply::Ok(value) => Self::Ok(value),
            Reply::Failed(failure) => Self::Err(failure),
        }
    }
}
