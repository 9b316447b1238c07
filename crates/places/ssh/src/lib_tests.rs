//! One connection, one guest, many callers.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use exoshell_place::bundle;
use exoshell_wire::{OpenSession, Outcome, SessionRef};

use super::*;
use crate::sshd::{Setup, Sshd};
use crate::testing::{connected, link, output_of, run, run_in, spec, wait_until_gone};

#[tokio::test]
async fn commands_run_on_the_host_in_the_users_home() {
    let sshd = Sshd::start();
    let place = sshd.place();
    let link = connected(&place).await;
    let (outcome, output) = run(&link, "pwd; id -u; echo $SSH_CONNECTION | wc -w; exit 7").await;
    assert_eq!(output, "/srv/home\n12345\n4\n");
    assert_eq!(outcome, Outcome::Exited(7));
}

#[tokio::test]
async fn the_guest_is_uploaded_once_and_found_from_then_on() {
    let sshd = Sshd::start();
    let steps = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&steps);
    let progress = Progress::new(move |line| told.lock().unwrap().push(line.to_owned()));
    let place = sshd.place();
    let first = link(place.open(&progress).await.unwrap()).await;
    let seen = steps.lock().unwrap().join("\n");
    assert!(seen.contains("connecting"), "{seen}");
    assert!(seen.contains("uploading the guest ("), "{seen}");

    steps.lock().unwrap().clear();
    let second = link(place.open(&progress).await.unwrap()).await;
    assert_eq!(*steps.lock().unwrap(), Vec::<String>::new());
    let pids = (
        first.info().await.unwrap().pid,
        second.info().await.unwrap().pid,
    );
    assert_eq!(pids.0, pids.1);
    // Nothing but the program and the guest's folder is left, private to the user.
    let folder = sshd.path("home/.cache/exoshell");
    let mode = std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(&folder).unwrap());
    assert_eq!(mode & 0o777, 0o700);
    let inside = folder.join(bundle::embedded().folder_name());
    let mut names: Vec<String> = std::fs::read_dir(inside)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names, ["exoshell-guest", "exoshell-guest.used"]);
}

#[tokio::test]
async fn only_a_guest_that_is_there_is_opened_when_asked_so() {
    let sshd = Sshd::start();
    let place = sshd.place();
    assert!(place.open_existing().await.unwrap().is_none());
    assert!(!sshd.path("home/.cache").exists(), "nothing is made");
    let first = connected(&place).await;
    let pipe = place.open_existing().await.unwrap().expect("a guest");
    let again = link(pipe).await;
    assert_eq!(
        again.info().await.unwrap().pid,
        first.info().await.unwrap().pid
    );
    first.shut_down().await.unwrap();
    wait_until_gone(&place).await;
}

