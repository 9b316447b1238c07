//! Background processes: started, looked at, spoken to and ended.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::ends::SHORT_GRACE;
use crate::site::{Kind, Sleep, ids};
use crate::support::Answer;

const SECOND: Duration = Duration::from_secs(1);

pub(crate) fn poll_gives_what_is_new_and_the_list_has_it_all(kind: Kind) {
    let site = kind.site();
    let work = site.enter_folder();
    let id = site.begin(
        "echo one; read -r x; echo two >&2; read -r x; exit 3",
        &json!({}),
    );
    let answer = site.process("wait", &id, &json!({"until": "one", "timeout": 60}));
    assert_eq!(
        (answer.output(), answer.status()),
        ("one\n", "running"),
        "{}",
        answer.0
    );
    assert_eq!(site.process("poll", &id, &json!({})).output(), "");
    site.process("submit", &id, &json!({}));
    let answer = site.process("wait", &id, &json!({"until": "two", "timeout": 60}));
    assert_eq!(answer.output(), "two\n", "{}", answer.0);
    let other = site.begin("read -r x", &json!({"task_id": "other"}));

    let list = site.process("list", "", &json!({"task_id": "default"})).0;
    assert_eq!(ids(&list), [id.as_str()], "{list}");
    let entry = &list["processes"][0];
    assert_eq!(
        (&entry["status"], &entry["cwd"], &entry["task_id"]),
        (&json!("running"), &json!(work), &json!("default"))
    );
    assert!(
        entry["uptime_seconds"].is_u64() && entry["pid"].is_u64(),
        "{entry}"
    );
    let mut both = ids(&site.process("list", "", &json!({})).0)
        .into_iter()
        .map(str::to_owned)
        .collect::<Vec<_>>();
    both.sort();
    let mut expected = [id.clone(), other];
    expected.sort();
    assert_eq!(both, expected);
    // Another task's process does not exist for this one.
    let hidden = site.process("poll", &id, &json!({"task_id": "other"}));
    assert!(
        hidden.error().contains("there is no process"),
        "{}",
        hidden.0
    );

    site.process("submit", &id, &json!({}));
    let ended = site.wait_for_end(&id);
    assert_eq!((ended.status(), ended.code()), ("exited", 3), "{}", ended.0);
    let poll = site.process("poll", &id, &json!({}));
    assert_eq!(
        (poll.output(), poll.status(), poll.code()),
        ("", "exited", 3)
    );
    assert_eq!(site.logs(&id), "one\ntwo\n");
    let list = site.json(["ps", "--all", "--task", "default", "--json"]);
    assert_eq!(list["processes"][0]["exit_code"], 3, "{list}");
}

pub(crate) fn every_way_to_end_is_told_apart(kind: Kind) {
    let site = kind.site();
    for (command, action, more, status, code) in [
        ("true", "poll", json!({}), "exited", Some(0)),
        ("exit 9", "poll", json!({}), "exited", Some(9)),
        ("kill -SEGV $$", "poll", json!({}), "signalled", Some(139)),
        ("nonexistent-4711", "poll", json!({}), "exited", Some(127)),
        (
            "exec sleep 500",
            "signal",
            json!({"signal": "TERM"}),
            "signalled",
            Some(143),
        ),
        (
            "trap 'exit 0' TERM; echo up; while :; do sleep 0.02; done",
            "kill",
            json!({}),
            "killed",
            None,
        ),
    ] {
        let id = site.begin(command, &json!({}));
        if action == "kill" {
            site.wait_for_line(&id, "up");
        }
        let answer = site.process(action, &id, &more);
        assert_eq!(answer.error(), "", "`{command}` {action}: {}", answer.0);
        let ended = site.wait_for_end(&id);
        assert_eq!(ended.status(), status, "`{command}` {action}: {}", ended.0);
        match code {
            Some(code) => assert_eq!(ended.code(), code, "`{command}`: {}", ended.0),
            None => assert_ne!(ended.code(), 0, "`{command}`: {}", ended.0),
        }
        // The word on the command line says the same.
        assert_eq!(i64::from(site.exoshell(["wait", &id]).code()), ended.code());
    }
}

