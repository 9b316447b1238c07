//! A remote host, reached with ssh.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use exoshell_runtime::config::{Backend, Config, Environment, Resolved, SshConfig, TerminalConfig};

use super::super::lab::Lab;
use super::super::row::Row;
use super::super::{Failure, Filter, plain};
use super::site::{Names, Site, TASK};
use super::sshd::Sshd;
use crate::args::PlaceArgs;
use crate::commands::place_args;

/// What the rows are called.
pub(super) static NAMES: Names = Names {
    apart: "ssh, call, 20 ms apart",
    apart_local: "ssh, call, 20 ms apart, beside local",
    together: "ssh, call, back to back",
    together_local: "ssh, call, back to back, beside local",
    process: "ssh, new process",
    volume: "ssh, 100 MB",
    plain: "ssh HOST true, multiplexed",
    cat: "ssh HOST cat FILE | reader, multiplexed",
    faster: 3.0,
};

/// A host, with a connection of the plain client's own to it.
pub(super) struct Remote {
    ssh: SshConfig,
    socket: PathBuf,
    folder: String,
    /// Ends with us.
    _server: Option<Sshd>,
}

impl Remote {
    /// Connects to the named host, or to a server that is started for it.
    pub(super) async fn open(lab: &Lab, host: Option<&str>) -> Result<Self, Failure> {
        let (ssh, folder, server) = if let Some(host) = host {
            (named(host)?, "/tmp".to_owned(), None)
        } else {
            let server = Sshd::start(&lab.root().join("sshd")).await?;
            (server.client(), server.home(), Some(server))
        };
        let remote = Self {
            ssh,
            socket: lab.root().join("plain-ssh"),
            folder,
            _server: server,
        };
        let mut master = remote.client(&["-o", "ControlMaster=yes", "-N", "-f"]);
        master.arg(remote.host());
        plain::silent(master).map_err(|error| format!("no connection can be made: {error}"))?;
        Ok(remote)
    }

    /// Measures calls to the host.
    pub(super) async fn measure(&self, lab: &Lab, filter: &Filter) -> Result<Vec<Row>, Failure> {
        let home = lab.home_with(Config {
            terminal: TerminalConfig {
                backend: Some(Backend::Ssh),
                ..TerminalConfig::default()
            },
            ssh: self.ssh.clone(),
            ..Config::default()
        })?;
        home.call(TASK, "true").await?;
        let site = Site {
            names: &NAMES,
            home: &home,
            plain: &|words| {
                let mut command = self.client(&["-o", "ControlMaster=no", "-T"]);
                command.arg(self.host()).args(words).stderr(Stdio::null());
                command
            },
            folder: self.folder.clone(),
        };
        let rows = site.measure(lab, filter).await;
        home.end().await?;
        rows
    }

    fn host(&self) -> &str {
        self.ssh.host.as_deref().unwrap_or_default()
    }

    /// Returns the plain client, set up as ours is, with a control socket of its own.
    fn client(&self, words: &[&str]) -> Command {
        let mut command = Command::new("ssh");
        for option in self.ssh.options.iter().flatten() {
            command.args(["-o", option]);
        }
        command.args(["-o", "BatchMode=yes"]);
        let control = format!("ControlPath={}", self.socket.display());
        command.args(["-o", &control]);
        if let Some(user) = &self.ssh.user {
            command.args(["-l", user]);
        }
        if let Some(port) = self.ssh.port.filter(|port| *port != 0) {
            command.args(["-p", &port.to_string()]);
        }
        if let Some(key) = &self.ssh.key {
            command.arg("-i").arg(key);
        }
        command.args(words);
        command
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let mut end = self.client(&["-O", "exit"]);
        end.arg(self.host());
        // One that is not there has ended already.
        let _ = plain::silent(end);
    }
}

/// Reads a host as every other word of this program does, with the configured key and options.
fn named(host: &str) -> Result<SshConfig, Failure> {
    let place = PlaceArgs {
        host: Some(host.to_owned()),
        ..PlaceArgs::default()
    };
    let overrides = place_args::overrides(&place, || Ok(Backend::Ssh))?;
    let ssh = Resolved::load(&Environment::from_process(), overrides)?.ssh;
    Ok(SshConfig {
        host: ssh.host,
        user: ssh.user,
        port: Some(ssh.port),
        key: ssh.key,
        options: Some(ssh.options),
    })
}
