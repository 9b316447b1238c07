//! The local backend: this machine, this user.
//!
//! One guest per `EXOSHELL_HOME` and set of namespaces serves every caller; it lives in
//! `run/<namespaces>` under that folder and is started when the first caller needs it. There is
//! no isolation here: commands run as the user who asks.

mod socket;

use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use exoshell_place::bundle::{self, GuestBinary};
use exoshell_place::{
    Check, Facts, Launched, Life, Pipe, Place, PlaceError, PlaceFuture, Progress,
};
use rustix::fs::FlockOperation;
use sha2::{Digest as _, Sha256};
use tokio::net::UnixStream;
use tokio::process::Command;

/// How long the guest may take to listen.
const START_LIMIT: Duration = Duration::from_secs(20);

/// This machine, as a place.
#[derive(Debug, Clone)]
pub struct LocalPlace {
    home: PathBuf,
    run_dir: PathBuf,
    guest_dir: Option<PathBuf>,
    exit_after: Option<Duration>,
    linger: bool,
}

impl LocalPlace {
    /// Describes the local place of a home folder. Touches nothing.
    pub fn new(home: impl Into<PathBuf>) -> Self {
        let home = home.into();
        Self {
            run_dir: home.join("run").join(namespaces()),
            home,
            guest_dir: None,
            exit_after: None,
            linger: true,
        }
    }

    /// Tells whether the guest stays when its last host is gone.
    #[must_use]
    pub const fn with_linger(mut self, linger: bool) -> Self {
        self.linger = linger;
        self
    }

    /// Takes guests from this folder instead of the built-in one.
    #[must_use]
    pub fn with_guest_dir(mut self, dir: Option<PathBuf>) -> Self {
        self.guest_dir = dir;
        self
    }

    /// Makes a guest that is started exit after this long with nothing to guard.
    #[must_use]
    pub const fn with_exit_after(mut self, limit: Duration) -> Self {
        self.exit_after = Some(limit);
        self
    }

    /// Returns the guest's private folder.
    pub fn run_dir(&self) -> &Path {
        &self.run_dir
    }

    async fn connect(&self) -> io::Result<UnixStream> {
        socket::connect(&self.run_dir).await
    }

    async fn ensure(&self) -> Result<UnixStream, PlaceError> {
        match self.connect().await {
            Ok(socket) => return Ok(socket),
            Err(error) if nobody_listens(&error) => {}
            Err(error) => {
                return Err(PlaceError::Unreachable {
                    message: error.to_string(),
                });
            }
        }
        let place = self.clone();
        let lock = tokio::task::spawn_blocking(move || place.prepare())
            .await
            .map_err(|error| PlaceError::Nonsense(error.to_string()))??;
        // Whoever held the lock before us may have started it.
        if let Ok(socket) = self.connect().await {
            return Ok(socket);
        }
        let binary = bundle::lookup(
            std::env::consts::OS,
            std::env::consts::ARCH,
            self.guest_dir.as_deref(),
        )?;
        let program = self.install(&binary)?;
        self.start(&program).await?;
        let socket = self.connect().await.map_err(|error| PlaceError::Start {
            message: format!("it does not listen ({error})"),
        });
        drop(lock);
        socket
    }

    /// Makes the folders and takes the lock that lets only one caller start a guest.
    fn prepare(&self) -> Result<fs::File, PlaceError> {
        let parent = self.home.join("run");
        for dir in [&self.home, &parent, &self.run_dir] {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(dir)
                .map_err(|source| {
                    self.setup(&format!("cannot create `{}`", dir.display()), source)
                })?;
        }
        let path = parent.join("start.lock");
        let locked = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .and_then(|file| {
                rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
                Ok(file)
            });
        locked.map_err(|source| self.setup(&format!("cannot lock `{}`", path.display()), source))
    }

    fn setup(&self, action: &str, source: io::Error) -> PlaceError {
        PlaceError::Setup {
            action: action.to_owned(),
            source,
            hint: format!(
                "set `EXOSHELL_HOME` to a folder that you can write (it is `{}`)",
                self.home.display()
            ),
        }
    }

