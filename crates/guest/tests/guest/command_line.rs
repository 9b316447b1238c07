//! Which folder is used, who starts the daemon, and when it ends.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use exoshell_wire::{Events, GuestInfo, RawBytes, Request, SessionRef};

use crate::host::{Ended, Host, exec, guest, spec, until};

const ANNOUNCEMENT: &[u8] = b"\x01EXOSHELL-GUEST n0nce\n";

/// Starts `attach` and waits for its announcement, which must be the first it prints.
fn attach(dirs: &[&Path], more: &[&str]) -> Ended {
    let mut command = guest();
    command.arg("attach").args(["--nonce", "n0nce"]).args(more);
    for dir in dirs {
        command.arg("--dir").arg(dir);
    }
    let mut child = Ended(command.stdin(Stdio::piped()).spawn().unwrap());
    let mut said = vec![0; ANNOUNCEMENT.len()];
    let mut stdout = child.0.stdout.take().unwrap();
    stdout.read_exact(&mut said).unwrap();
    assert_eq!(said, ANNOUNCEMENT);
    child.0.stdout = Some(stdout);
    child
}

async fn shut_down(dir: &Path) {
    let host = Host::new(dir).await;
    let () = host.ask(&Request::Shutdown).await;
    until("the guest ends", || !dir.join("guest.sock").exists()).await;
}

#[tokio::test]
async fn the_first_folder_that_can_be_used_wins_and_is_found_again() {
    let root = tempfile::tempdir().unwrap();
    let open = root.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(root.path().join("file"), b"").unwrap();
    let below = root.path().join("file/below");
    let good = root.path().join("new/deep");
    let other = root.path().join("other");

    let first = attach(&[&below, &open, &good, &other], &[]);
    assert!(good.join("guest.sock").exists());
    assert_eq!(
        fs::metadata(&good).unwrap().permissions().mode() & 0o777,
        0o700
    );
    // A folder before it can be used by now, but the guest is where it is.
    fs::remove_file(root.path().join("file")).unwrap();
    let second = attach(&[&below, &good], &[]);
    let third = attach(&[&below, &good], &["--existing"]);
    assert!(!below.exists() && !other.exists());
    let info: GuestInfo = Host::new(&good).await.ask(&Request::Info).await;
    assert_eq!(info.connections, 4);
    drop((first, second, third));
    shut_down(&good).await;
}

#[test]
fn without_a_usable_folder_every_one_is_named() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("file"), b"").unwrap();
    let output = guest()
        .args(["attach", "--nonce", "n0nce"])
        .arg("--dir")
        .arg(root.path().join("file"))
        .arg("--dir")
        .arg(root.path().join("file/below"))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(output.stdout.is_empty());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("file`: ") && said.contains("below`: "),
        "{said}"
    );
}

#[test]
fn an_existing_guest_is_waited_for_but_not_started() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("guest");
    let began = Instant::now();
    let output = guest()
        .args(["attach", "--existing", "--nonce", "n0nce", "--dir"])
        .arg(&dir)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(output.stderr, b"exoshell-guest: no guest here\n");
    assert!(output.stdout.is_empty() && !dir.exists());
    assert!(began.elapsed() >= Duration::from_secs(3));
}

#[tokio::test]
async fn one_that_is_starting_is_found() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("guest");
    let starter = {
        let dir = dir.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(300));
            guest().args(["start", "--dir"]).arg(dir).status().unwrap()
        })
    };
    let attached = attach(&[&dir], &["--existing"]);
    assert!(starter.join().unwrap().success());
    drop(attached);
    shut_down(&dir).await;
}

#[tokio::test]
async fn sessions_start_at_home_with_the_environment_of_the_guest() {
    let root = tempfile::tempdir().unwrap();
    let (dir, home) = (root.path().join("guest"), root.path().join("home"));
    fs::create_dir(&home).unwrap();
    let started = guest()
        .env("KEPT", "yes")
        .env("SECRET", "no")
        .env("BOTH", "old")
        .args(["start", "--dir"])
        .arg(&dir)
        .arg("--home")
        .arg(&home)
        .status()
        .unwrap();
    assert!(started.success());
    let host = Host::new(&dir).await;
    let mut spec = spec();
    spec.env_remove = vec!["SECRET".into(), "BOTH".into()];
    spec.extra_env = vec![("BOTH".into(), "new".into())];
    let command = "echo $PWD:$KEPT:$SECRET:$BOTH";
    let expected = format!("{}:yes::new\n", home.display());

    let mut one_shot = exec("one");
    one_shot.session = SessionRef::OneShot(spec.clone());
    assert_eq!(host.run_exec(one_shot, command).await.0, expected);

    let open = exoshell_wire::OpenSession {
        key: "s".to_owned(),
        spec: spec.clone(),
        only_existing: false,
    };
    let _: exoshell_wire::SessionOpened = host.ask(&Request::OpenSession(open)).await;
    let mut in_session = exec("two");
    in_session.session = SessionRef::Key("s".to_owned());
    assert_eq!(host.run_exec(in_session, command).await.0, expected);

    let mut given = exec("three");
    spec.env = Some(vec![
        ("SECRET".into(), "x".into()),
        ("KEPT".into(), RawBytes(b"own".to_vec())),
    ]);
    given.session = SessionRef::OneShot(spec);
    let (output, _) = host.run_exec(given, command).await;
    assert_eq!(output, format!("{}:own::new\n", home.display()));
    shut_down(&dir).await;
}

#[tokio::test]
async fn an_idle_guest_ends_although_a_host_stays_connected() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("guest");
    let started = guest()
        .args(["start", "--idle-ms", "400", "--dir"])
        .arg(&dir)
        .status()
        .unwrap();
    assert!(started.success());
    let host = Host::new(&dir).await;
    // Waiting for events is nothing to do.
    let events = Events {
        consumer: "test".to_owned(),
        follow: true,
    };
    let _listener = host.open(&Request::Events(events));
    let began = Instant::now();
    // Longer than the limit, but busy.
    let (output, _) = host.run("long", "sleep 0.8; echo ok").await;
    assert_eq!(output, "ok\n");
    let ended = Instant::now();
    assert!(ended.duration_since(began) >= Duration::from_millis(800));
    tokio::time::timeout(Duration::from_secs(5), host.connection.wait_closed())
        .await
        .unwrap();
    assert!(ended.elapsed() >= Duration::from_millis(390));
    until("the socket goes", || !dir.join("guest.sock").exists()).await;
}
