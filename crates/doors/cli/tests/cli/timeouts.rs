//! Ends: by limit, by the caller, by signal, by the death of whoever takes part.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::support::{
    Answer, Program, World, alive, children_named, processes_naming, unique_sleep, wait_until,
};

const SECOND: Duration = Duration::from_secs(1);

fn kill(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

/// Waits until a `sleep` with this argument runs, and returns its process id.
#[track_caller]
fn sleeper(sleep: &str) -> u32 {
    let find = || {
        processes_naming(sleep)
            .into_iter()
            .find(|process| process.name == "sleep")
    };
    wait_until(Duration::from_secs(20), "the command runs", || {
        find().is_some()
    });
    find().unwrap().pid
}

#[track_caller]
fn none_left(sleep: &str, limit: Duration) {
    wait_until(limit, "no descendant is alive", || {
        processes_naming(sleep).is_empty()
    });
}

#[test]
fn t1_a_timeout_ends_the_whole_tree_however_it_hides() {
    let world = World::new();
    world.terminal("true").printed("");
    for form in [
        "echo partial; trap \"\" TERM; setsid -f sleep N; sleep N",
        "echo partial; bash -c 'trap \"\" TERM; sleep N & sleep N'",
        "echo partial; setsid -f sleep N; sleep N",
        "echo partial; (setsid bash -c '(sleep N &) & exec sleep N' &) ; sleep N",
        "echo partial; nohup setsid bash -c 'trap \"\" TERM HUP INT; while :; do sleep N; done' & wait",
        "echo partial; timeout 500 bash -c 'trap \"\" TERM; sleep N; sleep N'",
        "echo partial; sleep N | cat | cat",
        "echo partial; exec sleep N",
        "echo partial; env -i setsid -f /usr/bin/sleep N; sleep N",
    ] {
        let sleep = unique_sleep();
        let command = form.replace('N', &sleep);
        let ran = world
            .start_call(&json!({"command": command, "timeout": 2}))
            .finish_within(Duration::from_secs(15));
        let answer = Answer::parse(&ran.out);
        // 2 s and 2 s of grace, which alone takes 4.2 s; the rest is for a machine that runs two
        // hundred tests at once.
        assert!(ran.took <= 8 * SECOND, "`{form}` took {:?}", ran.took);
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
        none_left(&sleep, SECOND);
    }
}

#[test]
fn t1_a_tree_that_keeps_forking_is_ended_too() {
    let world = World::new();
    let sleep = unique_sleep();
    let command = format!("trap '' TERM; while :; do setsid sleep {sleep} & sleep 0.01; done");
    let ran = world
        .start_call(&json!({"command": command, "timeout": 1}))
        .finish_within(Duration::from_secs(20));
    assert_eq!(Answer::parse(&ran.out).code(), 124);
    none_left(&sleep, SECOND);
}

#[test]
fn t2_killed_interrupted_signalled_and_exited_are_four_different_answers() {
    let world = World::new();
    let timeout = world.call(&json!({"command": "printf partial; sleep 60", "timeout": 1}));
    assert_eq!((timeout.code(), timeout.status()), (124, "timeout"));
    assert_eq!(timeout.output(), "partial\n[Command timed out after 1 s]\n");
    let took = timeout.0["duration_ms"].as_u64().unwrap();
    assert!((1000..5000).contains(&took), "{}", timeout.0);

    let sleep = unique_sleep();
    let call = world.start_call(&json!({"command": format!("printf partial; sleep {sleep}")}));
    sleeper(&sleep);
    call.signal(Signal::INT);
    let interrupted = Answer::parse(&call.finish().out);
    assert_eq!(
        (interrupted.code(), interrupted.status()),
        (130, "interrupted")
    );
    assert_eq!(interrupted.output(), "partial\n[Command interrupted]\n");

    for (name, code) in [
        ("KILL", 137),
        ("TERM", 143),
        ("SEGV", 139),
        ("HUP", 129),
        ("ABRT", 134),
    ] {
        let answer = world.terminal(&format!("printf partial; kill -{name} $$"));
        assert_eq!(
            (answer.code(), answer.status(), answer.output()),
            (code, "", "partial")
        );
        assert_eq!(answer.0["signal"], format!("SIG{name}"));
    }
    let exited = world.terminal("exit 124");
    assert_eq!((exited.code(), exited.status()), (124, ""));
    assert!(exited.0["signal"].is_null());
}

#[test]
fn exit_codes_of_run_are_those_of_a_shell() {
    let world = World::new();
    for (command, code) in [
        ("true", 0),
        ("exit 3", 3),
        ("exit 255", 255),
        ("nonexistent-program-4711", 127),
        ("/etc/passwd", 126),
        ("kill -9 $$", 137),
        ("kill -TERM $$", 143),
    ] {
        assert_eq!(world.exoshell(["run", command]).code(), code, "{command}");
        assert_eq!(
            world.exoshell(["run", "--json", command]).code(),
            code,
            "{command}"
        );
    }
    let ran = world.exoshell(["run", "--timeout", "1", "echo partial; sleep 60"]);
    assert_eq!((ran.code(), ran.text().as_str()), (124, "partial\n"));
    assert!(ran.talk().contains("timed out after 1 s"), "{}", ran.talk());
    let ran = world.exoshell(["run", "--timeout", "0.5", "sleep 60"]);
    assert_eq!(ran.code(), 124);
    let ran = world.exoshell(["run", "--workdir", "/nonexistent", "true"]);
    assert_eq!(ran.code(), 126, "{}", ran.talk());
    assert!(ran.talk().contains("`/nonexistent`"), "{}", ran.talk());
}

#[test]
fn a_timeout_above_the_maximum_is_clamped_and_said() {
    let world =
        World::new().with_config("[terminal]\ntimeout_seconds = 2\nmax_timeout_seconds = 3\n");
    let answer = world.call(&json!({"command": "sleep 60", "timeout": 100}));
    assert_eq!(answer.code(), 124);
    assert!(
        answer.0["timeout_note"]
            .as_str()
            .unwrap()
            .contains("3 s is used"),
        "{}",
        answer.0
    );
    let answer = world.call(&json!({"command": "sleep 60", "timeout": 0}));
    assert!(
        answer.output().contains("after 2 s"),
        "0 is the default: {}",
        answer.0
    );
    let answer = world.call(&json!({"command": "sleep 60", "timeout": "1"}));
    assert!(answer.output().contains("after 1 s"), "{}", answer.0);
}

#[test]
fn t4_ctrl_c_ends_the_command_within_two_seconds() {
    let world = World::new();
    for (signal, task) in [
        (Signal::INT, None),
        (Signal::TERM, None),
        (Signal::HUP, Some("t")),
    ] {
        let sleep = unique_sleep();
        let command = format!(
            "echo started; trap '' INT TERM; setsid -f sleep {sleep}; sleep {sleep}; echo never"
        );
        let mut arguments = vec!["run"];
        arguments.extend(task.iter().flat_map(|task| ["--task", task]));
        arguments.push(&command);
        let run = world.start(arguments);
        sleeper(&sleep);
        run.signal(signal);
        let ran = run.finish_within(Duration::from_secs(6));
        assert_eq!((ran.code(), ran.text().as_str()), (130, "started\n"));
        none_left(&sleep, SECOND);
    }
}

#[test]
fn t4_nothing_of_a_cancelled_command_shows_up_later() {
    let world = World::new();
    let sleep = unique_sleep();
    let call = world.start_call(&json!({"command": format!("echo old; sleep {sleep}; echo late")}));
    sleeper(&sleep);
    call.signal(Signal::TERM);
    let answer = Answer::parse(&call.finish().out);
    assert_eq!(
        (answer.code(), answer.output()),
        (130, "old\n[Command interrupted]\n")
    );
    none_left(&sleep, SECOND);
    world.terminal("echo new").printed("new\n");
}

#[test]
fn t4_a_cancel_before_the_session_exists_is_obeyed() {
    let world = World::new().with_config("[terminal]\nlogin_timeout_seconds = 20\n");
    let sleep = unique_sleep();
    std::fs::write(world.user.join(".profile"), format!("sleep {sleep}\n")).unwrap();
    let call = world.start_call(&json!({"command": "touch ran"}));
    sleeper(&sleep);
    call.signal(Signal::INT);
    let ran = call.finish_within(Duration::from_secs(5));
    let answer = Answer::parse(&ran.out);
    assert_eq!(
        (answer.code(), answer.status()),
        (130, "interrupted"),
        "{}",
        answer.0
    );
    assert!(!world.work.join("ran").exists());
}

#[test]
fn t7_ending_a_command_signals_neither_us_nor_our_parent() {
    let world = World::new();
    // The command signals its group, its session's leader and everything it may reach by group.
    let run = world.exoshell([
        "run",
        "--timeout",
        "1",
        "trap '' TERM; kill -TERM 0; sleep 60",
    ]);
    assert_eq!(run.code(), 124);
    // A shell that waits for the binary must not be hit when the binary's command is.
    let mut command = std::process::Command::new("bash");
    command.args([
        "-c",
        "\"$0\" run --timeout 1 'kill -9 0; sleep 60'; echo code $?",
        crate::support::EXOSHELL,
    ]);
    world.dress(&mut command);
    let ran = Program::start(command, b"").finish();
    assert_eq!(ran.text(), "code 137\n");
    world.terminal("kill -TERM 0; sleep 5").code();
    world.terminal("echo alive").printed("alive\n");
}

#[test]
fn a_host_killed_hard_takes_its_command_along_but_not_the_session() {
    let world = World::new();
    world.terminal("cd /usr; export A=1").printed("");
    let guest = world.guest_pid();
    for task_call in [true, false] {
        let sleep = unique_sleep();
        let command =
            format!("export A=2; trap '' TERM; echo x; setsid -f sleep {sleep}; sleep {sleep}");
        let host = if task_call {
            world.start_call(&json!({ "command": command }))
        } else {
            world.start(["run", &command])
        };
        sleeper(&sleep);
        host.signal(Signal::KILL);
        drop(host);
        // Its grace time is 2 s.
        none_left(&sleep, 4 * SECOND);
        let next = world.terminal("pwd; echo $A");
        next.printed("/usr\n1\n");
        assert_eq!(next.hint(), "");
    }
    assert_eq!(world.guest_pid(), guest);
}

#[test]
fn a_host_killed_while_output_floods_leaves_nothing() {
    let world = World::new();
    world.terminal("true").printed("");
    let host = world.start(["run", "--task", "default", "yes $$-flood-4711"]);
    wait_until(Duration::from_secs(20), "the flood runs", || {
        !processes_naming("-flood-4711").is_empty()
    });
    host.signal(Signal::KILL);
    drop(host);
    wait_until(4 * SECOND, "the flood ends", || {
        processes_naming("-flood-4711").is_empty()
    });
    world.terminal("echo next").printed("next\n");
}

#[test]
fn a_command_that_kills_its_supervisor_is_told_and_leaves_nothing() {
    let world = World::new();
    world.terminal("cd /usr").printed("");
    let sleep = unique_sleep();
    let command = format!("echo before; kill -9 $PPID; sleep {sleep}");
    let ran = world
        .start_call(&json!({"command": command, "timeout": 5}))
        .finish_within(Duration::from_secs(15));
    let answer = Answer::parse(&ran.out);
    assert_ne!(answer.code(), 0, "{}", answer.0);
    assert!(answer.output().contains("before"), "{}", answer.0);
    none_left(&sleep, 5 * SECOND);
    world.terminal("pwd").printed("/usr\n");
}

#[test]
fn a_command_that_kills_every_process_of_its_guest_gets_an_honest_answer() {
    let world = World::new();
    world.terminal("cd /usr").printed("");
    let guest = world.guest_pid();
    let sleep = unique_sleep();
    let ran = world
        .start_call(
            &json!({"command": format!("setsid -f sleep {sleep}; kill -9 {guest}; sleep {sleep}")}),
        )
        .finish_within(Duration::from_secs(15));
    let answer = Answer::parse(&ran.out);
    assert_eq!(
        (answer.code(), answer.kind()),
        (-1, "place_lost"),
        "{}",
        answer.0
    );
    assert_eq!(ran.code(), 125);
    none_left(&sleep, 5 * SECOND);
}

#[test]
fn a_guest_killed_hard_is_replaced_and_the_loss_is_said_once() {
    let world = World::new();
    world.terminal("cd /usr; export A=1").printed("");
    let sleep = unique_sleep();
    world.terminal(&format!("setsid sleep {sleep} & true"));
    let guest = world.guest_pid();
    kill(guest, Signal::KILL);
    wait_until(5 * SECOND, "the guest is dead", || !alive(guest));
    let answer = world.terminal("pwd; echo ${A-unset}");
    answer.printed(&format!("{}\nunset\n", world.work.display()));
    assert!(
        answer.hint().contains("state") && answer.hint().contains("gone"),
        "{}",
        answer.0
    );
    let answer = world.terminal("true");
    assert_eq!(answer.hint(), "");
    // What it supervised went with it.
    none_left(&sleep, 5 * SECOND);
    assert_ne!(world.guest_pid(), guest);
}

#[test]
fn a_spawner_killed_hard_costs_one_call_at_most() {
    let world = World::new();
    let sleep = unique_sleep();
    world.terminal(&format!("cd /usr; setsid sleep {sleep} & true"));
    let report = world.json(["places", "ls", "--json"]);
    let own: Vec<u64> = report["guest"]["own_pids"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(serde_json::Value::as_u64)
        .collect();
    let guest = u64::from(world.guest_pid());
    let spawner = own.iter().copied().find(|pid| *pid != guest).unwrap();
    kill(u32::try_from(spawner).unwrap(), Signal::KILL);
    // A shell that stood ready may serve the first; the second needs a spawner.
    world
        .start_call(&json!({"command": "echo first"}))
        .finish_within(10 * SECOND);
    let second = world
        .start_call(&json!({"command": "echo works"}))
        .finish_within(10 * SECOND);
    Answer::parse(&second.out).printed("works\n");
}

#[test]
fn what_a_killed_guest_kept_on_disk_is_removed_with_the_places() {
    let world = World::new();
    let answer = world.terminal("seq 100000");
    assert!(std::path::Path::new(answer.0["output_file"].as_str().unwrap()).exists());
    kill(world.guest_pid(), Signal::KILL);
    wait_until(5 * SECOND, "all of it is dead", || {
        world.processes().is_empty()
    });
    world.clean_up();
}

#[test]
fn a_foreground_limit_counts_from_the_start_of_the_command() {
    let world = World::new();
    std::fs::write(world.user.join(".profile"), "sleep 2\n").unwrap();
    let answer = world.call(&json!({"command": "echo ok", "timeout": 1}));
    answer.printed("ok\n");
}

#[test]
fn what_a_finished_command_left_is_not_hit_by_the_next_ones_timeout() {
    let world = World::new();
    let sleep = unique_sleep();
    world.terminal(&format!("setsid sleep {sleep} & true"));
    let pid = sleeper(&sleep);
    let answer = world.call(&json!({"command": "sleep 60", "timeout": 1}));
    assert_eq!(answer.code(), 124);
    assert!(alive(pid));
    assert!(children_named(world.guest_pid(), "sleep").len() <= 1);
}
