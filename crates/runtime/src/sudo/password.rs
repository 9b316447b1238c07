//! A password, and whoever gives one.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use exoshell_wire::MAX_PASSWORD;
use zeroize::Zeroizing;

/// A password. It is wiped when it is dropped, and never shown.
#[derive(Clone)]
pub struct Password(Zeroizing<Vec<u8>>);

impl Password {
    /// Takes a copy of a password.
    pub fn new(bytes: impl AsRef<[u8]>) -> Self {
        Self(Zeroizing::new(bytes.as_ref().to_vec()))
    }

    /// Tells whether it can be one: neither empty nor too long, and one line.
    pub(super) fn is_usable(&self) -> bool {
        !self.0.is_empty() && self.0.len() <= MAX_PASSWORD && !self.0.contains(&b'\n')
    }

    pub(super) fn equals(&self, other: &Self) -> bool {
        self.0 == other.0
    }

    /// Returns the line that answers a question; it is wiped once it was sent.
    pub(super) fn line(&self) -> Bytes {
        let mut line = Zeroizing::new(Vec::with_capacity(self.0.len() + 1));
        line.extend_from_slice(&self.0);
        line.push(b'\n');
        Bytes::from_owner(line)
    }
}

impl fmt::Debug for Password {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Password(***)")
    }
}

/// What a password is wanted for.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PasswordRequest {
    /// The task whose command runs sudo.
    pub task: String,
    /// The place it runs in, as people know it.
    pub place: String,
    /// The whole command.
    pub command: String,
    /// The how many-th time this sudo asks, from 1. After the first, the one before was wrong.
    pub attempt: u32,
}

/// The answer of whoever gives passwords.
pub type PasswordFuture = Pin<Box<dyn Future<Output = Option<Password>> + Send>>;

/// Whoever gives passwords.
#[derive(Clone)]
pub(super) struct Provider(Arc<dyn Fn(PasswordRequest) -> PasswordFuture + Send + Sync>);

impl Provider {
    pub(super) fn new(
        provider: impl Fn(PasswordRequest) -> PasswordFuture + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(provider))
    }

    pub(super) async fn ask(&self, request: PasswordRequest) -> Option<Password> {
        (self.0)(request).await.filter(Password::is_usable)
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Provider")
    }
}
