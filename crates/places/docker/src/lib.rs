//! The docker backend: containers of Docker and Podman.
//!
//! A container of ours has the guest as its main process, so an idle one ends by itself. It is
//! made, stopped and removed by the client program (`docker`, `podman`), which knows contexts and
//! credentials; the pipe to the guest goes over the engine's own socket where there is one, so
//! that a place costs no process on the host.
//!
//! A container that the user already has can be used as it is: the guest is put into it, and
//! nothing of it is ever stopped or removed.

mod adopt;
mod api;
mod archive;
mod classify;
mod client;
mod create;
mod engine;
mod limits;
mod mounts;
mod names;
mod orphans;
mod own;
mod pipe;
mod place;
mod plan;
mod program;
mod pull;
mod records;
mod report;
mod settings;
mod streams;
mod volumes;

pub use place::DockerPlace;
pub use settings::{DockerSettings, HostUser, ReadOnlyMount};
