//! A stream of the launched program, taken apart.

use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::scanner::{Piece, Scanner};

/// How much is read at once.
const READ_SIZE: usize = 64 * 1024;

/// Reads a stream piece by piece.
pub(super) struct Reader {
    source: Box<dyn AsyncRead + Send + Unpin>,
    scanner: Scanner,
    buffer: Vec<u8>,
    /// Whether nothing more will come.
    pub(super) ended: bool,
}

impl Reader {
    pub(super) fn new(source: Box<dyn AsyncRead + Send + Unpin>, nonce: &str) -> Self {
        Self {
            source,
            scanner: Scanner::new(nonce),
            buffer: vec![0; READ_SIZE],
            ended: false,
        }
    }

    /// Returns what came before the first report.
    pub(super) fn noise(&self) -> &[u8] {
        self.scanner.noise()
    }

    /// Waits for the next piece; `None` when the stream ended without saying so. Cancel-safe.
    pub(super) async fn next(&mut self) -> Option<Piece> {
        loop {
            if let Some(piece) = self.scanner.next() {
                self.ended |= matches!(piece, Piece::End(_));
                return Some(piece);
            }
            let length = self.source.read(&mut self.buffer).await.unwrap_or(0);
            if length == 0 {
                let rest = self.scanner.rest();
                self.ended = rest.is_none();
                return rest;
            }
            self.scanner
                .push(self.buffer.get(..length).unwrap_or_default());
        }
    }
}
