//! A byte pipe to a guest.

use tokio::io::{AsyncRead, AsyncWrite};

use crate::PlaceError;

/// An ordered, reliable byte pipe to a guest.
pub struct Pipe {
    pub(crate) reader: Box<dyn AsyncRead + Send + Unpin>,
    pub(crate) writer: Box<dyn AsyncWrite + Send + Unpin>,
    pub(crate) nonce: Option<String>,
}

impl std::fmt::Debug for Pipe {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pipe")
            .field("nonce", &self.nonce)
            .finish_non_exhaustive()
    }
}

impl Pipe {
    /// Wraps a pipe that leads straight to the guest's socket.
    pub fn direct(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Self {
        Self {
            reader: Box::new(reader),
            writer: Box::new(writer),
            nonce: None,
        }
    }

    /// Wraps a pipe whose other end announces itself with this nonce, possibly behind noise.
    pub fn announced(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        nonce: String,
    ) -> Self {
        Self {
            nonce: Some(nonce),
            ..Self::direct(reader, writer)
        }
    }
}

/// Returns a fresh random name: for nonces and for the ids of commands.
pub fn nonce() -> Result<String, PlaceError> {
    let mut bytes = [0_u8; 16];
    let flags = rustix::rand::GetRandomFlags::empty();
    rustix::rand::getrandom(&mut bytes, flags).map_err(|errno| PlaceError::Setup {
        action: "getting random bytes from the system".to_owned(),
        source: errno.into(),
        hint: "check that the system provides `getrandom`".to_owned(),
    })?;
    Ok(format!("{:032x}", u128::from_le_bytes(bytes)))
}
