//! Files of a place, through its guest.
//!
//! A guest may lie: what comes from it is counted here, and paths are checked by whoever uses
//! them.

use bytes::Bytes;
use exoshell_mux::{Channel, Item};
use exoshell_wire::{
    FILES, Failure, FailureKind, FileEntry, FileRemoved, FileSent, FilesScanned, GetFile, PutFile,
    RemoveFile, Request, ScanFiles, stream,
};

use crate::link::{OUTPUT_WINDOW, dropped, read_reply, reply};
use crate::{Link, PlaceError};

/// How much may be said about all files of a root.
const MAX_LISTING: usize = 32 * 1024 * 1024;

/// The longest line that describes an entry: the longest path, each byte of it escaped, and room
/// for the rest.
const MAX_LINE: usize = 64 * 1024;

impl Link {
    /// Looks at files beneath a root. Fails when there are more than were asked for.
    pub async fn scan_files(
        &self,
        request: ScanFiles,
    ) -> Result<(Vec<FileEntry>, FilesScanned), PlaceError> {
        self.needs_files()?;
        let limit = usize::try_from(request.max_entries).unwrap_or(usize::MAX);
        let mut channel = self.open_channel(&Request::ScanFiles(request))?;
        channel.raise_window(OUTPUT_WINDOW);
        let mut lines = Lines::default();
        loop {
            match channel.receive().await? {
                Item::Data { bytes, .. } => lines.push(&bytes, limit)?,
                Item::Reply(body) => return Ok((lines.finish()?, read_reply(&body)?)),
                Item::Reset => return Err(dropped()),
                Item::Event(_) | Item::Cancel => {}
            }
        }
    }

    /// Starts to write a file.
    pub fn put_file(&self, request: PutFile) -> Result<FileUpload, PlaceError> {
        self.needs_files()?;
        let channel = self.open_channel(&Request::PutFile(request))?;
        Ok(FileUpload { channel })
    }

    /// Starts to read a file.
    pub fn get_file(&self, request: GetFile) -> Result<FileDownload, PlaceError> {
        self.needs_files()?;
        let mut channel = self.open_channel(&Request::GetFile(request))?;
        channel.raise_window(OUTPUT_WINDOW);
        Ok(FileDownload { channel })
    }

    /// Removes a file. Returns whether there was one.
    pub async fn remove_file(&self, request: RemoveFile) -> Result<bool, PlaceError> {
        self.needs_files()?;
        let removed: FileRemoved = self.ask(&Request::RemoveFile(request)).await?;
        Ok(removed.existed)
    }

    /// A guest that was started by an older build may still be running.
    fn needs_files(&self) -> Result<(), PlaceError> {
        let known = &self.hello().capabilities;
        if known.iter().any(|capability| capability == FILES) {
            return Ok(());
        }
        Err(Failure::new(
            FailureKind::NotPossible,
            "the guest of this place is older than file sync; remove the place, and the next use \
             brings a new one",
        )
        .into())
    }
}

/// Entries, one per line, as they come.
#[derive(Debug, Default)]
struct Lines {
    /// The line that is not complete yet.
    rest: Vec<u8>,
    entries: Vec<FileEntry>,
    bytes: usize,
}

impl Lines {
    fn push(&mut self, bytes: &[u8], limit: usize) -> Result<(), PlaceError> {
        self.bytes = self.bytes.saturating_add(bytes.len());
        if self.bytes > MAX_LISTING {
            return Err(nonsense("a list of files that does not end"));
        }
        self.rest.extend_from_slice(bytes);
        let rest = std::mem::take(&mut self.rest);
        let mut lines = rest.split(|byte| *byte == b'\n');
        // What is behind the last line end is not complete.
        let unfinished = lines.next_back().unwrap_or_default();
        for line in lines {
            if self.entries.len() >= limit {
                return Err(nonsense("more entries than were asked for"));
            }
            self.entries
                .push(serde_json::from_slice(line).map_err(|error| nonsense(&error.to_string()))?);
        }
        if unfinished.len() > MAX_LINE {
            return Err(nonsense("an entry without an end"));
        }
        self.rest = unfinished.to_vec();
        Ok(())
    }

    fn finish(self) -> Result<Vec<FileEntry>, PlaceError> {
        if self.rest.is_empty() {
            return Ok(self.entries);
        }
        Err(nonsense("an entry without an end"))
    }
}

fn nonsense(why: &str) -> PlaceError {
    PlaceError::Nonsense(why.to_owned())
}

/// A file on its way to a place. Dropping it leaves nothing there.
#[derive(Debug)]
pub struct FileUpload {
    channel: Channel,
}

impl FileUpload {
    /// Sends some bytes, as fast as the place takes them. Once the guest has failed, they go
    /// nowhere, and [`FileUpload::finish`] tells why.
    pub async fn send(&self, bytes: Bytes) -> Result<(), PlaceError> {
        Ok(self.channel.send(stream::STDIN, bytes).await?)
    }

    /// Ends the file and waits until it is in its place.
    pub async fn finish(mut self) -> Result<(), PlaceError> {
        self.channel.finish(stream::STDIN).await?;
        reply(&mut self.channel).await
    }
}

/// What reading a file brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilePiece {
    /// The next bytes.
    Bytes(Bytes),
    /// All of it was sent.
    Done(FileSent),
}

/// A file on its way from a place.
#[derive(Debug)]
pub struct FileDownload {
    channel: Channel,
}

impl FileDownload {
    /// Waits for what comes next. Cancel-safe.
    pub async fn next(&mut self) -> Result<FilePiece, PlaceError> {
        loop {
            match self.channel.receive().await? {
                Item::Data { bytes, .. } if !bytes.is_empty() => {
                    return Ok(FilePiece::Bytes(bytes));
                }
                Item::Reply(body) => return Ok(FilePiece::Done(read_reply(&body)?)),
                Item::Reset => return Err(dropped()),
                Item::Data { .. } | Item::Event(_) | Item::Cancel => {}
            }
        }
    }
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
