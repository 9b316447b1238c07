//! Getting a guest to run in a place that can only start programs.
//!
//! All it takes is something that starts words with their streams piped: an ssh client, `docker
//! exec`, any launcher. Usually one start is enough: a line of shell finds the guest's program and
//! becomes its bridge. Otherwise that line says what the place is, the fitting program is sent
//! through the stdin of another one, checked there, and the first line is tried again.

mod answer;
mod quote;
mod script;
mod upload;

use std::path::Path;
use std::time::Duration;

use tokio::io::AsyncWriteExt as _;

use answer::{Witness, collect};

use crate::bundle::{self, BundleError, GuestBinary};
use crate::{Check, Launched, Pipe, PlaceError, PlaceFuture, Progress, Silence, Trouble, nonce};

pub use quote::{command_line, quote};

/// How long a guest may take to announce itself, a reconnect in between included.
const ANNOUNCE_LIMIT: Duration = Duration::from_secs(20);

/// How long a short program may take.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);

/// What follows from a place that cannot hold a guest.
const NO_GUEST_NEEDED: &str = "commands run without a guest there, slower";

/// What the guest says when it was told to start nothing and nobody listens.
const NO_GUEST_HERE: &str = "no guest here";

/// Starts programs in a place.
pub trait Launcher: Send + Sync {
    /// Starts these words with their standard streams piped.
    fn launch<'a>(&'a self, words: &'a [String]) -> PlaceFuture<'a, Launched>;

    /// Explains a program that ended without an answer, if its backend knows why.
    fn explain(&self, silence: &Silence) -> Option<PlaceError> {
        let _ = silence;
        None
    }
}

/// What is needed to get a guest running.
#[expect(
    missing_debug_implementations,
    reason = "a launcher is not for printing"
)]
#[derive(Clone, Copy)]
pub struct Bootstrap<'a> {
    /// Starts programs in the place.
    pub launcher: &'a dyn Launcher,
    /// Names the guest in the place: callers with the same key share it. Letters, digits, `-`.
    pub key: &'a str,
    /// A folder of the place to try before all others; made if it is not there, private to the
    /// user.
    pub folder: Option<&'a str>,
    /// A folder of this machine with guests for other platforms.
    pub guest_dir: Option<&'a Path>,
    /// Further arguments of the guest's `attach`.
    pub arguments: &'a [String],
}

/// What a place runs on, as `uname` tells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Platform {
    /// The operating system: `Linux`.
    pub os: String,
    /// The architecture: `x86_64`.
    pub arch: String,
}

/// What the first line of shell led to.
enum Found {
    Guest(Pipe),
    Nothing(Platform),
}

/// Whether a guest may be started.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Open,
    Existing,
}

