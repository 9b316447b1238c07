use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use exoshell_place::{ExecEvent, Link, LinkOptions};
use exoshell_wire::{Exec, OpenSession, Outcome, SessionRef, SessionSpec, stream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;
use crate::sshd::{Setup, Sshd};

async fn link(pipe: Pipe) -> Link {
    let options = LinkOptions {
        build: "test".to_owned(),
        linger: true,
        max_warm_shells: 2,
        heartbeat: Some(Duration::from_secs(5)),
    };
    Link::open(pipe, &options).await.unwrap()
}

/// Waits for the end of a guest that said goodbye.
async fn wait_until_gone(place: &SshPlace) {
    let gone = async {
        while place.open_existing().await.unwrap().is_some() {
            tokio::task::yield_now().await;
        }
    };
    let limit = Duration::from_secs(10);
    tokio::time::timeout(limit, gone).await.expect("it ends");
}

async fn connected(place: &SshPlace) -> Link {
    link(place.open(&Progress::default()).await.unwrap()).await
}

fn spec() -> SessionSpec {
    serde_json::from_str("{}").unwrap()
}

/// Runs a command through the guest; returns its code and output.
async fn run(link: &Link, command: &str) -> (Outcome, String) {
    run_in(link, SessionRef::OneShot(spec()), command).await
}

async fn run_in(link: &Link, session: SessionRef, command: &str) -> (Outcome, String) {
    let exec = Exec {
        id: exoshell_place::nonce().unwrap(),
        session,
        workdir: None,
        env: Vec::new(),
        timeout_ms: Some(20_000),
        grace_ms: 1000,
        lease_ms: 60_000,
        merge: true,
        terminal: None,
        stdin: false,
        persist: false,
        spill: None,
    };
    let command = command.as_bytes().to_vec().into();
    let mut running = link.exec(exec, command).await.unwrap();
    let mut output = Vec::new();
    loop {
        match running.next().await.unwrap() {
            ExecEvent::Output { stream, bytes } if stream == stream::STDOUT => {
                output.extend_from_slice(&bytes);
            }
            ExecEvent::Done(done) => {
                return (done.outcome, String::from_utf8_lossy(&output).into_owned());
            }
            _ => {}
        }
    }
}

async fn output_of(place: &SshPlace, words: &[&str]) -> String {
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let mut launched = place.launch(&words).await.unwrap();
    launched.stdin.shutdown().await.unwrap();
    let mut output = Vec::new();
    launched.stdout.read_to_end(&mut output).await.unwrap();
    String::from_utf8(output).unwrap()
}

async fn fails(place: &SshPlace) -> PlaceError {
    let progress = Progress::default();
    let opened = tokio::time::timeout(Duration::from_secs(90), place.open(&progress));
    let error = opened.await.expect("an answer").expect_err("a failure");
    println!("{error}\n  -> {:?}", error.hint());
    error
}

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
async fn any_words_survive_any_login_shell() {
    let awkward = [
        "a b",
        "it's",
        "\"$HOME\" `id`",
        "\\ \\n \\\\",
        "!!",
        "two\nlines\n",
        "",
        "*",
        "ü 漢",
    ];
    for shell in [
        "/bin/sh",
        "/bin/bash",
        "/usr/bin/zsh",
        "/usr/bin/fish",
        "/usr/bin/tcsh",
    ] {
        let sshd = Sshd::with(&Setup {
            shell,
            ..Setup::default()
        });
        let place = sshd.place();
        let mut words = vec!["printf", "%s\\0"];
        words.extend(awkward);
        let output = output_of(&place, &words).await;
        let found: Vec<&str> = output.split('\0').collect();
        assert_eq!(found[..awkward.len()], awkward, "{shell}");
        let link = connected(&place).await;
        assert_eq!(run(&link, "echo ok").await.1, "ok\n", "{shell}");
    }
}

#[tokio::test]
async fn a_talkative_bashrc_is_listened_past() {
    let sshd = Sshd::with(&Setup {
        bashrc: "for i in $(seq 1 500); do echo Welcome to line $i; echo and $i on stderr >&2; done; printf 'no newline'",
        ..Setup::default()
    });
    let link = connected(&sshd.place()).await;
    assert_eq!(run(&link, "echo ok").await.1, "ok\n");
}

#[tokio::test]
async fn a_bashrc_that_exits_is_named_as_the_cause() {
    let sshd = Sshd::with(&Setup {
        bashrc: "exit 0",
        ..Setup::default()
    });
    let error = fails(&sshd.place()).await;
    assert_eq!(error.trouble(), Some(Trouble::DoesNotStart));
    assert!(error.hint().unwrap().contains(".bashrc"));
}

#[tokio::test]
async fn a_bashrc_that_reads_our_input_is_named_as_the_cause() {
    let sshd = Sshd::with(&Setup {
        bashrc: "read answer",
        ..Setup::default()
    });
    let error = fails(&sshd.place()).await;
    assert_eq!(error.trouble(), Some(Trouble::DoesNotStart));
    assert!(error.hint().unwrap().contains("read from stdin"));
}

#[tokio::test]
async fn an_account_that_runs_nothing_says_so() {
    let sshd = Sshd::with(&Setup {
        shell: "/usr/sbin/nologin",
        ..Setup::default()
    });
    let error = fails(&sshd.place()).await;
    assert_eq!(error.trouble(), Some(Trouble::DoesNotStart));
    assert!(error.to_string().contains("not available"), "{error}");
}

#[tokio::test]
async fn a_home_that_runs_no_programs_is_passed_over() {
    let sshd = Sshd::with(&Setup {
        home: "noexec,mode=700",
        ..Setup::default()
    });
    let place = sshd.place();
    let link = connected(&place).await;
    let (_, output) = run(&link, "pwd; ls -d /var/tmp/exoshell-12345/*").await;
    let name = bundle::embedded().folder_name().to_owned();
    assert!(output.starts_with("/srv/home\n"), "{output}");
    assert!(
        output.contains(&format!("/var/tmp/exoshell-12345/{name}")),
        "{output}"
    );
}

#[tokio::test]
async fn a_host_where_no_folder_runs_programs_has_no_guest() {
    let sshd = Sshd::with(&Setup {
        home: "noexec,mode=700",
        other: "noexec,mode=1777",
        ..Setup::default()
    });
    let place = sshd.place();
    let error = fails(&place).await;
    assert!(matches!(error, PlaceError::NoGuest { .. }), "{error:?}");
    let text = error.to_string();
    for folder in ["/srv/home/.cache", "/var/tmp", "/tmp", "/dev/shm"] {
        assert!(text.contains(folder), "{text}");
    }
    assert!(text.contains("noexec"), "{text}");
    // Programs of the host itself still run.
    assert_eq!(output_of(&place, &["echo", "plain"]).await, "plain\n");
}

#[tokio::test]
async fn a_full_home_with_no_other_folder_says_that_it_is_full() {
    let sshd = Sshd::with(&Setup {
        home: "size=64k,mode=700",
        other: "size=64k,mode=1777",
        ..Setup::default()
    });
    let error = fails(&sshd.place()).await;
    assert_eq!(error.trouble(), Some(Trouble::DiskFull));
    assert!(error.to_string().contains("No space left"), "{error}");
}

#[tokio::test]
async fn a_full_home_is_passed_over() {
    let sshd = Sshd::with(&Setup {
        home: "size=64k,mode=700",
        ..Setup::default()
    });
    let link = connected(&sshd.place()).await;
    assert_eq!(run(&link, "echo ok").await.1, "ok\n");
}

#[tokio::test]
async fn an_account_without_a_home_works() {
    let sshd = Sshd::with(&Setup {
        home_path: "/nonexistent/home",
        ..Setup::default()
    });
    let link = connected(&sshd.place()).await;
    assert_eq!(run(&link, "pwd").await.1, "/\n");
}

#[tokio::test]
async fn folders_of_other_users_are_not_trusted() {
    // Whoever comes first to `/var/tmp` and `/tmp` is somebody else.
    let sshd = Sshd::with(&Setup {
        home: "noexec,mode=700",
        ..Setup::default()
    });
    let enter = |script: &str| {
        let pid = sshd.inside();
        let done = std::process::Command::new("nsenter")
            .args(["-t", &pid.to_string(), "-m", "sh", "-c", script])
            .status();
        assert!(done.unwrap().success());
    };
    enter(
        "mkdir -m 777 /var/tmp/exoshell-12345; ln -s /var/tmp/exoshell-12345 /tmp/exoshell-12345",
    );
    let link = connected(&sshd.place()).await;
    let (_, output) = run(
        &link,
        "ls /dev/shm/exoshell-12345; ls /var/tmp/exoshell-12345",
    )
    .await;
    assert_eq!(output, format!("{}\n", bundle::embedded().folder_name()));
}

#[tokio::test]
async fn a_damaged_guest_is_replaced() {
    let sshd = Sshd::start();
    let place = sshd.place();
    connected(&place).await.shut_down().await.unwrap();
    let file = sshd
        .path("home/.cache/exoshell")
        .join(bundle::embedded().folder_name())
        .join("exoshell-guest");
    let user = || std::os::unix::fs::chown(&file, Some(12345), Some(12345)).unwrap();
    std::fs::write(&file, b"\x7fELF and nothing else").unwrap();
    user();
    let link = connected(&place).await;
    assert_eq!(run(&link, "echo ok").await.1, "ok\n");
}

#[tokio::test]
async fn a_wrong_key_is_refused_by_the_host() {
    let sshd = Sshd::start();
    let settings = SshSettings {
        key: Some(sshd.path("other_key")),
        ..sshd.settings()
    };
    let error = fails(&sshd.place_with(settings)).await;
    assert_eq!(error.trouble(), Some(Trouble::AuthFailed));
}

#[tokio::test]
async fn a_key_that_cannot_be_used_is_told_apart() {
    let sshd = Sshd::start();
    let missing = SshSettings {
        key: Some(sshd.path("no_such_key")),
        ..sshd.settings()
    };
    let error = fails(&sshd.place_with(missing)).await;
    assert_eq!(error.trouble(), Some(Trouble::BadKey));

    let open = sshd.path("open_key");
    std::fs::copy(sshd.path("key"), &open).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&open, mode).unwrap();
    let too_open = SshSettings {
        key: Some(open),
        ..sshd.settings()
    };
    let error = fails(&sshd.place_with(too_open)).await;
    assert_eq!(error.trouble(), Some(Trouble::BadKey));
    assert!(error.hint().unwrap().contains("chmod 600"));
}

