//! The guest: the program inside every place.
//!
//! It lingers as a daemon on a unix socket in a private folder, owns every process it starts,
//! keeps the sessions' shell state in memory, and answers any number of hosts over the protocol
//! of `exoshell-wire`. It decides nothing about what may run: policy is the host's.
//!
//! ```text
//! exoshell-guest start  --dir DIR                 be the daemon of DIR, if there is none
//! exoshell-guest attach --dir DIR --nonce NONCE   the same, then be a pipe to it
//! ```

mod attach;
mod connection;
mod exec;
mod files;
mod guest;
mod output;
mod plan;
mod process;
mod serve;
mod session;
mod shell;
mod spill;
mod terminal;
mod tree;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// How long a guest stays with nobody connected and nothing to guard.
const EXIT_AFTER: Duration = Duration::from_secs(60);

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
        "{0}\nusage: exoshell-guest start|attach --dir DIR [--nonce NONCE] [--exit-after-ms N] | --version"
    )]
    Usage(String),
    /// The system refused something.
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

/// What to do.
#[derive(Debug, PartialEq, Eq)]
enum Action {
    Start,
    Attach { nonce: String },
    Version,
}

/// Runs the guest with these arguments, the program's name not included.
///
/// Must be called first thing, before the process has threads or open files.
pub fn run(arguments: impl Iterator<Item = OsString>) -> Result<(), GuestError> {
    let (action, settings) = parse(arguments)?;
    match action {
        Action::Version => {
            let line = format!("exoshell-guest {}\n", build());
            rustix::io::write(rustix::stdio::stdout(), line.as_bytes())
                .map_err(std::io::Error::from)?;
            Ok(())
        }
        Action::Start => {
            exoshell_process::close_inherited();
            Ok(serve::start(&settings)?)
        }
        Action::Attach { nonce } => {
            exoshell_process::close_inherited();
            ensure_daemon(&settings)?;
            serve::enter(&settings.dir)?;
            Ok(attach::run(&nonce)?)
        }
    }
}

/// Starts the daemon from a fork, so that this process stays the pipe.
fn ensure_daemon(settings: &serve::Settings) -> Result<(), GuestError> {
    exoshell_process::run_forked(|| serve::start(settings))?;
    Ok(())
}

fn parse(
    mut arguments: impl Iterator<Item = OsString>,
) -> Result<(Action, serve::Settings), GuestError> {
    let usage = |text: &str| GuestError::Usage(text.to_owned());
    let verb = arguments.next().ok_or_else(|| usage("nothing to do"))?;
    let mut settings = serve::Settings {
        dir: PathBuf::new(),
        exit_after: EXIT_AFTER,
    };
    let mut nonce = String::new();
    while let Some(flag) = arguments.next() {
        let value = arguments
            .next()
            .ok_or_else(|| usage(&format!("`{}` needs a value", flag.display())))?;
        match flag.to_str() {
            Some("--dir") => settings.dir = PathBuf::from(value),
            Some("--nonce") => nonce = value.to_string_lossy().into_owned(),
            Some("--exit-after-ms") => {
                let millis = value.to_str().and_then(|text| text.parse().ok());
                settings.exit_after = millis
                    .map(Duration::from_millis)
                    .ok_or_else(|| usage("`--exit-after-ms` takes a number"))?;
            }
            _ => return Err(usage(&format!("unknown option `{}`", flag.display()))),
        }
    }
    let action = match verb.to_str() {
        Some("--version") => return Ok((Action::Version, settings)),
        Some("start") => Action::Start,
        Some("attach") if nonce.is_empty() => return Err(usage("`attach` needs `--nonce`")),
        Some("attach") => Action::Attach { nonce },
        _ => return Err(usage(&format!("unknown action `{}`", verb.display()))),
    };
    if !settings.dir.is_absolute() {
        return Err(usage("`--dir` takes an absolute folder"));
    }
    Ok((action, settings))
}
