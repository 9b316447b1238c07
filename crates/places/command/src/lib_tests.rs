use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use exoshell_place::{CheckOutcome, ExecEvent, Link, LinkOptions};
use exoshell_wire::{Exec, SessionRef, stream};
use tempfile::TempDir;

use super::*;

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

fn settings(launch: &[&str]) -> CommandSettings {
    CommandSettings {
        launch: words(launch),
        profile: "test".to_owned(),
        ..CommandSettings::default()
    }
}

async fn link(pipe: Pipe) -> Link {
    let options = LinkOptions {
        build: "test".to_owned(),
        linger: true,
        max_warm_shells: 1,
        heartbeat: None,
    };
    Link::open(pipe, &options).await.unwrap()
}

/// Waits for the end of a guest that said goodbye.
async fn wait_until_gone(place: &CommandPlace) {
    let gone = async {
        while place.open_existing().await.unwrap().is_some() {
            tokio::task::yield_now().await;
        }
    };
    let limit = Duration::from_secs(10);
    tokio::time::timeout(limit, gone).await.expect("it ends");
}

async fn connected(place: &CommandPlace) -> Link {
    link(place.open(&Progress::default()).await.unwrap()).await
}

/// Runs a command through the guest and returns what it printed.
async fn run(link: &Link, command: &str) -> String {
    let exec = Exec {
        id: exoshell_place::nonce().unwrap(),
        session: SessionRef::OneShot(serde_json::from_str("{}").unwrap()),
        workdir: None,
        env: Vec::new(),
        timeout_ms: Some(20_000),
        grace_ms: 1000,
        lease_ms: 0,
        merge: true,
        terminal: None,
        stdin: false,
        persist: false,
        spill: None,
        sudo: false,
        redact: None,
    };
    let command = command.as_bytes().to_vec().into();
    let mut running = link.exec(exec, command).await.unwrap();
    let mut output = Vec::new();
    loop {
        match running.next().await.unwrap() {
            ExecEvent::Output { stream, bytes } if stream == stream::STDOUT => {
                output.extend_from_slice(&bytes);
            }
            ExecEvent::Done(_) => return String::from_utf8_lossy(&output).into_owned(),
            _ => {}
        }
    }
}

/// Namespaces with nothing but a sleeper, a folder for scratch files and a name of their own.
struct Namespaces {
    holder: Child,
    inside: u32,
}

impl Namespaces {
    fn start() -> Self {
        let mut holder = std::process::Command::new("unshare")
            .args([
                "--mount",
                "--pid",
                "--uts",
                "--fork",
                "--kill-child",
                "--mount-proc",
            ])
            .args(["sh", "-c"])
            .arg("mount -t tmpfs x /srv && hostname inside && echo ready && exec sleep 1000")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .expect("`unshare` starts; these tests run as root");
        let mut line = String::new();
        let stdout = holder.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let pid = holder.id();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        let inside = children.trim().parse().unwrap();
        Self { holder, inside }
    }