impl Bootstrap<'_> {
    /// Opens a pipe to the guest; puts its program there and starts it if need be.
    pub async fn open(&self, progress: &Progress) -> Result<Pipe, PlaceError> {
        let first = bundle::embedded();
        let platform = match self.find(&first, Mode::Open).await? {
            Ok(Found::Guest(pipe)) => return Ok(pipe),
            Ok(Found::Nothing(platform)) => platform,
            // The file that is there may be damaged, or for another machine with the same home.
            Err(silence) if is_unfit(&silence) => self.platform().await?,
            Err(silence) => return Err(self.explain(silence).await),
        };
        let guest = bundle::lookup(&platform.os, &platform.arch, self.guest_dir)
            .map_err(|error| no_guest_for(&error))?;
        if guest.sha256 != first.sha256
            && let Ok(Found::Guest(pipe)) = self.find(&guest, Mode::Open).await?
        {
            return Ok(pipe);
        }
        self.install(&guest, progress).await?;
        match self.find(&guest, Mode::Open).await? {
            Ok(Found::Guest(pipe)) => Ok(pipe),
            Ok(Found::Nothing(_)) => Err(PlaceError::Start {
                message: "its program was put into the place and is not there any more".to_owned(),
            }),
            Err(silence) => Err(self.explain(silence).await),
        }
    }

    /// Opens a pipe only if a guest listens; `None` means that there is certainly none.
    pub async fn open_existing(&self) -> Result<Option<Pipe>, PlaceError> {
        match self.find(&bundle::embedded(), Mode::Existing).await? {
            Ok(Found::Guest(pipe)) => Ok(Some(pipe)),
            Ok(Found::Nothing(_)) => Ok(None),
            Err(silence) if silence.complaint.contains(NO_GUEST_HERE) => Ok(None),
            Err(silence) => Err(self.explain(silence).await),
        }
    }

    /// Asks what the place runs on; changes nothing there.
    pub async fn platform(&self) -> Result<Platform, PlaceError> {
        let nonce = nonce()?;
        // No program has this name, so the answer is always what the place is.
        let words = self.find_words(&nonce, "-", Mode::Open);
        let answer = self.ask(&words, &nonce).await?;
        match answer.first().and_then(|line| read_platform(line)) {
            Some(platform) => Ok(platform),
            None => Err(PlaceError::Nonsense(format!(
                "the place answered `{}`",
                answer.join("; ")
            ))),
        }
    }

    /// Looks at what the place runs on and where the guest would go, for `doctor`. Changes
    /// nothing.
    pub async fn look(&self) -> Vec<Check> {
        let platform = match self.platform().await {
            Ok(platform) => self.look_at_platform(&platform),
            Err(error) => return vec![broken("commands", &error)],
        };
        let folder = match self.likely_folder().await {
            Ok(Ok(folder)) => Check::fine("folder for the guest", folder),
            Ok(Err(why)) => Check::limited(
                "folder for the guest",
                format!("{why}; {NO_GUEST_NEEDED}"),
                "give the account a home folder that programs can run in, or configure a folder \
                 that it can write to",
            ),
            Err(error) => broken("folder for the guest", &error),
        };
        vec![platform, folder]
    }

    fn look_at_platform(&self, Platform { os, arch }: &Platform) -> Check {
        match bundle::lookup(os, arch, self.guest_dir) {
            Ok(_) => Check::fine("platform", format!("{os} {arch}")),
            Err(error) => Check::limited(
                "platform",
                format!("{error}; {NO_GUEST_NEEDED}"),
                error.hint().unwrap_or_default(),
            ),
        }
    }

    /// Names the folder of the place that would hold the guest, as far as one can tell without
    /// writing to it. The inner error says why there is none.
    async fn likely_folder(&self) -> Result<Result<String, String>, PlaceError> {
        let nonce = nonce()?;
        let words = program(script::LOOK, &[&nonce, self.folder.unwrap_or_default()]);
        let answer = self.ask(&words, &nonce).await?;
        let answer = answer.first().map(String::as_str).unwrap_or_default();
        if let Some(folder) = answer.strip_prefix("fit:") {
            return Ok(Ok(folder.to_owned()));
        }
        Ok(Err(match answer.strip_prefix("noexec:") {
            Some(folder) => {
                format!("no program may run in the folders there, such as `{folder}` (noexec)")
            }
            None => "no folder there can be written to".to_owned(),
        }))
    }

    /// Looks for the program and becomes a pipe to its guest. The inner error is for a program
    /// that ended without an answer.
    async fn find(
        &self,
        guest: &GuestBinary,
        mode: Mode,
    ) -> Result<Result<Found, Silence>, PlaceError> {
        let nonce = nonce()?;
        let words = self.find_words(&nonce, guest.folder_name(), mode);
        let mut launched = self.launcher.launch(&words).await?;
        let witness = Witness::of(&mut launched, &nonce);
        let silence = tokio::select! {
            announced = Pipe::announced(launched, &nonce, ANNOUNCE_LIMIT) => match announced {
                Ok(pipe) => {
                    witness.dismiss();
                    return Ok(Ok(Found::Guest(pipe)));
                }
                Err(silence) => silence,
            },
            () = witness.ended() => Silence {
                said: witness.answers().join("; "),
                complaint: String::new(),
                ended: true,
            },
        };
        match witness
            .answers()
            .first()
            .and_then(|line| read_platform(line))
        {
            Some(platform) => Ok(Ok(Found::Nothing(platform))),
            None => Ok(Err(silence)),
        }
    }

    fn find_words(&self, nonce: &str, folder_name: &str, mode: Mode) -> Vec<String> {
        let folder = self.folder.unwrap_or_default();
        let mode_name = match mode {
            Mode::Open => "open",
            Mode::Existing => "existing",
        };
        let arguments = [nonce, folder_name, self.key, folder, mode_name];
        let mut words = program(script::FIND, &arguments);
        if mode == Mode::Existing {
            words.push("--existing".to_owned());
        }
        words.extend_from_slice(self.arguments);
        words
    }

    /// Runs a short program without input and returns its answers.
    async fn ask(&self, words: &[String], nonce: &str) -> Result<Vec<String>, PlaceError> {
        let mut launched = self.launcher.launch(words).await?;
        // A launcher may have ended already; then its stderr says why.
        let _ = launched.stdin.shutdown().await;
        let output = collect(launched, nonce, ANSWER_LIMIT).await;
        match output {
            Ok(answers) => Ok(answers),
            Err(silence) => Err(self.explained(&silence)),
        }
    }

    /// Turns a silence into an error; finds out whether something swallows our input.
    async fn explain(&self, silence: Silence) -> PlaceError {
        if let Some(error) = self.launcher.explain(&silence) {
            return error;
        }
        if silence.ended {
            return unexplained(&silence);
        }
        match self.answers_without_input().await {
            Ok(()) => PlaceError::backend(
                Trouble::DoesNotStart,
                "something reads the input that is meant for the guest, and waits for more",
                "a start-up file of the login shell there (such as `.bashrc`) must not read from \
                 stdin unless the shell is interactive",
            ),
            Err(error) if error.is_transient() => error,
            Err(_) => unexplained(&silence),
        }
    }

    fn explained(&self, silence: &Silence) -> PlaceError {
        self.launcher
            .explain(silence)
            .unwrap_or_else(|| unexplained(silence))
    }

    async fn answers_without_input(&self) -> Result<(), PlaceError> {
        let nonce = nonce()?;
        let words = program(script::ECHO, &[&nonce]);
        self.ask(&words, &nonce).await.map(|_| ())
    }
}

