//! The tasks that move frames between a pipe and the channels.

use std::io::IoSlice;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use exoshell_wire::{Frame, FrameDecoder, HEADER_LEN, Kind};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::channel::Channel;
use crate::connection::{Options, Role};
use crate::state::{CloseReason, Shared};

/// How much one read may bring.
const READ_SIZE: usize = 256 * 1024;

/// How much is gathered into one write.
const WRITE_BATCH: usize = 256 * 1024;

/// Bodies up to this size are copied next to their header; larger ones are written in place.
const COPY_LIMIT: usize = 4096;

/// Starts the tasks of a connection.
pub(crate) fn spawn<R, W>(
    shared: &Arc<Shared>,
    (reader, writer): (R, W),
    role: Role,
    options: Options,
    accept: mpsc::Sender<(Channel, Bytes)>,
    early: &[u8],
) where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let mut decoder = FrameDecoder::default();
    decoder.extend(early);
    let read_half = Reader {
        shared: Arc::clone(shared),
        decoder,
        role,
        accept,
        heartbeat: options.heartbeat,
    };
    tokio::spawn(read_half.run(reader));
    tokio::spawn(write_loop(Arc::clone(shared), writer));
    if let Some(period) = options.heartbeat {
        tokio::spawn(ping_loop(Arc::downgrade(shared), period));
    }
}

struct Reader {
    shared: Arc<Shared>,
    decoder: FrameDecoder,
    role: Role,
    accept: mpsc::Sender<(Channel, Bytes)>,
    heartbeat: Option<Duration>,
}

impl Reader {
    async fn run<R: AsyncRead + Unpin>(mut self, mut reader: R) {
        let reason = self.read_all(&mut reader).await;
        self.shared.close(reason);
    }

    async fn read_all<R: AsyncRead + Unpin>(&mut self, reader: &mut R) -> CloseReason {
        loop {
            loop {
                match self.decoder.next_frame() {
                    Ok(Some(frame)) => {
                        if let Err(reason) = self.handle(frame).await {
                            return reason;
                        }
                    }
                    Ok(None) => break,
                    Err(error) => return error.into(),
                }
            }
            self.decoder.buffer().reserve(READ_SIZE);
            match self.read_some(reader).await {
                Ok(0) if self.decoder.is_at_boundary() => return CloseReason::Closed,
                Ok(0) => return CloseReason::Cut,
                Ok(_) => {}
                Err(reason) => return reason,
            }
        }
    }

    /// Reads once; ends early when this side closes or the peer is silent for too long.
    async fn read_some<R: AsyncRead + Unpin>(
        &mut self,
        reader: &mut R,
    ) -> Result<usize, CloseReason> {
        let ended = self.shared.ended.notified();
        tokio::pin!(ended);
        ended.as_mut().enable();
        if let Some(reason) = self.shared.lock().closed.clone() {
            return Err(reason);
        }
        // Without a heartbeat the deadline is out of reach rather than a special case.
        let silence = self
            .heartbeat
            .map_or(Duration::from_secs(1 << 32), |p| p * 3);
        tokio::select! {
            biased;
            read = reader.read_buf(self.decoder.buffer()) => {
                read.map_err(|error| CloseReason::Io(error.to_string()))
            }
            () = &mut ended => Err(CloseReason::Dropped),
            () = tokio::time::sleep(silence), if self.heartbeat.is_some() => {
                Err(CloseReason::Silent(silence.as_secs()))
            }
        }
    }

    async fn handle(&self, frame: Frame) -> Result<(), CloseReason> {
        match frame.kind {
            Kind::Ping => {
                self.shared
                    .send_urgent(Frame::new(Kind::Pong, 0, 0, frame.body));
                Ok(())
            }
            Kind::Pong | Kind::Hello | Kind::Unknown(_) => Ok(()),
            Kind::Credit => {
                let work = self.shared.lock().credit(frame.channel, &frame.body)?;
                if work {
                    self.shared.work.notify_one();
                }
                Ok(())
            }
            Kind::Request => self.accept(frame).await,
            _ => {
                let result = self.shared.lock().deliver(frame);
                self.shared.work.notify_one();
                result
            }
        }
    }

