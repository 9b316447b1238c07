//! Ends: by limit, by the caller, by signal, by the death of the host.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::json;

use crate::site::{Kind, Sleep};
use crate::support::Answer;

const SECOND: Duration = Duration::from_secs(1);

/// Less patience with what ignores a TERM, where that is not the question.
pub(crate) const SHORT_GRACE: &[(&str, &str)] = &[("terminal.kill_grace_seconds", "0.3")];

pub(crate) fn timeout_keeps_the_output_and_is_told_apart_from_an_exit_with_124(kind: Kind) {
    let site = kind.site();
    // Making the place is not what is timed.
    site.terminal("true");
    let timeout = site.call(&json!({"command": "printf partial; sleep 60", "timeout": 1}));
    assert_eq!((timeout.code(), timeout.status()), (124, "timeout"));
    assert_eq!(timeout.output(), "partial\n[Command timed out after 1 s]\n");
    let took = timeout.0["duration_ms"].as_u64().unwrap();
    assert!((1000..5000).contains(&took), "{}", timeout.0);
    let exited = site.terminal("exit 124");
    assert_eq!((exited.code(), exited.status()), (124, ""));
    // The session is unharmed.
    site.terminal("echo next").printed("next\n");
}

pub(crate) fn a_timeout_above_the_maximum_is_clamped_and_said(kind: Kind) {
    let site = kind.site_with(&[
        ("terminal.timeout_seconds", "2"),
        ("terminal.max_timeout_seconds", "3"),
    ]);
    let answer = site.call(&json!({"command": "sleep 60", "timeout": 100}));
    assert_eq!(answer.code(), 124);
    let note = answer.0["timeout_note"].as_str().unwrap_or_default();
    assert!(note.contains("3 s is used"), "{}", answer.0);
    let answer = site.call(&json!({"command": "sleep 60", "timeout": 0}));
    assert!(
        answer.output().contains("after 2 s"),
        "0 is the default: {}",
        answer.0
    );
    let answer = site.call(&json!({"command": "sleep 60", "timeout": "1"}));
    assert!(answer.output().contains("after 1 s"), "{}", answer.0);
}

pub(crate) fn a_timeout_ends_the_whole_tree_however_it_hides(kind: Kind) {
    let site = kind.site_with(SHORT_GRACE);
    site.terminal("true").printed("");
    for form in [
        "echo partial; trap \"\" TERM; setsid -f sleep N; sleep N",
        "echo partial; (setsid bash -c '(sleep N &) & exec sleep N' &) ; sleep N",
        "echo partial; nohup setsid bash -c 'trap \"\" TERM HUP INT; while :; do sleep N; done' & wait",
        "echo partial; env -i setsid -f /usr/bin/sleep N; exec sleep N",
    ] {
        let sleep = Sleep::new();
        let ran = site
            .start_call(&json!({"command": sleep.fill(form), "timeout": 1}))
            .finish_within(15 * SECOND);
        let answer = Answer::parse(&ran.out);
        assert_eq!(
            (answer.code(), answer.status()),
            (124, "timeout"),
            "`{form}`: {}",
            answer.0
        );
        assert!(
            answer.output().starts_with("partial\n"),
            "`{form}`: {}",
            answer.0
        );
        sleep.ends_within(SECOND);
    }
    // One that keeps forking is ended too.
    let sleep = Sleep::new();
    let form = "trap '' TERM; while :; do setsid sleep N & sleep 0.05; done";
    let ran = site
        .start_call(&json!({"command": sleep.fill(form), "timeout": 1}))
        .finish_within(20 * SECOND);
    assert_eq!(Answer::parse(&ran.out).code(), 124);
    sleep.ends_within(SECOND);
}

pub(crate) fn an_interrupt_is_130_and_ends_the_whole_tree(kind: Kind) {
    let site = kind.site_with(SHORT_GRACE);
    let sleep = Sleep::new();
    let command =
        sleep.fill("printf partial; trap '' INT TERM; setsid -f sleep N; sleep N; echo never");
    let call = site.start_call(&json!({ "command": command }));
    sleep.runs(2);
    call.signal(Signal::INT);
    let answer = Answer::parse(&call.finish_within(10 * SECOND).out);
    assert_eq!(
        (answer.code(), answer.status()),
        (130, "interrupted"),
        "{}",
        answer.0
    );
    assert_eq!(answer.output(), "partial\n[Command interrupted]\n");
    sleep.ends_within(SECOND);

    let sleep = Sleep::new();
    let run = site.start(["run", "--task", "t", &sleep.fill("echo started; sleep N")]);
    sleep.runs(1);
    run.signal(Signal::TERM);
    let ran = run.finish_within(10 * SECOND);
    assert_eq!((ran.code(), ran.text().as_str()), (130, "started\n"));
    sleep.ends_within(SECOND);
}

