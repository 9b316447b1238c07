//! Every mistake gets its own clear answer, and leaves nothing behind.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Program, Ran, World};

/// Asserts that a call was refused before anything ran.
#[track_caller]
fn refused(world: &World, arguments: &Value, kind: &str, words: &[&str]) {
    let (answer, code) = world.call_with_code(arguments);
    assert_eq!((answer.code(), answer.output()), (-1, ""), "{}", answer.0);
    assert_eq!(
        (answer.kind(), answer.status()),
        (kind, "error"),
        "{}",
        answer.0
    );
    for word in words {
        assert!(
            answer.error().contains(word),
            "`{word}` is missing: {}",
            answer.0
        );
    }
    assert_eq!(code, 125);
    untouched(world);
}

/// Asserts that nothing was started or made.
#[track_caller]
fn untouched(world: &World) {
    assert_eq!(
        fs::read_dir(&world.work).unwrap().count(),
        0,
        "the work directory is not empty"
    );
    assert_eq!(world.processes(), []);
    // A place that could not be had may leave the folder of the records, but none in it.
    let records = std::fs::read_dir(world.home.join("places"));
    let mut names = records.into_iter().flatten().flatten();
    assert!(names.all(|entry| entry.file_name() == ".lock"));
}

#[track_caller]
fn says(ran: &Ran, code: i32, words: &[&str]) {
    assert_eq!(ran.code(), code, "{}{}", ran.text(), ran.talk());
    for word in words {
        assert!(
            ran.talk().contains(word),
            "`{word}` is missing: {}",
            ran.talk()
        );
    }
    assert!(!ran.talk().contains("panicked"));
}

#[test]
fn an_empty_command_is_refused() {
    let world = World::new();
    for command in ["", " ", "\n\t \n"] {
        refused(
            &world,
            &json!({ "command": command }),
            "usage",
            &["the command is empty"],
        );
    }
    refused(
        &world,
        &json!({}),
        "usage",
        &["needs the argument `command`"],
    );
    says(&world.exoshell(["run", ""]), 125, &["the command is empty"]);
    says(&world.exoshell(["run"]), 2, &["COMMAND"]);
    untouched(&world);
}

#[test]
fn a_nul_in_the_command_is_refused() {
    let world = World::new();
    refused(
        &world,
        &json!({"command": "touch a\0touch b"}),
        "usage",
        &["NUL byte"],
    );
}

#[test]
fn arguments_of_the_wrong_type_or_name_are_refused_by_name() {
    let world = World::new();
    for (arguments, words) in [
        (json!({"command": 5}), &["`command`", "a string", "5"][..]),
        (json!({"command": ["ls"]}), &["`command`", "a string"]),
        (
            json!({"command": "touch x", "comand": 1}),
            &["`comand`", "it takes"],
        ),
        (json!({"command": "touch x", "force": true}), &["`force`"]),
        (
            json!({"command": "touch x", "workdir": 5}),
            &["`workdir`", "a string"],
        ),
        (
            json!({"command": "touch x", "env": "A=1"}),
            &["`env`", "an object of strings"],
        ),
        (
            json!({"command": "touch x", "env": {"A": 1}}),
            &["`env`", "an object of strings"],
        ),
        (json!({"command": "touch x", "stdin": 1}), &["`stdin`"]),
        (json!({"command": "touch x", "task_id": 1}), &["`task_id`"]),
        (
            json!({"command": "touch x", "task_id": ""}),
            &["task needs a name"],
        ),
        (
            json!({"command": "touch x", "task_id": "a\nb"}),
            &["control characters"],
        ),
        (
            json!({"command": "touch x", "task_id": "x".repeat(300)}),
            &["256 bytes"],
        ),
        (
            json!({"command": "touch x", "timeout": -1}),
            &["`timeout`", "from 0 to", "-1"],
        ),
        (
            json!({"command": "touch x", "timeout": 1e300}),
            &["`timeout`"],
        ),
        (
            json!({"command": "touch x", "timeout": "soon"}),
            &["`timeout`", "soon"],
        ),
        (
            json!({"command": "touch x", "timeout": "NaN"}),
            &["`timeout`"],
        ),
        (
            json!({"command": "touch x", "timeout": true}),
            &["`timeout`"],
        ),
        (
            json!({"command": "touch x", "timeout": "inf"}),
            &["`timeout`"],
        ),
    ] {
        refused(&world, &arguments, "usage", words);
    }
    for name in ["background", "pty"] {
        let arguments = json!({"command": "touch x", name: "maybe"});
        refused(&world, &arguments, "usage", &[name, "true or false"]);
    }
}

