use exoshell_wire::Happened;

use super::{Watch, parse};

fn watch(pattern: &str) -> Watch {
    Watch::new(&[pattern.to_owned()]).unwrap()
}

#[test]
fn a_match_split_over_two_reads_is_seen() {
    let mut watch = watch("^READY$");
    assert_eq!(watch.push(b"noise\nRE"), vec![]);
    assert!(matches!(
        &watch.push(b"ADY\n")[..],
        [Happened::Matched { .. }]
    ));
}

#[test]
fn a_flood_gives_one_event_and_one_note() {
    let mut watch = watch("x");
    let mut events = Vec::new();
    for _ in 0..100 {
        events.extend(watch.push("x\n".repeat(1000).as_bytes()));
    }
    assert!(matches!(
        &events[..],
        [Happened::Matched { .. }, Happened::WatchOff { .. }]
    ));
}

#[test]
fn the_last_line_without_a_newline_is_looked_at_once() {
    let mut watch = watch("done");
    assert_eq!(watch.push(b"all done"), vec![]);
    assert_eq!(watch.finish().len(), 1);
    assert_eq!(watch.finish(), vec![]);
}

#[test]
fn a_bad_expression_is_named() {
    let text = parse("(").unwrap_err().message;
    assert!(
        text.starts_with("`(` is not a regular expression"),
        "{text}"
    );
}
