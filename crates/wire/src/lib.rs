//! The language of the pipe between host and guest: frames, hello, messages and limits.
//!
//! This crate is pure: it performs no I/O, spawns nothing and knows no other crate of the
//! workspace. `docs/protocol.md` is its normative description; the recorded frames in
//! `tests/` keep both honest.
//!
//! ```
//! use exoshell_wire::{Frame, FrameDecoder, Kind};
//!
//! let frame = Frame::new(Kind::Data, 0, 7, &b"hello"[..]);
//! let mut decoder = FrameDecoder::default();
//! decoder.extend(&frame.encode());
//! assert_eq!(decoder.next_frame().unwrap(), Some(frame));
//! ```

mod files;
mod frame;
mod hello;
mod known;
mod limits;
mod message;
mod preamble;
mod process;
mod raw;
mod sudo;

pub use files::{
    FILES, FileEntry, FileKind, FileRemoved, FileRoot, FileSent, FilesScanned, GetFile, PutFile,
    RemoveFile, ScanFiles,
};
pub use frame::{FIN, Frame, FrameDecoder, FrameError, HEADER_LEN, Kind, STREAM_MASK};
pub use hello::{GuestHello, HelloError, HostHello, PROTOCOL_VERSION, Shell, ShellKind};
pub use limits::{INITIAL_WINDOW, MAX_CONTROL, MAX_DATA, MAX_NOISE};
pub use message::{
    Cause, EndSession, Exec, ExecDone, ExecStarted, Failure, FailureKind, GuestInfo, Note,
    OpenSession, Outcome, ProcessInfo, Redact, Reply, Request, Resume, Resumed, SecretValues,
    SessionEnded, SessionInfo, SessionOpened, SessionRef, SessionSpec, Spill, SpillFile, Timings,
    stream,
};
pub use preamble::{NoiseOverflow, Preamble, PreambleScanner};
pub use process::{
    Acknowledge, Act, Acted, Action, Events, Follow, FollowAt, From as ReadFrom, Happened,
    OutputRead, ProcessEvent, ProcessState, ProcessStatus, Processes, ReadOutput, Screen, Start,
    TerminalSize, Wait, WaitReason, Waited, WriteInput,
};
pub use raw::RawBytes;
pub use sudo::{MAX_PASSWORD, PasswordWanted, Passwords, SUDO};

#[cfg(test)]
#[path = "conversation_tests.rs"]
mod conversation_tests;
#[cfg(test)]
#[path = "frame_tests.rs"]
mod frame_tests;
#[cfg(test)]
#[path = "message_tests.rs"]
mod message_tests;
