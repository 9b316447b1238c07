//! What lives on when its host dies, and what is honest about what did not.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher as _;
use std::time::Duration;

use exoshell_runtime::config::{Config, Environment, Resolved};
use exoshell_runtime::{FollowEvent, Interrupt, ReadFrom, Runtime, call};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{Host, World, alive, block_on, processes_naming, unique_sleep, wait_until};

/// How often the host is killed.
const ROUNDS: usize = 50;

/// How many rounds run at the same time.
const LANES: usize = 4;

/// How many lines the counter prints.
const LINES: usize = 120;

/// Not a test by itself: `Host` starts it as a program of its own, with a runtime in it.
#[test]
fn the_program_that_other_tests_kill() {
    let Some((calls, report)) = Host::work() else {
        return;
    };
    let environment = Environment::from_process();
    let config = Resolved::load(&environment, Config::default()).unwrap();
    let runtime = Runtime::new(config, environment);
    block_on(async {
        let mut ids = Vec::new();
        for arguments in calls.as_array().unwrap() {
            let answer = call(&runtime, "terminal", arguments, None, Interrupt::new()).await;
            ids.push(answer["session_id"].as_str().unwrap().to_owned());
        }
        let draft = report.with_extension("draft");
        std::fs::write(&draft, json!(ids).to_string()).unwrap();
        std::fs::rename(draft, report).unwrap();
        let from = ReadFrom::Byte(0);
        let mut stream = runtime.follow_process(&ids[0], None, from).await.unwrap();
        while !matches!(stream.next().await.unwrap(), FollowEvent::Done(_)) {}
        std::future::pending::<()>().await;
    });
}

/// Returns a moment nobody can foresee.
fn moment(most_ms: u64) -> Duration {
    let number = RandomState::new().hash_one(std::time::Instant::now());
    Duration::from_micros(number % (most_ms * 1000))
}

/// Prints numbered lines with pauses, then reads a line and exits with 7.
fn counter() -> String {
    format!(
        "exec {{never}}<> <(:); for ((i = 1; i <= {LINES}; i++)); do echo \"line $i\"; \
         read -rt 0.002 -u $never; done; read -r word; echo \"got $word\"; exit 7"
    )
}

fn one_round(world: &World, name: &str) {
    let calls = json!([{
        "command": counter(), "background": true, "notify_on_complete": true, "task_id": name,
    }]);
    let host = Host::start(world, name, &calls);
    let id = host.id(0).to_owned();
    std::thread::sleep(moment(80));
    host.kill();
    let follower = world.start(["logs", "-f", &id]);
    std::thread::sleep(moment(60));
    follower.signal(Signal::KILL);
    let seen = follower.finish().text();
    let waiter = world.start_process_call("wait", &id, &json!({"timeout": 60}));
    std::thread::sleep(moment(60));
    waiter.signal(Signal::KILL);
    waiter.finish();

    let submitted = world.process("submit", &id, &json!({"data": name}));
    assert_eq!(submitted.error(), "", "{}", submitted.0);
    assert_eq!(world.exoshell(["wait", &id]).code(), 7);
    let lines: Vec<String> = (1..=LINES).map(|n| format!("line {n}\n")).collect();
    let expected = format!("{}got {name}\n", lines.concat());
    assert_eq!(world.logs(&id), expected);
    // What a killed reader had seen was right as far as it went.
    assert!(expected.starts_with(&seen), "{seen:?}");
}

#[test]
fn b5_a_host_killed_at_any_moment_costs_no_line_no_stdin_no_exit_code_and_no_event() {
    let world = World::new();
    world.terminal("true").printed("");
    std::thread::scope(|scope| {
        for lane in 0..LANES {
            let world = &world;
            scope.spawn(move || {
                for round in (lane..ROUNDS).step_by(LANES) {
                    one_round(world, &format!("round-{round}"));
                }
            });
        }
    });
    let completed = world.events("observer");
    assert_eq!(completed.len(), ROUNDS, "{completed:?}");
    for event in &completed {
        assert_eq!(
            (&event["event"], &event["state"], &event["code"]),
            (&json!("completed"), &json!("exited"), &json!(7))
        );
    }
    assert_eq!(world.events("observer"), [Value::Null; 0]);
}

