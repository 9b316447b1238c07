//! Channels with credit over any byte pipe.
//!
//! A [`Connection`] turns one ordered, reliable pipe into many [`Channel`]s. Each channel is one
//! request with its streams: raw data both ways, events, and exactly one reply. Data needs
//! credit, so a slow reader stalls only its own channel; channels with something to send take
//! turns; pings, credits, requests and cancels go before all data.
//!
//! This crate knows frames and nothing of what they mean: not commands, not sessions.

mod channel;
mod connection;
mod lane;
mod pump;
mod sender;
mod state;

pub use channel::{Channel, Item};
pub use connection::{Connection, Incoming, Options, Role};
pub use sender::{ChannelSender, SendError};
pub use state::CloseReason;

#[cfg(test)]
#[path = "mux_tests.rs"]
mod tests;
