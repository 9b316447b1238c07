//! Settings that change, and settings of one task.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use exoshell_runtime::config::{Config, Environment, Resolved};
use exoshell_runtime::{Runtime, TaskOverrides, TerminalRequest};
use exoshell_testkit::image;
use serde_json::json;

use super::call_as;
use crate::site::{Kind, Sleep, refused};
use crate::support::{PATH, block_on};

#[test]
fn a_changed_setting_replaces_an_idle_container_and_never_one_in_use() {
    let site = Kind::Docker.site();
    site.terminal("touch /var/mark").printed("");
    let mut container = site.container();
    let folder = site.work.display().to_string();
    let volumes = json!([format!("{folder}:/data")]).to_string();
    let look = json!({"command": "test -e /var/mark || echo new"});
    for (what, words, variables) in [
        ("network", &[][..], ("TERMINAL_DOCKER_NETWORK", "false")),
        (
            "volumes",
            &[],
            ("TERMINAL_DOCKER_VOLUMES", volumes.as_str()),
        ),
        ("user", &[], ("TERMINAL_DOCKER_RUN_AS_HOST_USER", "true")),
        (
            "workspace",
            &[],
            ("TERMINAL_DOCKER_MOUNT_CWD_TO_WORKSPACE", "true"),
        ),
        ("image", &["--image", image::BUSYBOX], ("X", "")),
    ] {
        let answer = call_as(&site, words, &[variables], &look);
        answer.printed("new\n");
        let hint = answer.hint();
        assert!(
            hint.contains("was replaced because its settings changed"),
            "{what}: {hint}"
        );
        assert!(hint.contains(what), "{what}: {hint}");
        let now = site.container();
        assert_ne!(now, container, "{what}");
        container = now;
    }
    let info = site.json(["places", "info", "default", "--json"]);
    assert_eq!(info["image"], image::BUSYBOX, "{info}");
    assert!(
        container.starts_with(info["id"].as_str().unwrap()),
        "{info}"
    );

    // Now it is in use.
    let busybox = ["--image", image::BUSYBOX];
    let sleep = Sleep::new();
    let command = json!({"command": sleep.fill("sleep N"), "background": true});
    let begun = call_as(&site, &busybox, &[], &command);
    let id = begun.0["session_id"].as_str().unwrap().to_owned();
    sleep.runs(1);
    let answer = site.terminal("echo never");
    refused(&answer, -1, "config", "other settings (image)");
    assert_eq!(answer.0["error_reason"], "other_settings", "{}", answer.0);
    assert!(answer.hint().contains("places rm"), "{}", answer.0);
    assert_eq!(site.container(), container);
    sleep.runs(1);
    call_as(&site, &busybox, &[], &json!({"command": "echo same"})).printed("same\n");
    assert_eq!(site.process("kill", &id, &json!({})).error(), "");
    site.terminal("echo again").printed("again\n");
    assert_ne!(site.container(), container);
}

#[test]
fn that_a_container_was_replaced_is_told_by_the_first_call_that_succeeds() {
    let site = Kind::Docker.site();
    site.terminal("true").printed("");
    let missing = site.root().join("missing").display().to_string();
    let volumes = json!([format!("{missing}:/data")]).to_string();
    let look = json!({"command": "true"});
    let failed = call_as(&site, &[], &[("TERMINAL_DOCKER_VOLUMES", &volumes)], &look);
    refused(&failed, -1, "config", "does not exist");
    let replaced = "was replaced because its settings changed";
    let answer = site.terminal("true");
    assert!(answer.hint().contains(replaced), "{}", answer.0);
    let answer = site.terminal("true");
    assert!(!answer.hint().contains(replaced), "told once: {}", answer.0);

    // A start in the background is such a call.
    let off = ("TERMINAL_DOCKER_NETWORK", "false");
    let start = json!({"command": "true", "background": true});
    let begun = call_as(&site, &[], &[off], &start);
    assert!(begun.hint().contains(replaced), "{}", begun.0);
    let answer = call_as(&site, &[], &[off], &look);
    assert!(!answer.hint().contains(replaced), "told once: {}", answer.0);
    let mut command = site.command(["run", "--background", "true"]);
    command.env("TERMINAL_DOCKER_NETWORK", "true");
    let ran = crate::support::Program::start(command, b"").finish();
    assert!(ran.talk().contains(replaced), "{}", ran.talk());
}

#[test]
fn a_task_may_have_an_image_and_limits_of_its_own() {
    let site = Kind::Docker.site();
    // A runtime in this process, whose own environment names no engine.
    let program = site.root().join("docker");
    let host = &site.engine().variables()[0].1;
    let script = format!("#!/bin/sh\nDOCKER_HOST={host} exec /usr/bin/env docker \"$@\"\n");
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let environment = Environment::from_pairs([
        ("PATH", PATH),
        ("HOME", site.user.to_str().unwrap()),
        ("EXOSHELL_HOME", site.home.to_str().unwrap()),
        ("EXOSHELL_APPROVAL", "auto"),
        ("EXOSHELL_DOCKER_BINARY", program.to_str().unwrap()),
    ])
    .in_directory(&site.work);
    let config = Resolved::load(&environment, Config::default()).unwrap();
    let runtime = Runtime::new(config, environment);
    let mut overrides = TaskOverrides::default();
    overrides.image = Some(image::BUSYBOX.to_owned());
    overrides.memory_mb = Some(64);
    overrides.network = Some(false);
    overrides
        .env
        .insert("OF_TASK".to_owned(), "mine".to_owned());
    runtime.set_overrides("special", overrides).unwrap();
    let show = "command -v bash || echo no bash; echo ${OF_TASK-unset}; ls /sys/class/net | wc -l";
    let (special, usual, limits) = block_on(async {
        let run = async |task: &str| {
            let request = TerminalRequest::new(show).in_task(task);
            runtime.terminal(request).await.output
        };
        let outputs = (run("special").await, run("usual").await);
        let memory = |id: &String| site.engine().inspect(id)["HostConfig"]["Memory"].as_i64();
        let limits: Vec<Option<i64>> = site.containers().iter().map(memory).collect();
        runtime.cleanup_all().await.unwrap();
        (outputs.0, outputs.1, limits)
    });
    assert_eq!(special, "no bash\nmine\n1\n");
    assert!(usual.starts_with("/usr/bin/bash\nunset\n"), "{usual}");
    assert_eq!(limits.len(), 2, "{limits:?}");
    assert!(limits.contains(&Some(64 << 20)), "{limits:?}");
    assert_eq!(site.containers(), [""; 0]);
}
