//! Bringing back what changed in a place.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use exoshell_files::{Content, Draft, EntryKind, FilesError, Limits, RelPath, Root, RootKind};
use exoshell_place::{FilePiece, Link};
use exoshell_wire::{FileRoot, FileSent, GetFile, RawBytes};
use tokio::task::JoinSet;

use super::local::{self, is_conflict_copy, path_of};
use super::remote::{self, RemoteKind};
use super::{
    AT_ONCE, CONFLICT_SUFFIX, Conflict, Direction, Manifest, SyncEntry, SyncError, SyncOptions,
    SyncReport, about_one_file, on_disk,
};

/// Brings back what changed in the place since the manifest was made, new files included, for
/// entries that go both ways.
///
/// A file that changed here, too, is not overwritten: the remote one is stored beside it with
/// [`CONFLICT_SUFFIX`]. What was deleted there is reported and stays here.
pub async fn pull(
    link: &Link,
    entries: &[SyncEntry],
    manifest: &mut Manifest,
    options: &SyncOptions,
) -> Result<SyncReport, SyncError> {
    let mut report = SyncReport::default();
    let both_ways = |entry: &&SyncEntry| entry.direction == Direction::Both;
    for entry in entries.iter().filter(both_ways) {
        let mut pull = Pull {
            link,
            entry,
            manifest,
            options,
            report: &mut report,
        };
        if let Err(error) = pull.run().await {
            let why = about_one_file(&error).ok_or(error)?;
            report.skip(entry.local.clone(), why);
        }
    }
    report.moved.sort();
    report.conflicts.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(report)
}

/// The pull of one entry.
struct Pull<'a> {
    link: &'a Link,
    entry: &'a SyncEntry,
    manifest: &'a mut Manifest,
    options: &'a SyncOptions,
    report: &'a mut SyncReport,
}

/// What lies at a path of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Here {
    Nothing,
    File { content: Content, mode: u32 },
    Other,
}

fn look(root: &Root, path: &RelPath, limits: &Limits) -> Result<Here, FilesError> {
    Ok(match root.look(path, limits)? {
        None => Here::Nothing,
        Some(entry) => match entry.kind {
            EntryKind::File(content) => Here::File {
                content,
                mode: entry.mode,
            },
            _ => Here::Other,
        },
    })
}

/// A file that is to be fetched.
#[derive(Debug, Clone)]
struct Wanted {
    path: RelPath,
    content: Content,
    /// The permissions it gets here.
    mode: u32,
    /// What was here when that was decided; `None` stores it beside.
    replaces: Option<Here>,
}

