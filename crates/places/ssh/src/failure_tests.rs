//! Every way not to get there, on real connections.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use exoshell_place::{Place as _, Trouble};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::sshd::{Setup, Sshd};
use crate::testing::{connected, fails, link, run};
use crate::{SshPlace, SshSettings};

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
    cut: Arc<AtomicBool>,
}

impl Wire {
    async fn to(port: u16) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap().port();
        let cut = Arc::new(AtomicBool::new(false));
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
        self.cut.store(cut, Ordering::SeqCst);
    }
}

async fn pass(
    mut from: tokio::net::tcp::OwnedReadHalf,
    mut to: tokio::net::tcp::OwnedWriteHalf,
    cut: Arc<AtomicBool>,
) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(length @ 1..) = from.read(&mut buffer).await {
        if !cut.load(Ordering::SeqCst) && to.write_all(&buffer[..length]).await.is_err() {
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
    // The connection is not known to be dead yet.
    let error = fails(&place).await;
    assert!(error.is_transient(), "{error}");
    let noticed = tokio::time::timeout(Duration::from_secs(15), first.closed());
    noticed.await.expect("the loss is noticed");
    let error = fails(&place).await;
    assert!(error.is_transient(), "{error}");
    let error = place.open_existing().await.expect_err("nobody knows");
    assert!(error.is_transient(), "{error}");
    wire.cut(false);
    let start = Instant::now();
    let pipe = place
        .open_existing()
        .await
        .unwrap()
        .expect("the same guest");
    assert_eq!(link(pipe).await.info().await.unwrap().pid, pid);
    assert!(start.elapsed() < Duration::from_secs(5), "{start:?}");
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
