//! What a person can rely on.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use exoshell_files::Content;
use exoshell_place::{FilePiece, Link, Pipe, PlaceError};
use exoshell_wire::{FailureKind, GetFile, RemoveFile};
use tokio::io::AsyncWrite;

use super::testing::{Ground, link_options, names, raw_socket, read};
use super::{Conflict, Direction, Manifest, SyncEntry, SyncError, SyncOptions, SyncReport, push};

fn mode(path: impl AsRef<Path>) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: impl AsRef<Path>, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn files_that_only_go_in_are_read_only_there_and_do_not_come_back() {
    let mut ground = Ground::new().await;
    let entry = ground.entry(Direction::In);
    fs::create_dir(ground.here("sub")).unwrap();
    fs::write(ground.here("sub/tool"), "run").unwrap();
    set_mode(ground.here("sub/tool"), 0o755);
    fs::write(ground.here("token"), "secret").unwrap();
    set_mode(ground.here("token"), 0o600);
    fs::write(ground.there("own"), "theirs").unwrap();

    let report = ground.push(&entry).await.unwrap();
    assert_eq!(
        report,
        SyncReport {
            moved: vec![ground.here("sub/tool"), ground.here("token")],
            bytes: 9,
            ..SyncReport::default()
        }
    );
    assert_eq!(read(ground.there("sub/tool")), "run");
    assert_eq!(mode(ground.there("sub/tool")), 0o555);
    assert_eq!(mode(ground.there("sub")), 0o700);
    assert_eq!(mode(ground.there("token")), 0o400);
    assert_eq!(names(ground.path("there")), ["own", "sub", "token"]);

    fs::remove_file(ground.there("token")).unwrap();
    fs::write(ground.there("token"), "stolen").unwrap();
    assert_eq!(ground.pull(&entry).await.unwrap(), SyncReport::default());
    assert_eq!(read(ground.here("token")), "secret");
    ground.push(&entry).await.unwrap();
    assert_eq!(read(ground.there("token")), "secret");
    ground.end().await;
}

#[tokio::test]
async fn what_changed_there_comes_back_and_nothing_else() {
    let mut ground = Ground::new().await;
    let entry = ground.entry(Direction::Both);
    for name in ["same", "edited", "gone", "both", "mine"] {
        fs::write(ground.here(name), "old").unwrap();
        set_mode(ground.here(name), 0o640);
    }
    ground.push(&entry).await.unwrap();
    assert_eq!(mode(ground.there("edited")), 0o640);

    fs::write(ground.there("edited"), "new").unwrap();
    set_mode(ground.there("edited"), 0o4777);
    fs::create_dir(ground.there("made")).unwrap();
    fs::write(ground.there("made/file"), "made").unwrap();
    set_mode(ground.there("made/file"), 0o4777);
    fs::remove_file(ground.there("gone")).unwrap();
    fs::write(ground.there("both"), "theirs").unwrap();
    fs::write(ground.here("both"), "ours").unwrap();
    fs::write(ground.here("mine"), "mine").unwrap();

    let report = ground.pull(&entry).await.unwrap();
    assert_eq!(
        report,
        SyncReport {
            moved: vec![ground.here("edited"), ground.here("made/file")],
            bytes: 13,
            unchanged: 2,
            conflicts: vec![Conflict {
                path: ground.here("both"),
                stored: Some(ground.here("both.exoshell-remote")),
            }],
            deleted: vec![ground.here("gone")],
            skipped: Vec::new(),
        }
    );
    assert_eq!(read(ground.here("edited")), "new");
    assert_eq!(mode(ground.here("edited")), 0o640);
    assert_eq!(mode(ground.here("made/file")), 0o755);
    assert_eq!(read(ground.here("gone")), "old");
    assert_eq!(read(ground.here("both")), "ours");
    assert_eq!(read(ground.here("both.exoshell-remote")), "theirs");
    assert_eq!(read(ground.here("mine")), "mine");
    let again = ground.pull(&entry).await.unwrap();
    assert_eq!((again.moved, again.conflicts), (Vec::new(), Vec::new()));
    ground.end().await;
}

