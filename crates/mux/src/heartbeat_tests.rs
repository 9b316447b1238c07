//! Signs of life.

use tokio::time::Instant;

use super::*;

const PERIOD: Duration = Duration::from_secs(10);
const BEATING: Options = Options {
    heartbeat: Some(PERIOD),
};

#[tokio::test(start_paused = true)]
async fn a_silent_peer_is_given_up_after_three_heartbeats() {
    let start = Instant::now();
    let (host, _incoming, mut peer) = connect_to_peer(KIB, Role::Host, BEATING);
    let mut channel = host.open(b"ask".to_vec()).unwrap();
    assert_eq!(within(host.wait_closed()).await, CloseReason::Silent(30));
    assert_eq!(start.elapsed().as_secs(), 30);
    assert_eq!(channel.receive().await, Err(CloseReason::Silent(30)));
    let mut pings = 0;
    while let Some(frame) = within(peer.try_next()).await {
        pings += u32::from(frame.kind == Kind::Ping);
    }
    assert_eq!(pings, 3);
}

/// A host that was stopped for a while takes its guest for silent when it goes on, although both
/// are well. What it lets go then must reach nobody as an answer: the guest keeps the work for the
/// host's next connection only if it sees a lost one.
#[tokio::test(start_paused = true)]
async fn a_connection_given_up_for_silence_says_nothing_of_its_work() {
    for role in [Role::Host, Role::Guest] {
        let (ours, mut incoming, mut peer) = connect_to_peer(64 * KIB, role, BEATING);
        let mut channel = if role == Role::Host {
            ours.open(b"ask".to_vec()).unwrap()
        } else {
            peer.send(Kind::Request, 0, 1, b"ask").await;
            within(incoming.accept()).await.unwrap().0
        };
        // In a task of its own it learns of the end, and lets go, before the writer does.
        let owner = tokio::spawn(async move {
            loop {
                if let Err(reason) = channel.receive().await {
                    return reason;
                }
            }
        });
        assert_eq!(within(owner).await.unwrap(), CloseReason::Silent(30));
        let mut kinds = Vec::new();
        while let Some(frame) = within(peer.try_next()).await {
            kinds.push(frame.kind);
        }
        kinds.retain(|kind| !matches!(kind, Kind::Request | Kind::Ping));
        assert_eq!(kinds, [], "{role:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn any_traffic_counts_as_a_sign_of_life() {
    let (host, _incoming, mut peer) = connect_to_peer(KIB, Role::Host, BEATING);
    // One byte of a frame at a time, for a channel that does not exist: never a pong.
    let frame = Frame::new(Kind::Event, 0, 99, vec![b' '; 20]).encode();
    for byte in &frame[..] {
        peer.pipe.write_all(&[*byte]).await.unwrap();
        tokio::time::sleep(PERIOD * 2).await;
    }
    assert_eq!(host.closed(), None);
    let start = Instant::now();
    assert_eq!(within(host.wait_closed()).await, CloseReason::Silent(30));
    assert!(start.elapsed() <= PERIOD * 2);
}

#[tokio::test(start_paused = true)]
async fn a_quiet_connection_lives_as_long_as_it_is_answered() {
    let (ours, theirs) = duplex(KIB);
    // Only one side asks.
    let (host, _host_incoming) = connect(ours, Role::Host, BEATING);
    let (guest, _guest_incoming) = connect(theirs, Role::Guest, Options::default());
    tokio::time::sleep(PERIOD * 1000).await;
    assert_eq!((host.closed(), guest.closed()), (None, None));
}

#[tokio::test(start_paused = true)]
async fn without_heartbeats_silence_means_nothing() {
    let (host, _incoming, _peer) = connect_to_peer(KIB, Role::Host, Options::default());
    tokio::time::sleep(PERIOD * 1000).await;
    assert_eq!(host.closed(), None);
}

#[tokio::test(start_paused = true)]
async fn an_owner_that_does_not_accept_is_not_the_peers_silence() {
    let (ours, theirs) = duplex(KIB);
    let (guest, mut incoming) = connect(theirs, Role::Guest, BEATING);
    let (host, _host_incoming) = connect(ours, Role::Host, Options::default());
    let channels: Vec<Channel> = (0..300).map(|_| host.open(Vec::new()).unwrap()).collect();
    tokio::time::sleep(PERIOD * 100).await;
    assert_eq!(guest.closed(), None);
    for _ in &channels {
        within(incoming.accept()).await.unwrap();
    }
    tokio::time::sleep(PERIOD * 100).await;
    assert_eq!(guest.closed(), None);
}

#[tokio::test(start_paused = true)]
async fn pings_do_not_pile_up_in_front_of_a_peer_that_talks_but_does_not_read() {
    let (host, _incoming, mut peer) = connect_to_peer(16, Role::Host, BEATING);
    for _ in 0..1000 {
        tokio::time::sleep(PERIOD).await;
        peer.send(Kind::Pong, 0, 0, b"").await;
    }
    assert_eq!(host.closed(), None);
    assert!(host.held().control <= 1);
}