    async fn accept(&self, frame: Frame) -> Result<(), CloseReason> {
        let id = frame.channel;
        if !self.role.is_theirs(id) {
            return Err(CloseReason::Protocol("a request on a channel of ours"));
        }
        let wakers = {
            let mut state = self.shared.lock();
            if state.lanes.contains_key(&id) {
                return Err(CloseReason::Protocol("a request on an open channel"));
            }
            if !state.has_room() {
                return Err(CloseReason::Protocol("too many open channels"));
            }
            state.open(id)
        };
        let channel = Channel::new(id, false, Arc::clone(&self.shared), wakers);
        // A full queue holds up this pipe only until the owner accepts; when the owner is gone
        // the channel is dropped, which tells the peer.
        let _ = self.accept.send((channel, frame.body)).await;
        Ok(())
    }
}

async fn write_loop<W: AsyncWrite + Unpin>(shared: Arc<Shared>, mut writer: W) {
    let mut batch = Batch::default();
    loop {
        let closed = {
            let mut state = shared.lock();
            while batch.bytes < WRITE_BATCH {
                match state.next_out() {
                    Some(frame) => batch.push(frame),
                    None => break,
                }
            }
            state.closed.is_some()
        };
        if batch.is_empty() {
            if closed {
                // The peer sees a clean end of the pipe; a failure to say so changes nothing.
                let _ = writer.shutdown().await;
                return;
            }
            shared.work.notified().await;
            continue;
        }
        let written = batch.write(&mut writer, &shared).await;
        if let Err(error) = written {
            shared.close(CloseReason::Io(error.to_string()));
            return;
        }
    }
}

/// Frames gathered for one write.
#[derive(Default)]
struct Batch {
    pieces: Vec<Bytes>,
    scratch: BytesMut,
    bytes: usize,
}

impl Batch {
    const fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    fn push(&mut self, frame: Frame) {
        self.bytes += HEADER_LEN + frame.body.len();
        self.scratch.put_slice(&frame.header());
        if frame.body.len() <= COPY_LIMIT {
            self.scratch.put_slice(&frame.body);
        } else {
            self.pieces.push(self.scratch.split().freeze());
            self.pieces.push(frame.body);
        }
    }

    /// Writes everything. A peer that stopped reading must not keep a closed connection's task
    /// alive, so the end of the connection interrupts it.
    async fn write<W: AsyncWrite + Unpin>(
        &mut self,
        writer: &mut W,
        shared: &Shared,
    ) -> std::io::Result<()> {
        if !self.scratch.is_empty() {
            self.pieces.push(self.scratch.split().freeze());
        }
        let mut pieces = std::mem::take(&mut self.pieces);
        self.bytes = 0;
        let ended = shared.ended.notified();
        tokio::pin!(ended);
        ended.as_mut().enable();
        tokio::select! {
            biased;
            result = write_pieces(writer, &mut pieces) => result,
            () = ended => Ok(()),
        }
    }
}

async fn write_pieces<W: AsyncWrite + Unpin>(
    writer: &mut W,
    pieces: &mut [Bytes],
) -> std::io::Result<()> {
    let mut first = 0;
    while let Some(rest) = pieces.get_mut(first..).filter(|rest| !rest.is_empty()) {
        let slices: Vec<IoSlice<'_>> = rest.iter().take(64).map(|b| IoSlice::new(b)).collect();
        let mut written = writer.write_vectored(&slices).await?;
        if written == 0 {
            return Err(std::io::ErrorKind::WriteZero.into());
        }
        for piece in rest {
            let step = written.min(piece.len());
            let _ = piece.split_to(step);
            written -= step;
            if !piece.is_empty() {
                break;
            }
            first += 1;
        }
    }
    writer.flush().await
}

/// Asks for signs of life while the connection lives. Any traffic counts as one; the reader
/// measures the silence.
async fn ping_loop(shared: Weak<Shared>, period: Duration) {
    let mut next = Instant::now() + period;
    loop {
        tokio::time::sleep_until(next).await;
        next = Instant::now() + period;
        let Some(shared) = shared.upgrade() else {
            return;
        };
        if shared.lock().closed.is_some() {
            return;
        }
        shared.send_urgent(Frame::new(Kind::Ping, 0, 0, Bytes::new()));
    }
}