impl Pull<'_> {
    async fn run(&mut self) -> Result<(), SyncError> {
        let limits = self.options.limits;
        let there = remote::scan(self.link, self.entry, &limits).await?;
        self.note_deleted(&there.files);
        let kind = match there.root {
            FileRoot::Missing => return Ok(()),
            FileRoot::Folder => RootKind::Folder,
            FileRoot::File => RootKind::File,
        };
        let root = local::open(self.entry).await?;
        if root.as_ref().is_some_and(|root| root.kind() != kind) {
            let why = "it is a folder on one side and a file on the other";
            self.report.skip(self.entry.local.clone(), why);
            return Ok(());
        }
        let mut wanted = Vec::new();
        for (path, found) in there.files {
            wanted.extend(self.decide(root.as_ref(), path, found).await?);
        }
        if wanted.is_empty() {
            return Ok(());
        }
        self.check_total(&wanted)?;
        let root = if let Some(root) = root {
            root
        } else {
            let local = self.entry.local.clone();
            Arc::new(on_disk(move || Root::create(&local, kind)).await?)
        };
        self.fetch_all(&root, wanted).await
    }

    fn local_path(&self, path: &RelPath) -> PathBuf {
        path_of(&self.entry.local, path)
    }

    fn note_deleted(&mut self, there: &BTreeMap<RelPath, RemoteKind>) {
        for path in self.manifest.paths(self.entry) {
            if !there.contains_key(&path) {
                self.report.deleted.push(self.local_path(&path));
            }
        }
    }

    fn check_total(&self, wanted: &[Wanted]) -> Result<(), SyncError> {
        let limit = self.options.limits.total_bytes;
        let sizes = wanted.iter().map(|file| file.content.size);
        let total = sizes.fold(self.report.bytes, u64::saturating_add);
        if total > limit {
            let path = self.entry.remote.clone();
            return Err(SyncError::TooMuch { path, limit });
        }
        let (count, remote) = (wanted.len(), &self.entry.remote);
        let plural = if count == 1 { "" } else { "s" };
        let line = format!("bringing back {count} file{plural} ({total} bytes) from {remote}");
        self.options.progress.step(&line);
        Ok(())
    }

    /// Decides what becomes of a file of the place, and notes everything but fetching it.
    async fn decide(
        &mut self,
        root: Option<&Arc<Root>>,
        path: RelPath,
        found: RemoteKind,
    ) -> Result<Option<Wanted>, SyncError> {
        let (content, mode) = match found {
            RemoteKind::File { content, mode } => (content, mode),
            RemoteKind::Folder => return Ok(None),
            RemoteKind::Other(why) => {
                self.report.skip(self.local_path(&path), why);
                return Ok(None);
            }
        };
        if is_conflict_copy(&path) {
            let why = format!("names that end in `{CONFLICT_SUFFIX}` are kept for conflicts");
            self.report.skip(self.local_path(&path), why);
            return Ok(None);
        }
        let agreed = self.manifest.get(self.entry, &path);
        if agreed == Some(content) {
            self.report.unchanged += 1;
            return Ok(None);
        }
        let here = match self.look(root, &path).await {
            Ok(here) => here,
            Err(error) => {
                let why = about_one_file(&error).ok_or(error)?;
                self.report.skip(self.local_path(&path), why);
                return Ok(None);
            }
        };
        let replaces = match (here, agreed) {
            (Here::File { content: ours, .. }, _) if ours == content => {
                self.manifest.set(self.entry, path, content);
                self.report.unchanged += 1;
                return Ok(None);
            }
            (Here::File { content: ours, .. }, Some(agreed)) if ours == agreed => Some(here),
            (Here::Nothing, None) => Some(here),
            _ => None,
        };
        Ok(Some(Wanted {
            path,
            content,
            mode: match here {
                Here::File { mode, .. } => mode,
                // Never writable by others, always usable by the user.
                _ => mode & 0o755 | 0o600,
            },
            replaces,
        }))
    }

    async fn look(&self, root: Option<&Arc<Root>>, path: &RelPath) -> Result<Here, SyncError> {
        let Some(root) = root.map(Arc::clone) else {
            return Ok(Here::Nothing);
        };
        let path = path.clone();
        let limits = self.options.limits.for_files();
        on_disk(move || look(&root, &path, &limits)).await
    }

    async fn fetch_all(&mut self, root: &Arc<Root>, wanted: Vec<Wanted>) -> Result<(), SyncError> {
        let mut under_way = JoinSet::new();
        let mut first_error = None;
        for wanted in wanted {
            if under_way.len() >= AT_ONCE
                && let Some(fetched) = under_way.join_next().await
                && let Err(error) = self.fetched(fetched)
            {
                first_error = Some(error);
                break;
            }
            let fetch = Fetch {
                link: self.link.clone(),
                root: Arc::clone(root),
                entry: self.entry.clone(),
                limits: self.options.limits.for_files(),
                wanted,
            };
            under_way.spawn(fetch.run());
        }
        while let Some(fetched) = under_way.join_next().await {
            if let Err(error) = self.fetched(fetched) {
                first_error.get_or_insert(error);
            }
        }
        first_error.map_or(Ok(()), Err)
    }

    /// Notes what became of a file.
    fn fetched(
        &mut self,
        fetched: Result<(RelPath, Result<Fetched, SyncError>), tokio::task::JoinError>,
    ) -> Result<(), SyncError> {
        let (path, result) = fetched.map_err(|error| SyncError::Internal(error.to_string()))?;
        let shown = self.local_path(&path);
        match result {
            Ok(fetched) => {
                self.report.bytes += fetched.bytes;
                match fetched.stored {
                    None => self.report.moved.push(shown),
                    // From here on the remote version is known here: the next push may replace
                    // it by what a person made of both.
                    stored => self.report.conflicts.push(Conflict {
                        path: shown,
                        stored,
                    }),
                }
                self.manifest.set(self.entry, path, fetched.content);
            }
            Err(error) => {
                let why = about_one_file(&error).ok_or(error)?;
                self.report.skip(shown, why);
            }
        }
        Ok(())
    }
}

