//! Where a command would start: what its paths mean depends on it.

use std::path::Path;

use super::intent::Intent;
use crate::error::RuntimeError;
use crate::places::slot::Slot;
use crate::runtime::{Runtime, session_key};

impl Runtime {
    /// Fills in where an intent starts. `task` is the task whose session it runs in, if any.
    pub(crate) async fn locate(
        &self,
        intent: &mut Intent<'_>,
        task: Option<&str>,
        workdir: Option<&Path>,
    ) -> Result<(), RuntimeError> {
        // Where nothing is asked, nothing needs to be known.
        if !intent.slot.spec.is_checked() {
            return Ok(());
        }
        let directory = match task {
            Some(task) => self.session_directory(intent.slot, task).await?,
            None => self.fresh_directory(intent.slot, intent.task),
        };
        intent.workspace = match task {
            Some(task) => self.task_directory(intent.slot, task),
            None => directory.clone(),
        };
        intent.directory = match (workdir, directory) {
            (Some(workdir), directory) => {
                let base = directory.unwrap_or_default();
                let joined = Path::new(&base).join(workdir);
                Some(joined.to_string_lossy().into_owned()).filter(|path| path.starts_with('/'))
            }
            (None, directory) => directory,
        };
        Ok(())
    }

    /// Forgets what was known of a task's sessions, and what was allowed for them.
    pub(crate) fn session_over(&self, task: &str) {
        self.forget_directories(task);
        self.inner.approvals.end_session(&format!("task:{task}"));
    }

    /// Returns the directory that a task's session is in now. One that this program has not seen
    /// yet is asked for.
    async fn session_directory(
        &self,
        slot: &Slot,
        task: &str,
    ) -> Result<Option<String>, RuntimeError> {
        if let Some(known) = self.directory_of(slot, task) {
            return Ok(Some(known));
        }
        if !slot.spec.is_local() {
            // Asking would mean to connect, perhaps to a place that is about to be replaced.
            let record = self.known_record(slot, task);
            let left = record.and_then(|record| record.left_in);
            return Ok(left.or_else(|| self.fresh_directory(slot, task)));
        }
        if let Ok(Some(link)) = slot.existing().await
            && let Ok(info) = link.info().await
        {
            let key = session_key(task);
            if let Some(session) = info.sessions.iter().find(|session| session.key == key) {
                let directory = session.cwd.display();
                self.moved(slot, task, &directory);
                return Ok(Some(directory));
            }
        }
        Ok(self.task_directory(slot, task))
    }
}
