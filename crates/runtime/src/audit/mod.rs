//! The audit: what was attempted, who allowed it and how it ended.
//!
//! Every attempt writes two lines of JSON to `audit/audit.jsonl` in the home folder: one before
//! anything runs ([`Audit::start`]) and one when it is over ([`Ticket::end`]). Attempts that were
//! denied or failed write both as well. Each line holds the hash of the line before it and its own,
//! over its very bytes, so that [`Audit::verify`] finds a line that was changed, removed or moved.
//!
//! Many processes append to the same file. A lock makes them take turns; a short file beside it, the
//! head, says which line is the last, so that lines missing at the end are noticed, too. A line that
//! was torn (a process killed while writing, a full disk) is kept in a file of its own and the chain
//! goes on with a note. When the file is large enough, it is put aside and a new one continues the
//! chain; the oldest are removed.
//!
//! The chain shows changes by anyone who does not rewrite all of it: it holds no secret key.

mod files;
mod head;
mod lock;
mod record;
mod show;
mod time;
mod verify;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::redact::Redactor;
pub use record::{Approval, Attempt, AttemptKind, Ended, Outcome};
pub use show::{Filter, Records};
pub use verify::{Fault, Flaw, Report};
use writer::Writer;

/// Name of the folder in the home folder.
const FOLDER: &str = "audit";

/// Why the audit could not be written or read. An attempt whose start cannot be written must not be
/// made.
#[derive(Debug, thiserror::Error)]
#[error("the audit cannot be {action} (`{path}`): {source}")]
pub struct AuditError {
    /// What was tried.
    pub action: &'static str,
    /// The file.
    pub path: PathBuf,
    /// Why it failed.
    pub source: std::io::Error,
}

impl AuditError {
    /// Returns what a person can do about it.
    pub fn hint(&self) -> String {
        format!(
            "nothing runs without its audit: free some space, or make `{}` writable",
            self.path.display()
        )
    }

    fn new(action: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

impl From<AuditError> for crate::RuntimeError {
    fn from(error: AuditError) -> Self {
        Self::State {
            action: match error.action {
                "written" => "cannot write the audit",
                _ => "cannot read the audit",
            },
            path: error.path.display().to_string(),
            source: error.source,
        }
    }
}

/// How large the audit may become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes after which a new file is started.
    pub file_bytes: u64,
    /// How many old files are kept.
    pub old_files: usize,
    /// Bytes of a command's text that are kept.
    pub text_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            file_bytes: 16 * 1024 * 1024,
            old_files: 8,
            text_bytes: 4096,
        }
    }
}

/// The audit of a home folder. A copy is cheap and writes to the same file.
#[derive(Debug, Clone)]
pub struct Audit {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    folder: PathBuf,
    limits: Limits,
    /// Opened by the first record, so that a runtime that runs nothing leaves nothing.
    writer: Mutex<Option<Writer>>,
}

impl Audit {
    /// Uses the audit of a home folder. Nothing is touched before the first record.
    pub fn new(home: &Path, limits: Limits) -> Self {
        Self {
            shared: Arc::new(Shared {
                folder: home.join(FOLDER),
                limits,
                writer: Mutex::new(None),
            }),
        }
    }

    /// Returns the folder of the audit's files.
    pub fn folder(&self) -> &Path {
        &self.shared.folder
    }

    /// Writes that something is about to be attempted, without the secrets in it. On an error it
    /// must not be.
    pub fn start(&self, attempt: &Attempt<'_>, redactor: Redactor) -> Result<Ticket, AuditError> {
        let fields = attempt.fields(&redactor, self.shared.limits.text_bytes);
        let number = self.shared.append(&fields)?;
        Ok(Ticket {
            audit: self.clone(),
            redactor,
            number,
            task: attempt.task.to_owned(),
            started: Instant::now(),
            open: true,
        })
    }

    /// Walks through all files and tells whether every record is there and unchanged.
    pub fn verify(&self) -> Result<Report, AuditError> {
        verify::verify(&self.shared.folder)
    }

    /// Goes through the records, the oldest first.
    pub fn show(&self, filter: Filter) -> Result<Records, AuditError> {
        show::records(&self.shared.folder, filter)
    }
}

impl Shared {
    fn append(&self, fields: &record::Fields) -> Result<u64, AuditError> {
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let writer = match &mut *writer {
            Some(writer) => writer,
            none => none.insert(Writer::open(&self.folder, self.limits)?),
        };
        writer.append(fields)
    }
}

/// An attempt whose end is still to be written. Dropping it writes the end `lost`: whoever made the
/// attempt went away before it was over.
#[derive(Debug)]
#[must_use = "the end of the attempt must be written"]
pub struct Ticket {
    audit: Audit,
    redactor: Redactor,
    number: u64,
    task: String,
    started: Instant,
    open: bool,
}

impl Ticket {
    /// Returns the number of the start record.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Writes how it ended. An error must be reported, but what was done is done.
    pub fn end(mut self, outcome: &Outcome) -> Result<(), AuditError> {
        self.write(outcome)
    }

    fn write(&mut self, outcome: &Outcome) -> Result<(), AuditError> {
        self.open = false;
        let shared = &self.audit.shared;
        let fields = outcome.fields(
            self.number,
            &self.task,
            self.started.elapsed(),
            &self.redactor,
        );
        shared.append(&fields).map(drop)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if self.open {
            // There is nobody left to tell.
            let _ = self.write(&Outcome::new(Ended::Lost));
        }
    }
}

#[cfg(test)]
#[path = "audit_tests.rs"]
mod tests;
