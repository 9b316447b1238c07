//! Files that remote places get, and what comes back.

use exoshell_place::Link;

use super::Cleaned;
use super::slot::Slot;
use super::spec::sync_entries;
use crate::error::RuntimeError;
use crate::runtime::Runtime;
use crate::sync::{Manifest, SyncOptions, SyncReport, pull, push};

impl Runtime {
    /// Sends the configured files if this program has not done so yet.
    pub(crate) async fn bring_files(
        &self,
        slot: &Slot,
        link: &Link,
        task: &str,
    ) -> Result<Vec<String>, RuntimeError> {
        if !slot.needs_files() {
            return Ok(Vec::new());
        }
        let sent = self.send_files(slot, link, task).await;
        if sent.is_err() {
            slot.still_needs_files();
        }
        sent
    }

    /// Sends the configured files to a place that sees none of this machine's own. Returns what
    /// the caller should know.
    async fn send_files(
        &self,
        slot: &Slot,
        link: &Link,
        task: &str,
    ) -> Result<Vec<String>, RuntimeError> {
        let config = &self.inner.config;
        if config.sync.paths.is_empty() || !slot.spec.takes_files() {
            return Ok(Vec::new());
        }
        let entries = sync_entries(config)?;
        let path = Manifest::path(&config.home, &slot.label);
        let mut manifest = Manifest::load(&path);
        let options = SyncOptions {
            progress: self.progress(task),
            ..SyncOptions::default()
        };
        let sent = push(link, &entries, &mut manifest, &options).await;
        manifest.save(&path)?;
        Ok(remarks(&sent?))
    }

    /// Brings changed files back; what cannot be brought is named.
    pub(crate) async fn fetch_files(&self, slot: &Slot, task: &str, cleaned: &mut Cleaned) {
        let config = &self.inner.config;
        if config.sync.paths.is_empty() || !slot.spec.takes_files() {
            return;
        }
        let path = Manifest::path(&config.home, &slot.label);
        match self.try_fetch(slot, task, &path).await {
            Ok(report) => {
                cleaned.notes.extend(remarks(&report));
                cleaned.brought_back += report.moved.len();
                // Only a manifest of something that is gone may go.
                let _ = std::fs::remove_file(&path);
            }
            Err(error) => cleaned
                .failed
                .push(format!("files of `{}` are not back: {error}", slot.label)),
        }
    }

    async fn try_fetch(
        &self,
        slot: &Slot,
        task: &str,
        path: &std::path::Path,
    ) -> Result<SyncReport, RuntimeError> {
        let mut manifest = Manifest::load(path);
        if manifest.is_empty() {
            return Ok(SyncReport::default());
        }
        let Some(link) = slot.existing().await? else {
            return Ok(SyncReport::default());
        };
        let entries = sync_entries(&self.inner.config)?;
        let options = SyncOptions {
            progress: self.progress(task),
            ..SyncOptions::default()
        };
        let report = pull(&link, &entries, &mut manifest, &options).await;
        manifest.save(path)?;
        Ok(report?)
    }
}

/// Says what a sync left undone.
fn remarks(report: &SyncReport) -> Vec<String> {
    let skipped = report
        .skipped
        .iter()
        .map(|file| format!("`{}` was not synced: {}", file.path.display(), file.why));
    let conflicts = report.conflicts.iter().map(|conflict| {
        let stored = conflict.stored.as_ref().map_or_else(
            || "it waits for the next time".to_owned(),
            |stored| format!("the one of the place is `{}`", stored.display()),
        );
        format!(
            "`{}` changed on both sides and was left alone; {stored}",
            conflict.path.display()
        )
    });
    let deleted = report.deleted.iter().map(|path| {
        format!(
            "`{}` was deleted in the place and stays here",
            path.display()
        )
    });
    skipped.chain(conflicts).chain(deleted).collect()
}