#[test]
fn variables_no_shell_can_hold_are_refused_by_name() {
    let world = World::new();
    for name in ["A=B", "", "1A", "a b", "a-b"] {
        let (answer, code) =
            world.call_with_code(&json!({"command": "touch x", "env": {name: "v"}}));
        assert_eq!(
            (answer.code(), answer.kind(), code),
            (-1, "usage", 125),
            "`{name}`: {}",
            answer.0
        );
        assert!(answer.error().contains(name), "{}", answer.0);
    }
    let answer = world.call(&json!({"command": "touch x", "env": {"A": "nul\0"}}));
    assert_eq!(
        (answer.code(), answer.kind()),
        (-1, "usage"),
        "{}",
        answer.0
    );
    says(
        &world.exoshell(["run", "--env", "NOVALUE", "touch x"]),
        125,
        &["NOVALUE", "NAME=VALUE"],
    );
    says(
        &world.exoshell(["run", "--env", "1A=x", "touch x"]),
        125,
        &["1A"],
    );
    assert_eq!(fs::read_dir(&world.work).unwrap().count(), 0);
}

#[test]
fn a_workdir_that_cannot_be_entered_is_126_and_nothing_runs() {
    let world = World::new();
    fs::write(world.user.join("file"), "").unwrap();
    for (workdir, why) in [
        ("/nonexistent/x", "No such file"),
        ("relative/nowhere", "No such file"),
        ("~/nowhere", "No such file"),
        ("~/file", "not a directory"),
        ("/etc/passwd/x", "Not a directory"),
        ("nul\0", "NUL"),
    ] {
        let (answer, code) =
            world.call_with_code(&json!({"command": "touch x", "workdir": workdir}));
        assert_eq!(
            (answer.code(), answer.kind()),
            (126, "usage"),
            "{workdir}: {}",
            answer.0
        );
        assert!(answer.error().contains(why), "{workdir}: {}", answer.0);
        assert_ne!(code, 0);
    }
    let ran = world.exoshell(["run", "--workdir", "/etc/passwd", "touch x"]);
    says(&ran, 126, &["`/etc/passwd`", "not a directory"]);
    let ran = world.exoshell(["run", "--json", "--workdir", "/etc/passwd", "touch x"]);
    assert_eq!(ran.code(), 126);
    assert_eq!(fs::read_dir(&world.work).unwrap().count(), 0);
    world
        .terminal("pwd")
        .printed(&format!("{}\n", world.work.display()));
}

#[test]
fn absurd_timeouts_on_the_command_line_are_refused() {
    let world = World::new();
    for timeout in ["-1", "nan", "inf", "1e30"] {
        let ran = world.exoshell(["run", &format!("--timeout={timeout}"), "touch x"]);
        says(&ran, 125, &["--timeout", "from 0 to"]);
    }
    says(
        &world.exoshell(["run", "--timeout", "soon", "touch x"]),
        2,
        &["--timeout", "soon"],
    );
    untouched(&world);
}

