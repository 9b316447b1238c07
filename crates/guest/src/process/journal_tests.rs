use exoshell_wire::Happened;

use super::{Journal, MAX_EVENTS};

fn journal(events: usize) -> Journal {
    let journal = Journal::new();
    for number in 0..events {
        let why = number.to_string();
        journal.add("p", None, Happened::WatchOff { why });
    }
    journal
}

fn sequences(journal: &Journal, consumer: &str) -> Vec<u64> {
    journal
        .pending(consumer, 0)
        .iter()
        .map(|e| e.sequence)
        .collect()
}

#[test]
fn b2_each_consumer_gets_each_event_until_it_acknowledges() {
    let journal = journal(3);
    assert_eq!(sequences(&journal, "a"), [1, 2, 3]);
    assert_eq!(sequences(&journal, "a"), [1, 2, 3]);
    journal.acknowledge("a", 2);
    assert_eq!(sequences(&journal, "a"), [3]);
    assert_eq!(sequences(&journal, "b"), [1, 2, 3]);
    journal.acknowledge("a", 1);
    assert_eq!(sequences(&journal, "a"), [3]);
}

#[test]
fn a_consumer_that_stays_away_learns_how_much_it_lost() {
    let journal = journal(5);
    journal.acknowledge("a", 1);
    for _ in 0..MAX_EVENTS {
        journal.add("p", None, Happened::WatchOff { why: String::new() });
    }
    let pending = journal.pending("a", 0);
    assert_eq!(pending[0].happened, Happened::Dropped { count: 4 });
    assert_eq!(pending.len(), MAX_EVENTS + 1);
}
