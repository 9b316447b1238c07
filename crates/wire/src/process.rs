//! Messages about processes: commands that outlive the request that started them.

use serde::{Deserialize, Serialize};

use crate::message::Exec;
use crate::raw::RawBytes;

/// The size of a terminal, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TerminalSize {
    /// Columns.
    pub cols: u16,
    /// Rows.
    pub rows: u16,
}

/// Starts a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// The command, with the id that names the process from here on. Its `timeout_ms` ends the
    /// process; `merge`, `stdin`, `persist` and `spill` have no meaning here.
    pub exec: Exec,
    /// Whether it ends with the connection that started it.
    #[serde(default)]
    pub bound: bool,
    /// Whether its end is an event.
    #[serde(default)]
    pub notify: bool,
    /// Regular expressions; a line of output that matches one is an event.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub watch: Vec<String>,
    /// How often to report that it still runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub check_interval_ms: Option<u64>,
    /// How much of its output is kept on disk.
    pub disk_bytes: u64,
}

/// What a process is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum ProcessState {
    /// It runs.
    Running,
    /// It exited; the code is not known for what a command left behind.
    Exited {
        /// Its exit code.
        code: Option<i32>,
    },
    /// A signal that was not ours ended it.
    Signalled {
        /// The signal.
        signal: i32,
    },
    /// It was killed on request.
    Killed,
    /// It ran into its timeout and was killed.
    Timeout,
}

impl ProcessState {
    /// Tells whether it has ended.
    pub const fn is_over(self) -> bool {
        !matches!(self, Self::Running)
    }
}

/// A process as seen from outside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessStatus {
    /// Its name.
    pub id: String,
    /// The session it was started in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The command.
    pub command: RawBytes,
    /// Where it was started.
    pub cwd: RawBytes,
    /// Its process id in the place.
    pub pid: u32,
    /// What it is doing.
    #[serde(flatten)]
    pub state: ProcessState,
    /// When it was started, in milliseconds since 1970.
    pub started_ms: u64,
    /// How long it ran, or runs.
    pub uptime_ms: u64,
    /// How long ago it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_ago_ms: Option<u64>,
    /// Where its output ends now.
    pub output_end: u64,
    /// Where the output that is still kept begins.
    pub output_start: u64,
    /// How many lines it wrote; an unfinished last one counts.
    pub lines: u64,
    /// Its terminal, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<TerminalSize>,
    /// Whether it was left behind by a foreground command.
    #[serde(default)]
    pub adopted: bool,
    /// How many processes of it are alive.
    #[serde(default)]
    pub alive: u32,
}

/// Lists processes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Processes {
    /// Only this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Only those of this session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// Where to begin reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum From {
    /// At this byte of all output.
    Byte(u64),
    /// At this line, the first being 0.
    Line(u64),
    /// This many bytes before the end.
    Tail(u64),
}

/// Reads a part of a process's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadOutput {
    /// The process.
    pub id: String,
    /// Where to begin.
    pub from: From,
    /// At most this many bytes.
    pub max_bytes: u64,
    /// At most this many lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_lines: Option<u64>,
}

/// The reply to [`ReadOutput`]; the bytes came before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputRead {
    /// The offset of the first byte sent; later than asked for where output was dropped.
    pub start: u64,
    /// The offset behind the last byte sent.
    pub end: u64,
    /// The line of the first byte.
    pub first_line: u64,
    /// The process afterwards.
    pub status: ProcessStatus,
}

/// Follows a process's output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Follow {
    /// The process.
    pub id: String,
    /// Where to begin.
    pub from: From,
}

/// The event that says where following begins, or goes on after a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FollowAt {
    /// The offset of the next byte.
    pub offset: u64,
    /// How many bytes before it are lost.
    pub dropped: u64,
}

/// Waits for the end of a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// The process.
    pub id: String,
    /// How long to wait.
    pub timeout_ms: u64,
    /// Also return when a line written from here on matches this regular expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Where `until` begins to look.
    #[serde(default)]
    pub from_byte: u64,
}

/// The reply to [`Wait`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waited {
    /// Why the wait ended.
    pub reason: WaitReason,
    /// The line that matched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<RawBytes>,
    /// The process afterwards.
    pub status: ProcessStatus,
}

/// Why a wait ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitReason {
    /// The process ended.
    Ended,
    /// A line matched.
    Matched,
    /// The time was up.
    TimeUp,
}

/// Something to do with a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Act {
    /// The process.
    pub id: String,
    /// What.
    pub action: Action,
}

/// What to do with a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// End its whole tree.
    Kill {
        /// How long TERM may take.
        grace_ms: u64,
    },
    /// Send a signal to its tree.
    Signal {
        /// The signal's number.
        signal: i32,
    },
    /// Close its stdin, or send end-of-file on its terminal.
    Close,
    /// Change the size of its terminal.
    Resize(TerminalSize),
    /// Tell what its terminal shows.
    Screen,
}

/// The reply to [`Act`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acted {
    /// The process afterwards.
    pub status: ProcessStatus,
    /// What the terminal shows, for [`Action::Screen`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub screen: Option<Screen>,
    /// What could not be ended, for [`Action::Kill`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unkillable: Vec<RawBytes>,
}

/// What a person would see on a terminal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Screen {
    /// The rows, without trailing blanks.
    pub rows: Vec<String>,
    /// The cursor's row, the first being 0.
    pub cursor_row: u16,
    /// The cursor's column, the first being 0.
    pub cursor_col: u16,
    /// Whether a full-screen program has the alternate screen.
    pub alternate: bool,
    /// How much of the process's output is drawn.
    #[serde(default)]
    pub offset: u64,
    /// Bytes that draw the same on another terminal.
    #[serde(default)]
    pub drawn: RawBytes,
}

/// Sends bytes to a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WriteInput {
    /// The process.
    pub id: String,
    /// Whether Enter is pressed afterwards: what a line needs on a pipe, what the key sends on a
    /// terminal.
    #[serde(default)]
    pub enter: bool,
    /// How long a process that does not read may hold this up.
    pub timeout_ms: u64,
}

/// Asks for events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Events {
    /// Who asks; positions are kept by this name.
    pub consumer: String,
    /// Whether to go on after those that are there.
    pub follow: bool,
}

/// Says which events a consumer has dealt with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acknowledge {
    /// Who.
    pub consumer: String,
    /// The last event dealt with; all before it are too.
    pub sequence: u64,
}

/// Something that happened to a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessEvent {
    /// Counts all events of a guest.
    pub sequence: u64,
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
    /// The process.
    pub id: String,
    /// Its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// What.
    #[serde(flatten)]
    pub happened: Happened,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Happened {
    /// It ended.
    Completed {
        /// How.
        #[serde(flatten)]
        state: ProcessState,
        /// The end of its output.
        tail: RawBytes,
    },
    /// A line matched.
    Matched {
        /// The expression.
        pattern: String,
        /// The line.
        line: RawBytes,
        /// How many matches were not reported since the last one.
        suppressed: u64,
    },
    /// Too much matched; nothing more is reported.
    WatchOff {
        /// Why.
        why: String,
    },
    /// It still runs.
    Progress {
        /// For how long.
        uptime_ms: u64,
        /// The end of its output.
        tail: RawBytes,
    },
    /// Events that were never acknowledged had to be given up.
    Dropped {
        /// How many.
        count: u64,
    },
}
