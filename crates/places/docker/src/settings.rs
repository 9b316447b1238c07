//! What a container shall be like.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The settings of a docker place.
///
/// The variables of commands are no part of it: they travel over the pipe, so that no value ever
/// shows up in a command line or in the engine's records.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct DockerSettings {
    /// The client program: a path, or a name to find in `PATH`. `None` looks for `docker`, then
    /// `podman`.
    pub program: Option<PathBuf>,
    /// The engine's address, such as `unix:///run/docker.sock`; `None` is the one the client
    /// program would use.
    pub engine: Option<String>,
    /// The image of a new container.
    pub image: String,
    /// A container of the user's to work in instead of one of ours.
    pub container: Option<String>,
    /// How many processors it may use; 0 is no limit.
    pub cpu: f64,
    /// How much memory it may use, in MB; 0 is no limit.
    pub memory_mb: u64,
    /// How large its filesystem may grow, in MB; 0 is no limit.
    pub disk_mb: u64,
    /// Whether it has a network.
    pub network: bool,
    /// Volumes, as `source:target[:options]`.
    pub volumes: Vec<String>,
    /// Runs everything as this user of the host.
    pub run_as: Option<HostUser>,
    /// The host folder that appears, writable, as `/workspace`.
    pub mount_cwd: Option<PathBuf>,
    /// The folder of this task that keeps `/root` and `/workspace`; `None` keeps them in memory.
    pub persistent: Option<PathBuf>,
    /// Files and folders of the host that appear read-only.
    pub read_only_mounts: Vec<ReadOnlyMount>,
    /// Further words for the client's `run`, behind all of ours.
    pub extra_args: Vec<String>,
    /// Whether the container outlives its last host.
    pub persist_across_processes: bool,
    /// After how long without activity it stops itself; zero is never.
    pub lifetime: Duration,
    /// The folder with guests for other platforms.
    pub guest_dir: Option<PathBuf>,
    /// Tells containers of several users of one engine apart; `None` is a hash of the home folder.
    pub profile: Option<String>,
}

/// Arguments of `run` that open a way out of the container.
const OPENINGS: &[&str] = &[
    "-v",
    "--volume",
    "--mount",
    "--privileged",
    "--device",
    "--pid",
    "--ipc",
    "--uts",
    "--userns",
    "--cgroup",
    "--cap-add",
    "--security-opt",
    "--net",
];

impl DockerSettings {
    /// Tells whether commands can harm nothing but the container itself: it is ours, nothing of
    /// the host can be written from it, and no argument opens it further.
    pub fn is_sealed(&self) -> bool {
        let read_only = |volume: &String| {
            let options = volume.split(':').nth(2).unwrap_or_default();
            options.split(',').any(|option| option == "ro")
        };
        self.container.is_none()
            && self.mount_cwd.is_none()
            && self.persistent.is_none()
            && self.volumes.iter().all(read_only)
            && !self
                .extra_args
                .iter()
                .any(|word| OPENINGS.iter().any(|opening| word.starts_with(opening)))
    }
}

impl Default for DockerSettings {
    fn default() -> Self {
        Self {
            program: None,
            engine: None,
            image: "nikolaik/python-nodejs:python3.11-nodejs20".to_owned(),
            container: None,
            cpu: 1.0,
            memory_mb: 5120,
            disk_mb: 51200,
            network: true,
            volumes: Vec::new(),
            run_as: None,
            mount_cwd: None,
            persistent: None,
            read_only_mounts: Vec::new(),
            extra_args: Vec::new(),
            persist_across_processes: true,
            lifetime: Duration::from_secs(300),
            guest_dir: None,
            profile: None,
        }
    }
}

/// A user of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostUser {
    /// The user's number.
    pub uid: u32,
    /// The number of the user's group.
    pub gid: u32,
}

impl HostUser {
    /// Returns whoever runs this program.
    pub fn current() -> Self {
        Self {
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
        }
    }
}

/// Something of the host that appears in the container and cannot be changed there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadOnlyMount {
    /// Where it is on the host.
    pub source: PathBuf,
    /// Where it appears.
    pub target: String,
}

impl DockerSettings {
    /// Returns every setting that shapes the container, by name, as a short hash. A reused
    /// container must agree in all of them. Its lifetime is not among them: no container is worth
    /// throwing away for another time-out.
    pub(crate) fn shape(&self) -> Vec<(&'static str, String)> {
        let settings = [
            ("image", text(&self.image)),
            ("cpu", text(&self.cpu)),
            ("memory", text(&self.memory_mb)),
            ("disk", text(&self.disk_mb)),
            ("network", text(&self.network)),
            ("volumes", text(&self.volumes)),
            ("user", text(&self.run_as)),
            ("workspace", text(&self.mount_cwd)),
            ("persistent", text(&self.persistent)),
            ("mounts", text(&self.read_only_mounts)),
            ("extra-args", text(&self.extra_args)),
            ("persist", text(&self.persist_across_processes)),
        ];
        settings
            .into_iter()
            .map(|(name, value)| (name, hash(value.as_bytes(), 8)))
            .collect()
    }

    /// Returns one hash over the whole shape.
    pub(crate) fn config_hash(&self) -> String {
        let all: Vec<String> = self
            .shape()
            .into_iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        hash(all.join("\n").as_bytes(), 16)
    }

    /// Returns the name under which containers of this home folder are told apart.
    pub(crate) fn profile_label(&self, home: &Path) -> String {
        match &self.profile {
            Some(profile) => label_value(profile),
            None => hash(home.as_os_str().as_encoded_bytes(), 16),
        }
    }
}

/// Writes a setting down so that equal settings give equal text.
fn text(setting: &impl Serialize) -> String {
    serde_json::to_string(setting).unwrap_or_else(|error| error.to_string())
}

/// Returns the first digits of a SHA-256.
pub(crate) fn hash(bytes: &[u8], digits: usize) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble & 0xf)]);
    Sha256::digest(bytes)
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(*byte)])
        .take(digits)
        .collect()
}

/// Makes a label's value safe: `[A-Za-z0-9_.-]`, at most 63 characters, `unknown` when empty.
pub(crate) fn label_value(text: &str) -> String {
    let safe: String = text
        .chars()
        .take(63)
        .map(|c| match c {
            'A'..='Z' | 'a'..='z' | '0'..='9' | '_' | '.' | '-' => c,
            _ => '_',
        })
        .collect();
    if safe.is_empty() {
        "unknown".to_owned()
    } else {
        safe
    }
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
