//! An engine that goes away in mid-call: one of the test's own.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use exoshell_testkit::{Engine, image};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tempfile::TempDir;

use crate::support::{Answer, PATIENCE, World, wait_until};

/// A Docker engine that nobody else uses.
#[derive(Debug)]
struct Daemon {
    folder: TempDir,
    process: Option<Child>,
}

impl Daemon {
    #[track_caller]
    fn new() -> Self {
        let folder = tempfile::Builder::new().prefix("exo-d-").tempdir().unwrap();
        fs::write(folder.path().join("settings.json"), "{}\n").unwrap();
        let mut daemon = Self {
            folder,
            process: None,
        };
        daemon.start();
        daemon
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn host(&self) -> String {
        format!("unix://{}", self.path("sock").display())
    }

    fn client(&self) -> Command {
        let mut command = Command::new("docker");
        command.env("DOCKER_HOST", self.host());
        command
    }

    #[track_caller]
    fn start(&mut self) {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.path("log"))
            .unwrap();
        let process = Command::new("dockerd")
            .args(["--host", &self.host()])
            .arg("--data-root")
            .arg(self.path("data"))
            .arg("--exec-root")
            .arg(self.path("run"))
            .arg("--pidfile")
            .arg(self.path("pid"))
            .arg("--config-file")
            .arg(self.path("settings.json"))
            .args(["--bridge", "none", "--iptables=false", "--ip6tables=false"])
            .args(["--ip-masq=false", "--ip-forward=false"])
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.process = Some(process);
        wait_until(PATIENCE, "the engine answers", || {
            let asked = self.client().args(["version"]).output().unwrap();
            asked.status.success()
        });
    }

    /// Ends it, which ends its containers.
    fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = kill_process(Pid::from_child(&process), Signal::TERM);
            let _ = process.wait();
        }
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.stop();
        // What is still mounted would be left behind with the folder.
        let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let own = self.folder.path().display().to_string();
        let below = mounts.lines().filter_map(|line| line.split(' ').nth(1));
        for target in below.filter(|target| target.starts_with(&own)) {
            let _ = Command::new("umount").args(["--lazy", target]).status();
        }
    }
}

#[test]
fn an_engine_that_stops_in_mid_call_is_a_lost_place_and_work_goes_on_when_it_is_back() {
    let mut daemon = Daemon::new();
    let mut save = Engine::docker()
        .command()
        .args(["save", image::BUSYBOX])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut load = daemon.client();
    let loaded = load
        .args(["load", "--quiet"])
        .stdin(save.stdout.take().unwrap())
        .output()
        .unwrap();
    assert!(loaded.status.success() && save.wait().unwrap().success());

    let world = World::new()
        .with_variable("DOCKER_HOST", daemon.host())
        .with_variable("TERMINAL_ENV", "docker")
        .with_variable("TERMINAL_DOCKER_IMAGE", image::BUSYBOX);
    let first = world.terminal("echo kept > /var/kept; cat /var/kept");
    assert_eq!((first.code(), first.output()), (0, "kept\n"), "{}", first.0);
    let call = world.start_call(&json!({"command": "echo before; sleep 100", "timeout": 120}));
    wait_until(PATIENCE, "the command runs", || {
        let info = world.json(["places", "info", "default", "--json"]);
        info["running"] == 1
    });
    daemon.stop();
    let second = world.start_call(&json!({"command": "echo never"}));
    let refused = Answer::parse(&second.finish().out);
    assert_eq!(refused.kind(), "unreachable", "{}", refused.0);
    assert_eq!(refused.0["error_reason"], "no_daemon", "{}", refused.0);

    daemon.start();
    let lost = Answer::parse(&call.finish_within(Duration::from_secs(60)).out);
    assert_eq!(
        (lost.kind(), lost.code(), lost.output()),
        ("place_lost", -1, "before\n"),
        "{}",
        lost.0
    );
    assert_ne!(lost.hint(), "", "{}", lost.0);
    // Its container was ended with the engine, and is started again as it was.
    let answer = world.terminal("cat /var/kept");
    assert_eq!(
        (answer.code(), answer.output()),
        (0, "kept\n"),
        "{}",
        answer.0
    );
    world.clean_up();
    let left = daemon
        .client()
        .args(["ps", "--all", "--quiet"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&left.stdout), "");
}
