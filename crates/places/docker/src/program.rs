//! Finding the client program and the engine's socket.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use exoshell_place::{PlaceError, Trouble};

/// The clients we look for, best first.
const NAMES: &[&str] = &["docker", "podman"];

/// Where the clients are on a Mac whose `PATH` does not say so.
const KNOWN_PATHS: &[&str] = &[
    "/usr/local/bin/docker",
    "/opt/homebrew/bin/docker",
    "/Applications/Docker.app/Contents/Resources/bin/docker",
    "/opt/podman/bin/podman",
];

/// Finds the client program: the configured one, else the first one installed.
pub(crate) fn find(configured: Option<&Path>, path: Option<&OsStr>) -> Result<PathBuf, PlaceError> {
    if let Some(program) = configured {
        return find_configured(program, path).ok_or_else(|| {
            PlaceError::backend(
                Trouble::NoProgram,
                format!("`{}` is not an executable file", program.display()),
                "set `EXOSHELL_DOCKER_BINARY` to the path of `docker` or `podman`, or leave it out",
            )
        });
    }
    NAMES
        .iter()
        .find_map(|name| in_path(Path::new(name), path))
        .or_else(|| {
            let known = KNOWN_PATHS.iter().map(PathBuf::from);
            known.into_iter().find(|program| is_executable(program))
        })
        .ok_or_else(|| {
            PlaceError::backend(
                Trouble::NoProgram,
                "neither `docker` nor `podman` is installed",
                "install Docker or Podman, or set `EXOSHELL_DOCKER_BINARY` to its path",
            )
        })
}

fn find_configured(program: &Path, path: Option<&OsStr>) -> Option<PathBuf> {
    if program.components().count() == 1 && !program.has_root() {
        return in_path(program, path);
    }
    is_executable(program).then(|| program.to_path_buf())
}

fn in_path(name: &Path, path: Option<&OsStr>) -> Option<PathBuf> {
    std::env::split_paths(path?)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .find(|program| is_executable(program))
}

fn is_executable(program: &Path) -> bool {
    fs::metadata(program).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

/// What of the caller's environment decides which engine a client talks to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Surroundings {
    pub(crate) docker_host: Option<String>,
    pub(crate) docker_context: Option<String>,
    pub(crate) docker_config: Option<PathBuf>,
    pub(crate) container_host: Option<String>,
    pub(crate) runtime_dir: Option<PathBuf>,
    /// Whether the client was given stores of its own, which a service would not know.
    pub(crate) private_store: bool,
    pub(crate) root: bool,
}

impl Surroundings {
    /// Reads the variables that the clients themselves obey.
    pub(crate) fn current() -> Self {
        let text = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        Self {
            docker_host: text("DOCKER_HOST"),
            docker_context: text("DOCKER_CONTEXT"),
            docker_config: text("DOCKER_CONFIG")
                .map(PathBuf::from)
                .or_else(|| std::env::home_dir().map(|home| home.join(".docker"))),
            container_host: text("CONTAINER_HOST"),
            runtime_dir: text("XDG_RUNTIME_DIR").map(PathBuf::from),
            private_store: text("CONTAINERS_STORAGE_CONF").is_some()
                || text("CONTAINERS_CONF").is_some(),
            root: rustix::process::geteuid().is_root(),
        }
    }

    /// Returns the context in use, unless it is the default one.
    fn context(&self) -> Option<String> {
        let configured = || {
            let file = fs::read(self.docker_config.as_ref()?.join("config.json")).ok()?;
            let config: serde_json::Value = serde_json::from_slice(&file).ok()?;
            Some(config.get("currentContext")?.as_str()?.to_owned())
        };
        self.docker_context
            .clone()
            .or_else(configured)
            .filter(|name| name != "default" && !name.is_empty())
    }
}

/// Where the engine's socket may be found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Endpoint {
    /// A socket of this machine.
    Socket(PathBuf),
    /// The client knows: this context has to be looked up.
    Context(String),
    /// Somewhere we have no connection of our own to.
    Elsewhere,
}

/// Tells where the engine of `docker` listens, by the rules of that client.
pub(crate) fn docker_endpoint(engine: Option<&str>, around: &Surroundings) -> Endpoint {
    if let Some(address) = engine.or(around.docker_host.as_deref()) {
        return address_endpoint(address);
    }
    match around.context() {
        Some(name) => Endpoint::Context(name),
        None => Endpoint::Socket("/var/run/docker.sock".into()),
    }
}

/// Tells where an engine of `podman` would listen, if one is running as a service.
pub(crate) fn podman_endpoint(engine: Option<&str>, around: &Surroundings) -> Endpoint {
    if let Some(address) = engine.or(around.container_host.as_deref()) {
        return address_endpoint(address);
    }
    if around.private_store {
        return Endpoint::Elsewhere;
    }
    if around.root {
        return Endpoint::Socket("/run/podman/podman.sock".into());
    }
    match &around.runtime_dir {
        Some(folder) => Endpoint::Socket(folder.join("podman/podman.sock")),
        None => Endpoint::Elsewhere,
    }
}

/// Reads an address as the clients write it.
pub(crate) fn address_endpoint(address: &str) -> Endpoint {
    match address.strip_prefix("unix://") {
        Some(path) if path.starts_with('/') => Endpoint::Socket(path.into()),
        _ => Endpoint::Elsewhere,
    }
}

#[cfg(test)]
#[path = "program_tests.rs"]
mod tests;
