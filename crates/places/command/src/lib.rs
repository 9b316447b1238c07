//! The command backend: whatever a command of yours can start a program in.
//!
//! A *template* says how. One with the word `{guest}` starts the guest itself; any other is the
//! beginning of a command line (`kubectl exec -i pod --`, `chroot DIR`) through which the guest is
//! put into the place first.

mod run;
mod template;

use std::fs::{self, DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use exoshell_place::bootstrap::{Bootstrap, Launcher, command_line};
use exoshell_place::bundle::{self, GuestBinary};
use exoshell_place::{
    Check, Facts, Launched, Life, Pipe, Place, PlaceError, PlaceFuture, Progress, Silence, Trouble,
};
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use run::{no_program, run_to_end};
use template::Template;

/// How long a guest may take to announce itself.
const ANNOUNCE_LIMIT: Duration = Duration::from_secs(30);

/// How long a look may take.
const LOOK_LIMIT: Duration = Duration::from_secs(20);

/// How long a guest that was told to end may take to let go of its folder, and how often to look.
const END_LIMIT: Duration = Duration::from_secs(2);
const END_PAUSE: Duration = Duration::from_millis(10);

/// How much of a command's output is quoted.
const MAX_QUOTE: u64 = 2000;

/// How the guest names itself where it says what is wrong.
const GUEST_NAME: &str = "exoshell-guest";

/// What the guest says when it was told to start nothing and nobody listens.
const NO_GUEST_HERE: &str = "no guest here";

/// How programs are started in a place, and what else belongs to it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CommandSettings {
    /// The words that start something in the place. `{guest}` stands for the guest and its
    /// arguments; without it, what is to be started is added behind. `{task}` stands for the
    /// task's name.
    pub launch: Vec<String>,
    /// Brings the guest there when it is missing: `{file}` is the file here, `{target}` its path
    /// there. Only with `{guest}`.
    pub put: Option<Vec<String>>,
    /// Removes the place.
    pub destroy: Option<Vec<String>>,
    /// The guest's path in the place; `{hash}` stands for its build. Without it, the file under
    /// `EXOSHELL_HOME` must be visible there. Only with `{guest}`.
    pub guest_path: Option<String>,
    /// A folder of the place for the guest, private to its user; tried before all others.
    pub folder: Option<String>,
    /// The place's architecture as `uname -m` prints it, if it is not this machine's. Only with
    /// `{guest}`.
    pub arch: Option<String>,
    /// Names this machine and home: whoever gives the same one shares the guest.
    pub profile: String,
    /// A folder of this machine with guests for other platforms.
    pub guest_dir: Option<PathBuf>,
}

impl CommandSettings {
    /// Tells whether every task gets a place of its own: `{task}` stands somewhere.
    pub fn is_per_task(&self) -> bool {
        let lists = [Some(&self.launch), self.put.as_ref(), self.destroy.as_ref()];
        lists
            .into_iter()
            .flatten()
            .flatten()
            .chain(&self.guest_path)
            .any(|word| word.contains(template::TASK))
    }
}

/// A place behind a command.
#[derive(Debug, Clone)]
pub struct CommandPlace {
    home: PathBuf,
    settings: CommandSettings,
    template: Template,
    key: String,
    arguments: Vec<String>,
}

impl CommandPlace {
    /// Describes the place of a task. Touches nothing but checks the settings; `home` is
    /// `EXOSHELL_HOME`.
    pub fn new(
        home: impl Into<PathBuf>,
        settings: CommandSettings,
        task: &str,
    ) -> Result<Self, PlaceError> {
        let template = Template::new(&settings, task)?;
        let identity = format!("{}\0{}", settings.profile, template.launch.join("\0"));
        Ok(Self {
            home: home.into(),
            key: short_hash(&identity),
            template,
            settings,
            arguments: Vec::new(),
        })
    }

    /// Makes a guest that is started exit after this long with nothing to guard.
    #[must_use]
    pub fn with_exit_after(mut self, limit: Duration) -> Self {
        self.arguments.push("--exit-after-ms".to_owned());
        self.arguments.push(limit.as_millis().to_string());
        self
    }

