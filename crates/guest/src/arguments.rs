//! The guest's command line.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

use crate::GuestError;
use crate::serve::Settings;

/// How long a guest stays with nobody connected and nothing to guard.
const EXIT_AFTER: Duration = Duration::from_secs(60);

/// How long finished processes are kept.
const KEEP: Duration = Duration::from_secs(3600);

/// How long a fresh shell may take to tell its state: long enough for a start-up file on a slow
/// disk, short enough for whoever waits.
const SHELL_LIMIT: Duration = Duration::from_secs(20);

/// What to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// Be the daemon, in the background.
    Start,
    /// Be a pipe to the daemon.
    Attach {
        /// What the host wants to hear first.
        nonce: String,
        /// Whether a missing daemon is not to be started.
        existing: bool,
    },
    /// Be the main process of a container.
    Init,
    /// Tell the version.
    Version,
}

fn usage(text: impl Into<String>) -> GuestError {
    GuestError::Usage(text.into())
}

/// Understands the arguments, the program's name not included.
pub(crate) fn parse(
    mut arguments: impl Iterator<Item = OsString>,
) -> Result<(Action, Settings), GuestError> {
    let verb = arguments.next().ok_or_else(|| usage("nothing to do"))?;
    let mut settings = Settings {
        dirs: Vec::new(),
        home: None,
        idle: None,
        exit_after: EXIT_AFTER,
        keep: KEEP,
        shell: SHELL_LIMIT,
    };
    let mut nonce = String::new();
    let mut existing = false;
    while let Some(flag) = arguments.next() {
        if flag == "--existing" {
            existing = true;
            continue;
        }
        let value = arguments
            .next()
            .ok_or_else(|| usage(format!("`{}` needs a value", flag.display())))?;
        match flag.to_str() {
            Some("--dir") => settings.dirs.push(folder("--dir", value)?),
            Some("--home") => settings.home = Some(folder("--home", value)?),
            Some("--nonce") => nonce = value.to_string_lossy().into_owned(),
            Some("--idle-ms") => settings.idle = Some(milliseconds("--idle-ms", &value)?),
            Some("--exit-after-ms") => {
                settings.exit_after = milliseconds("--exit-after-ms", &value)?;
            }
            Some("--keep-ms") => settings.keep = milliseconds("--keep-ms", &value)?,
            Some("--shell-ms") => settings.shell = milliseconds("--shell-ms", &value)?,
            _ => return Err(usage(format!("unknown option `{}`", flag.display()))),
        }
    }
    let action = match verb.to_str() {
        Some("--version") => return Ok((Action::Version, settings)),
        Some("start") => Action::Start,
        Some("init") => Action::Init,
        Some("attach") if nonce.is_empty() => return Err(usage("`attach` needs `--nonce`")),
        Some("attach") => Action::Attach { nonce, existing },
        _ => return Err(usage(format!("unknown action `{}`", verb.display()))),
    };
    if settings.dirs.is_empty() {
        return Err(usage("`--dir` is missing"));
    }
    if existing && !matches!(action, Action::Attach { .. }) {
        return Err(usage("`--existing` goes with `attach`"));
    }
    Ok((action, settings))
}

fn folder(flag: &str, value: OsString) -> Result<PathBuf, GuestError> {
    let folder = PathBuf::from(value);
    if folder.is_absolute() {
        return Ok(folder);
    }
    Err(usage(format!("`{flag}` takes an absolute folder")))
}

fn milliseconds(flag: &str, value: &OsStr) -> Result<Duration, GuestError> {
    value
        .to_str()
        .and_then(|text| text.parse().ok())
        .map(Duration::from_millis)
        .ok_or_else(|| usage(format!("`{flag}` takes a number")))
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
