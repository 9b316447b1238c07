//! Keeps secrets out of what leaves the runtime.
//!
//! What is hidden and how is [`exoshell_redact`]'s matter; here is which values a runtime knows,
//! and how its answers, events and streams pass through.

mod filter;
mod keeper;
mod outlets;
mod sink;

pub use exoshell_redact::{RedactStream, Redactor, Secrets, holds_secret};
pub use filter::RedactFilter;
pub use keeper::Keeper;
pub(crate) use outlets::Outlet;
pub use outlets::clean_value;
pub(crate) use sink::{QUIET, StreamSink};