    fn bootstrap(&self) -> Bootstrap<'_> {
        Bootstrap {
            launcher: self,
            key: &self.key,
            folder: self.settings.folder.as_deref(),
            guest_dir: self.settings.guest_dir.as_deref(),
            arguments: &self.arguments,
        }
    }

    /// Starts words in the place.
    fn start(&self, words: &[String]) -> Result<Launched, PlaceError> {
        let all = self.template.filled_with(words);
        Launched::program(&all).map_err(|error| no_program(&all, &error))
    }

    /// Finds the guest for the place, which nobody can ask what it runs on.
    fn guest(&self) -> Result<GuestBinary, PlaceError> {
        let arch = self.settings.arch.as_deref();
        let found = bundle::lookup(
            "linux",
            arch.unwrap_or(std::env::consts::ARCH),
            self.settings.guest_dir.as_deref(),
        );
        Ok(found?)
    }

    /// Makes sure that the guest is a file of this machine.
    fn file_of(&self, guest: &GuestBinary) -> Result<PathBuf, PlaceError> {
        let folder = self.home.join("guest");
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&folder)
            .map_err(|source| PlaceError::Setup {
                action: format!("cannot create `{}`", folder.display()),
                source,
                hint: "set `EXOSHELL_HOME` to a folder that you can write".to_owned(),
            })?;
        Ok(bundle::install(guest, &folder)?)
    }

    /// Returns the guest's path as the place sees it.
    fn program(&self, guest: &GuestBinary) -> Result<String, PlaceError> {
        match &self.template.guest_path {
            Some(path) => Ok(path.replace(template::HASH, guest.folder_name())),
            None => self
                .file_of(guest)
                .map(|path| path.to_string_lossy().into_owned()),
        }
    }

    /// Returns the folder of this machine that a guest with our files uses.
    fn own_folder(&self) -> PathBuf {
        self.home.join("run").join("command").join(&self.key)
    }

    /// Removes what a guest left in the home, unless one lives there. One that was told to end is
    /// waited for.
    async fn remove_own_folder(&self) {
        let folder = self.own_folder();
        let Ok(lock) = File::open(folder.join("guest.lock")) else {
            return;
        };
        let until = Instant::now() + END_LIMIT;
        while rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            if Instant::now() >= until {
                return;
            }
            tokio::time::sleep(END_PAUSE).await;
        }
        // What cannot be removed is found again by the next guest.
        let _ = fs::remove_dir_all(folder);
    }

    /// Returns the folders the guest may live in there, the best one first.
    fn folders(&self) -> Vec<String> {
        let mut folders = Vec::new();
        folders.extend(self.settings.folder.as_ref().map(|folder| {
            let folder = folder.trim_end_matches('/');
            format!("{folder}/run-{}", self.key)
        }));
        if self.template.guest_path.is_none() {
            folders.push(self.own_folder().to_string_lossy().into_owned());
        }
        for folder in ["/tmp", "/var/tmp", "/dev/shm", "/run"] {
            folders.push(format!("{folder}/exoshell-{}", self.key));
        }
        folders
    }

    /// Starts the guest, or its bridge, by the template; the inner error is for one that did not
    /// announce itself.
    async fn attach(
        &self,
        program: &str,
        existing: bool,
    ) -> Result<Result<Pipe, Silence>, PlaceError> {
        let nonce = exoshell_place::nonce()?;
        let mut words = vec![program.to_owned(), "attach".to_owned()];
        words.extend(["--nonce".to_owned(), nonce.clone()]);
        for folder in self.folders() {
            words.extend(["--dir".to_owned(), folder]);
        }
        if existing {
            words.push("--existing".to_owned());
        }
        words.extend_from_slice(&self.arguments);
        let launched = self.start(&words)?;
        Ok(Pipe::announced(launched, &nonce, ANNOUNCE_LIMIT).await)
    }

    async fn open_direct(&self, progress: &Progress) -> Result<Pipe, PlaceError> {
        let guest = self.guest()?;
        let program = self.program(&guest)?;
        let silence = match self.attach(&program, false).await? {
            Ok(pipe) => return Ok(pipe),
            Err(silence) => silence,
        };
        let Some(put) = self.template.put.as_ref().filter(|_| silence.ended) else {
            return Err(self.no_start(&program, &silence));
        };
        progress.step("putting the guest into the place");
        let file = self.file_of(&guest)?;
        let words = template::put_words(put, &file.to_string_lossy(), &program);
        run_to_end(&words).await?;
        match self.attach(&program, false).await? {
            Ok(pipe) => Ok(pipe),
            Err(silence) => Err(self.no_start(&program, &silence)),
        }
    }

    async fn open_direct_existing(&self) -> Result<Option<Pipe>, PlaceError> {
        let program = self.program(&self.guest()?)?;
        match self.attach(&program, true).await? {
            Ok(pipe) => Ok(Some(pipe)),
            Err(silence) if silence.complaint.contains(NO_GUEST_HERE) => Ok(None),
            Err(silence) => Err(self.no_start(&program, &silence)),
        }
    }

    fn no_start(&self, program: &str, silence: &Silence) -> PlaceError {
        let hint = if self.template.guest_path.is_none() {
            format!(
                "run the command by hand; the guest's file must be visible in the place as \
                 `{program}`, otherwise set `guest_path` and `put`"
            )
        } else {
            format!("run the command by hand, and check that `{program}` can be run in the place")
        };
        PlaceError::backend(
            Trouble::DoesNotStart,
            format!(
                "`{}` did not start the guest: {}",
                command_line(&self.template.launch),
                silence.describe()
            ),
            hint,
        )
    }

    /// Asks the guest's program in the place for its version.
    async fn look_direct(&self) -> Check {
        let name = "guest";
        let looked = async {
            let program = self.program(&self.guest()?)?;
            let mut launched = self.start(&[program, "--version".to_owned()])?;
            // A command that is gone already is judged by what it said.
            let _ = launched.stdin.shutdown().await;
            let mut said = String::new();
            let _ = launched
                .stdout
                .take(MAX_QUOTE)
                .read_to_string(&mut said)
                .await;
            let mut complaint = String::new();
            let _ = launched
                .stderr
                .take(MAX_QUOTE)
                .read_to_string(&mut complaint)
                .await;
            Ok::<_, PlaceError>((said, complaint))
        };
        match tokio::time::timeout(LOOK_LIMIT, looked).await {
            Ok(Ok((said, _))) if said.contains("exoshell-guest") => Check::fine(name, said.trim()),
            Ok(Ok((_, complaint))) if self.template.put.is_some() => Check::limited(
                name,
                format!("not there yet: {}", complaint.trim()),
                "the first use puts it there",
            ),
            Ok(Ok((said, complaint))) => Check::broken(
                name,
                format!("it does not run: {}{}", said.trim(), complaint.trim()),
                "run the command by hand; the guest's file must be visible in the place, \
                 otherwise set `guest_path` and `put`",
            ),
            Ok(Err(error)) => broken(name, &error),
            Err(_) => Check::broken(
                name,
                format!("nothing came within {} s", LOOK_LIMIT.as_secs()),
                "run the command by hand",
            ),
        }
    }
}

