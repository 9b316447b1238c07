//! A Docker engine of our own.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::layout::Layout;
use super::network;
use super::program::{
    end, is_alive, naming, output, start_server, succeeds, unmount_below, wait_for_server,
};
use crate::Result;

/// The engine of one workspace: its own socket, data, bridge and process.
#[derive(Debug)]
pub(super) struct Docker<'a> {
    layout: &'a Layout,
}

impl<'a> Docker<'a> {
    pub(super) fn new(layout: &'a Layout) -> Self {
        Self { layout }
    }

    fn socket(&self) -> PathBuf {
        self.layout.run.join("docker.sock")
    }

    fn exec_root(&self) -> PathBuf {
        self.layout.run.join("docker")
    }

    fn pid_file(&self) -> PathBuf {
        self.layout.run.join("docker.pid")
    }

    fn data(&self) -> PathBuf {
        self.layout.root.join("docker")
    }

    fn bridge(&self) -> String {
        format!("exod{}", self.layout.tag)
    }

    /// Returns what `DOCKER_HOST` is for this engine.
    pub(super) fn host(&self) -> String {
        format!("unix://{}", self.socket().display())
    }

    /// Describes a call of the client.
    pub(super) fn client(&self) -> Command {
        let mut command = Command::new("docker");
        command
            .env("DOCKER_HOST", self.host())
            // The builder that needs no plugin.
            .env("DOCKER_BUILDKIT", "0")
            .env_remove("DOCKER_CONTEXT");
        command
    }

    fn answers(&self) -> bool {
        succeeds(
            self.client()
                .args(["version", "--format", "{{.Server.Version}}"]),
        )
    }

    /// Returns the engine's process if it lives.
    fn pid(&self) -> Option<u32> {
        let pid = fs::read_to_string(self.pid_file())
            .ok()?
            .trim()
            .parse()
            .ok()?;
        is_alive(pid, &self.exec_root()).then_some(pid)
    }

    /// Starts the engine, unless it answers already.
    pub(super) fn start(&self) -> Result<()> {
        if self.pid().is_some() && self.answers() {
            return Ok(());
        }
        self.end_processes()?;
        fs::create_dir_all(self.data())?;
        // The machine's own settings are for the machine's own engine.
        let settings = self.layout.root.join("dockerd.json");
        fs::write(&settings, "{}\n")?;
        network::make_bridge(&self.bridge(), 213, self.layout.number())?;

        let log = self.layout.root.join("dockerd.log");
        let mut command = Command::new("dockerd");
        command
            .arg("--host")
            .arg(self.host())
            .arg("--data-root")
            .arg(self.data())
            .arg("--exec-root")
            .arg(self.exec_root())
            .arg("--pidfile")
            .arg(self.pid_file())
            .arg("--config-file")
            .arg(settings)
            .args(["--bridge", &self.bridge()])
            // Containers reach each other and the bridge; the machine's firewall stays as it is.
            .args(["--iptables=false", "--ip6tables=false"])
            .args(["--ip-masq=false", "--ip-forward=false"]);
        start_server(&mut command, &log)?;
        wait_for_server("dockerd", &log, Duration::from_secs(60), || self.answers())
    }

    /// Removes all containers and ends the engine; its images stay.
    pub(super) fn stop(&self) -> Result<()> {
        if self.pid().is_some() && self.answers() {
            let ids = output(self.client().args(["ps", "--all", "--quiet"]))?;
            if !ids.is_empty() {
                output(
                    self.client()
                        .args(["rm", "--force", "--volumes"])
                        .args(ids.lines()),
                )?;
            }
        }
        self.end_processes()?;
        unmount_below(&self.data());
        network::remove_bridge(&self.bridge());
        Ok(())
    }

    /// Ends the engine, then what only it could have ended.
    fn end_processes(&self) -> Result<()> {
        let engine: Vec<u32> = self.pid().into_iter().collect();
        end(&engine, &self.exec_root(), Duration::from_secs(30))?;
        let rest = naming(&self.exec_root());
        end(&rest, &self.exec_root(), Duration::from_secs(5))
    }
}
