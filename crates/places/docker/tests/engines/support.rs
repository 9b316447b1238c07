//! Places on the engines that `cargo xtask test` starts.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use exoshell_place::{ExecEvent, Link, LinkOptions, Pipe, Place as _, Progress};
use exoshell_place_docker::{DockerPlace, DockerSettings};
use exoshell_wire::{Exec, Outcome, SessionRef, SessionSpec};
use tempfile::TempDir;

/// Debian with procps.
pub(crate) const DEBIAN: &str = "exoshell-test/debian";
/// A busybox and nothing else.
pub(crate) const BUSYBOX: &str = "exoshell-test/busybox";
/// Debian with a default user that is not root.
pub(crate) const USER: &str = "exoshell-test/user";
/// Debian with an entrypoint that runs nothing.
pub(crate) const ENTRYPOINT: &str = "exoshell-test/entrypoint";

/// Returns a variable that `cargo xtask test` sets.
pub(crate) fn wanted(name: &str) -> String {
    let name = format!("EXOSHELL_TEST_{name}");
    std::env::var(&name)
        .unwrap_or_else(|_| panic!("`{name}` is not set: run this test with `cargo xtask test`"))
}

/// A home folder of one test, and the containers made from it; both go at its end.
pub(crate) struct World {
    pub(crate) home: TempDir,
    program: Option<PathBuf>,
    engine: Option<String>,
    podman: bool,
}

impl World {
    /// Works with Docker.
    pub(crate) fn docker() -> Self {
        Self {
            home: TempDir::new().unwrap(),
            program: None,
            engine: Some(wanted("DOCKER_HOST")),
            podman: false,
        }
    }

    /// Works with root's Podman, through a program that knows the test's set-up.
    pub(crate) fn podman() -> Self {
        let home = TempDir::new().unwrap();
        let program = home.path().join("podman");
        let exports = [
            "CONTAINERS_CONF",
            "CONTAINERS_STORAGE_CONF",
            "CONTAINERS_REGISTRIES_CONF",
        ]
        .map(|name| format!("export {name}='{}'\n", wanted(name)))
        .concat();
        let script = format!("#!/bin/sh\n{exports}exec podman \"$@\"\n");
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Self {
            home,
            program: Some(program),
            engine: None,
            podman: true,
        }
    }

    /// Returns settings for an image on this engine.
    pub(crate) fn settings(&self, image: &str) -> DockerSettings {
        DockerSettings {
            program: self.program.clone(),
            engine: self.engine.clone(),
            image: image.to_owned(),
            ..DockerSettings::default()
        }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.home.path().join("home")
    }

    pub(crate) fn place(&self, settings: DockerSettings, task: &str) -> DockerPlace {
        DockerPlace::new(settings, self.home(), task)
    }

    /// Runs the engine's client and returns what it printed.
    pub(crate) fn client(&self, words: &[&str]) -> String {
        let output = self.command().args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub(crate) fn command(&self) -> Command {
        match (&self.program, &self.engine) {
            (Some(program), _) => Command::new(program),
            (None, engine) => {
                let mut command = Command::new("docker");
                command.args(["-H", engine.as_deref().unwrap()]);
                command
            }
        }
    }

    /// Returns the containers of this test.
    pub(crate) fn containers(&self) -> Vec<String> {
        let ids = self.client(&["ps", "--all", "--quiet", "--filter", "label=exoshell=1"]);
        let home = self.home.path().display().to_string();
        ids.lines()
            .filter(|id| {
                let record = self.command().args(["inspect", id]).output().unwrap();
                String::from_utf8_lossy(&record.stdout).contains(&home)
            })
            .map(str::to_owned)
            .collect()
    }

    pub(crate) fn is_podman(&self) -> bool {
        self.podman
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for id in self.containers() {
            let mut remove = self.command();
            let _ = remove.args(["rm", "--force", "--volumes", &id]).output();
        }
    }
}

/// Collects progress.
pub(crate) fn listener() -> (Progress, Arc<Mutex<Vec<String>>>) {
    let steps = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&steps);
    let progress = Progress::new(move |step| heard.lock().unwrap().push(step.to_owned()));
    (progress, steps)
}

/// Opens a place and talks to its guest.
pub(crate) async fn open(place: &DockerPlace) -> Link {
    link(place.open(&Progress::default()).await.unwrap()).await
}

pub(crate) async fn link(pipe: Pipe) -> Link {
    let options = LinkOptions {
        build: "test".to_owned(),
        linger: true,
        max_warm_shells: 4,
        heartbeat: None,
    };
    Link::open(pipe, &options).await.unwrap()
}

/// A command in a session of its own.
pub(crate) fn exec() -> Exec {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    Exec {
        id: format!("test-{}-{number}", std::process::id()),
        session: SessionRef::OneShot(SessionSpec {
            cwd: None,
            env: None,
            env_remove: Vec::new(),
            extra_env: Vec::new(),
            login_timeout_ms: None,
            umask: None,
            idle_ms: None,
            ttl_ms: None,
        }),
        workdir: None,
        env: Vec::new(),
        timeout_ms: Some(60_000),
        grace_ms: 500,
        lease_ms: 0,
        merge: true,
        terminal: None,
        stdin: false,
        persist: false,
        spill: None,
        sudo: false,
        redact: None,
    }
}

/// Runs a command and returns what it printed; it must succeed.
pub(crate) async fn run(link: &Link, command: &str) -> String {
    let command = Bytes::copy_from_slice(command.as_bytes());
    let mut stream = link.exec(exec(), command).await.unwrap();
    let mut output = Vec::new();
    loop {
        match stream.next().await.unwrap() {
            ExecEvent::Output { bytes, .. } => output.extend_from_slice(&bytes),
            ExecEvent::Done(done) => {
                let output = String::from_utf8(output).unwrap();
                assert_eq!(done.outcome, Outcome::Exited(0), "{output}");
                return output.trim().to_owned();
            }
            ExecEvent::Started { .. } | ExecEvent::Resumed(_) => {}
        }
    }
}

/// Waits until something holds.
pub(crate) async fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..600 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("{what} did not happen");
}
