//! What a caller must tell apart when something of ours failed.

use exoshell_place::{PlaceError, PlaceErrorKind, Trouble};
use exoshell_wire::FailureKind;
use serde::{Deserialize, Serialize};

use crate::approvals::Refusal;
use crate::config::ConfigError;
use crate::sync::SyncError;

/// The kind alone decides exit codes and how doors present an error. It is never set by the
/// command's own failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The request makes no sense.
    Usage,
    /// The configuration or the machine's set-up is wrong.
    Config,
    /// The guard said no.
    Denied,
    /// The place cannot be reached; nothing was run.
    Unreachable,
    /// The place was lost while the command ran.
    PlaceLost,
    /// This build or place cannot do that.
    Unsupported,
    /// A defect of ours.
    Internal,
}

/// Why the runtime could not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RuntimeError {
    /// The request makes no sense.
    #[error("{0}")]
    Usage(String),
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The place could not be used.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// Files could not be brought to a place, or back.
    #[error(transparent)]
    Sync(#[from] SyncError),
    /// A file of ours could not be read or written.
    #[error("{action} `{path}`: {source}")]
    State {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: String,
        /// Why it failed.
        source: std::io::Error,
    },
    /// The place that held something is gone, and it with it.
    #[error(
        "{what} is lost: the guest that ran it is gone, so its output and exit code are not known"
    )]
    Lost {
        /// What.
        what: String,
    },
    /// The guard, or a person, said no.
    #[error(transparent)]
    Refused(Box<Refusal>),
    /// This build cannot do that.
    #[error("{0}")]
    Unsupported(String),
}

impl RuntimeError {
    /// Tells the kind.
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Usage(_) => ErrorKind::Usage,
            Self::Refused(_) => ErrorKind::Denied,
            Self::Sync(error) => error.kind(),
            Self::Config(_) | Self::State { .. } => ErrorKind::Config,
            Self::Unsupported(_) => ErrorKind::Unsupported,
            Self::Lost { .. } => ErrorKind::PlaceLost,
            Self::Place(error) => match error {
                PlaceError::NoGuest { .. } => ErrorKind::Unsupported,
                PlaceError::Failed(failure) => match failure.kind {
                    FailureKind::BadRequest
                    | FailureKind::Workdir
                    | FailureKind::NoProcess
                    | FailureKind::NotPossible => ErrorKind::Usage,
                    FailureKind::NoShell => ErrorKind::Unsupported,
                    FailureKind::Spawn => ErrorKind::Unreachable,
                    _ => ErrorKind::Internal,
                },
                _ => match error.kind() {
                    PlaceErrorKind::Config => ErrorKind::Config,
                    PlaceErrorKind::Unreachable => ErrorKind::Unreachable,
                    PlaceErrorKind::Lost => ErrorKind::PlaceLost,
                    PlaceErrorKind::Guest => ErrorKind::Usage,
                    _ => ErrorKind::Internal,
                },
            },
        }
    }

    /// Tells whether only the pipe to a guest was lost.
    pub(crate) const fn is_lost_pipe(&self) -> bool {
        matches!(
            self,
            Self::Place(PlaceError::Lost(_)) | Self::Sync(SyncError::Place(PlaceError::Lost(_)))
        )
    }

    /// Names what exactly is wrong with a backend, for programs.
    pub fn reason(&self) -> Option<&'static str> {
        match self {
            Self::Place(error) => error.trouble().map(Trouble::as_str),
            Self::Refused(refusal) => Some(refusal.kind.name()),
            _ => None,
        }
    }

    /// Returns the exit code of a program that failed with it: 77 refused, 126 for a directory
    /// that cannot be entered, 130 interrupted, else 125.
    pub const fn exit_code(&self) -> u8 {
        match self {
            Self::Place(PlaceError::Failed(failure)) => match failure.kind {
                FailureKind::Workdir => 126,
                FailureKind::Ended => 130,
                _ => 125,
            },
            _ => match self.kind() {
                ErrorKind::Denied => 77,
                _ => 125,
            },
        }
    }

    /// Returns what a person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Config(error) => Some(error.hint()),
            Self::Place(error) => error.hint(),
            Self::Sync(error) => error.hint(),
            Self::State { .. } => Some(
                "set `EXOSHELL_HOME` to a folder that you can write, or free some space".to_owned(),
            ),
            Self::Refused(refusal) => refusal.hint(),
            Self::Usage(_) | Self::Unsupported(_) | Self::Lost { .. } => None,
        }
    }
}
