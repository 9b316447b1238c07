//! Environment variables: their names, and a captured copy of them.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Folder of configuration, state and sockets; `~/.exoshell` without it.
pub const EXOSHELL_HOME: &str = "EXOSHELL_HOME";
/// Path of the configuration file; `config.toml` in the home folder without it.
pub const EXOSHELL_CONFIG: &str = "EXOSHELL_CONFIG";
/// Whether each task works in a folder of its own (`places.batch`).
pub const EXOSHELL_BATCH: &str = "EXOSHELL_BATCH";
/// Folder with guest programs for further architectures (`places.guest_dir`).
pub const EXOSHELL_GUEST_DIR: &str = "EXOSHELL_GUEST_DIR";
/// How much is logged (`log.level`).
pub const EXOSHELL_LOG: &str = "EXOSHELL_LOG";
/// Time zone (`TZ`) of `execute_code` scripts.
pub const EXOSHELL_TIMEZONE: &str = "EXOSHELL_TIMEZONE";
/// Set by gateways: nobody sits at a terminal (a name of the session).
pub const EXOSHELL_GATEWAY_SESSION: &str = "EXOSHELL_GATEWAY_SESSION";
/// Set by gateways that answer approvals themselves.
pub const EXOSHELL_EXEC_ASK: &str = "EXOSHELL_EXEC_ASK";
/// Prefix of all variables of ours; commands never see them.
pub const EXOSHELL_PREFIX: &str = "EXOSHELL_";

/// Backend that tasks use (`terminal.backend`).
pub const TERMINAL_ENV: &str = "TERMINAL_ENV";
/// Directory that sessions start in (`terminal.cwd`).
pub const TERMINAL_CWD: &str = "TERMINAL_CWD";
/// Seconds a foreground command may take (`terminal.timeout_seconds`).
pub const TERMINAL_TIMEOUT: &str = "TERMINAL_TIMEOUT";
/// Longest timeout in seconds that a call may ask for (`terminal.max_timeout_seconds`).
pub const TERMINAL_MAX_FOREGROUND_TIMEOUT: &str = "TERMINAL_MAX_FOREGROUND_TIMEOUT";
/// Seconds without activity before a place is cleaned up (`places.lifetime_seconds`).
pub const TERMINAL_LIFETIME_SECONDS: &str = "TERMINAL_LIFETIME_SECONDS";
/// Disk use in GB above which `info` warns (`places.disk_warning_gb`).
pub const TERMINAL_DISK_WARNING_GB: &str = "TERMINAL_DISK_WARNING_GB";
/// Folder that batch work directories are made in (`places.sandbox_dir`).
pub const TERMINAL_SANDBOX_DIR: &str = "TERMINAL_SANDBOX_DIR";
/// Processors a container may use (`container.cpu`).
pub const TERMINAL_CONTAINER_CPU: &str = "TERMINAL_CONTAINER_CPU";
/// Megabytes of memory a container may use (`container.memory_mb`).
pub const TERMINAL_CONTAINER_MEMORY: &str = "TERMINAL_CONTAINER_MEMORY";
/// Megabytes a container's filesystem may grow by (`container.disk_mb`).
pub const TERMINAL_CONTAINER_DISK: &str = "TERMINAL_CONTAINER_DISK";
/// Whether `/root` and `/workspace` are kept (`container.persistent`).
pub const TERMINAL_CONTAINER_PERSISTENT: &str = "TERMINAL_CONTAINER_PERSISTENT";
/// Image of containers (`docker.image`).
pub const TERMINAL_DOCKER_IMAGE: &str = "TERMINAL_DOCKER_IMAGE";
/// Whether containers have a network (`docker.network`).
pub const TERMINAL_DOCKER_NETWORK: &str = "TERMINAL_DOCKER_NETWORK";
/// Mounts of containers, as a JSON list (`docker.volumes`).
pub const TERMINAL_DOCKER_VOLUMES: &str = "TERMINAL_DOCKER_VOLUMES";
/// Variables in containers, as a JSON object (`docker.env`).
pub const TERMINAL_DOCKER_ENV: &str = "TERMINAL_DOCKER_ENV";
/// Names of forwarded variables, as a JSON list (`docker.forward_env`).
pub const TERMINAL_DOCKER_FORWARD_ENV: &str = "TERMINAL_DOCKER_FORWARD_ENV";
/// Whether containers run as the calling user (`docker.run_as_host_user`).
pub const TERMINAL_DOCKER_RUN_AS_HOST_USER: &str = "TERMINAL_DOCKER_RUN_AS_HOST_USER";
/// Whether the caller's directory is mounted (`docker.mount_cwd`).
pub const TERMINAL_DOCKER_MOUNT_CWD_TO_WORKSPACE: &str = "TERMINAL_DOCKER_MOUNT_CWD_TO_WORKSPACE";
/// Further arguments of `docker run`, as a JSON list (`docker.extra_args`).
pub const TERMINAL_DOCKER_EXTRA_ARGS: &str = "TERMINAL_DOCKER_EXTRA_ARGS";
/// Whether containers stay for the next caller (`docker.persist`).
pub const TERMINAL_DOCKER_PERSIST_ACROSS_PROCESSES: &str =
    "TERMINAL_DOCKER_PERSIST_ACROSS_PROCESSES";
