//! The tasks that move frames between a pipe and the channels.

use std::io::IoSlice;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use exoshell_wire::{Frame, FrameDecoder, HEADER_LEN, Kind};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;

use crate::channel::Channel;
use crate::connection::{Options, Role};
use crate::state::{CloseReason, Shared};

/// How much one read may bring while the peer sends a lot.
const READ_SIZE: usize = 256 * 1024;

/// How much one read may bring otherwise, so that a thousand quiet pipes cost little.
const QUIET_READ_SIZE: usize = 16 * 1024;

/// How much is gathered into one write.
const WRITE_BATCH: usize = 256 * 1024;

/// Bodies up to this size are copied next to their header; larger ones are written in place.
const COPY_LIMIT: usize = 4096;

/// How long a closed connection may still write what was queued, and how long the reader may
/// look for the peer's last words when writing has failed. Only a peer that hangs needs it all.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How many heartbeats without any traffic mean that the peer is gone.
const MISSED_HEARTBEATS: u32 = 3;

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
        bulk: false,
    };
    tokio::spawn(read_half.run(reader));
    tokio::spawn(write_loop(Arc::clone(shared), writer));
    if let Some(period) = options.heartbeat {
        tokio::spawn(ping_loop(Arc::clone(shared), period));
    }
}

struct Reader {
    shared: Arc<Shared>,
    decoder: FrameDecoder,
    role: Role,
    accept: mpsc::Sender<(Channel, Bytes)>,
    /// The last read filled its buffer.
    bulk: bool,
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
            match self.read_some(reader).await {
                Ok(0) if self.decoder.is_at_boundary() => return CloseReason::Closed,
                Ok(0) => return CloseReason::Cut,
                Ok(_) => {}
                Err(reason) => return reason,
            }
        }
    }

    /// Reads once; ends early when this side closes.
    async fn read_some<R: AsyncRead + Unpin>(
        &mut self,
        reader: &mut R,
    ) -> Result<usize, CloseReason> {
        // A peer that never stops sending would win every turn below.
        if let Some(reason) = self.shared.lock().closed.clone() {
            return Err(reason);
        }
        self.make_room();
        let read = tokio::select! {
            biased;
            read = reader.read_buf(self.decoder.buffer()) => read,
            reason = self.shared.wait_closed() => return Err(reason),
        };
        let count = read.map_err(|error| CloseReason::Io(error.to_string()))?;
        self.bulk = count >= QUIET_READ_SIZE;
        self.shared.hear();
        Ok(count)
    }

    fn make_room(&mut self) {
        let buffer = self.decoder.buffer();
        if self.bulk {
            buffer.reserve(READ_SIZE);
        } else if buffer.is_empty() && buffer.capacity() > QUIET_READ_SIZE {
            *buffer = BytesMut::with_capacity(QUIET_READ_SIZE);
        } else {
            buffer.reserve(QUIET_READ_SIZE);
        }
    }

    async fn handle(&self, frame: Frame) -> Result<(), CloseReason> {
        match frame.kind {
            Kind::Ping => {
                let result = self.shared.lock().pong(&frame.body);
                self.shared.work.notify_one();
                result
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
        let wakers = self.shared.lock().answer(id)?;
        let channel = Channel::new(id, Arc::clone(&self.shared), wakers);
        // A full queue holds up this pipe until the owner accepts, which is not the peer's
        // silence. When the owner is gone the channel is dropped, which tells the peer.
        self.shared.held_up.store(true, Ordering::Relaxed);
        let place = tokio::select! {
            biased;
            place = self.accept.reserve() => place,
            reason = self.shared.wait_closed() => return Err(reason),
        };
        if let Ok(place) = place {
            place.send((channel, frame.body));
        }
        self.shared.hear();
        self.shared.held_up.store(false, Ordering::Relaxed);
        Ok(())
    }
}

async fn write_loop<W: AsyncWrite + Unpin>(shared: Arc<Shared>, mut writer: W) {
    let result = tokio::select! {
        biased;
        result = write_frames(&shared, &mut writer) => result,
        () = overdue(&shared) => Ok(()),
    };
    if let Err(error) = result {
        // What the peer said before it stopped reading may still be in the pipe, and the reader
        // knows better how it ended.
        let _ = tokio::time::timeout(LAST_WORDS, shared.wait_closed()).await;
        shared.close(match error.kind() {
            std::io::ErrorKind::BrokenPipe => CloseReason::Closed,
            _ => CloseReason::Io(error.to_string()),
        });
    }
}

/// Waits until nothing more should be written. A peer that stopped reading must not keep the
/// task of a closed connection alive.
async fn overdue(shared: &Shared) {
    if shared.wait_closed().await == CloseReason::Dropped {
        tokio::time::sleep(LAST_WORDS).await;
    }
}

/// Writes frames until the connection is over and nothing is left.
async fn write_frames<W: AsyncWrite + Unpin>(
    shared: &Shared,
    writer: &mut W,
) -> std::io::Result<()> {
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
            state.taken += u64::from(!batch.is_empty());
            state.closed.is_some()
        };
        if !batch.is_empty() {
            batch.write(writer).await?;
            let mut state = shared.lock();
            state.written = state.taken;
            drop(state);
            shared.written.notify_waiters();
        } else if closed {
            // The peer sees a clean end of the pipe; a failure to say so changes nothing.
            let _ = writer.shutdown().await;
            return Ok(());
        } else {
            shared.written.notify_waiters();
            shared.work.notified().await;
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

    /// Writes everything.
    async fn write<W: AsyncWrite + Unpin>(&mut self, writer: &mut W) -> std::io::Result<()> {
        if !self.scratch.is_empty() {
            self.pieces.push(self.scratch.split().freeze());
        }
        self.bytes = 0;
        let mut pieces = std::mem::take(&mut self.pieces);
        write_pieces(writer, &mut pieces).await
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

/// Asks for signs of life while the connection lives. Any traffic counts as one.
///
/// Silence is counted in heartbeats, not read from a clock, so that a process that was stopped
/// or a machine that slept asks again before it gives up. The count begins with the last sign of
/// life, not with the question after it.
async fn ping_loop(shared: Arc<Shared>, period: Duration) {
    let mut missed = 0;
    while missed < MISSED_HEARTBEATS {
        shared.lock().ping();
        shared.work.notify_one();
        if shared.closes_within(period).await {
            return;
        }
        if shared.take_heard() {
            let rest = period.saturating_sub(shared.since_heard());
            if shared.closes_within(rest).await {
                return;
            }
            missed = u32::from(!shared.take_heard());
        } else {
            missed += 1;
        }
    }
    let silence = period.saturating_mul(MISSED_HEARTBEATS);
    shared.close(CloseReason::Silent(silence.as_secs()));
}
