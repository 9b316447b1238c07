//! Background processes: started, looked at, spoken to and ended.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use exoshell_runtime::{ProcessState, ProcessView, Runtime, StartRequest, WaitReason};
use serde_json::{Value, json};

use crate::support::{
    Program, World, alive, block_on, children_named, descriptors, processes_naming, runtime,
    unique_sleep, wait_until,
};

const NONE: &Value = &Value::Null;

/// Returns the ids of a list.
fn ids(list: &Value) -> Vec<&str> {
    list["processes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|process| process["session_id"].as_str().unwrap())
        .collect()
}

#[test]
fn the_words_of_the_command_line_start_list_show_await_and_end_a_process() {
    let world = World::new();
    let ran = world.exoshell([
        "run",
        "--background",
        "--task",
        "t",
        "echo hi; read -r x; exit 3",
    ]);
    assert_eq!(ran.code(), 0, "{}", ran.talk());
    let id = ran.text().trim().to_owned();
    world.wait_for_line(&id, "hi");
    let listed = world.exoshell(["ps"]).text();
    for word in [id.as_str(), "t ", "running", "echo hi"] {
        assert!(listed.contains(word), "no `{word}` in {listed}");
    }
    assert_eq!(world.exoshell(["logs", &id]).text(), "hi\n");
    let still = world.exoshell(["wait", &id, "--timeout", "0.05"]);
    assert_eq!(still.code(), 124);
    let follower = world.start(["logs", "-f", &id]);
    world.process("submit", &id, &json!({"data": "x"}));
    assert_eq!(world.exoshell(["wait", &id]).code(), 3);
    assert_eq!(follower.finish().text(), "hi\n");
    assert!(!world.exoshell(["ps"]).text().contains(&id));
    assert!(
        world
            .exoshell(["ps", "--all"])
            .text()
            .contains("exited (3)")
    );

    let sleep = unique_sleep();
    let command = format!("trap '' TERM; setsid -f sleep {sleep}; sleep {sleep}");
    let ran = world.exoshell(["run", "--background", &command]);
    let id = ran.text().trim().to_owned();
    wait_until(Duration::from_secs(20), "both sleep", || {
        let running = processes_naming(&sleep);
        running.iter().filter(|p| p.name == "sleep").count() == 2
    });
    assert_eq!(world.exoshell(["kill", &id]).code(), 0);
    assert_eq!(processes_naming(&sleep), [], "the whole tree is gone");
    assert!(world.exoshell(["ps", "--all"]).text().contains("killed"));
}

#[test]
fn every_way_to_end_is_told_apart_and_none_but_success_is_zero() {
    let world = World::new();
    let begun = [
        ("true", json!({}), "exited", 0),
        ("exit 9", json!({}), "exited", 9),
        ("kill -SEGV $$", json!({}), "signalled", 139),
        ("sleep 500", json!({"timeout": 0.3}), "timeout", 124),
        (
            "trap '' TERM; sleep 500",
            json!({"timeout": 0.3}),
            "timeout",
            124,
        ),
        (
            "trap 'exit 0' TERM; while :; do sleep 0.02; done",
            json!({"timeout": 0.3}),
            "timeout",
            124,
        ),
    ]
    .map(|(command, more, status, code)| {
        let mut more = more;
        more["notify_on_complete"] = json!(true);
        (world.begin(command, &more), command, status, code)
    });
    for (id, command, status, code) in &begun {
        let answer = world.wait_for_end(id);
        assert_eq!(
            (answer.status(), answer.code()),
            (*status, *code),
            "`{command}`: {}",
            answer.0
        );
        // Everyone says the same: the next look, the list, the word, the event.
        assert_eq!(world.process("poll", id, &json!({})).status(), *status);
        assert_eq!(i64::from(world.exoshell(["wait", id]).code()), *code);
    }
    let events = world.events("cli");
    for (id, command, status, _) in &begun {
        let of_it: Vec<&Value> = events.iter().filter(|e| e["id"] == json!(id)).collect();
        assert_eq!(of_it.len(), 1, "`{command}`: {events:?}");
        assert_eq!(of_it[0]["state"], json!(status), "`{command}`");
    }
}

#[test]
fn a_kill_and_a_signal_are_told_apart_and_neither_is_success() {
    let world = World::new();
    for (command, action, more, status) in [
        (
            "trap 'exit 0' TERM; while :; do sleep 0.02; done",
            "kill",
            json!({}),
            "killed",
        ),
        (
            "exec sleep 500",
            "signal",
            json!({"signal": "KILL"}),
            "signalled",
        ),
        (
            "exec sleep 500",
            "signal",
            json!({"signal": 15}),
            "signalled",
        ),
    ] {
        let id = world.begin(command, &json!({}));
        let answer = world.process(action, &id, &more);
        assert_eq!(answer.error(), "", "{}", answer.0);
        let answer = world.wait_for_end(&id);
        assert_eq!(
            answer.status(),
            status,
            "`{command}` {action}: {}",
            answer.0
        );
        assert_ne!(answer.code(), 0, "{}", answer.0);
    }
}

#[test]
fn t3_a_background_process_has_a_timeout_only_if_it_is_given_one() {
    // The limits of the foreground are none of its business.
    let world = World::new().with_config("[terminal]\ntimeout_seconds = 0.2\n");
    let free = world.begin("read -r x; exit 6", &json!({}));
    let limited = world.begin("exec sleep 500", &json!({"timeout": 0.5}));
    assert_eq!(world.exoshell(["wait", &limited]).code(), 124);
    assert_eq!(world.process("poll", &free, &json!({})).status(), "running");
    world.process("submit", &free, &json!({}));
    assert_eq!(world.exoshell(["wait", &free]).code(), 6);
}

#[test]
fn b1_the_list_has_every_process_of_a_task_and_none_of_another() {
    let world = World::new();
    fs::create_dir(world.work.join("sub")).unwrap();
    let [first, second] = [unique_sleep(), unique_sleep()];
    let mine = [
        world.begin(
            &format!("exec sleep {first}"),
            &json!({"task_id": "a", "workdir": "sub"}),
        ),
        world.begin(
            &format!("exec sleep {second}"),
            &json!({"task_id": "a", "pty": true}),
        ),
    ];
    let theirs = world.begin("read -r x", &json!({"task_id": "b"}));
    let ended = world.begin("exit 2", &json!({"task_id": "a"}));
    world.wait_for_end(&ended);
    let list = world.process("list", "", &json!({"task_id": "a"})).0;
    assert_eq!(ids(&list), [mine[0].as_str(), &mine[1], &ended], "{list}");
    let entry = &list["processes"][0];
    assert_eq!(entry["status"], "running");
    assert_eq!(entry["command"], format!("exec sleep {first}"));
    assert_eq!(entry["cwd"], world.work.join("sub").to_str().unwrap());
    assert_eq!(entry["task_id"], "a");
    assert!(entry["uptime_seconds"].is_u64() && entry["pid"].is_u64());
    assert!(alive(
        u32::try_from(entry["pid"].as_u64().unwrap()).unwrap()
    ));
    assert_eq!(list["processes"][2]["exit_code"], 2);
    assert_eq!(ids(&world.process("list", "", &json!({})).0).len(), 4);
    assert_eq!(
        ids(&world.json(["ps", "--task", "b", "--json"])),
        [theirs.as_str()]
    );

    // Another task's process does not exist for this one, whatever is asked.
    for (action, more) in every_action() {
        let mut more = more;
        more["task_id"] = json!("b");
        let (answer, code) = world.process_with_code(action, &mine[0], &more);
        assert_ne!(code, 0, "{action}");
        assert!(
            answer.error().contains("there is no process"),
            "{action}: {}",
            answer.0
        );
        assert_eq!(answer.kind(), "usage", "{action}");
        assert!(
            !answer.0.to_string().contains(&first),
            "{action}: {}",
            answer.0
        );
    }
    // The task the door sets goes before the one the model names.
    let arguments = json!({"action": "poll", "session_id": mine[0], "task_id": "a"}).to_string();
    let ran = world.exoshell(["call", "process", &arguments, "--task", "b"]);
    assert_ne!(ran.code(), 0, "{}", ran.text());
    assert_eq!(processes_naming(&first).len(), 1, "nobody ended it");
}

/// Returns every action on one process, with arguments that are right.
fn every_action() -> Vec<(&'static str, Value)> {
    vec![
        ("poll", json!({})),
        ("log", json!({})),
        ("wait", json!({"timeout": 1})),
        ("kill", json!({})),
        ("write", json!({"data": "x"})),
        ("submit", json!({"data": "x"})),
        ("close", json!({})),
        ("signal", json!({"signal": "TERM"})),
        ("resize", json!({"cols": 80, "rows": 24})),
        ("screen", json!({})),
    ]
}

#[test]
fn b3_one_wait_lasts_until_a_line_a_prompt_the_exit_or_the_limit() {
    let world = World::new().with_config("[terminal]\nmax_timeout_seconds = 2\n");
    let id = world.begin(
        "echo starting; read -r x; echo 'listening on 80'; printf 'name? '; read -r x; exit 4",
        &json!({}),
    );
    let wait = |more: Value| world.process("wait", &id, &more);
    let answer = wait(json!({"until": "^start", "timeout": 2}));
    assert_eq!(
        (&answer.0["wait"], &answer.0["matched_line"]),
        (&json!("matched"), &json!("starting"))
    );
    assert_eq!(
        (answer.output(), answer.status()),
        ("starting\n", "running")
    );
    // What was told already does not match again.
    let began = Instant::now();
    let answer = wait(json!({"until": "^start", "timeout": 0.3}));
    assert_eq!(answer.0["wait"], "time_up", "{}", answer.0);
    assert!(began.elapsed() >= Duration::from_millis(300));
    world.process("submit", &id, &json!({}));
    let answer = wait(json!({"until": r"name\? $", "timeout": 2}));
    assert_eq!(answer.0["matched_line"], "name? ", "{}", answer.0);
    assert_eq!(answer.output(), "listening on 80\nname? ");
    let waiter = world.start_process_call("wait", &id, &json!({"until": "exit", "timeout": 600}));
    world.process("submit", &id, &json!({}));
    let ran = waiter.finish();
    let answer = crate::support::Answer::parse(&ran.out);
    assert_eq!(
        (&answer.0["wait"], answer.code()),
        (&json!("exited"), 4),
        "{}",
        answer.0
    );
    let note = answer.0["timeout_note"].as_str().unwrap();
    assert!(note.contains("2 s"), "{note}");
    // A pattern that never comes ends with the process.
    let answer = wait(json!({"until": "never", "timeout": 2}));
    assert_eq!(answer.0["wait"], "exited", "{}", answer.0);
}

#[test]
fn b4_a_finished_process_can_be_read_and_asked_and_not_written_to() {
    let world = World::new();
    for pty in [false, true] {
        let id = world.begin("echo out; echo err >&2; exit 8", &json!({"pty": pty}));
        world.wait_for_end(&id);
        for _ in 0..2 {
            let log = world.process("log", &id, &json!({}));
            assert_eq!(log.output(), "out\nerr\n", "{}", log.0);
            assert_eq!((log.code(), log.status()), (8, "exited"));
            assert!(log.0["ended_seconds_ago"].is_u64(), "{}", log.0);
        }
        assert_eq!(world.exoshell(["wait", &id]).code(), 8);
        for (action, more) in every_action() {
            let (answer, code) = world.process_with_code(action, &id, &more);
            let works =
                matches!(action, "poll" | "log" | "wait" | "kill") || pty && action == "screen";
            assert_eq!(code == 0, works, "{action} (pty {pty}): {}", answer.0);
            assert_eq!(answer.error().is_empty(), works, "{action}: {}", answer.0);
            let reason = if pty || !matches!(action, "resize" | "screen") {
                "has ended"
            } else {
                "has no terminal"
            };
            assert!(
                works || answer.error().contains(reason),
                "{action}: {}",
                answer.0
            );
        }
        // Being killed afterwards does not change how it ended.
        assert_eq!(world.process("poll", &id, &json!({})).code(), 8);
    }
}

#[test]
fn stdin_is_written_line_by_line_and_closed() {
    let world = World::new();
    let id = world.begin("sort; echo sorted", &json!({}));
    world.process("write", &id, &json!({"data": "b\n"}));
    world.process("submit", &id, &json!({"data": "a"}));
    world.process("write", &id, &json!({"data": "ü"}));
    let answer = world.process("close", &id, &json!({}));
    assert_eq!(answer.error(), "", "{}", answer.0);
    assert_eq!(world.wait_for_end(&id).output(), "a\nb\nü\nsorted\n");
    // Closed once, it is closed.
    let id = world.begin("exec <&-; echo up; exec sleep 500", &json!({}));
    world.wait_for_line(&id, "up");
    let answer = world.process("write", &id, &json!({"data": "x"}));
    assert!(answer.error().contains("stdin"), "{}", answer.0);
    world.process("kill", &id, &json!({}));
    // What is given at the start is all there is.
    let id = world.begin("cat; echo end", &json!({"stdin": "given\n"}));
    assert_eq!(world.wait_for_end(&id).output(), "given\nend\n");
}

#[test]
fn log_pages_by_lines_also_from_the_end() {
    let world = World::new();
    let id = world.begin("seq 0 999; printf tail", &json!({}));
    world.wait_for_end(&id);
    for (more, output, showing) in [
        (
            json!({"offset": 0, "limit": 3}),
            "0\n1\n2\n",
            "lines 0 to 2",
        ),
        (
            json!({"offset": 500, "limit": 2}),
            "500\n501\n",
            "lines 500 to 501",
        ),
        (
            json!({"offset": 999, "limit": 5}),
            "999\ntail",
            "lines 999 to 1000",
        ),
        (json!({"offset": -2}), "999\ntail", "lines 999 to 1000"),
        (
            json!({"offset": -3, "limit": 1}),
            "998\n",
            "lines 998 to 998",
        ),
        (
            json!({"offset": -100_000, "limit": 1}),
            "0\n",
            "lines 0 to 0",
        ),
        (json!({"offset": 5000}), "", "nothing"),
    ] {
        let answer = world.process("log", &id, &more);
        assert_eq!(answer.error(), "", "{more}");
        assert_eq!(
            (answer.output(), &answer.0["showing"]),
            (output, &json!(showing)),
            "{more}"
        );
        assert_eq!(answer.0["total_lines"], 1001, "{more}");
    }
    let page = world.process("log", &id, &json!({}));
    assert_eq!(page.0["showing"], "lines 801 to 1000", "{}", page.0);
    assert_eq!(
        world.exoshell(["logs", &id, "--tail", "2"]).text(),
        "999\ntail"
    );
    // Paging never moves what a poll has seen.
    let poll = world.process("poll", &id, &json!({}));
    assert_eq!(poll.output(), "", "the wait had it all");
}

#[test]
fn a_character_that_arrives_in_parts_is_never_shown_broken() {
    let world = World::new();
    let id = world.begin(
        r"printf 'a\xe2'; read -r x; printf '\x82'; read -r x; printf '\xac!\n'; read -r x; printf 'cut \xf0\x9f'",
        &json!({}),
    );
    let shows = |expected: &str| {
        let mut seen = String::new();
        wait_until(Duration::from_secs(20), "the output arrives", || {
            seen.push_str(world.process("poll", &id, &json!({})).output());
            seen == expected
        });
    };
    shows("a");
    world.process("submit", &id, &json!({}));
    let answer = world.process("wait", &id, &json!({"timeout": 0.2}));
    assert_eq!(answer.output(), "", "half a character is no output");
    world.process("submit", &id, &json!({}));
    shows("€!\n");
    world.process("submit", &id, &json!({}));
    // What will never be whole is shown as such.
    let last = world.wait_for_end(&id);
    assert_eq!(last.output(), "cut \u{fffd}", "{}", last.0);
}

#[test]
fn what_a_foreground_command_left_running_is_listed_and_can_be_killed() {
    let world = World::new();
    let sleep = unique_sleep();
    world.task(
        "a",
        &format!("setsid bash -c 'echo from behind; exec sleep {sleep}' & true"),
    );
    wait_until(Duration::from_secs(20), "it sleeps", || {
        processes_naming(&sleep).iter().any(|p| p.name == "sleep")
    });
    let list = world.process("list", "", &json!({"task_id": "a"})).0;
    let entry = &list["processes"][0];
    assert_eq!(ids(&list).len(), 1, "{list}");
    assert_eq!(
        (&entry["status"], &entry["adopted"]),
        (&json!("running"), &json!(true))
    );
    let id = entry["session_id"].as_str().unwrap();
    assert!(world.exoshell(["ps"]).text().contains(id));
    let written = world.process("write", id, &json!({"data": "x"}));
    assert!(written.error().contains("stdin"), "{}", written.0);
    let answer = world.process("kill", id, &json!({"task_id": "a"}));
    assert_eq!(
        (answer.error(), answer.status()),
        ("", "killed"),
        "{}",
        answer.0
    );
    assert_eq!(processes_naming(&sleep), []);
    // One that ends by itself has no code that anybody knows, so nobody claims success.
    world.task("a", "setsid sleep 3 & true");
    let list = world.json(["ps", "--task", "a", "--json"]);
    let id = ids(&list)[0].to_owned();
    let answer = world.wait_for_end(&id);
    assert_eq!(
        (answer.status(), &answer.0["exit_code"]),
        ("exited", NONE),
        "{}",
        answer.0
    );
    assert_ne!(world.exoshell(["wait", &id]).code(), 0);
}

/// Returns how much memory a process holds, in kilobytes.
fn memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Returns the bytes of all files below a folder.
fn disk(folder: &Path) -> u64 {
    fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .fold(0, |sum, entry| {
            let meta = entry.metadata().ok();
            sum + match meta {
                Some(meta) if meta.is_dir() => disk(&entry.path()),
                Some(meta) => meta.len(),
                None => 0,
            }
        })
}

#[test]
fn o2_output_that_nobody_reads_stays_within_its_memory_and_disk_and_loss_is_counted() {
    const LIMIT: u64 = 2 << 20;
    let world = World::new().with_config("[terminal]\nspill_limit_mb = 2\n");
    let run = world.home.join("run");
    world.terminal("true").printed("");
    let (guest, before) = (world.guest_pid(), disk(&run));
    let start = memory(guest);
    let id = world.begin("exec yes 0123456789abcdef", &json!({}));
    let (mut memory_most, mut disk_most) = (0, 0);
    let until = Instant::now() + Duration::from_secs(5);
    while Instant::now() < until {
        memory_most = memory_most.max(memory(guest));
        disk_most = disk_most.max(disk(&run));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(
        memory_most < start + 16 * 1024,
        "{start} to {memory_most} kB"
    );
    assert!(
        disk_most <= before + LIMIT + LIMIT / 4,
        "{disk_most} bytes on disk"
    );
    assert_eq!(world.process("kill", &id, &json!({})).error(), "");
    let log = world.process("log", &id, &json!({"offset": 0, "limit": 1}));
    let dropped = log.0["dropped_bytes"].as_u64().unwrap();
    let lines = log.0["total_lines"].as_u64().unwrap();
    assert!(
        dropped > 10 * LIMIT,
        "it wrote much more than is kept: {}",
        log.0
    );
    // Every byte is either dropped or there: 17 a line.
    let ran = world.exoshell(["logs", &id]);
    let kept = ran.out.len() as u64;
    assert!(
        (LIMIT / 2..=LIMIT + (1 << 20)).contains(&kept),
        "{kept} bytes kept"
    );
    assert!(
        (lines - 1) * 17 <= kept + dropped && kept + dropped <= lines * 17,
        "{}",
        log.0
    );
    assert!(
        ran.talk().contains(&format!("{dropped} bytes")),
        "{}",
        ran.talk()
    );
    // The oldest line that is kept is said to be the line it is.
    let showing = log.0["showing"].as_str().unwrap();
    let first: u64 = showing.split(' ').nth(1).unwrap().parse().unwrap();
    assert_eq!(first, dropped.div_ceil(17), "{}", log.0);
    assert_eq!(log.output(), "0123456789abcdef\n");
    // At least the last 200 KB are always there.
    assert!(kept >= 200 * 1024);
}

#[test]
fn m4_background_processes_have_the_three_standard_descriptors_and_no_other() {
    let world = World::new();
    let show = "ls -l /proc/self/fd | awk 'NR>1 {print $9}' | sort -n | tr '\\n' ' '";
    for pty in [false, true] {
        let id = world.begin(show, &json!({"pty": pty}));
        // The listing itself holds one more while it reads.
        assert_eq!(
            world.wait_for_end(&id).output().trim(),
            "0 1 2 3",
            "pty {pty}"
        );
    }
}

/// Starts many processes, looks at all of them and ends them, twenty at a time.
async fn start_list_and_kill(runtime: &Runtime, sleep: &str, many: usize) {
    let mut batch = tokio::task::JoinSet::new();
    let mut started = Vec::new();
    for _ in 0..many {
        let request = StartRequest::new(format!("exec sleep {sleep}"), "many");
        let runtime = runtime.clone();
        batch.spawn(async move { runtime.start_process(request).await.unwrap().id });
        if batch.len() >= 20 {
            started.push(batch.join_next().await.unwrap().unwrap());
        }
    }
    started.extend(batch.join_all().await);
    let running = |view: &ProcessView| matches!(view, ProcessView::Known(status) if status.state == ProcessState::Running);
    let list = runtime.processes(Some("many")).await.unwrap();
    assert_eq!(list.iter().filter(|view| running(view)).count(), many);
    let mut batch = tokio::task::JoinSet::new();
    for id in started {
        let runtime = runtime.clone();
        batch.spawn(async move { runtime.kill_process(&id, None).await.unwrap() });
        if batch.len() >= 20 {
            batch.join_next().await.unwrap().unwrap();
        }
    }
    for acted in batch.join_all().await {
        assert_eq!(acted.status.state, ProcessState::Killed);
    }
    let list = runtime.processes(Some("many")).await.unwrap();
    assert!(!list.iter().any(running));
}

#[test]
fn hundreds_of_processes_leave_no_descriptor_process_or_file_behind() {
    const MANY: usize = 300;
    let world = World::new();
    let sleep = unique_sleep();
    world.terminal("true").printed("");
    let guest = world.guest_pid();
    let families = || {
        let list = world.processes();
        list.iter().filter(|process| process.name != "bash").count()
    };
    let (fds, family) = block_on(async {
        let runtime = runtime(&world);
        // One first: what is kept ready after that is no leak.
        let first = StartRequest::new("true", "many");
        let first = runtime.start_process(first).await.unwrap();
        let limit = Duration::from_secs(20);
        let waited = runtime.wait_process(&first.id, None, limit, None).await;
        assert_eq!(waited.unwrap().reason, WaitReason::Ended);
        let baseline = (descriptors(guest), families());
        start_list_and_kill(&runtime, &sleep, MANY).await;
        baseline
    });
    assert_eq!(processes_naming(&sleep), []);
    wait_until(Duration::from_secs(20), "the processes are gone", || {
        families() <= family
    });
    let mut now = 0;
    wait_until(Duration::from_secs(20), "the descriptors are back", || {
        now = descriptors(guest);
        now <= fds + 8
    });
    assert!(children_named(guest, "sleep").is_empty());
    let spilled = disk(&world.home.join("run"));
    assert!(spilled < 64 * 1024, "{spilled} bytes left");
}

#[test]
fn bad_input_of_the_tool_is_answered_with_what_is_wrong_with_it() {
    let world = World::new();
    let plain = world.begin("read -r x", &json!({}));
    let terminal = world.begin("read -r x", &json!({"pty": true}));
    for (action, id, more, says) in [
        (
            "poll",
            "proc_0000000000000000",
            json!({}),
            "there is no process `proc_0000000000000000`",
        ),
        ("kill", "../../etc/passwd", json!({}), "there is no process"),
        ("poll", "", json!({}), "there is no process"),
        ("signal", &plain, json!({"signal": "NOPE"}), "`NOPE`"),
        ("signal", &plain, json!({"signal": 0}), "`0`"),
        ("signal", &plain, json!({"signal": 99}), "`99`"),
        ("signal", &plain, json!({"signal": -9}), "`-9`"),
        ("signal", &plain, json!({}), "needs the argument `signal`"),
        (
            "resize",
            &terminal,
            json!({"cols": 0, "rows": 24}),
            "`cols`",
        ),
        (
            "resize",
            &terminal,
            json!({"cols": 80, "rows": 0}),
            "`rows`",
        ),
        (
            "resize",
            &terminal,
            json!({"cols": -1, "rows": 5}),
            "`cols`",
        ),
        (
            "resize",
            &terminal,
            json!({"cols": 70000, "rows": 5}),
            "`cols`",
        ),
        ("resize", &terminal, json!({"cols": 80}), "`rows`"),
        (
            "resize",
            &plain,
            json!({"cols": 80, "rows": 24}),
            "has no terminal",
        ),
        ("screen", &plain, json!({}), "has no terminal"),
        (
            "wait",
            &plain,
            json!({"until": "(", "timeout": 1}),
            "not a regular expression",
        ),
        ("wait", &plain, json!({"timeout": -1}), "`timeout`"),
        ("wait", &plain, json!({"timeout": "soon"}), "`timeout`"),
        ("log", &plain, json!({"offset": "x"}), "`offset`"),
        ("log", &plain, json!({"offset": 1.5}), "`offset`"),
        ("log", &plain, json!({"limit": 0}), "`limit`"),
        ("log", &plain, json!({"limit": -5}), "`limit`"),
        ("write", &terminal, json!({"keys": "up"}), "`keys`"),
        ("write", &terminal, json!({"keys": ["hyper-q"]}), "hyper-q"),
        ("write", &terminal, json!({"keys": [7]}), "`keys`"),
        ("write", &plain, json!({"data": 5}), "`data`"),
        ("dance", &plain, json!({}), "dance"),
        ("poll", &plain, json!({"speed": 3}), "speed"),
    ] {
        let (answer, code) = world.process_with_code(action, id, &more);
        assert_ne!(code, 0, "{action} {more}: {}", answer.0);
        assert!(
            answer.error().contains(says),
            "{action} {more}: {}",
            answer.0
        );
        assert_eq!(answer.kind(), "usage", "{action} {more}: {}", answer.0);
    }
    // None of that did anything to them, and none was started.
    let list = world.json(["ps", "--json"]);
    assert_eq!(ids(&list).len(), 2, "{list}");
}

#[test]
fn a_bad_start_is_answered_with_what_is_wrong_and_starts_nothing() {
    let world = World::new();
    let ran = world.exoshell(["call", "process", "{}"]);
    assert!(
        ran.code() != 0 && ran.text().contains("action"),
        "{}",
        ran.text()
    );
    for more in [
        json!({"watch_patterns": ["["]}),
        json!({"watch_patterns": "x"}),
        json!({"lifetime": "eternal"}),
        json!({"timeout": -3}),
        json!({"workdir": "/no/such/folder"}),
        json!({"command": ""}),
    ] {
        let mut arguments = json!({"command": "true", "background": true});
        for (name, value) in more.as_object().unwrap() {
            arguments[name] = value.clone();
        }
        let (answer, code) = world.call_with_code(&arguments);
        assert!(
            code != 0 && !answer.error().is_empty(),
            "{more}: {}",
            answer.0
        );
        assert_eq!(answer.0["session_id"], *NONE, "{more}");
    }
    assert_eq!(ids(&world.process("list", "", &json!({})).0), [""; 0]);
}

#[test]
fn bad_words_on_the_command_line_are_errors_that_touch_nothing() {
    let world = World::new();
    let plain = world.begin("read -r x", &json!({}));
    let terminal = world.begin("read -r x", &json!({"pty": true}));
    for words in [
        vec!["logs", "proc_none"],
        vec!["wait", "proc_none"],
        vec!["kill", "proc_none"],
        vec!["attach", "proc_none"],
        vec!["kill", "--signal", "NOPE", plain.as_str()],
        vec!["wait", "--timeout", "-1", plain.as_str()],
        vec!["wait", "--until", "[", plain.as_str()],
        vec!["attach", plain.as_str()],
        vec!["attach", terminal.as_str()],
        vec!["run", "--notify", "true"],
        vec!["run", "--background", "--watch", "[", "true"],
        vec!["events", "--consumer", ""],
    ] {
        let ran = world.exoshell(&words);
        assert_ne!(ran.code(), 0, "{words:?}");
        assert!(
            ran.text().is_empty() && ran.talk().contains("error"),
            "{words:?}: {}",
            ran.talk()
        );
    }
    // None of that did anything to them, and none was started.
    let list = world.json(["ps", "--json"]);
    assert_eq!(ids(&list).len(), 2, "{list}");
    // A wait can be broken off by the one who waits.
    let mut waiter: Program = world.start(["wait", &plain]);
    // Before it listens, a signal that whoever started us ignores is lost.
    wait_until(Duration::from_secs(60), "the wait goes on", || {
        waiter.signal(rustix::process::Signal::INT);
        waiter.has_ended()
    });
    assert_ne!(waiter.finish().code(), 0);
}
