//! Hosts as they are: start-up files, shells, folders.

use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use exoshell_place::{CheckOutcome, Place as _, PlaceError, Trouble, bundle};

use crate::SshSettings;
use crate::sshd::{Setup, Sshd};
use crate::testing::{connected, fails, output_of, run};

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
async fn a_bashrc_that_leaves_something_running_holds_nothing_up() {
    let sshd = Sshd::with(&Setup {
        bashrc: "sleep 1000 &",
        ..Setup::default()
    });
    let start = Instant::now();
    let link = connected(&sshd.place()).await;
    assert!(start.elapsed() < Duration::from_secs(15), "{start:?}");
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
        home_path: "/no-home-of-a-test/home",
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
    // Renamed into place: the old guest may not have ended yet.
    let broken = file.with_extension("broken");
    std::fs::write(&broken, b"\x7fELF and nothing else").unwrap();
    std::fs::set_permissions(&broken, PermissionsExt::from_mode(0o700)).unwrap();
    std::os::unix::fs::chown(&broken, Some(12345), Some(12345)).unwrap();
    std::fs::rename(&broken, &file).unwrap();
    let link = connected(&place).await;
    assert_eq!(run(&link, "echo ok").await.1, "ok\n");
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
        assert_eq!(check.outcome, CheckOutcome::Fine, "{check:?}");
    }
    assert_eq!(checks[4].found, "/srv/home/.cache/exoshell");
    assert!(!sshd.path("home/.cache").exists(), "nothing is made");

    let nowhere = Sshd::with(&Setup {
        home: "mode=500",
        other: "mode=755,ro",
        ..Setup::default()
    });
    let checks = nowhere.place().check().await.unwrap();
    let last = checks.last().unwrap();
    assert_eq!(last.outcome, CheckOutcome::Limited, "{last:?}");
    assert!(
        last.found.contains("no folder there can be written to"),
        "{last:?}"
    );

    let noexec = Sshd::with(&Setup {
        home: "noexec,mode=700",
        other: "noexec,mode=1777",
        ..Setup::default()
    });
    let checks = noexec.place().check().await.unwrap();
    let last = checks.last().unwrap();
    assert_eq!(last.outcome, CheckOutcome::Limited, "{last:?}");
    assert!(last.found.contains("noexec"), "{last:?}");

    let settings = SshSettings {
        key: Some(sshd.path("other_key")),
        ..sshd.settings()
    };
    let checks = sshd.place_with(settings).check().await.unwrap();
    let last = checks.last().unwrap();
    assert_eq!(last.name, "connection");
    assert_eq!(last.outcome, CheckOutcome::Broken);
    assert!(last.remedy.is_some());
}