pub(crate) fn nothing_of_a_cancelled_command_shows_up_later(kind: Kind) {
    let site = kind.site();
    site.terminal("cd /usr; export A=1").printed("");
    let sleep = Sleep::new();
    let command = sleep.fill("cd /; export A=2; echo old; sleep N; echo late");
    let call = site.start_call(&json!({ "command": command }));
    sleep.runs(1);
    call.signal(Signal::TERM);
    let answer = Answer::parse(&call.finish().out);
    assert_eq!(
        (answer.code(), answer.output()),
        (130, "old\n[Command interrupted]\n")
    );
    site.terminal("echo new; pwd; echo $A")
        .printed("new\n/usr\n1\n");
}

pub(crate) fn death_by_a_signal_is_128_plus_its_number_and_named(kind: Kind) {
    let site = kind.site();
    for (name, code) in [("KILL", 137), ("TERM", 143), ("SEGV", 139), ("HUP", 129)] {
        let answer = site.terminal(&format!("printf partial; kill -{name} $$"));
        assert_eq!(
            (answer.code(), answer.status(), answer.output()),
            (code, "", "partial"),
            "{}",
            answer.0
        );
        assert_eq!(answer.0["signal"], format!("SIG{name}"));
    }
    // A shell tells how its child ended; it did not die itself.
    let answer = site.terminal("bash -c 'kill -KILL $$' 2>/dev/null");
    assert_eq!(answer.code(), 137, "{}", answer.0);
}

pub(crate) fn a_call_does_not_wait_for_what_is_left_running_and_names_it(kind: Kind) {
    let site = kind.site();
    site.terminal("true").printed("");
    let sleep = Sleep::new();
    for form in [
        "setsid sleep N & echo done",
        "sleep N & disown; echo done",
        "nohup sleep N & echo done",
        "(sleep N &); echo done",
    ] {
        let ran = site
            .start_call(&json!({"command": sleep.fill(form)}))
            .finish();
        let answer = Answer::parse(&ran.out);
        assert_eq!(answer.code(), 0, "{}", answer.0);
        assert!(answer.output().contains("done\n"), "{}", answer.0);
        // The call itself, without the programs it needs to get there.
        let took = answer.0["duration_ms"].as_u64().unwrap();
        assert!(took < 2000, "`{form}` took {took} ms");
        let left = answer.left_running();
        let named = left.iter().any(|command| command.contains(&sleep.0));
        assert!(named, "`{form}` is not named: {}", answer.0);
    }
    sleep.runs(4);
    // A later command's timeout is none of theirs.
    let answer = site.call(&json!({"command": "sleep 60", "timeout": 1}));
    assert_eq!(answer.code(), 124, "{}", answer.0);
    assert_eq!(sleep.count(), 4);
    let removed = site.exoshell(["places", "rm", "default"]);
    assert_eq!(removed.code(), 0, "{}", removed.talk());
    sleep.ends_within(5 * SECOND);
}

pub(crate) fn stopped_processes_do_not_hold_the_call(kind: Kind) {
    let site = kind.site_with(SHORT_GRACE);
    let sleep = Sleep::new();
    let command = sleep.fill("sleep N & kill -STOP $!; kill -STOP $$");
    let ran = site
        .start_call(&json!({"command": command, "timeout": 1}))
        .finish_within(15 * SECOND);
    let answer = Answer::parse(&ran.out);
    assert_eq!(answer.code(), 124, "{}", answer.0);
    sleep.ends_within(SECOND);
}

pub(crate) fn a_host_killed_hard_takes_its_command_along_but_not_the_session(kind: Kind) {
    let site = kind.site_with(SHORT_GRACE);
    site.terminal("cd /usr; export A=1").printed("");
    let sleep = Sleep::new();
    let command = sleep.fill("export A=2; trap '' TERM; setsid -f sleep N; sleep N");
    let host = site.start_call(&json!({ "command": command }));
    sleep.runs(2);
    host.signal(Signal::KILL);
    drop(host);
    let next = site.terminal("pwd; echo $A");
    next.printed("/usr\n1\n");
    assert_eq!(next.hint(), "");
    // At once on this machine; elsewhere a host may only have lost its connection, for up to 60 s.
    let limit = match kind {
        Kind::Local => 4 * SECOND,
        _ => 70 * SECOND,
    };
    sleep.ends_within(limit);
}
