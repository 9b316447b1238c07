use std::fs;
use std::os::unix::fs::symlink;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;

use super::*;
use crate::{Link, LinkOptions};

/// Shows the test's folder at `/srv` and empty ones where programs usually put files.
const SETUP: &str = r#"root=$1; path=$2; filter=$3; shift 3
mount --bind "$root" /srv &&
mount -t tmpfs x /tmp && mount -t tmpfs x /var/tmp && mount -t tmpfs x /dev/shm || exit 1
if [ -n "$filter" ]; then sh -c "$filter" | exec env -i HOME=/srv/home PATH="$path" "$@"
else exec env -i HOME=/srv/home PATH="$path" "$@"; fi"#;

/// A place on this machine that sees only some programs, and counts what is started in it.
struct Cell {
    root: TempDir,
    path: String,
    /// What the input goes through first.
    filter: &'static str,
    launches: AtomicUsize,
}

impl Cell {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("home")).unwrap();
        Self {
            root,
            path: "/usr/bin:/bin".to_owned(),
            filter: "",
            launches: AtomicUsize::new(0),
        }
    }

    /// Leaves only what every system has, and these.
    fn with_only(more: &[&str]) -> Self {
        let mut cell = Self::new();
        let bin = cell.root.path().join("bin");
        fs::create_dir(&bin).unwrap();
        let always = "sh id mkdir chmod ls cat rm mv uname find wc sleep";
        for name in always.split(' ').chain(more.iter().copied()) {
            symlink(format!("/usr/bin/{name}"), bin.join(name)).unwrap();
        }
        cell.path = "/srv/bin".to_owned();
        cell
    }

    fn bootstrap(&self) -> Bootstrap<'_> {
        Bootstrap {
            launcher: self,
            key: "test",
            folder: None,
            guest_dir: None,
            arguments: &[],
        }
    }

    async fn open(&self) -> Result<Link, PlaceError> {
        let pipe = self.bootstrap().open(&Progress::default()).await?;
        Self::greet(pipe).await
    }

    async fn greet(pipe: Pipe) -> Result<Link, PlaceError> {
        let options = LinkOptions {
            build: "test".to_owned(),
            linger: false,
            max_warm_shells: 0,
            heartbeat: None,
        };
        Link::open(pipe, &options).await
    }

    fn launches(&self) -> usize {
        self.launches.swap(0, Ordering::SeqCst)
    }
}

impl Launcher for Cell {
    fn launch<'a>(&'a self, words: &'a [String]) -> PlaceFuture<'a, Launched> {
        self.launches.fetch_add(1, Ordering::SeqCst);
        let root = self.root.path().to_string_lossy().into_owned();
        let mut all: Vec<String> = ["unshare", "--mount", "sh", "-c", SETUP, "sh", &root]
            .map(str::to_owned)
            .to_vec();
        all.extend([self.path.clone(), self.filter.to_owned()]);
        all.extend_from_slice(words);
        Box::pin(async move { Ok(Launched::program(&all).unwrap()) })
    }
}

#[test]
fn the_scripts_survive_single_quotes_of_any_shell() {
    for script in [script::FIND, script::INSTALL, script::LOOK, script::ECHO] {
        for hard in ['\'', '\\', '!', '\n', '\r', '\t'] {
            assert!(!script.contains(hard), "{hard:?} in {script}");
        }
        assert!(!script.contains("/dev/null"), "{script}");
    }
}

#[tokio::test]
async fn the_first_time_takes_three_programs_and_every_other_one() {
    let cell = Cell::new();
    let first = cell.open().await.unwrap();
    assert_eq!(cell.launches(), 3);
    let second = cell.open().await.unwrap();
    assert_eq!(cell.launches(), 1);
    assert_eq!(
        first.info().await.unwrap().pid,
        second.info().await.unwrap().pid
    );
    drop(second);
    first.shut_down().await.unwrap();
}

#[tokio::test]
async fn any_tool_that_hashes_will_do_and_none_as_well() {
    for tools in [
        &["sha256sum"][..],
        &["shasum", "perl"],
        &["openssl"],
        &["busybox"],
        &[],
    ] {
        let cell = Cell::with_only(tools);
        let link = cell
            .open()
            .await
            .unwrap_or_else(|error| panic!("{tools:?}: {error}"));
        link.shut_down().await.unwrap();
    }
}

