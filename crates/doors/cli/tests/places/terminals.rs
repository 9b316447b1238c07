//! Programs on a terminal, in every place.

use std::time::Duration;

use serde_json::{Value, json};

use crate::ends::SHORT_GRACE;
use crate::site::{Kind, Site, Sleep};

/// Does something to a process and asserts that it could be done.
#[track_caller]
fn send(site: &Site, action: &str, id: &str, more: &Value) {
    let answer = site.process(action, id, more);
    assert_eq!(answer.error(), "", "{}", answer.0);
}

pub(crate) fn a_command_with_a_terminal_has_one_and_without_has_none(kind: Kind) {
    let site = kind.site_with(SHORT_GRACE);
    let device = |text: &str| assert!(text.starts_with("/dev/pts/"), "{text:?}");
    let answer =
        site.call(&json!({"command": "tty; [ -t 0 ] && [ -t 1 ] && echo yes", "pty": true}));
    device(answer.output());
    assert!(answer.output().ends_with("yes\n"), "{}", answer.0);
    device(
        &site
            .exoshell(["run", "--task", "default", "--pty", "tty"])
            .text(),
    );
    let id = site.begin("tty; stty size", &json!({"pty": true}));
    let ended = site.wait_for_end(&id);
    device(ended.output());
    assert!(ended.output().ends_with("\n30 120\n"), "{}", ended.0);
    let answer = site.terminal("tty");
    assert_eq!((answer.output(), answer.code()), ("not a tty\n", 1));
    // A command on a terminal is in the session like any other, and its tree ends alike.
    site.call(&json!({"command": "cd /usr; export A=1", "pty": true}))
        .printed("");
    site.terminal("pwd; echo $A").printed("/usr\n1\n");
    let sleep = Sleep::new();
    let command = sleep.fill("trap '' HUP TERM; setsid -f sleep N; sleep N");
    let answer = site.call(&json!({"command": command, "pty": true, "timeout": 1}));
    assert_eq!(answer.code(), 124, "{}", answer.0);
    sleep.ends_within(Duration::from_secs(1));
}

pub(crate) fn a_prompt_takes_lines_keys_and_the_end_of_input(kind: Kind) {
    let site = kind.site();
    let id = site.begin("python3 -q -i", &json!({"pty": true}));
    site.wait_for_screen(&id, |screen| screen.starts_with(">>>"));
    send(&site, "submit", &id, &json!({"data": "6*7"}));
    site.wait_for_screen(&id, |screen| screen.contains("\n42\n>>>"));
    send(
        &site,
        "write",
        &id,
        &json!({"data": "while True: pass\n\n"}),
    );
    send(&site, "write", &id, &json!({"keys": ["ctrl-c"]}));
    site.wait_for_screen(&id, |screen| screen.contains("KeyboardInterrupt"));
    let read = "import sys; sys.stdin.read() and sys.exit(9)";
    send(&site, "submit", &id, &json!({"data": read}));
    send(&site, "submit", &id, &json!({"data": "text"}));
    send(&site, "close", &id, &json!({}));
    let ended = site.wait_for_end(&id);
    assert_eq!((ended.status(), ended.code()), ("exited", 9), "{}", ended.0);
}

pub(crate) fn an_editor_is_drawn_resized_edited_in_and_left(kind: Kind) {
    let site = kind.site();
    site.enter_folder();
    site.terminal("printf 'first\\nsecond 漢字\\n' >note.txt")
        .printed("");
    let id = site.begin(
        "vi -N -u NONE -i NONE -n note.txt",
        &json!({"pty": true, "env": {"LC_ALL": "C.UTF-8"}}),
    );
    let drawn = site.wait_for_screen(&id, |screen| screen.contains("second 漢字"));
    assert_eq!(drawn.0["alternate_screen"], true, "{}", drawn.0);
    assert!(!drawn.0["screen"].as_str().unwrap().contains('\u{1b}'));
    send(&site, "write", &id, &json!({"keys": ["down", "down"]}));
    send(
        &site,
        "write",
        &id,
        &json!({"data": "othird", "keys": ["escape"]}),
    );
    site.wait_for_screen(&id, |screen| screen.contains("second 漢字\nthird"));
    send(&site, "resize", &id, &json!({"cols": 60, "rows": 12}));
    let small = site.wait_for_screen(&id, |screen| screen.contains("third"));
    let lines = small.0["screen"].as_str().unwrap().lines().count();
    assert!(lines <= 12, "{}", small.0);
    send(&site, "submit", &id, &json!({"data": ":wq"}));
    let ended = site.wait_for_end(&id);
    assert_eq!(ended.code(), 0, "{}", ended.0);
    site.terminal("cat note.txt")
        .printed("first\nsecond 漢字\nthird\n");
}
