//! One test's world.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Answer, Process, Program, Ran, processes_naming};

/// What commands are found in.
pub(crate) const PATH: &str = "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin";

/// The binary under test.
pub(crate) const EXOSHELL: &str = env!("CARGO_BIN_EXE_exoshell");

/// Folders of one test and the binary in them. When it is dropped, everything is removed by the
/// product itself, and nothing of it may be left.
#[derive(Debug)]
pub(crate) struct World {
    root: TempDir,
    /// `EXOSHELL_HOME`.
    pub(crate) home: PathBuf,
    /// `HOME`.
    pub(crate) user: PathBuf,
    /// Where the binary is called.
    pub(crate) work: PathBuf,
    variables: Vec<(OsString, OsString)>,
}

/// Returns a folder with the guest's program, made once for all tests.
fn guest_cache() -> &'static Path {
    static CACHE: OnceLock<TempDir> = OnceLock::new();
    CACHE
        .get_or_init(|| {
            let dir = tempfile::tempdir().unwrap();
            let run = |arguments: &[&str]| {
                let output = Command::new(EXOSHELL)
                    .args(arguments)
                    .env_clear()
                    .env("PATH", PATH)
                    .env("HOME", dir.path())
                    .env("EXOSHELL_HOME", dir.path())
                    .output()
                    .unwrap();
                assert!(output.status.success(), "{output:?}");
            };
            run(&["run", "true"]);
            run(&["places", "rm", "--all"]);
            dir
        })
        .path()
}

fn private_folder(path: &Path) {
    fs::DirBuilder::new().mode(0o700).create(path).unwrap();
}

/// Puts the guest's program where a home has it.
fn install_guest(home: &Path) {
    let from = guest_cache().join("guest");
    let to = home.join("guest");
    private_folder(&to);
    for folder in fs::read_dir(from).unwrap().flatten() {
        let target = to.join(folder.file_name());
        private_folder(&target);
        for file in fs::read_dir(folder.path()).unwrap().flatten() {
            let path = target.join(file.file_name());
            // Another filesystem than the cache's takes a copy.
            if fs::hard_link(file.path(), &path).is_err() {
                fs::copy(file.path(), &path).unwrap();
            }
        }
    }
}

