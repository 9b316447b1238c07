//! Sending files into a place.

use std::io::Read as _;
use std::sync::Arc;

use bytes::Bytes;
use exoshell_files::{FilesError, RelPath, Root};
use exoshell_place::Link;
use exoshell_wire::{PutFile, RawBytes};
use tokio::task::JoinSet;

use super::local::{self, LocalFile, path_of};
use super::remote::{self, RemoteKind};
use super::{
    AT_ONCE, Conflict, Direction, Manifest, SyncEntry, SyncError, SyncOptions, SyncReport,
    about_one_file, on_disk,
};

/// How much of a file is read at once.
const PIECE: usize = 256 * 1024;

/// Sends every file that differs in the place, and remembers in the manifest what is the same on
/// both sides. Nothing is deleted there. A file that goes both ways and has changed there since
/// the last time is left for [`pull`](super::pull).
///
/// When this fails, the manifest still tells what was sent.
pub async fn push(
    link: &Link,
    entries: &[SyncEntry],
    manifest: &mut Manifest,
    options: &SyncOptions,
) -> Result<SyncReport, SyncError> {
    let mut report = SyncReport::default();
    for entry in entries {
        let pushed = match local::open(entry).await {
            Ok(Some(root)) => {
                let mut push = Push {
                    link,
                    entry,
                    root,
                    manifest,
                    options,
                    report: &mut report,
                };
                push.run().await
            }
            Ok(None) => {
                report.skip(entry.local.clone(), "it does not exist here");
                continue;
            }
            Err(error) => Err(error),
        };
        if let Err(error) = pushed {
            let why = about_one_file(&error).ok_or(error)?;
            report.skip(entry.local.clone(), why);
        }
    }
    report.moved.sort();
    Ok(report)
}

/// The push of one entry.
struct Push<'a> {
    link: &'a Link,
    entry: &'a SyncEntry,
    root: Arc<Root>,
    manifest: &'a mut Manifest,
    options: &'a SyncOptions,
    report: &'a mut SyncReport,
}

impl Push<'_> {
    async fn run(&mut self) -> Result<(), SyncError> {
        let limits = &self.options.limits;
        let files = local::files(&self.root, self.entry, limits, self.report).await?;
        let paths = files.iter().map(|file| &file.path);
        let there = remote::look(self.link, self.entry, limits, paths).await?;
        let mut wanted = Vec::new();
        for file in files {
            if self.is_wanted(&file, there.get(&file.path)) {
                wanted.push(file);
            }
        }
        let total: u64 = wanted.iter().map(|file| file.content.size).sum();
        let limit = limits.total_bytes;
        if self.report.bytes.saturating_add(total) > limit {
            let path = self.entry.local.display().to_string();
            return Err(SyncError::TooMuch { path, limit });
        }
        if !wanted.is_empty() {
            let (count, remote) = (wanted.len(), &self.entry.remote);
            let plural = if count == 1 { "" } else { "s" };
            let line = format!("sending {count} file{plural} ({total} bytes) to {remote}");
            self.options.progress.step(&line);
        }
        self.send_all(wanted).await
    }

    /// Decides what becomes of a file, and notes everything but sending it.
    fn is_wanted(&mut self, file: &LocalFile, there: Option<&RemoteKind>) -> bool {
        let Some(RemoteKind::File { content, mode }) = there else {
            // What else is there, if anything, the guest refuses to replace.
            return true;
        };
        if *content == file.content {
            self.manifest
                .set(self.entry, file.path.clone(), file.content);
            if mode & 0o777 == self.mode_of(file) {
                self.report.unchanged += 1;
                return false;
            }
            return true;
        }
        let agreed = self.manifest.get(self.entry, &file.path);
        match (self.entry.direction, agreed) {
            (Direction::In, _) | (Direction::Both, None) => true,
            (Direction::Both, Some(agreed)) if agreed == *content => true,
            (Direction::Both, Some(agreed)) => {
                if agreed == file.content {
                    self.report.unchanged += 1;
                } else {
                    self.report.conflicts.push(Conflict {
                        path: path_of(&self.entry.local, &file.path),
                        stored: None,
                    });
                }
                false
            }
        }
    }

    fn mode_of(&self, file: &LocalFile) -> u32 {
        match self.entry.direction {
            Direction::In => file.mode & 0o555,
            Direction::Both => file.mode & 0o777,
        }
    }

    async fn send_all(&mut self, files: Vec<LocalFile>) -> Result<(), SyncError> {
        let mut under_way = JoinSet::new();
        let mut first_error = None;
        for file in files {
            if under_way.len() >= AT_ONCE
                && let Some(sent) = under_way.join_next().await
                && let Err(error) = self.sent(sent)
            {
                first_error = Some(error);
                break;
            }
            let upload = Upload {
                link: self.link.clone(),
                root: Arc::clone(&self.root),
                remote: self.entry.remote.clone(),
                mode: self.mode_of(&file),
                file,
            };
            under_way.spawn(upload.run());
        }
        // What is under way ends by itself, even after an error: it may have arrived.
        while let Some(sent) = under_way.join_next().await {
            if let Err(error) = self.sent(sent) {
                first_error.get_or_insert(error);
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    /// Notes what became of a file.
    fn sent(
        &mut self,
        sent: Result<(LocalFile, Result<(), SyncError>), tokio::task::JoinError>,
    ) -> Result<(), SyncError> {
        let (file, result) = sent.map_err(|error| SyncError::Internal(error.to_string()))?;
        let path = path_of(&self.entry.local, &file.path);
        match result {
            Ok(()) => {
                self.report.bytes += file.content.size;
                self.report.moved.push(path);
                self.manifest.set(self.entry, file.path, file.content);
            }
            Err(error) => {
                let why = about_one_file(&error).ok_or(error)?;
                self.report.skip(path, why);
            }
        }
        Ok(())
    }
}

/// One file on its way.
struct Upload {
    link: Link,
    root: Arc<Root>,
    remote: String,
    mode: u32,
    file: LocalFile,
}

impl Upload {
    async fn run(self) -> (LocalFile, Result<(), SyncError>) {
        let result = self.send().await;
        (self.file, result)
    }

    async fn send(&self) -> Result<(), SyncError> {
        let content = self.file.content;
        let upload = self.link.put_file(PutFile {
            root: self.remote.as_str().into(),
            path: RawBytes(self.file.path.as_bytes().to_vec()),
            mode: self.mode,
            size: content.size,
            sha256: content.digest.to_string(),
        })?;
        let root = Arc::clone(&self.root);
        let path = self.file.path.clone();
        let mut file = on_disk(move || root.open_file(&path)).await?;
        let mut left = content.size;
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
            let (root, path) = (Arc::clone(&self.root), self.file.path.clone());
            let piece;
            (file, piece) = on_disk(move || read_piece(file, most, &root, &path)).await?;
            if piece.is_empty() {
                break;
            }
            left -= piece.len() as u64;
            upload.send(piece).await?;
        }
        Ok(upload.finish().await?)
    }
}

fn read_piece(
    mut file: std::fs::File,
    most: usize,
    root: &Root,
    path: &RelPath,
) -> Result<(std::fs::File, Bytes), FilesError> {
    let mut piece = vec![0_u8; most];
    let length = file.read(&mut piece).map_err(|source| FilesError::Io {
        path: root.describe(path),
        source,
    })?;
    piece.truncate(length);
    Ok((file, Bytes::from(piece)))
}
