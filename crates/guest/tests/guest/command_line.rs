//! Which folder is used, who starts the daemon, and when it ends.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use exoshell_mux::Item;
use exoshell_wire::{
    Events, ExecDone, FailureKind, GuestInfo, ProcessState, ProcessStatus, Processes, RawBytes,
    Request, SessionRef, Start, Wait, Waited, stream,
};

use crate::host::{Ended, Host, answer, exec, guest, is_alive, receive, spec, until};

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

#[tokio::test]
async fn an_idle_guest_stays_while_it_keeps_the_result_of_a_process() {
    const KEEP: Duration = Duration::from_secs(2);
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("guest");
    let keep = KEEP.as_millis().to_string();
    let started = guest()
        .args(["start", "--idle-ms", "200", "--exit-after-ms", "200"])
        .args(["--keep-ms", &keep, "--dir"])
        .arg(&dir)
        .status()
        .unwrap();
    assert!(started.success());
    let host = Host::new(&dir).await;
    let start = Start {
        exec: exec("proc_1"),
        bound: false,
        notify: true,
        watch: Vec::new(),
        check_interval_ms: None,
        disk_bytes: 0,
    };
    let mut channel = host.open(&Request::Start(Box::new(start)));
    let command = Bytes::from_static(b"echo done; exit 3");
    channel.send_all(stream::COMMAND, command).await.unwrap();
    let _: ProcessStatus = answer(&mut channel).await.unwrap();
    let wait = Wait {
        id: "proc_1".to_owned(),
        timeout_ms: 10_000,
        until: None,
        from_byte: 0,
    };
    let _: Waited = host.ask(&Request::Wait(wait)).await;
    let ended = Instant::now();
    // No host at all, for several times as long as it may be idle or alone.
    drop((channel, host));
    tokio::time::sleep(Duration::from_secs(1)).await;
    let host = Host::new(&dir).await;
    let all = Processes {
        id: None,
        session: None,
    };
    let known: Vec<ProcessStatus> = host.ask(&Request::Processes(all)).await;
    let states: Vec<ProcessState> = known.iter().map(|status| status.state).collect();
    assert_eq!(states, [ProcessState::Exited { code: Some(3) }]);
    let events = Events {
        consumer: "test".to_owned(),
        follow: false,
    };
    let mut channel = host.open(&Request::Events(events));
    let item = receive(&mut channel).await;
    assert!(
        matches!(&item, Item::Event(body) if body.windows(6).any(|part| part == b"proc_1")),
        "{item:?}"
    );
    drop(channel);
    // What nobody came for in time holds it no longer.
    tokio::time::timeout(Duration::from_secs(10), host.connection.wait_closed())
        .await
        .unwrap();
    assert!(ended.elapsed() >= KEEP, "{:?}", ended.elapsed());
    until("the socket goes", || !dir.join("guest.sock").exists()).await;
}

#[tokio::test]
async fn a_shell_that_never_answers_is_given_up_and_ended() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("guest");
    let (shell, pid) = (root.path().join("shell"), root.path().join("pid"));
    let script = format!("#!/bin/sh\necho $$ >{}\nexec sleep 600\n", pid.display());
    fs::write(&shell, script).unwrap();
    fs::set_permissions(&shell, fs::Permissions::from_mode(0o755)).unwrap();
    // Only this guest sees it in place of bash.
    let program = guest();
    let started = Command::new("unshare")
        .args(["--mount", "/bin/sh", "-ec"])
        .arg("mount --bind \"$1\" \"$(readlink -f /bin/bash)\"; shift; exec \"$@\"")
        .arg("sh")
        .arg(&shell)
        .arg(program.get_program())
        .args(["start", "--shell-ms", "300", "--dir"])
        .arg(&dir)
        .status()
        .unwrap();
    assert!(started.success());
    let host = Host::new(&dir).await;
    let began = Instant::now();
    let mut channel = host.start(exec("one"), "echo never").await;
    let failed = answer::<ExecDone>(&mut channel).await.unwrap_err();
    assert_eq!(failed.kind, FailureKind::Spawn);
    assert!(failed.message.contains("does not answer"), "{failed:?}");
    assert!(began.elapsed() < Duration::from_secs(10));
    let pid = fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
    until("the shell ends", || !is_alive(pid)).await;
    shut_down(&dir).await;
}
