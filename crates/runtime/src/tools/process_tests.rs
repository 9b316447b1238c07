use super::{parse_signal, unfinished_character};

#[test]
fn signals_are_read_as_people_write_them() {
    assert_eq!(parse_signal("INT"), Some(2));
    assert_eq!(parse_signal("sigterm"), Some(15));
    assert_eq!(parse_signal("9"), Some(9));
    assert_eq!(parse_signal("SIGFOO"), None);
    assert_eq!(parse_signal("0"), None);
    assert_eq!(parse_signal("-9"), None);
}

#[test]
fn a_character_cut_by_a_poll_waits_for_its_rest() {
    assert_eq!(unfinished_character("é".as_bytes()), 0);
    assert_eq!(unfinished_character(&"é".as_bytes()[..1]), 1);
    assert_eq!(unfinished_character(&"€".as_bytes()[..2]), 2);
    assert_eq!(unfinished_character(&"😀".as_bytes()[..3]), 3);
    assert_eq!(unfinished_character(b"abc"), 0);
    assert_eq!(unfinished_character(b"\xff"), 0);
}
