//! The settings of backends beyond this machine, as the rest of the system uses them.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use super::schema::masked;

/// Image of containers when nobody says.
pub const DEFAULT_IMAGE: &str = "nikolaik/python-nodejs:python3.11-nodejs20";

/// Holds what containers may use.
#[derive(Debug, Clone, PartialEq)]
pub struct Container {
    /// Processors; 0 = no limit.
    pub cpu: f64,
    /// Megabytes of memory; 0 = no limit.
    pub memory_mb: usize,
    /// Megabytes the filesystem may grow by; 0 = no limit.
    pub disk_mb: usize,
    /// Whether `/root` and `/workspace` are kept on this machine.
    pub persistent: bool,
}

/// Holds how Docker and Podman are used.
#[derive(Clone, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a key of the configuration"
)]
pub struct Docker {
    /// Image of new containers.
    pub image: Option<String>,
    /// A container that exists, to be used instead of making one.
    pub container: Option<String>,
    /// The client program; `None` = `docker`, else `podman`.
    pub program: Option<PathBuf>,
    /// Whether there is a network.
    pub network: bool,
    /// Mounts, as `SOURCE:TARGET[:OPTIONS]`.
    pub volumes: Vec<String>,
    /// Variables of commands.
    pub env: BTreeMap<String, String>,
    /// Names of forwarded variables.
    pub forward_env: Vec<String>,
    /// Whether to run as the calling user.
    pub run_as_host_user: bool,
    /// Whether the caller's directory is mounted at `/workspace`.
    pub mount_cwd: bool,
    /// Further arguments of `docker run`.
    pub extra_args: Vec<String>,
    /// Whether containers stay for the next caller.
    pub persist: bool,
    /// Whether old containers of ours are removed.
    pub reaper: bool,
}

/// Holds the remote host.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ssh {
    /// Host name or alias.
    pub host: Option<String>,
    /// User name; `None` = as ssh chooses.
    pub user: Option<String>,
    /// Port; 0 = as ssh chooses.
    pub port: usize,
    /// Private key; `None` = as ssh chooses.
    pub key: Option<PathBuf>,
    /// Further options, as `Name=value`.
    pub options: Vec<String>,
}

/// Holds the launcher.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Command {
    /// Starts a program in the place.
    pub launch: Vec<String>,
    /// Copies a file to the place; empty = through the pipe.
    pub put: Vec<String>,
    /// Removes the place; empty = nothing to remove.
    pub destroy: Vec<String>,
    /// Where the guest is in the place; `None` = found by itself.
    pub guest_path: Option<String>,
}

/// Holds which files remote places get.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sync {
    /// Files and folders, as `LOCAL:REMOTE[:ro|:rw]`.
    pub paths: Vec<String>,
}

impl Default for Container {
    fn default() -> Self {
        Self {
            cpu: 1.0,
            memory_mb: 5120,
            disk_mb: 51_200,
            persistent: false,
        }
    }
}

impl Default for Docker {
    fn default() -> Self {
        Self {
            image: Some(DEFAULT_IMAGE.to_owned()),
            container: None,
            program: None,
            network: true,
            volumes: Vec::new(),
            env: BTreeMap::new(),
            forward_env: Vec::new(),
            run_as_host_user: false,
            mount_cwd: false,
            extra_args: Vec::new(),
            persist: true,
            reaper: true,
        }
    }
}

impl fmt::Debug for Docker {
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
            .debug_struct("Docker")
            .field("image", image)
            .field("container", container)
            .field("program", program)
            .field("network", network)
            .field("volumes", volumes)
            .field("env", &masked(env))
            .field("forward_env", forward_env)
            .field("run_as_host_user", run_as_host_user)
            .field("mount_cwd", mount_cwd)
            .field("extra_args", extra_args)
            .field("persist", persist)
            .field("reaper", reaper)
            .finish()
    }
}