pub(crate) fn a_timeout_holds_for_a_process_that_was_given_one(kind: Kind) {
    // The limits of the foreground are none of a process's business.
    let site = kind.site_with(&[("terminal.timeout_seconds", "0.5"), SHORT_GRACE[0]]);
    let free = site.begin("read -r x; exit 6", &json!({}));
    let sleep = Sleep::new();
    let limited = site.begin(
        &sleep.fill("trap '' TERM; setsid -f sleep N; sleep N"),
        &json!({"timeout": 1}),
    );
    let ended = site.wait_for_end(&limited);
    assert_eq!(
        (ended.status(), ended.code()),
        ("timeout", 124),
        "{}",
        ended.0
    );
    sleep.ends_within(SECOND);
    assert_eq!(site.process("poll", &free, &json!({})).status(), "running");
    site.process("submit", &free, &json!({}));
    assert_eq!(site.wait_for_end(&free).code(), 6);
}

pub(crate) fn a_kill_takes_the_whole_tree(kind: Kind) {
    let site = kind.site_with(SHORT_GRACE);
    let sleep = Sleep::new();
    let form = "trap '' TERM INT; setsid -f sleep N; (setsid bash -c '(sleep N &) & exec sleep N' &); sleep N";
    for word in ["tool", "command line"] {
        let id = site.begin(&sleep.fill(form), &json!({}));
        sleep.runs(4);
        if word == "tool" {
            let answer = site.process("kill", &id, &json!({}));
            assert_eq!(
                (answer.error(), answer.status()),
                ("", "killed"),
                "{}",
                answer.0
            );
        } else {
            let ran = site.exoshell(["kill", &id]);
            assert_eq!(ran.code(), 0, "{}", ran.talk());
        }
        sleep.ends_within(SECOND);
        assert_eq!(site.process("poll", &id, &json!({})).status(), "killed");
    }
}

pub(crate) fn stdin_is_written_line_by_line_and_closed(kind: Kind) {
    let site = kind.site();
    let id = site.begin("sort; echo sorted", &json!({}));
    site.process("write", &id, &json!({"data": "b\n"}));
    site.process("submit", &id, &json!({"data": "a"}));
    site.process("write", &id, &json!({"data": "ü"}));
    let answer = site.process("close", &id, &json!({}));
    assert_eq!(answer.error(), "", "{}", answer.0);
    assert_eq!(site.wait_for_end(&id).output(), "a\nb\nü\nsorted\n");
    // What is given at the start is all there is.
    let id = site.begin("cat; echo end", &json!({"stdin": "given\n"}));
    assert_eq!(site.wait_for_end(&id).output(), "given\nend\n");
}

pub(crate) fn log_pages_by_lines_also_from_the_end(kind: Kind) {
    let site = kind.site();
    let id = site.begin("seq 0 999; printf tail", &json!({}));
    site.wait_for_end(&id);
    for (more, output, showing) in [
        (
            json!({"offset": 0, "limit": 3}),
            "0\n1\n2\n",
            "lines 0 to 2",
        ),
        (
            json!({"offset": 999, "limit": 5}),
            "999\ntail",
            "lines 999 to 1000",
        ),
        (
            json!({"offset": -3, "limit": 1}),
            "998\n",
            "lines 998 to 998",
        ),
        (json!({"offset": 5000}), "", "nothing"),
    ] {
        let answer = site.process("log", &id, &more);
        assert_eq!(
            (
                answer.output(),
                &answer.0["showing"],
                &answer.0["total_lines"]
            ),
            (output, &json!(showing), &json!(1001)),
            "{more}: {}",
            answer.0
        );
    }
    let page = site.process("log", &id, &json!({}));
    assert_eq!(page.0["showing"], "lines 801 to 1000", "{}", page.0);
}

