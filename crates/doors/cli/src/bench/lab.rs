//! Where the bench works: homes of its own, gone when it ends.
//!
//! A home is both `EXOSHELL_HOME` and `HOME` of what runs in it, so sessions start without the
//! user's profile files.

use std::cell::{Cell, RefCell};
use std::ffi::OsStr;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use exoshell_runtime::config::{
    ApprovalConfig, ApprovalMode, Config, Environment, PlacesConfig, Resolved, env,
};
use exoshell_runtime::{GuestReport, Runtime, RuntimeError, TerminalRequest};

use super::Failure;

/// How long the clean-up may take.
const CLOSE_LIMIT: Duration = Duration::from_secs(20);

/// The bench's folder and the guests in it.
pub(super) struct Lab {
    root: PathBuf,
    homes: Cell<u32>,
    runtimes: RefCell<Vec<Runtime>>,
    quick: bool,
}

impl Lab {
    /// Makes a private folder.
    pub(super) fn open(quick: bool) -> io::Result<Self> {
        let root = std::env::temp_dir().join(format!("exoshell-bench-{}", std::process::id()));
        // Fails where somebody else put something.
        DirBuilder::new().mode(0o700).create(&root)?;
        Ok(Self {
            root,
            homes: Cell::new(0),
            runtimes: RefCell::default(),
            quick,
        })
    }

    /// Chooses between the full number of rounds and that of a first look.
    pub(super) const fn rounds(&self, full: usize, quick: usize) -> usize {
        if self.quick { quick } else { full }
    }

    /// Returns the folder.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// Makes a fresh home on this machine; its guest starts with the first call.
    pub(super) fn home(&self) -> Result<Home, Failure> {
        self.home_with(Config::default())
    }

    /// Makes a fresh home with these settings.
    pub(super) fn home_with(&self, config: Config) -> Result<Home, Failure> {
        let number = self.homes.get();
        self.homes.set(number + 1);
        let path = self.root.join(format!("home{number}"));
        DirBuilder::new().mode(0o700).create(&path)?;
        let config = Config {
            approval: ApprovalConfig {
                // The commands are the bench's own.
                mode: Some(ApprovalMode::Auto),
                ..ApprovalConfig::default()
            },
            places: PlacesConfig {
                // Should we be killed, the guest ends with our pipe.
                linger: Some(false),
                ..PlacesConfig::default()
            },
            ..config
        };
        // The processes we start use the same settings as we do.
        fs::write(path.join("config.toml"), toml::to_string(&config)?)?;
        let config = Resolved::from_config(&path, config)?;
        let runtime = Runtime::new(config, environment(&path));
        self.runtimes.borrow_mut().push(runtime.clone());
        Ok(Home { path, runtime })
    }

    /// Ends whatever still runs and removes the folder.
    pub(super) async fn close(&self) {
        let runtimes = self.runtimes.take();
        for runtime in runtimes {
            // What cannot be ended in time ends with our pipe to it.
            let _ = tokio::time::timeout(CLOSE_LIMIT, runtime.cleanup_all()).await;
        }
        self.remove();
    }

    fn remove(&self) {
        // A guest on its way out may still put something there.
        for _ in 0..10 {
            match fs::remove_dir_all(&self.root) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    std::thread::sleep(Duration::from_millis(20));
                }
                _ => return,
            }
        }
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Returns this process's environment with another home folder. A thousand sessions must not
/// run the user's profile files a thousand times: those take time, take locks and write files.
fn environment(home: &Path) -> Environment {
    let process = Environment::from_process();
    let others = process
        .iter()
        .filter(|(name, _)| *name != env::HOME)
        .chain([(OsStr::new(env::HOME), home.as_os_str())]);
    let changed = Environment::from_pairs(others);
    match process.directory() {
        Some(directory) => changed.in_directory(directory),
        None => changed,
    }
}

/// A home with a guest of its own.
pub(super) struct Home {
    path: PathBuf,
    runtime: Runtime,
}

/// One call of the tool, timed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Call {
    /// The whole call, as its caller sees it.
    pub(super) time: Duration,
    /// The guest's parts of it, in milliseconds: until the shell had it, while it ran, and
    /// until its output and state were collected.
    pub(super) parts: [f64; 3],
    /// Whether a shell stood ready.
    pub(super) warm: bool,
}

impl Home {
    /// Returns the folder.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the runtime.
    pub(super) const fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    /// Calls `terminal` and times it; a command that fails makes no sample.
    pub(super) async fn call(&self, task: &str, command: &str) -> Result<Call, Failure> {
        call(&self.runtime, task, command).await.map_err(Into::into)
    }

    /// Returns what the guest says of itself.
    pub(super) async fn guest(&self) -> Result<GuestReport, Failure> {
        let report = self.runtime.places().await?;
        report.guest.ok_or_else(|| "there is no guest".into())
    }

    /// Returns this program as a new process that uses this home and nothing else.
    pub(super) fn ourselves(&self) -> io::Result<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        let settings = std::env::vars_os().map(|(name, _)| name).filter(|name| {
            let name = name.as_encoded_bytes();
            name.starts_with(env::EXOSHELL_PREFIX.as_bytes()) || name.starts_with(b"TERMINAL_")
        });
        for name in settings {
            command.env_remove(name);
        }
        command
            .env(env::EXOSHELL_HOME, &self.path)
            .env(env::HOME, &self.path);
        Ok(command)
    }

    /// Ends the guest, so that it does not disturb the next part.
    pub(super) async fn end(&self) -> Result<(), RuntimeError> {
        self.runtime.cleanup_all().await.map(|_| ())
    }
}

/// Calls `terminal` and times it.
pub(super) async fn call(runtime: &Runtime, task: &str, command: &str) -> Result<Call, String> {
    let request = TerminalRequest::new(command).in_task(task);
    let began = Instant::now();
    let result = runtime.terminal(request).await;
    let time = began.elapsed();
    if let Some(error) = result.error {
        return Err(error);
    }
    if result.exit_code != 0 {
        return Err(format!("`{command}` ended with {}", result.exit_code));
    }
    let timings = result.timings;
    Ok(Call {
        time,
        parts: timings.map_or([0.0; 3], |t| [t.spawn_ms, t.run_ms, t.drain_ms]),
        warm: timings.is_some_and(|t| t.warm),
    })
}
