//! Taking the engine's mixed stream apart.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

/// The engine's frame: kind, three zeros, length.
const HEADER: usize = 8;

/// The kind of a frame with stderr; everything else goes to stdout.
const STDERR: u8 = 2;

/// How much of a stderr frame is taken at once.
const PIECE: usize = 4096;

/// Reads a program's stdout out of the stream in which the engine mixes it with stderr.
///
/// Whatever is stderr goes to a side stream with a bounded buffer; a side stream that nobody
/// reads any more is no obstacle.
pub(crate) struct Demultiplexer<R> {
    reader: R,
    /// Gone once the stream has ended, so that its reader sees the end.
    errors: Option<DuplexStream>,
    header: [u8; HEADER],
    filled: usize,
    left: usize,
    piece: Vec<u8>,
    sent: usize,
}

impl<R> Demultiplexer<R> {
    pub(crate) fn new(reader: R, errors: DuplexStream) -> Self {
        Self {
            reader,
            errors: Some(errors),
            header: [0; HEADER],
            filled: 0,
            left: 0,
            piece: Vec::new(),
            sent: 0,
        }
    }
}

impl<R: AsyncRead + Unpin> Demultiplexer<R> {
    /// Reads a header; `false` is the end of the stream.
    fn poll_header(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        while self.filled < HEADER {
            let room = self.header.get_mut(self.filled..).unwrap_or_default();
            let mut buffer = ReadBuf::new(room);
            ready!(Pin::new(&mut self.reader).poll_read(context, &mut buffer))?;
            match buffer.filled().len() {
                0 if self.filled == 0 => return Poll::Ready(Ok(false)),
                0 => return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                length => self.filled += length,
            }
        }
        let [_, _, _, _, length @ ..] = self.header;
        self.left = u32::from_be_bytes(length) as usize;
        self.filled = 0;
        Poll::Ready(Ok(true))
    }

    /// Hands on what was read of stderr.
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while let (Some(rest @ [_, ..]), Some(errors)) =
            (self.piece.get(self.sent..), &mut self.errors)
        {
            match ready!(Pin::new(errors).poll_write(context, rest)) {
                Ok(length @ 1..) => self.sent += length,
                // Nobody wants it any more.
                _ => break,
            }
        }
        self.piece.clear();
        self.sent = 0;
        Poll::Ready(())
    }

    /// Reads a piece of stderr; `false` is the end of the stream.
    fn poll_stderr(&mut self, context: &mut Context<'_>) -> Poll<io::Result<bool>> {
        let mut room = [0_u8; PIECE];
        let room = room.get_mut(..self.left.min(PIECE)).unwrap_or_default();
        let mut buffer = ReadBuf::new(room);
        ready!(Pin::new(&mut self.reader).poll_read(context, &mut buffer))?;
        let piece = buffer.filled();
        self.left = self.left.saturating_sub(piece.len());
        self.piece.extend_from_slice(piece);
        Poll::Ready(Ok(!piece.is_empty()))
    }
}

impl<R: AsyncRead + Unpin> Demultiplexer<R> {
    /// Reads some of stdout; nothing is the end of the stream.
    fn poll_stdout(
        &mut self,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<usize>> {
        loop {
            ready!(self.poll_piece(context));
            if self.left == 0 {
                if !ready!(self.poll_header(context))? {
                    return Poll::Ready(Ok(0));
                }
            } else if self.header.first() == Some(&STDERR) {
                if !ready!(self.poll_stderr(context))? {
                    return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
                }
            } else {
                let wanted = self.left.min(buffer.remaining());
                let mut part = ReadBuf::new(buffer.initialize_unfilled_to(wanted));
                ready!(Pin::new(&mut self.reader).poll_read(context, &mut part))?;
                let length = part.filled().len();
                if length == 0 && wanted > 0 {
                    return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
                }
                buffer.advance(length);
                self.left -= length;
                return Poll::Ready(Ok(length));
            }
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Demultiplexer<R> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let read = ready!(this.poll_stdout(context, buffer));
        if !matches!(read, Ok(1..)) {
            this.errors = None;
        }
        Poll::Ready(read.map(|_length| ()))
    }
}

#[cfg(test)]
#[path = "streams_tests.rs"]
mod tests;
