//! The directories of sessions: where they start, and where they were left.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{MutexGuard, PoisonError};

use crate::error::RuntimeError;
use crate::places::slot::Slot;
use crate::record::Record;
use crate::runtime::Runtime;

impl Runtime {
    /// Remembers the directory that a task's session was left in.
    pub(crate) fn moved(&self, slot: &Slot, task: &str, directory: &str) {
        let key = (slot.label.clone(), task.to_owned());
        let before = self.directories().insert(key, directory.to_owned());
        if slot.spec.is_local() || !slot.spec.is_checked() || before.as_deref() == Some(directory) {
            return;
        }
        // Without it the next program asks more often than it needs to, and that is all.
        let _ = self.inner.records.update(task, &slot.label, |record| {
            record.left_in = Some(directory.to_owned());
        });
    }

    /// Returns the directory that a task's session was left in, if this program knows.
    pub(crate) fn directory_of(&self, slot: &Slot, task: &str) -> Option<String> {
        let key = (slot.label.clone(), task.to_owned());
        self.directories().get(&key).cloned()
    }

    /// Forgets the directories of a task's sessions.
    pub(crate) fn forget_directories(&self, task: &str) {
        self.directories().retain(|(_, known), _| known != task);
    }

    pub(crate) fn directories(&self) -> MutexGuard<'_, HashMap<(String, String), String>> {
        self.inner
            .directories
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the directory that a task works in from its beginning.
    pub(crate) fn task_directory(&self, slot: &Slot, task: &str) -> Option<String> {
        if !slot.spec.is_local() {
            return self.fresh_directory(slot, task);
        }
        match self.known_record(slot, task) {
            Some(record) => Some(record.directory.display()),
            None => self.fresh_directory(slot, task),
        }
    }

    /// Returns what is kept of a task's place, if anything is.
    pub(crate) fn known_record(&self, slot: &Slot, task: &str) -> Option<Record> {
        self.inner.records.get(task, &slot.label)
    }

    /// Returns the directory that a fresh session of a task would start in.
    pub(crate) fn fresh_directory(&self, slot: &Slot, task: &str) -> Option<String> {
        let directory = if slot.spec.is_local() {
            let fixed = self.overrides(task).cwd;
            fixed.or_else(|| self.base_directory().ok())
        } else {
            self.place_directory(slot, task, &mut Vec::new())
        };
        directory.map(|path| path.to_string_lossy().into_owned())
    }

    /// Chooses the directory a task starts in; in batch mode each gets one of its own.
    pub(crate) fn first_directory(&self, task: &str) -> Result<(PathBuf, bool), RuntimeError> {
        if let Some(cwd) = self.overrides(task).cwd {
            return Ok((cwd, false));
        }
        let base = self.base_directory()?;
        let places = &self.inner.config.places;
        if !places.batch {
            return Ok((base, false));
        }
        let tag = exoshell_place::nonce()?;
        let tag = tag.get(..8).unwrap_or(&tag);
        let name = crate::record::file_name(task);
        let readable = name
            .rsplit_once('-')
            .map_or(name.as_str(), |(name, _)| name);
        let directory = places
            .batch_base(&base)
            .join(format!("exoshell-{readable}-{tag}"));
        std::fs::create_dir_all(&directory).map_err(|source| RuntimeError::State {
            action: "cannot create",
            path: directory.display().to_string(),
            source,
        })?;
        Ok((directory, true))
    }

    /// Returns the directory a fresh session starts in. A caller that stands nowhere is told so:
    /// running its commands somewhere else would be a guess.
    pub(crate) fn base_directory(&self) -> Result<PathBuf, RuntimeError> {
        let configured = self.inner.config.terminal.cwd.clone();
        configured
            .or_else(|| self.inner.environment.directory().map(PathBuf::from))
            .ok_or_else(|| {
                RuntimeError::Usage(
                    "the current directory does not exist (any more); change to one that does, \
                     or set `terminal.cwd`"
                        .to_owned(),
                )
            })
    }

    /// Returns the configured directory of a place that is not this machine. One that can only
    /// be meant for this machine is passed over, with a note.
    pub(crate) fn place_directory(
        &self,
        slot: &Slot,
        task: &str,
        notes: &mut Vec<String>,
    ) -> Option<PathBuf> {
        let configured = self
            .overrides(task)
            .cwd
            .or_else(|| self.inner.config.terminal.cwd.clone())?;
        if slot.spec.is_container() && is_host_path(&configured) {
            notes.push(format!(
                "the configured directory `{}` is one of this machine, so it is not used in the \
                 container",
                configured.display()
            ));
            return None;
        }
        Some(configured)
    }
}

/// Tells whether a path can only be meant for a person's own machine.
fn is_host_path(path: &Path) -> bool {
    let text = path.to_string_lossy();
    let drive = text.as_bytes().get(1) == Some(&b':') && text.contains('\\');
    drive || text.starts_with("/Users/") || text.starts_with("/home/")
}
