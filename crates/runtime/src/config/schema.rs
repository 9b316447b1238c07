//! One layer of configuration: what a file, the environment or flags say.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::choices::{Backend, LogLevel, Persist};
use super::secret::{HIDDEN, looks_secret};

/// Holds what one layer says; a key it does not mention is `None`.
///
/// This is the type of `config.toml`, and also what flags and embedding programs fill in to override it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Table `[terminal]`.
    pub terminal: TerminalConfig,
    /// Table `[places]`.
    pub places: PlacesConfig,
    /// Table `[log]`.
    pub log: LogConfig,
}

/// Holds what one layer says about running commands; see [`Terminal`](super::Terminal) for the meaning of each key.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TerminalConfig {
    /// Kind of place that tasks use.
    pub backend: Option<Backend>,
    /// Directory that sessions start in.
    pub cwd: Option<PathBuf>,
    /// Seconds a foreground command may take.
    pub timeout_seconds: Option<f64>,
    /// Longest timeout in seconds that a call may ask for.
    pub max_timeout_seconds: Option<f64>,
    /// Seconds between TERM and KILL.
    pub kill_grace_seconds: Option<f64>,
    /// Characters of output a result may have.
    pub output_limit_chars: Option<usize>,
    /// Megabytes of full output kept on disk per command.
    pub spill_limit_mb: Option<usize>,
    /// Seconds that capturing the login shell's environment may take.
    pub login_timeout_seconds: Option<f64>,
    /// What a session keeps between calls.
    pub persist: Option<Persist>,
    /// Variables that commands get in addition.
    pub env: Option<BTreeMap<String, String>>,
    /// Names of variables to strip in addition.
    pub env_remove: Option<Vec<String>>,
    /// Names of variables that are never stripped.
    pub env_pass: Option<Vec<String>>,
}

/// Holds what one layer says about places; see [`Places`](super::Places) for the meaning of each key.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PlacesConfig {
    /// Seconds without activity before a place is cleaned up.
    pub lifetime_seconds: Option<f64>,
    /// Seconds without use that a session's state is kept.
    pub session_ttl_seconds: Option<f64>,
    /// Whether each task works in a folder of its own.
    pub batch: Option<bool>,
    /// Folder that batch work directories are made in.
    pub sandbox_dir: Option<PathBuf>,
    /// Disk use in GB above which `info` warns.
    pub disk_warning_gb: Option<usize>,
    /// Whether the local guest stays when its last connection ends.
    pub linger: Option<bool>,
    /// Prepared shells kept at the same time.
    pub max_warm_shells: Option<usize>,
    /// Folder with guest programs for further architectures.
    pub guest_dir: Option<PathBuf>,
}

/// Holds what one layer says about logging.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogConfig {
    /// How much is logged.
    pub level: Option<LogLevel>,
}

impl fmt::Debug for TerminalConfig {
    // Destructured, so that a new field cannot be forgotten.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            backend,
            cwd,
            timeout_seconds,
            max_timeout_seconds,
            kill_grace_seconds,
            output_limit_chars,
            spill_limit_mb,
            login_timeout_seconds,
            persist,
            env,
            env_remove,
            env_pass,
        } = self;
        formatter
            .debug_struct("TerminalConfig")
            .field("backend", backend)
            .field("cwd", cwd)
            .field("timeout_seconds", timeout_seconds)
            .field("max_timeout_seconds", max_timeout_seconds)
            .field("kill_grace_seconds", kill_grace_seconds)
            .field("output_limit_chars", output_limit_chars)
            .field("spill_limit_mb", spill_limit_mb)
            .field("login_timeout_seconds", login_timeout_seconds)
            .field("persist", persist)
            .field("env", &env.as_ref().map(masked))
            .field("env_remove", env_remove)
            .field("env_pass", env_pass)
            .finish()
    }
}

/// Returns the variables with the values of secret-looking names hidden.
pub(super) fn masked(variables: &BTreeMap<String, String>) -> BTreeMap<&str, &str> {
    let mask = |name: &String, value| if looks_secret(name) { HIDDEN } else { value };
    variables
        .iter()
        .map(|(name, value)| (name.as_str(), mask(name, value.as_str())))
        .collect()
}
