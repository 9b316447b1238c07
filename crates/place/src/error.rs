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

/// What is wrong with a backend, precisely enough to be told apart by a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Trouble {
    /// The backend's program is not installed, or is none.
    NoProgram,
    /// The engine does not answer.
    NoDaemon,
    /// The engine or host answered, and refused us.
    NotAllowed,
    /// The image is not there and cannot be had.
    NoImage,
    /// A setting makes no sense.
    BadSetting,
    /// The place exists with other settings, and something runs in it.
    OtherSettings,
    /// There is no such container.
    NoContainer,
    /// The container or machine does not start.
    DoesNotStart,
    /// No space is left in the place.
    DiskFull,
    /// Nobody listens at that address.
    Refused,
    /// The host's name is not known.
    UnknownHost,
    /// The host did not answer in time.
    NoAnswer,
    /// The host does not accept our key.
    AuthFailed,
    /// The host's key is not the one that was seen before.
    HostKeyChanged,
    /// The host's key was never seen, and may not be taken on trust.
    HostKeyUnknown,
    /// Our own key cannot be used.
    BadKey,
    /// No folder of the place can hold the guest.
    NoFolder,
    /// A step took longer than it may.
    TooSlow,
    /// The connection ended or the engine is restarting: trying again may help.
    Interrupted,
}

impl Trouble {
    /// Returns the name programs see.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoProgram => "no_program",
            Self::NoDaemon => "no_daemon",
            Self::NotAllowed => "not_allowed",
            Self::NoImage => "no_image",
            Self::BadSetting => "bad_setting",
            Self::OtherSettings => "other_settings",
            Self::NoContainer => "no_container",
            Self::DoesNotStart => "does_not_start",
            Self::DiskFull => "disk_full",
            Self::Refused => "refused",
            Self::UnknownHost => "unknown_host",
            Self::NoAnswer => "no_answer",
            Self::AuthFailed => "auth_failed",
            Self::HostKeyChanged => "host_key_changed",
            Self::HostKeyUnknown => "host_key_unknown",
            Self::BadKey => "bad_key",
            Self::NoFolder => "no_folder",
            Self::TooSlow => "too_slow",
            Self::Interrupted => "interrupted",
        }
    }

    const fn kind(self) -> PlaceErrorKind {
        match self {
            Self::NoProgram | Self::BadSetting | Self::BadKey | Self::OtherSettings => {
                PlaceErrorKind::Config
            }
            _ => PlaceErrorKind::Unreachable,
        }
    }
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
    /// The backend said no, or nothing.
    #[error("{message}")]
    Backend {
        /// What is wrong.
        trouble: Trouble,
        /// What and why, for people.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// The place is there, but no guest can run in it.
    #[error("no guest can run here: {why}")]
    NoGuest {
        /// Why.
        why: String,
    },
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
    /// The place was lost while something ran in it.
    #[error("{message}")]
    PlaceLost {
        /// What happened.
        message: String,
    },
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
    /// Builds an error of a backend.
    pub fn backend(trouble: Trouble, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Backend {
            trouble,
            message: message.into(),
            hint: hint.into(),
        }
    }

    /// Tells what is wrong with the backend, if that is where the fault lies.
    pub const fn trouble(&self) -> Option<Trouble> {
        match self {
            Self::Backend { trouble, .. } => Some(*trouble),
            _ => None,
        }
    }

    /// Tells whether trying again soon may help: nothing was run, and nothing is wrong that a
    /// person would have to fix.
    pub const fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Backend {
                trouble: Trouble::Interrupted | Trouble::NoAnswer,
                ..
            } | Self::NoHello { .. }
                | Self::Lost(_)
        )
    }

    /// Tells what the error means.
    pub const fn kind(&self) -> PlaceErrorKind {
        match self {
            Self::Setup { .. } | Self::Bundle(_) => PlaceErrorKind::Config,
            Self::Backend { trouble, .. } => trouble.kind(),
            Self::NoGuest { .. }
            | Self::Start { .. }
            | Self::Unreachable { .. }
            | Self::NoHello { .. }
            | Self::Refused { .. } => PlaceErrorKind::Unreachable,
            Self::Lost(_) | Self::PlaceLost { .. } => PlaceErrorKind::Lost,
            Self::Failed(_) | Self::Unsendable(_) => PlaceErrorKind::Guest,
            Self::Nonsense(_) => PlaceErrorKind::Internal,
        }
    }

    /// Returns what a person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Setup { hint, .. } | Self::Backend { hint, .. } => Some(hint.clone()),
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
            Self::PlaceLost { .. } => Some(
                "the next call makes or starts the place anew; see first what the command had \
                 done already"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}
