//! Walks along the chain.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::AuditError;
use super::files::{RawLine, Snapshot};
use super::head::Head;
use super::record::{self, GENESIS, Line, Link};

/// What is wrong with a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Flaw {
    /// Its bytes, or those of the record before it, are not those that were written.
    Changed,
    /// It is not there.
    Removed,
    /// It stands in another place, or twice.
    Reordered,
    /// It and all after it are missing at the end.
    Truncated,
}

/// The first record that is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// What is wrong.
    pub flaw: Flaw,
    /// The number of the record.
    pub record: u64,
    /// The file where that was noticed.
    pub file: PathBuf,
    /// The line of the file.
    pub line: u64,
    /// The same as a sentence.
    pub message: String,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Whether every record is there and unchanged.
    pub intact: bool,
    /// How many files there are.
    pub files: usize,
    /// How many records were read.
    pub records: u64,
    /// The number of the first one; earlier ones were in files that were removed in time.
    pub first: u64,
    /// The number of the last one.
    pub last: u64,
    /// How many torn lines were kept aside.
    pub torn: u64,
    /// Bytes of a line at the end that is not whole: a process was killed while it wrote.
    pub unfinished: usize,
    /// The first record that is not as it was written.
    pub fault: Option<Fault>,
}

/// Checks all files.
pub(super) fn verify(folder: &Path) -> Result<Report, AuditError> {
    let snapshot = Snapshot::take(folder)?;
    let head = snapshot.head.clone();
    let mut walk = Walk::new(&head);
    walk.report.files = snapshot.len();
    let mut lines = snapshot.lines();
    let mut end = (folder.join(super::files::CURRENT), 0);
    while let Some(line) = lines.next() {
        let line = line?;
        end = (line.path.clone(), line.number);
        if let Err(flaw) = walk.step(&line) {
            let missing = walk.expected();
            // What seems to be missing may stand further on.
            let flaw = match flaw {
                Flaw::Removed if stands_in(lines, missing)? => Flaw::Reordered,
                other => other,
            };
            walk.fail(flaw, missing, end);
            return Ok(walk.report);
        }
    }
    if let Some((flaw, number)) = walk.at_end(&head) {
        walk.fail(flaw, number, end);
    }
    walk.report.intact = walk.report.fault.is_none();
    Ok(walk.report)
}

/// Tells whether a record stands in these lines.
fn stands_in(lines: super::files::Lines, number: u64) -> Result<bool, AuditError> {
    for line in lines {
        if record::read(&line?.bytes).is_some_and(|line| line.link.number == number) {
            return Ok(true);
        }
    }
    Ok(false)
}

struct Walk<'a> {
    report: Report,
    last: Option<Link>,
    head: &'a Head,
    /// Whether the head's record was met as the head knows it.
    met_head: bool,
    /// The oldest record that must be there.
    oldest: u64,
    /// A record that says that the head was gone.
    headless: Option<u64>,
}

impl<'a> Walk<'a> {
    fn new(head: &'a Head) -> Self {
        Self {
            report: Report::default(),
            last: None,
            met_head: matches!(head, Head::At(link) if link.number == 0),
            head,
            oldest: 1,
            headless: None,
        }
    }

    /// Returns the number of the record that must come next.
    fn expected(&self) -> u64 {
        self.last
            .as_ref()
            .map_or(self.oldest, |link| link.number + 1)
    }

    fn step(&mut self, raw: &RawLine) -> Result<(), Flaw> {
        if !raw.whole {
            self.report.unfinished = raw.bytes.len();
            return Ok(());
        }
        let line = record::read(&raw.bytes).ok_or(Flaw::Changed)?;
        self.check(&line)?;
        self.report.records += 1;
        self.report.last = line.link.number;
        let text = |name: &str| line.value.get(name).and_then(|value| value.as_str());
        match (text("record"), text("note")) {
            (Some("file"), _) => {
                self.oldest = line
                    .value
                    .get("oldest")
                    .and_then(serde_json::Value::as_u64)
                    .unwrap_or(1);
            }
            (_, Some("torn")) => self.report.torn += 1,
            (_, Some("no head")) => {
                self.headless.get_or_insert(line.link.number);
            }
            _ => {}
        }
        self.met_head |= matches!(self.head, Head::At(head) if *head == line.link);
        self.last = Some(line.link);
        Ok(())
    }

    fn check(&mut self, line: &Line) -> Result<(), Flaw> {
        let Some(last) = &self.last else {
            self.report.first = line.link.number;
            let starts = line.link.number == 1 && line.prev == GENESIS;
            // An older file was removed in time; the newest file says whether it was.
            let continues = line
                .value
                .get("record")
                .is_some_and(|value| value == "file");
            return if starts || continues {
                Ok(())
            } else {
                Err(Flaw::Removed)
            };
        };
        match line.link.number {
            number if number > last.number + 1 => Err(Flaw::Removed),
            number if number <= last.number => Err(Flaw::Reordered),
            _ if line.prev != last.hash => Err(Flaw::Changed),
            _ => Ok(()),
        }
    }

    /// Judges what can only be seen at the end.
    fn at_end(&self, head: &Head) -> Option<(Flaw, u64)> {
        if self.report.records > 0 && self.report.first > self.oldest {
            return Some((Flaw::Removed, self.oldest));
        }
        if let Some(number) = self.headless {
            return Some((Flaw::Truncated, number));
        }
        match head {
            Head::At(link) if !self.met_head => {
                let known = self.report.last >= link.number;
                let flaw = if known {
                    Flaw::Changed
                } else {
                    Flaw::Truncated
                };
                Some((flaw, link.number.min(self.report.last + 1)))
            }
            Head::Damaged => Some((Flaw::Truncated, self.report.last + 1)),
            Head::Missing if self.report.records > 0 => {
                Some((Flaw::Truncated, self.report.last + 1))
            }
            Head::At(_) | Head::Missing => None,
        }
    }

    fn fail(&mut self, flaw: Flaw, number: u64, (file, line): (PathBuf, u64)) {
        let what = match flaw {
            Flaw::Changed => "is not as it was written",
            Flaw::Removed => "is missing",
            Flaw::Reordered => "does not stand where it was written",
            Flaw::Truncated => "and what may have followed it are missing at the end",
        };
        let message = format!(
            "record {number} {what} (line {line} of `{}`)",
            file.display()
        );
        self.report.fault = Some(Fault {
            flaw,
            record: number,
            file,
            line,
            message,
        });
    }
}
