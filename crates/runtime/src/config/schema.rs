//! One layer of configuration: what a file, the environment or flags say.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::choices::{ApprovalMode, Backend, LogLevel, Persist};
use super::secret::HIDDEN;
use exoshell_redact::looks_secret;

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
    /// Table `[container]`.
    pub container: ContainerConfig,
    /// Table `[docker]`.
    pub docker: DockerConfig,
    /// Table `[ssh]`.
    pub ssh: SshConfig,
    /// Table `[command]`.
    pub command: CommandConfig,
    /// Table `[sync]`.
    pub sync: SyncConfig,
    /// Table `[approval]`.
    pub approval: ApprovalConfig,
    /// Table `[guard]`.
    pub guard: GuardConfig,
    /// Table `[secrets]`.
    pub secrets: SecretsConfig,
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

/// Holds what one layer says about what containers may use; see [`Container`](super::Container).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ContainerConfig {
    /// Processors.
    pub cpu: Option<f64>,
    /// Megabytes of memory.
    pub memory_mb: Option<usize>,
    /// Megabytes the filesystem may grow by.
    pub disk_mb: Option<usize>,
    /// Whether `/root` and `/workspace` are kept on this machine.
    pub persistent: Option<bool>,
}

/// Holds what one layer says about Docker and Podman; see [`Docker`](super::Docker).
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DockerConfig {
    /// Image of new containers.
    pub image: Option<String>,
    /// A container that exists.
    pub container: Option<String>,
    /// The client program.
    pub program: Option<PathBuf>,
    /// Whether there is a network.
    pub network: Option<bool>,
    /// Mounts.
    pub volumes: Option<Vec<String>>,
    /// Variables of commands.
    pub env: Option<BTreeMap<String, String>>,
    /// Names of forwarded variables.
    pub forward_env: Option<Vec<String>>,
    /// Whether to run as the calling user.
    pub run_as_host_user: Option<bool>,
    /// Whether the caller's directory is mounted.
    pub mount_cwd: Option<bool>,
    /// Further arguments of `docker run`.
    pub extra_args: Option<Vec<String>>,
    /// Whether containers stay for the next caller.
    pub persist: Option<bool>,
    /// Whether old containers of ours are removed.
    pub reaper: Option<bool>,
}

/// Holds what one layer says about remote hosts; see [`Ssh`](super::Ssh).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SshConfig {
    /// Host name or alias.
    pub host: Option<String>,
    /// User name.
    pub user: Option<String>,
    /// Port.
    pub port: Option<usize>,
    /// Private key.
    pub key: Option<PathBuf>,
    /// Further options.
    pub options: Option<Vec<String>>,
}

/// Holds what one layer says about a launcher; see [`Command`](super::Command).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CommandConfig {
    /// Starts a program in the place.
    pub launch: Option<Vec<String>>,
    /// Copies a file to the place.
    pub put: Option<Vec<String>>,
    /// Removes the place.
    pub destroy: Option<Vec<String>>,
    /// Where the guest is in the place.
    pub guest_path: Option<String>,
}

/// Holds what one layer says about files for remote places; see [`Sync`](super::Sync).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SyncConfig {
    /// Files and folders.
    pub paths: Option<Vec<String>>,
}

/// Holds what one layer says about asking a person; see [`Approval`](super::Approval).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ApprovalConfig {
    /// What happens to commands that need a yes.
    pub mode: Option<ApprovalMode>,
    /// What was allowed for good.
    pub allow: Option<Vec<String>>,
    /// Seconds a person has to answer.
    pub timeout_seconds: Option<f64>,
    /// Seconds a call waits for an answer from another program.
    pub wait_seconds: Option<f64>,
    /// Seconds a question can be answered from another program.
    pub expiry_seconds: Option<f64>,
}

/// Holds the user's own rules that one layer gives; see [`GuardRules`](super::GuardRules).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GuardConfig {
    /// Commands that pass.
    pub allow: Option<Vec<String>>,
    /// Commands that are asked about.
    pub ask: Option<Vec<String>>,
    /// Commands that never run.
    pub deny: Option<Vec<String>>,
    /// Paths that may be written.
    pub allow_paths: Option<Vec<String>>,
    /// Paths whose writing is asked about.
    pub ask_paths: Option<Vec<String>>,
    /// Paths that are never written.
    pub deny_paths: Option<Vec<String>>,
}

/// Holds what one layer says about hiding secrets; see [`Secrecy`](super::Secrecy).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SecretsConfig {
    /// Whether secrets are hidden.
    pub redact: Option<bool>,
    /// Names of variables whose values are not hidden.
    pub pass: Option<Vec<String>>,
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

impl fmt::Debug for DockerConfig {
    // Destructured, so that a new field cannot be forgotten.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            image,
            container,
            program,
            network,
            volumes,
            env,
            forward_env,
            run_as_host_user,
            mount_cwd,
            extra_args,
            persist,
            reaper,
        } = self;
        formatter
            .debug_struct("DockerConfig")
            .field("image", image)
            .field("container", container)
            .field("program", program)
            .field("network", network)
            .field("volumes", volumes)
            .field("env", &env.as_ref().map(masked))
            .field("forward_env", forward_env)
            .field("run_as_host_user", run_as_host_user)
            .field("mount_cwd", mount_cwd)
            .field("extra_args", extra_args)
            .field("persist", persist)
            .field("reaper", reaper)
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