#[tokio::test]
async fn a_conflict_is_over_once_the_remote_version_is_here() {
    let mut ground = Ground::new().await;
    let entry = ground.entry(Direction::Both);
    fs::write(ground.here("file"), "old").unwrap();
    ground.push(&entry).await.unwrap();
    fs::write(ground.here("file"), "ours").unwrap();
    fs::write(ground.there("file"), "theirs").unwrap();

    let report = ground.push(&entry).await.unwrap();
    let path = ground.here("file");
    assert_eq!(report.conflicts, [Conflict { path, stored: None }]);
    assert_eq!(read(ground.there("file")), "theirs");

    ground.pull(&entry).await.unwrap();
    fs::write(ground.here("file"), "merged").unwrap();
    let report = ground.push(&entry).await.unwrap();
    assert_eq!(report.moved, [ground.here("file")]);
    assert_eq!(read(ground.there("file")), "merged");
    // The copy is for people; it does not travel.
    assert_eq!(names(ground.path("there")), ["file"]);
    ground.end().await;
}

#[tokio::test]
async fn what_was_not_pulled_yet_is_not_overwritten_by_a_push() {
    let mut ground = Ground::new().await;
    let entry = ground.entry(Direction::Both);
    fs::write(ground.here("file"), "old").unwrap();
    ground.push(&entry).await.unwrap();
    fs::write(ground.there("file"), "theirs").unwrap();
    let report = ground.push(&entry).await.unwrap();
    assert_eq!((report.moved, report.unchanged), (Vec::new(), 1));
    ground.pull(&entry).await.unwrap();
    assert_eq!(read(ground.here("file")), "theirs");
    ground.end().await;
}

#[tokio::test]
async fn another_process_can_pull_with_the_written_manifest() {
    let mut ground = Ground::new().await;
    let entry = ground.entry(Direction::Both);
    let odd = OsStr::from_bytes(b"odd\xff");
    fs::write(ground.path("here").join(odd), "old").unwrap();
    ground.push(&entry).await.unwrap();
    let file = Manifest::path(&ground.path("home"), "task one");
    assert!(!ground.manifest.is_empty());
    ground.manifest.save(&file).unwrap();
    assert_eq!(Manifest::load(&file), ground.manifest);

    ground.manifest = Manifest::load(&file);
    fs::write(ground.path("there").join(odd), "new").unwrap();
    let report = ground.pull(&entry).await.unwrap();
    assert_eq!(report.moved, [ground.path("here").join(odd)]);
    assert_eq!(read(ground.path("here").join(odd)), "new");

    // A damaged one makes conflicts, not losses.
    fs::write(&file, "{").unwrap();
    ground.manifest = Manifest::load(&file);
    assert!(ground.manifest.is_empty());
    fs::write(ground.path("there").join(odd), "newer").unwrap();
    let report = ground.pull(&entry).await.unwrap();
    assert_eq!(report.conflicts.len(), 1);
    assert_eq!(read(ground.path("here").join(odd)), "new");
    ground.end().await;
}

#[tokio::test]
async fn many_files_are_asked_about_in_several_requests() {
    let mut ground = Ground::new().await;
    let entry = ground.entry(Direction::Both);
    let name = |number: usize| format!("{number:0>200}");
    let count = 800;
    for number in 0..count {
        fs::write(ground.here(&name(number)), number.to_string()).unwrap();
    }
    assert_eq!(ground.push(&entry).await.unwrap().moved.len(), count);
    assert_eq!(read(ground.there(&name(567))), "567");
    fs::write(ground.here(&name(3)), "new").unwrap();
    let report = ground.push(&entry).await.unwrap();
    assert_eq!((report.moved.len(), report.unchanged), (1, count - 1));
    fs::write(ground.there(&name(4)), "new").unwrap();
    let report = ground.pull(&entry).await.unwrap();
    assert_eq!((report.moved.len(), report.unchanged), (1, count - 1));
    ground.end().await;
}

