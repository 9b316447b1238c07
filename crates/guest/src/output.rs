//! Moving a command's output towards the host.

use std::os::fd::{AsFd as _, OwnedFd};
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use exoshell_mux::ChannelSender;
use exoshell_process::{pipe_capacity, readable_bytes};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::exec::Audience;
use crate::shell::Pipes;
use crate::spill::Spill;

/// How much one read may bring.
const READ_SIZE: usize = 64 * 1024;

/// The pipe size asked for once a command proves to be verbose.
const LARGE_PIPE: i32 = 1024 * 1024;

/// Makes a pipe or terminal readable by tasks.
pub(crate) fn receiver(fd: OwnedFd) -> std::io::Result<Receiver> {
    rustix::io::ioctl_fionbio(&fd, true)?;
    // Unchecked: a terminal is no pipe, but it can be waited for like one.
    Receiver::from_owned_fd_unchecked(fd)
}

/// Makes a pipe or terminal writable by tasks.
pub(crate) fn sender(fd: OwnedFd) -> std::io::Result<Sender> {
    rustix::io::ioctl_fionbio(&fd, true)?;
    Sender::from_owned_fd_unchecked(fd)
}

/// Where output goes.
#[derive(Debug, Clone)]
pub(crate) enum Sink {
    /// Straight to a host.
    Channel(ChannelSender),
    /// To hosts that may come and go.
    Audience(Arc<Audience>),
    /// To nobody: it is read and dropped.
    Nobody,
}

/// A task moving one stream of a command.
#[derive(Debug)]
pub(crate) struct Pump {
    task: JoinHandle<Pumped>,
}

/// What a pump moved.
#[derive(Debug, Default)]
pub(crate) struct Pumped {
    /// How many bytes were sent.
    pub(crate) bytes: u64,
    /// The pipe, when something may still write to it.
    pub(crate) open: Option<Receiver>,
}

impl Pump {
    /// Starts moving a pipe to a stream of a sink, until its end or until `stop`.
    pub(crate) fn start(
        pipe: OwnedFd,
        stream: u8,
        sink: Sink,
        spill: Option<Arc<Spill>>,
        stop: watch::Receiver<bool>,
    ) -> std::io::Result<Self> {
        let pipe = receiver(pipe)?;
        let job = Job {
            pipe,
            stream,
            sink,
            spill,
            bytes: 0,
            buffer: BytesMut::new(),
        };
        Ok(Self {
            task: tokio::spawn(job.run(stop)),
        })
    }

    /// Waits until the pipe has ended.
    pub(crate) async fn ended(&mut self) {
        while !self.task.is_finished() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
    }

    /// Waits until everything was handed to the channel.
    pub(crate) async fn finish(self) -> Pumped {
        self.task.await.unwrap_or_default()
    }
}

struct Job {
    pipe: Receiver,
    stream: u8,
    sink: Sink,
    spill: Option<Arc<Spill>>,
    bytes: u64,
    buffer: BytesMut,
}

impl Job {
    async fn run(mut self, mut stop: watch::Receiver<bool>) -> Pumped {
        loop {
            let ready = tokio::select! {
                biased;
                ready = self.pipe.readable() => ready,
                // A dropped sender means that the command's task is gone; so is the audience.
                _ = stop.wait_for(|stop| *stop) => break,
            };
            if ready.is_err() || self.take(READ_SIZE).await == Took::End {
                return self.ended();
            }
            // A command that never stops writing must not keep the others waiting.
            tokio::task::yield_now().await;
            if *stop.borrow() {
                break;
            }
        }
        // Whatever was written before the command ended is in the pipe now. What a survivor
        // writes from here on is not the command's, so the amount is fixed before reading.
        let mut left = usize::try_from(readable_bytes(self.pipe.as_fd())).unwrap_or(0);
        while left > 0 {
            match self.take_now(left.min(READ_SIZE)).await {
                Took::Some(length) => left = left.saturating_sub(length),
                Took::Nothing => break,
                Took::End => return self.ended(),
            }
        }
        if exoshell_process::has_writers(self.pipe.as_fd()) {
            return Pumped {
                bytes: self.bytes,
                open: Some(self.pipe),
            };
        }
        self.ended()
    }

    const fn ended(&self) -> Pumped {
        Pumped {
            bytes: self.bytes,
            open: None,
        }
    }

    /// Moves up to `most` bytes straight from the pipe. The runtime's idea of whether it is
    /// readable may be a turn old, and here there is no next turn.
    async fn take_now(&mut self, most: usize) -> Took {
        let mut bytes = vec![0_u8; most];
        let length = match rustix::io::read(self.pipe.as_fd(), &mut bytes) {
            Ok(0) => return Took::End,
            Ok(length) => length,
            Err(rustix::io::Errno::AGAIN) => return Took::Nothing,
            Err(_) => return Took::End,
        };
        bytes.truncate(length);
        self.pass_on(bytes.into()).await;
        Took::Some(length)
    }

    /// Moves up to `most` bytes that are there.
    async fn take(&mut self, most: usize) -> Took {
        self.buffer.reserve(most);
        let room = self.buffer.capacity();
        // `try_read_buf` fills the whole room; a bounded take must not read past its bound.
        let mut bounded = bytes::BufMut::limit(&mut self.buffer, most.min(room));
        let length = match self.pipe.try_read_buf(&mut bounded) {
            Ok(0) => return Took::End,
            Ok(length) => length,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return Took::Nothing,
            Err(_) => return Took::End,
        };
        if length == READ_SIZE && self.bytes < READ_SIZE as u64 {
            pipe_capacity(self.pipe.as_fd(), LARGE_PIPE);
        }
        let chunk = self.buffer.split().freeze();
        self.pass_on(chunk).await;
        Took::Some(length)
    }

    async fn pass_on(&mut self, chunk: Bytes) {
        self.bytes += chunk.len() as u64;
        if let Some(spill) = &self.spill {
            spill.push(self.stream, &chunk);
        }
        match &self.sink {
            Sink::Channel(sender) => {
                if sender.send(self.stream, chunk).await.is_err() {
                    // The host is gone. The pipe is still emptied, or the command would block on
                    // it instead of being ended in order.
                    self.sink = Sink::Nobody;
                }
            }
            Sink::Audience(audience) => audience.push(self.stream, &chunk).await,
            Sink::Nobody => {}
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Took {
    Some(usize),
    Nothing,
    End,
}

/// Keeps emptying a pipe that nobody listens to, until its end.
pub(crate) fn empty(mut pipe: Receiver) -> JoinHandle<()> {
    use tokio::io::AsyncReadExt as _;
    tokio::spawn(async move {
        let mut buffer = vec![0_u8; 16 * 1024];
        while pipe.read(&mut buffer).await.is_ok_and(|length| length > 0) {}
    })
}

/// Empties both output pipes of a shell whose output is of no interest, while it is held.
#[derive(Debug)]
pub(crate) struct Discard(Vec<JoinHandle<()>>);

impl Drop for Discard {
    fn drop(&mut self) {
        for task in &self.0 {
            task.abort();
        }
    }
}

/// Starts discarding.
pub(crate) fn discard(pipes: &Pipes) -> Discard {
    let tasks = [&pipes.stdout, &pipes.stderr]
        .into_iter()
        .filter_map(|pipe| pipe.try_clone().ok())
        .filter_map(|pipe| Receiver::from_owned_fd(pipe).ok())
        .map(empty)
        .collect();
    Discard(tasks)
}
