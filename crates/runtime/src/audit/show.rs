//! Reads records.

use std::collections::VecDeque;
use std::path::Path;

use serde_json::{Value, json};

use super::AuditError;
use super::files::{Lines, Snapshot};

/// Which records to show.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only those of this task.
    pub task: Option<String>,
    /// Only the last so many.
    pub tail: Option<usize>,
}

/// Goes through records, the oldest first. A line that cannot be read comes as a record `damaged`.
#[derive(Debug)]
pub struct Records {
    lines: Lines,
    task: Option<String>,
    /// With a tail: what is left of it.
    tail: Option<VecDeque<Result<Value, AuditError>>>,
}

pub(super) fn records(folder: &Path, filter: Filter) -> Result<Records, AuditError> {
    let mut records = Records {
        lines: Snapshot::take(folder)?.lines(),
        task: filter.task,
        tail: None,
    };
    if let Some(count) = filter.tail {
        let mut tail = VecDeque::new();
        for record in records.by_ref() {
            if tail.len() == count {
                tail.pop_front();
            }
            if count > 0 {
                tail.push_back(record);
            }
        }
        records.tail = Some(tail);
    }
    Ok(records)
}

impl Iterator for Records {
    type Item = Result<Value, AuditError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(tail) = &mut self.tail {
            return tail.pop_front();
        }
        loop {
            let line = match self.lines.next()? {
                Ok(line) => line,
                Err(error) => return Some(Err(error)),
            };
            let record: Value = serde_json::from_slice(&line.bytes).unwrap_or_else(|_| {
                json!({"record": "damaged", "file": line.path.display().to_string(), "line": line.number})
            });
            let wanted = |task: &String| record.get("task").is_some_and(|found| found == task);
            if self.task.as_ref().is_none_or(wanted) {
                return Some(Ok(record));
            }
        }
    }
}
