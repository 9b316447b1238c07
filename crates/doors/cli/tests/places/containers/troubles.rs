//! Engines, images and settings that are wrong: each with its own kind and remedy.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use exoshell_testkit::wanted;
use serde_json::json;

use super::call_as;
use crate::site::{Kind, refused};

#[test]
fn without_an_engine_the_call_says_so_at_once_and_what_to_do() {
    let site = Kind::Docker.site();
    let nowhere = site.root().join("nothing.sock");
    // A socket nobody answers on, and a port nobody listens on.
    let deaf = site.root().join("deaf.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&deaf).unwrap();
    let unix = |path: &std::path::Path| format!("unix://{}", path.display());
    for host in [unix(&nowhere), unix(&deaf), "tcp://127.0.0.1:1".to_owned()] {
        let variables = [("DOCKER_HOST", host.as_str())];
        let answer = call_as(&site, &[], &variables, &json!({"command": "echo never"}));
        refused(&answer, -1, "unreachable", "does not answer");
        assert_eq!(answer.0["error_reason"], "no_daemon", "{}", answer.0);
        assert!(answer.hint().contains("start it"), "{}", answer.0);
        let mut doctor = site.command(["doctor", "--backend", "docker"]);
        let doctor = doctor.env("DOCKER_HOST", &host).output().unwrap();
        let text = String::from_utf8_lossy(&doctor.stdout).into_owned();
        assert_eq!(doctor.status.code(), Some(125), "{text}");
        assert!(
            text.contains("does not work") && text.contains("start it"),
            "{text}"
        );
    }
    let began = std::time::Instant::now();
    let variables = [("DOCKER_HOST", unix(&nowhere))];
    let mut run = site.command(["run", "echo never"]);
    let ran = run.envs(variables).output().unwrap();
    assert_eq!(ran.status.code(), Some(125));
    assert_eq!(ran.stdout, b"");
    assert!(String::from_utf8_lossy(&ran.stderr).contains("hint:"));
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_client_that_is_none_is_named() {
    let site = Kind::Docker.site();
    let plain = site.root().join("plain");
    fs::write(&plain, "not a program").unwrap();
    let broken = site.root().join("broken");
    fs::write(&broken, "#!/bin/sh\necho broken >&2; exit 1\n").unwrap();
    fs::set_permissions(&broken, fs::Permissions::from_mode(0o755)).unwrap();
    let folder = site.root().to_path_buf();
    for (program, kind, reason) in [
        (folder.join("nothing"), "config", "no_program"),
        (folder, "config", "no_program"),
        (plain, "config", "no_program"),
        (broken, "unreachable", "no_daemon"),
    ] {
        let shown = program.display().to_string();
        let variables = [
            ("EXOSHELL_DOCKER_BINARY", shown.as_str()),
            // Where there is a socket, a client is not asked whether its engine is there.
            ("DOCKER_HOST", "tcp://127.0.0.1:1"),
        ];
        let answer = call_as(&site, &[], &variables, &json!({"command": "echo never"}));
        let reported = answer.0["error_reason"].as_str();
        assert_eq!(
            (answer.kind(), reported),
            (kind, Some(reason)),
            "{shown}: {}",
            answer.0
        );
        assert_eq!((answer.code(), answer.output()), (-1, ""), "{}", answer.0);
        assert_ne!(answer.hint(), "", "{}", answer.0);
        if reason == "no_program" {
            assert!(answer.error().contains(&shown), "{}", answer.0);
        }
    }
}

#[test]
fn an_image_that_cannot_be_had_is_named_with_a_remedy() {
    let site = Kind::Docker.site();
    let missing = format!("{}/exoshell-test/none:1", wanted("REGISTRY"));
    for name in [missing.as_str(), "127.0.0.1:1/nobody/listens:1"] {
        let answer = call_as(
            &site,
            &["--image", name],
            &[],
            &json!({"command": "echo never"}),
        );
        refused(&answer, -1, "unreachable", name);
        assert_eq!(answer.0["error_reason"], "no_image", "{}", answer.0);
        assert!(answer.hint().contains("check"), "{}", answer.0);
    }
    for name in ["-v", "a b", "UPPER/CASE"] {
        let flag = format!("--image={name}");
        let answer = call_as(&site, &[&flag], &[], &json!({"command": "echo never"}));
        assert_eq!(answer.kind(), "config", "{name}: {}", answer.0);
        assert_eq!(
            answer.0["error_reason"], "bad_setting",
            "{name}: {}",
            answer.0
        );
    }
    assert_eq!(site.containers(), [""; 0]);
}

#[test]
fn a_full_disk_is_the_commands_own_failure() {
    let site = Kind::Docker.site();
    let answer = site.terminal("head -c 600M /dev/zero > /tmp/full");
    assert_eq!(
        (answer.code(), answer.kind(), answer.error()),
        (1, "", ""),
        "{}",
        answer.0
    );
    assert!(
        answer.output().contains("No space left on device"),
        "{}",
        answer.0
    );
    // The session and long outputs go on: the guest's folder is not in there.
    site.terminal("cd /usr; export A=1").printed("");
    let long = site.terminal("pwd; echo $A; seq 20000");
    assert_eq!(long.code(), 0, "{}", long.0);
    assert!(long.output().starts_with("/usr\n1\n1\n"), "{}", long.0);
    assert_eq!(long.0["truncated"], true);
    site.terminal("rm /tmp/full; echo fine").printed("fine\n");
}

#[test]
fn settings_that_make_no_sense_are_skipped_and_named() {
    let site = Kind::Docker.site();
    let folder = site.work.display().to_string();
    fs::write(site.work.join("file"), "of the host\n").unwrap();
    let volumes = json!([
        "nocolon",
        ":/empty",
        "relative/path:/there",
        format!("{folder}:not/absolute"),
        format!("{folder}:/odd:maybe"),
        17,
        format!("{folder}:/good:ro"),
    ])
    .to_string();
    let env = json!({"1BAD": "x", "BAD NAME": "x", "": "x", "GOOD": "y", "NUMBER": 5}).to_string();
    let variables = [
        ("TERMINAL_DOCKER_VOLUMES", volumes.as_str()),
        ("TERMINAL_DOCKER_ENV", env.as_str()),
        ("TERMINAL_DOCKER_FORWARD_ENV", "ALSO-BAD,PATH_OF_NOBODY"),
    ];
    // A task's name becomes a label, whatever is in it.
    let task = "we/ird \"näme\" $(x)=,";
    let call = json!({"command": "cat /good/file; echo $GOOD $NUMBER", "task_id": task});
    let answer = call_as(&site, &[], &variables, &call);
    answer.printed("of the host\ny 5\n");
    for bad in [
        "`nocolon`",
        "`:/empty`",
        "`relative/path:/there`",
        ":not/absolute`",
        ":/odd:maybe`",
        "`17`",
        "`1BAD`",
        "`BAD NAME`",
        "`ALSO-BAD`",
    ] {
        assert!(
            answer.hint().contains(bad),
            "{bad} is not named: {}",
            answer.0
        );
    }
    let record = site.engine().inspect(&site.container());
    let label = record["Config"]["Labels"]["exoshell.task"]
        .as_str()
        .unwrap();
    let safe = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    assert!(!label.is_empty() && label.chars().all(safe), "{label}");
    // The same task finds its container again.
    call_as(&site, &[], &variables, &call).printed("of the host\ny 5\n");
    assert_eq!(site.containers().len(), 1);

    // What only the engine can judge is its word, with the place to correct it.
    for words in [r#"["--no-such-flag"]"#, r#"["--label", "=x"]"#] {
        let variables = [("TERMINAL_DOCKER_EXTRA_ARGS", words)];
        let call = json!({"command": "echo never", "task_id": "other"});
        let answer = call_as(&site, &[], &variables, &call);
        assert_eq!(answer.0["error_reason"], "bad_setting", "{}", answer.0);
        assert!(answer.hint().contains("extra arguments"), "{}", answer.0);
    }
    assert_eq!(site.containers().len(), 1);
}
