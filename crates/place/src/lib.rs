//! What a backend must answer, and the host's side of the pipe.
//!
//! A backend is the answer to "how do I put a file there and open a pipe?": it implements
//! [`Place`]. Everything else is done by the guest inside, reached through a [`Link`].

pub mod bootstrap;
pub mod bundle;
mod check;
mod error;
mod files;
mod launch;
mod link;
mod pipe;
pub mod plain;
mod progress;

use std::pin::Pin;
use std::time::Duration;

pub use check::{Check, CheckOutcome};
pub use error::{PlaceError, PlaceErrorKind, Trouble};
pub use files::{FileDownload, FilePiece, FileUpload};
pub use launch::{Launched, SUDO_PASSWORD};
pub use link::{
    EventStream, ExecEvent, ExecStream, FollowEvent, FollowStream, Link, LinkOptions,
    PasswordStream, StdinSender,
};
pub use pipe::{Pipe, Silence, nonce};
pub use plain::{PlainCommand, PlainShell, PlainStdin, PlainStream};
pub use progress::Progress;

/// A future of a [`Place`]; boxed so that places can be chosen at run time.
pub type PlaceFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, PlaceError>> + Send + 'a>>;

/// One concrete environment: somewhere a guest can live.
///
/// A place knows nothing of tasks, sessions or tools.
pub trait Place: std::fmt::Debug + Send + Sync {
    /// Returns the backend's name, as in the configuration.
    fn backend(&self) -> &'static str;

    /// Tells how long things live here.
    fn life(&self) -> Life;

    /// Provisions the place, puts a guest there, and opens a pipe to it. Whatever is there
    /// already is used.
    ///
    /// Fails with [`PlaceError::NoGuest`] where the place is fine but no guest can run in it.
    fn open<'a>(&'a self, progress: &'a Progress) -> PlaceFuture<'a, Pipe>;

    /// Opens a pipe only if the place and a guest are there already; makes and starts nothing.
    ///
    /// `None` means that they are certainly gone; an error, that nobody knows.
    fn open_existing(&self) -> PlaceFuture<'_, Option<Pipe>>;

    /// Starts a program of the place with its standard streams piped: for places where no guest
    /// can run. The first word is found in the place's `PATH`.
    fn launch<'a>(&'a self, words: &'a [String]) -> PlaceFuture<'a, Launched>;

    /// Says what the place is for people: its container or host, image, limits that are not
    /// enforced. Known facts only; it may ask the backend, but makes nothing.
    fn inspect(&self) -> PlaceFuture<'_, Facts>;

    /// Takes what happened to the place on the way and the caller should know, one sentence each,
    /// such as a container that was replaced. Whoever takes it has to tell it.
    fn take_notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// Removes what places that are gone left behind; living ones are left alone.
    fn sweep(&self) -> PlaceFuture<'_, ()>;

    /// Removes the place for good, with everything that runs in it. One that is gone already is
    /// no error.
    ///
    /// The guest was told to end before. A place that is not ours to remove (this machine, a
    /// remote host, an adopted container) only loses what we put there or hold open.
    fn destroy(&self) -> PlaceFuture<'_, ()>;

    /// Looks at everything this backend needs, for `doctor`. Changes nothing.
    fn check(&self) -> PlaceFuture<'_, Vec<Check>>;
}

/// How long things live in a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    /// How long a command may outlive a lost pipe.
    pub lease: Duration,
    /// How often to ask for a sign of life; `None` trusts the pipe to report its own end.
    pub heartbeat: Option<Duration>,
    /// Whether the place stays when its last host is gone.
    pub linger: bool,
    /// How long an unused session is kept; `None` is the configured time.
    pub session: Option<Duration>,
}

/// What a place is, for people and listings.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Facts {
    /// What the backend calls it: a container's id, `user@host:port`.
    pub id: Option<String>,
    /// The program behind the backend where there are several: `docker`, `podman`.
    pub engine: Option<String>,
    /// The image it was made from.
    pub image: Option<String>,
    /// What it is doing: `running`, `exited`, …
    pub state: Option<String>,
    /// Limits that were asked for and cannot be enforced here, by name.
    pub unenforced: Vec<String>,
    /// What the caller should know, one sentence each: skipped settings, replaced containers.
    pub notes: Vec<String>,
}
