//! What commands leave running, and what they are given.

use std::time::Duration;

use crate::support::{World, alive, processes_naming, unique_sleep, wait_until};

#[test]
fn a_list_in_the_background_is_adopted_with_the_subshell_that_waits_for_it() {
    let world = World::new();
    for form in ["cd / && sleep N &", "true && sleep N & echo done"] {
        let sleep = unique_sleep();
        let answer = world.terminal(&form.replace('N', &sleep));
        assert_eq!(answer.code(), 0, "{}", answer.0);
        // The list itself may take a moment to come to its last command.
        wait_until(Duration::from_secs(5), "the sleep runs", || {
            processes_naming(&sleep)
                .iter()
                .any(|process| process.name == "sleep")
        });
        let info = world.json(["places", "info", "default", "--json"]);
        let left: Vec<String> = info["leftovers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|process| process["command"].as_str().unwrap().trim().to_owned())
            .collect();
        // Bash itself keeps a subshell waiting for the last command of such a list. Rewriting
        // the text to avoid it would change what it means, so it is adopted and ended with it.
        let sleeper = format!("sleep {sleep}");
        assert!(left.contains(&sleeper), "`{form}`: {info}");
        assert!(
            left.iter().all(|c| *c == sleeper || c == "bash"),
            "`{form}`: {info}"
        );
        assert_eq!(world.exoshell(["places", "rm", "default"]).code(), 0);
        assert_eq!(processes_naming(&sleep), []);
    }
}

#[test]
fn adopted_processes_are_listed_until_they_end_and_end_with_their_place() {
    let world = World::new();
    let [first, second] = [unique_sleep(), unique_sleep()];
    let answer = world.task(
        "a",
        &format!("setsid sleep {first} & setsid sleep {second} & true"),
    );
    let mut left = answer.left_running();
    left.sort();
    assert_eq!(left.len(), 2, "{}", answer.0);
    assert!(left[0].contains(&first) && left[1].contains(&second));
    let info = world.json(["places", "info", "a", "--json"]);
    assert_eq!(info["leftovers"].as_array().unwrap().len(), 2, "{info}");
    // Those of one task are none of another's.
    world.task("b", "true").printed("");
    assert_eq!(
        world.json(["places", "info", "b", "--json"])["leftovers"],
        serde_json::json!([])
    );
    assert_eq!(world.exoshell(["places", "rm", "b"]).code(), 0);
    assert_eq!(processes_naming(&first).len(), 1);
    // One that ends leaves the list.
    world.task("a", &format!("pkill -f 'sleep {first}'"));
    wait_until(
        Duration::from_secs(5),
        "the ended one is not listed",
        || {
            let info = world.json(["places", "info", "a", "--json"]);
            info["leftovers"].as_array().unwrap().len() == 1
        },
    );
    let text = world.exoshell(["places", "info", "a"]).text();
    assert!(text.contains(&second) && !text.contains(&first), "{text}");
    let ran = world.exoshell(["places", "rm", "a", "--json"]);
    assert_eq!(
        crate::support::Answer::parse(&ran.out).0["removed"],
        serde_json::json!(["a"])
    );
    assert_eq!(processes_naming(&second), []);
}

#[test]
fn leftovers_of_a_one_shot_run_end_with_the_guest_at_the_latest() {
    let world = World::new();
    let sleep = unique_sleep();
    let ran = world.exoshell(["run", &format!("setsid sleep {sleep} & echo done")]);
    assert_eq!((ran.code(), ran.text().as_str()), (0, "done\n"));
    assert!(ran.talk().contains(&sleep), "it is named: {}", ran.talk());
    assert_eq!(processes_naming(&sleep).len(), 1);
    world.clean_up();
    assert_eq!(processes_naming(&sleep), []);
}

#[test]
fn m4_children_have_the_three_standard_descriptors_and_no_other() {
    let world = World::new();
    // The listing itself holds one more while it reads.
    let show = "ls -l /proc/self/fd | awk 'NR>1 {print $9}' | sort -n | tr '\\n' ' '";
    for command in [
        show.to_owned(),
        format!("( {show} )"),
        format!(
            "bash -c \"{}\"",
            show.replace('$', "\\$").replace('"', "\\\"")
        ),
        format!("x=$({show}); echo \"$x\""),
        format!("{{ {show}; }} & wait"),
    ] {
        let answer = world.terminal(&command);
        assert_eq!(answer.output().trim(), "0 1 2 3", "`{command}`");
        let answer = world.call(&serde_json::json!({"command": command, "stdin": "x"}));
        assert_eq!(answer.output().trim(), "0 1 2 3", "`{command}` with stdin");
        let ran = world.exoshell(["run", &command]);
        assert_eq!(ran.text().trim(), "0 1 2 3", "`{command}` in run");
    }
    // Also when the caller leaves one open for us.
    let mut shell = std::process::Command::new("bash");
    shell.args([
        "-c",
        "exec 5</etc/passwd 9>/dev/null; \"$0\" run \"$1\"; \"$0\" run \"$1\"",
        crate::support::EXOSHELL,
        show,
    ]);
    let fresh = World::new();
    fresh.dress(&mut shell);
    let ran = crate::support::Program::start(shell, b"").finish();
    assert_eq!(ran.text().trim(), "0 1 2 3 0 1 2 3");
    let guest = fresh.guest_pid();
    let held: Vec<String> = std::fs::read_dir(format!("/proc/{guest}/fd"))
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .map(|path| path.display().to_string())
        .collect();
    assert!(!held.iter().any(|path| path == "/etc/passwd"), "{held:?}");
}

#[test]
fn a_daemon_started_by_a_command_lives_on_across_calls() {
    let world = World::new();
    let sleep = unique_sleep();
    world.terminal(&format!(
        "nohup setsid sleep {sleep} >/dev/null 2>&1 & echo $! > pid"
    ));
    let pid = processes_naming(&sleep)[0].pid;
    for _ in 0..3 {
        world.terminal("true").printed("");
    }
    assert!(alive(pid));
}
