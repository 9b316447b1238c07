//! Which place a task uses: the settings of its backend, from the configuration and overrides.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use exoshell_place::{Place, PlaceError, Trouble};
use exoshell_place_command::{CommandPlace, CommandSettings};
use exoshell_place_docker::{DockerPlace, DockerSettings, HostUser, ReadOnlyMount};
use exoshell_place_local::LocalPlace;
use exoshell_place_ssh::{SshPlace, SshSettings};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::config::{Backend, DEFAULT_IMAGE, Resolved};
use crate::error::RuntimeError;
use crate::record::{TaskOverrides, file_name};
use crate::sync::{Direction, SyncEntry};

/// Says which place; kept in a task's record, so that another program finds it again.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum PlaceSpec {
    /// This machine.
    #[default]
    Local,
    /// A container.
    Docker(Box<DockerSettings>),
    /// A remote host.
    Ssh(Box<SshSettings>),
    /// Wherever a launcher leads.
    Command(Box<CommandSettings>),
}

impl PlaceSpec {
    /// Chooses the place of a task. `directory` is the caller's.
    pub(crate) fn choose(
        config: &Resolved,
        overrides: &TaskOverrides,
        task: &str,
        directory: Option<&Path>,
    ) -> Result<Self, RuntimeError> {
        match config.terminal.backend {
            Backend::Local => Ok(Self::Local),
            Backend::Docker | Backend::Podman => {
                let settings = docker(config, overrides, task, directory)?;
                Ok(Self::Docker(Box::new(settings)))
            }
            Backend::Ssh => Ok(Self::Ssh(Box::new(ssh(config)?))),
            Backend::Command => Ok(Self::Command(Box::new(command(config)))),
        }
    }

    /// Names the place: tasks with the same label share it.
    pub(crate) fn label(&self, task: &str) -> String {
        match self {
            Self::Local => "local".to_owned(),
            Self::Docker(settings) => match (&settings.container, &settings.program) {
                (Some(container), _) => format!("docker-container:{container}"),
                (None, None) => format!("docker:{task}"),
                (None, Some(program)) => {
                    // A colon ends the program's name, so it has none itself.
                    let program = program.display().to_string();
                    let program = program.replace('%', "%25").replace(':', "%3a");
                    format!("docker@{program}:{task}")
                }
            },
            Self::Ssh(settings) => {
                let user = settings.user.as_deref().unwrap_or_default();
                let port = settings.port.unwrap_or_default();
                format!("ssh:{user}@{}:{port}", settings.host)
            }
            Self::Command(settings) => {
                let words = settings.launch.join("\0");
                let name = short_hex(&Sha256::digest(words.as_bytes()));
                if settings.is_per_task() {
                    format!("command:{name}:{task}")
                } else {
                    format!("command:{name}")
                }
            }
        }
    }

    /// Tells whether commands run on this machine, in the caller's environment.
    pub(crate) const fn is_local(&self) -> bool {
        matches!(self, Self::Local)
    }

    /// Tells whether commands run in a container, with a filesystem of its own.
    pub(crate) const fn is_container(&self) -> bool {
        matches!(self, Self::Docker(_))
    }

    /// Tells whether commands run on a host that others share.
    pub(crate) const fn is_remote_host(&self) -> bool {
        matches!(self, Self::Ssh(_))
    }

    /// Tells whether removing the place ends everything in it, whatever its guest says.
    pub(crate) const fn is_disposable(&self) -> bool {
        matches!(self, Self::Docker(settings) if settings.container.is_none())
    }

    /// Tells whether the guard asks about commands there: not where they can harm nothing but a
    /// container of ours that can be thrown away.
    pub(crate) fn is_checked(&self) -> bool {
        match self {
            Self::Docker(settings) => !settings.is_sealed(),
            Self::Local | Self::Ssh(_) | Self::Command(_) => true,
        }
    }

    /// Tells whether files reach the place over the pipe only.
    pub(crate) const fn takes_files(&self) -> bool {
        match self {
            Self::Local => false,
            Self::Docker(settings) => settings.container.is_some(),
            Self::Ssh(_) | Self::Command(_) => true,
        }
    }

    /// Builds the place. Touches nothing.
    pub(crate) fn build(
        &self,
        config: &Resolved,
        task: &str,
    ) -> Result<Arc<dyn Place>, PlaceError> {
        let home = &config.home;
        Ok(match self {
            Self::Local => Arc::new(
                LocalPlace::new(home)
                    .with_guest_dir(config.places.guest_dir.clone())
                    .with_linger(config.places.linger),
            ),
            Self::Docker(settings) => Arc::new(DockerPlace::new(*settings.clone(), home, task)),
            Self::Ssh(settings) => Arc::new(SshPlace::new(home, *settings.clone())?),
            Self::Command(settings) => Arc::new(CommandPlace::new(home, *settings.clone(), task)?),
        })
    }
}

