//! Getting into a place, and keeping a record of it.

use std::time::Duration;

use exoshell_place::{Link, PlaceError};
use exoshell_wire::RawBytes;

use super::slot::{Access, Slot};
use crate::config::Source;
use crate::error::RuntimeError;
use crate::record::{Record, now};
use crate::runtime::{Runtime, raw};

impl Runtime {
    /// Returns the way into a task's place, making the place if it is not there.
    ///
    /// A place that has to be made is in the records before, so that it is listed and can be
    /// removed whatever becomes of this program meanwhile.
    pub(crate) async fn enter(
        &self,
        slot: &Slot,
        task: &str,
        limit: Duration,
    ) -> Result<Access, RuntimeError> {
        let noted = !slot.spec.is_local() && !slot.is_open() && self.record(slot, task)?.1;
        match slot.enter(&self.progress(task), limit).await {
            Ok(access) => {
                self.sweep_later(slot);
                Ok(access)
            }
            Err(error) => {
                // What happened on the way stays true: the next call that gets there tells it.
                // Where it cannot be kept, the failure itself is what counts.
                let _ = self.keep_notes(slot, task, slot.place.take_notes());
                if noted && !slot.may_have_left_something(&error).await {
                    self.inner.records.remove_unused(task, &slot.label)?;
                }
                Err(error.into())
            }
        }
    }

    /// Keeps notes about a task's place for the next call that succeeds.
    pub(crate) fn keep_notes(
        &self,
        slot: &Slot,
        task: &str,
        notes: Vec<String>,
    ) -> Result<(), RuntimeError> {
        if notes.is_empty() {
            return Ok(());
        }
        self.inner
            .records
            .update(task, &slot.label, |record| record.keep_notes(notes))
    }

    /// Takes what happened to a task's place and nobody was told yet, one sentence each: settings
    /// that were skipped, a container that was replaced. A call that runs a command to its end
    /// tells it by itself; whoever starts processes may ask here.
    pub fn take_notes(&self, task: &str) -> Vec<String> {
        self.slot(task).map_or_else(
            |_error| Vec::new(),
            |slot| self.inner.records.take_notes(task, &slot.label),
        )
    }

    /// Returns the guest of a task's place, making the place if it is not there.
    pub(crate) async fn guest(
        &self,
        slot: &Slot,
        task: &str,
        limit: Duration,
    ) -> Result<Link, RuntimeError> {
        match self.enter(slot, task, limit).await? {
            Access::Guest(link) => Ok(link),
            Access::Plain(shell) => Err(PlaceError::NoGuest {
                why: shell.why().to_owned(),
            }
            .into()),
        }
    }

    /// Keeps what a task's place is called, and what its caller should know. Asked again only for
    /// another guest: then the place was made anew, or replaced by one with other settings.
    pub(crate) async fn describe_place(
        &self,
        slot: &Slot,
        record: &Record,
        incarnation: &str,
    ) -> Result<(), RuntimeError> {
        if slot.spec.is_local() || record.described.as_deref() == Some(incarnation) {
            return Ok(());
        }
        let Ok(facts) = slot.place.inspect().await else {
            return Ok(());
        };
        let mut notes = facts.notes;
        // They are kept from here on.
        slot.place.take_notes();
        let unasked = !self.asked_for_disk_limit(&record.task);
        let worth = |limit: &&str| !(unasked && *limit == "disk");
        let unenforced = facts.unenforced.iter().map(String::as_str);
        let unenforced: Vec<&str> = unenforced.filter(worth).collect();
        if !unenforced.is_empty() && facts.unenforced != record.unenforced {
            notes.push(format!("unenforced here: {}", unenforced.join(", ")));
        }
        let known = |record: &mut Record| {
            record.id = facts.id;
            record.engine = facts.engine;
            record.image = facts.image;
            record.unenforced = facts.unenforced;
            record.place = slot.spec.clone();
            record.described = Some(incarnation.to_owned());
            record.keep_notes(notes);
        };
        self.inner.records.update(&record.task, &slot.label, known)
    }

    /// Tells whether somebody set a limit of a container's disk. Few engines can hold one, so that
    /// our own is no news for those who never asked; listings name it all the same.
    fn asked_for_disk_limit(&self, task: &str) -> bool {
        let source = self.inner.config.source("container.disk_mb");
        self.overrides(task).disk_mb.is_some() || *source != Source::Default
    }

    pub(crate) fn record(&self, slot: &Slot, task: &str) -> Result<(Record, bool), RuntimeError> {
        self.inner.records.get_or_create(task, &slot.label, || {
            let (directory, own_directory) = if slot.spec.is_local() {
                let (directory, own) = self.first_directory(task)?;
                (raw(directory.as_os_str()), own)
            } else {
                (RawBytes::default(), false)
            };
            Ok(Record {
                task: task.to_owned(),
                label: slot.label.clone(),
                backend: slot.place.backend().to_owned(),
                place: slot.spec.clone(),
                id: None,
                engine: None,
                image: None,
                unenforced: Vec::new(),
                created: now(),
                directory,
                own_directory,
                incarnation: None,
                described: None,
                left_in: None,
                untold: Vec::new(),
            })
        })
    }
}
