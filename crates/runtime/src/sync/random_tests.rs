//! Random trees and edits, compared with a model.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::testing::Ground;
use super::{Direction, Manifest};

/// A tree in memory: path beneath the root, content.
type Tree = BTreeMap<PathBuf, Vec<u8>>;

/// New content by path; `None` deletes.
type Edits = BTreeMap<PathBuf, Option<Vec<u8>>>;

/// One of a few names, so that edits of both sides meet. None is both a file and a folder.
fn any_path() -> impl Strategy<Value = PathBuf> {
    let folder = prop::sample::select(vec![&b""[..], b"d/", b"d/e/", b"odd\xff/"]);
    let name = prop::sample::select(vec![&b"a"[..], b"b", b"-c", b"n\nl", b"\xfe", b".x"]);
    (folder, name)
        .prop_map(|(folder, name)| PathBuf::from(OsStr::from_bytes(&[folder, name].concat())))
}

fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        8 => prop::collection::vec(any::<u8>(), 0..20),
        // More than a frame, and more than a window.
        1 => any::<u8>().prop_map(|byte| vec![byte; 40_000]),
        1 => any::<u8>().prop_map(|byte| vec![byte; 700_000]),
    ]
}

fn any_tree() -> impl Strategy<Value = Tree> {
    prop::collection::btree_map(any_path(), any_bytes(), 0..10)
}

fn any_edits() -> impl Strategy<Value = Edits> {
    prop::collection::btree_map(any_path(), prop::option::weighted(0.8, any_bytes()), 0..8)
}

fn write(root: &Path, tree: &Tree) {
    for (path, bytes) in tree {
        fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        fs::write(root.join(path), bytes).unwrap();
    }
}

fn read_into(root: &Path, folder: &Path, tree: &mut Tree) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            read_into(root, &path, tree);
        } else {
            let below = path.strip_prefix(root).unwrap().to_owned();
            tree.insert(below, fs::read(&path).unwrap());
        }
    }
}

fn read(root: &Path) -> Tree {
    let mut tree = Tree::new();
    read_into(root, root, &mut tree);
    tree
}

fn edit(root: &Path, tree: &mut Tree, edits: Edits) {
    for (path, bytes) in edits {
        match bytes {
            Some(bytes) => {
                write(root, &[(path.clone(), bytes.clone())].into());
                tree.insert(path, bytes);
            }
            None => {
                if tree.remove(&path).is_some() {
                    fs::remove_file(root.join(path)).unwrap();
                }
            }
        }
    }
}

/// Says what a pull should leave here, and what it should call a conflict.
fn expected_pull(agreed: &Tree, here: &Tree, there: &Tree) -> (Tree, Vec<PathBuf>) {
    let mut result = here.clone();
    let mut conflicts = Vec::new();
    for (path, theirs) in there {
        let (base, ours) = (agreed.get(path), here.get(path));
        if base == Some(theirs) || ours == Some(theirs) {
            continue;
        }
        if base == ours {
            result.insert(path.clone(), theirs.clone());
        } else {
            let mut beside = path.as_os_str().to_owned();
            beside.push(".exoshell-remote");
            result.insert(beside.into(), theirs.clone());
            conflicts.push(path.clone());
        }
    }
    (result, conflicts)
}

fn clear(root: &Path) {
    fs::remove_dir_all(root).unwrap();
    fs::create_dir(root).unwrap();
}

/// The trees of both sides, edits of the place and of this machine, and edits after the pull.
type Plan = (Tree, Tree, Edits, Edits, Edits);

async fn follow(ground: &mut Ground, plan: Plan) -> Result<(), TestCaseError> {
    let (ours, theirs, first, second, third) = plan;
    let entry = ground.entry(Direction::Both);
    let (here, there) = (ground.path("here"), ground.path("there"));
    clear(&here);
    clear(&there);
    ground.manifest = Manifest::default();
    write(&here, &ours);
    write(&there, &theirs);

    // A first push sends what differs and deletes nothing.
    let report = ground.push(&entry).await.unwrap();
    let differ = |(path, bytes): &(&PathBuf, &Vec<u8>)| theirs.get(*path) != Some(*bytes);
    let sizes = ours
        .iter()
        .filter(differ)
        .map(|(_, bytes)| bytes.len() as u64);
    prop_assert_eq!(report.moved.len(), sizes.clone().count());
    prop_assert_eq!(report.bytes, sizes.sum::<u64>());
    let mut remote: Tree = theirs.clone();
    remote.extend(ours.clone());
    prop_assert_eq!(&read(&there), &remote);
    prop_assert_eq!(&read(&here), &ours);

    // A second one sends nothing.
    let report = ground.push(&entry).await.unwrap();
    prop_assert_eq!((report.moved.len(), report.unchanged), (0, ours.len()));

    // Edits of both sides meet in a pull.
    let agreed = ours.clone();
    let mut local = ours;
    edit(&there, &mut remote, first);
    edit(&here, &mut local, second);
    let report = ground.pull(&entry).await.unwrap();
    let (expected, conflicts) = expected_pull(&agreed, &local, &remote);
    prop_assert_eq!(&read(&here), &expected);
    prop_assert_eq!(&read(&there), &remote);
    let named: Vec<_> = report.conflicts.into_iter().map(|one| one.path).collect();
    let conflicts: Vec<_> = conflicts.iter().map(|path| here.join(path)).collect();
    prop_assert_eq!(named, conflicts);
    let deleted = agreed.keys().filter(|path| !remote.contains_key(*path));
    prop_assert_eq!(report.deleted.len(), deleted.count());
    prop_assert_eq!(report.skipped, Vec::new());

    // Nothing more comes after that, and a push makes the place like here.
    let report = ground.pull(&entry).await.unwrap();
    prop_assert_eq!((report.moved.len(), report.conflicts.len()), (0, 0));
    let mut local = expected;
    edit(&here, &mut local, third);
    ground.push(&entry).await.unwrap();
    local.retain(|path, _| !path.as_os_str().as_bytes().ends_with(b".exoshell-remote"));
    remote.extend(local);
    prop_assert_eq!(&read(&there), &remote);
    Ok(())
}

#[test]
fn any_edits_of_both_sides_end_as_the_model_says() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let ground = RefCell::new(runtime.block_on(Ground::new()));
    let mut runner = TestRunner::new(Config {
        cases: 32,
        failure_persistence: None,
        ..Config::default()
    });
    let plans = (
        any_tree(),
        any_tree(),
        any_edits(),
        any_edits(),
        any_edits(),
    );
    let ended = runner.run(&plans, |plan| {
        runtime.block_on(follow(&mut ground.borrow_mut(), plan))
    });
    runtime.block_on(ground.into_inner().end());
    ended.unwrap();
}
