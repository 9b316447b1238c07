//! A remote host per test: a real sshd with its own keys, users and mounts.

use std::fmt::Write as _;
use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use crate::machine::{Namespace, Process, kill, run, text};
use crate::net::Net;
use crate::wait_until;

/// What a remote host is to be like.
#[derive(Debug, Clone, Default)]
pub struct SshdOptions {
    shell: Option<String>,
    home: Option<PathBuf>,
    home_mount: Option<String>,
    temporary_mount: Option<String>,
    settings: Vec<String>,
    address: Option<String>,
    launcher: Vec<String>,
}

impl SshdOptions {
    /// Sets the login shell; `bash` otherwise.
    #[must_use]
    pub fn shell(mut self, path: &str) -> Self {
        self.shell = Some(path.to_owned());
        self
    }

    /// Sets the home folder that the user has; one that does not exist stays so.
    #[must_use]
    pub fn home(mut self, path: &Path) -> Self {
        self.home = Some(path.to_owned());
        self
    }

    /// Puts a filesystem of its own at the home folder, with these options of tmpfs, as
    /// `noexec` or `size=64k`.
    #[must_use]
    pub fn home_mount(mut self, options: &str) -> Self {
        self.home_mount = Some(options.to_owned());
        self
    }

    /// Puts filesystems of its own at the folders for temporary files (`/tmp`, `/var/tmp`,
    /// `/dev/shm`), with these options of tmpfs, as `noexec`, `ro` or `size=64k`. Without it the
    /// host has those of this machine.
    #[must_use]
    pub fn temporary_mount(mut self, options: &str) -> Self {
        self.temporary_mount = Some(options.to_owned());
        self
    }

    /// Runs this whatever a client asks for.
    #[must_use]
    pub fn force_command(self, command: &str) -> Self {
        self.setting(&format!("ForceCommand {command}"))
    }

    /// Adds a line to the server's configuration.
    #[must_use]
    pub fn setting(mut self, line: &str) -> Self {
        self.settings.push(line.to_owned());
        self
    }

    /// Puts the host at the other end of a network.
    #[must_use]
    pub fn behind(mut self, net: &Net) -> Self {
        self.address = Some(net.address());
        self.launcher = net.launcher();
        self
    }

    /// Starts the host.
    #[track_caller]
    pub fn start(self) -> Sshd {
        Sshd::with(self)
    }
}

/// A host on the way to another one, as the client's configuration names it.
#[derive(Debug, Clone, Copy)]
pub struct Jump<'a>(pub &'a Sshd);

/// A running sshd. It has a mount namespace of its own, so that it can have its own users, homes
/// and disks, and so that everything that runs on this host can be found and ended.
#[derive(Debug)]
pub struct Sshd {
    dir: TempDir,
    options: SshdOptions,
    address: String,
    port: u16,
    child: Option<Child>,
    namespace: Option<Namespace>,
}

/// The alias that the client's configuration has for the host.
const ALIAS: &str = "test-host";

impl Sshd {
    /// Starts a plain host: root, bash, an empty home.
    #[track_caller]
    pub fn start() -> Self {
        SshdOptions::default().start()
    }

    #[track_caller]
    fn with(options: SshdOptions) -> Self {
        let dir = tempfile::Builder::new()
            .prefix("exo-sshd-")
            .tempdir()
            .unwrap();
        let address = options
            .address
            .clone()
            .unwrap_or_else(|| Ipv4Addr::LOCALHOST.to_string());
        let mut sshd = Self {
            dir,
            options,
            address,
            port: 0,
            child: None,
            namespace: None,
        };
        for folder in ["home", "bin"] {
            fs::create_dir(sshd.dir.path().join(folder)).unwrap();
        }
        sshd.make_key("host_key");
        sshd.make_key("key");
        fs::copy(sshd.path("key.pub"), sshd.path("authorized_keys")).unwrap();
        sshd.run_server();
        sshd.write_client();
        sshd
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    #[track_caller]
    fn make_key(&self, name: &str) {
        run(Command::new("ssh-keygen")
            .args(["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f"])
            .arg(self.path(name)));
    }

    /// Returns the alias of the host in the client's configuration.
    pub fn alias(&self) -> &'static str {
        ALIAS
    }

    /// Returns the address to connect to.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the port to connect to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the user's private key.
    pub fn key(&self) -> PathBuf {
        self.path("key")
    }

