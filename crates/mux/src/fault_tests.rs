//! Broken pipes and broken peers.

use proptest::prelude::*;
use tokio::io::{ReadHalf, WriteHalf};

use super::*;
use crate::SendError;

fn protocol(rule: &'static str) -> CloseReason {
    CloseReason::Protocol(rule)
}

/// Tells how a guest ends that gets these frames behind a request on channel 1 it accepted and
/// one of its own on channel 2.
async fn verdict(frames: &[(Kind, u32, &[u8])]) -> CloseReason {
    let (guest, mut incoming, mut peer) = connect_to_peer(MIB, Role::Guest, Options::default());
    peer.send(Kind::Request, 0, 1, b"").await;
    let (_answering, _) = within(incoming.accept()).await.unwrap();
    let _asking = guest.open(Vec::new()).unwrap();
    for (kind, channel, body) in frames {
        peer.send(*kind, 0, *channel, body).await;
    }
    within(guest.wait_closed()).await
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_breaks_a_rule_ends_the_connection() {
    let full = vec![7; MAX_DATA];
    let over: Vec<(Kind, u32, &[u8])> = std::iter::repeat_n((Kind::Data, 1, &full[..]), 8)
        .chain([(Kind::Data, 1, &b"x"[..])])
        .collect();
    assert_eq!(verdict(&over).await, protocol("data without credit"));

    for (frames, rule) in [
        (
            vec![(Kind::Request, 2, &b""[..])],
            "a request on a channel of ours",
        ),
        (
            vec![(Kind::Request, 0, b"")],
            "a request on a channel of ours",
        ),
        (
            vec![(Kind::Request, 1, b"")],
            "a request on a channel that was used before",
        ),
        (
            vec![(Kind::Request, 7, b""), (Kind::Request, 5, b"")],
            "a request on a channel that was used before",
        ),
        (
            vec![(Kind::Reply, 1, b"")],
            "an answer from the asking side",
        ),
        (
            vec![(Kind::Reset, 1, b"")],
            "an answer from the asking side",
        ),
        (
            vec![(Kind::Cancel, 2, b"")],
            "a cancel from the answering side",
        ),
        (
            vec![(Kind::Reply, 2, b""), (Kind::Data, 2, b"x")],
            "a frame after the reply",
        ),
        (
            vec![(Kind::Reset, 2, b""), (Kind::Reply, 2, b"")],
            "a frame after the reply",
        ),
        (
            vec![(Kind::Credit, 1, b"abc")],
            "a credit frame without an amount",
        ),
        (vec![(Kind::Ping, 0, &[0; 65])], "a ping that is too long"),
    ] {
        assert_eq!(verdict(&frames).await, protocol(rule), "{frames:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn events_nobody_reads_have_a_limit() {
    let rule = protocol("too much unread on a channel");
    let many = vec![(Kind::Event, 1, &b"{}"[..]); 4097];
    assert_eq!(verdict(&many).await, rule);
    let cancels = vec![(Kind::Cancel, 1, &b""[..]); 4097];
    assert_eq!(verdict(&cancels).await, rule);
    let large = vec![b' '; MIB];
    assert_eq!(verdict(&[(Kind::Event, 1, &large[..]); 5]).await, rule);
}

#[tokio::test(start_paused = true)]
async fn frames_that_are_late_or_unknown_are_skipped() {
    let (guest, mut incoming, mut peer) = connect_to_peer(MIB, Role::Guest, Options::default());
    for kind in 0..=u8::MAX {
        let kind = Kind::from_byte(kind);
        if kind != Kind::Request {
            peer.send(kind, 0xff, 77, b"future").await;
        }
    }
    peer.send(Kind::Request, 0, 1, b"still here").await;
    let (_channel, body) = within(incoming.accept()).await.unwrap();
    assert_eq!(
        (body, guest.closed()),
        (Bytes::from_static(b"still here"), None)
    );
}

#[tokio::test(start_paused = true)]
async fn garbage_is_not_taken_for_frames() {
    for garbage in [
        &b"Welcome to Ubuntu 24.04 LTS\r\n"[..],
        b"bash: exoshell: command not found\n",
        &[0xff; 12],
    ] {
        let (host, _incoming, mut peer) = connect_to_peer(KIB, Role::Host, Options::default());
        let mut channel = host.open(Vec::new()).unwrap();
        peer.pipe.write_all(garbage).await.unwrap();
        let reason = within(host.wait_closed()).await;
        assert!(matches!(reason, CloseReason::Frame(_)), "{reason:?}");
        assert_eq!(within(channel.receive()).await, Err(reason));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn any_bytes_end_a_connection_without_harm(
        parts in prop::collection::vec(
            prop_oneof![
                prop::collection::vec(any::<u8>(), 0..30),
                (0..12_u8, any::<u8>(), 0..4_u32, prop::collection::vec(any::<u8>(), 0..20))
                    .prop_map(|(kind, flags, channel, body)| {
                        Frame::new(Kind::from_byte(kind), flags, channel, body).encode().to_vec()
                    }),
            ],
            0..20,
        ),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        runtime.block_on(async {
            let (host, mut incoming, mut peer) =
                connect_to_peer(KIB, Role::Host, Options::default());
            let mut channel = host.open(Vec::new()).unwrap();
            tokio::spawn(async move {
                let _ = peer.pipe.write_all(&parts.concat()).await;
            });
            while within(channel.receive()).await.is_ok() {}
            while within(incoming.accept()).await.is_some() {}
            assert!(host.closed().is_some());
        });
    }
}

/// Carries bytes one way until `limit` of them passed.
async fn carry(mut from: ReadHalf<DuplexStream>, mut to: WriteHalf<DuplexStream>, limit: usize) {
    let mut left = limit;
    let mut chunk = [0; 1024];
    while left > 0 {
        let most = left.min(chunk.len());
        match from.read(&mut chunk[..most]).await {
            Ok(count) if count > 0 => {
                to.write_all(&chunk[..count]).await.unwrap();
                left -= count;
            }
            _ => return,
        }
    }
}

/// Connects two sides by a pipe that is cut once so many bytes went to the guest or to the host.
fn cut_pair(to_guest: usize, to_host: usize) -> Pair {
    let (ours, host_end) = duplex(KIB);
    let (theirs, guest_end) = duplex(KIB);
    let (host, host_incoming) = connect(ours, Role::Host, Options::default());
    let (guest, guest_incoming) = connect(theirs, Role::Guest, Options::default());
    let (from_host, into_host) = tokio::io::split(host_end);
    let (from_guest, into_guest) = tokio::io::split(guest_end);
    tokio::spawn(async move {
        tokio::select! {
            () = carry(from_host, into_guest, to_guest) => {}
            () = carry(from_guest, into_host, to_host) => {}
        }
    });
    Pair {
        host,
        guest,
        host_incoming,
        guest_incoming,
    }
}

/// The host's part of a short conversation, until the connection breaks.
async fn converse(host: &Connection) -> Result<(), CloseReason> {
    let mut channel = host.open(b"{\"ask\":\"echo\"}".to_vec()).unwrap();
    let sender = channel.sender();
    let feed = async {
        // A broken connection shows in what is received.
        let _ = sender.send_all(0, pattern(1, 60)).await;
        let _ = sender.flushed().await;
    };
    let read = async {
        loop {
            if let Item::Reply(_) = channel.receive().await? {
                return Ok(());
            }
        }
    };
    tokio::join!(read, feed).0
}

/// The guest's part.
async fn attend(mut incoming: Incoming) {
    while let Some((mut channel, _)) = incoming.accept().await {
        let mut all = Vec::new();
        while let Ok(Item::Data { bytes, last, .. }) = channel.receive().await {
            all.extend_from_slice(&bytes);
            if last {
                let _ = channel.event(b"{\"pid\":1}".to_vec());
                let _ = channel.send_all(1, all.into()).await;
                let _ = channel.reply(b"{\"ok\":1}".to_vec());
                break;
            }
        }
    }
}

async fn cut_at(to_guest: usize, to_host: usize) -> bool {
    let pair = cut_pair(to_guest, to_host);
    let attending = tokio::spawn(attend(pair.guest_incoming));
    let mut host_incoming = pair.host_incoming;
    let answered = within(converse(&pair.host)).await.is_ok();
    if !answered {
        for connection in [&pair.host, &pair.guest] {
            let reason = within(connection.wait_closed()).await;
            assert!(
                matches!(reason, CloseReason::Closed | CloseReason::Cut),
                "{reason:?} at {to_guest}, {to_host}"
            );
            let refused = connection.open(Vec::new()).unwrap_err();
            assert_eq!(refused, SendError::Closed(reason));
        }
        within(attending).await.unwrap();
        assert!(within(host_incoming.accept()).await.is_none());
        let tasks = [pair.host.tasks(), pair.guest.tasks()];
        drop((pair.host, pair.guest, host_incoming));
        settle().await;
        assert_eq!(tasks.map(|held| held.strong_count()), [0, 0]);
    }
    answered
}

#[tokio::test(start_paused = true)]
async fn a_pipe_cut_at_any_byte_wakes_everyone_on_both_sides() {
    let mut lengths = [0, 0];
    while !cut_at(lengths[0], 1 << 20).await {
        lengths[0] += 1;
    }
    while !cut_at(1 << 20, lengths[1]).await {
        lengths[1] += 1;
    }
    // Request and data, and the pipe must outlive them to bring the answer; event, data and
    // reply.
    let [asked, answered] = [12 + 14 + 12 + 60, 12 + 9 + 12 + 60 + 12 + 8];
    assert_eq!(lengths, [asked + 1, answered]);
}

#[tokio::test(start_paused = true)]
async fn the_end_between_frames_is_clean_and_inside_one_it_is_not() {
    let frame = Frame::new(Kind::Ping, 0, 0, &b"body"[..]).encode();
    for cut in 0..=frame.len() {
        let (host, _incoming, mut peer) = connect_to_peer(KIB, Role::Host, Options::default());
        peer.pipe.write_all(&frame[..cut]).await.unwrap();
        drop(peer);
        let expected = if cut == 0 || cut == frame.len() {
            CloseReason::Closed
        } else {
            CloseReason::Cut
        };
        assert_eq!(within(host.wait_closed()).await, expected, "cut at {cut}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_arrived_before_the_end_is_still_received() {
    let (host, _incoming, mut peer) = connect_to_peer(KIB, Role::Host, Options::default());
    let mut channel = host.open(Vec::new()).unwrap();
    peer.send(Kind::Data, 1, 1, b"out").await;
    peer.send(Kind::Reply, 0, 1, b"done").await;
    drop(peer);
    assert_eq!(within(host.wait_closed()).await, CloseReason::Closed);
    assert_eq!(channel.receive().await, Ok(data(1, b"out")));
    let reply = Item::Reply(Bytes::from_static(b"done"));
    assert_eq!(channel.receive().await, Ok(reply));
    assert_eq!(channel.receive().await, Err(CloseReason::Closed));
}

#[tokio::test(start_paused = true)]
async fn last_words_are_heard_even_if_writing_fails_first() {
    let (reader, mut talking) = duplex(KIB);
    let (writer, listening) = duplex(KIB);
    let (host, _incoming) = Connection::start(reader, writer, Role::Host, Options::default(), b"");
    drop(listening);
    let mut channel = host.open(Vec::new()).unwrap();
    settle().await;
    let reply = Frame::new(Kind::Reply, 0, 1, &b"bye"[..]).encode();
    talking.write_all(&reply).await.unwrap();
    let reply = Item::Reply(Bytes::from_static(b"bye"));
    assert_eq!(within(channel.receive()).await, Ok(reply));
    // A pipe that only takes nothing more does not stay half open.
    assert_eq!(within(host.wait_closed()).await, CloseReason::Closed);
}

#[tokio::test(start_paused = true)]
async fn what_was_queued_before_a_close_still_leaves() {
    let mut pair = pair(16);
    let (mut asking, answering) = open(&mut pair).await;
    answering.send(1, pattern(0, 100 * KIB)).await.unwrap();
    answering.reply(b"done".to_vec()).unwrap();
    pair.guest.close();
    let (bytes, reply) = within(read_to_reply(&mut asking)).await;
    assert!(bytes == pattern(0, 100 * KIB));
    assert_eq!(reply, &b"done"[..]);
    assert_eq!(asking.receive().await, Err(CloseReason::Closed));
}

#[tokio::test(start_paused = true)]
async fn a_closed_connection_ends_its_tasks_though_the_peer_reads_nothing() {
    let options = Options {
        heartbeat: Some(Duration::from_secs(60)),
    };
    let (host, incoming, peer) = connect_to_peer(64, Role::Host, options);
    let channel = host.open(vec![0; 1000]).unwrap();
    channel.send(1, pattern(0, 64 * KIB)).await.unwrap();
    let mut flushed = Box::pin(channel.flushed());
    assert_waits(&mut flushed).await;
    let mut waiting = Box::pin(host.wait_closed());
    assert_waits(&mut waiting).await;
    host.close();
    assert_eq!(within(waiting).await, CloseReason::Dropped);
    assert_eq!(within(flushed).await, Err(CloseReason::Dropped));
    let tasks = host.tasks();
    drop((host, incoming, channel));
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(tasks.strong_count(), 0);
    drop(peer);
}

#[tokio::test(start_paused = true)]
async fn a_closed_connection_ends_its_tasks_though_the_peer_never_stops() {
    let (host, incoming, mut peer) = connect_to_peer(KIB, Role::Host, Options::default());
    let tasks = host.tasks();
    let flood = tokio::spawn(async move {
        let frame = Frame::new(Kind::Event, 0, 2, vec![0; 500]).encode();
        while peer.pipe.write_all(&frame).await.is_ok() {}
    });
    tokio::task::yield_now().await;
    drop((host, incoming));
    within(flood).await.unwrap();
    assert_eq!(tasks.strong_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_closed_connection_ends_its_tasks_though_there_is_always_something_to_read() {
    // Zeros are empty frames of an unknown kind.
    let zeros = tokio::io::repeat(0);
    let options = Options::default();
    let (host, incoming) = Connection::start(zeros, tokio::io::sink(), Role::Host, options, b"");
    let tasks = host.tasks();
    drop((host, incoming));
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert_eq!(tasks.strong_count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_closed_connection_stops_reading_though_the_owner_does_not_accept() {
    let (reader, mut talking) = duplex(KIB);
    let (writer, _listening) = duplex(KIB);
    let (guest, _incoming) =
        Connection::start(reader, writer, Role::Guest, Options::default(), b"");
    let flood = tokio::spawn(async move {
        for channel in (1..).step_by(2) {
            let request = Frame::new(Kind::Request, 0, channel, &b""[..]).encode();
            if talking.write_all(&request).await.is_err() {
                return;
            }
        }
    });
    settle().await;
    assert!(!flood.is_finished());
    guest.close();
    within(flood).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_last_handle_ends_the_connection() {
    let mut pair = pair(KIB);
    let (mut asking, _answering) = open(&mut pair).await;
    let clone = pair.host.clone();
    drop(pair.host);
    drop(pair.host_incoming);
    settle().await;
    assert_eq!(clone.closed(), None);
    drop(clone);
    assert_eq!(within(asking.receive()).await, Err(CloseReason::Dropped));
    assert_eq!(within(pair.guest.wait_closed()).await, CloseReason::Closed);
    assert!(within(pair.guest_incoming.accept()).await.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_close_between_threads_wakes_every_waiter() {
    for round in 0..200_u32 {
        let mut pair = pair(1000);
        let mut waiters = Vec::new();
        for _ in 0..4 {
            let mut asking = pair.host.open(Vec::new()).unwrap();
            let (answering, _) = within(pair.guest_incoming.accept()).await.unwrap();
            let (sender, flusher) = (asking.sender(), asking.sender());
            waiters.push(tokio::spawn(async move {
                while sender.send(1, pattern(0, MAX_DATA)).await.is_ok() {}
            }));
            waiters.push(tokio::spawn(async move {
                while flusher.flushed().await.is_ok() {
                    tokio::task::yield_now().await;
                }
            }));
            waiters.push(tokio::spawn(async move {
                while asking.receive().await.is_ok() {}
            }));
            waiters.push(tokio::spawn(async move {
                while answering.send(1, pattern(0, KIB)).await.is_ok() {}
            }));
        }
        let (host, guest) = (pair.host.clone(), pair.guest.clone());
        waiters.push(tokio::spawn(async move {
            host.wait_closed().await;
        }));
        waiters.push(tokio::spawn(async move {
            guest.wait_closed().await;
        }));
        for _ in 0..round % 20 {
            tokio::task::yield_now().await;
        }
        pair.host.close();
        for waiter in waiters {
            within(waiter).await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_lost_connection_cancels_nothing() {
    let (host, _incoming, mut peer) = connect_to_peer(64 * KIB, Role::Host, Options::default());
    let mut asking = host.open(b"ask".to_vec()).unwrap();
    peer.expect(Kind::Request, 1).await;
    // In a task of its own it learns of the end, and lets go, before the writer does.
    let owner = tokio::spawn(async move { asking.receive().await });
    settle().await;
    peer.send(Kind::Request, 0, 1, b"against the rules").await;
    assert!(within(owner).await.unwrap().is_err());
    assert_eq!(within(peer.try_next()).await, None);
}
