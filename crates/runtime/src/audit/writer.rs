//! Appends records.

use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::files::{self, CURRENT};
use super::head::{self, Head};
use super::lock::Lock;
use super::record::{self, Fields, Link};
use super::{AuditError, Limits};

/// Appends to the current file, in turns with other processes.
#[derive(Debug)]
pub(super) struct Writer {
    folder: PathBuf,
    limits: Limits,
    lock: Lock,
    head: File,
    current: Option<Current>,
}

/// The file that is appended to, as this process left it.
#[derive(Debug)]
struct Current {
    file: File,
    /// Device and inode: another process may have put the file aside.
    id: (u64, u64),
    length: u64,
    last: Link,
}

impl Writer {
    /// Makes the folder, closed to others, and opens what is needed.
    pub(super) fn open(folder: &Path, limits: Limits) -> Result<Self, AuditError> {
        let open = || -> io::Result<Self> {
            fs::DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(folder)?;
            if fs::symlink_metadata(folder)?.mode() & 0o077 != 0 {
                fs::set_permissions(folder, Permissions::from_mode(0o700))?;
            }
            Ok(Self {
                folder: folder.to_owned(),
                limits,
                lock: Lock::open(folder)?,
                head: head::open(folder)?,
                current: None,
            })
        };
        open().map_err(|error| AuditError::new("written", folder, error))
    }

    /// Appends a record and returns its number. On an error the file is as it was before.
    pub(super) fn append(&mut self, fields: &Fields) -> Result<u64, AuditError> {
        let path = self.folder.join(CURRENT);
        self.append_in_turn(&path, fields)
            .map_err(|error| AuditError::new("written", &path, error))
    }

    fn append_in_turn(&mut self, path: &Path, fields: &Fields) -> io::Result<u64> {
        let Self {
            folder,
            limits,
            lock,
            head,
            current,
        } = self;
        let _turn = lock.turn()?;
        let mut file = match current.take() {
            Some(known) if known.is_still(path) => known,
            _ => Files { folder, head }.find(path)?,
        };
        if file.length > limits.file_bytes {
            file = Files { folder, head }.put_aside(path, file, limits.old_files)?;
        }
        file.write(head, fields)?;
        let number = file.last.number;
        *current = Some(file);
        Ok(number)
    }
}

impl Current {
    /// Tells whether nobody else has touched the file since.
    fn is_still(&self, path: &Path) -> bool {
        fs::symlink_metadata(path)
            .is_ok_and(|found| (found.dev(), found.ino()) == self.id && found.len() == self.length)
    }

    fn open(path: &Path, last: Link) -> io::Result<Self> {
        let file = files::options().append(true).create(true).open(path)?;
        let found = file.metadata()?;
        Ok(Self {
            id: (found.dev(), found.ino()),
            length: found.len(),
            file,
            last,
        })
    }

    /// Writes a record in one piece, or nothing.
    fn write(&mut self, head: &File, fields: &Fields) -> io::Result<()> {
        let (line, link) = self.last.follow(fields);
        let written = self
            .file
            .write_all(&line)
            .and_then(|()| head::write(head, &link));
        if let Err(error) = written {
            // If even this fails, the next writer finds a torn line and keeps it aside.
            let _ = self.file.set_len(self.length);
            return Err(error);
        }
        self.length += line.len() as u64;
        self.last = link;
        Ok(())
    }
}

/// Finds out where the chain stands.
struct Files<'a> {
    folder: &'a Path,
    head: &'a File,
}