    /// Returns the user's home folder.
    pub fn home(&self) -> PathBuf {
        self.options
            .home
            .clone()
            .unwrap_or_else(|| self.path("home"))
    }

    /// Returns the file with the host keys that the client knows; there are none at first.
    pub fn known_hosts(&self) -> PathBuf {
        self.path("known_hosts")
    }

    /// Returns the client's configuration. Nothing else of this machine's ssh is used with it.
    pub fn client_config(&self) -> PathBuf {
        self.path("config")
    }

    /// Returns a folder with an `ssh` that uses this configuration; to be put first in `PATH`.
    /// (OpenSSH takes home folders from the user database, so `HOME` alone does not help.)
    pub fn client_folder(&self) -> PathBuf {
        self.path("bin")
    }

    /// Returns what the server said so far.
    pub fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    /// Puts another host between the client and this one.
    pub fn behind_jump(&self, Jump(jump): Jump<'_>) {
        let mut config = format!(
            "Host jump\n  HostName {}\n  Port {}\n  User root\n  IdentityFile {}\n",
            jump.address,
            jump.port,
            text(&jump.key()),
        );
        config.push_str(&self.host_entry());
        config.push_str("  ProxyJump jump\n");
        config.push_str(&self.common_entry());
        fs::write(self.client_config(), config).unwrap();
    }

    fn host_entry(&self) -> String {
        format!(
            "Host {ALIAS}\n  HostName {}\n  Port {}\n  User root\n  IdentityFile {}\n",
            self.address,
            self.port,
            text(&self.key()),
        )
    }

    /// Returns the options that keep this machine's own ssh out of it, each as `Name=value`.
    pub fn client_options(&self) -> Vec<String> {
        vec![
            format!("UserKnownHostsFile={}", text(&self.known_hosts())),
            "GlobalKnownHostsFile=/dev/null".to_owned(),
            "IdentityAgent=none".to_owned(),
        ]
    }

    fn common_entry(&self) -> String {
        format!(
            "Host *\n  UserKnownHostsFile {}\n  GlobalKnownHostsFile /dev/null\n  \
             IdentitiesOnly yes\n  IdentityAgent none\n",
            text(&self.known_hosts())
        )
    }

