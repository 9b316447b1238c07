//! Credit, fairness and bounds.

use exoshell_wire::INITIAL_WINDOW;

use super::*;

const WINDOW: usize = INITIAL_WINDOW as usize;

#[tokio::test(start_paused = true)]
async fn a_slow_reader_stalls_only_its_own_channel() {
    let mut pair = pair(10 * KIB);
    let (_unread, slow) = open(&mut pair).await;
    let (mut asking, fast) = open(&mut pair).await;
    let stalled = tokio::spawn(async move { slow.send(1, pattern(0, 10 * MIB)).await });
    settle().await;
    tokio::spawn(async move {
        fast.send(1, pattern(1, 5 * MIB)).await.unwrap();
        fast.reply(Vec::new()).unwrap();
    });
    let (bytes, _) = within(read_to_reply(&mut asking)).await;
    assert!(bytes == pattern(1, 5 * MIB));
    assert!(!stalled.is_finished());
}

#[tokio::test(start_paused = true)]
async fn a_sender_waits_at_the_window_and_goes_on_with_credit() {
    let (host, _incoming, mut peer) = connect_to_peer(MIB, Role::Host, Options::default());
    let channel = host.open(Vec::new()).unwrap();
    let sender = channel.sender();
    let sending = tokio::spawn(async move { sender.send(1, pattern(0, MIB)).await });
    peer.expect(Kind::Request, 1).await;
    let mut received = 0;
    while received < WINDOW {
        received += peer.expect(Kind::Data, 1).await.len();
    }
    assert_eq!(received, WINDOW);
    peer.expect_nothing().await;

    // Credit for less than the next frame is kept, not lost.
    let most = u32::try_from(MAX_DATA - 1).unwrap();
    peer.send(Kind::Credit, 0, 1, &most.to_le_bytes()).await;
    peer.expect_nothing().await;
    peer.send(Kind::Credit, 0, 1, &1_u32.to_le_bytes()).await;
    assert_eq!(peer.expect(Kind::Data, 1).await.len(), MAX_DATA);
    peer.expect_nothing().await;
    assert!(!sending.is_finished());

    for _ in 0..4 {
        peer.send(Kind::Credit, 0, 1, &u32::MAX.to_le_bytes()).await;
    }
    received += MAX_DATA;
    while received < MIB {
        received += peer.expect(Kind::Data, 1).await.len();
    }
    within(sending).await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn credit_comes_in_quarters_of_the_window_and_only_for_what_was_read() {
    let (guest, mut incoming, mut peer) = connect_to_peer(MIB, Role::Guest, Options::default());
    peer.send(Kind::Request, 0, 1, b"").await;
    let (mut channel, _) = within(incoming.accept()).await.unwrap();
    for _ in 0..8 {
        peer.send(Kind::Data, 1, 1, &vec![7; MAX_DATA]).await;
    }
    peer.expect_nothing().await;
    within(channel.receive()).await.unwrap();
    peer.expect_nothing().await;
    within(channel.receive()).await.unwrap();
    let amount = u32::try_from(WINDOW / 4).unwrap().to_le_bytes();
    assert_eq!(peer.expect(Kind::Credit, 1).await, &amount[..]);
    peer.expect_nothing().await;
    assert_eq!(guest.closed(), None);
}

#[tokio::test(start_paused = true)]
async fn a_raised_window_is_granted_at_once() {
    let (host, _incoming, mut peer) = connect_to_peer(8 * MIB, Role::Host, Options::default());
    let mut channel = host.open(Vec::new()).unwrap();
    channel.raise_window(u32::try_from(4 * MIB).unwrap());
    channel.raise_window(100);
    peer.expect(Kind::Request, 1).await;
    let amount = u32::try_from(4 * MIB - WINDOW).unwrap().to_le_bytes();
    assert_eq!(peer.expect(Kind::Credit, 1).await, &amount[..]);
    peer.expect_nothing().await;
    for _ in 0..4 * MIB / MAX_DATA {
        peer.send(Kind::Data, 1, 1, &vec![7; MAX_DATA]).await;
    }
    settle().await;
    assert_eq!((host.closed(), host.held().bytes), (None, 4 * MIB));
    peer.send(Kind::Data, 1, 1, b"x").await;
    let reason = CloseReason::Protocol("data without credit");
    assert_eq!(within(host.wait_closed()).await, reason);
}

#[tokio::test(start_paused = true)]
async fn channels_take_turns() {
    let (host, _incoming, mut peer) = connect_to_peer(KIB, Role::Host, Options::default());
    let channels: Vec<Channel> = (0..5).map(|_| host.open(Vec::new()).unwrap()).collect();
    for channel in &channels {
        // What fits the queue, so that all of it stands ready while the pipe is blocked.
        channel.send(1, pattern(0, 4 * MAX_DATA)).await.unwrap();
    }
    for channel in &channels {
        peer.expect(Kind::Request, channel.id()).await;
    }
    for _ in 0..4 {
        for channel in &channels {
            peer.expect(Kind::Data, channel.id()).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_newcomer_waits_for_one_turn_not_for_the_bulk() {
    let (host, _incoming, mut peer) = connect_to_peer(KIB, Role::Host, Options::default());
    let bulk: Vec<Channel> = (0..8).map(|_| host.open(Vec::new()).unwrap()).collect();
    for channel in bulk {
        tokio::spawn(async move { channel.send(1, pattern(0, 10 * MIB)).await });
    }
    for n in 0..8 {
        let channel = 1 + 2 * n;
        peer.expect(Kind::Request, channel).await;
        peer.send(Kind::Credit, 0, channel, &u32::MAX.to_le_bytes())
            .await;
    }
    for _ in 0..50 {
        assert_eq!(peer.next().await.kind, Kind::Data);
    }
    let newcomer = host.open(b"small".to_vec()).unwrap();
    newcomer.send(1, Bytes::from_static(b"data")).await.unwrap();
    peer.send(Kind::Ping, 0, 0, b"alive?").await;
    let mut before = Vec::new();
    while before.len() < 3 {
        let frame = peer.next().await;
        match frame.kind {
            Kind::Data if frame.channel != newcomer.id() => before.push(Kind::Data),
            Kind::Data => break,
            kind => before.push(kind),
        }
        // One batch may be on its way already, then comes one frame of each other channel.
        before.retain(|kind| *kind != Kind::Data);
    }
    before.sort_by_key(|kind| kind.to_byte());
    assert_eq!(before, [Kind::Request, Kind::Pong]);
}

#[tokio::test(start_paused = true)]
async fn pings_are_answered_while_bulk_flows() {
    let (host, _incoming, mut peer) = connect_to_peer(KIB, Role::Host, Options::default());
    let channel = host.open(Vec::new()).unwrap();
    tokio::spawn(async move { channel.send(1, pattern(0, 100 * MIB)).await });
    peer.expect(Kind::Request, 1).await;
    peer.send(Kind::Credit, 0, 1, &u32::MAX.to_le_bytes()).await;
    for n in 0..20_u8 {
        peer.send(Kind::Ping, 0, 0, &[n]).await;
        let mut waited = 0;
        loop {
            let frame = peer.next().await;
            if frame.kind == Kind::Pong {
                assert_eq!(frame.body, &[n][..]);
                break;
            }
            waited += frame.body.len();
        }
        // Only what was gathered for the pipe already goes before it.
        assert!(waited <= 256 * KIB + 2 * MAX_DATA, "{waited}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hundred_megabytes_pass_in_bounded_memory() {
    let mut pair = pair(64 * KIB);
    let (mut asking, answering) = open(&mut pair).await;
    let piece = pattern(3, MIB);
    let sent = piece.clone();
    tokio::spawn(async move {
        for _ in 0..100 {
            answering.send(1, sent.clone()).await.unwrap();
        }
        answering.reply(Vec::new()).unwrap();
    });
    let mut received = 0;
    loop {
        match within(asking.receive()).await.unwrap() {
            Item::Data { bytes, .. } => {
                for (n, chunk) in bytes.chunks(KIB).enumerate() {
                    let at = (received + n * KIB) % MIB;
                    assert_eq!(chunk, &piece[at..at + chunk.len()]);
                }
                received += bytes.len();
            }
            Item::Reply(_) => break,
            other => panic!("unexpected {other:?}"),
        }
        // What is unread here, and what is queued there.
        assert!(pair.host.held().bytes <= WINDOW);
        assert!(pair.guest.held().bytes <= 5 * MAX_DATA);
        assert!(pair.host.held().control <= 1);
    }
    assert_eq!(received, 100 * MIB);
}

#[tokio::test(start_paused = true)]
async fn a_chatty_stream_does_not_end_the_connection_of_a_slow_reader() {
    let mut pair = pair(64 * KIB);
    let (mut asking, answering) = open(&mut pair).await;
    for n in 0..20_000_u32 {
        // Streams alternate, so that nothing can be merged.
        let stream = u8::try_from(1 + n % 2).unwrap();
        answering
            .send(stream, Bytes::from_static(b"x"))
            .await
            .unwrap();
        if n % 100 == 0 {
            settle().await;
        }
    }
    answering.reply(Vec::new()).unwrap();
    let (bytes, _) = within(read_to_reply(&mut asking)).await;
    assert_eq!(bytes.len(), 20_000);
}

#[tokio::test(start_paused = true)]
async fn small_unread_pieces_of_one_stream_are_joined() {
    let mut pair = pair(64 * KIB);
    let (mut asking, answering) = open(&mut pair).await;
    for piece in [&b"one "[..], b"two ", b""] {
        answering.send(1, Bytes::from_static(piece)).await.unwrap();
    }
    answering
        .send_all(1, Bytes::from_static(b"three"))
        .await
        .unwrap();
    answering
        .send(2, Bytes::from_static(b"other"))
        .await
        .unwrap();
    answering.send(1, pattern(0, MAX_DATA)).await.unwrap();
    answering.send(1, Bytes::from_static(b"x")).await.unwrap();
    settle().await;
    assert_eq!(asking.receive().await, Ok(last(1, b"one two three")));
    assert_eq!(asking.receive().await, Ok(data(2, b"other")));
    for expected in [MAX_DATA, 1] {
        let Item::Data { bytes, .. } = asking.receive().await.unwrap() else {
            panic!("only data comes");
        };
        assert_eq!(bytes.len(), expected);
    }
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_floods_a_cancelled_channel_without_reading_fills_nothing() {
    let (host, _incoming, mut peer) = connect_to_peer(100, Role::Host, Options::default());
    drop(host.open(Vec::new()).unwrap());
    for _ in 0..5000 {
        peer.send(Kind::Data, 1, 1, b"x").await;
        peer.send(Kind::Ping, 0, 0, b"?").await;
        peer.send(Kind::Data, 1, 1, b"").await;
    }
    settle().await;
    assert!(host.held().control <= 18, "{:?}", host.held());
    assert_eq!((host.closed(), host.held().bytes), (None, 0));
}