#[tokio::test]
async fn a_changed_host_key_is_refused_with_the_line_to_look_at() {
    let sshd = Sshd::start();
    let other = std::fs::read_to_string(sshd.path("other_key.pub")).unwrap();
    let key = other.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let known = format!("# first line\n[127.0.0.1]:{} {key}\n", sshd.port);
    std::fs::write(sshd.path("known_hosts"), known).unwrap();
    let error = fails(&sshd.place()).await;
    assert_eq!(error.trouble(), Some(Trouble::HostKeyChanged));
    let file = sshd.path("known_hosts").display().to_string();
    assert!(
        error.to_string().contains(&format!("line 2 of `{file}`")),
        "{error}"
    );
    let command = format!("ssh-keygen -f {file} -R '[127.0.0.1]:{}'", sshd.port);
    assert!(
        error.hint().unwrap().contains(&command),
        "{:?}",
        error.hint()
    );
}

#[tokio::test]
async fn an_unknown_host_key_is_refused_where_the_user_says_so() {
    let sshd = Sshd::start();
    let mut settings = sshd.settings();
    settings
        .options
        .push("StrictHostKeyChecking=yes".to_owned());
    let error = fails(&sshd.place_with(settings)).await;
    assert_eq!(error.trouble(), Some(Trouble::HostKeyUnknown));
}