    fn write_client(&self) {
        let config = self.host_entry() + &self.common_entry();
        fs::write(self.client_config(), config).unwrap();
        let wrapper = self.client_folder().join("ssh");
        let script = format!(
            "#!/bin/sh\nexec /usr/bin/ssh -F '{}' \"$@\"\n",
            text(&self.client_config())
        );
        fs::write(&wrapper, script).unwrap();
        fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn server_config(&self) -> String {
        let mut config = format!(
            "ListenAddress {}:{}\nHostKey {}\nAuthorizedKeysFile {}\nPidFile none\n\
             StrictModes no\nUsePAM no\nPasswordAuthentication no\n\
             KbdInteractiveAuthentication no\nPermitRootLogin yes\nPrintMotd no\n\
             PrintLastLog no\nMaxStartups 200\nMaxSessions 200\nUseDNS no\nLogLevel VERBOSE\n\
             Subsystem sftp internal-sftp\n",
            self.address,
            self.port,
            text(&self.path("host_key")),
            text(&self.path("authorized_keys")),
        );
        for line in &self.options.settings {
            let _ = writeln!(config, "{line}");
        }
        config
    }

    /// Writes a user database in which root is the user of this host.
    fn write_users(&self) {
        let users = fs::read_to_string("/etc/passwd").unwrap();
        let shell = self.options.shell.as_deref().unwrap_or("/bin/bash");
        let mut own = format!("root:x:0:0:root:{}:{shell}\n", text(&self.home()));
        for line in users.lines().filter(|line| !line.starts_with("root:")) {
            own.push_str(line);
            own.push('\n');
        }
        fs::write(self.path("passwd"), own).unwrap();
    }

    /// Starts the server on its port, or on a free one if it has none yet.
    #[track_caller]
    fn run_server(&mut self) {
        self.write_users();
        // Debian's sshd insists on it, and only its service makes it.
        fs::create_dir_all("/run/sshd").unwrap();
        // A port that was free may be taken before the server has it.
        for _ in 0..5 {
            if self.port == 0 || self.options.address.is_none() && !self.is_free() {
                self.port = free_port();
            }
            fs::write(self.path("sshd_config"), self.server_config()).unwrap();
            self.child = Some(self.spawn());
            let up = wait_until(Duration::from_secs(10), || self.is_up() || self.has_ended());
            if up && !self.has_ended() {
                return;
            }
            self.stop();
            self.port = 0;
        }
        panic!("sshd does not start: {}", self.log());
    }

    fn is_free(&self) -> bool {
        TcpListener::bind((self.address.as_str(), self.port)).is_ok()
    }

    /// Tells whether the server answers from its own namespace.
    fn is_up(&mut self) -> bool {
        let pid = self.child.as_ref().map_or(0, Child::id);
        self.namespace = Namespace::of("mnt", pid);
        let listens = |process: &Process| process.command.contains("[listener]");
        self.processes().iter().any(listens) && self.answers()
    }

    fn answers(&self) -> bool {
        TcpStream::connect((self.address.as_str(), self.port)).is_ok()
    }

    fn has_ended(&mut self) -> bool {
        self.child
            .as_mut()
            .is_none_or(|child| !matches!(child.try_wait(), Ok(None)))
    }

    fn spawn(&self) -> Child {
        let mut script = "mount --bind \"$1\" /etc/passwd; ".to_owned();
        if let Some(options) = &self.options.temporary_mount {
            // What the server needs itself is in one of them.
            script.push_str("mount --bind \"$3\" /mnt; ");
            for folder in ["/tmp", "/var/tmp", "/dev/shm"] {
                let _ = write!(script, "mount -t tmpfs -o mode=1777 tmpfs {folder}; ");
            }
            script.push_str("mkdir -p \"$3\"; mount --bind /mnt \"$3\"; umount /mnt; ");
            for folder in ["/tmp", "/var/tmp", "/dev/shm"] {
                let _ = write!(script, "mount -o remount,{options} {folder}; ");
            }
        }
        if let Some(options) = &self.options.home_mount {
            let _ = write!(
                script,
                "mount -t tmpfs -o {options} tmpfs '{}'; ",
                text(&self.home())
            );
        }
        script.push_str("exec /usr/sbin/sshd -D -e -f \"$2\"");
        let words = ["unshare", "--mount", "sh", "-ec", &script, "sh"];
        let mut words = self
            .options
            .launcher
            .iter()
            .map(String::as_str)
            .chain(words);
        let log = fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(self.path("log"))
            .unwrap();
        Command::new(words.next().unwrap_or("unshare"))
            .args(words)
            .arg(self.path("passwd"))
            .arg(self.path("sshd_config"))
            .arg(self.dir.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap()
    }

    /// Lists what runs on this host, sshd itself and its connections included.
    pub fn processes(&self) -> Vec<Process> {
        self.namespace
            .as_ref()
            .map(Namespace::processes)
            .unwrap_or_default()
    }

    /// Lists what runs on this host besides sshd and its connections.
    pub fn visitors(&self) -> Vec<Process> {
        let mut all = self.processes();
        all.retain(|process| !process.command.starts_with("sshd"));
        all.retain(|process| !process.command.starts_with("/usr/sbin/sshd"));
        all
    }

    /// Cuts all connections at once, as a restart of the network does; the server stays.
    pub fn cut_connections(&self) {
        let own = self.child.as_ref().map(Child::id);
        let mut connections = self.processes();
        connections
            .retain(|process| process.command.starts_with("sshd") && Some(process.pid) != own);
        kill(&connections);
    }

    /// Ends the host with everything that runs on it, as the loss of a machine does.
    pub fn stop(&mut self) {
        let all = self.processes();
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            kill(&all);
            let _ = child.wait();
        }
        self.namespace = None;
    }

    /// Starts a host again that was stopped, at the same address.
    #[track_caller]
    pub fn restart(&mut self) {
        self.stop();
        self.run_server();
        self.write_client();
    }

    /// Gives the host another key, as a host that was replaced has.
    #[track_caller]
    pub fn change_host_key(&mut self) {
        self.stop();
        for name in ["host_key", "host_key.pub"] {
            fs::remove_file(self.path(name)).unwrap();
        }
        self.make_key("host_key");
        self.restart();
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.stop();
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}

#[cfg(test)]
#[path = "sshd_tests.rs"]
mod tests;
