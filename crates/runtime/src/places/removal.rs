//! Removing places for good.

use std::collections::HashSet;

use serde::Serialize;

use super::slot::Slot;
use crate::error::RuntimeError;
use crate::event::EventKind;
use crate::record::{Record, check_task};
use crate::runtime::{DEFAULT_TASK, Runtime, session_key};

/// What becomes of a place that cannot be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stubborn {
    /// It stays listed, so that it can be tried again.
    Kept,
    /// It is forgotten; whatever is there is left to its owner.
    Forgotten,
}

/// What a clean-up did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Cleaned {
    /// The tasks whose places were removed.
    pub removed: Vec<String>,
    /// How many commands and leftovers were ended.
    pub ended: u32,
    /// How many files of remote places were brought back.
    pub brought_back: usize,
    /// What the caller should know, one sentence each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// What could not be removed, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed: Vec<String>,
}

impl Runtime {
    /// Removes a task's places: ends what runs in them and forgets their state. A place that is
    /// gone already is no error. One that cannot be removed is named and stays listed.
    pub async fn cleanup(&self, task: &str) -> Result<Cleaned, RuntimeError> {
        self.clean_task(task, Stubborn::Kept).await
    }

    /// Likewise, but a place that cannot be removed is forgotten: it is named in the notes, and
    /// what is left of it is its owner's to remove.
    pub async fn cleanup_forced(&self, task: &str) -> Result<Cleaned, RuntimeError> {
        self.clean_task(task, Stubborn::Forgotten).await
    }

    async fn clean_task(&self, task: &str, stubborn: Stubborn) -> Result<Cleaned, RuntimeError> {
        check_task(task)?;
        let mut cleaned = Cleaned::default();
        // The local guest may hold a session that no record tells of any more.
        let mut removed = self
            .end_session(&*self.local_slot()?, task, &mut cleaned)
            .await?;
        for record in self.inner.records.of_task(task) {
            let slot = self.recorded_slot(&record);
            let outcome = match &slot {
                Ok(slot) if slot.spec.is_local() => Ok(()),
                Ok(slot) => self.remove_place(slot, task, &mut cleaned).await,
                Err(_) => Ok(()),
            };
            let emptied = outcome.and(slot);
            if let Err(error) = &emptied
                && self.stays(&record, error, stubborn, &mut cleaned)
            {
                continue;
            }
            remove_directory(&record, &mut cleaned);
            removed |= self.inner.records.remove(task, &record.label)?;
            if let Ok(slot) = emptied {
                self.note_successor(&slot, task, &mut cleaned).await?;
            }
        }
        self.inner.processes.forget(Some(task));
        self.session_over(task);
        if removed {
            cleaned.removed.push(task.to_owned());
            self.emit(task, EventKind::PlaceRemoved);
        }
        Ok(cleaned)
    }

    /// Lists a container that a call made while its predecessor was being removed: that call may
    /// have found the record that is gone now.
    async fn note_successor(
        &self,
        slot: &Slot,
        task: &str,
        cleaned: &mut Cleaned,
    ) -> Result<(), RuntimeError> {
        if slot.spec.is_disposable()
            && let Ok(facts) = slot.place.inspect().await
            && facts.id.is_some()
        {
            self.record(slot, task)?;
            cleaned.notes.push(format!(
                "a call made the place of task `{task}` anew meanwhile; it is listed"
            ));
        }
        Ok(())
    }

    /// Reports a place that cannot be removed; tells whether it stays listed.
    fn stays(
        &self,
        record: &Record,
        error: &RuntimeError,
        stubborn: Stubborn,
        cleaned: &mut Cleaned,
    ) -> bool {
        let text = format!("{} `{}`: {error}", record.backend, record.label);
        if stubborn == Stubborn::Kept {
            cleaned.failed.push(text);
            return true;
        }
        cleaned
            .notes
            .push(format!("forgotten, but perhaps still there: {text}"));
        self.forget_slot(&record.label);
        false
    }

    /// Ends a task's session where its guest is there; tells whether there was one.
    async fn end_session(
        &self,
        slot: &Slot,
        task: &str,
        cleaned: &mut Cleaned,
    ) -> Result<bool, RuntimeError> {
        let Some(link) = slot.existing().await? else {
            return Ok(false);
        };
        let grace = self.inner.config.terminal.kill_grace;
        let ended = link.end_session(&session_key(task), grace).await?;
        cleaned.ended += ended.ended;
        Ok(ended.existed)
    }