#[tokio::test]
async fn what_arrives_damaged_is_not_run() {
    for tools in [
        &["sha256sum"][..],
        &["shasum", "perl"],
        &["openssl"],
        &["busybox"],
    ] {
        let mut cell = Cell::with_only(tools);
        // A text in the program's data, so that it would run all the same.
        cell.filter = "exec /usr/bin/sed s/exoshell-guest:/exoshell-ghost:/g";
        let error = cell.open().await.expect_err("a refusal");
        assert!(matches!(error, PlaceError::NoGuest { .. }), "{error}");
        assert!(error.to_string().contains("damaged"), "{error}");
        let folder = cell.root.path().join("home/.cache/exoshell");
        let inside = folder.join(bundle::embedded().folder_name());
        assert_eq!(fs::read_dir(inside).unwrap().count(), 0, "nothing is left");
    }
}

#[tokio::test]
async fn what_arrives_cut_is_not_run() {
    let mut cell = Cell::with_only(&[]);
    cell.filter = "exec /usr/bin/head -c 100000";
    let error = cell.open().await.expect_err("a refusal");
    assert!(error.to_string().contains("only 100000 of"), "{error}");
}

#[tokio::test]
async fn a_platform_without_a_guest_is_left_to_a_plain_shell() {
    let cell = Cell::with_only(&[]);
    let uname = cell.root.path().join("bin/uname");
    fs::remove_file(&uname).unwrap();
    fs::write(
        &uname,
        "#!/bin/sh\ncase $1 in -s) echo Linux;; *) echo mips;; esac\n",
    )
    .unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&uname, mode).unwrap();
    let platform = cell.bootstrap().platform().await.unwrap();
    assert_eq!(
        (platform.os.as_str(), platform.arch.as_str()),
        ("Linux", "mips")
    );
    let error = cell.open().await.expect_err("no guest");
    assert!(matches!(error, PlaceError::NoGuest { .. }), "{error}");
    assert!(error.to_string().contains("linux-mips"), "{error}");
}

#[tokio::test]
async fn programs_that_nobody_used_for_a_month_are_removed() {
    let cell = Cell::new();
    let folder = cell.root.path().join("home/.cache/exoshell");
    for name in ["0123456789abcdef", "fedcba9876543210", "kept"] {
        fs::create_dir_all(folder.join(name)).unwrap();
        fs::write(folder.join(name).join("exoshell-guest.used"), "").unwrap();
    }
    let old = std::time::SystemTime::now() - Duration::from_secs(40 * 24 * 3600);
    for name in ["0123456789abcdef", "kept"] {
        let path = folder.join(name).join("exoshell-guest.used");
        let file = fs::OpenOptions::new().write(true).open(path).unwrap();
        file.set_modified(old).unwrap();
    }
    cell.open().await.unwrap().shut_down().await.unwrap();
    assert!(!folder.join("0123456789abcdef").exists());
    assert!(folder.join("fedcba9876543210").exists());
    assert!(folder.join("kept").exists());
}

#[tokio::test]
async fn a_folder_may_have_any_name() {
    let cell = Cell::new();
    let name = "it's \"my\" $folder * `x` \\";
    let folder = format!("/srv/{name}");
    let bootstrap = Bootstrap {
        folder: Some(&folder),
        ..cell.bootstrap()
    };
    let pipe = bootstrap.open(&Progress::default()).await.unwrap();
    assert_eq!(bootstrap.likely_folder().await.unwrap().unwrap(), folder);
    let inside = cell.root.path().join(name);
    let program = inside.join(bundle::embedded().folder_name());
    assert!(program.join(bundle::FILE_NAME).exists());
    Cell::greet(pipe).await.unwrap().shut_down().await.unwrap();
}

#[tokio::test]
async fn a_guest_of_another_build_is_found_through_its_own_program() {
    let cell = Cell::new();
    let link = cell.open().await.unwrap();
    let folder = cell.root.path().join("home/.cache/exoshell");
    fs::rename(
        folder.join(bundle::embedded().folder_name()),
        folder.join("0123456789abcdef"),
    )
    .unwrap();
    let found = cell.bootstrap().open_existing().await.unwrap();
    assert!(found.is_some());
    drop(found);
    link.shut_down().await.unwrap();
}

#[test]
fn the_guests_own_words_are_told_from_those_about_it() {
    assert_eq!(own_words("exoshell-guest: no folder"), Some("no folder"));
    assert_eq!(
        own_words("Welcome; exoshell-guest: no folder"),
        Some("no folder")
    );
    assert_eq!(own_words("sh: 1: exec: /a/exoshell-guest: not found"), None);
    assert_eq!(own_words(""), None);
}