#[tokio::test]
async fn another_profile_has_another_guest() {
    let sshd = Sshd::start();
    let mine = connected(&sshd.place()).await;
    let settings = SshSettings {
        profile: "other".to_owned(),
        ..sshd.settings()
    };
    let theirs = connected(&sshd.place_with(settings)).await;
    assert_ne!(
        mine.info().await.unwrap().pid,
        theirs.info().await.unwrap().pid
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_at_once_share_one_connection_and_one_guest() {
    let sshd = Sshd::with(&Setup {
        config: "MaxSessions 100",
        ..Setup::default()
    });
    let place = sshd.place();
    let mut opening = Vec::new();
    for _ in 0..20 {
        // Each place stands for a process of its own.
        let place = sshd.place();
        opening.push(tokio::spawn(async move { connected(&place).await }));
    }
    let mut links = Vec::new();
    for task in opening {
        links.push(task.await.unwrap());
    }
    assert_eq!(sshd.connections(), 1);
    let mut pids = HashSet::new();
    for link in &links {
        pids.insert(link.info().await.unwrap().pid);
    }
    assert_eq!(pids.len(), 1);
    // One ends, nineteen go on.
    drop(links.pop());
    for link in &links {
        assert_eq!(run(link, "echo ok").await.1, "ok\n");
    }
    drop(links);
    place.destroy().await.unwrap();
    assert!(!place.client.is_connected().await);
}

#[tokio::test]
async fn more_sessions_than_the_host_allows_get_connections_of_their_own() {
    let sshd = Sshd::with(&Setup {
        config: "MaxSessions 2",
        ..Setup::default()
    });
    let place = sshd.place();
    let mut links = Vec::new();
    for _ in 0..4 {
        links.push(connected(&place).await);
    }
    for link in &links {
        assert_eq!(run(link, "echo ok").await.1, "ok\n");
    }
    assert!(sshd.connections() > 1);
}

/// Finds the process that holds the shared connection.
async fn master_of(place: &SshPlace) -> rustix::process::Pid {
    let socket = place.client.current_socket().unwrap();
    let pid = crate::mux::pid_of(Path::new(&socket)).await.unwrap();
    rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap()
}

#[tokio::test]
async fn a_killed_connection_is_replaced_and_the_guest_found_again() {
    let sshd = Sshd::start();
    let place = sshd.place();
    let first = connected(&place).await;
    let pid = first.info().await.unwrap().pid;
    let master = master_of(&place).await;
    rustix::process::kill_process(master, rustix::process::Signal::KILL).unwrap();
    first.closed().await;
    let second = connected(&place).await;
    assert_eq!(second.info().await.unwrap().pid, pid);
    assert_eq!(sshd.connections(), 2);
    assert_eq!(run(&second, "echo back").await.1, "back\n");
}

#[tokio::test]
async fn a_stopped_connection_is_replaced_without_being_harmed() {
    let sshd = Sshd::start();
    let place = sshd.place();
    let first = connected(&place).await;
    let pid = first.info().await.unwrap().pid;
    let master = master_of(&place).await;
    rustix::process::kill_process(master, rustix::process::Signal::STOP).unwrap();
    let second = connected(&place).await;
    assert_eq!(second.info().await.unwrap().pid, pid);
    rustix::process::kill_process(master, rustix::process::Signal::CONT).unwrap();
    assert_eq!(run(&first, "echo still here").await.1, "still here\n");
    assert_eq!(run(&second, "echo here too").await.1, "here too\n");
    // The old one ends by itself later, and takes no socket of the new one with it.
    rustix::process::kill_process(master, rustix::process::Signal::TERM).unwrap();
    first.closed().await;
    assert_eq!(connected(&place).await.info().await.unwrap().pid, pid);
    assert_eq!(sshd.connections(), 2);
}

#[tokio::test]
async fn a_long_home_gets_its_sockets_elsewhere() {
    let sshd = Sshd::start();
    let home = sshd.path(&"long/".repeat(30));
    let place = SshPlace::new(&home, sshd.settings()).unwrap();
    let link = connected(&place).await;
    assert_eq!(run(&link, "echo ok").await.1, "ok\n");
    let socket = place.client.current_socket().unwrap();
    let folder = Path::new(&socket).parent().unwrap().to_owned();
    assert!(folder.starts_with("/tmp"), "{socket}");
    place.destroy().await.unwrap();
    std::fs::remove_dir_all(folder).unwrap();
}

#[tokio::test]
async fn settings_travel_as_text() {
    let settings = SshSettings {
        host: "h".to_owned(),
        port: Some(22),
        ..SshSettings::default()
    };
    let text = serde_json::to_string(&settings).unwrap();
    assert_eq!(
        serde_json::from_str::<SshSettings>(&text).unwrap(),
        settings
    );
    assert!(serde_json::from_str::<SshSettings>(r#"{"hots":"x"}"#).is_err());
}

/// Prints how long a command takes beside what the client alone needs; asserts the goal of DESIGN.
#[tokio::test]
async fn a_command_is_three_times_as_fast_as_the_client_alone() {
    let sshd = Sshd::start();
    let place = sshd.place();
    let start = Instant::now();
    let link = connected(&place).await;
    println!("first use {:?}", start.elapsed());
    let start = Instant::now();
    connected(&place).await;
    println!("another pipe {:?}", start.elapsed());
    let key = "warm".to_owned();
    let request = OpenSession {
        key: key.clone(),
        spec: spec(),
        only_existing: false,
    };
    link.open_session(request).await.unwrap();
    let mut ours = Vec::new();
    let mut theirs = Vec::new();
    for _ in 0..30 {
        let start = Instant::now();
        run_in(&link, SessionRef::Key(key.clone()), "true").await;
        ours.push(start.elapsed());
        let start = Instant::now();
        output_of(&place, &["true"]).await;
        theirs.push(start.elapsed());
    }
    ours.sort();
    theirs.sort();
    println!(
        "through the guest {:?}, `ssh host true` {:?}",
        ours[15], theirs[15]
    );
    assert!(
        ours[15] * 3 <= theirs[15],
        "{:?} {:?}",
        ours[15],
        theirs[15]
    );
}
