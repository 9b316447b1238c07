use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use proptest::prelude::*;
use rustix::fs::{Mode, RenameFlags};
use tempfile::TempDir;

use crate::{Content, Entry, EntryKind, FilesError, Limits, RelPath, Root, RootKind};

/// Opens a root in the way of a new system and in that of an old one.
fn both_ways(path: &Path) -> [Root; 2] {
    let open = || Root::open(path).unwrap();
    [open(), open().on_an_old_system()]
}

fn rel(path: &str) -> RelPath {
    RelPath::new(path).unwrap()
}

fn write(root: &Root, path: &str, bytes: &[u8]) -> Result<Content, FilesError> {
    let mut draft = root.draft(&rel(path), 0o640)?;
    draft.write(bytes)?;
    draft.commit(None)
}

fn scan_with(root: &Root, limits: &Limits) -> Result<Vec<Entry>, FilesError> {
    let mut entries = Vec::new();
    root.scan(limits, &mut |entry| {
        entries.push(entry);
        ControlFlow::Continue(())
    })?;
    Ok(entries)
}

fn scan(root: &Root) -> Vec<(Vec<u8>, EntryKind)> {
    let entries = scan_with(root, &Limits::default()).unwrap();
    entries
        .into_iter()
        .map(|entry| (entry.path.as_bytes().to_vec(), entry.kind))
        .collect()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// A tree beside a folder that must stay as it is.
struct Ground {
    _all: TempDir,
    tree: PathBuf,
    outside: PathBuf,
}

impl Ground {
    fn new() -> Self {
        let all = tempfile::tempdir().unwrap();
        let [tree, outside] = ["tree", "outside"].map(|name| all.path().join(name));
        fs::create_dir(&tree).unwrap();
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("secret"), "secret").unwrap();
        Self {
            tree,
            outside,
            _all: all,
        }
    }

    fn outside_is_untouched(&self) {
        assert_eq!(names(&self.outside), ["secret"]);
        assert_eq!(fs::read(self.outside.join("secret")).unwrap(), b"secret");
    }
}

#[test]
fn this_kernel_keeps_paths_beneath_by_itself() {
    let ground = Ground::new();
    let root = Root::open(&ground.tree).unwrap();
    assert_eq!(root.beneath, super::Beneath::Kernel);
}

#[test]
fn a_scan_shows_everything_and_follows_nothing() {
    let ground = Ground::new();
    let tree = &ground.tree;
    fs::create_dir_all(tree.join("b/c")).unwrap();
    fs::write(tree.join("b/c/file"), "x").unwrap();
    fs::write(tree.join(OsStr::from_bytes(b"a\xff")), "").unwrap();
    symlink(&ground.outside, tree.join("link")).unwrap();
    symlink("/nowhere", tree.join("dangling")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, tree.join("pipe"), Mode::RWXU).unwrap();
    for root in both_ways(tree) {
        let odd = EntryKind::Skipped("it is a device, a socket or a FIFO".to_owned());
        let expected = [
            (&b"a\xff"[..], EntryKind::File(Content::of(b""))),
            (b"b", EntryKind::Folder),
            (b"b/c", EntryKind::Folder),
            (b"b/c/file", EntryKind::File(Content::of(b"x"))),
            (b"dangling", EntryKind::Link),
            (b"link", EntryKind::Link),
            (b"pipe", odd),
        ];
        assert_eq!(
            scan(&root),
            expected.map(|(path, kind)| (path.to_vec(), kind))
        );
    }
}

#[test]
fn a_scan_is_bounded() {
    let ground = Ground::new();
    fs::create_dir_all(ground.tree.join("a/b")).unwrap();
    fs::write(ground.tree.join("a/b/c"), "four").unwrap();
    let root = Root::open(&ground.tree).unwrap();
    let limits = Limits {
        entries: 3,
        depth: 2,
        file_bytes: 4,
    };
    assert_eq!(scan_with(&root, &limits).unwrap().len(), 3);
    let fewer = Limits {
        entries: 2,
        ..limits
    };
    assert!(matches!(
        scan_with(&root, &fewer),
        Err(FilesError::TooMany { limit: 2, .. })
    ));
    let flat = Limits { depth: 1, ..limits };
    let entries = scan_with(&root, &flat).unwrap();
    assert_eq!(
        entries.last().unwrap().kind,
        EntryKind::Skipped("it lies too deep".to_owned())
    );
    let small = Limits {
        file_bytes: 3,
        ..limits
    };
    let entries = scan_with(&root, &small).unwrap();
    assert_eq!(
        entries.last().unwrap().kind,
        EntryKind::Skipped("it is larger than 3 bytes".to_owned())
    );
}

#[test]
fn a_scan_ends_when_nobody_wants_more() {
    let ground = Ground::new();
    for name in ["a", "b", "c"] {
        fs::write(ground.tree.join(name), "").unwrap();
    }
    let root = Root::open(&ground.tree).unwrap();
    let mut seen = 0;
    root.scan(&Limits::default(), &mut |_| {
        seen += 1;
        ControlFlow::Break(())
    })
    .unwrap();
    assert_eq!(seen, 1);
}