#[tokio::test]
async fn a_host_that_nobody_serves_refuses() {
    let sshd = Sshd::start();
    let settings = SshSettings {
        port: Some(crate::sshd::free_port()),
        ..sshd.settings()
    };
    let place = sshd.place_with(settings);
    assert_eq!(fails(&place).await.trouble(), Some(Trouble::Refused));
    let error = place.open_existing().await.expect_err("nobody knows");
    assert_eq!(error.trouble(), Some(Trouble::Refused));
}

#[tokio::test]
async fn a_name_that_means_nothing_is_an_unknown_host() {
    let sshd = Sshd::start();
    let settings = SshSettings {
        host: "no-such-host.invalid".to_owned(),
        ..sshd.settings()
    };
    let error = fails(&sshd.place_with(settings)).await;
    assert_eq!(error.trouble(), Some(Trouble::UnknownHost));
}

#[tokio::test]
async fn a_host_that_accepts_and_says_nothing_does_not_answer() {
    let sshd = Sshd::start();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut settings = sshd.settings();
    settings.port = Some(silent.local_addr().unwrap().port());
    settings.options.push("ConnectTimeout=1".to_owned());
    let error = fails(&sshd.place_with(settings)).await;
    assert_eq!(error.trouble(), Some(Trouble::NoAnswer));
    assert!(error.is_transient());
}

