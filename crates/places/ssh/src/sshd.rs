//! A real ssh server for one test, on loopback, with namespaces of its own: what logs in there
//! sees folders of its own, and everything it started ends with the server.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use tempfile::TempDir;

use crate::{SshPlace, SshSettings};

/// Makes the server's folders appear at `/srv`, and gives it empty ones where programs usually
/// put files.
const SETUP: &str = r#"set -e
mount --bind "$1" /srv
mount -t tmpfs -o "$2" tmp /tmp
mount -t tmpfs -o "$2" tmp /var/tmp
mount -t tmpfs -o "$2" tmp /dev/shm
mount -t tmpfs run /run
mkdir -m 755 /run/sshd
mount --bind /srv/passwd /etc/passwd
if [ -n "$3" ]; then mount -t tmpfs -o "$3" home /srv/home; chown tester: /srv/home; fi
cp /srv/home.bashrc /srv/home/.bashrc 2>&1 || :
exec /usr/sbin/sshd -D -e -f /srv/sshd_config
"#;

/// What a server is like.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    /// The login shell.
    pub(crate) shell: &'static str,
    /// The account's `.bashrc`.
    pub(crate) bashrc: &'static str,
    /// Options of the `tmpfs` that is mounted as the home; empty for a plain folder.
    pub(crate) home: &'static str,
    /// Options of the `tmpfs` mounted on `/tmp` and its like.
    pub(crate) other: &'static str,
    /// Further lines of the configuration.
    pub(crate) config: &'static str,
    /// Where the account's home is said to be.
    pub(crate) home_path: &'static str,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            shell: "/bin/bash",
            bashrc: "",
            home: "",
            other: "mode=1777",
            config: "",
            home_path: "/srv/home",
        }
    }
}

/// A running server. Dropping it ends it and everything that was started in it.
#[derive(Debug)]
pub(crate) struct Sshd {
    pub(crate) root: TempDir,
    pub(crate) port: u16,
    process: Child,
    log: Arc<Mutex<String>>,
}

impl Sshd {
    pub(crate) fn start() -> Self {
        Self::with(&Setup::default())
    }

    pub(crate) fn with(setup: &Setup) -> Self {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(at("home")).unwrap();
        std::os::unix::fs::chown(at("home"), Some(12345), Some(12345)).unwrap();
        for key in ["host_key", "key", "other_key"] {
            keygen(&at(key));
        }
        let port = free_port();
        let passwd = format!(
            "root:x:0:0:root:/root:/bin/bash\nsshd:x:103:65534::/run/sshd:/usr/sbin/nologin\n\
             tester:x:12345:12345::{}:{}\n",
            setup.home_path, setup.shell
        );
        let config = format!(
            "{}\nPort {port}\nListenAddress 127.0.0.1\nHostKey /srv/host_key\n\
             AuthorizedKeysFile /srv/key.pub\nUsePAM no\nStrictModes no\nPidFile none\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nMaxStartups 200\n",
            setup.config
        );
        fs::write(at("passwd"), passwd).unwrap();
        fs::write(at("sshd_config"), config).unwrap();
        fs::write(at("home.bashrc"), setup.bashrc).unwrap();
        let mut process = Command::new("unshare")
            .args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc"])
            .args(["sh", "-c", SETUP, "sshd"])
            .arg(root.path())
            .args([setup.other, setup.home])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("`unshare` starts; these tests run as root");
        let log = follow(&mut process);
        Self {
            root,
            port,
            process,
            log,
        }
    }

    /// Returns the settings that log in here.
    pub(crate) fn settings(&self) -> SshSettings {
        SshSettings {
            host: "127.0.0.1".to_owned(),
            user: Some("tester".to_owned()),
            port: Some(self.port),
            key: Some(self.path("key")),
            options: vec![format!(
                "UserKnownHostsFile={}",
                self.path("known_hosts").display()
            )],
            config: Some(PathBuf::from("/dev/null")),
            profile: "test".to_owned(),
            ..SshSettings::default()
        }
    }

    pub(crate) fn place(&self) -> SshPlace {
        self.place_with(self.settings())
    }

    pub(crate) fn place_with(&self, settings: SshSettings) -> SshPlace {
        SshPlace::new(self.path("exo"), settings).unwrap()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Returns the process id of the server itself, whose namespaces can be entered.
    pub(crate) fn inside(&self) -> u32 {
        let pid = self.process.id();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        children.split_whitespace().next().unwrap().parse().unwrap()
    }

    /// Counts the connections that were accepted so far.
    pub(crate) fn connections(&self) -> usize {
        self.log
            .lock()
            .unwrap()
            .matches("Accepted publickey")
            .count()
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Reads what the server says; returns once it listens.
fn follow(process: &mut Child) -> Arc<Mutex<String>> {
    let log = Arc::new(Mutex::new(String::new()));
    let kept = Arc::clone(&log);
    let (listening, wait) = mpsc::channel();
    let stderr = process.stderr.take().unwrap();
    std::thread::spawn(move || {
        for line in BufReader::new(stderr).lines().map_while(Result::ok) {
            let mut kept = kept.lock().unwrap();
            kept.push_str(&line);
            kept.push('\n');
            if line.contains("Server listening") {
                let _ = listening.send(());
            }
        }
    });
    let listens = wait.recv_timeout(Duration::from_secs(20)).is_ok();
    assert!(listens, "sshd does not listen: {}", log.lock().unwrap());
    log
}

pub(crate) fn keygen(path: &Path) {
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-f"])
        .arg(path)
        .status();
    assert!(made.unwrap().success());
}

/// Returns a port that nobody listened on a moment ago.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
