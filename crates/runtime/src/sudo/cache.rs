//! Passwords that were given, for a while.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{Key, Password};

/// How long a password is kept, as sudo keeps its own tickets on most systems.
const KEPT_FOR: Duration = Duration::from_secs(15 * 60);

/// Passwords by task and place.
#[derive(Debug, Default)]
pub(super) struct Cache(Mutex<HashMap<Key, Kept>>);

#[derive(Debug)]
struct Kept {
    password: Password,
    until: Instant,
    /// A command has succeeded with it.
    proven: bool,
}

impl Cache {
    /// Returns what is kept, without what is over its time.
    fn kept(&self) -> MutexGuard<'_, HashMap<Key, Kept>> {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        kept.retain(|_, kept| kept.until > now);
        kept
    }

    pub(super) fn holds(&self, key: &Key) -> bool {
        self.kept().contains_key(key)
    }

    pub(super) fn get(&self, key: &Key) -> Option<Password> {
        self.kept().get(key).map(|kept| kept.password.clone())
    }

    pub(super) fn keep(&self, key: &Key, password: &Password) {
        self.keep_for(key, password, KEPT_FOR);
    }

    fn keep_for(&self, key: &Key, password: &Password, time: Duration) {
        let kept = Kept {
            password: password.clone(),
            until: Instant::now() + time,
            proven: false,
        };
        self.kept().insert(key.clone(), kept);
    }

    pub(super) fn forget(&self, key: &Key) {
        self.kept().remove(key);
    }

    /// Notes how a command ended that used it. Where sudo asks only once it never says that a
    /// password was wrong, so one that was never any good is not kept over a failure of sudo's kind.
    pub(super) fn ended(&self, key: &Key, exit_code: i32) {
        let mut all = self.kept();
        let Some(kept) = all.get_mut(key) else { return };
        kept.proven |= exit_code == 0;
        if !kept.proven && exit_code == 1 {
            all.remove(key);
        }
    }
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
