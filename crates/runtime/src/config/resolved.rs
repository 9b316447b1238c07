//! The configuration as the rest of the system uses it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use super::apply::{Layer, Origin};
use super::approval::{Approval, GuardRules};
use super::choices::{Backend, LogLevel, Persist};
use super::env::Environment;
use super::env_layer;
use super::error::ConfigError;
use super::file;
use super::keys::{self, Key};
use super::locate::{Anchor, Locations};
use super::places::{Command, Container, Docker, Ssh, Sync};
use super::schema::{Config, masked};

/// Holds every setting with its final value, and where each came from.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// Folder of configuration, state and sockets.
    pub home: PathBuf,
    /// Path of the configuration file, whether it exists or not.
    pub config_file: PathBuf,
    /// How commands run.
    pub terminal: Terminal,
    /// How places live.
    pub places: Places,
    /// What containers may use.
    pub container: Container,
    /// How Docker and Podman are used.
    pub docker: Docker,
    /// The remote host.
    pub ssh: Ssh,
    /// The launcher.
    pub command: Command,
    /// Files that remote places get.
    pub sync: Sync,
    /// When a person is asked.
    pub approval: Approval,
    /// The user's own rules.
    pub guard: GuardRules,
    /// Table `[secrets]`.
    pub secrets: Secrecy,
    /// What is logged.
    pub log: Log,
    pub(super) sources: BTreeMap<&'static str, Source>,
}

/// Holds how commands run.
#[derive(Clone, PartialEq)]
pub struct Terminal {
    /// Kind of place that tasks use.
    pub backend: Backend,
    /// Directory that sessions start in; `None` = the caller's.
    pub cwd: Option<PathBuf>,
    /// How long a foreground command may take.
    pub timeout: Duration,
    /// Longest timeout that a call may ask for; longer ones are clamped at the call.
    pub max_timeout: Duration,
    /// Time between TERM and KILL.
    pub kill_grace: Duration,
    /// Characters of output a result may have.
    pub output_limit_chars: usize,
    /// Megabytes of full output kept on disk per command.
    pub spill_limit_mb: usize,
    /// How long capturing the login shell's environment may take.
    pub login_timeout: Duration,
    /// What a session keeps between calls.
    pub persist: Persist,
    /// Variables that commands get in addition.
    pub env: BTreeMap<String, String>,
    /// Names of variables to strip in addition.
    pub env_remove: Vec<String>,
    /// Names of variables that are never stripped.
    pub env_pass: Vec<String>,
}

/// Holds how places live.
#[derive(Debug, Clone, PartialEq)]
pub struct Places {
    /// Time without activity before a place is cleaned up.
    pub lifetime: Duration,
    /// Time without use that a session's state is kept.
    pub session_ttl: Duration,
    /// Whether each task works in a folder of its own.
    pub batch: bool,
    /// Folder that batch work directories are made in; `None` = the base directory.
    pub sandbox_dir: Option<PathBuf>,
    /// Disk use in GB above which `info` warns; 0 = never.
    pub disk_warning_gb: usize,
    /// Whether the local guest stays when its last connection ends.
    pub linger: bool,
    /// Prepared shells kept at the same time.
    pub max_warm_shells: usize,
    /// Folder with guest programs for further architectures, as `<os>-<arch>`.
    pub guest_dir: Option<PathBuf>,
}

/// Holds what is hidden.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secrecy {
    /// Whether secrets are hidden in everything that is shown and kept.
    pub redact: bool,
    /// Names of variables whose values are not hidden, and that scripts get.
    pub pass: Vec<String>,
}

impl Default for Secrecy {
    fn default() -> Self {
        Self {
            redact: true,
            pass: Vec::new(),
        }
    }
}

/// Holds what is logged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Log {
    /// How much is logged.
    pub level: LogLevel,
}

/// Says which layer a value came from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Source {
    /// Nobody gave it.
    #[default]
    Default,
    /// The configuration file.
    File(PathBuf),
    /// The environment variable of this name.
    Environment(&'static str),
    /// A flag, or the program that embeds us.
    Flag,
}

/// Holds one line of `exoshell config show`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Setting {
    /// Dotted path of the key.
    pub key: &'static str,
    /// The final value, with secrets hidden.
    pub value: serde_json::Value,
    /// Which layer it came from, in words.
    pub source: String,
}

impl Resolved {
    /// Makes the built-in defaults for a home folder, without looking at any file or variable.
    pub fn new(home: impl Into<PathBuf>) -> Self {
        let home = home.into();
        Self {
            config_file: home.join(file::FILE_NAME),
            home,
            terminal: Terminal::default(),
            places: Places::default(),
            container: Container::default(),
            docker: Docker::default(),
            ssh: Ssh::default(),
            command: Command::default(),
            sync: Sync::default(),
            approval: Approval::default(),
            guard: GuardRules::default(),
            secrets: Secrecy::default(),
            log: Log::default(),
            sources: BTreeMap::new(),
        }
    }

