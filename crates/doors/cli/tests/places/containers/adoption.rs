//! Containers that the user already has.

use exoshell_testkit::image;
use serde_json::json;

use super::call_as;
use crate::site::{Kind, Sleep};

pub(super) fn a_container_of_the_users_is_used_and_left_as_it_was(kind: Kind) {
    let site = kind.site();
    let engine = site.engine();
    for name in [image::BUSYBOX, image::DEBIAN] {
        let users = engine.start(&["--env", "OF_THE_USER=yes", name, "sleep", "600"]);
        let words = ["--container", users.id()];
        let ran = site.exoshell([
            "run",
            "--container",
            users.id(),
            "echo $OF_THE_USER; echo hi > /tmp/made",
        ]);
        assert_eq!(
            (ran.code(), ran.text().as_str()),
            (0, "yes\n"),
            "{}",
            ran.talk()
        );
        let call = |command: &str| call_as(&site, &words, &[], &json!({ "command": command }));
        call("cd /tmp; export A=1").code();
        call("cat made; echo $A").printed("hi\n1\n");
        let sleep = Sleep::new();
        let background = json!({"command": sleep.fill("sleep N"), "background": true});
        let begun = call_as(&site, &words, &[], &background);
        assert_eq!(begun.code(), 0, "{}", begun.0);
        sleep.runs(1);
        assert!(
            users.id().starts_with(
                site.json(["places", "ls", "--json"])["places"][0]["id"]
                    .as_str()
                    .unwrap()
            )
        );

        let removed = site.exoshell(["places", "rm", "default"]);
        assert_eq!(removed.code(), 0, "{}", removed.talk());
        // What we brought is gone; what was there, and what the commands made, is there.
        sleep.ends_within(std::time::Duration::from_secs(10));
        let mut left = engine.top(users.id());
        // The user's main process reaps nobody; what is in brackets is dead.
        left.retain(|command| !command.starts_with('['));
        assert_eq!(left, ["sleep 600"]);
        let left = "ls -a / /tmp /var/tmp /dev/shm 2>/dev/null | grep exoshell; cat /tmp/made";
        assert_eq!(engine.run(&["exec", users.id(), "sh", "-c", left]), "hi");
    }
    assert_eq!(site.containers(), [""; 0], "none was made");

    for (name, word) in [
        ("no-such-container-at-all", "no container"),
        ("a b", "no name"),
    ] {
        let answer = call_as(
            &site,
            &["--container", name],
            &[],
            &json!({"command": "true"}),
        );
        assert!(answer.error().contains(word), "{}", answer.0);
        assert_ne!(answer.hint(), "", "{}", answer.0);
    }
    // One that does not run is not ours to start.
    let ended = engine.start(&[image::BUSYBOX, "true"]);
    engine.run(&["wait", ended.id()]);
    let answer = call_as(
        &site,
        &["--container", ended.id()],
        &[],
        &json!({"command": "true"}),
    );
    assert_eq!(answer.0["error_reason"], "no_container", "{}", answer.0);
    assert!(answer.hint().contains("start it"), "{}", answer.0);
    assert_eq!(engine.inspect(ended.id())["State"]["Running"], false);
}