#[test]
fn an_unknown_tool_and_arguments_that_are_no_object_are_refused() {
    let world = World::new();
    for (arguments, words) in [
        (
            &["call", "terminl", "{}"][..],
            "there is no tool `terminl`; there are: terminal",
        ),
        (&["call", "terminal", "[]"], "one JSON object, not a list"),
        (&["call", "terminal", "null"], "one JSON object, not null"),
        (&["call", "terminal", "{"], "not JSON"),
        (&["call", "terminal", ""], "not JSON"),
        (&["call", "terminal", "{\"command\":\"a\"} x"], "not JSON"),
    ] {
        let ran = world.exoshell(arguments);
        let answer = crate::support::Answer::parse(&ran.out);
        assert_eq!(
            (answer.code(), answer.kind(), ran.code()),
            (-1, "usage", 125),
            "{}",
            answer.0
        );
        assert!(answer.error().contains(words), "{}", answer.0);
    }
    let ran = Program::start(world.command(["call", "terminal", "-"]), b"\xff\xfe{}").finish();
    let answer = crate::support::Answer::parse(&ran.out);
    assert_eq!((answer.kind(), ran.code()), ("usage", 125), "{}", answer.0);
    untouched(&world);
}

#[test]
fn a_backend_that_is_not_there_is_never_replaced_by_another() {
    // No engine, no host: whatever is installed here must not be found.
    let lonely = || World::new().with_variable("EXOSHELL_DOCKER_BINARY", "/nonexistent/docker");
    let world = lonely();
    for backend in ["nonesuch", "docker", "podman", "ssh", "command", "modal"] {
        let ran = world.exoshell(["run", "--backend", backend, "touch x"]);
        assert_eq!(ran.code(), 125, "{backend}: {}", ran.talk());
        assert!(ran.talk().contains(backend), "{backend}: {}", ran.talk());
        let ran = world.exoshell([
            "call",
            "--backend",
            backend,
            "terminal",
            "{\"command\":\"touch x\"}",
        ]);
        assert_eq!(ran.code(), 125, "{backend}: {}", ran.text());
    }
    let other = lonely().with_variable("TERMINAL_ENV", "docker");
    let ran = other.exoshell(["run", "touch x"]);
    assert_eq!(ran.code(), 125, "{}", ran.talk());
    untouched(&other);
    untouched(&world);
}

#[test]
fn a_wrong_configuration_is_named_before_anything_runs() {
    for (config, words) in [
        (
            "[terminal]\ntimeout_seconds = \"soon\"\n",
            &["timeout_seconds"][..],
        ),
        ("[terminal]\ntimeout_seconds = -1\n", &["timeout_seconds"]),
        (
            "[terminal]\ntimout_seconds = 5\n",
            &["timout_seconds", "timeout_seconds"],
        ),
        ("[terminl]\ntimeout_seconds = 5\n", &["terminl", "terminal"]),
        ("stray = 1\n", &["stray"]),
        ("[terminal\n", &["config.toml"]),
        ("[terminal]\nenv = { A = 1 }\n", &["env"]),
        ("[places]\nlinger = \"yes\"\n", &["linger"]),
        ("[terminal]\nbackend = \"dokcer\"\n", &["dokcer"]),
        ("\u{0}", &["config.toml"]),
    ] {
        let world = World::new().with_config(config);
        let ran = world.exoshell(["run", "touch x"]);
        says(&ran, 125, words);
        let answer = world.terminal("touch x");
        assert_eq!(
            (answer.code(), answer.kind()),
            (-1, "config"),
            "{}",
            answer.0
        );
        let ran = world.exoshell(["config", "show"]);
        says(&ran, 125, words);
        let ran = world.exoshell(["places", "ls"]);
        says(&ran, 125, words);
        let ran = Program::start(world.command(["shell"]), b"touch x\n").finish();
        says(&ran, 125, words);
        untouched(&world);
    }
    let world = World::new().with_variable("EXOSHELL_CONFIG", "/nonexistent/config.toml");
    says(
        &world.exoshell(["run", "touch x"]),
        125,
        &["/nonexistent/config.toml"],
    );
    untouched(&world);
}

