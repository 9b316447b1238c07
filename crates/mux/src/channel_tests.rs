//! What a channel promises to its two ends.

use exoshell_wire::MAX_CONTROL;

use super::*;
use crate::SendError;

#[tokio::test(start_paused = true)]
async fn a_request_gets_its_reply() {
    let mut pair = pair(64);
    let (mut asking, mut answering) = open(&mut pair).await;
    asking
        .send_all(0, Bytes::from_static(b"text"))
        .await
        .unwrap();
    assert_eq!(within(answering.receive()).await, Ok(last(0, b"text")));
    answering.event(b"started".to_vec()).unwrap();
    answering.send(1, Bytes::from_static(b"out")).await.unwrap();
    answering.reply(b"done".to_vec()).unwrap();
    for expected in [
        Item::Event(Bytes::from_static(b"started")),
        data(1, b"out"),
        Item::Reply(Bytes::from_static(b"done")),
    ] {
        assert_eq!(within(asking.receive()).await, Ok(expected));
    }
    drop(asking);
    settle().await;
    assert_eq!((pair.host.held().lanes, pair.guest.held().lanes), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn both_sides_may_ask() {
    let mut pair = pair(64);
    let mut asking = pair.guest.open(b"call".to_vec()).unwrap();
    let (answering, body) = within(pair.host_incoming.accept()).await.unwrap();
    assert_eq!((answering.id(), body), (2, Bytes::from_static(b"call")));
    answering.reply(b"value".to_vec()).unwrap();
    let reply = Item::Reply(Bytes::from_static(b"value"));
    assert_eq!(within(asking.receive()).await, Ok(reply));
}

#[tokio::test(start_paused = true)]
async fn bytes_that_came_behind_the_hello_are_not_lost() {
    let early = Frame::new(Kind::Request, 0, 1, &b"early"[..]).encode();
    for cut in 0..=early.len() {
        let (ours, mut theirs) = duplex(64);
        let (before, after) = early.split_at(cut);
        let (reader, writer) = tokio::io::split(ours);
        let (_connection, mut incoming) =
            Connection::start(reader, writer, Role::Guest, Options::default(), before);
        theirs.write_all(after).await.unwrap();
        let (_channel, body) = within(incoming.accept()).await.unwrap();
        assert_eq!(body, &b"early"[..]);
    }
}

/// Answers every request with its own data, on two streams at once, and its own body.
async fn echo_all(mut incoming: Incoming) {
    while let Some((mut channel, body)) = incoming.accept().await {
        tokio::spawn(async move {
            let bytes = Bytes::from(read_to_last(&mut channel).await);
            let half = channel.sender();
            let (first, second) =
                tokio::join!(half.send(1, bytes.clone()), channel.send(2, bytes.clone()));
            first.unwrap();
            second.unwrap();
            channel.reply(body.to_vec()).unwrap();
        });
    }
}

async fn ask_many(host: &Connection, count: usize) {
    let asking: Vec<_> = (0..count)
        .map(|n| {
            let host = host.clone();
            tokio::spawn(async move {
                let mut channel = host.open(n.to_string().into_bytes()).unwrap();
                let sent = pattern(n, (n * 997) % (90 * KIB));
                channel.send_all(0, sent.clone()).await.unwrap();
                let mut received = [Vec::new(), Vec::new(), Vec::new()];
                let reply = loop {
                    match channel.receive().await.unwrap() {
                        Item::Data { stream, bytes, .. } => {
                            received[usize::from(stream)].extend_from_slice(&bytes);
                        }
                        Item::Reply(body) => break body,
                        other => panic!("unexpected {other:?}"),
                    }
                };
                assert_eq!(reply, n.to_string());
                assert!(received[1] == sent, "channel {n} got other bytes");
                assert!(received[2] == sent, "channel {n} got other bytes");
            })
        })
        .collect();
    for task in asking {
        within(task).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn two_hundred_channels_at_once_stay_apart() {
    let pair = pair(3 * KIB);
    tokio::spawn(echo_all(pair.guest_incoming));
    ask_many(&pair.host, 200).await;
    settle().await;
    assert_eq!((pair.host.held().lanes, pair.guest.held().lanes), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_wake_up_is_lost_between_threads() {
    for capacity in [100, 5000, MIB] {
        let pair = pair(capacity);
        tokio::spawn(echo_all(pair.guest_incoming));
        ask_many(&pair.host, 100).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_accept_queue_holds_requests_but_loses_none() {
    let mut pair = pair(KIB);
    let mut asking: Vec<Channel> = (0..1000)
        .map(|n| {
            pair.host
                .open(vec![u8::try_from(n % 256).unwrap()])
                .unwrap()
        })
        .collect();
    settle().await;
    for _ in 0..1000 {
        let (channel, body) = within(pair.guest_incoming.accept()).await.unwrap();
        channel.reply(body.to_vec()).unwrap();
    }
    for (n, channel) in asking.iter_mut().enumerate() {
        let reply = Item::Reply(vec![u8::try_from(n % 256).unwrap()].into());
        assert_eq!(within(channel.receive()).await, Ok(reply));
    }
}

#[tokio::test(start_paused = true)]
async fn dropping_the_asking_end_cancels_and_the_rest_is_swallowed() {
    let mut pair = pair(KIB);
    let (mut asking, mut answering) = open(&mut pair).await;
    answering.send(1, pattern(0, 40 * KIB)).await.unwrap();
    within(asking.receive()).await.unwrap();
    asking.send(1, pattern(1, 100 * KIB)).await.unwrap();
    drop(asking);

    let mut item = within(answering.receive()).await.unwrap();
    while matches!(item, Item::Data { .. }) {
        item = within(answering.receive()).await.unwrap();
    }
    assert_eq!(item, Item::Cancel);
    // Far more than the window: it flows because someone swallows it.
    within(answering.send(1, pattern(2, 2 * MIB)))
        .await
        .unwrap();
    assert_eq!(pair.host.held().lanes, 1);
    answering.reply(b"stopped".to_vec()).unwrap();
    settle().await;
    assert_eq!((pair.host.held().lanes, pair.guest.held().lanes), (0, 0));

    let (mut asking, answering) = open(&mut pair).await;
    answering.reply(Vec::new()).unwrap();
    assert_eq!(
        within(asking.receive()).await,
        Ok(Item::Reply(Bytes::new()))
    );
}

#[tokio::test(start_paused = true)]
async fn a_request_dropped_at_once_is_still_answered_and_forgotten() {
    let mut pair = pair(KIB);
    drop(pair.host.open(b"ask".to_vec()).unwrap());
    let (mut answering, _) = within(pair.guest_incoming.accept()).await.unwrap();
    assert_eq!(within(answering.receive()).await, Ok(Item::Cancel));
    drop(answering);
    settle().await;
    assert_eq!((pair.host.held().lanes, pair.guest.held().lanes), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn an_explicit_cancel_leaves_the_reply_to_come() {
    let mut pair = pair(KIB);
    let (mut asking, mut answering) = open(&mut pair).await;
    asking.cancel();
    assert_eq!(within(answering.receive()).await, Ok(Item::Cancel));
    answering
        .send(1, Bytes::from_static(b"tail"))
        .await
        .unwrap();
    answering.reply(b"stopped".to_vec()).unwrap();
    let (bytes, reply) = within(read_to_reply(&mut asking)).await;
    assert_eq!((&bytes[..], &reply[..]), (&b"tail"[..], &b"stopped"[..]));
}

#[tokio::test(start_paused = true)]
async fn dropping_the_answering_end_resets_behind_its_data() {
    let mut pair = pair(KIB);
    let (mut asking, answering) = open(&mut pair).await;
    answering.send(1, Bytes::from_static(b"out")).await.unwrap();
    drop(answering);
    assert_eq!(within(asking.receive()).await, Ok(data(1, b"out")));
    assert_eq!(within(asking.receive()).await, Ok(Item::Reset));
    drop(asking);
    settle().await;
    assert_eq!((pair.host.held().lanes, pair.guest.held().lanes), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn requests_nobody_accepts_any_more_are_reset() {
    let pair = pair(KIB);
    drop(pair.guest_incoming);
    let mut asking = pair.host.open(b"ask".to_vec()).unwrap();
    assert_eq!(within(asking.receive()).await, Ok(Item::Reset));
    drop(asking);
    settle().await;
    assert_eq!((pair.host.held().lanes, pair.guest.held().lanes), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn the_reply_never_overtakes_data() {
    let mut pair = pair(10 * KIB);
    let (mut asking, answering) = open(&mut pair).await;
    let sent = pattern(5, 3 * MIB);
    let work = tokio::spawn(async move {
        answering.send(1, sent).await.unwrap();
        answering.event(b"exited".to_vec()).unwrap();
        answering.finish(1).await.unwrap();
        answering.reply(b"done".to_vec()).unwrap();
    });
    settle().await;
    let mut all = Vec::new();
    loop {
        match within(asking.receive()).await.unwrap() {
            Item::Data { bytes, .. } => all.extend_from_slice(&bytes),
            Item::Event(_) => break,
            other => panic!("unexpected {other:?}"),
        }
    }
    assert!(all == pattern(5, 3 * MIB));
    assert_eq!(within(asking.receive()).await, Ok(last(1, b"")));
    let reply = Item::Reply(Bytes::from_static(b"done"));
    assert_eq!(within(asking.receive()).await, Ok(reply));
    work.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_sender_that_is_late_for_the_reply_fails_and_nothing_follows_it() {
    let mut pair = pair(10 * KIB);
    let (mut asking, answering) = open(&mut pair).await;
    let sender = answering.sender();
    let mut pump = Box::pin(sender.send(1, pattern(0, MIB)));
    assert_waits(&mut pump).await;
    answering.reply(b"done".to_vec()).unwrap();
    assert_eq!(within(pump).await, Err(SendError::Ended));
    assert_eq!(sender.event(Vec::new()), Err(SendError::Ended));
    let (bytes, reply) = within(read_to_reply(&mut asking)).await;
    assert_eq!(reply, &b"done"[..]);
    assert!(pattern(0, MIB).starts_with(&bytes));
    assert_eq!(asking.try_receive(), Ok(None));
}

#[tokio::test(start_paused = true)]
async fn one_task_pumps_output_while_another_receives() {
    let mut pair = pair(10 * KIB);
    let (mut asking, mut answering) = open(&mut pair).await;
    let output = answering.sender();
    let pump = tokio::spawn(async move {
        output.send(1, pattern(1, MIB)).await.unwrap();
        output.finish(1).await.unwrap();
        output.flushed().await.unwrap();
    });
    let input = asking.sender();
    let stdin = tokio::spawn(async move { input.send_all(1, pattern(2, MIB)).await.unwrap() });
    let (read, received) =
        within(async { tokio::join!(read_to_last(&mut asking), read_to_last(&mut answering)) })
            .await;
    assert!(read == pattern(1, MIB));
    assert!(received == pattern(2, MIB));
    within(pump).await.unwrap();
    within(stdin).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn several_senders_of_one_channel_take_turns() {
    let mut pair = pair(10 * KIB);
    let (mut asking, answering) = open(&mut pair).await;
    for stream in 0..4 {
        let sender = answering.sender();
        tokio::spawn(async move {
            sender.send_all(stream, pattern(0, 2 * MIB)).await.unwrap();
        });
    }
    settle().await;
    let mut received = [0_usize; 4];
    let mut ended = 0;
    while ended < 4 {
        let Item::Data {
            stream,
            bytes,
            last,
        } = within(asking.receive()).await.unwrap()
        else {
            panic!("only data comes");
        };
        received[usize::from(stream)] += bytes.len();
        ended += usize::from(last);
        if ended == 0 {
            let most = received.iter().max().unwrap();
            let least = received.iter().min().unwrap();
            // The first one fills the queue before the others come.
            assert!(most - least <= 10 * MAX_DATA, "{received:?}");
        }
    }
    assert_eq!(received, [2 * MIB; 4]);
}

/// Fills a channel to a peer that grants nothing: the window and the queue behind it.
async fn fill(channel: &Channel) {
    let length = exoshell_wire::INITIAL_WINDOW as usize + crate::lane::OUT_QUEUE;
    within(channel.send(1, pattern(0, length))).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_sender_that_nobody_polls_holds_up_nobody() {
    let (host, _incoming, mut peer) = connect_to_peer(MIB, Role::Host, Options::default());
    let channel = host.open(Vec::new()).unwrap();
    fill(&channel).await;
    let mut forgotten = Box::pin(channel.finish(1));
    assert_waits(&mut forgotten).await;
    let mut polled = Box::pin(channel.finish(2));
    assert_waits(&mut polled).await;
    // Room for exactly one of them, and it goes to whoever asks.
    let amount = u32::try_from(MAX_DATA).unwrap();
    peer.send(Kind::Credit, 0, 1, &amount.to_le_bytes()).await;
    within(polled).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_answer_ends_senders_whose_credit_never_comes() {
    for answer in [Kind::Reply, Kind::Reset] {
        let (host, _incoming, mut peer) = connect_to_peer(MIB, Role::Host, Options::default());
        let channel = host.open(Vec::new()).unwrap();
        fill(&channel).await;
        let mut sending = Box::pin(channel.finish(1));
        assert_waits(&mut sending).await;
        let mut flushed = Box::pin(channel.flushed());
        assert_waits(&mut flushed).await;
        peer.send(answer, 0, 1, b"").await;
        within(sending).await.unwrap();
        within(flushed).await.unwrap();
        drop(channel);
        assert_eq!(host.held().lanes, 0);
    }
}

#[tokio::test(start_paused = true)]
async fn senders_of_a_dropped_answering_end_wake_though_nobody_reads() {
    let mut pair = pair(10 * KIB);
    let (mut asking, answering) = open(&mut pair).await;
    let sender = answering.sender();
    fill(&answering).await;
    let mut sending = Box::pin(sender.finish(1));
    assert_waits(&mut sending).await;
    drop(answering);
    assert_eq!(within(sending).await, Err(SendError::Ended));
    let mut item = within(asking.receive()).await.unwrap();
    while matches!(item, Item::Data { .. }) {
        item = within(asking.receive()).await.unwrap();
    }
    assert_eq!(item, Item::Reset);
}

#[tokio::test(start_paused = true)]
async fn a_cancel_is_seen_before_unread_data() {
    let mut pair = pair(10 * KIB);
    let (asking, mut answering) = open(&mut pair).await;
    let watch = answering.sender();
    let mut cancelled = Box::pin(watch.cancelled());
    asking.send(1, Bytes::from_static(b"unread")).await.unwrap();
    assert_waits(&mut cancelled).await;
    asking.cancel();
    assert_eq!(within(cancelled).await, Ok(()));
    assert_eq!(answering.receive().await, Ok(data(1, b"unread")));
    assert_eq!(answering.receive().await, Ok(Item::Cancel));
}

#[tokio::test(start_paused = true)]
async fn whoever_waits_for_a_cancel_learns_that_the_channel_or_the_connection_ended() {
    for end in 0..3 {
        let mut pair = pair(10 * KIB);
        let (_asking, answering) = open(&mut pair).await;
        let watch = answering.sender();
        let mut cancelled = Box::pin(watch.cancelled());
        assert_waits(&mut cancelled).await;
        let mut kept = Some(answering);
        match end {
            0 => kept.take().unwrap().reply(Vec::new()).unwrap(),
            1 => drop(kept.take()),
            _ => pair.guest.close(),
        }
        assert_eq!(
            within(cancelled).await,
            Err(CloseReason::Dropped),
            "end {end}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn every_waiting_sender_wakes_when_the_channel_ends() {
    // However it ends: dropped here, answered there, or with the connection.
    for end in 0..4 {
        let mut pair = pair(10 * KIB);
        let (asking, answering) = open(&mut pair).await;
        let mut senders: Vec<_> = (0..3)
            .map(|_| {
                let sender = asking.sender();
                Box::pin(async move { sender.send(1, pattern(0, 2 * MIB)).await })
            })
            .collect();
        let flusher = asking.sender();
        let mut flushed = Box::pin(flusher.flushed());
        for sender in &mut senders {
            assert_waits(sender).await;
        }
        assert_waits(&mut flushed).await;
        let expected = match end {
            0 => {
                drop(asking);
                Err(SendError::Ended)
            }
            1 => {
                answering.reply(Vec::new()).unwrap();
                Ok(())
            }
            2 => {
                drop(answering);
                Ok(())
            }
            _ => {
                pair.host.close();
                Err(CloseReason::Dropped.into())
            }
        };
        for sender in senders {
            assert_eq!(within(sender).await, expected, "end {end}");
        }
        assert_eq!(within(flushed).await.is_ok(), end != 3, "end {end}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_sent_after_the_reply_is_dropped_quietly() {
    let mut pair = pair(KIB);
    let (mut asking, answering) = open(&mut pair).await;
    answering.reply(b"refused".to_vec()).unwrap();
    settle().await;
    within(asking.send_all(0, pattern(0, 3 * MIB)))
        .await
        .unwrap();
    asking.event(b"late".to_vec()).unwrap();
    assert_eq!(pair.host.held().bytes, b"refused".len());
    let reply = Item::Reply(Bytes::from_static(b"refused"));
    assert_eq!(within(asking.receive()).await, Ok(reply));
}

#[tokio::test(start_paused = true)]
async fn flushed_means_that_the_pipe_has_it() {
    let (host, _incoming, mut peer) = connect_to_peer(64, Role::Host, Options::default());
    let channel = host.open(b"ask".to_vec()).unwrap();
    channel.send(1, pattern(0, 1000)).await.unwrap();
    let mut flushed = Box::pin(channel.flushed());
    assert_waits(&mut flushed).await;
    let mut all_flushed = Box::pin(host.flushed());
    assert_waits(&mut all_flushed).await;
    peer.expect(Kind::Request, 1).await;
    assert_waits(&mut flushed).await;
    peer.expect(Kind::Data, 1).await;
    within(flushed).await.unwrap();
    within(all_flushed).await.unwrap();

    channel.send(1, pattern(0, 1000)).await.unwrap();
    drop(channel);
    peer.expect(Kind::Cancel, 1).await;
    within(host.flushed()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_process_may_exit_when_its_last_reply_is_flushed() {
    let (_guest, mut incoming, mut peer) = connect_to_peer(16, Role::Guest, Options::default());
    peer.send(Kind::Request, 0, 1, b"").await;
    let (channel, _) = within(incoming.accept()).await.unwrap();
    let sender = channel.sender();
    channel.reply(vec![b' '; 100]).unwrap();
    let mut flushed = Box::pin(sender.flushed());
    assert_waits(&mut flushed).await;
    assert_eq!(peer.expect(Kind::Reply, 1).await.len(), 100);
    within(flushed).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn messages_over_the_cap_are_refused_before_they_leave() {
    let mut pair = pair(KIB);
    let length = MAX_CONTROL + 1;
    let too_long = SendError::TooLong { length };
    assert_eq!(pair.host.open(vec![0; length]).unwrap_err(), too_long);
    let (mut asking, answering) = open(&mut pair).await;
    assert_eq!(asking.event(vec![0; length]), Err(too_long.clone()));
    assert_eq!(answering.reply(vec![0; length]), Err(too_long));
    assert_eq!(within(asking.receive()).await, Ok(Item::Reset));
}

#[tokio::test(start_paused = true)]
async fn the_largest_messages_pass() {
    let mut pair = pair(KIB);
    let mut asking = pair.host.open(vec![1; MAX_CONTROL]).unwrap();
    let (answering, body) = within(pair.guest_incoming.accept()).await.unwrap();
    assert_eq!(body.len(), MAX_CONTROL);
    answering.reply(vec![2; MAX_CONTROL]).unwrap();
    let reply = Item::Reply(vec![2; MAX_CONTROL].into());
    assert_eq!(within(asking.receive()).await, Ok(reply));
}

#[tokio::test(start_paused = true)]
async fn a_last_piece_shares_its_frame_with_the_end_of_the_stream() {
    for (length, frames) in [
        (0, 1),
        (1, 1),
        (MAX_DATA, 1),
        (MAX_DATA + 1, 2),
        (3 * MAX_DATA, 3),
    ] {
        let (host, _incoming, mut peer) = connect_to_peer(MIB, Role::Host, Options::default());
        let channel = host.open(Vec::new()).unwrap();
        channel.send_all(3, pattern(0, length)).await.unwrap();
        peer.expect(Kind::Request, 1).await;
        let mut all = Vec::new();
        for n in 1..=frames {
            let frame = peer.next().await;
            all.extend_from_slice(&frame.body);
            let flags = if n == frames { 3 | FIN } else { 3 };
            assert_eq!((frame.kind, frame.flags), (Kind::Data, flags));
        }
        assert_eq!(all, pattern(0, length));
        peer.expect_nothing().await;
    }
}