    /// Brings files back, ends the task's session, and removes a place that is the task's own.
    async fn remove_place(
        &self,
        slot: &Slot,
        task: &str,
        cleaned: &mut Cleaned,
    ) -> Result<(), RuntimeError> {
        self.fetch_files(slot, task, cleaned).await;
        let ended = self.end_session(slot, task, cleaned).await;
        let shared = self
            .inner
            .records
            .list()
            .iter()
            .any(|other| other.label == slot.label && other.task != task);
        if !shared {
            self.shut_down(slot, cleaned).await;
            slot.place.destroy().await?;
            self.forget_slot(&slot.label);
        }
        if slot.spec.is_disposable() {
            Ok(())
        } else {
            ended.map(|_existed| ())
        }
    }

    /// Ends a guest and everything in it, if it is there.
    async fn shut_down(&self, slot: &Slot, cleaned: &mut Cleaned) {
        let Ok(Some(link)) = slot.existing().await else {
            return;
        };
        if let Ok(info) = link.info().await {
            cleaned.ended += info
                .sessions
                .iter()
                .map(|session| session.running + session.leftovers)
                .sum::<u32>();
        }
        // A guest that ends before its answer arrived has ended all the same.
        let _ = link.shut_down().await;
        slot.drop_link();
    }

    /// Removes every place of this home and ends its guests, whoever uses them.
    /// Places that cannot be removed are named and stay listed.
    pub async fn cleanup_all(&self) -> Result<Cleaned, RuntimeError> {
        self.clean_all(Stubborn::Kept).await
    }

    /// Likewise, but places that cannot be removed are forgotten.
    pub async fn cleanup_all_forced(&self) -> Result<Cleaned, RuntimeError> {
        self.clean_all(Stubborn::Forgotten).await
    }

    async fn clean_all(&self, stubborn: Stubborn) -> Result<Cleaned, RuntimeError> {
        let mut cleaned = Cleaned::default();
        let mut gone = HashSet::new();
        for record in self.inner.records.list() {
            let mut successor = None;
            if !gone.contains(&record.label) {
                let slot = self.recorded_slot(&record);
                let outcome = match &slot {
                    Ok(slot) if slot.spec.is_local() => Ok(()),
                    Ok(slot) => self.wipe(slot, &record, &mut cleaned).await,
                    Err(_) => Ok(()),
                };
                let emptied = outcome.and(slot);
                if let Err(error) = &emptied
                    && self.stays(&record, error, stubborn, &mut cleaned)
                {
                    continue;
                }
                successor = emptied.ok();
                gone.insert(record.label.clone());
            }
            remove_directory(&record, &mut cleaned);
            self.inner.records.remove(&record.task, &record.label)?;
            self.session_over(&record.task);
            if let Some(slot) = successor {
                self.note_successor(&slot, &record.task, &mut cleaned)
                    .await?;
            }
            self.emit(&record.task, EventKind::PlaceRemoved);
            if !cleaned.removed.contains(&record.task) {
                cleaned.removed.push(record.task);
            }
        }
        self.hang_up().await;
        let local = self.local_slot()?;
        self.shut_down(&local, &mut cleaned).await;
        local.place.sweep().await?;
        self.inner.processes.forget(None);
        self.inner.records.remove_folder();
        Ok(cleaned)
    }

    /// Removes a place for good, whoever uses it.
    async fn wipe(
        &self,
        slot: &Slot,
        record: &Record,
        cleaned: &mut Cleaned,
    ) -> Result<(), RuntimeError> {
        self.fetch_files(slot, &record.task, cleaned).await;
        self.shut_down(slot, cleaned).await;
        slot.place.destroy().await?;
        self.forget_slot(&record.label);
        Ok(())
    }

    /// Ends the shared connection to the configured host, which may be there without a place: for
    /// `doctor`, or after a failed start.
    async fn hang_up(&self) {
        if let Ok(slot) = self.slot(DEFAULT_TASK)
            && slot.spec.is_remote_host()
        {
            // One that cannot be ended ends by itself.
            let _ = slot.place.destroy().await;
            self.forget_slot(&slot.label);
        }
    }
}

/// Removes a directory that was made for the task; never one that was there before.
fn remove_directory(record: &Record, cleaned: &mut Cleaned) {
    if !record.own_directory {
        return;
    }
    match std::fs::remove_dir_all(record.directory()) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            cleaned
                .failed
                .push(format!("`{}`: {error}", record.directory.display()));
        }
        _ => {}
    }
}
