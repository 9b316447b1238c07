//! What a backend must answer, and the host's side of the pipe.
//!
//! A backend is the answer to "how do I put a file there and open a pipe?": it implements
//! [`Place`]. Everything else is done by the guest inside, reached through a [`Link`].

pub mod bundle;
mod error;
mod link;
mod pipe;

use std::pin::Pin;

pub use error::{PlaceError, PlaceErrorKind};
pub use link::{
    EventStream, ExecEvent, ExecStream, FollowEvent, FollowStream, Link, LinkOptions, StdinSender,
};
pub use pipe::{Pipe, nonce};

/// A future of a [`Place`]; boxed so that places can be chosen at run time.
pub type PlaceFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, PlaceError>> + Send + 'a>>;

/// One concrete environment: somewhere a guest can live.
///
/// A place knows nothing of tasks, sessions or tools.
pub trait Place: std::fmt::Debug + Send + Sync {
    /// Returns the backend's name, as in the configuration.
    fn backend(&self) -> &'static str;

    /// Makes sure that a guest is there, and opens a pipe to it.
    fn open(&self) -> PlaceFuture<'_, Pipe>;

    /// Opens a pipe only if a guest is there already.
    fn open_existing(&self) -> PlaceFuture<'_, Option<Pipe>>;

    /// Removes what a guest that is gone left behind; a living one is left alone.
    fn sweep(&self) -> PlaceFuture<'_, ()>;

    /// Tells how long a command may outlive a lost pipe here, in milliseconds.
    fn lease_ms(&self) -> u64;
}