#[tokio::test]
async fn a_host_that_hangs_up_is_worth_another_try() {
    let sshd = Sshd::start();
    let rude = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut settings = sshd.settings();
    settings.port = Some(rude.local_addr().unwrap().port());
    std::thread::spawn(move || while rude.accept().is_ok() {});
    let error = fails(&sshd.place_with(settings)).await;
    assert_eq!(error.trouble(), Some(Trouble::Interrupted));
    assert!(error.is_transient());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn those_who_wait_for_a_connection_share_its_failure() {
    let sshd = Sshd::start();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let mut settings = sshd.settings();
    settings.port = Some(silent.local_addr().unwrap().port());
    settings.options.push("ConnectTimeout=2".to_owned());
    let start = Instant::now();
    let mut failing = Vec::new();
    for _ in 0..8 {
        let place = sshd.place_with(settings.clone());
        failing.push(tokio::spawn(async move { fails(&place).await.trouble() }));
    }
    for task in failing {
        assert_eq!(task.await.unwrap(), Some(Trouble::NoAnswer));
    }
    assert!(start.elapsed() < Duration::from_secs(10), "{start:?}");
}

/// Stands between client and server, and can swallow everything.
struct Wire {
    port: u16,
    cut: Arc<std::sync::atomic::AtomicBool>,
}

impl Wire {
    async fn to(port: u16) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap().port();
        let cut = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let state = Arc::clone(&cut);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                let far = tokio::net::TcpStream::connect(("127.0.0.1", port))
                    .await
                    .unwrap();
                let (near_read, near_write) = near.into_split();
                let (far_read, far_write) = far.into_split();
                tokio::spawn(pass(near_read, far_write, Arc::clone(&state)));
                tokio::spawn(pass(far_read, near_write, Arc::clone(&state)));
            }
        });
        Self { port: own, cut }
    }

    fn cut(&self, cut: bool) {
        self.cut.store(cut, std::sync::atomic::Ordering::SeqCst);
    }
}