#[test]
fn a_file_appears_with_its_folders_and_its_mode() {
    let ground = Ground::new();
    for (root, name) in both_ways(&ground.tree).into_iter().zip(["new", "old"]) {
        let path = format!("{name}/deep/file");
        let mut draft = root.draft(&rel(&path), 0o4_751).unwrap();
        draft.write(b"one ").unwrap();
        draft.write(b"two").unwrap();
        assert!(!ground.tree.join(&path).exists());
        assert_eq!(draft.commit(None).unwrap(), Content::of(b"one two"));
        let mode = |path: &str| {
            fs::metadata(ground.tree.join(path))
                .unwrap()
                .permissions()
                .mode()
        };
        assert_eq!(mode(&path) & 0o7777, 0o751);
        assert_eq!(mode(name) & 0o7777, 0o700);
        assert_eq!(names(&ground.tree.join(name).join("deep")), ["file"]);
        assert_eq!(fs::read(ground.tree.join(&path)).unwrap(), b"one two");
    }
}

#[test]
fn what_is_dropped_or_damaged_leaves_the_old_file_and_nothing_else() {
    let ground = Ground::new();
    fs::write(ground.tree.join("file"), "old").unwrap();
    for root in both_ways(&ground.tree) {
        let mut draft = root.draft(&rel("file"), 0o600).unwrap();
        draft.write(b"half").unwrap();
        drop(draft);
        let mut draft = root.draft(&rel("file"), 0o600).unwrap();
        draft.write(b"other").unwrap();
        let announced = Some(Content::of(b"another"));
        assert!(matches!(
            draft.commit(announced),
            Err(FilesError::Damaged { .. })
        ));
        assert_eq!(names(&ground.tree), ["file"]);
        assert_eq!(fs::read(ground.tree.join("file")).unwrap(), b"old");
    }
}

#[test]
fn an_unfinished_file_is_not_part_of_the_tree() {
    let ground = Ground::new();
    let root = Root::open(&ground.tree).unwrap().on_an_old_system();
    let mut draft = root.draft(&rel("file"), 0o600).unwrap();
    draft.write(b"half").unwrap();
    assert_eq!(names(&ground.tree).len(), 1);
    assert_eq!(scan(&root), []);
}

#[test]
fn links_are_neither_followed_nor_replaced() {
    let ground = Ground::new();
    symlink(&ground.outside, ground.tree.join("folder")).unwrap();
    symlink(ground.outside.join("secret"), ground.tree.join("file")).unwrap();
    symlink("..", ground.tree.join("up")).unwrap();
    for root in both_ways(&ground.tree) {
        for path in ["folder/secret", "file", "up/outside/secret", "folder/new"] {
            let is_link = |error| assert!(matches!(error, FilesError::Link { .. }), "{error:?}");
            is_link(write(&root, path, b"evil").unwrap_err());
            is_link(root.open_file(&rel(path)).unwrap_err());
            is_link(root.remove(&rel(path)).unwrap_err());
        }
        assert_eq!(
            root.look(&rel("file"), &Limits::default())
                .unwrap()
                .unwrap()
                .kind,
            EntryKind::Link
        );
        ground.outside_is_untouched();
        assert_eq!(names(&ground.tree), ["file", "folder", "up"]);
    }
}

#[test]
fn only_regular_files_are_read_replaced_and_removed() {
    let ground = Ground::new();
    fs::create_dir(ground.tree.join("folder")).unwrap();
    fs::write(ground.tree.join("file"), "text").unwrap();
    let pipe = ground.tree.join("pipe");
    rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::RWXU).unwrap();
    for root in both_ways(&ground.tree) {
        for path in ["folder", "pipe"] {
            let no_file =
                |error| assert!(matches!(error, FilesError::NotAFile { .. }), "{error:?}");
            no_file(write(&root, path, b"").unwrap_err());
            no_file(root.open_file(&rel(path)).unwrap_err());
            no_file(root.remove(&rel(path)).unwrap_err());
        }
        assert!(matches!(
            write(&root, "file/below", b""),
            Err(FilesError::NotAFolder { .. })
        ));
        assert!(!root.remove(&rel("none")).unwrap());
        assert!(!root.remove(&rel("none/below")).unwrap());
        assert!(matches!(
            root.open_file(&rel("none")),
            Err(FilesError::Missing { .. })
        ));
        write(&root, "gone", b"").unwrap();
        assert!(root.remove(&rel("gone")).unwrap());
        assert_eq!(names(&ground.tree), ["file", "folder", "pipe"]);
    }
}