#[tokio::test]
async fn an_entry_may_be_one_file() {
    let mut ground = Ground::new().await;
    fs::write(ground.here("config"), "old").unwrap();
    fs::write(ground.here("other"), "other").unwrap();
    let entry = ground.entry_of("here/config", "there/deep/config", Direction::Both);
    ground.push(&entry).await.unwrap();
    assert_eq!(read(ground.there("deep/config")), "old");
    assert_eq!(names(ground.there("deep")), ["config"]);

    fs::write(ground.there("deep/config"), "new").unwrap();
    fs::write(ground.there("deep/neighbour"), "").unwrap();
    let report = ground.pull(&entry).await.unwrap();
    assert_eq!(report.moved, [ground.here("config")]);
    assert_eq!(read(ground.here("config")), "new");

    fs::write(ground.there("deep/config"), "theirs").unwrap();
    fs::write(ground.here("config"), "ours").unwrap();
    let report = ground.pull(&entry).await.unwrap();
    let stored = Some(ground.here("config.exoshell-remote"));
    let path = ground.here("config");
    assert_eq!(report.conflicts, [Conflict { path, stored }]);
    assert_eq!(
        names(ground.path("here")),
        ["config", "config.exoshell-remote", "other"]
    );
    ground.end().await;
}

#[tokio::test]
async fn what_cannot_be_synced_is_named_and_the_rest_goes_on() {
    let mut ground = Ground::new().await;
    let entry = ground.entry(Direction::Both);
    symlink(ground.path("outside"), ground.here("link")).unwrap();
    fs::write(ground.here("file"), "x").unwrap();
    fs::write(ground.here("in the way"), "x").unwrap();
    fs::create_dir(ground.there("in the way")).unwrap();
    fs::create_dir(ground.here("sub")).unwrap();
    fs::write(ground.here("sub/file"), "evil").unwrap();
    symlink(ground.path("outside"), ground.there("sub")).unwrap();
    let report = ground.push(&entry).await.unwrap();
    assert_eq!(report.moved, [ground.here("file")]);
    let mut skipped: Vec<_> = report.skipped.iter().map(|one| &one.path).collect();
    skipped.sort();
    let expected = ["in the way", "link", "sub/file"].map(|name| ground.here(name));
    assert_eq!(skipped, expected.iter().collect::<Vec<_>>());
    assert_eq!(names(ground.path("outside")), Vec::<String>::new());

    let device = SyncEntry {
        local: "/dev/null".into(),
        ..entry.clone()
    };
    let missing = ground.entry_of("nothing", "there", Direction::In);
    for (entry, why) in [
        (device, "`/dev/null` is not a regular file"),
        (missing, "it does not exist here"),
    ] {
        let report = ground.push(&entry).await.unwrap();
        assert_eq!(report.skipped.len(), 1);
        assert_eq!(report.skipped[0].why, why);
    }
    ground.end().await;
}

#[tokio::test]
async fn a_pull_leaves_local_links_alone() {
    let mut ground = Ground::new().await;
    let entry = ground.entry(Direction::Both);
    symlink(ground.path("outside"), ground.here("folder")).unwrap();
    symlink(ground.path("outside/target"), ground.here("file")).unwrap();
    fs::create_dir(ground.there("folder")).unwrap();
    fs::write(ground.there("folder/file"), "evil").unwrap();
    fs::write(ground.there("file"), "evil").unwrap();
    symlink("/etc/passwd", ground.there("stolen")).unwrap();
    let report = ground.pull(&entry).await.unwrap();
    assert_eq!(report.moved, Vec::<std::path::PathBuf>::new());
    assert_eq!(report.conflicts.len(), 1);
    assert_eq!(report.skipped.len(), 2);
    assert_eq!(names(ground.path("outside")), Vec::<String>::new());
    assert_eq!(
        names(ground.path("here")),
        ["file", "file.exoshell-remote", "folder"]
    );
    ground.end().await;
}

#[tokio::test]
async fn too_much_is_refused_before_anything_is_sent() {
    let mut ground = Ground::new().await;
    let entry = ground.entry(Direction::Both);
    fs::write(ground.here("a"), "12345").unwrap();
    fs::write(ground.here("b"), "12345").unwrap();
    ground.options.limits.total_bytes = 9;
    let error = ground.push(&entry).await.unwrap_err();
    assert!(
        matches!(error, SyncError::TooMuch { limit: 9, .. }),
        "{error}"
    );
    assert_eq!(names(ground.path("there")), Vec::<String>::new());

    ground.options.limits.total_bytes = 10;
    ground.options.limits.file_bytes = 4;
    let report = ground.push(&entry).await.unwrap();
    assert_eq!((report.moved.len(), report.skipped.len()), (0, 2));

    ground.options.limits.entries = 1;
    assert!(matches!(
        ground.push(&entry).await,
        Err(SyncError::Local(exoshell_files::FilesError::TooMany { .. }))
    ));
    ground.end().await;
}