async fn pass(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    cut: Arc<std::sync::atomic::AtomicBool>,
) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        if !cut.load(std::sync::atomic::Ordering::SeqCst)
            && to.write_all(&buffer[..length]).await.is_err()
        {
            return;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_that_carries_nothing_is_given_up_and_replaced() {
    let sshd = Sshd::start();
    let wire = Wire::to(sshd.port).await;
    let mut settings = sshd.settings();
    settings.port = Some(wire.port);
    settings.options.push("ServerAliveInterval=1".to_owned());
    settings.options.push("ConnectTimeout=2".to_owned());
    let place = sshd.place_with(settings);
    let first = connected(&place).await;
    let pid = first.info().await.unwrap().pid;
    wire.cut(true);
    let noticed = tokio::time::timeout(Duration::from_secs(15), first.closed());
    noticed.await.expect("the loss is noticed");
    let error = fails(&place).await;
    assert!(error.is_transient(), "{error}");
    let error = place.open_existing().await.expect_err("nobody knows");
    assert!(error.is_transient(), "{error}");
    wire.cut(false);
    let pipe = place
        .open_existing()
        .await
        .unwrap()
        .expect("the same guest");
    assert_eq!(link(pipe).await.info().await.unwrap().pid, pid);
}

#[tokio::test]
async fn a_client_that_is_not_installed_is_named() {
    let sshd = Sshd::start();
    let settings = SshSettings {
        program: Some(PathBuf::from("/nonexistent/ssh")),
        ..sshd.settings()
    };
    let error = fails(&sshd.place_with(settings)).await;
    assert_eq!(error.trouble(), Some(Trouble::NoProgram));
}

#[test]
fn settings_that_the_client_would_misread_are_refused() {
    let bad = |change: fn(&mut SshSettings)| {
        let mut settings = SshSettings {
            host: "host".to_owned(),
            ..SshSettings::default()
        };
        change(&mut settings);
        let error = SshPlace::new("/x", settings).expect_err("a refusal");
        assert_eq!(error.trouble(), Some(Trouble::BadSetting), "{error}");
    };
    bad(|settings| settings.host = String::new());
    bad(|settings| settings.host = "-oProxyCommand=evil".to_owned());
    bad(|settings| settings.host = "two words".to_owned());
    bad(|settings| settings.user = Some("-x".to_owned()));
    bad(|settings| settings.port = Some(0));
    bad(|settings| settings.options = vec!["ControlPath=/x".to_owned()]);
    bad(|settings| settings.options = vec!["Compression".to_owned()]);
    bad(|settings| settings.folder = Some("relative".to_owned()));
}

/// Writes a configuration with an alias for each server; the second is reached through the first.
fn jump_config(jump: &Sshd, target: &Sshd) -> PathBuf {
    let path = target.path("config");
    let host = |name: &str, sshd: &Sshd, more: &str| {
        format!(
            "Host {name}\n  HostName 127.0.0.1\n  Port {}\n  User tester\n  IdentityFile {}\n  \
             UserKnownHostsFile {}\n  StrictHostKeyChecking accept-new\n{more}",
            sshd.port,
            sshd.path("key").display(),
            target.path("known_hosts").display()
        )
    };
    let text = [
        host("gate", jump, ""),
        host("behind", target, "  ProxyJump gate\n"),
    ];
    std::fs::write(&path, text.concat()).unwrap();
    path
}

fn through_alias(target: &Sshd, config: PathBuf) -> SshPlace {
    target.place_with(SshSettings {
        host: "behind".to_owned(),
        config: Some(config),
        profile: "test".to_owned(),
        ..SshSettings::default()
    })
}

#[tokio::test]
async fn an_alias_with_a_jump_host_works() {
    let (jump, target) = (Sshd::start(), Sshd::start());
    let place = through_alias(&target, jump_config(&jump, &target));
    let link = connected(&place).await;
    assert_eq!(run(&link, "echo ok").await.1, "ok\n");
    assert_eq!((jump.connections(), target.connections()), (1, 1));
    let facts = place.inspect().await.unwrap();
    assert_eq!(facts.id, Some(format!("tester@127.0.0.1:{}", target.port)));
    assert_eq!(facts.state.as_deref(), Some("connected"));
    assert_eq!(facts.notes, ["reached through `gate`"]);
}

#[tokio::test]
async fn a_jump_host_that_fails_is_named() {
    let (jump, target) = (Sshd::start(), Sshd::start());
    let config = jump_config(&jump, &target);
    let place = through_alias(&target, config);
    drop(jump);
    let error = fails(&place).await;
    assert_eq!(error.trouble(), Some(Trouble::Refused));
    assert!(error.to_string().contains("through `gate`"), "{error}");
}

#[tokio::test]
async fn a_jump_host_that_forwards_nothing_is_told_apart() {
    let jump = Sshd::with(&Setup {
        config: "AllowTcpForwarding no",
        ..Setup::default()
    });
    let target = Sshd::start();
    let place = through_alias(&target, jump_config(&jump, &target));
    let error = fails(&place).await;
    assert_eq!(error.trouble(), Some(Trouble::NotAllowed));
}

#[tokio::test]
async fn check_says_what_works_and_what_does_not() {
    let sshd = Sshd::start();
    let checks = sshd.place().check().await.unwrap();
    let names: Vec<&str> = checks.iter().map(|check| check.name.as_str()).collect();
    assert_eq!(
        names,
        [
            "client",
            "address",
            "connection",
            "platform",
            "folder for the guest"
        ]
    );
    for check in &checks {
        assert_eq!(
            check.outcome,
            exoshell_place::CheckOutcome::Fine,
            "{check:?}"
        );
    }
    assert_eq!(checks[4].found, "/srv/home/.cache/exoshell");
    assert!(!sshd.path("home/.cache").exists(), "nothing is made");

    let settings = SshSettings {
        key: Some(sshd.path("other_key")),
        ..sshd.settings()
    };
    let checks = sshd.place_with(settings).check().await.unwrap();
    let last = checks.last().unwrap();
    assert_eq!(last.name, "connection");
    assert_eq!(last.outcome, exoshell_place::CheckOutcome::Broken);
    assert!(last.remedy.is_some());
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
    let link = connected(&place).await;
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