fn docker(
    config: &Resolved,
    overrides: &TaskOverrides,
    task: &str,
    directory: Option<&Path>,
) -> Result<DockerSettings, RuntimeError> {
    let (docker, container) = (&config.docker, &config.container);
    let program = match (&docker.program, config.terminal.backend) {
        (Some(program), _) => Some(program.clone()),
        (None, Backend::Podman) => Some(PathBuf::from("podman")),
        (None, _) => None,
    };
    let megabytes = |value: usize| u64::try_from(value).unwrap_or(u64::MAX);
    let image = overrides.image.clone().or_else(|| docker.image.clone());
    let sandboxes = config
        .places
        .sandbox_dir
        .clone()
        .unwrap_or_else(|| config.home.join("sandboxes"));
    Ok(DockerSettings {
        program,
        image: image.unwrap_or_else(|| DEFAULT_IMAGE.to_owned()),
        container: overrides
            .container
            .clone()
            .or_else(|| docker.container.clone()),
        cpu: overrides.cpu.unwrap_or(container.cpu),
        memory_mb: megabytes(overrides.memory_mb.unwrap_or(container.memory_mb)),
        disk_mb: megabytes(overrides.disk_mb.unwrap_or(container.disk_mb)),
        network: overrides.network.unwrap_or(docker.network),
        volumes: volumes(config)?,
        run_as: docker.run_as_host_user.then(HostUser::current),
        mount_cwd: directory.filter(|_| docker.mount_cwd).map(Path::to_owned),
        persistent: container
            .persistent
            .then(|| sandboxes.join("docker").join(file_name(task))),
        read_only_mounts: read_only_mounts(config)?,
        extra_args: docker.extra_args.clone(),
        persist_across_processes: docker.persist,
        lifetime: config.places.lifetime,
        guest_dir: config.places.guest_dir.clone(),
        profile: Some(profile(&config.home)),
        ..DockerSettings::default()
    })
}

/// Turns the configured files into mounts: a container sees this machine's own.
fn read_only_mounts(config: &Resolved) -> Result<Vec<ReadOnlyMount>, RuntimeError> {
    let entries = sync_entries(config)?;
    Ok(entries
        .into_iter()
        .filter(|entry| entry.direction == Direction::In)
        .map(|entry| ReadOnlyMount {
            target: mount_target(&entry),
            source: entry.local,
        })
        .collect())
}

/// Returns the volumes: those of the user, then the configured files that go both ways.
fn volumes(config: &Resolved) -> Result<Vec<String>, RuntimeError> {
    let mut volumes = config.docker.volumes.clone();
    for entry in sync_entries(config)? {
        if entry.direction == Direction::Both && entry.local.exists() {
            let target = mount_target(&entry);
            volumes.push(format!("{}:{target}", entry.local.display()));
        }
    }
    Ok(volumes)
}

fn mount_target(entry: &SyncEntry) -> String {
    match entry.remote.strip_prefix("~/") {
        Some(rest) => format!("/root/{rest}"),
        None => entry.remote.clone(),
    }
}

/// Reads the configured files.
pub(crate) fn sync_entries(config: &Resolved) -> Result<Vec<SyncEntry>, RuntimeError> {
    let home = std::env::home_dir();
    let texts = config.sync.paths.iter().map(String::as_str);
    SyncEntry::parse_all(texts, home.as_deref()).map_err(|bad| {
        let hint = "write `LOCAL:REMOTE`, `LOCAL:REMOTE:ro` or `LOCAL:REMOTE:rw` in `sync.paths`";
        PlaceError::backend(Trouble::BadSetting, bad.to_string(), hint).into()
    })
}

fn ssh(config: &Resolved) -> Result<SshSettings, RuntimeError> {
    let ssh = &config.ssh;
    let host = ssh.host.clone().ok_or_else(|| {
        PlaceError::backend(
            Trouble::BadSetting,
            "the backend `ssh` needs a host",
            "set `ssh.host` in the configuration (or TERMINAL_SSH_HOST), or use `--host`",
        )
    })?;
    Ok(SshSettings {
        host,
        user: ssh.user.clone(),
        port: u16::try_from(ssh.port).ok().filter(|port| *port != 0),
        key: ssh.key.clone(),
        options: ssh.options.clone(),
        profile: profile(&config.home),
        guest_dir: config.places.guest_dir.clone(),
        ..SshSettings::default()
    })
}

fn command(config: &Resolved) -> CommandSettings {
    let command = &config.command;
    let given = |words: &Vec<String>| (!words.is_empty()).then(|| words.clone());
    CommandSettings {
        launch: command.launch.clone(),
        put: given(&command.put),
        destroy: given(&command.destroy),
        guest_path: command.guest_path.clone(),
        profile: profile(&config.home),
        guest_dir: config.places.guest_dir.clone(),
        ..CommandSettings::default()
    }
}

/// Names this home on this machine, for whatever other machines and engines keep for it.
pub(crate) fn profile(home: &Path) -> String {
    let mut hasher = Sha256::new();
    for path in ["/etc/machine-id", "/proc/sys/kernel/hostname"] {
        hasher.update(std::fs::read(path).unwrap_or_default());
    }
    let home = home
        .canonicalize()
        .unwrap_or_else(|_missing| home.to_owned());
    hasher.update(home.as_os_str().as_encoded_bytes());
    short_hex(&hasher.finalize())
}

/// Returns the first 8 bytes of a digest as hexadecimal digits.
pub(crate) fn short_hex(digest: &[u8]) -> String {
    let number = digest
        .iter()
        .take(8)
        .fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte));
    format!("{number:016x}")
}

#[cfg(test)]
#[path = "spec_tests.rs"]
mod tests;
