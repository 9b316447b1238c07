//! A guest that lies.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use exoshell_files::Content;
use exoshell_mux::{Channel, Connection, Options, Role};
use exoshell_place::{Link, Pipe};
use exoshell_wire::{
    FileEntry, FileKind, FileRoot, FileSent, FilesScanned, Frame, FrameDecoder, GuestHello, Kind,
    RawBytes, Reply, Request, stream,
};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use super::testing::{link_options, names};
use super::{Direction, Manifest, SyncEntry, SyncError, SyncOptions, SyncReport, pull, push};

/// What a lying guest answers.
#[derive(Clone)]
struct Lies {
    entries: Vec<FileEntry>,
    root: FileRoot,
    /// What it sends for every file.
    file: Vec<u8>,
    /// Done before a file is sent.
    meanwhile: Option<Arc<dyn Fn() + Send + Sync>>,
}

impl Lies {
    fn of(entries: Vec<FileEntry>) -> Self {
        Self {
            entries,
            root: FileRoot::Folder,
            file: b"evil".to_vec(),
            meanwhile: None,
        }
    }
}

fn file(path: impl Into<RawBytes>) -> FileEntry {
    let content = Content::of(b"evil");
    FileEntry {
        path: path.into(),
        kind: FileKind::File,
        mode: 0o4777,
        mtime_ns: 0,
        size: Some(content.size),
        sha256: Some(content.digest.to_string()),
        why: None,
    }
}

async fn greet(socket: &mut DuplexStream) -> Vec<u8> {
    let mut decoder = FrameDecoder::default();
    while decoder.next_frame().unwrap().is_none() {
        assert_ne!(socket.read_buf(decoder.buffer()).await.unwrap(), 0);
    }
    let hello = GuestHello {
        version: 1,
        build: "evil".into(),
        incarnation: "evil".into(),
        os: "linux".into(),
        arch: "x86_64".into(),
        uid: 0,
        pid: 1,
        shells: Vec::new(),
        capabilities: vec!["files".into()],
        proc_fs: true,
        refusal: None,
    };
    let frame = Frame::new(Kind::Hello, 0, 0, serde_json::to_vec(&hello).unwrap());
    socket.write_all(&frame.encode()).await.unwrap();
    decoder.buffer().to_vec()
}

async fn answer(lies: Lies, channel: Channel, request: Request) {
    let reply = match request {
        Request::ScanFiles(_) => {
            let line = |entry| serde_json::to_string(entry).unwrap() + "\n";
            let text: String = lies.entries.iter().map(line).collect();
            let _ = channel.send(stream::STDOUT, Bytes::from(text)).await;
            serde_json::to_vec(&Reply::Ok(FilesScanned {
                root: lies.root,
                entries: lies.entries.len() as u64,
            }))
        }
        Request::GetFile(_) => {
            if let Some(meanwhile) = lies.meanwhile {
                meanwhile();
            }
            let content = Content::of(&lies.file);
            let _ = channel.send(stream::STDOUT, Bytes::from(lies.file)).await;
            serde_json::to_vec(&Reply::Ok(FileSent {
                size: content.size,
                sha256: content.digest.to_string(),
            }))
        }
        other => panic!("{other:?}"),
    };
    let _ = channel.reply(reply.unwrap());
}

async fn link_to(lies: Lies) -> Link {
    let (ours, mut theirs) = tokio::io::duplex(64 * 1024);
    tokio::spawn(async move {
        let early = greet(&mut theirs).await;
        let (reader, writer) = tokio::io::split(theirs);
        let (_connection, mut incoming) =
            Connection::start(reader, writer, Role::Guest, Options::default(), &early);
        while let Some((channel, body)) = incoming.accept().await {
            let request = serde_json::from_slice(&body).unwrap();
            tokio::spawn(answer(lies.clone(), channel, request));
        }
    });
    let (reader, writer) = tokio::io::split(ours);
    let pipe = Pipe::direct(reader, writer);
    Link::open(pipe, &link_options()).await.unwrap()
}

/// Pulls from a lying guest into the folder `here` of a fresh folder.
async fn pull_from(lies: Lies, here: &Path) -> Result<SyncReport, SyncError> {
    let entry = SyncEntry {
        local: here.to_owned(),
        remote: "~/data".into(),
        direction: Direction::Both,
    };
    let mut options = SyncOptions::default();
    options.limits.entries = 10;
    options.limits.file_bytes = 1000;
    options.limits.total_bytes = 2000;
    let link = link_to(lies).await;
    pull(&link, &[entry], &mut Manifest::default(), &options).await
}

fn ground() -> (TempDir, std::path::PathBuf) {
    let ground = tempfile::tempdir().unwrap();
    let here = ground.path().join("here");
    fs::create_dir(&here).unwrap();
    fs::create_dir(ground.path().join("outside")).unwrap();
    (ground, here)
}

async fn is_refused(entries: Vec<FileEntry>) -> String {
    let (ground, here) = ground();
    // An honest entry first: nothing of a lying answer is used.
    let entries = [vec![file("honest")], entries].concat();
    let shown = format!("{entries:?}");
    let error = match pull_from(Lies::of(entries), &here).await {
        Err(error) => error,
        Ok(report) => panic!("{shown}: {report:?}"),
    };
    assert_eq!(names(ground.path()), ["here", "outside"]);
    assert_eq!(names(&here), Vec::<String>::new());
    assert_eq!(names(ground.path().join("outside")), Vec::<String>::new());
    error.to_string()
}

