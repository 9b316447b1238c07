//! Process trees: starting them, knowing all of them, ending all of them.
//!
//! Every command hangs under its own *supervisor*, a small process that is the subreaper of
//! whatever the command starts. So a descendant that called `setsid`, was double-forked or
//! ignores TERM still belongs to its command, and a kill reaches it.
//!
//! ```text
//! guest ──socket──▶ spawner (one, forked before any thread exists)
//!   ▲                  └─ supervisor (one per command, subreaper)
//!   └────control──────────┘   └─ shell
//!                                 └─ whatever it starts
//! ```
//!
//! The spawner is single-threaded and small, so forking it is cheap and safe, whatever the
//! guest has grown into. This crate is synchronous, knows nothing of sessions or frames, and is
//! the only one with `unsafe` code.

mod codec;
mod init;
mod launch;
mod spawner;
mod supervisor;
mod sys;
mod tree;

pub use init::run_init;
pub use launch::{Descriptor, Holder, Launch, Order, ProcessEntry, Report, Stage};
pub use spawner::{Control, Spawner, receive_report, send_order};
pub use sys::{
    block_pipe_signal, close_inherited, end_process, fork_daemon, has_writers, memory_file,
    pipe_capacity, read_memory_file, readable_bytes, run_forked, sealed_memory_file,
};
pub use tree::{Identity, children_of, has_proc_fs, identity_of, is_alive};

#[cfg(test)]
#[path = "process_tests.rs"]
mod tests;