#[test]
fn a_variable_that_does_not_parse_is_named_with_its_value() {
    for (name, value) in [
        ("TERMINAL_TIMEOUT", "soon"),
        ("TERMINAL_TIMEOUT", "-5"),
        ("TERMINAL_ENV", "dokcer"),
        ("TERMINAL_LIFETIME_SECONDS", "x"),
        ("EXOSHELL_BATCH", "perhaps"),
        ("TERMINAL_MAX_FOREGROUND_TIMEOUT", ""),
        ("EXOSHELL_LOG", "loud"),
    ] {
        let world = World::new().with_variable(name, value);
        let ran = world.exoshell(["run", "echo ran"]);
        if value.is_empty() {
            // An empty variable counts as unset.
            assert_eq!((ran.code(), ran.text().as_str()), (0, "ran\n"));
            continue;
        }
        says(&ran, 125, &[name, value]);
        untouched(&world);
    }
}

#[test]
fn a_home_that_cannot_be_written_is_a_clear_error() {
    let world = World::new();
    fs::write(world.root().join("file"), "").unwrap();
    let file = world.root().join("file");
    for home in ["/proc/exoshell", "/dev/null/exo", file.to_str().unwrap()] {
        let mut command = world.command(["run", "touch x"]);
        command.env("EXOSHELL_HOME", home);
        let ran = Program::start(command, b"").finish();
        says(&ran, 125, &[home, "EXOSHELL_HOME", "hint:"]);
        let mut command = world.command(["call", "terminal", "{\"command\":\"touch x\"}"]);
        command.env("EXOSHELL_HOME", home);
        let ran = Program::start(command, b"").finish();
        let answer = crate::support::Answer::parse(&ran.out);
        assert_eq!(
            (answer.code(), answer.kind(), ran.code()),
            (-1, "config", 125),
            "{}",
            answer.0
        );
        assert!(answer.hint().contains("EXOSHELL_HOME"), "{}", answer.0);
    }
    untouched(&world);
}

#[test]
fn a_home_of_somebody_else_is_a_clear_error() {
    let world = World::new();
    let theirs = world.root().join("theirs");
    fs::create_dir(&theirs).unwrap();
    let mut command = Command::new("setpriv");
    command.args([
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        crate::support::EXOSHELL,
        "run",
        "touch x",
    ]);
    world.dress(&mut command);
    command.env("EXOSHELL_HOME", &theirs).current_dir("/");
    let ran = Program::start(command, b"").finish();
    says(&ran, 125, &["Permission denied", "EXOSHELL_HOME", "hint:"]);
    assert_eq!(fs::read_dir(&theirs).unwrap().count(), 0);
}

#[test]
fn a_home_that_does_not_allow_programs_says_so() {
    let world = World::bare("exo");
    fs::create_dir(&world.home).unwrap();
    let mount = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "noexec,mode=700,size=32m", "tmpfs"])
        .arg(&world.home)
        .status()
        .unwrap();
    assert!(mount.success(), "this test needs root");
    let ran = world.exoshell(["run", "touch x"]);
    let unmount = Command::new("umount")
        .arg("-l")
        .arg(&world.home)
        .status()
        .unwrap();
    assert!(unmount.success());
    fs::remove_dir(&world.home).unwrap();
    says(&ran, 125, &["Permission denied", "hint:", "execut"]);
}

#[test]
fn no_home_at_all_is_a_clear_error() {
    let world = World::new();
    let mut command = world.command(["run", "touch x"]);
    command.env_remove("EXOSHELL_HOME").env_remove("HOME");
    let ran = Program::start(command, b"").finish();
    says(&ran, 125, &["EXOSHELL_HOME"]);
    untouched(&world);
}

#[test]
fn a_caller_whose_directory_is_gone_is_answered() {
    let world = World::new();
    let gone = world.root().join("gone");
    fs::create_dir(&gone).unwrap();
    let mut command = Command::new("bash");
    command.args([
        "-c",
        "cd ../gone && rmdir ../gone && exec \"$0\" run pwd",
        crate::support::EXOSHELL,
    ]);
    world.dress(&mut command);
    let ran = Program::start(command, b"").finish();
    // It either works somewhere and says where, or says why not.
    assert!(!ran.talk().is_empty(), "{}", ran.text());
    assert!(!ran.talk().contains("panicked"), "{}", ran.talk());
}