pub(crate) fn one_wait_lasts_until_a_line_the_exit_or_the_limit(kind: Kind) {
    let site = kind.site_with(&[("terminal.max_timeout_seconds", "5")]);
    let id = site.begin(
        "echo starting; read -r x; echo 'listening on 80'; printf 'name? '; read -r x; exit 4",
        &json!({}),
    );
    let wait = |more: Value| site.process("wait", &id, &more);
    let answer = wait(json!({"until": "^start", "timeout": 5}));
    assert_eq!(
        (&answer.0["wait"], &answer.0["matched_line"]),
        (&json!("matched"), &json!("starting")),
        "{}",
        answer.0
    );
    // What was told already does not match again.
    let began = Instant::now();
    let answer = wait(json!({"until": "^start", "timeout": 0.3}));
    assert_eq!(answer.0["wait"], "time_up", "{}", answer.0);
    assert!(began.elapsed() >= Duration::from_millis(300));
    site.process("submit", &id, &json!({}));
    let answer = wait(json!({"until": r"name\? $", "timeout": 5}));
    assert_eq!(answer.0["matched_line"], "name? ", "{}", answer.0);
    // One who waits can be interrupted, and the process does not notice.
    let waiter = site.start_process_call("wait", &id, &json!({"timeout": 5}));
    waiter.signal(Signal::INT);
    waiter.finish_within(10 * SECOND);
    assert_eq!(site.process("poll", &id, &json!({})).status(), "running");
    let waiter = site.start_process_call("wait", &id, &json!({"timeout": 600}));
    site.process("submit", &id, &json!({}));
    let answer = Answer::parse(&waiter.finish().out);
    assert_eq!(
        (&answer.0["wait"], answer.code()),
        (&json!("exited"), 4),
        "{}",
        answer.0
    );
    let note = answer.0["timeout_note"].as_str().unwrap_or_default();
    assert!(note.contains("5 s"), "{}", answer.0);
}

pub(crate) fn a_finished_process_can_be_read_and_asked_and_not_written_to(kind: Kind) {
    let site = kind.site();
    let id = site.begin("echo out; echo err >&2; exit 8", &json!({}));
    site.wait_for_end(&id);
    for _ in 0..2 {
        let log = site.process("log", &id, &json!({}));
        assert_eq!(log.output(), "out\nerr\n", "{}", log.0);
        assert_eq!((log.code(), log.status()), (8, "exited"));
        assert!(log.0["ended_seconds_ago"].is_u64(), "{}", log.0);
    }
    for (action, more) in [
        ("write", json!({"data": "x"})),
        ("submit", json!({"data": "x"})),
        ("close", json!({})),
        ("signal", json!({"signal": "TERM"})),
    ] {
        let (answer, code) = site.process_with_code(action, &id, &more);
        assert_ne!(code, 0, "{action}: {}", answer.0);
        assert!(
            answer.error().contains("has ended"),
            "{action}: {}",
            answer.0
        );
    }
    for (action, more) in [
        ("screen", json!({})),
        ("resize", json!({"cols": 80, "rows": 24})),
    ] {
        let answer = site.process(action, &id, &more);
        assert!(
            answer.error().contains("has no terminal"),
            "{action}: {}",
            answer.0
        );
    }
    let strange = site.process("poll", "proc_0000000000000000", &json!({}));
    assert!(
        strange.error().contains("there is no process"),
        "{}",
        strange.0
    );
    // Being killed afterwards does not change how it ended.
    assert_eq!(site.process("kill", &id, &json!({})).error(), "");
    assert_eq!(site.process("poll", &id, &json!({})).code(), 8);
}

pub(crate) fn at_least_the_last_200_kb_are_there(kind: Kind) {
    let site = kind.site();
    let id = site.begin("seq 1000000 1040000", &json!({}));
    site.wait_for_end(&id);
    let lines: Vec<String> = (1_000_000..=1_040_000).map(|n| format!("{n}\n")).collect();
    let expected = lines.concat();
    let kept = site.logs(&id);
    assert!(kept.len() >= 200 * 1024, "{} bytes", kept.len());
    assert!(expected.ends_with(&kept), "as it was produced");
}

