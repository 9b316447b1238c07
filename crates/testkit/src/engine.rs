//! The container engines that `cargo xtask test` starts.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::machine::{attempt, run};
use crate::wanted;

/// The images that both engines have.
pub mod image {
    /// Debian with procps, python3, less and vi.
    pub const DEBIAN: &str = "exoshell-test/debian";
    /// A busybox and nothing else: no bash, no coreutils.
    pub const BUSYBOX: &str = "exoshell-test/busybox";
    /// Debian with a default user that is not root, in its own home.
    pub const USER: &str = "exoshell-test/user";
    /// Debian with an entrypoint that prints its words and runs none of them.
    pub const ENTRYPOINT: &str = "exoshell-test/entrypoint";
    /// Debian without `ps` and `timeout`.
    pub const SLIM: &str = "exoshell-test/slim";
    /// The name, in the registry alone, of an image with six layers of 4 MiB.
    pub const LAYERS: &str = "exoshell-test/layers";
}

/// Docker or Podman, for what a test asserts and for what it makes itself.
#[derive(Debug, Clone)]
pub struct Engine {
    program: &'static str,
    /// Words before the program, when another user has to run it.
    prefix: Vec<String>,
    variables: Vec<(String, String)>,
}

impl Engine {
    /// Returns the Docker engine.
    #[track_caller]
    pub fn docker() -> Self {
        Self {
            program: "docker",
            prefix: Vec::new(),
            variables: vec![("DOCKER_HOST".to_owned(), wanted("DOCKER_HOST"))],
        }
    }

    /// Returns root's Podman.
    #[track_caller]
    pub fn podman() -> Self {
        Self {
            program: "podman",
            prefix: Vec::new(),
            variables: podman_variables(""),
        }
    }

    /// Returns the Podman of a throw-away user, or why this machine has none.
    #[track_caller]
    pub fn rootless() -> Result<Self, String> {
        if let Ok(why) = std::env::var("EXOSHELL_TEST_ROOTLESS_UNAVAILABLE") {
            return Err(why);
        }
        let user = wanted("ROOTLESS_USER");
        let mut variables = podman_variables("ROOTLESS_");
        variables.push(("HOME".to_owned(), wanted("ROOTLESS_HOME")));
        variables.push(("XDG_RUNTIME_DIR".to_owned(), wanted("ROOTLESS_RUNTIME_DIR")));
        let words = [
            "setpriv",
            "--reuid",
            &user,
            "--regid",
            &user,
            "--init-groups",
        ];
        let mut prefix: Vec<String> = words.map(str::to_owned).to_vec();
        prefix.push("--inh-caps=-all".to_owned());
        Ok(Self {
            program: "podman",
            prefix,
            variables,
        })
    }

    /// Returns the name of the client program.
    pub fn program(&self) -> &str {
        self.program
    }

    /// Returns the words that make a program run as this engine's user; none for root.
    pub fn prefix(&self) -> &[String] {
        &self.prefix
    }

    /// Returns the variables that make a client use this engine.
    pub fn variables(&self) -> &[(String, String)] {
        &self.variables
    }

    /// Describes a call of the client.
    pub fn command(&self) -> Command {
        let mut words = self.prefix.iter().map(String::as_str).chain([self.program]);
        let mut command = Command::new(words.next().unwrap_or(self.program));
        command
            .args(words)
            .env_remove("DOCKER_CONTEXT")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir("/");
        command
    }

    /// Runs the client, asserts that it did well, and returns what it printed.
    #[track_caller]
    pub fn run(&self, words: &[&str]) -> String {
        run(self.command().args(words))
    }

    /// Returns the commands that run in a container, as the engine sees them.
    #[track_caller]
    pub fn top(&self, container: &str) -> Vec<String> {
        let listing = match self.program {
            "docker" => self.run(&["top", container, "-o", "pid,args"]),
            _ => self.run(&["top", container, "hpid", "args"]),
        };
        listing
            .lines()
            .skip(1)
            .filter_map(|line| line.trim().split_once(char::is_whitespace))
            .map(|(_, command)| command.trim().to_owned())
            .collect()
    }

    /// Returns all that the engine knows of a container.
    #[track_caller]
    pub fn inspect(&self, container: &str) -> Value {
        let text = self.run(&["container", "inspect", container]);
        serde_json::from_str::<Value>(&text).unwrap()[0].take()
    }

    /// Returns the ids of the containers that have a label, `name` or `name=value`, whatever they
    /// are doing.
    #[track_caller]
    pub fn with_label(&self, label: &str) -> Vec<String> {
        let filter = format!("label={label}");
        let ids = self.run(&["ps", "--all", "--quiet", "--no-trunc", "--filter", &filter]);
        ids.lines().map(str::to_owned).collect()
    }

    /// Returns the ids of the containers that mount something of a folder: those that a test with
    /// its own `EXOSHELL_HOME` made, since the guest is mounted from there.
    #[track_caller]
    pub fn mounting(&self, folder: &Path) -> Vec<String> {
        let ids = self.run(&["ps", "--all", "--quiet", "--no-trunc"]);
        if ids.is_empty() {
            return Vec::new();
        }
        // Another test's container may be gone by now; the answer still has the rest.
        let output = self
            .command()
            .args(["container", "inspect"])
            .args(ids.lines())
            .output()
            .unwrap();
        let all: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
        all.as_array()
            .into_iter()
            .flatten()
            .filter(|container| {
                let mounts = container["Mounts"].as_array().into_iter().flatten();
                mounts
                    .filter_map(|mount| mount["Source"].as_str())
                    .any(|source| Path::new(source).starts_with(folder))
            })
            .filter_map(|container| container["Id"].as_str().map(str::to_owned))
            .collect()
    }

    /// Removes a container, running or not; one that is gone already is fine.
    pub fn remove(&self, container: &str) {
        attempt(
            self.command()
                .args(["rm", "--force", "--volumes", container]),
        );
    }

    /// Starts a container of the test's own, which is removed at its end.
    #[track_caller]
    pub fn start(&self, words: &[&str]) -> Container {
        let mut command = self.command();
        let id = run(command.args(["run", "--detach"]).args(words));
        Container {
            engine: self.clone(),
            id,
        }
    }
}

#[track_caller]
fn podman_variables(prefix: &str) -> Vec<(String, String)> {
    [
        "CONTAINERS_CONF",
        "CONTAINERS_STORAGE_CONF",
        "CONTAINERS_REGISTRIES_CONF",
    ]
    .map(|name| (name.to_owned(), wanted(&format!("{prefix}{name}"))))
    .to_vec()
}

/// A container that a test made without the product.
#[derive(Debug)]
pub struct Container {
    engine: Engine,
    id: String,
}

impl Container {
    /// Returns its id.
    pub fn id(&self) -> &str {
        &self.id
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        self.engine.remove(&self.id);
    }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;