/// Tells whether a file of the home outlives its places: settings, locks (whoever removes one may
/// have two owners of it), what is known of a remote host, and what people decided and did.
fn is_to_stay(name: &Path) -> bool {
    let kind = name.extension().unwrap_or_default();
    name == Path::new("config.toml")
        || name == Path::new("config.lock")
        || name.starts_with("audit")
        || name.starts_with("approvals")
        || name == Path::new("run/start.lock")
        || kind == "lock" && (name.starts_with("run/ssh") || name.starts_with("docker"))
        || kind == "json" && name.starts_with("run/ssh")
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with_home_name("exo")
    }

    /// Makes a world whose `EXOSHELL_HOME` has this name, which may be several folders.
    pub(crate) fn with_home_name(name: &str) -> Self {
        let world = Self::bare(name);
        fs::create_dir_all(world.home.parent().unwrap()).unwrap();
        private_folder(&world.home);
        install_guest(&world.home);
        world
    }

    /// Makes a world without an `EXOSHELL_HOME` folder.
    pub(crate) fn bare(name: &str) -> Self {
        let root = tempfile::Builder::new()
            .prefix("exo-e2e-")
            .tempdir()
            .unwrap();
        let path = root.path().canonicalize().unwrap();
        // Tests that drop root's rights must still be able to enter.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let [home, user, work] = [name, "user", "work"].map(|name| path.join(name));
        fs::create_dir(&user).unwrap();
        fs::create_dir(&work).unwrap();
        Self {
            root,
            home,
            user,
            work,
            variables: Vec::new(),
        }
    }

    /// Sets a variable of the caller.
    #[must_use]
    pub(crate) fn with_variable(
        mut self,
        name: impl AsRef<OsStr>,
        value: impl AsRef<OsStr>,
    ) -> Self {
        self.variables
            .push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Writes the configuration file.
    #[must_use]
    pub(crate) fn with_config(self, text: &str) -> Self {
        fs::write(self.home.join("config.toml"), text).unwrap();
        self
    }

    /// Returns the folder all others are in.
    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    /// Adds environment and directory to a command.
    pub(crate) fn dress(&self, command: &mut Command) {
        command
            .env_clear()
            .env("PATH", PATH)
            .env("HOME", &self.user)
            .env("EXOSHELL_HOME", &self.home)
            // Nobody is there to be asked; the tests of the guard ask for its default.
            .env("EXOSHELL_APPROVAL", "auto")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.work);
    }

    /// Describes a call of the binary.
    pub(crate) fn command<I: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = I>,
    ) -> Command {
        let mut command = Command::new(EXOSHELL);
        command.args(arguments);
        self.dress(&mut command);
        command
    }

    #[track_caller]
    pub(crate) fn start<I: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = I>) -> Program {
        Program::start(self.command(arguments), b"")
    }

    /// Runs the binary to its end.
    #[track_caller]
    pub(crate) fn exoshell<I: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = I>) -> Ran {
        self.start(arguments).finish()
    }

    /// Runs the binary to its end and reads its JSON.
    #[track_caller]
    pub(crate) fn json<I: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = I>) -> Value {
        let ran = self.exoshell(arguments);
        Answer::parse(&ran.out).0
    }

    /// Starts a call of the tool `terminal` with these arguments.
    #[track_caller]
    pub(crate) fn start_call(&self, arguments: &Value) -> Program {
        let command = self.command(["call", "terminal", "-"]);
        Program::start(command, arguments.to_string().as_bytes())
    }

    /// Calls the tool `terminal` and returns the answer and the exit code.
    #[track_caller]
    pub(crate) fn call_with_code(&self, arguments: &Value) -> (Answer, i32) {
        let ran = self.start_call(arguments).finish();
        (Answer::parse(&ran.out), ran.code())
    }

    /// Calls the tool `terminal`.
    #[track_caller]
    pub(crate) fn call(&self, arguments: &Value) -> Answer {
        self.call_with_code(arguments).0
    }

    /// Runs a command in the default task's session, as a process of its own.
    #[track_caller]
    pub(crate) fn terminal(&self, command: &str) -> Answer {
        self.call(&json!({ "command": command }))
    }

    /// Runs a command in a task's session.
    #[track_caller]
    pub(crate) fn task(&self, task: &str, command: &str) -> Answer {
        self.call(&json!({ "command": command, "task_id": task }))
    }

    /// Lists what runs because of this world.
    pub(crate) fn processes(&self) -> Vec<Process> {
        processes_naming(self.root.path().to_str().unwrap())
    }

    /// Returns the process id of the guest.
    #[track_caller]
    pub(crate) fn guest_pid(&self) -> u32 {
        let report = self.json(["places", "ls", "--json"]);
        u32::try_from(report["guest"]["pid"].as_u64().unwrap()).unwrap()
    }

    /// Lists the files of the home that a clean-up must not leave.
    fn files_left(&self) -> Vec<String> {
        let mut left = Vec::new();
        let mut pending = vec![self.home.clone()];
        while let Some(dir) = pending.pop() {
            for entry in fs::read_dir(&dir).into_iter().flatten().flatten() {
                let path = entry.path();
                let name = path.strip_prefix(&self.home).unwrap().to_owned();
                if name == Path::new("guest") {
                    continue;
                }
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    pending.push(path);
                } else if !is_to_stay(&name) {
                    left.push(name.display().to_string());
                }
            }
        }
        left
    }

    /// Removes everything with the product's own means and asserts that nothing is left.
    #[track_caller]
    pub(crate) fn clean_up(&self) {
        if !self.home.is_dir() {
            return;
        }
        let ran = self.exoshell(["places", "rm", "--all"]);
        assert_eq!(ran.code(), 0, "{}", ran.talk());
        let mut left = Vec::new();
        let limit = Duration::from_secs(10);
        let deadline = std::time::Instant::now() + limit;
        loop {
            left.clone_from(&self.processes());
            if left.is_empty() || std::time::Instant::now() > deadline {
                break;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(
            left.is_empty(),
            "still running after the clean-up: {left:#?}"
        );
        let deadline = std::time::Instant::now() + Duration::from_secs(2);
        let mut files = self.files_left();
        while !files.is_empty() && std::time::Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
            files = self.files_left();
        }
        assert!(
            files.is_empty(),
            "files are left after the clean-up: {files:?}"
        );
    }

    /// Ends by force what a failed test left, so that it does not disturb others.
    fn sweep(&self) {
        for process in self.processes() {
            let pid = rustix::process::Pid::from_raw(process.pid.cast_signed());
            if let Some(pid) = pid {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut command = self.command(["places", "rm", "--all"]);
            let _ = command
                .stdout(std::process::Stdio::null())
                .stderr(std::process::Stdio::null())
                .status();
            self.sweep();
            return;
        }
        // A broken configuration was the test's, not the clean-up's.
        self.variables.clear();
        let _ = fs::remove_file(self.home.join("config.toml"));
        let sweep = Sweep(self);
        sweep.0.clean_up();
    }
}

/// Sweeps whatever happens.
struct Sweep<'a>(&'a World);

impl Drop for Sweep<'_> {
    fn drop(&mut self) {
        self.0.sweep();
    }
}
