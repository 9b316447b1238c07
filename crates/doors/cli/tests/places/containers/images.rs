//! Images of all kinds.

use exoshell_testkit::image;
use serde_json::json;

use crate::site::{Kind, Site, Sleep};

/// Makes a world whose containers are of this image.
#[track_caller]
fn site_of(kind: Kind, image: &str) -> Site {
    kind.site_called_with(
        &[("terminal.kill_grace_seconds", "0.3")],
        &[("TERMINAL_DOCKER_IMAGE", image)],
    )
}

/// Asserts that commands, their state, processes and their ends are as everywhere else, and that
/// after a timeout the engine sees nothing of the call.
#[track_caller]
fn everything_works(site: &Site) {
    let ran = site.exoshell(["run", "echo out; echo err >&2; exit 3"]);
    assert_eq!((ran.code(), ran.text().as_str()), (3, "out\n"));
    assert!(ran.talk().contains("err\n"), "{}", ran.talk());
    site.terminal("cd /etc; export A=1").code();
    site.terminal("pwd; echo $A").printed("/etc\n1\n");

    let sleep = Sleep::new();
    let command = sleep.fill("echo partial; (trap '' TERM; sleep N) & sleep N");
    let answer = site.call(&json!({"command": command, "timeout": 1}));
    assert_eq!((answer.code(), answer.status()), (124, "timeout"));
    assert!(answer.output().starts_with("partial\n"), "{}", answer.0);
    let left = site.engine().top(&site.container());
    assert!(
        !left.iter().any(|command| command.contains(&sleep.0)),
        "left of the call: {left:?}"
    );

    let id = site.begin(&sleep.fill("echo begun; sleep N"), &json!({}));
    site.wait_for_line(&id, "begun");
    sleep.runs(1);
    let killed = site.process("kill", &id, &json!({}));
    assert_eq!(killed.error(), "", "{}", killed.0);
    let left = site.engine().top(&site.container());
    assert!(
        !left.iter().any(|command| command.contains(&sleep.0)),
        "left of the process: {left:?}"
    );
}

pub(super) fn an_image_without_bash_works_with_sh_and_says_so(kind: Kind) {
    let site = site_of(kind, image::BUSYBOX);
    let ran = site.exoshell(["run", "echo in $0"]);
    assert_eq!(ran.code(), 0, "{}", ran.talk());
    assert!(
        ran.talk().contains("there is no bash here"),
        "{}",
        ran.talk()
    );
    assert!(ran.talk().contains("sh` is used"), "{}", ran.talk());
    let first = site.terminal("type bash");
    assert_ne!(first.code(), 0, "{}", first.0);
    assert!(
        first.hint().contains("there is no bash here"),
        "{}",
        first.0
    );
    everything_works(&site);
}

pub(super) fn an_image_without_ps_and_timeout_misses_nothing(kind: Kind) {
    let site = site_of(kind, image::SLIM);
    for program in ["ps", "timeout", "pgrep", "pkill"] {
        let answer = site.terminal(&format!("type {program} 2>/dev/null"));
        assert_eq!(answer.code(), 1, "{program} is there: {}", answer.0);
    }
    everything_works(&site);
}

pub(super) fn an_image_with_a_user_runs_commands_as_that_user(kind: Kind) {
    let site = site_of(kind, image::USER);
    site.terminal(
        "id -u; pwd; echo mine > ~/file && cat file; touch /etc/no 2>/dev/null || echo no",
    )
    .printed("1234\n/home/worker\nmine\nno\n");
    site.terminal("grep CapEff /proc/self/status")
        .printed("CapEff:\t0000000000000000\n");
    // Its own memory is its own, and so are the temporary folders.
    site.terminal("touch /tmp/a /workspace/a && ls -n /tmp/a | cut -d' ' -f3")
        .printed("1234\n");
    everything_works(&site);
}

pub(super) fn an_image_with_an_entrypoint_runs_ours_instead(kind: Kind) {
    let site = site_of(kind, image::ENTRYPOINT);
    site.terminal("echo hi").printed("hi\n");
    let logs = site.engine().run(&["logs", &site.container()]);
    assert!(!logs.contains("entrypoint"), "{logs}");
    everything_works(&site);
}