pub(crate) fn completion_is_told_exactly_once_to_everyone_who_asks(kind: Kind) {
    let site = kind.site();
    let id = site.begin(
        "echo first; echo last; exit 3",
        &json!({"notify_on_complete": true}),
    );
    site.wait_for_end(&id);
    for consumer in ["one", "two"] {
        let events = site.events(consumer);
        assert_eq!(events.len(), 1, "{consumer}: {events:?}");
        let event = &events[0];
        assert_eq!(
            (
                &event["event"],
                &event["id"],
                &event["state"],
                &event["code"],
                &event["tail"]
            ),
            (
                &json!("completed"),
                &json!(id),
                &json!("exited"),
                &json!(3),
                &json!("first\nlast\n")
            ),
        );
        assert_eq!(site.events(consumer), [Value::Null; 0], "{consumer}");
    }
}

pub(crate) fn a_watch_names_the_line_and_no_event_comes_unasked(kind: Kind) {
    let site = kind.site();
    let silent = site.begin("echo ERROR; exit 1", &json!({}));
    site.wait_for_end(&silent);
    let answer = site.call(&json!({
        "command": "echo quiet; echo 'ERROR one'; echo 'ERROR two'",
        "background": true, "watch_patterns": ["ERROR"], "check_interval": 1,
    }));
    let note = answer.0["check_interval_note"].as_str().unwrap_or_default();
    assert!(note.contains("30 s"), "{}", answer.0);
    let id = answer.0["session_id"].as_str().unwrap();
    site.wait_for_end(id);
    let events = site.events("cli");
    let told: Vec<_> = events
        .iter()
        .map(|event| (&event["event"], &event["id"], &event["line"]))
        .collect();
    assert_eq!(told, [(&json!("matched"), &json!(id), &json!("ERROR one"))]);
}

pub(crate) fn what_a_command_left_running_is_listed_and_can_be_killed(kind: Kind) {
    let site = kind.site();
    let sleep = Sleep::new();
    let command = sleep.fill("setsid bash -c 'echo from behind; exec sleep N' & true");
    site.terminal(&command);
    sleep.runs(1);
    let list = site.process("list", "", &json!({})).0;
    let entry = &list["processes"][0];
    assert_eq!(ids(&list).len(), 1, "{list}");
    assert_eq!(
        (&entry["status"], &entry["adopted"]),
        (&json!("running"), &json!(true))
    );
    let id = entry["session_id"].as_str().unwrap();
    let answer = site.process("kill", id, &json!({}));
    assert_eq!(
        (answer.error(), answer.status()),
        ("", "killed"),
        "{}",
        answer.0
    );
    sleep.ends_within(SECOND);
}

pub(crate) fn a_process_outlives_every_host_with_output_stdin_and_exit_code(kind: Kind) {
    const LINES: usize = 60;
    let site = kind.site();
    let counter = format!(
        "for ((i = 1; i <= {LINES}; i++)); do echo \"line $i\"; sleep 0.02; done; \
         read -r word; echo \"got $word\"; exit 7"
    );
    let id = site.begin(&counter, &json!({"notify_on_complete": true}));
    // One host follows, another one waits; both are killed in the middle of it.
    let follower = site.start(["logs", "-f", &id]);
    let waiter = site.start_process_call("wait", &id, &json!({"timeout": 60}));
    site.wait_for_line(&id, "^line 20$");
    for host in [&follower, &waiter] {
        host.signal(Signal::KILL);
    }
    let seen = follower.finish().text();
    waiter.finish();
    let submitted = site.process("submit", &id, &json!({"data": "word"}));
    assert_eq!(submitted.error(), "", "{}", submitted.0);
    assert_eq!(site.exoshell(["wait", &id]).code(), 7);
    let lines: Vec<String> = (1..=LINES).map(|n| format!("line {n}\n")).collect();
    let expected = format!("{}got word\n", lines.concat());
    assert_eq!(site.logs(&id), expected);
    assert!(expected.starts_with(&seen), "{seen:?}");
    let events = site.events("harness");
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0]["code"], 7);
}