#[test]
fn t5_session_dies_with_its_killed_owner_and_detached_goes_on() {
    let world = World::new();
    let [bound, bound_child, free] = [unique_sleep(), unique_sleep(), unique_sleep()];
    let host = Host::start(
        &world,
        "owner",
        &json!([
            {
                "command": format!("setsid -f sleep {bound_child}; exec sleep {bound}"),
                "background": true, "lifetime": "session",
            },
            {"command": format!("exec sleep {free}"), "background": true},
        ]),
    );
    let ids = [host.id(0).to_owned(), host.id(1).to_owned()];
    for sleep in [&bound, &bound_child, &free] {
        wait_until(Duration::from_secs(20), "it sleeps", || {
            processes_naming(sleep).iter().any(|p| p.name == "sleep")
        });
    }
    host.kill();
    for sleep in [&bound, &bound_child] {
        wait_until(Duration::from_secs(20), "the bound one is gone", || {
            processes_naming(sleep).is_empty()
        });
    }
    let ended = world.wait_for_end(&ids[0]);
    assert_eq!(ended.status(), "killed", "{}", ended.0);
    // The other one is there for whoever comes next.
    let survivor = world.process("poll", &ids[1], &json!({}));
    assert_eq!(survivor.status(), "running", "{}", survivor.0);
    assert_eq!(processes_naming(&free).len(), 1);
    assert_eq!(world.exoshell(["kill", &ids[1]]).code(), 0);
    assert!(processes_naming(&free).is_empty());
}

#[test]
fn t5_on_the_command_line_the_lifetime_session_is_the_tasks() {
    let world = World::new();
    let sleep = unique_sleep();
    let more = json!({"lifetime": "session", "task_id": "short"});
    let id = world.begin(&format!("exec sleep {sleep}"), &more);
    assert_eq!(world.process("poll", &id, &json!({})).status(), "running");
    assert_eq!(world.exoshell(["places", "rm", "short"]).code(), 0);
    assert_eq!(processes_naming(&sleep), []);
    let (answer, code) = world.process_with_code("poll", &id, &json!({}));
    assert!(code != 0 && !answer.error().is_empty(), "{}", answer.0);
}

#[test]
fn b5_what_died_with_its_guest_is_lost_and_never_has_a_code() {
    let world = World::new();
    let [sleep, other] = [unique_sleep(), unique_sleep()];
    let plain = world.begin(
        &format!("echo before; exec sleep {sleep}"),
        &json!({"notify_on_complete": true}),
    );
    let terminal = world.begin(&format!("exec sleep {other}"), &json!({"pty": true}));
    let done = world.begin("exit 0", &json!({}));
    world.wait_for_line(&plain, "before");
    world.wait_for_end(&done);

    let guest = world.guest_pid();
    kill_process(Pid::from_raw(guest.cast_signed()).unwrap(), Signal::KILL).unwrap();
    wait_until(Duration::from_secs(20), "everything died with it", || {
        !alive(guest) && processes_naming(&sleep).is_empty() && processes_naming(&other).is_empty()
    });

    let lost_everywhere = || {
        for id in [&plain, &terminal, &done] {
            let answer = world.process("poll", id, &json!({}));
            assert_eq!(answer.status(), "lost", "{}", answer.0);
            assert_eq!(answer.0["exit_code"], Value::Null, "{}", answer.0);
            assert!(answer.error().contains("gone"), "{}", answer.0);
            for (action, more) in [
                ("log", json!({})),
                ("wait", json!({"timeout": 5})),
                ("kill", json!({})),
                ("write", json!({"data": "x"})),
                ("submit", json!({"data": "x"})),
                ("close", json!({})),
                ("signal", json!({"signal": "TERM"})),
                ("resize", json!({"cols": 80, "rows": 24})),
                ("screen", json!({})),
            ] {
                let (answer, code) = world.process_with_code(action, id, &more);
                assert_ne!(code, 0, "{action}: {}", answer.0);
                assert!(answer.error().contains("lost"), "{action}: {}", answer.0);
                assert_eq!(answer.0["exit_code"].as_i64(), None, "{action}");
            }
        }
        let listed = world.json(["ps", "--all", "--json"]);
        for id in [&plain, &terminal, &done] {
            let entry = find(&listed, id);
            assert_eq!(entry["status"], "lost", "{listed}");
        }
        assert!(!world.exoshell(["ps"]).text().contains(&plain));
        for word in ["logs", "wait", "kill", "attach"] {
            let ran = world.exoshell([word, &plain]);
            assert_ne!(ran.code(), 0, "{word}");
            assert!(ran.talk().contains("lost"), "{word}: {}", ran.talk());
        }
    };
    lost_everywhere();
    // A new guest knows no more of them, and is not disturbed.
    let fresh = world.begin("echo fresh", &json!({}));
    assert_eq!(world.wait_for_end(&fresh).output(), "fresh\n");
    lost_everywhere();
}

/// Finds a process in a list.
#[track_caller]
fn find<'a>(list: &'a Value, id: &str) -> &'a Value {
    list["processes"]
        .as_array()
        .unwrap()
        .iter()
        .find(|process| process["session_id"] == id)
        .unwrap_or_else(|| panic!("no {id} in {list}"))
}
