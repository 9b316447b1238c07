//! Commands that mean harm to what runs them, found by attacking it.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::{World, processes_naming, unique_sleep};

#[test]
fn t1_a_command_that_stops_its_supervisor_is_ended_all_the_same() {
    let world = World::new();
    let sleep = unique_sleep();
    let began = Instant::now();
    let command = format!("kill -STOP $PPID; echo x; sleep {sleep}");
    let answer = world.call(&json!({"command": command, "timeout": 1}));
    assert_eq!(
        (answer.code(), answer.status()),
        (124, "timeout"),
        "{}",
        answer.0
    );
    assert!(began.elapsed() < Duration::from_secs(20));
    assert_eq!(processes_naming(&sleep), []);
    world.terminal("echo fine").printed("fine\n");
}

#[test]
fn e5_one_task_cannot_change_what_ends_the_shells_of_another() {
    let world = World::new();
    world.task(
        "evil",
        "for n in 3 4 5; do echo 'echo PWNED' >/proc/$PPID/fd/$n; done 2>/dev/null; true",
    );
    let answer = world.task("victim", "cd /usr; echo fine");
    assert_eq!(answer.output(), "fine\n", "{}", answer.0);
    let answer = world.task("victim", "pwd");
    assert_eq!(answer.output(), "/usr\n", "{}", answer.0);
}

#[test]
fn variables_with_meaning_to_the_shell_cannot_break_the_session() {
    let world = World::new();
    for setup in [
        "export REPLY=5; readonly REPLY",
        "declare -rx SECONDS=4",
        "export LD_LIBRARY_PATH=/nonexistent LD_PRELOAD=/nonexistent/x.so",
        "set -k",
        "export BASH_EXECUTION_STRING=x; readonly BASH_EXECUTION_STRING",
    ] {
        world.terminal(&format!("cd /; {setup}"));
        for _ in 0..3 {
            let answer = world.terminal("echo ran; exit 7");
            assert_eq!(answer.code(), 7, "{setup}: {}", answer.0);
            // A preload that cannot be found is complained of by programs, not by us.
            assert!(answer.output().contains("ran\n"), "{setup}: {}", answer.0);
        }
        assert_eq!(world.exoshell(["places", "rm", "default"]).code(), 0);
    }
}

#[test]
fn h3_tracing_shows_the_commands_words_and_none_of_ours() {
    let world = World::new();
    for command in [
        "set -x; echo hi",
        "set -e; set -x; echo hi; false",
        "set -x; echo hi; exit 3",
    ] {
        let answer = world.terminal(command);
        assert!(
            answer.output().contains("echo hi\nhi\n"),
            "{command}: {}",
            answer.0
        );
        for ours in ["builtin", "/proc/", "BASH_EXECUTION"] {
            assert!(!answer.output().contains(ours), "{command}: {}", answer.0);
        }
    }
}

#[test]
fn a_function_named_builtin_costs_neither_the_code_nor_the_state() {
    let world = World::new();
    let answer = world.terminal("builtin() { echo LEAK; }; cd /usr; (exit 9)");
    assert_eq!((answer.output(), answer.code()), ("", 9), "{}", answer.0);
    world.terminal("pwd").printed("/usr\n");
}
