//! Settings that take one of a few names.

use serde::{Deserialize, Serialize};

/// Names a kind of place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Backend {
    /// Commands run on this machine, as this user.
    #[default]
    Local,
    /// Commands run in a container of Docker, or of Podman where there is no Docker.
    Docker,
    /// Commands run in a container of Podman.
    Podman,
    /// Commands run on a remote host.
    Ssh,
    /// Commands run wherever a launcher of the user's leads.
    Command,
}

/// Says what a session keeps from one call to the next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Persist {
    /// Directory, variables and shell state carry over.
    #[default]
    Persist,
    /// Every call starts from the state the session began with.
    Reset,
}

/// Says what happens to commands that need a yes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalMode {
    /// A person is asked.
    #[default]
    Ask,
    /// Code, and deletes inside the task's own directory and temporary ones, pass; the rest asks.
    Workspace,
    /// All pass. What is blocked stays blocked.
    Auto,
    /// None passes.
    Deny,
}

/// Says how much is logged.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Nothing.
    Off,
    /// What went wrong.
    Error,
    /// Also what may become a problem.
    #[default]
    Warn,
    /// Also what was done.
    Info,
    /// Also why it was done.
    Debug,
    /// Also every message.
    Trace,
}

/// Gives a choice its names.
pub(super) trait Named: Copy + 'static {
    /// All values, in the order they are listed to people.
    const ALL: &'static [Self];

    /// Returns the name of this value.
    fn name(self) -> &'static str;

    /// Finds the value with a name, in any case.
    fn from_name(name: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|value| value.name().eq_ignore_ascii_case(name))
    }

    /// Returns all names.
    fn names() -> Vec<&'static str> {
        Self::ALL.iter().map(|value| value.name()).collect()
    }
}

impl Named for Backend {
    const ALL: &'static [Self] = &[
        Self::Local,
        Self::Docker,
        Self::Podman,
        Self::Ssh,
        Self::Command,
    ];

    fn name(self) -> &'static str {
        self.as_str()
    }
}

impl Named for Persist {
    const ALL: &'static [Self] = &[Self::Persist, Self::Reset];

    fn name(self) -> &'static str {
        self.as_str()
    }
}

impl Named for ApprovalMode {
    const ALL: &'static [Self] = &[Self::Ask, Self::Workspace, Self::Auto, Self::Deny];

    fn name(self) -> &'static str {
        self.as_str()
    }
}

impl Named for LogLevel {
    const ALL: &'static [Self] = &[
        Self::Off,
        Self::Error,
        Self::Warn,
        Self::Info,
        Self::Debug,
        Self::Trace,
    ];

    fn name(self) -> &'static str {
        self.as_str()
    }
}

impl Backend {
    /// Returns every backend of this build.
    pub const fn all() -> &'static [Self] {
        Self::ALL
    }

    /// Finds a backend by its name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::from_name(name)
    }

    /// Returns the name as it is written in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Docker => "docker",
            Self::Podman => "podman",
            Self::Ssh => "ssh",
            Self::Command => "command",
        }
    }
}

impl ApprovalMode {
    /// Returns the name as it is written in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Workspace => "workspace",
            Self::Auto => "auto",
            Self::Deny => "deny",
        }
    }
}

impl Persist {
    /// Returns the name as it is written in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Persist => "persist",
            Self::Reset => "reset",
        }
    }
}

impl LogLevel {
    /// Returns the name as it is written in the configuration.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Info => "info",
            Self::Debug => "debug",
            Self::Trace => "trace",
        }
    }
}