impl Files<'_> {
    /// Opens the current file and finds the last record, whatever happened to it.
    fn find(&self, path: &Path) -> io::Result<Current> {
        let mut current = Current::open(path, Link::genesis())?;
        let tail = files::tail(&mut current.file, current.length)?;
        let stored = head::read(self.folder)?;
        let before = files::old(self.folder)?.pop();
        let mut found = tail.last.map(|line| line.link);
        let empty = current.length == 0;
        if let (true, Some((_, old))) = (empty, &before) {
            found = last_of(old)?;
        }
        let torn = tail.torn;
        if !torn.is_empty() {
            self.keep_aside(&mut current, &torn, found.as_ref())?;
        }
        // The head never runs ahead of the file: if it does, records are missing, and the chain must
        // not hide that.
        current.last = match (&stored, &found) {
            (Head::At(head), Some(found)) if found.number > head.number => found.clone(),
            (Head::At(head), _) => head.clone(),
            (_, Some(found)) => found.clone(),
            (_, None) => Link::genesis(),
        };
        if stored == Head::Missing && current.last.number == 0 {
            head::write(self.head, &current.last)?;
        } else if !matches!(stored, Head::At(_)) {
            current.write(self.head, &note("no head", json!({})))?;
        }
        if let (true, Some((_, old))) = (empty && found.as_ref() == Some(&current.last), &before) {
            self.continue_after(&mut current, old, usize::MAX)?;
        }
        if !torn.is_empty() {
            let hash = record::hex(&Sha256::digest(&torn));
            current.write(
                self.head,
                &note("torn", json!({"bytes": torn.len(), "sha256": hash})),
            )?;
        }
        Ok(current)
    }

    /// Moves a torn line to a file of its own.
    fn keep_aside(
        &self,
        current: &mut Current,
        torn: &[u8],
        last: Option<&Link>,
    ) -> io::Result<()> {
        let number = last.map_or(0, |link| link.number);
        let hash = record::hex(&Sha256::digest(torn));
        let path = self
            .folder
            .join(format!("torn-{number:020}-{}", &hash[..16]));
        let mut file = files::options()
            .write(true)
            .create(true)
            .truncate(true)
            .open(path)?;
        file.write_all(torn)?;
        current.length -= torn.len() as u64;
        current.file.set_len(current.length)
    }

    /// Puts a full file aside and starts a new one.
    fn put_aside(&self, path: &Path, current: Current, keep: usize) -> io::Result<Current> {
        let mut start = [0; 40];
        let read = current.file.read_at(&mut start, 0)?;
        let first = first_number(&start[..read]).unwrap_or(current.last.number);
        let old = self.folder.join(files::old_name(first));
        fs::rename(path, &old)?;
        let mut next = Current::open(path, current.last)?;
        self.continue_after(&mut next, &old, keep)?;
        Ok(next)
    }

    /// Writes the first record of a new file, and removes the oldest files.
    fn continue_after(&self, next: &mut Current, old: &Path, keep: usize) -> io::Result<()> {
        let files = files::old(self.folder)?;
        let gone = files.len().saturating_sub(keep);
        let oldest = files
            .get(gone)
            .map_or(next.last.number + 1, |(first, _)| *first);
        let name = old
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        let mut fields = Fields::new();
        fields.insert("record".to_owned(), "file".into());
        fields.insert("continues".to_owned(), name.into());
        fields.insert("oldest".to_owned(), oldest.into());
        next.write(self.head, &fields)?;
        // The record says what is kept, so a file too many is harmless.
        for (_, path) in &files[..gone] {
            fs::remove_file(path)?;
        }
        Ok(())
    }
}

/// Reads the number at the start of a file.
fn first_number(start: &[u8]) -> Option<u64> {
    let text = start.strip_prefix(b"{\"seq\":")?;
    let end = text.iter().position(|byte| !byte.is_ascii_digit())?;
    std::str::from_utf8(&text[..end]).ok()?.parse().ok()
}

/// Returns the last record of a file that was put aside.
fn last_of(path: &Path) -> io::Result<Option<Link>> {
    let mut file = files::options().open(path)?;
    let length = file.metadata()?.len();
    Ok(files::tail(&mut file, length)?.last.map(|line| line.link))
}

/// Makes a record that tells what was found.
fn note(what: &str, more: Value) -> Fields {
    let mut fields = Fields::new();
    fields.insert("record".to_owned(), "note".into());
    fields.insert("note".to_owned(), what.into());
    if let Value::Object(more) = more {
        fields.extend(more);
    }
    fields
}
