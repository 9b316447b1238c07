//! One shared connection per host and home, however many processes want it.
//!
//! A connection that ends removes its own socket, also when another one was made at the same
//! path. So every connection gets a path of its own, and a small file says which one counts.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use exoshell_place::{PlaceError, Progress};
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use crate::client::Client;
use crate::mux::{Sign, sign_of_life};

/// How long the folder's path may be: a socket's path ends at 108 bytes, and ours and ssh's own
/// temporary ending need some of them.
const MAX_FOLDER: usize = 60;

/// The sockets of one host's connections.
#[derive(Debug, Clone)]
pub(crate) struct Masters {
    folder: PathBuf,
    key: String,
}

/// Which connection counts, and how the last attempt failed.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct State {
    generation: u32,
    failure: Option<Failure>,
}

/// A failed attempt, for those who waited for it.
#[derive(Debug, Serialize, Deserialize)]
struct Failure {
    at_ms: u64,
    said: String,
}

impl Masters {
    /// Chooses the folder for a home. Touches nothing.
    pub(crate) fn new(home: &Path, key: &str) -> Self {
        Self {
            folder: folder_for(home),
            key: key.to_owned(),
        }
    }

    /// Returns the control socket of the connection that counts.
    pub(crate) fn current(&self) -> Option<String> {
        let generation = self.read().generation;
        (generation > 0).then(|| self.socket(generation))
    }

    /// Tells whether the connection that counts takes sessions.
    pub(crate) async fn is_alive(&self) -> bool {
        match self.current() {
            Some(socket) => sign_of_life(Path::new(&socket)).await == Sign::Alive,
            None => false,
        }
    }

    /// Returns the control socket of a living connection; makes one if there is none. Of many
    /// callers, in this process and others, one makes it and the rest wait.
    pub(crate) async fn ensure(
        &self,
        client: &Client,
        progress: &Progress,
    ) -> Result<String, PlaceError> {
        if let Some(socket) = self.current()
            && sign_of_life(Path::new(&socket)).await == Sign::Alive
        {
            return Ok(socket);
        }
        let asked = now_ms();
        let waiting = self.clone();
        let lock = tokio::task::spawn_blocking(move || waiting.lock())
            .await
            .map_err(|error| PlaceError::Nonsense(error.to_string()))??;
        let mut state = self.read();
        if let Some(failure) = state.failure.filter(|failure| failure.at_ms >= asked) {
            drop(lock);
            return Err(client.classify(&failure.said).await);
        }
        if state.generation > 0 {
            let socket = self.socket(state.generation);
            match sign_of_life(Path::new(&socket)).await {
                Sign::Alive => return Ok(socket),
                // One that is stuck keeps its socket: others may hold sessions on it.
                Sign::Stuck => {}
                Sign::Dead => self.remove(&socket),
            }
        }
        progress.step(&format!("connecting to {}", client.host()));
        state = State {
            generation: state.generation % 9999 + 1,
            failure: None,
        };
        let socket = self.socket(state.generation);
        self.remove(&socket);
        // Before the attempt: one that is broken off may leave a connection behind, whose socket
        // no other one must get.
        self.write(&state)?;
        let dialled = client.dial(&socket).await?;
        state.failure = dialled.as_ref().err().map(|said| Failure {
            at_ms: now_ms(),
            said: said.clone(),
        });
        self.write(&state)?;
        drop(lock);
        match dialled {
            Ok(()) => Ok(socket),
            Err(said) => Err(client.classify(&said).await),
        }
    }

    /// Removes what is left of a connection that has ended.
    pub(crate) fn remove(&self, socket: &str) {
        debug_assert!(Path::new(socket).starts_with(&self.folder));
        // Usually it is not there.
        let _ = fs::remove_file(socket);
    }

    fn socket(&self, generation: u32) -> String {
        let name = format!("{}-{generation}", self.key);
        self.folder.join(name).display().to_string()
    }

    fn read(&self) -> State {
        let text = fs::read(self.folder.join(format!("{}.json", self.key)));
        text.ok()
            .and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default()
    }

    /// Replaces the small file in one step, since it is read without the lock.
    fn write(&self, state: &State) -> Result<(), PlaceError> {
        let path = self.folder.join(format!("{}.json", self.key));
        let temporary = self.folder.join(format!("{}.new", self.key));
        let text =
            serde_json::to_vec(state).map_err(|error| PlaceError::Nonsense(error.to_string()))?;
        fs::write(&temporary, text)
            .and_then(|()| fs::rename(&temporary, &path))
            .map_err(|source| self.setup("write to", source))
    }

    /// Makes the folder and takes the lock that lets only one caller connect.
    fn lock(&self) -> Result<File, PlaceError> {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)
            .map_err(|source| self.setup("create", source))?;
        let found = fs::symlink_metadata(&self.folder).map_err(|s| self.setup("look at", s))?;
        let own = rustix::process::geteuid().as_raw();
        if !found.is_dir() || found.uid() != own || found.mode() & 0o077 != 0 {
            let fault = io::Error::other("it must be a folder of yours with mode 0700");
            return Err(self.setup("trust", fault));
        }
        let path = self.folder.join(format!("{}.lock", self.key));
        OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
            .and_then(|file| {
                rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
                Ok(file)
            })
            .map_err(|source| self.setup("lock", source))
    }

    fn setup(&self, action: &str, source: io::Error) -> PlaceError {
        let folder = self.folder.display();
        PlaceError::Setup {
            action: format!("cannot {action} `{folder}`"),
            source,
            hint: format!("remove `{folder}`, or set `EXOSHELL_HOME` to a folder of yours"),
        }
    }
}

fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .ok()
        .and_then(|time| u64::try_from(time.as_millis()).ok())
        .unwrap_or(0)
}

/// Returns a folder for sockets whose path is short and means itself to ssh: in the home if that
/// is so, else one in `/tmp` named after it.
fn folder_for(home: &Path) -> PathBuf {
    let own = home.join("run").join("ssh");
    let bytes = own.as_os_str().as_encoded_bytes();
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-".contains(byte);
    if own.is_absolute() && bytes.len() <= MAX_FOLDER && bytes.iter().all(plain) {
        return own;
    }
    let name = crate::short_hash(&home.display().to_string());
    let user = rustix::process::geteuid().as_raw();
    PathBuf::from(format!("/tmp/exoshell-ssh-{user}-{name}"))
}

#[cfg(test)]
#[path = "master_tests.rs"]
mod tests;
