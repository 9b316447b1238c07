//! Full disks, cut pipes, killed guests.

use std::fs;
use std::path::Path;
use std::process::Command;

use bytes::Bytes;
use exoshell_files::Content;
use exoshell_place::{Link, Pipe, PlaceError};
use exoshell_wire::{FailureKind, PutFile};

use super::testing::{Ground, link_options, names, raw_socket, read};
use super::{Direction, SyncError};

fn put(ground: &Ground, content: Content) -> PutFile {
    PutFile {
        root: ground.path("there").to_str().unwrap().into(),
        path: "file".into(),
        mode: 0o600,
        size: content.size,
        sha256: content.digest.to_string(),
    }
}

#[tokio::test]
async fn an_interrupted_transfer_leaves_the_old_file_and_nothing_else() {
    let ground = Ground::new().await;
    fs::write(ground.there("file"), "old").unwrap();
    let announced = Content::of(&vec![1; 1_000_000]);
    // The pipe is lost; then only the request is given up.
    let (reader, writer) = raw_socket(&ground.place).await.into_split();
    let pipe = Pipe::direct(reader, writer);
    let lost = Link::open(pipe, &link_options()).await.unwrap();
    for link in [lost, ground.link.clone()] {
        let upload = link.put_file(put(&ground, announced)).unwrap();
        upload.send(Bytes::from(vec![1; 600_000])).await.unwrap();
        drop((upload, link));
        while ground.link.info().await.unwrap().connections > 1 {}
        assert_eq!(names(ground.path("there")), ["file"]);
        assert_eq!(read(ground.there("file")), "old");
    }
    // What arrives is not what was announced.
    let upload = ground.link.put_file(put(&ground, announced)).unwrap();
    upload.send(Bytes::from(vec![2; 1_000_000])).await.unwrap();
    let error = upload.finish().await.unwrap_err();
    assert!(matches!(error, PlaceError::Failed(failure) if failure.kind == FailureKind::Damaged));
    assert_eq!(names(ground.path("there")), ["file"]);
    assert_eq!(read(ground.there("file")), "old");
    ground.end().await;
}

#[tokio::test]
async fn a_guest_that_is_killed_while_it_writes_leaves_nothing_half() {
    let ground = Ground::new().await;
    fs::write(ground.there("file"), "old").unwrap();
    let upload = ground
        .link
        .put_file(put(&ground, Content::of(&vec![1; 1_000_000])))
        .unwrap();
    upload.send(Bytes::from(vec![1; 600_000])).await.unwrap();
    let pid = ground.link.info().await.unwrap().pid;
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    ground.link.closed().await;
    assert_eq!(names(ground.path("there")), ["file"]);
    assert_eq!(read(ground.there("file")), "old");
}

#[tokio::test]
async fn a_full_disk_in_the_place_is_said_and_leaves_what_was_there() {
    let mut ground = Ground::new().await;
    let disk = Disk::mount(&ground.path("there"));
    let entry = ground.entry(Direction::Both);
    fs::write(ground.there("large"), "old").unwrap();
    fs::write(ground.here("large"), vec![1; 1_000_000]).unwrap();
    fs::write(ground.here("small"), "fits").unwrap();
    let error = ground.push(&entry).await.unwrap_err();
    assert!(
        matches!(&error, SyncError::Place(PlaceError::Failed(failure))
            if failure.kind == FailureKind::DiskFull),
        "{error}"
    );
    assert_eq!(
        error.hint().unwrap(),
        "free some space in the place, or sync less"
    );
    assert_eq!(read(ground.there("large")), "old");
    // What did arrive is remembered.
    fs::remove_file(ground.here("large")).unwrap();
    let report = ground.push(&entry).await.unwrap();
    assert_eq!((report.bytes, report.unchanged), (0, 1));
    drop(disk);
    ground.end().await;
}

/// A file system of 128 KiB.
struct Disk(std::path::PathBuf);

impl Disk {
    fn mount(path: &Path) -> Self {
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", "size=128k", "tmpfs"])
            .arg(path)
            .status()
            .unwrap();
        assert!(mounted.success(), "this test has to mount a tmpfs");
        Self(path.to_owned())
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("-l").arg(&self.0).status();
        assert!(unmounted.unwrap().success());
    }
}

#[tokio::test]
async fn a_full_disk_here_is_said_and_leaves_what_was_there() {
    let mut ground = Ground::new().await;
    let entry = ground.entry(Direction::Both);
    let disk = Disk::mount(&ground.path("here"));
    fs::write(ground.here("file"), "old").unwrap();
    ground.push(&entry).await.unwrap();
    fs::write(ground.there("file"), vec![1; 1_000_000]).unwrap();
    let error = ground.pull(&entry).await.unwrap_err();
    assert_eq!(error.hint().unwrap(), "free some space on this machine");
    assert_eq!(names(ground.path("here")), ["file"]);
    assert_eq!(read(ground.here("file")), "old");
    drop(disk);
    ground.end().await;
}