impl Launcher for CommandPlace {
    fn launch<'a>(&'a self, words: &'a [String]) -> PlaceFuture<'a, Launched> {
        Box::pin(async move { self.start(words) })
    }

    /// A launcher that ends without having started anything says why itself.
    fn explain(&self, silence: &Silence) -> Option<PlaceError> {
        if !silence.ended || silence.complaint.contains(GUEST_NAME) {
            return None;
        }
        let line = command_line(&self.template.launch);
        Some(PlaceError::backend(
            Trouble::DoesNotStart,
            format!("`{line}` did not start our program: {}", silence.describe()),
            format!(
                "run `{line} true` by hand: it must start the program behind it and pass its \
                 stdin and stdout on"
            ),
        ))
    }
}

impl Place for CommandPlace {
    fn backend(&self) -> &'static str {
        "command"
    }

    fn life(&self) -> Life {
        Life {
            lease: Duration::from_secs(60),
            heartbeat: Some(Duration::from_secs(5)),
            linger: true,
            session: None,
        }
    }

    fn open<'a>(&'a self, progress: &'a Progress) -> PlaceFuture<'a, Pipe> {
        Box::pin(async move {
            if self.template.names_guest() {
                self.open_direct(progress).await
            } else {
                self.bootstrap().open(progress).await
            }
        })
    }

    fn open_existing(&self) -> PlaceFuture<'_, Option<Pipe>> {
        Box::pin(async move {
            if self.template.names_guest() {
                self.open_direct_existing().await
            } else {
                self.bootstrap().open_existing().await
            }
        })
    }

    fn launch<'a>(&'a self, words: &'a [String]) -> PlaceFuture<'a, Launched> {
        Launcher::launch(self, words)
    }

    fn inspect(&self) -> PlaceFuture<'_, Facts> {
        Box::pin(async {
            Ok(Facts {
                id: Some(command_line(&self.template.launch)),
                ..Facts::default()
            })
        })
    }

    /// There is nothing to sweep: what is behind the command is its owner's.
    fn sweep(&self) -> PlaceFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn destroy(&self) -> PlaceFuture<'_, ()> {
        Box::pin(async {
            let destroyed = match &self.template.destroy {
                Some(words) => run_to_end(words).await,
                None => Ok(()),
            };
            // The guest is gone in any case.
            self.remove_own_folder().await;
            destroyed
        })
    }

    fn check(&self) -> PlaceFuture<'_, Vec<Check>> {
        Box::pin(async {
            if self.template.names_guest() {
                Ok(vec![self.look_direct().await])
            } else {
                Ok(self.bootstrap().look().await)
            }
        })
    }
}

fn broken(name: &str, error: &PlaceError) -> Check {
    let remedy = error.hint();
    Check::broken(
        name,
        error.to_string(),
        remedy.unwrap_or_else(|| "run the command by hand".to_owned()),
    )
}

/// Names something with 16 hexadecimal digits.
fn short_hash(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let digits: Vec<String> = digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    digits.concat()
}

#[cfg(test)]
#[path = "lib_tests.rs"]
mod tests;
