//! The ssh backend: another machine, reached with the OpenSSH client.
//!
//! One connection (a *master*) per host and home serves every caller; each pipe is a session on
//! it. The guest lives on the host, in a folder named after the caller's profile, so that two
//! machines or homes never share one. What `~/.ssh/config` says holds; only what was configured
//! explicitly goes before it.

mod client;
mod master;
mod mux;
mod trouble;

use std::path::{Path, PathBuf};
use std::time::Duration;

use exoshell_place::bootstrap::{Bootstrap, Launcher as _};
use exoshell_place::{
    Check, Facts, Launched, Life, Pipe, Place, PlaceError, PlaceFuture, Progress, Trouble,
};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use client::{Client, Resolved};

/// How often a connection that broke while it was used is made anew.
const TRIES: usize = 2;

/// Which host, and how to get there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SshSettings {
    /// The host's name, address, or alias of `~/.ssh/config`.
    pub host: String,
    /// The user there; otherwise the client decides.
    pub user: Option<String>,
    /// The port; otherwise the client decides.
    pub port: Option<u16>,
    /// The private key; otherwise the client decides.
    pub key: Option<PathBuf>,
    /// Further options of the client, as `Name=value`; they go before all others.
    pub options: Vec<String>,
    /// Used instead of `~/.ssh/config`.
    pub config: Option<PathBuf>,
    /// The client's program; `ssh` unless told.
    pub program: Option<PathBuf>,
    /// A folder of the host to put the guest into; it is made private to the user.
    pub folder: Option<String>,
    /// Names this machine and home: whoever gives the same one shares the guest.
    pub profile: String,
    /// A folder of this machine with guests for other platforms.
    pub guest_dir: Option<PathBuf>,
}

/// A remote host, as a place.
#[derive(Debug, Clone)]
pub struct SshPlace {
    client: Client,
    settings: SshSettings,
    guest_key: String,
    arguments: Vec<String>,
}

