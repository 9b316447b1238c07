//! Tests of the whole crate over in-memory pipes.
//!
//! Time is paused, so a test in which nothing can happen any more fails at once instead of
//! hanging, and "still waiting" is a fact, not a guess.

use std::time::Duration;

use bytes::Bytes;
use exoshell_wire::{FIN, Frame, FrameDecoder, Kind, MAX_DATA};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};

use crate::{Channel, CloseReason, Connection, Incoming, Item, Options, Role};

#[path = "channel_tests.rs"]
mod channels;
#[path = "fault_tests.rs"]
mod faults;
#[path = "flow_tests.rs"]
mod flow;
#[path = "heartbeat_tests.rs"]
mod heartbeats;

const KIB: usize = 1024;
const MIB: usize = 1024 * KIB;

/// Waits for something that must happen. Paused time runs to the limit as soon as every task
/// waits, so a lost wake-up is found immediately.
async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(3600), future)
        .await
        .expect("nothing happens any more")
}

/// Lets every task run until all of them wait, and tells that the future still does.
async fn assert_waits<F: Future + Unpin>(future: &mut F) {
    let waited = tokio::time::timeout(Duration::from_millis(1), future).await;
    assert!(waited.is_err(), "it should still wait");
}

/// Lets every task run until all of them wait.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

struct Pair {
    host: Connection,
    guest: Connection,
    host_incoming: Incoming,
    guest_incoming: Incoming,
}

/// Connects a host and a guest by a pipe that holds this much.
fn pair(capacity: usize) -> Pair {
    let (ours, theirs) = duplex(capacity);
    let (host, host_incoming) = connect(ours, Role::Host, Options::default());
    let (guest, guest_incoming) = connect(theirs, Role::Guest, Options::default());
    Pair {
        host,
        guest,
        host_incoming,
        guest_incoming,
    }
}

fn connect(pipe: DuplexStream, role: Role, options: Options) -> (Connection, Incoming) {
    let (reader, writer) = tokio::io::split(pipe);
    Connection::start(reader, writer, role, options, b"")
}

/// Opens a channel and accepts it on the other side.
async fn open(pair: &mut Pair) -> (Channel, Channel) {
    let asking = pair.host.open(b"ask".to_vec()).unwrap();
    let (answering, body) = within(pair.guest_incoming.accept()).await.unwrap();
    assert_eq!(body, &b"ask"[..]);
    (asking, answering)
}

/// The other end of a pipe, without a connection: it can break every rule.
struct Peer {
    pipe: DuplexStream,
    decoder: FrameDecoder,
}

impl Peer {
    async fn send(&mut self, kind: Kind, flags: u8, channel: u32, body: &[u8]) {
        let frame = Frame::new(kind, flags, channel, body.to_vec());
        // A connection that has closed does not read; what it made of it is what tests look at.
        let _ = within(self.pipe.write_all(&frame.encode())).await;
    }

    async fn next(&mut self) -> Frame {
        within(self.try_next()).await.expect("the pipe ended")
    }

    async fn try_next(&mut self) -> Option<Frame> {
        loop {
            if let Some(frame) = self.decoder.next_frame().unwrap() {
                return Some(frame);
            }
            let count = self.pipe.read_buf(self.decoder.buffer()).await.unwrap();
            if count == 0 {
                return None;
            }
        }
    }

    async fn expect(&mut self, kind: Kind, channel: u32) -> Bytes {
        let frame = self.next().await;
        assert_eq!((frame.kind, frame.channel), (kind, channel));
        frame.body
    }

    /// Asserts that nothing more comes while everyone waits.
    async fn expect_nothing(&mut self) {
        assert_waits(&mut Box::pin(self.try_next())).await;
    }
}

fn connect_to_peer(capacity: usize, role: Role, options: Options) -> (Connection, Incoming, Peer) {
    let (ours, pipe) = duplex(capacity);
    let (connection, incoming) = connect(ours, role, options);
    let decoder = FrameDecoder::default();
    (connection, incoming, Peer { pipe, decoder })
}

fn data(stream: u8, bytes: &'static [u8]) -> Item {
    Item::Data {
        stream,
        bytes: Bytes::from_static(bytes),
        last: false,
    }
}

fn last(stream: u8, bytes: &'static [u8]) -> Item {
    Item::Data {
        stream,
        bytes: Bytes::from_static(bytes),
        last: true,
    }
}

/// Bytes that differ by seed and position, so that mixed up ones are noticed.
fn pattern(seed: usize, length: usize) -> Bytes {
    let cycle: Vec<u8> = (0..251)
        .map(|i| u8::try_from((seed * 31 + i * 7) % 251).unwrap())
        .collect();
    let mut bytes = cycle.repeat(length / cycle.len() + 1);
    bytes.truncate(length);
    bytes.into()
}

/// Reads to the reply. Returns the data of every stream, in order, and the reply.
async fn read_to_reply(channel: &mut Channel) -> (Vec<u8>, Bytes) {
    let mut all = Vec::new();
    loop {
        match channel.receive().await.unwrap() {
            Item::Data { bytes, .. } => all.extend_from_slice(&bytes),
            Item::Reply(body) => return (all, body),
            other => panic!("unexpected {other:?}"),
        }
    }
}

/// Reads one stream to its end.
async fn read_to_last(channel: &mut Channel) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        match channel.receive().await.unwrap() {
            Item::Data { bytes, last, .. } => {
                all.extend_from_slice(&bytes);
                if last {
                    return all;
                }
            }
            other => panic!("unexpected {other:?}"),
        }
    }
}
