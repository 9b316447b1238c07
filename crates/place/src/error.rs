//! What can go wrong with a place.

use exoshell_mux::{CloseReason, SendError};
use exoshell_wire::Failure;

use crate::bundle::BundleError;

/// What an error means for whoever has to handle it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlaceErrorKind {
    /// The place's settings or the machine's set-up are wrong.
    Config,
    /// The place cannot be reached.
    Unreachable,
    /// The place was reached and is gone.
    Lost,
    /// The guest refused or failed a request.
    Guest,
    /// A defect of ours.
    Internal,
}

/// Why a place could not be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PlaceError {
    /// Something on this machine is in the way.
    #[error("{action}: {source}")]
    Setup {
        /// What was tried.
        action: String,
        /// Why it failed.
        source: std::io::Error,
        /// What to do about it.
        hint: String,
    },
    /// The guest's program could not be provided.
    #[error(transparent)]
    Bundle(#[from] BundleError),
    /// The guest did not start.
    #[error("the guest did not start: {message}")]
    Start {
        /// What it or the system said.
        message: String,
    },
    /// The pipe could not be opened.
    #[error("the guest cannot be reached: {message}")]
    Unreachable {
        /// Why.
        message: String,
    },
    /// No guest answered on the pipe.
    #[error("no guest answered on the pipe: {message}")]
    NoHello {
        /// Why, with what was read instead.
        message: String,
    },
    /// The guest refused to talk.
    #[error("the guest refused to talk: {reason}")]
    Refused {
        /// Its reason.
        reason: String,
    },
    /// The pipe ended.
    #[error("the pipe to the guest was lost: {0}")]
    Lost(#[from] CloseReason),
    /// A request was too large.
    #[error("the request cannot be sent: {0}")]
    Unsendable(String),
    /// The guest answered with a failure; nothing was run.
    #[error(transparent)]
    Failed(#[from] Failure),
    /// The guest sent something that makes no sense.
    #[error("the guest's answer makes no sense: {0}")]
    Nonsense(String),
}

impl From<SendError> for PlaceError {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Closed(reason) => Self::Lost(reason),
            other => Self::Unsendable(other.to_string()),
        }
    }
}

impl PlaceError {
    /// Tells what the error means.
    pub const fn kind(&self) -> PlaceErrorKind {
        match self {
            Self::Setup { .. } | Self::Bundle(_) => PlaceErrorKind::Config,
            Self::Start { .. }
            | Self::Unreachable { .. }
            | Self::NoHello { .. }
            | Self::Refused { .. } => PlaceErrorKind::Unreachable,
            Self::Lost(_) => PlaceErrorKind::Lost,
            Self::Failed(_) | Self::Unsendable(_) => PlaceErrorKind::Guest,
            Self::Nonsense(_) => PlaceErrorKind::Internal,
        }
    }

    /// Returns what a person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Setup { hint, .. } => Some(hint.clone()),
            Self::Bundle(error) => error.hint(),
            Self::Start { .. } => Some(
                "check that the folder allows executing programs, or set `EXOSHELL_HOME` to one \
                 that does"
                    .to_owned(),
            ),
            Self::Refused { .. } => Some(
                "another version of Exoshell runs here; end its guest with `exoshell places rm \
                 --all` of that version, or use another `EXOSHELL_HOME`"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}
