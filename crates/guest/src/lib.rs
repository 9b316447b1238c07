//! The guest: the program inside every place.
//!
//! It lingers as a daemon on a unix socket in a private folder, owns every process it starts,
//! keeps the sessions' shell state in memory, and answers any number of hosts over the protocol
//! of `exoshell-wire`. It decides nothing about what may run: policy is the host's.
//!
//! ```text
//! exoshell-guest start  --dir DIR                 be the daemon of DIR, if there is none
//! exoshell-guest attach --dir DIR --nonce NONCE   the same, then be a pipe to it
//! exoshell-guest init   --dir DIR                 be a container's main process, and its guest
//! ```
//!
//! `--dir` may be given several times: the first folder that can be used is. `--existing` keeps
//! `attach` from starting a daemon. `--home` is where sessions start, `--idle-ms` and
//! `--exit-after-ms` say when the daemon ends by itself. Nothing but the announcement is ever
//! printed to stdout before the announcement.

mod arguments;
mod attach;
mod connection;
mod exec;
mod files;
mod folder;
mod guest;
mod hidden;
mod output;
mod plan;
mod process;
mod serve;
mod session;
mod shell;
mod spill;
mod sudo;
mod terminal;
mod tree;
mod watch;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use arguments::Action;

/// What the program exits with when it fails itself.
const FAILED: i32 = 125;

/// What `attach --existing` exits with when there is no guest.
const NO_GUEST: i32 = 3;

/// Tells which build this is.
pub(crate) const fn build() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Why the guest could not do what it was called for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GuestError {
    /// The command line is not understood.
    #[error(
        "{0}\nusage: exoshell-guest start|attach|init --dir DIR [--dir DIR …] [--nonce NONCE] \
         [--existing] [--home DIR] [--idle-ms N] [--exit-after-ms N] | --version"
    )]
    Usage(String),
    /// No daemon listens, and none was to be started.
    #[error("no guest here")]
    NoGuest,
    /// The system refused something.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

impl GuestError {
    /// Returns what the program exits with.
    pub const fn exit_code(&self) -> i32 {
        match self {
            Self::NoGuest => NO_GUEST,
            Self::Usage(_) | Self::Io(_) => FAILED,
        }
    }
}

/// Runs the guest with these arguments, the program's name first: it may be one of the names by
/// which sudo is helped to a password. Returns the code to exit with.
///
/// Must be called first thing, before the process has threads or open files.
pub fn run(mut arguments: impl Iterator<Item = OsString>) -> Result<i32, GuestError> {
    let name = PathBuf::from(arguments.next().unwrap_or_default());
    if name.ends_with(sudo::SHIM) {
        return Ok(sudo::run_shim(arguments.collect()));
    }
    if name.ends_with(sudo::ASKPASS) {
        return Ok(sudo::run_askpass(name.parent().unwrap_or(&name)));
    }
    let (action, settings) = arguments::parse(arguments)?;
    exoshell_process::close_inherited();
    match action {
        Action::Version => {
            let line = format!("exoshell-guest {}\n", build());
            rustix::io::write(rustix::stdio::stdout(), line.as_bytes())
                .map_err(std::io::Error::from)?;
        }
        Action::Start => serve::start(&settings)?,
        Action::Attach { nonce, existing } => {
            let socket = if existing {
                attach::find(&settings.dirs).ok_or(GuestError::NoGuest)?
            } else {
                attach::find_or_start(&settings)?
            };
            attach::run(&socket, &nonce)?;
        }
        Action::Init => return Ok(serve::init(&settings)?),
    }
    Ok(0)
}