    /// Puts one layer on the defaults, without looking at any file or variable; paths in it must be absolute.
    pub fn from_config(home: impl Into<PathBuf>, config: Config) -> Result<Self, ConfigError> {
        let mut resolved = Self::new(home);
        let layer = Layer {
            config,
            origin: Origin::Overrides,
            anchor: Anchor::default(),
        };
        layer.apply(&mut resolved)?;
        Ok(resolved)
    }

    /// Resolves all layers: defaults, the file, the environment and the overrides.
    pub fn load(environment: &Environment, overrides: Config) -> Result<Self, ConfigError> {
        let locations = Locations::find(environment)?;
        let user_home = environment.user_home();
        let anchor = Anchor {
            directory: environment.directory(),
            user_home,
        };
        let mut resolved = Self::new(locations.home);
        resolved.config_file = locations.config_file;
        if let Some(found) = file::read(&resolved.config_file, locations.config_required)? {
            let path = resolved.config_file.clone();
            let anchor = Anchor {
                directory: path.parent(),
                user_home,
            };
            let origin = Origin::File {
                path: &path,
                lines: &found.lines,
            };
            Layer {
                config: found.config,
                origin,
                anchor,
            }
            .apply(&mut resolved)?;
        }
        let config = env_layer::read(environment)?;
        Layer {
            config,
            origin: Origin::Environment,
            anchor,
        }
        .apply(&mut resolved)?;
        Layer {
            config: overrides,
            origin: Origin::Overrides,
            anchor,
        }
        .apply(&mut resolved)?;
        Ok(resolved)
    }

    /// Returns which layer the value of a key came from; an unknown key has the source [`Source::Default`].
    pub fn source(&self, key: &str) -> &Source {
        self.sources.get(key).unwrap_or(&Source::Default)
    }

    /// Lists every setting with its value and source, in the order of the template.
    pub fn show(&self) -> Vec<Setting> {
        // A copy, because the keys' accessors serve for writing too.
        let mut copy = self.clone();
        let setting = |key: &Key| Setting {
            key: key.name,
            value: key.slot.value(&mut copy),
            source: self.source(key.name).to_string(),
        };
        keys::all().map(setting).collect()
    }
}

impl Terminal {
    /// Returns how many bytes of full output are kept on disk per command.
    pub const fn spill_limit_bytes(&self) -> u64 {
        (self.spill_limit_mb as u64).saturating_mul(1024 * 1024)
    }
}

impl Places {
    /// Returns the disk use in bytes above which `info` warns, or `None` for never.
    pub const fn disk_warning_bytes(&self) -> Option<u64> {
        match self.disk_warning_gb {
            0 => None,
            gigabytes => Some((gigabytes as u64).saturating_mul(1024 * 1024 * 1024)),
        }
    }

    /// Returns the folder that batch work directories are made in, given the task's base directory.
    pub fn batch_base<'a>(&'a self, base: &'a Path) -> &'a Path {
        self.sandbox_dir.as_deref().unwrap_or(base)
    }
}

impl Default for Terminal {
    fn default() -> Self {
        Self {
            backend: Backend::default(),
            cwd: None,
            timeout: Duration::from_secs(60),
            max_timeout: Duration::from_secs(600),
            kill_grace: Duration::from_secs(2),
            output_limit_chars: 50_000,
            spill_limit_mb: 256,
            login_timeout: Duration::from_secs(30),
            persist: Persist::default(),
            env: BTreeMap::new(),
            env_remove: Vec::new(),
            env_pass: Vec::new(),
        }
    }
}

impl Default for Places {
    fn default() -> Self {
        Self {
            lifetime: Duration::from_secs(300),
            session_ttl: Duration::from_secs(86_400),
            batch: false,
            sandbox_dir: None,
            disk_warning_gb: 500,
            linger: true,
            max_warm_shells: 64,
            guest_dir: None,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::File(path) => write!(formatter, "file {}", path.display()),
            Self::Environment(name) => write!(formatter, "environment {name}"),
            Self::Flag => formatter.write_str("flag"),
        }
    }
}

impl fmt::Debug for Terminal {
    // Destructured, so that a new field cannot be forgotten.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            backend,
            cwd,
            timeout,
            max_timeout,
            kill_grace,
            output_limit_chars,
            spill_limit_mb,
            login_timeout,
            persist,
            env,
            env_remove,
            env_pass,
        } = self;
        formatter
            .debug_struct("Terminal")
            .field("backend", backend)
            .field("cwd", cwd)
            .field("timeout", timeout)
            .field("max_timeout", max_timeout)
            .field("kill_grace", kill_grace)
            .field("output_limit_chars", output_limit_chars)
            .field("spill_limit_mb", spill_limit_mb)
            .field("login_timeout", login_timeout)
            .field("persist", persist)
            .field("env", &masked(env))
            .field("env_remove", env_remove)
            .field("env_pass", env_pass)
            .finish()
    }
}

#[cfg(test)]
#[path = "resolved_tests.rs"]
mod tests;
