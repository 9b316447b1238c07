//! The main process of a container.
//!
//! Here it is no first process of a namespace but a subreaper, which reaps and stops alike.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use exoshell_mux::Item;
use rustix::process::Signal;

use crate::host::{Ended, Host, exec, guest, is_alive, receive, until};

fn init(dir: &Path, more: &[&str]) -> Ended {
    Ended(
        guest()
            .arg("init")
            .arg("--dir")
            .arg(dir)
            .args(more)
            .spawn()
            .unwrap(),
    )
}

#[tokio::test]
async fn a_signal_ends_everything_within_the_grace() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("guest");
        let mut init = init(&dir, &[]);
        let host = Host::new(&dir).await;
        let stubborn = "trap '' TERM; sleep 1000 & echo $! $$; sleep 1000";
        let mut channel = host.start(exec("stubborn"), stubborn).await;
        let pids: Vec<u32> = loop {
            if let Item::Data { bytes, .. } = receive(&mut channel).await {
                let text = String::from_utf8(bytes.to_vec()).unwrap();
                break text
                    .split_whitespace()
                    .map(|p| p.parse().unwrap())
                    .collect();
            }
        };
        let began = Instant::now();
        init.signal(signal);
        assert_eq!(init.wait().code(), Some(0));
        let took = began.elapsed();
        assert!(took >= Duration::from_secs(2), "{took:?}");
        assert!(took < Duration::from_secs(4), "{took:?}");
        assert!(pids.iter().all(|pid| !is_alive(*pid)), "{pids:?}");
        assert!(!is_alive(host.hello.pid));
        assert!(!dir.join("guest.sock").exists());
    }
}

#[tokio::test]
async fn orphans_are_reaped() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("guest");
    let program = guest().get_program().to_owned();
    let child = Command::new("sh")
        .args(["-c", "sleep 0.2 & exec \"$0\" init --dir \"$1\""])
        .arg(program)
        .arg(&dir)
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let pid = child.id();
    let mut init = Ended(child);
    let host = Host::new(&dir).await;
    until("only the daemon is left", || {
        exoshell_process::children_of(pid) == [host.hello.pid]
    })
    .await;
    init.signal(Signal::TERM);
    assert_eq!(init.wait().code(), Some(0));
}

#[tokio::test]
async fn it_ends_with_its_daemon() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("guest");
    let mut idle = init(&dir, &["--idle-ms", "200"]);
    let host = Host::new(&dir).await;
    assert_eq!(idle.wait().code(), Some(0));
    host.connection.wait_closed().await;

    let mut killed = init(&dir, &[]);
    let host = Host::new(&dir).await;
    exoshell_process::end_process(host.hello.pid);
    assert_eq!(killed.wait().code(), Some(137));
}

#[tokio::test]
async fn a_socket_that_is_removed_comes_back() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("guest");
    let mut init = init(&dir, &[]);
    let first = Host::new(&dir).await;
    let socket = dir.join("guest.sock");
    for whole in [false, true, true] {
        if whole {
            // At once, so that it is not made again while it is being removed.
            let away = root.path().join("away");
            std::fs::rename(&dir, &away).unwrap();
            std::fs::remove_dir_all(&away).unwrap();
        } else {
            std::fs::remove_file(&socket).unwrap();
        }
        until("the socket is back", || socket.exists()).await;
        let again = Host::new(&dir).await;
        assert_eq!(again.hello.incarnation, first.hello.incarnation);
    }
    init.signal(Signal::TERM);
    assert_eq!(init.wait().code(), Some(0));
    assert!(!socket.exists());
}

#[test]
fn an_init_without_a_folder_says_why() {
    let root = tempfile::tempdir().unwrap();
    let file = root.path().join("file");
    std::fs::write(&file, b"").unwrap();
    let output = guest()
        .arg("init")
        .arg("--dir")
        .arg(&file)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(output.stdout.is_empty());
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.starts_with("exoshell-guest: no folder"), "{said}");
}
