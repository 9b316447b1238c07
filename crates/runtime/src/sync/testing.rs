//! What the tests of sync share.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use exoshell_place::{Link, LinkOptions, Place as _, Progress};
use exoshell_place_local::LocalPlace;
use tempfile::TempDir;

use super::{Direction, Manifest, SyncEntry, SyncError, SyncOptions, SyncReport, pull, push};

/// A folder here, one there, and a guest in between.
pub(super) struct Ground {
    folders: TempDir,
    pub(super) place: LocalPlace,
    pub(super) link: Link,
    pub(super) manifest: Manifest,
    pub(super) options: SyncOptions,
}

pub(super) fn link_options() -> LinkOptions {
    LinkOptions {
        build: "test".to_owned(),
        linger: false,
        max_warm_shells: 0,
        heartbeat: None,
    }
}

impl Ground {
    pub(super) async fn new() -> Self {
        let folders = tempfile::tempdir().unwrap();
        for name in ["here", "there", "outside"] {
            fs::create_dir(folders.path().join(name)).unwrap();
        }
        let place = LocalPlace::new(folders.path().join("home"))
            .with_exit_after(Duration::from_secs(5))
            .with_linger(false);
        let pipe = place.open(&Progress::default()).await.unwrap();
        let link = Link::open(pipe, &link_options()).await.unwrap();
        Self {
            folders,
            place,
            link,
            manifest: Manifest::default(),
            options: SyncOptions::default(),
        }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folders.path().join(name)
    }

    pub(super) fn here(&self, name: &str) -> PathBuf {
        self.path("here").join(name)
    }

    pub(super) fn there(&self, name: &str) -> PathBuf {
        self.path("there").join(name)
    }

    /// The folders `here` and `there`.
    pub(super) fn entry(&self, direction: Direction) -> SyncEntry {
        self.entry_of("here", "there", direction)
    }

    pub(super) fn entry_of(&self, local: &str, remote: &str, direction: Direction) -> SyncEntry {
        SyncEntry {
            local: self.path(local),
            remote: self.path(remote).to_str().unwrap().to_owned(),
            direction,
        }
    }

    pub(super) async fn push(&mut self, entry: &SyncEntry) -> Result<SyncReport, SyncError> {
        let entries = std::slice::from_ref(entry);
        push(&self.link, entries, &mut self.manifest, &self.options).await
    }

    pub(super) async fn pull(&mut self, entry: &SyncEntry) -> Result<SyncReport, SyncError> {
        let entries = std::slice::from_ref(entry);
        pull(&self.link, entries, &mut self.manifest, &self.options).await
    }

    /// Ends the guest, so that nothing is left behind.
    pub(super) async fn end(self) {
        self.link.shut_down().await.unwrap();
    }
}

/// Opens a pipe whose bytes towards the guest can be counted and cut.
pub(super) async fn raw_socket(place: &LocalPlace) -> tokio::net::UnixStream {
    let socket = place.run_dir().join("guest.sock");
    tokio::net::UnixStream::connect(socket).await.unwrap()
}

pub(super) fn read(path: impl AsRef<Path>) -> String {
    String::from_utf8(fs::read(path).unwrap()).unwrap()
}

/// Lists all names in a folder, hidden ones too.
pub(super) fn names(folder: impl AsRef<Path>) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
