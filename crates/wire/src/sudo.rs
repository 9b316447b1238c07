//! What host and guest say about passwords that sudo asks for.

use serde::{Deserialize, Serialize};

/// The capability of a guest that can hand a password to sudo.
pub const SUDO: &str = "sudo";

/// The longest password that is passed on.
pub const MAX_PASSWORD: usize = 1024;

/// Says that this host answers when sudo asks for a password in a command or a process whose
/// [`Exec::sudo`](crate::Exec::sudo) was set; the channel lasts as long as that runs.
///
/// Each question is a [`PasswordWanted`] event. The host answers each with one line on
/// [`stream::STDIN`](crate::stream::STDIN), in order; an empty line means that there is none. The
/// password travels as data, so that no message holds it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passwords {
    /// The id of the [`Exec`](crate::Exec).
    pub id: String,
}

/// The event that asks for a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PasswordWanted {
    /// The how many-th time this sudo asks, from 1. After the first the one before was wrong.
    pub attempt: u32,
}
