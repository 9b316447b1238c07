use std::time::Duration;

use super::super::{Key, Password};
use super::Cache;

fn key(task: &str, place: &str) -> Key {
    Key {
        task: task.to_owned(),
        place: place.to_owned(),
    }
}

#[test]
fn a_password_is_kept_for_one_task_in_one_place() {
    let cache = Cache::default();
    cache.keep(&key("a", "local"), &Password::new("open sesame"));
    assert!(cache.holds(&key("a", "local")));
    assert!(!cache.holds(&key("b", "local")));
    assert!(!cache.holds(&key("a", "ssh")));
    cache.forget(&key("a", "local"));
    assert!(cache.get(&key("a", "local")).is_none());
}

#[test]
fn a_password_is_kept_for_a_limited_time() {
    let cache = Cache::default();
    let key = key("a", "local");
    cache.keep_for(&key, &Password::new("open sesame"), Duration::ZERO);
    assert!(cache.get(&key).is_none());
}

#[test]
fn a_password_that_was_never_any_good_is_not_kept() {
    let cache = Cache::default();
    let key = key("a", "local");
    cache.keep(&key, &Password::new("wrong"));
    cache.ended(&key, 1);
    assert!(!cache.holds(&key));
    cache.keep(&key, &Password::new("right"));
    cache.ended(&key, 0);
    cache.ended(&key, 1);
    assert!(cache.holds(&key));
}