#[tokio::test]
async fn paths_that_lead_out_are_refused_and_nothing_of_the_answer_is_used() {
    for path in [
        &b"../outside/x"[..],
        b"a/../../outside/x",
        b"/etc/x",
        b"..",
        b".",
        b"./x",
        b"a//b",
        b"a/",
        b"nul\0x",
        b"",
    ] {
        let error = is_refused(vec![file(path.to_vec())]).await;
        assert!(error.contains("sent something forbidden"), "{error}");
    }
    let error = is_refused(vec![file("../outside/\u{1b}[2J")]).await;
    assert!(!error.contains('\u{1b}'), "{error}");
}

#[tokio::test]
async fn answers_that_an_honest_guest_does_not_give_are_refused() {
    let without_hash = FileEntry {
        sha256: None,
        ..file("x")
    };
    let strange_hash = FileEntry {
        sha256: Some("../x".into()),
        ..file("x")
    };
    let too_large = FileEntry {
        size: Some(1001),
        ..file("x")
    };
    for entries in [
        vec![file("x"), file("x")],
        vec![without_hash],
        vec![strange_hash],
        vec![too_large],
        vec![file("x"); 10],
    ] {
        is_refused(entries).await;
    }
}

#[tokio::test]
async fn more_than_was_agreed_is_refused() {
    let (_ground, here) = ground();
    let large = |path: &str| FileEntry {
        size: Some(1000),
        ..file(path)
    };
    let lies = Lies::of(vec![large("a"), large("b"), file("c")]);
    let error = pull_from(lies, &here).await.unwrap_err();
    assert!(matches!(error, SyncError::TooMuch { limit: 2000, .. }));
    // A file that does not end where it said.
    let lies = Lies {
        file: vec![1; 100_000],
        ..Lies::of(vec![file("x")])
    };
    let error = pull_from(lies, &here).await.unwrap_err();
    assert!(matches!(error, SyncError::Forbidden { .. }), "{error}");
    assert_eq!(names(&here), Vec::<String>::new());
}

#[tokio::test]
async fn a_single_file_cannot_become_a_folder() {
    let (ground, here) = ground();
    let config = here.join("config");
    fs::write(&config, "old").unwrap();
    let error = pull_from(Lies::of(vec![file("")]), &config)
        .await
        .unwrap_err();
    assert!(matches!(error, SyncError::Forbidden { .. }), "{error}");
    let report = pull_from(Lies::of(vec![file("x")]), &config).await.unwrap();
    assert_eq!(report.skipped.len(), 1);
    let lies = Lies {
        root: FileRoot::File,
        ..Lies::of(vec![file("x")])
    };
    assert!(pull_from(lies, &config).await.is_err());
    assert_eq!(fs::read(&config).unwrap(), b"old");
    assert_eq!(names(&here), ["config"]);
    drop(ground);
}

#[tokio::test]
async fn a_link_that_appears_while_a_file_is_fetched_is_not_followed() {
    let (ground, here) = ground();
    let [sub, outside] = [here.join("sub"), ground.path().join("outside")];
    fs::create_dir(&sub).unwrap();
    let lies = Lies {
        meanwhile: Some(Arc::new({
            let (here, sub, outside) = (here.clone(), sub.clone(), outside.clone());
            move || {
                // Both a folder on the way and the file itself are swapped.
                if fs::rename(&sub, here.join("moved")).is_ok() {
                    symlink(&outside, &sub).unwrap();
                    symlink(outside.join("target"), here.join("file")).unwrap();
                }
            }
        })),
        ..Lies::of(vec![file("file"), file("sub/file")])
    };
    let _ = pull_from(lies, &here).await.unwrap();
    assert_eq!(names(&outside), Vec::<String>::new());
    assert!(
        fs::symlink_metadata(here.join("file"))
            .unwrap()
            .is_symlink()
    );
}

#[tokio::test]
async fn an_edit_while_a_file_is_fetched_makes_it_a_conflict() {
    let (_ground, here) = ground();
    let ours = here.join("file");
    let lies = Lies {
        meanwhile: Some(Arc::new({
            let ours = ours.clone();
            move || fs::write(&ours, "ours").unwrap()
        })),
        ..Lies::of(vec![file("file")])
    };
    let report = pull_from(lies, &here).await.unwrap();
    assert_eq!(report.conflicts.len(), 1);
    assert_eq!(fs::read(&ours).unwrap(), b"ours");
    assert_eq!(
        fs::read(here.join("file.exoshell-remote")).unwrap(),
        b"evil"
    );
}

#[tokio::test]
async fn permissions_from_a_place_are_not_taken_over() {
    use std::os::unix::fs::PermissionsExt as _;
    let (_ground, here) = ground();
    pull_from(Lies::of(vec![file("x")]), &here).await.unwrap();
    let mode = fs::metadata(here.join("x")).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o755);
}

#[tokio::test]
async fn names_kept_for_conflicts_do_not_come_from_a_place() {
    let (_ground, here) = ground();
    let report = pull_from(Lies::of(vec![file("a.exoshell-remote")]), &here).await;
    assert_eq!(report.unwrap().skipped.len(), 1);
    assert_eq!(names(&here), Vec::<String>::new());
}

#[tokio::test]
async fn a_push_believes_only_what_it_asked_for() {
    let (_ground, here) = ground();
    fs::write(here.join("file"), "x").unwrap();
    let entry = SyncEntry {
        local: here,
        remote: "/data".into(),
        direction: Direction::In,
    };
    let link = link_to(Lies::of(vec![file("other")])).await;
    let options = SyncOptions::default();
    let error = push(&link, &[entry], &mut Manifest::default(), &options).await;
    assert!(matches!(error, Err(SyncError::Forbidden { .. })));
}