#[test]
fn a_root_may_be_one_file_and_a_link_to_it_stays_a_link() {
    let ground = Ground::new();
    fs::write(ground.tree.join("real"), "old").unwrap();
    let link = ground.tree.join("link");
    symlink("real", &link).unwrap();
    for root in both_ways(&link) {
        assert_eq!(root.kind(), RootKind::File);
        write(&root, "", b"new").unwrap();
        assert!(write(&root, "other", b"").is_err());
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(
            scan(&root),
            [(Vec::new(), EntryKind::File(Content::of(b"new")))]
        );
    }
    assert_eq!(names(&ground.tree), ["link", "real"]);
    let folder = Root::open(&ground.tree).unwrap();
    assert!(matches!(
        write(&folder, "", b""),
        Err(FilesError::NotAFile { .. })
    ));
}

#[test]
fn a_missing_root_is_made_as_what_it_shall_be() {
    let ground = Ground::new();
    let file = ground.tree.join("a/file");
    let root = Root::create(&file, RootKind::File).unwrap();
    write(&root, "", b"x").unwrap();
    assert_eq!(fs::read(&file).unwrap(), b"x");
    assert!(matches!(
        Root::create(&file, RootKind::Folder),
        Err(FilesError::NotAFolder { .. })
    ));
    assert!(matches!(
        Root::create(&ground.tree, RootKind::File),
        Err(FilesError::NotAFile { .. })
    ));
    assert!(matches!(
        Root::open(&ground.tree.join("none")),
        Err(FilesError::Missing { .. })
    ));
    let folder = Root::create(&ground.tree.join("b/c"), RootKind::Folder).unwrap();
    assert_eq!(folder.kind(), RootKind::Folder);
}

/// Ends the other thread, also when a test fails.
struct Ended<'a>(&'a AtomicBool);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn a_folder_that_becomes_a_link_at_any_moment_leads_nowhere() {
    let ground = Ground::new();
    let [folder, link] = ["d", "l"].map(|name| ground.tree.join(name));
    fs::create_dir(&folder).unwrap();
    symlink(&ground.outside, &link).unwrap();
    let done = AtomicBool::new(false);
    let swap = || {
        while !done.load(Ordering::Relaxed) {
            let at = rustix::fs::CWD;
            rustix::fs::renameat_with(at, &folder, at, &link, RenameFlags::EXCHANGE).unwrap();
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(swap);
        let _ended = Ended(&done);
        let (mut written, mut refused) = (0, 0);
        for root in both_ways(&ground.tree) {
            for _ in 0..1500 {
                match write(&root, "d/new", b"x") {
                    Ok(_) => written += 1,
                    Err(_) => refused += 1,
                }
                if let Ok(file) = root.open_file(&rel("d/secret")) {
                    panic!("{file:?} is outside");
                }
                for entry in scan_with(&root, &Limits::default()).unwrap() {
                    assert!(!entry.path.as_bytes().ends_with(b"secret"));
                }
            }
        }
        assert!(written > 0 && refused > 0, "{written} {refused}");
    });
    ground.outside_is_untouched();
}

#[test]
fn a_full_disk_leaves_the_old_file_and_nothing_else() {
    let ground = Ground::new();
    let disk = Disk::mount(&ground.tree);
    fs::write(ground.tree.join("file"), "old").unwrap();
    for root in both_ways(&ground.tree) {
        let error = write(&root, "file", &vec![1; 1024 * 1024]).unwrap_err();
        assert!(matches!(error, FilesError::NoSpace { .. }), "{error:?}");
        assert_eq!(names(&ground.tree), ["file"]);
        assert_eq!(fs::read(ground.tree.join("file")).unwrap(), b"old");
        // What was given up is free again.
        write(&root, "fits", &vec![1; 60 * 1024]).unwrap();
        assert!(root.remove(&rel("fits")).unwrap());
    }
    drop(disk);
}

/// A file system of 128 KiB.
struct Disk(PathBuf);

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
        let unmounted = Command::new("umount")
            .arg("-l")
            .arg(&self.0)
            .status()
            .unwrap();
        assert!(unmounted.success());
    }
}

fn any_name() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 1..6).prop_map(|mut name| {
        for byte in &mut name {
            if *byte == 0 || *byte == b'/' || *byte == b'.' {
                *byte = b'_';
            }
        }
        name
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn what_was_written_is_what_a_scan_shows(
        files in prop::collection::btree_map(
            (any_name(), any_name()), prop::collection::vec(any::<u8>(), 0..300), 0..12,
        ),
        old in any::<bool>(),
    ) {
        let ground = Ground::new();
        let mut root = Root::open(&ground.tree).unwrap();
        if old {
            root = root.on_an_old_system();
        }
        let mut expected = BTreeMap::new();
        for ((folder, name), bytes) in files {
            let path = RelPath::new([&folder[..], &name[..]].join(&b'/')).unwrap();
            let mut draft = root.draft(&path, 0o600).unwrap();
            draft.write(&bytes).unwrap();
            draft.commit(Some(Content::of(&bytes))).unwrap();
            expected.insert(path, Content::of(&bytes));
        }
        let entries = scan_with(&root, &Limits::default()).unwrap();
        let found = entries
            .into_iter()
            .filter_map(|entry| entry.content().map(|content| (entry.path, content)))
            .collect();
        prop_assert_eq!(expected, found);
    }
}
