//! Tasks, sessions, places' lives and tools: Exoshell as a Rust library.
//!
//! A [`Runtime`] turns "run this" into an honest answer. It holds one link per place, creates
//! places when their tasks first need them, and never touches the terminal; the environment is
//! read only by [`config::Environment::from_process`], which a caller may do without.
//!
//! ```no_run
//! use exoshell_runtime::config::{Config, Environment, Resolved};
//! use exoshell_runtime::{Runtime, TerminalRequest};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let environment = Environment::from_process();
//! let config = Resolved::load(&environment, Config::default())?;
//! let runtime = Runtime::new(config, environment);
//! let result = runtime.terminal(TerminalRequest::new("cd /tmp && pwd")).await;
//! assert_eq!(result.output, "/tmp\n");
//! # Ok(())
//! # }
//! ```

mod approvals;
pub mod audit;
pub mod config;
mod doctor;
mod error;
mod event;
mod interrupt;
mod places;
mod processes;
mod record;
pub mod redact;
mod run;
mod runtime;
mod session;
mod state_file;
mod sudo;
pub mod sync;
mod tools;
pub mod transcript;

pub use approvals::{
    Answer, ApprovalWatch, ApprovalsReport, Approver, ApproverFuture, Checker, Grant, Question,
    Refusal, RefusalKind, StoredQuestion, inside_guest,
};
pub use doctor::{BackendReport, CheckReport};
pub use error::{ErrorKind, RuntimeError};
pub use event::{Event, EventKind, Events};
pub use exoshell_guard::visible;
pub use exoshell_place::{CheckOutcome, FollowEvent};
pub use exoshell_wire::{
    Acted, Action, Happened, ProcessEvent, ProcessState, ProcessStatus, ReadFrom, Screen,
    TerminalSize, WaitReason, Waited,
};
pub use interrupt::Interrupt;
pub use places::{Cleaned, GuestReport, LeftoverReport, PlaceReport, PlacesReport};
pub use processes::{
    DEFAULT_TERMINAL, FollowStream, ProcessEvents, ProcessRecord, ProcessView, StartRequest,
};
pub use record::TaskOverrides;
pub use run::{OutputStream, RunEnd, RunRequest};
pub use runtime::Runtime;
pub use sudo::{Password, PasswordFuture, PasswordRequest};
pub use tools::answer::{CallTimings, Leftover, Refused, Status, TerminalResult};
pub use tools::process::{describe as describe_process, parse_signal, state_code, state_name};
pub use tools::schema::{SchemaFormat, schemas};
pub use tools::terminal::TerminalRequest;
pub use tools::{ToolError, call};