/// What became of a file that was wanted.
struct Fetched {
    content: Content,
    bytes: u64,
    /// Where a conflict's file is.
    stored: Option<PathBuf>,
}

/// One file on its way.
struct Fetch {
    link: Link,
    root: Arc<Root>,
    entry: SyncEntry,
    limits: Limits,
    wanted: Wanted,
}

impl Fetch {
    async fn run(self) -> (RelPath, Result<Fetched, SyncError>) {
        let result = self.fetch().await;
        (self.wanted.path, result)
    }

    async fn fetch(&self) -> Result<Fetched, SyncError> {
        let Some(replaces) = self.wanted.replaces else {
            return self.store_beside().await;
        };
        let (root, path) = (Arc::clone(&self.root), self.wanted.path.clone());
        let (draft, sent) = self.download(&root, &path).await?;
        let bytes = draft.size();
        let limits = self.limits;
        let committed = on_disk(move || {
            // It may have changed here while the other one was on its way.
            if look(&root, &path, &limits)? == replaces {
                return draft.commit(Some(sent)).map(Some);
            }
            Ok(None)
        });
        match committed.await? {
            Some(content) => Ok(Fetched {
                content,
                bytes,
                stored: None,
            }),
            None => self.store_beside().await,
        }
    }

    /// Stores the remote version of a conflict, unless it is there already.
    async fn store_beside(&self) -> Result<Fetched, SyncError> {
        let (root, path) = self.beside().await?;
        let stored = Some(match self.root.kind() {
            RootKind::Folder => path_of(&self.entry.local, &path),
            RootKind::File => {
                let name = OsStr::from_bytes(path.as_bytes());
                self.entry.local.with_file_name(name)
            }
        });
        let limits = self.limits;
        let (looked_in, looked_at) = (Arc::clone(&root), path.clone());
        let here = on_disk(move || look(&looked_in, &looked_at, &limits)).await?;
        let content = self.wanted.content;
        if matches!(here, Here::File { content: ours, .. } if ours == content) {
            return Ok(Fetched {
                content,
                bytes: 0,
                stored,
            });
        }
        let (draft, sent) = self.download(&root, &path).await?;
        let bytes = draft.size();
        let content = on_disk(move || draft.commit(Some(sent))).await?;
        Ok(Fetched {
            content,
            bytes,
            stored,
        })
    }

    /// Returns where the remote version of a conflict goes.
    async fn beside(&self) -> Result<(Arc<Root>, RelPath), SyncError> {
        if self.root.kind() == RootKind::Folder {
            let path = self.wanted.path.with_suffix(CONFLICT_SUFFIX)?;
            return Ok((Arc::clone(&self.root), path));
        }
        let local = &self.entry.local;
        let name = local.file_name().unwrap_or_default().as_encoded_bytes();
        let path = RelPath::new(name)?.with_suffix(CONFLICT_SUFFIX)?;
        let folder = local.parent().unwrap_or(local).to_owned();
        let root = on_disk(move || Root::open(&folder)).await?;
        Ok((Arc::new(root), path))
    }

    /// Fetches the file into a draft, which holds at most what was announced. Returns it with
    /// what the guest says it sent.
    async fn download(
        &self,
        root: &Arc<Root>,
        path: &RelPath,
    ) -> Result<(Draft, Content), SyncError> {
        let announced = self.wanted.content.size;
        let mut download = self.link.get_file(GetFile {
            root: self.entry.remote.as_str().into(),
            path: RawBytes(self.wanted.path.as_bytes().to_vec()),
            max_bytes: announced,
        })?;
        let (root, path, mode) = (Arc::clone(root), path.clone(), self.wanted.mode);
        let mut draft = on_disk(move || root.draft(&path, mode)).await?;
        loop {
            match download.next().await? {
                FilePiece::Bytes(bytes) => {
                    if draft.size().saturating_add(bytes.len() as u64) > announced {
                        return Err(remote::forbidden(
                            &self.entry,
                            "a file that is longer than was announced",
                        ));
                    }
                    draft = on_disk(move || draft.write(&bytes).map(|()| draft)).await?;
                }
                FilePiece::Done(FileSent { size, sha256 }) => {
                    let digest = sha256.parse().map_err(|_no_digest| {
                        remote::forbidden(&self.entry, "a file without a hash")
                    })?;
                    return Ok((draft, Content { size, digest }));
                }
            }
        }
    }
}
