//! Removing containers that nobody will come back for, once in a while and in nobody's way.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use rustix::fs::FlockOperation;

use super::slot::Slot;
use super::spec::PlaceSpec;
use crate::record::now;
use crate::runtime::Runtime;

impl Runtime {
    /// Sweeps the engine of a container that was just entered, in the background: once per runtime
    /// and engine, and not when another program did so a short while ago. Nobody waits for it, and
    /// a sweep that fails, or ends with the program, is made up for by a later one.
    pub(crate) fn sweep_later(&self, slot: &Slot) {
        let config = &self.inner.config;
        let period = config.places.lifetime;
        if !config.docker.reaper || period.is_zero() {
            return;
        }
        let Some(path) = stamp_path(&slot.spec, &config.home) else {
            return;
        };
        let mut swept = self
            .inner
            .swept
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if !swept.insert(path.clone()) {
            return;
        }
        let place = Arc::clone(&slot.place);
        tokio::spawn(async move {
            let Ok(Some(stamp)) = Stamp::take(&path, period) else {
                return;
            };
            if place.sweep().await.is_ok() {
                // One that is not kept costs another sweep.
                let _ = stamp.renew();
            }
        });
    }
}

/// Names the file that tells when an engine was swept; there is none for other places.
fn stamp_path(spec: &PlaceSpec, home: &Path) -> Option<PathBuf> {
    let PlaceSpec::Docker(settings) = spec else {
        return None;
    };
    if settings.container.is_some() {
        return None;
    }
    let program = settings
        .program
        .as_ref()
        .and_then(|path| path.file_name())
        .map_or("engine".into(), |name| name.to_string_lossy());
    Some(home.join("docker").join(format!("sweep-{program}.lock")))
}

/// The right to sweep, held by one program at a time.
#[derive(Debug)]
struct Stamp {
    file: File,
}

impl Stamp {
    /// Takes the right, unless somebody sweeps now or did so within the period.
    fn take(path: &Path, period: Duration) -> io::Result<Option<Self>> {
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)?;
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Ok(None);
        }
        let mut text = String::new();
        (&mut file).take(32).read_to_string(&mut text)?;
        // What is no time, or one to come, is as good as none.
        let last: Option<u64> = text.trim().parse().ok().filter(|last| *last <= now());
        let recent = last.is_some_and(|last| now() - last < period.as_secs());
        Ok((!recent).then_some(Self { file }))
    }

    /// Notes that everything was swept now.
    fn renew(mut self) -> io::Result<()> {
        self.file.rewind()?;
        self.file.set_len(0)?;
        writeln!(self.file, "{}", now())
    }
}

#[cfg(test)]
#[path = "reaper_tests.rs"]
mod tests;