impl SshPlace {
    /// Describes a host. Touches nothing but checks the settings; `home` is `EXOSHELL_HOME`.
    pub fn new(home: impl AsRef<Path>, settings: SshSettings) -> Result<Self, PlaceError> {
        validate(&settings)?;
        let target = format!(
            "{}\0{:?}\0{:?}\0{}",
            settings.profile, settings.user, settings.port, settings.host
        );
        Ok(Self {
            client: Client::new(home.as_ref(), &settings),
            guest_key: short_hash(&target),
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
            launcher: &self.client,
            key: &self.guest_key,
            folder: self.settings.folder.as_deref(),
            guest_dir: self.settings.guest_dir.as_deref(),
            arguments: &self.arguments,
        }
    }

    /// Opens a pipe; a connection that breaks meanwhile is replaced once.
    async fn connect(&self, progress: &Progress) -> Result<Pipe, PlaceError> {
        let mut tries = 1;
        loop {
            self.client.ensure(progress).await?;
            match self.bootstrap().open(progress).await {
                Err(error) if tries < TRIES && self.was_cut(&error).await => tries += 1,
                result => return result,
            }
        }
    }

    /// Tells whether the connection ended under what failed. A client whose shared connection
    /// ends says nothing of it.
    async fn was_cut(&self, error: &PlaceError) -> bool {
        error.trouble() == Some(Trouble::Interrupted)
            || error.trouble() == Some(Trouble::DoesNotStart) && !self.client.is_connected().await
    }

    async fn connect_existing(&self) -> Result<Option<Pipe>, PlaceError> {
        let mut tries = 1;
        loop {
            match self.bootstrap().open_existing().await {
                Err(error) if tries < TRIES && self.was_cut(&error).await => tries += 1,
                result => return result,
            }
        }
    }

    /// Looks at the way to the host, step by step, up to the first one that fails.
    async fn look(&self) -> Vec<Check> {
        let mut checks = Vec::new();
        match self.client.version().await {
            Ok(version) => checks.push(Check::fine("client", version)),
            Err(error) => return failed(checks, "client", &error),
        }
        match self.client.resolve().await {
            Ok(resolved) => checks.push(Check::fine("address", resolved.describe())),
            Err(error) => return failed(checks, "address", &error),
        }
        match self.client.ensure(&Progress::default()).await {
            Ok(_) => checks.push(Check::fine("connection", "the host accepts our key")),
            Err(error) => return failed(checks, "connection", &error),
        }
        checks.extend(self.bootstrap().look().await);
        checks
    }
}

fn failed(mut checks: Vec<Check>, name: &str, error: &PlaceError) -> Vec<Check> {
    let remedy = error
        .hint()
        .unwrap_or_else(|| "try `ssh -v` to the same host by hand".to_owned());
    checks.push(Check::broken(name, error.to_string(), remedy));
    checks
}

/// Refuses settings that the client would take for something else.
fn validate(settings: &SshSettings) -> Result<(), PlaceError> {
    let bad =
        |message: String, hint: &str| Err(PlaceError::backend(Trouble::BadSetting, message, hint));
    let unusable = |text: &str| {
        text.is_empty()
            || text.starts_with('-')
            || text
                .chars()
                .any(|c| c.is_whitespace() || c.is_control() || c == '\u{0}')
    };
    if unusable(&settings.host) {
        return bad(
            format!("`{}` is no name of a host", settings.host.escape_debug()),
            "set the host to a name, an address or an alias of `~/.ssh/config`",
        );
    }
    if let Some(user) = settings.user.as_deref().filter(|user| unusable(user)) {
        return bad(
            format!("`{}` is no name of a user", user.escape_debug()),
            "set the user to the account's name on the host, or leave it out",
        );
    }
    if settings.port == Some(0) {
        return bad(
            "the port cannot be 0".to_owned(),
            "use a port from 1 to 65535, or leave it out",
        );
    }
    for option in &settings.options {
        let name = option.split(['=', ' ']).next().unwrap_or_default();
        let ours = ["controlpath", "controlmaster"].contains(&name.to_lowercase().as_str());
        if ours || !option.contains('=') || option.contains(['\n', '\0']) {
            return bad(
                format!(
                    "`{}` cannot be an option of ssh here",
                    option.escape_debug()
                ),
                "write options as `Name=value`; the shared connection's own (`ControlPath`, \
                 `ControlMaster`) are ours",
            );
        }
    }
    match &settings.folder {
        Some(folder) if !folder.starts_with('/') || folder.contains(['\n', '\0']) => bad(
            format!("the folder `{}` must be absolute", folder.escape_debug()),
            "write the folder of the host from `/` on",
        ),
        _ => Ok(()),
    }
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

impl Place for SshPlace {
    fn backend(&self) -> &'static str {
        "ssh"
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
        Box::pin(self.connect(progress))
    }

    fn open_existing(&self) -> PlaceFuture<'_, Option<Pipe>> {
        Box::pin(self.connect_existing())
    }

    fn launch<'a>(&'a self, words: &'a [String]) -> PlaceFuture<'a, Launched> {
        self.client.launch(words)
    }

    fn inspect(&self) -> PlaceFuture<'_, Facts> {
        Box::pin(async {
            let resolved = self.client.resolve().await?;
            let state = if self.client.is_connected().await {
                "connected"
            } else {
                "not connected"
            };
            Ok(Facts {
                id: Some(resolved.id()),
                state: Some(state.to_owned()),
                notes: resolved.jump.iter().map(|jump| through(jump)).collect(),
                ..Facts::default()
            })
        })
    }

    /// There is nothing to sweep: the connection ends by itself, and so does the guest.
    fn sweep(&self) -> PlaceFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn destroy(&self) -> PlaceFuture<'_, ()> {
        Box::pin(self.client.hang_up())
    }

    fn check(&self) -> PlaceFuture<'_, Vec<Check>> {
        Box::pin(async { Ok(self.look().await) })
    }
}

fn through(jump: &str) -> String {
    format!("reached through `{jump}`")
}

impl Resolved {
    fn describe(&self) -> String {
        match &self.jump {
            Some(jump) => format!("{}, {}", self.id(), through(jump)),
            None => self.id(),
        }
    }
}

#[cfg(test)]
mod failure_tests;
#[cfg(test)]
mod host_tests;
#[cfg(test)]
mod sshd;
#[cfg(test)]
mod testing;

#[cfg(test)]
#[path = "lib_tests.rs"]
mod tests;
