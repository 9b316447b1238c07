//! The first message each side sends.

use serde::{Deserialize, Serialize};

use crate::known::known;
use crate::raw::RawBytes;

/// The protocol this build speaks.
pub const PROTOCOL_VERSION: u32 = 1;

/// The shells a guest can drive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ShellKind {
    /// GNU bash: all of a session's state is carried over.
    Bash,
    /// A POSIX `sh`: directory, exports and umask are carried over.
    Sh,
}

/// A shell found in the place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shell {
    /// What it is.
    pub kind: ShellKind,
    /// Where it is.
    pub path: RawBytes,
}

/// What the host says first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostHello {
    /// The oldest protocol the host speaks.
    pub min_version: u32,
    /// The newest protocol the host speaks.
    pub max_version: u32,
    /// The host's build, for people.
    pub build: String,
    /// Capabilities the guest must have, or it must refuse.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required: Vec<String>,
    /// Whether the guest may stay when its last host is gone.
    #[serde(default = "yes")]
    pub linger: bool,
    /// How many idle warm shells the guest may keep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_warm_shells: Option<u32>,
    /// How often the guest shall ask for a sign of life; `None` trusts the pipe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat_ms: Option<u64>,
}

const fn yes() -> bool {
    true
}

/// What the guest answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuestHello {
    /// The protocol that will be spoken, or 0 when the hello is a refusal.
    pub version: u32,
    /// The guest's build: the version and the hash it was delivered under.
    pub build: String,
    /// Changes with every start of a guest, so that lost state is noticed.
    pub incarnation: String,
    /// `linux`, as `uname` would say in lower case.
    pub os: String,
    /// `x86_64`, …
    pub arch: String,
    /// The user the guest runs as.
    pub uid: u32,
    /// The guest's process id in the place.
    pub pid: u32,
    /// The shells found, best first; those of a kind this build does not know are left out.
    #[serde(deserialize_with = "known")]
    pub shells: Vec<Shell>,
    /// What this guest can do beyond the base protocol.
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// Whether the place has a readable `/proc`; without it leftovers of a command cannot be
    /// named and are found by process group only.
    #[serde(default = "yes")]
    pub proc_fs: bool,
    /// Why the guest refuses to talk, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
}

/// Why two builds cannot talk.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HelloError {
    /// The version ranges do not meet.
    #[error("the host speaks protocol {min}..={max}, the guest speaks {guest}")]
    Version {
        /// The host's oldest.
        min: u32,
        /// The host's newest.
        max: u32,
        /// The guest's.
        guest: u32,
    },
    /// The guest lacks something the host needs.
    #[error("the guest lacks the capability `{capability}`")]
    Capability {
        /// What is missing.
        capability: String,
    },
}

impl HostHello {
    /// Picks the version to speak with a guest that speaks [`PROTOCOL_VERSION`] and has these
    /// capabilities.
    pub fn accept(&self, capabilities: &[&str]) -> Result<u32, HelloError> {
        if self.min_version > PROTOCOL_VERSION || self.max_version < PROTOCOL_VERSION {
            return Err(HelloError::Version {
                min: self.min_version,
                max: self.max_version,
                guest: PROTOCOL_VERSION,
            });
        }
        match self
            .required
            .iter()
            .find(|needed| !capabilities.contains(&needed.as_str()))
        {
            Some(missing) => Err(HelloError::Capability {
                capability: missing.clone(),
            }),
            None => Ok(PROTOCOL_VERSION),
        }
    }
}
