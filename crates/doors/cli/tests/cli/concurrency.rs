//! Many callers at once: one place, one session, no torn state, nothing left.

use std::collections::BTreeSet;
use std::fs;
use std::sync::Arc;
use std::time::Duration;

use exoshell_runtime::TerminalRequest;
use serde_json::json;

use crate::support::{Answer, Program, World, block_on, descriptors, runtime, wait_until};

#[test]
fn e2_fifty_concurrent_calls_of_which_twenty_are_processes_share_one_new_session() {
    let world = World::new();
    let started: Vec<Program> = (0..20)
        .map(|i| {
            let command = format!("echo ${{PATH##*:}}; export P{i}=v{i}; cd /usr");
            world.start_call(&json!({"command": command, "task_id": "crowd"}))
        })
        .collect();
    let answers: Vec<Answer> = block_on(async {
        let runtime = Arc::new(runtime(&world));
        let mut tasks = Vec::new();
        for i in 20..50 {
            let runtime = Arc::clone(&runtime);
            tasks.push(tokio::spawn(async move {
                let command = format!("echo ${{PATH##*:}}; export P{i}=v{i}; cd /usr");
                let result = runtime
                    .terminal(TerminalRequest::new(command).in_task("crowd"))
                    .await;
                Answer(serde_json::to_value(result).unwrap())
            }));
        }
        let mut answers = Vec::new();
        for task in tasks {
            answers.push(task.await.unwrap());
        }
        answers
    });
    let others = started
        .into_iter()
        .map(|program| Answer::parse(&program.finish().out));
    let path = world.task("crowd", "echo $PATH").output().to_owned();
    let last = path.rsplit(':').next().unwrap();
    for answer in answers.into_iter().chain(others) {
        answer.printed(last);
        assert_eq!(answer.hint(), "");
    }
    let show = "for i in {0..49}; do n=P$i; [ \"${!n}\" = v$i ] || echo lost $n; done; pwd";
    world.task("crowd", show).printed("/usr\n");
    let report = world.json(["places", "ls", "--json"]);
    assert_eq!(report["places"].as_array().unwrap().len(), 1, "{report}");
    let guests = world
        .processes()
        .into_iter()
        .filter(|process| {
            process.command.contains("exoshell-guest") && process.command.contains("start")
        })
        .collect::<Vec<_>>();
    let roots: Vec<_> = guests
        .iter()
        .filter(|process| !guests.iter().any(|other| other.pid == process.parent))
        .collect();
    assert_eq!(roots.len(), 1, "{guests:#?}");
}

#[test]
fn e2_a_torn_state_is_never_seen() {
    let world = World::new();
    block_on(async {
        let runtime = Arc::new(runtime(&world));
        let first = runtime
            .terminal(TerminalRequest::new("export PAIR=0-0 A=0 B=0"))
            .await;
        assert_eq!(first.exit_code, 0, "{first:?}");
        let mut tasks = Vec::new();
        for i in 0..40 {
            let runtime = Arc::clone(&runtime);
            tasks.push(tokio::spawn(async move {
                let command = if i % 2 == 0 {
                    format!(
                        "export A={i} B={i} PAIR={i}-{i}; f() {{ echo {i}; }}; g() {{ echo {i}; }}"
                    )
                } else {
                    "[ \"$A-$B\" = \"$PAIR\" ] || echo torn \"$A-$B\" \"$PAIR\"; \
                     [ \"$(f 2>/dev/null)\" = \"$(g 2>/dev/null)\" ] || echo torn functions"
                        .to_owned()
                };
                runtime.terminal(TerminalRequest::new(command)).await
            }));
        }
        for task in tasks {
            let result = task.await.unwrap();
            assert_eq!(
                (result.output.as_str(), result.exit_code),
                ("", 0),
                "{result:?}"
            );
        }
    });
    // Commands that break in between harm none of the others.
    block_on(async {
        let runtime = Arc::new(runtime(&world));
        let mut tasks = Vec::new();
        for i in 0..30 {
            let runtime = Arc::clone(&runtime);
            tasks.push(tokio::spawn(async move {
                let command = match i % 3 {
                    0 => format!("export GOOD{i}=1"),
                    1 => "kill -9 $$".to_owned(),
                    _ => "echo 'open".to_owned(),
                };
                runtime.terminal(TerminalRequest::new(command)).await
            }));
        }
        for task in tasks {
            task.await.unwrap();
        }
    });
    world.terminal("compgen -e | grep -c ^GOOD").printed("10\n");
}

