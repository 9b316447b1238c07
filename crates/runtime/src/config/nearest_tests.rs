use proptest::prelude::*;

use super::super::keys;
use super::*;

fn guess(given: &str) -> Option<&'static str> {
    nearest(given, keys::all().map(|key| key.name))
}

#[test]
fn a_typing_mistake_finds_the_key() {
    assert_eq!(
        guess("terminal.timeot_seconds"),
        Some("terminal.timeout_seconds")
    );
    assert_eq!(guess("terminal.bakcend"), Some("terminal.backend"));
    assert_eq!(guess("places.bach"), Some("places.batch"));
    assert_eq!(guess("log.levle"), Some("log.level"));
    assert_eq!(guess("terminal.env-pass"), Some("terminal.env_pass"));
    assert_eq!(guess("terminal.Cwd"), Some("terminal.cwd"));
}

#[test]
fn a_key_without_its_unit_finds_the_key() {
    assert_eq!(guess("terminal.timeout"), Some("terminal.timeout_seconds"));
    assert_eq!(guess("places.lifetime"), Some("places.lifetime_seconds"));
}

#[test]
fn a_key_in_the_wrong_table_or_in_none_finds_the_key() {
    assert_eq!(guess("timeout_seconds"), Some("terminal.timeout_seconds"));
    assert_eq!(guess("places.backend"), Some("terminal.backend"));
    assert_eq!(guess("terminal.linger"), Some("places.linger"));
    assert_eq!(guess("terminal.image"), Some("docker.image"));
    assert_eq!(guess("docker.memory_mb"), Some("container.memory_mb"));
    assert_eq!(guess("docker.options"), Some("ssh.options"));
}

#[test]
fn a_key_that_is_like_nothing_finds_nothing() {
    assert_eq!(guess("wormhole"), None);
    assert_eq!(guess("terminal.colour"), None);
    assert_eq!(guess("x"), None);
    assert_eq!(guess(""), None);
}

#[test]
fn a_swap_of_neighbours_is_one_step() {
    assert_eq!(distance("level", "levle"), 1);
    assert_eq!(distance("", "abc"), 3);
    assert_eq!(distance("kitten", "sitting"), 3);
}

proptest! {
    #[test]
    fn distance_is_symmetric_and_zero_only_for_equal_texts(a in "[a-d_.é]{0,8}", b in "[a-d_.é]{0,8}") {
        prop_assert_eq!(distance(&a, &b), distance(&b, &a));
        prop_assert_eq!(distance(&a, &b) == 0, a == b);
        prop_assert!(distance(&a, &b) <= a.chars().count().max(b.chars().count()));
    }

    #[test]
    fn one_lost_letter_never_hides_a_key(index in 0..keys::all().count(), lost in 0usize..40) {
        let key = keys::all().nth(index).unwrap().name;
        let at = key.find('.').map_or(0, |dot| dot + 1) + lost;
        prop_assume!(at < key.len());
        let mistyped = format!("{}{}", &key[..at], &key[at + 1..]);
        prop_assert!(super::super::keys::find(&mistyped).is_some() || guess(&mistyped) == Some(key), "{}", mistyped);
    }
}
