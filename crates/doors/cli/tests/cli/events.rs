//! Events of processes: each once, to everyone who asks, and never too many.

use std::time::Duration;

use exoshell_runtime::{Interrupt, call};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{World, block_on, runtime, wait_until};

fn kinds(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event["event"].as_str().unwrap())
        .collect()
}

#[test]
fn b2_looking_a_hundred_times_around_the_exit_leaves_exactly_one_completion_each() {
    let world = World::new();
    let runtime = runtime(&world);
    let id = block_on(async {
        let ask = |tool: &'static str, arguments: Value| {
            let runtime = runtime.clone();
            async move { call(&runtime, tool, &arguments, None, Interrupt::new()).await }
        };
        let started = ask(
            "terminal",
            json!({
                "command": "echo first; read -rt 0.3 <> <(:); echo last; exit 3",
                "background": true, "notify_on_complete": true,
            }),
        )
        .await;
        let id = started["session_id"].as_str().unwrap().to_owned();
        let mut output = String::new();
        let mut looks = 0;
        let mut after = 0;
        // At least a hundred looks, some of them behind the end.
        while looks < 100 || after < 20 {
            let poll = ask("process", json!({"action": "poll", "session_id": id})).await;
            output.push_str(poll["output"].as_str().unwrap());
            after += u32::from(poll["status"] == "exited");
            ask("process", json!({"action": "list"})).await;
            ask("process", json!({"action": "log", "session_id": id})).await;
            ask(
                "process",
                json!({"action": "wait", "session_id": id, "timeout": 0.001}),
            )
            .await;
            looks += 1;
        }
        // What is not new is not told again, and nothing is left out.
        assert!("first\nlast\n".starts_with(&output), "{output:?}");
        id
    });
    for consumer in ["one", "two"] {
        let events = world.events(consumer);
        assert_eq!(kinds(&events), ["completed"], "{consumer}: {events:?}");
        let event = &events[0];
        assert_eq!(
            (
                &event["id"],
                &event["state"],
                &event["code"],
                &event["tail"]
            ),
            (
                &json!(id),
                &json!("exited"),
                &json!(3),
                &json!("first\nlast\n")
            ),
        );
        assert_eq!(world.events(consumer), [Value::Null; 0], "{consumer}");
    }
}

#[test]
fn b2_what_was_not_acknowledged_comes_again_and_what_was_never_does() {
    let world = World::new();
    let id = world.begin("echo done", &json!({"notify_on_complete": true}));
    world.wait_for_end(&id);
    // Looking takes nothing away.
    for _ in 0..3 {
        let peeked = world.exoshell(["events", "--peek", "--json"]);
        assert_eq!(peeked.text().lines().count(), 1, "{}", peeked.text());
    }
    // A reader that is gone before it could print has been told nothing.
    let mut command = world.command(["events", "--json"]);
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    command.stdout(writer).stderr(std::process::Stdio::null());
    command.status().unwrap();
    let text = world.exoshell(["events"]).text();
    assert!(
        text.contains(&id) && text.contains("exited, code 0: done"),
        "{text}"
    );
    assert_eq!(world.exoshell(["events"]).text(), "");
}

#[test]
fn events_that_are_followed_arrive_as_they_happen_also_after_the_follower_was_killed() {
    let world = World::new();
    world.terminal("true").printed("");
    let follow = ["events", "--follow", "--json", "--consumer", "harness"];
    let mut seen: Vec<Value> = Vec::new();
    for round in 0..3 {
        let listing = world.root().join(format!("events-{round}"));
        let mut command = world.command(follow);
        command.stdout(std::fs::File::create(&listing).unwrap());
        let mut follower = command.spawn().unwrap();
        let id = world.begin("exit 4", &json!({"notify_on_complete": true}));
        wait_until(Duration::from_secs(20), "the event arrives", || {
            std::fs::read_to_string(&listing).unwrap().contains(&id)
        });
        // It is acknowledged right after it was printed; only then the follower dies.
        wait_until(Duration::from_secs(20), "it is acknowledged", || {
            let mut peek = follow;
            peek[1] = "--peek";
            world.exoshell(peek).text().is_empty()
        });
        follower.kill().unwrap();
        follower.wait().unwrap();
        let text = std::fs::read_to_string(&listing).unwrap();
        seen.extend(
            text.lines()
                .map(|line| serde_json::from_str::<Value>(line).unwrap()),
        );
        assert_eq!(seen.last().unwrap()["id"], json!(id));
    }
    assert_eq!(seen.len(), 3, "{seen:?}");
    assert_eq!(world.events("harness"), [Value::Null; 0]);
    // Without --follow the end of the list is the end; an interrupt ends a follower politely.
    let follower = world.start(follow);
    std::thread::sleep(Duration::from_millis(100));
    follower.signal(Signal::INT);
    assert_eq!(follower.finish().code(), 0);
}

#[test]
fn a_watch_that_is_flooded_is_bounded_and_switched_off_with_one_note() {
    let world = World::new();
    let id = world.begin(
        "yes match | head -n 300000; exit 5",
        &json!({"watch_patterns": ["^mat"], "notify_on_complete": true}),
    );
    let ended = world.wait_for_end(&id);
    assert_eq!(ended.code(), 5, "{}", ended.0);
    let events = world.events("cli");
    // The first match, the note, the end; more matches only where the machine took seconds.
    let names = kinds(&events);
    assert!(names.len() <= 6, "{names:?}");
    assert_eq!(names[0], "matched", "{events:?}");
    assert_eq!(events[0]["line"], "match");
    let notes = names.iter().filter(|name| **name == "watch_off").count();
    assert_eq!(notes, 1, "{events:?}");
    assert_eq!(
        names.last(),
        Some(&"completed"),
        "nothing comes after the end"
    );
    // Nothing of the output itself was lost over it.
    let log = world.process("log", &id, &json!({"limit": 1}));
    assert_eq!(log.0["total_lines"], 300_000, "{}", log.0);
}

#[test]
fn a_watch_names_the_line_and_counts_what_it_held_back() {
    let world = World::new();
    let id = world.begin(
        "echo quiet; echo 'ERROR one'; echo 'ERROR two'; printf 'port 8080 open'",
        &json!({"watch_patterns": ["ERROR", "port [0-9]+"], "notify_on_complete": true}),
    );
    world.wait_for_end(&id);
    let events = world.events("cli");
    assert_eq!(kinds(&events), ["matched", "completed"], "{events:?}");
    assert_eq!(
        (&events[0]["pattern"], &events[0]["line"]),
        (&json!("ERROR"), &json!("ERROR one"))
    );
    // On the command line as well.
    let ran = world.exoshell(["run", "--background", "--watch", "x+", "echo axxb"]);
    let id = ran.text().trim().to_owned();
    world.wait_for_end(&id);
    let text = world.exoshell(["events"]).text();
    assert!(
        text.contains("`x+` matched") && text.contains("axxb"),
        "{text}"
    );
}

#[test]
fn b6_no_event_without_being_asked_and_check_intervals_are_raised_with_a_note() {
    let world = World::new();
    let answer = world.call(&json!({
        "command": "true", "background": true, "check_interval": 1,
    }));
    let note = answer.0["check_interval_note"].as_str().unwrap_or_default();
    assert!(note.contains("30 s"), "{}", answer.0);
    let id = answer.0["session_id"].as_str().unwrap();
    world.wait_for_end(id);
    assert_eq!(world.events("cli"), [Value::Null; 0]);
    let quiet = world.call(&json!({"command": "true", "background": true}));
    assert!(!quiet.0.to_string().contains("notif"), "{}", quiet.0);
}