    fn install(&self, binary: &GuestBinary) -> Result<PathBuf, PlaceError> {
        let dir = self.home.join("guest");
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&dir)
            .map_err(|source| self.setup(&format!("cannot create `{}`", dir.display()), source))?;
        Ok(bundle::install(binary, &dir)?)
    }

    async fn start(&self, program: &Path) -> Result<(), PlaceError> {
        let mut tries = 0;
        let child = loop {
            let mut command = Command::new(program);
            command.arg("start").arg("--dir").arg(&self.run_dir);
            if let Some(limit) = self.exit_after {
                command
                    .arg("--exit-after-ms")
                    .arg(limit.as_millis().to_string());
            }
            command
                // The guest never lends its own environment, so it gets none.
                .env_clear()
                .current_dir("/")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::piped())
                .kill_on_drop(true);
            match command.spawn() {
                Ok(child) => break child,
                // Another thread forked while the program's file was being written, and holds
                // it open until its exec.
                Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy && tries < 50 => {
                    tries += 1;
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                Err(error) => {
                    return Err(PlaceError::Start {
                        message: format!("`{}`: {error}", program.display()),
                    });
                }
            }
        };
        let output = match tokio::time::timeout(START_LIMIT, child.wait_with_output()).await {
            Ok(Ok(output)) => output,
            Ok(Err(error)) => {
                return Err(PlaceError::Start {
                    message: error.to_string(),
                });
            }
            Err(_) => {
                return Err(PlaceError::Start {
                    message: format!("it took over {} s", START_LIMIT.as_secs()),
                });
            }
        };
        if output.status.success() {
            return Ok(());
        }
        Err(PlaceError::Start {
            message: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        })
    }
}

fn launch_failed(error: &io::Error) -> PlaceError {
    PlaceError::Start {
        message: error.to_string(),
    }
}

fn nobody_listens(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused | io::ErrorKind::NotADirectory
    )
}

/// Names the namespaces of this process: a caller in others gets a guest of its own, since
/// theirs could neither see its files nor its processes.
fn namespaces() -> String {
    let mut hasher = Sha256::new();
    for name in ["mnt", "pid", "user", "net", "ipc", "uts"] {
        let link = fs::read_link(format!("/proc/self/ns/{name}")).unwrap_or_default();
        hasher.update(link.as_os_str().as_encoded_bytes());
    }
    hasher.update(rustix::process::geteuid().as_raw().to_le_bytes());
    let digest = hasher.finalize();
    let [a, b, c, d, ..] = digest.as_slice() else {
        return "default".to_owned();
    };
    format!("{a:02x}{b:02x}{c:02x}{d:02x}")
}

fn pipe(socket: UnixStream) -> Pipe {
    let (reader, writer) = socket.into_split();
    Pipe::direct(reader, writer)
}

impl Place for LocalPlace {
    fn backend(&self) -> &'static str {
        "local"
    }

    fn life(&self) -> Life {
        Life {
            // A local pipe ends only when its host does, and what the host asked for ends with
            // it. It reports its own end, too.
            lease: Duration::ZERO,
            heartbeat: None,
            linger: self.linger,
            session: None,
        }
    }

    fn open<'a>(&'a self, _progress: &'a Progress) -> PlaceFuture<'a, Pipe> {
        Box::pin(async { self.ensure().await.map(pipe) })
    }

    fn open_existing(&self) -> PlaceFuture<'_, Option<Pipe>> {
        Box::pin(async { Ok(self.connect().await.ok().map(pipe)) })
    }

    fn launch<'a>(&'a self, words: &'a [String]) -> PlaceFuture<'a, Launched> {
        Box::pin(async move { Launched::program(words).map_err(|error| launch_failed(&error)) })
    }

    fn inspect(&self) -> PlaceFuture<'_, Facts> {
        Box::pin(async { Ok(Facts::default()) })
    }

    fn destroy(&self) -> PlaceFuture<'_, ()> {
        self.sweep()
    }

    fn check(&self) -> PlaceFuture<'_, Vec<Check>> {
        Box::pin(async {
            let folder = format!("{}", self.home.display());
            Ok(vec![match self.ensure().await {
                Ok(_) => Check::fine("guest", format!("answers, in `{folder}`")),
                Err(error) => Check::broken(
                    "guest",
                    error.to_string(),
                    error.hint().unwrap_or_else(|| {
                        "set `EXOSHELL_HOME` to a folder that you can write".to_owned()
                    }),
                ),
            }])
        })
    }

    fn sweep(&self) -> PlaceFuture<'_, ()> {
        Box::pin(async {
            if !self.run_dir.exists() || self.connect().await.is_ok() {
                return Ok(());
            }
            let place = self.clone();
            let lock = tokio::task::spawn_blocking(move || place.prepare())
                .await
                .map_err(|error| PlaceError::Nonsense(error.to_string()))??;
            if self.connect().await.is_err() {
                // What cannot be removed is found again by the next guest.
                let _ = fs::remove_dir_all(&self.run_dir);
            }
            drop(lock);
            Ok(())
        })
    }
}