fn broken(name: &str, error: &PlaceError) -> Check {
    let remedy = error
        .hint()
        .unwrap_or_else(|| "try the same command by hand".to_owned());
    Check::broken(name, error.to_string(), remedy)
}

/// Builds the words that run one of our scripts.
fn program(script: &str, arguments: &[&str]) -> Vec<String> {
    ["sh", "-c", script, "exoshell"]
        .iter()
        .chain(arguments)
        .map(|word| (*word).to_owned())
        .collect()
}

/// Tells whether the program is there and the system does not take it for one.
fn is_unfit(silence: &Silence) -> bool {
    let complaint = silence.complaint.to_lowercase();
    silence.ended
        && complaint.contains(bundle::FILE_NAME)
        && [
            "exec format",
            "cannot execute",
            "not found",
            "permission denied",
            "syntax error",
        ]
        .iter()
        .any(|text| complaint.contains(text))
        && own_words(&silence.complaint).is_none()
}

/// Says that the place is fine, but nothing of ours runs on it.
fn no_guest_for(error: &BundleError) -> PlaceError {
    let why = match error.hint() {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    };
    PlaceError::NoGuest { why }
}

/// Returns what the guest said itself; a shell that speaks of it names its whole path.
fn own_words(complaint: &str) -> Option<&str> {
    let name = "exoshell-guest: ";
    let start = complaint
        .match_indices(name)
        .find(|(at, _)| !complaint.get(..*at).is_some_and(|text| text.ends_with('/')));
    complaint.get(start?.0 + name.len()..)
}

/// Describes a program that ended, or went on, without an answer.
fn unexplained(silence: &Silence) -> PlaceError {
    if let Some(own) = own_words(&silence.complaint) {
        return PlaceError::Start {
            message: own.to_owned(),
        };
    }
    if !silence.ended {
        return PlaceError::backend(
            Trouble::NoAnswer,
            format!("the place does not answer: {}", silence.describe()),
            "try again; look at the connection if it happens again",
        );
    }
    let message = if silence.complaint.is_empty() && silence.said.is_empty() {
        "the place ended our program before it could run, and said nothing".to_owned()
    } else {
        format!("our program did not run: {}", silence.describe())
    };
    PlaceError::backend(
        Trouble::DoesNotStart,
        message,
        "a start-up file of the login shell there (such as `.bashrc`) must not call `exit` or \
         start another program unless the shell is interactive, and the account must be allowed \
         to run commands",
    )
}

/// Reads `need:<os>:<arch>:`.
fn read_platform(line: &str) -> Option<Platform> {
    let mut parts = line.strip_prefix("need:")?.split(':');
    Some(Platform {
        os: parts.next()?.trim().to_owned(),
        arch: parts.next()?.trim().to_owned(),
    })
}

#[cfg(test)]
#[path = "bootstrap_tests.rs"]
mod tests;