/// Whether old containers of ours are removed (`docker.reaper`).
pub const TERMINAL_DOCKER_ORPHAN_REAPER: &str = "TERMINAL_DOCKER_ORPHAN_REAPER";
/// The client program of Docker or Podman (`docker.program`).
pub const EXOSHELL_DOCKER_BINARY: &str = "EXOSHELL_DOCKER_BINARY";
/// Remote host (`ssh.host`).
pub const TERMINAL_SSH_HOST: &str = "TERMINAL_SSH_HOST";
/// User on the remote host (`ssh.user`).
pub const TERMINAL_SSH_USER: &str = "TERMINAL_SSH_USER";
/// Port of the remote host (`ssh.port`).
pub const TERMINAL_SSH_PORT: &str = "TERMINAL_SSH_PORT";
/// Private key for the remote host (`ssh.key`).
pub const TERMINAL_SSH_KEY: &str = "TERMINAL_SSH_KEY";

/// The user's home folder, for `~` and the default of [`EXOSHELL_HOME`].
pub const HOME: &str = "HOME";
/// Password for sudo; commands never see it.
pub const SUDO_PASSWORD: &str = "SUDO_PASSWORD";

/// Holds a copy of a process's environment: its variables and its directory.
///
/// The debug form shows names only: values hold secrets.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
    directory: Option<PathBuf>,
}

impl Environment {
    /// Captures the environment of this process.
    pub fn from_process() -> Self {
        Self {
            variables: std::env::vars_os().collect(),
            directory: std::env::current_dir().ok(),
        }
    }

    /// Makes an environment of the given variables, without a directory.
    pub fn from_pairs<N, V>(pairs: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<OsString>,
        V: Into<OsString>,
    {
        let variables = pairs
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        Self {
            variables,
            directory: None,
        }
    }

    /// Returns this environment with the given directory, which relative paths start from.
    #[must_use]
    pub fn in_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = Some(directory.into());
        self
    }

    /// Returns the value of a variable; an empty one counts as unset.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
            .filter(|value| !value.is_empty())
    }

    /// Iterates over all variables, empty ones too, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.variables
            .iter()
            .map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// Returns the current directory, if it was known.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Returns the user's home folder, if it is set.
    pub fn user_home(&self) -> Option<&Path> {
        self.get(HOME).map(Path::new)
    }
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Environment")
            .field("names", &self.variables.keys().collect::<Vec<_>>())
            .field("directory", &self.directory)
            .finish()
    }
}

#[cfg(test)]
#[path = "env_tests.rs"]
mod tests;
