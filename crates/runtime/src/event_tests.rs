use std::collections::BTreeMap;
use std::time::SystemTime;

use super::{Event, EventHub, EventKind, QUEUE};

fn event(id: usize) -> Event {
    Event {
        time: SystemTime::UNIX_EPOCH,
        task: "t".to_owned(),
        kind: EventKind::CommandStarted { id: id.to_string() },
        labels: BTreeMap::new(),
    }
}

#[tokio::test]
async fn a_slow_subscriber_learns_how_much_it_missed() {
    let hub = EventHub::default();
    let mut events = hub.subscribe();
    for id in 0..QUEUE + 5 {
        hub.emit(&event(id));
    }
    for id in 0..QUEUE {
        let expected = EventKind::CommandStarted { id: id.to_string() };
        assert_eq!(events.next().await.unwrap().kind, expected);
    }
    hub.emit(&event(7));
    assert_eq!(
        events.next().await.unwrap().kind,
        EventKind::Missed { count: 5 }
    );
    assert_eq!(
        events.next().await.unwrap().kind,
        EventKind::CommandStarted { id: "7".to_owned() }
    );
}

#[tokio::test]
async fn every_subscriber_gets_every_event() {
    let hub = EventHub::default();
    let mut first = hub.subscribe();
    let mut second = hub.subscribe();
    drop(hub.subscribe());
    hub.emit(&event(1));
    assert_eq!(
        first.next().await.unwrap().kind,
        second.next().await.unwrap().kind
    );
}
