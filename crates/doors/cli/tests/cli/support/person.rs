//! A throw-away user who may use sudo with a password.

use std::ffi::OsStr;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _, chown};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use tempfile::TempDir;

use super::{EXOSHELL, PATH, PATIENCE, Program, Ran, wait_until};

/// The account files take one change at a time.
static ACCOUNTS: Mutex<()> = Mutex::new(());

/// A user of this machine, with a home, a copy of the binary and a password.
#[derive(Debug)]
pub(crate) struct Person {
    root: TempDir,
    pub(crate) name: String,
    pub(crate) uid: u32,
    pub(crate) password: String,
}

fn run(command: &mut Command, stdin: &str) -> bool {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let mut pipe = child.stdin.take().unwrap();
    pipe.write_all(stdin.as_bytes()).unwrap();
    drop(pipe);
    child.wait().unwrap().success()
}

impl Person {
    /// Makes the user; tests run as root.
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let root = tempfile::Builder::new()
            .prefix("exo-sudo-")
            .tempdir()
            .unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let mut person = Self {
            name: format!("exosudo{}x{number}", std::process::id()),
            uid: 0,
            // Digits that no other text has by chance.
            password: format!("sesame-{}-{number}-7391", std::process::id()),
            root,
        };
        person.register();
        let home = person.home();
        fs::DirBuilder::new().mode(0o700).create(&home).unwrap();
        chown(&home, Some(person.uid), Some(person.uid)).unwrap();
        fs::copy(EXOSHELL, person.program()).unwrap();
        person
    }

    fn register(&mut self) {
        let _one = ACCOUNTS.lock().unwrap_or_else(PoisonError::into_inner);
        wait_until(PATIENCE, "another program changes the accounts", || {
            let mut command = Command::new("useradd");
            command
                .args(["--no-create-home", "--user-group", "--shell", "/bin/bash"])
                .arg("--home-dir")
                .arg(self.home())
                .arg(&self.name);
            run(&mut command, "")
        });
        let line = format!("{}:{}\n", self.name, self.password);
        wait_until(PATIENCE, "another program changes the accounts", || {
            run(&mut Command::new("chpasswd"), &line)
        });
        let id = Command::new("id")
            .args(["-u", &self.name])
            .output()
            .unwrap();
        let id = String::from_utf8(id.stdout).unwrap();
        self.uid = id.trim().parse().unwrap();
        let rule = format!("{} ALL=(ALL) ALL\n", self.name);
        fs::write(self.rule(), rule).unwrap();
        fs::set_permissions(self.rule(), fs::Permissions::from_mode(0o440)).unwrap();
    }

    fn rule(&self) -> PathBuf {
        PathBuf::from("/etc/sudoers.d").join(&self.name)
    }

    fn program(&self) -> PathBuf {
        self.root.path().join("exoshell")
    }

    /// Returns their home, which is also where they stand.
    pub(crate) fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// Returns their `EXOSHELL_HOME`.
    pub(crate) fn state(&self) -> PathBuf {
        self.home().join("exo")
    }

    /// Returns the words that make a program theirs.
    pub(crate) fn words(&self) -> Vec<String> {
        let uid = self.uid;
        ["setpriv".to_owned()]
            .into_iter()
            .chain([
                format!("--reuid={uid}"),
                format!("--regid={uid}"),
                "--clear-groups".to_owned(),
            ])
            .collect()
    }

    /// Describes a call of the binary by them.
    pub(crate) fn command(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Command {
        let mut words = self.words().into_iter();
        let mut command = Command::new(words.next().unwrap());
        command
            .args(words)
            .arg(self.program())
            .args(arguments)
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", self.home())
            .env("EXOSHELL_HOME", self.state())
            .env("EXOSHELL_APPROVAL", "auto")
            .envs(variables.iter().copied())
            .current_dir(self.home());
        command
    }

    /// Runs the binary to its end, with or without their password in the environment.
    #[track_caller]
    pub(crate) fn exoshell(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Ran {
        Program::start(self.command(variables, arguments), b"").finish()
    }

    /// Lists the files under their home that hold this text.
    pub(crate) fn files_with(&self, text: &str) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut pending = vec![self.home()];
        while let Some(folder) = pending.pop() {
            for entry in fs::read_dir(&folder).unwrap().flatten() {
                let path = entry.path();
                let kind = entry.file_type().unwrap();
                if kind.is_dir() {
                    pending.push(path);
                } else if kind.is_file() && holds(&fs::read(&path).unwrap(), text) {
                    found.push(path);
                }
            }
        }
        found
    }
}

fn holds(bytes: &[u8], text: &str) -> bool {
    bytes
        .windows(text.len())
        .any(|window| window == text.as_bytes())
}

/// Lists the processes whose command line or environment holds this text.
pub(crate) fn processes_with(text: &str) -> Vec<u32> {
    let pids = fs::read_dir("/proc").unwrap().flatten();
    pids.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| {
            ["cmdline", "environ"].iter().any(|file| {
                fs::read(format!("/proc/{pid}/{file}")).is_ok_and(|bytes| holds(&bytes, text))
            })
        })
        .collect()
}

fn has_processes(uid: u32) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let mut entries = fs::read_dir("/proc").unwrap().flatten();
    entries.any(|entry| {
        let is_process = entry.file_name().as_encoded_bytes()[0].is_ascii_digit();
        is_process && entry.metadata().is_ok_and(|data| data.uid() == uid)
    })
}

impl Drop for Person {
    fn drop(&mut self) {
        let removed = self
            .command(&[], &["places", "rm", "--all"])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status();
        if !std::thread::panicking() {
            assert!(removed.unwrap().success());
            wait_until(PATIENCE, "a process of the user is left", || {
                !has_processes(self.uid)
            });
        }
        let _ = fs::remove_file(self.rule());
        // sudo's own memory of this user.
        let _ = fs::remove_file(PathBuf::from("/run/sudo/ts").join(&self.name));
        let _one = ACCOUNTS.lock().unwrap_or_else(PoisonError::into_inner);
        let name: &OsStr = self.name.as_ref();
        for _ in 0..100 {
            if run(Command::new("userdel").arg(name), "") {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
}