/// Counts what is written to the guest.
struct Counted<W>(W, Arc<AtomicUsize>);

impl<W: AsyncWrite + Unpin> AsyncWrite for Counted<W> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        let result = Pin::new(&mut self.0).poll_write(context, bytes);
        if let Poll::Ready(Ok(length)) = &result {
            self.1.fetch_add(*length, Ordering::Relaxed);
        }
        result
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}

#[tokio::test]
async fn a_second_push_of_unchanged_files_sends_none_of_them() {
    let ground = Ground::new().await;
    let entries = [ground.entry(Direction::In)];
    fs::write(ground.here("large"), vec![7; 3_000_000]).unwrap();
    fs::write(ground.here("empty"), "").unwrap();
    let written = Arc::new(AtomicUsize::new(0));
    let (reader, writer) = raw_socket(&ground.place).await.into_split();
    let pipe = Pipe::direct(reader, Counted(writer, Arc::clone(&written)));
    let link = Link::open(pipe, &link_options()).await.unwrap();
    let options = SyncOptions::default();
    let first = push(&link, &entries, &mut Manifest::default(), &options).await;
    assert_eq!(first.unwrap().bytes, 3_000_000);
    let sent = written.swap(0, Ordering::Relaxed);
    assert!(sent > 3_000_000, "{sent}");
    // Another process knows nothing of the first push.
    let second = push(&link, &entries, &mut Manifest::default(), &options).await;
    assert_eq!(
        second.unwrap(),
        SyncReport {
            unchanged: 2,
            ..SyncReport::default()
        }
    );
    let sent = written.load(Ordering::Relaxed);
    assert!(sent < 500, "{sent}");
    drop(link);
    ground.end().await;
}

#[tokio::test]
async fn a_file_is_read_and_removed_and_failures_have_kinds() {
    let ground = Ground::new().await;
    let root = || ground.path("there").to_str().unwrap().into();
    let get = |path: &str| {
        ground.link.get_file(GetFile {
            root: root(),
            path: path.into(),
            max_bytes: 100_000,
        })
    };
    fs::write(ground.there("file"), vec![5; 100_000]).unwrap();
    let mut download = get("file").unwrap();
    let mut bytes = Vec::new();
    let sent = loop {
        match download.next().await.unwrap() {
            FilePiece::Bytes(piece) => bytes.extend_from_slice(&piece),
            FilePiece::Done(sent) => break sent,
        }
    };
    assert_eq!(bytes, vec![5; 100_000]);
    assert_eq!(sent.sha256, Content::of(&bytes).digest.to_string());

    fs::write(ground.there("long"), vec![5; 100_001]).unwrap();
    fs::create_dir(ground.there("folder")).unwrap();
    symlink("file", ground.there("link")).unwrap();
    for (path, kind) in [
        ("long", FailureKind::TooMuch),
        ("folder", FailureKind::NotAFile),
        ("link", FailureKind::Link),
        ("none", FailureKind::NoFile),
        ("file/below", FailureKind::NotAFolder),
        ("../there/file", FailureKind::BadRequest),
        ("/etc/passwd", FailureKind::BadRequest),
    ] {
        let mut download = get(path).unwrap();
        let error = loop {
            match download.next().await {
                Ok(FilePiece::Bytes(_)) => {}
                Ok(FilePiece::Done(sent)) => panic!("{path}: {sent:?}"),
                Err(error) => break error,
            }
        };
        assert!(
            matches!(&error, PlaceError::Failed(failure) if failure.kind == kind),
            "{path}: {error:?}"
        );
    }
    let remove = |path: &str| {
        ground.link.remove_file(RemoveFile {
            root: root(),
            path: path.into(),
        })
    };
    assert!(remove("file").await.unwrap());
    assert!(!remove("file").await.unwrap());
    assert!(remove("link").await.is_err());
    ground.end().await;
}