    /// Returns the words that enter them.
    fn enter(&self) -> Vec<String> {
        let pid = self.inside.to_string();
        words(&[
            "nsenter",
            "-t",
            &pid,
            "-m",
            "-p",
            "-u",
            "env",
            "-i",
            "HOME=/srv",
        ])
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

#[tokio::test]
async fn nsenter_as_a_prefix_takes_a_guest_into_namespaces() {
    let (home, there) = (tempfile::tempdir().unwrap(), Namespaces::start());
    let mut launch = there.enter();
    launch.push("PATH=/usr/sbin:/usr/bin:/sbin:/bin".to_owned());
    let settings = CommandSettings {
        launch,
        ..settings(&["x"])
    };
    let place = CommandPlace::new(home.path(), settings, "t").unwrap();
    assert!(place.open_existing().await.unwrap().is_none());
    for check in place.check().await.unwrap() {
        assert_eq!(check.outcome, CheckOutcome::Fine, "{check:?}");
    }
    let first = connected(&place).await;
    assert_eq!(run(&first, "hostname; pwd").await, "inside\n/srv\n");
    let again = link(place.open_existing().await.unwrap().expect("a guest")).await;
    assert_eq!(
        first.info().await.unwrap().pid,
        again.info().await.unwrap().pid
    );
    assert!(
        !Path::new("/srv/.cache").exists(),
        "nothing is made outside"
    );
}

#[tokio::test]
async fn nsenter_starts_the_guest_from_this_machines_files() {
    let (home, there) = (tempfile::tempdir().unwrap(), Namespaces::start());
    let mut launch = there.enter();
    launch.push("{guest}".to_owned());
    let settings = CommandSettings {
        launch,
        ..settings(&["x"])
    };
    let place = CommandPlace::new(home.path(), settings, "t").unwrap();
    assert!(place.open_existing().await.unwrap().is_none());
    assert_eq!(place.check().await.unwrap()[0].outcome, CheckOutcome::Fine);
    let link = connected(&place).await;
    assert_eq!(run(&link, "hostname").await, "inside\n");
    assert!(place.open_existing().await.unwrap().is_some());
    link.shut_down().await.unwrap();
    wait_until_gone(&place).await;
}

#[tokio::test]
async fn unshare_gives_a_guest_namespaces_of_its_own() {
    let home = tempfile::tempdir().unwrap();
    let place = CommandPlace::new(
        home.path(),
        settings(&[
            "unshare",
            "--uts",
            "sh",
            "-c",
            "hostname apart; exec \"$@\"",
            "sh",
            "{guest}",
        ]),
        "t",
    )
    .unwrap();
    let link = connected(&place).await;
    assert_eq!(run(&link, "hostname").await, "apart\n");
    link.shut_down().await.unwrap();
}

/// A root folder with busybox and nothing else: no `/dev`, no `/proc`.
fn bare_root() -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for name in ["bin", "tmp", "root"] {
        fs::create_dir(root.path().join(name)).unwrap();
    }
    fs::copy("/bin/busybox", root.path().join("bin/busybox")).unwrap();
    let made = std::process::Command::new("chroot")
        .arg(root.path())
        .args(["/bin/busybox", "--install", "-s", "/bin"])
        .status();
    assert!(made.unwrap().success());
    root
}

#[tokio::test]
async fn a_chroot_with_only_busybox_takes_a_guest() {
    let (home, root) = (tempfile::tempdir().unwrap(), bare_root());
    let folder = root.path().to_string_lossy().into_owned();
    let place = CommandPlace::new(
        home.path(),
        settings(&[
            "env",
            "-i",
            "HOME=/root",
            "PATH=/usr/sbin:/bin",
            "chroot",
            &folder,
        ]),
        "t",
    )
    .unwrap();
    assert!(place.open_existing().await.unwrap().is_none());
    let link = connected(&place).await;
    assert_eq!(
        run(&link, "pwd; ls /; echo it\\'s").await,
        "/root\nbin\nroot\ntmp\nit's\n"
    );
    assert!(
        !root.path().join("dev").exists(),
        "no device was made a file"
    );
    link.shut_down().await.unwrap();
}

#[tokio::test]
async fn a_guest_that_is_missing_is_put_there_first() {
    let (home, root) = (tempfile::tempdir().unwrap(), bare_root());
    let folder = root.path().to_string_lossy().into_owned();
    let mut settings = settings(&[
        "env",
        "-i",
        "PATH=/usr/sbin:/bin",
        "chroot",
        &folder,
        "{guest}",
    ]);
    settings.guest_path = Some("/bin/guest-{hash}".to_owned());
    settings.put = Some(words(&["cp", "{file}", &format!("{folder}{{target}}")]));
    settings.destroy = Some(words(&["rm", "-r", &format!("{folder}/bin")]));
    let place = CommandPlace::new(home.path(), settings, "t").unwrap();
    assert_eq!(
        place.check().await.unwrap()[0].outcome,
        CheckOutcome::Limited
    );
    let link = connected(&place).await;
    assert_eq!(place.check().await.unwrap()[0].outcome, CheckOutcome::Fine);
    assert_eq!(run(&link, "echo ok").await, "ok\n");
    // Other words go the same way.
    let echo = words(&["/bin/echo", "a  b"]);
    let mut launched = Place::launch(&place, &echo).await.unwrap();
    let mut said = String::new();
    launched.stdout.read_to_string(&mut said).await.unwrap();
    assert_eq!(said, "a  b\n");
    link.shut_down().await.unwrap();
    place.destroy().await.unwrap();
    assert!(!root.path().join("bin").exists());
    let error = place.destroy().await.expect_err("there is nothing left");
    assert!(error.to_string().contains("No such file"), "{error}");
}

#[tokio::test]
async fn a_command_that_does_not_start_anything_is_quoted() {
    let home = tempfile::tempdir().unwrap();
    let failing = |launch: &[&str]| CommandPlace::new(home.path(), settings(launch), "t").unwrap();
    let missing = failing(&["/nonexistent/tool", "{guest}"]);
    let error = missing.open(&Progress::default()).await.expect_err("it");
    assert_eq!(error.trouble(), Some(Trouble::NoProgram));

    let script = "echo no such pod >&2; exit 1";
    for launch in [
        vec!["sh", "-c", script],
        vec!["sh", "-c", script, "{guest}"],
    ] {
        let place = failing(&launch);
        let error = place.open(&Progress::default()).await.expect_err("it");
        assert_eq!(error.trouble(), Some(Trouble::DoesNotStart));
        assert!(error.to_string().contains("no such pod"), "{error}");
        let error = place.open_existing().await.expect_err("nobody knows");
        assert!(error.to_string().contains("no such pod"), "{error}");
        let checks = place.check().await.unwrap();
        assert_eq!(checks[0].outcome, CheckOutcome::Broken);
    }
}

#[tokio::test]
async fn tasks_have_places_of_their_own_where_the_template_says_so() {
    let home = tempfile::tempdir().unwrap();
    let settings = settings(&["env", "WHO={task}", "{guest}"]);
    assert!(settings.is_per_task());
    let one = CommandPlace::new(home.path(), settings.clone(), "one").unwrap();
    let two = CommandPlace::new(home.path(), settings, "two").unwrap();
    let (first, second) = (connected(&one).await, connected(&two).await);
    assert_eq!(run(&first, "echo $WHO").await, "one\n");
    assert_eq!(run(&second, "echo $WHO").await, "two\n");
    assert_eq!(
        one.inspect().await.unwrap().id.as_deref(),
        Some("env 'WHO=one' '{guest}'")
    );
    first.shut_down().await.unwrap();
    second.shut_down().await.unwrap();
}
