//! Places: made, listed, removed, lost.

use std::time::Duration;

use serde_json::json;

use crate::ends::SHORT_GRACE;
use crate::site::{Kind, Sleep, ids};
use crate::support::Answer;

const SECOND: Duration = Duration::from_secs(1);

/// The name of the backend that a place of this kind has.
fn backend(kind: Kind) -> &'static str {
    match kind {
        Kind::Local => "local",
        Kind::Docker | Kind::Podman => "docker",
        Kind::Ssh => "ssh",
        Kind::Command => "command",
    }
}

pub(crate) fn a_place_is_listed_removed_and_made_anew(kind: Kind) {
    let site = kind.site();
    site.terminal("cd /usr; export A=1").printed("");
    let list = site.json(["places", "ls", "--json"]);
    let places = list["places"].as_array().unwrap();
    assert_eq!(places.len(), 1, "{list}");
    assert_eq!(
        (&places[0]["task"], &places[0]["backend"]),
        (&json!("default"), &json!(backend(kind))),
        "{list}"
    );
    assert_eq!(places[0]["cwd"], "/usr", "{list}");
    let info = site.json(["places", "info", "default", "--json"]);
    assert_eq!(info["task"], "default", "{info}");
    // What is gone already is said.
    for code in [0, 1] {
        let ran = site.exoshell(["places", "rm", "default"]);
        assert_eq!(ran.code(), code, "{}", ran.talk());
        assert_eq!(site.json(["places", "ls", "--json"])["places"], json!([]));
        assert_eq!(site.containers(), [""; 0]);
    }
    let answer = site.terminal("echo ${A-unset}");
    answer.printed("unset\n");
    // It was removed on purpose. (A container may say which limits the machine cannot enforce.)
    assert!(!answer.hint().contains("gone"), "{}", answer.0);
}

pub(crate) fn removing_a_place_ends_everything_in_it(kind: Kind) {
    let site = kind.site_with(SHORT_GRACE);
    let [foreground, background, left] = [Sleep::new(), Sleep::new(), Sleep::new()];
    site.task("t", &left.fill("setsid sleep N & true")).code();
    let id = site.begin(
        &background.fill("trap '' TERM; sleep N"),
        &json!({"task_id": "t"}),
    );
    let command = foreground.fill("sleep N");
    let call = site.start_call(&json!({"command": command, "task_id": "t"}));
    for sleep in [&foreground, &background, &left] {
        sleep.runs(1);
    }
    let other = Sleep::new();
    let kept = site.begin(&other.fill("exec sleep N"), &json!({"task_id": "other"}));
    let ran = site.exoshell(["places", "rm", "t"]);
    assert_eq!(ran.code(), 0, "{}", ran.talk());
    let answer = Answer::parse(&call.finish_within(20 * SECOND).out);
    assert_ne!(answer.code(), 0, "{}", answer.0);
    for sleep in [&foreground, &background, &left] {
        sleep.ends_within(5 * SECOND);
    }
    let poll = site.process("poll", &id, &json!({}));
    assert_ne!(poll.error(), "", "{}", poll.0);
    assert_eq!(poll.0["exit_code"].as_i64().unwrap_or(-1), -1, "{}", poll.0);
    // Another task's place is another's.
    assert_eq!(site.process("poll", &kept, &json!({})).status(), "running");
}

pub(crate) fn two_tasks_never_see_each_other(kind: Kind) {
    let site = kind.site();
    site.task(
        "a",
        "cd /usr; export A=1; f() { echo f; }; alias x=y; umask 077",
    )
    .printed("");
    site.task("b", "cd /tmp; export B=1").printed("");
    let show = "pwd; echo ${A-unset} ${B-unset}; declare -F f; alias x 2>/dev/null; umask";
    site.task("a", show)
        .printed("/usr\n1 unset\nf\nalias x='y'\n0077\n");
    site.task("b", show).printed("/tmp\nunset 1\n0022\n");
    // One-shot runs see neither.
    let ran = site.exoshell(["run", "echo ${A-unset} ${B-unset}"]);
    assert_eq!(ran.text(), "unset unset\n", "{}", ran.talk());
}

pub(crate) fn a_place_that_is_gone_is_said_and_its_processes_are_lost(kind: Kind) {
    let site = kind.site();
    site.terminal("cd /usr; export A=1").printed("");
    let sleep = Sleep::new();
    let id = site.begin(&sleep.fill("echo before; exec sleep N"), &json!({}));
    let done = site.begin("exit 0", &json!({}));
    site.wait_for_line(&id, "before");
    site.wait_for_end(&done);
    site.destroy();
    sleep.ends_within(20 * SECOND);
    for id in [&id, &done] {
        let poll = site.process("poll", id, &json!({}));
        assert_eq!(poll.status(), "lost", "{}", poll.0);
        assert_eq!(poll.0["exit_code"].as_i64(), None, "{}", poll.0);
        for (action, more) in [
            ("log", json!({})),
            ("write", json!({"data": "x"})),
            ("kill", json!({})),
        ] {
            let (answer, code) = site.process_with_code(action, id, &more);
            assert_ne!(code, 0, "{action}: {}", answer.0);
            assert!(answer.error().contains("lost"), "{action}: {}", answer.0);
        }
    }
    let list = site.json(["ps", "--all", "--json"]);
    assert_eq!(ids(&list).len(), 2, "{list}");
    // The next call works, in a new place, and says once that the old one is gone.
    let answer = site.terminal("echo ${A-unset}");
    answer.printed("unset\n");
    assert!(answer.hint().contains("gone"), "{}", answer.0);
    assert_eq!(site.terminal("true").hint(), "");
}