#[test]
fn two_hundred_tasks_of_five_commands_leave_guest_and_machine_as_they_were() {
    let world = World::new();
    world.task("anchor", "true").printed("");
    let guest = world.guest_pid();
    let runtime_config = runtime(&world);
    let own: BTreeSet<u32> = world
        .processes()
        .into_iter()
        .map(|process| process.pid)
        .collect();
    let open = descriptors(guest);
    let mut strange: Vec<String> = Vec::new();
    block_on(async {
        let runtime = Arc::new(runtime_config);
        let mut tasks = Vec::new();
        for i in 0..200 {
            let runtime = Arc::clone(&runtime);
            tasks.push(tokio::spawn(async move {
                let task = format!("many-{i}");
                let mut strange = Vec::new();
                for round in 0..5 {
                    let command = format!(
                        "[ ${{N-{i}}} = {i} ] && [ ${{ROUND--1}} = {} ] && export N={i} ROUND={round} && echo {i}-{round}",
                        round - 1
                    );
                    let result = runtime.terminal(TerminalRequest::new(command).in_task(&task)).await;
                    if (result.output.as_str(), result.exit_code) != (format!("{i}-{round}\n").as_str(), 0) {
                        strange.push(format!("{i}-{round}: {result:?}"));
                    }
                }
                strange
            }));
        }
        for task in tasks {
            strange.extend(task.await.unwrap());
        }
        for i in 0..200 {
            let cleaned = runtime.cleanup(&format!("many-{i}")).await.unwrap();
            assert_eq!(cleaned.removed, [format!("many-{i}")]);
        }
    });
    wait_until(
        Duration::from_secs(20),
        "all processes of the tasks are gone",
        || {
            world
                .processes()
                .into_iter()
                .all(|process| own.contains(&process.pid))
        },
    );
    wait_until(
        Duration::from_secs(10),
        "the guest's descriptors are closed",
        || descriptors(guest) <= open,
    );
    let records = fs::read_dir(world.home.join("places")).unwrap().flatten();
    let names: Vec<_> = records
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect();
    assert_eq!(names.len(), 1, "{names:?}");
    world.task("anchor", "echo still").printed("still\n");
    assert!(
        strange.is_empty(),
        "{} of 1000: {strange:#?}",
        strange.len()
    );
}

#[test]
fn a_place_removed_while_its_command_runs_ends_the_command() {
    let world = World::new();
    let sleep = crate::support::unique_sleep();
    let call =
        world.start_call(&json!({"command": format!("echo x; sleep {sleep}"), "task_id": "t"}));
    wait_until(Duration::from_secs(20), "the command runs", || {
        crate::support::processes_naming(&sleep)
            .iter()
            .any(|process| process.name == "sleep")
    });
    assert_eq!(world.exoshell(["places", "rm", "t"]).code(), 0);
    let answer = Answer::parse(&call.finish_within(Duration::from_secs(10)).out);
    assert_ne!(answer.code(), 0, "{}", answer.0);
    assert_eq!(crate::support::processes_naming(&sleep), []);
    assert_eq!(world.json(["places", "ls", "--json"])["places"], json!([]));
}

#[test]
fn all_places_removed_while_commands_run_give_every_caller_an_honest_answer() {
    let world = World::new();
    let sleep = crate::support::unique_sleep();
    let calls: Vec<Program> = (0..4)
        .map(|i| {
            world.start_call(
                &json!({"command": format!("sleep {sleep}"), "task_id": format!("t{i}")}),
            )
        })
        .collect();
    wait_until(Duration::from_secs(30), "the commands run", || {
        let running = crate::support::processes_naming(&sleep);
        running
            .iter()
            .filter(|process| process.name == "sleep")
            .count()
            == 4
    });
    assert_eq!(world.exoshell(["places", "rm", "--all"]).code(), 0);
    for call in calls {
        let answer = Answer::parse(&call.finish_within(Duration::from_secs(10)).out);
        assert_ne!(answer.code(), 0, "{}", answer.0);
    }
    world.terminal("echo again").printed("again\n");
}

#[test]
fn first_calls_race_with_removal_and_every_one_is_answered() {
    let world = World::new();
    for round in 0..5 {
        let calls: Vec<Program> = (0..6)
            .map(|_| {
                world.start_call(&json!({"command": "echo ok", "task_id": format!("r{round}")}))
            })
            .collect();
        let removal = world.start(["places", "rm", "--all"]);
        assert_eq!(removal.finish().code(), 0);
        for call in calls {
            let ran = call.finish();
            let answer = Answer::parse(&ran.out);
            // Either it ran, or it says that it did not end by itself.
            let fair = answer.output() == "ok\n" || answer.code() != 0;
            assert!(fair, "{}", answer.0);
        }
    }
    world.terminal("echo works").printed("works\n");
}
