//! A server that lives as long as its rows, on a free port of this machine.

use std::fs::{self, DirBuilder, File};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::Duration;

use exoshell_runtime::config::SshConfig;

use super::super::Failure;
use super::super::plain;

/// Where the server may be although `PATH` does not say so.
const FOLDERS: [&str; 3] = ["/usr/sbin", "/usr/local/sbin", "/sbin"];

/// How often it is looked at while it starts, and how often at most.
const LOOK: Duration = Duration::from_millis(20);
const LOOKS: usize = 250;

/// Runs the server until stdin ends, so that it also ends when we are killed.
const GUARD: &str = "\"$@\" & server=$!; read -r _; kill $server; wait";

/// A server, gone with its folder when it is dropped.
pub(super) struct Sshd {
    folder: PathBuf,
    port: u16,
    guard: Child,
    /// The server ends with it.
    life: Option<ChildStdin>,
}

impl Sshd {
    /// Makes keys and starts a server that lets this user in, in a folder that is not there yet.
    pub(super) async fn start(folder: &Path) -> Result<Self, Failure> {
        let program = find("sshd").ok_or("there is no `sshd`")?;
        for dir in [folder, &folder.join("home")] {
            DirBuilder::new().mode(0o700).create(dir)?;
        }
        for name in ["host_key", "key"] {
            make_key(&folder.join(name))?;
        }
        fs::copy(folder.join("key.pub"), folder.join("authorized_keys"))?;
        let port = free_port()?;
        write_settings(folder, port)?;
        let log = File::create(folder.join("log"))?;
        let mut guard = Command::new("sh")
            .args(["-c", GUARD, "sh"])
            .arg(program)
            .args(["-D", "-e", "-f"])
            .arg(folder.join("sshd_config"))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()?;
        let life = guard.stdin.take();
        let server = Self {
            folder: folder.to_owned(),
            port,
            guard,
            life,
        };
        server.wait_until_up().await?;
        Ok(server)
    }

    async fn wait_until_up(&self) -> Result<(), Failure> {
        let mut log = String::new();
        for _ in 0..LOOKS {
            log = fs::read_to_string(self.folder.join("log"))?;
            if log.contains("Server listening") {
                return Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
        let last = log.lines().next_back().unwrap_or("nothing").to_owned();
        Err(format!("`sshd` does not start; it said: {last}").into())
    }

    /// Returns how a client gets in.
    pub(super) fn client(&self) -> SshConfig {
        let known = self.folder.join("known_hosts");
        let options = [
            format!("UserKnownHostsFile={}", known.display()),
            "StrictHostKeyChecking=yes".to_owned(),
            "IdentityAgent=none".to_owned(),
            "IdentitiesOnly=yes".to_owned(),
        ];
        SshConfig {
            host: Some(Ipv4Addr::LOCALHOST.to_string()),
            user: None,
            port: Some(usize::from(self.port)),
            key: Some(self.folder.join("key")),
            options: Some(options.to_vec()),
        }
    }

    /// Returns the home folder of whoever comes in.
    pub(super) fn home(&self) -> String {
        self.folder.join("home").display().to_string()
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        drop(self.life.take());
        let _ = self.guard.wait();
    }
}

fn find(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(FOLDERS.map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|program| program.is_absolute() && program.is_file())
}

fn make_key(path: &Path) -> Result<(), Failure> {
    let mut command = Command::new("ssh-keygen");
    command.args([
        "-q",
        "-t",
        "ed25519",
        "-N",
        "",
        "-C",
        "exoshell-bench",
        "-f",
    ]);
    command.arg(path);
    plain::silent(command).map_err(|error| format!("`ssh-keygen` made no key: {error}"))?;
    Ok(())
}

fn free_port() -> Result<u16, Failure> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

/// Writes the server's settings, and for clients, that they talk to nobody else.
fn write_settings(folder: &Path, port: u16) -> Result<(), Failure> {
    let address = Ipv4Addr::LOCALHOST;
    let root = folder.display();
    let settings = format!(
        "ListenAddress {address}:{port}\nHostKey {root}/host_key\n\
         AuthorizedKeysFile {root}/authorized_keys\nPidFile none\nStrictModes no\nUsePAM no\n\
         PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin yes\n\
         PrintMotd no\nPrintLastLog no\nUseDNS no\nMaxSessions 100\nSetEnv HOME={root}/home\n"
    );
    fs::write(folder.join("sshd_config"), settings)?;
    let key = fs::read_to_string(folder.join("host_key.pub"))?;
    fs::write(
        folder.join("known_hosts"),
        format!("[{address}]:{port} {key}"),
    )?;
    Ok(())
}

#[cfg(test)]
#[path = "sshd_tests.rs"]
mod tests;
