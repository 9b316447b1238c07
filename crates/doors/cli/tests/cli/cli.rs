//! The words of the command line.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::support::{Answer, Program, World};

#[test]
fn help_and_version_are_answers() {
    let world = World::bare("exo");
    for arguments in [
        &["--help"][..],
        &["help"],
        &["run", "--help"],
        &["places", "--help"],
        &["help", "call"],
    ] {
        let ran = world.exoshell(arguments);
        assert_eq!(
            (ran.code(), ran.talk()),
            (0, String::new()),
            "{arguments:?}"
        );
        assert!(ran.text().contains("Usage: exoshell"), "{}", ran.text());
    }
    let help = world.exoshell(["--help"]).text();
    for word in [
        "run",
        "call",
        "shell",
        "places",
        "config",
        "schema",
        "completions",
        "bench",
        "124 timeout",
        "77 refused",
    ] {
        assert!(help.contains(word), "`{word}` is missing");
    }
    let version = world.exoshell(["--version"]);
    assert_eq!(version.code(), 0);
    assert!(
        version
            .text()
            .starts_with(concat!("exoshell ", env!("CARGO_PKG_VERSION"))),
        "{}",
        version.text()
    );
    assert!(!world.home.exists(), "asking costs nothing");
}

#[test]
fn misuse_is_2_and_says_how_to_do_it() {
    let world = World::bare("exo");
    for arguments in [
        &["nonesuch"][..],
        &["run", "--nonesuch", "x"],
        &["places"],
        &["places", "rm"],
        &["config", "nonesuch"],
        &["completions", "cmd"],
        &["schema", "--format", "x"],
        &["places", "rm", "--all", "t"],
        &[],
    ] {
        let ran = world.exoshell(arguments);
        assert_eq!(
            (ran.code(), ran.text()),
            (2, String::new()),
            "{arguments:?}: {}",
            ran.talk()
        );
        assert!(
            ran.talk().contains("Usage") || ran.talk().contains("--help"),
            "{arguments:?}: {}",
            ran.talk()
        );
    }
    assert!(!world.home.exists());
}

#[test]
fn json_is_there_wherever_there_is_output() {
    let world = World::new();
    let objects: &[&[&str]] = &[
        &["run", "--json", "echo hi"],
        &["run", "--json", "--task", "t", "echo hi"],
        &["call", "--json", "terminal", "{\"command\":\"echo hi\"}"],
        &["places", "ls", "--json"],
        &["places", "info", "t", "--json"],
        &["config", "show", "--json"],
        &["config", "path", "--json"],
        &["config", "init", "--json"],
        &["places", "rm", "t", "--json"],
        &["places", "rm", "--all", "--json"],
    ];
    for arguments in objects {
        let ran = world.exoshell(*arguments);
        assert_eq!(ran.code(), 0, "{arguments:?}: {}{}", ran.text(), ran.talk());
        Answer::parse(&ran.out);
    }
    let ran = world.exoshell(["schema", "--json"]);
    assert!(
        serde_json::from_slice::<Value>(&ran.out)
            .unwrap()
            .is_array()
    );
    // Failures too.
    for arguments in [
        &["run", "--json", ""][..],
        &["places", "info", "nonesuch", "--json"],
        &["config", "init", "--json"],
    ] {
        let ran = world.exoshell(arguments);
        let answer = Answer::parse(&ran.out);
        assert_eq!(ran.code(), 125, "{arguments:?}");
        assert!(
            !answer.error().is_empty() && answer.kind() == "usage",
            "{}",
            answer.0
        );
    }
}

#[test]
fn run_without_a_task_leaves_no_session_and_with_one_it_does() {
    let world = World::new();
    assert_eq!(
        world.exoshell(["run", "cd /usr; export A=1; pwd"]).text(),
        "/usr\n"
    );
    assert_eq!(world.json(["places", "ls", "--json"])["places"], json!([]));
    assert_eq!(
        world
            .exoshell(["run", "--task", "t", "cd /usr; export A=1"])
            .code(),
        0
    );
    assert_eq!(
        world
            .exoshell(["run", "--task", "t", "pwd; echo $A"])
            .text(),
        "/usr\n1\n"
    );
    world.task("t", "pwd").printed("/usr\n");
    let listing = world.exoshell(["places", "ls"]);
    assert!(
        listing.text().contains("/usr") && listing.text().starts_with("TASK"),
        "{}",
        listing.text()
    );
}

#[test]
fn words_of_run_are_joined_and_may_begin_with_a_hyphen() {
    let world = World::new();
    assert_eq!(world.exoshell(["run", "echo", "a", "b"]).text(), "a b\n");
    assert_eq!(world.exoshell(["run", "--", "echo", "-n", "x"]).text(), "x");
    assert_eq!(
        world.exoshell(["run", "echo", "-n", "--json"]).text(),
        "--json"
    );
    assert_eq!(
        world
            .exoshell([
                "run",
                "--env",
                "A=b c=d",
                "--workdir",
                "/usr",
                "echo \"$A\" $PWD"
            ])
            .text(),
        "b c=d /usr\n"
    );
}

#[test]
fn stdin_is_passed_on_when_asked_for() {
    let world = World::new();
    let text = "x".repeat(1_000_000);
    let ran = Program::start(
        world.command(["run", "--stdin", "wc -c; read y || echo end"]),
        text.as_bytes(),
    )
    .finish();
    assert_eq!(ran.text(), "1000000\nend\n");
    let ran = Program::start(world.command(["run", "--stdin", "--json", "cat"]), b"given").finish();
    assert_eq!(Answer::parse(&ran.out).output(), "given");
    let ran = Program::start(
        world.command(["run", "--stdin", "head -c 1"]),
        text.as_bytes(),
    )
    .finish();
    assert_eq!(ran.text(), "x");
    // An endless stdin does not hold a command that ended.
    let mut shell = Command::new("bash");
    shell.args([
        "-c",
        "yes | \"$0\" run --stdin 'head -1'; exit ${PIPESTATUS[1]}",
        crate::support::EXOSHELL,
    ]);
    world.dress(&mut shell);
    let ran = Program::start(shell, b"").finish();
    assert_eq!((ran.code(), ran.text().as_str()), (0, "y\n"));
}

#[test]
fn an_open_stdin_does_not_hold_a_command_that_ended() {
    let world = World::new();
    let mut command = world.command(["run", "--stdin", "echo done"]);
    command
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let stdin = child.stdin.take();
    crate::support::wait_until(std::time::Duration::from_secs(10), "`run` ends", || {
        child.try_wait().unwrap().is_some()
    });
    drop(stdin);
}

#[test]
fn shell_reads_commands_and_keeps_their_state() {
    let world = World::new();
    let lines = b"cd /usr\nexport A=1\n\n   \npwd; echo $A\nfalse\nf() { echo f; }\nf\nkill -9 $$\npwd\nexit\necho never\n";
    let ran = Program::start(world.command(["shell", "--task", "s"]), lines).finish();
    assert_eq!(ran.text(), "/usr\n1\nf\n/usr\n");
    world.task("s", "pwd").printed("/usr\n");
    let ran = Program::start(world.command(["shell"]), b"exit 3").finish();
    assert_eq!(ran.code(), 3);
    let ran = Program::start(world.command(["shell"]), b"").finish();
    assert_eq!((ran.code(), ran.text().as_str()), (0, ""));
    let ran = Program::start(world.command(["shell", "--json"]), b"echo one\nexit 4\n").finish();
    let objects: Vec<Value> = serde_json::Deserializer::from_slice(&ran.out)
        .into_iter()
        .map(Result::unwrap)
        .collect();
    // `exit` is the prompt's own word, so it has no answer, only a code.
    assert_eq!((objects.len(), ran.code()), (1, 4));
    assert_eq!(objects[0]["output"], json!("one\n"));
}

#[test]
fn shell_at_a_terminal_runs_commands_and_survives_ctrl_c() {
    let world = World::new();
    let mut command = Command::new("script");
    command.args([
        "-qec",
        &format!("{} shell --task s", crate::support::EXOSHELL),
        "/dev/null",
    ]);
    world.dress(&mut command);
    command.env("TERM", "dumb");
    let ran = Program::start(command, b"cd /usr\necho at $PWD\n\x04").finish();
    assert!(ran.text().contains("at /usr"), "{}", ran.text());
}

#[test]
fn completions_are_understood_by_their_shells() {
    let world = World::bare("exo");
    for shell in ["bash", "zsh", "fish"] {
        let script = world.exoshell(["completions", shell]);
        assert_eq!(script.code(), 0);
        for word in ["run", "places", "completions"] {
            assert!(script.text().contains(word), "{shell}");
        }
        let file = world.root().join(format!("completions.{shell}"));
        fs::write(&file, &script.out).unwrap();
        let mut check = Command::new(shell);
        check.arg("-n").arg(&file);
        world.dress(&mut check);
        let checked = Program::start(check, b"").finish();
        assert_eq!(
            (checked.code(), checked.talk()),
            (0, String::new()),
            "{shell}"
        );
    }
}

#[test]
fn the_schemas_are_the_recorded_ones() {
    let world = World::bare("exo");
    for format in ["openai", "anthropic", "mcp"] {
        let ran = world.exoshell(["schema", "--format", format]);
        assert_eq!(ran.code(), 0);
        let path = format!(
            "{}/tests/cli/golden/schema-{format}.json",
            env!("CARGO_MANIFEST_DIR")
        );
        let recorded = fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(
            ran.text(),
            recorded,
            "if that is meant: exoshell schema --format {format} > {path}"
        );
        assert!(!ran.text().contains("force"));
    }
}

#[test]
fn colour_is_for_terminals_without_no_color() {
    let world = World::new();
    let at_terminal = |no_color: Option<&str>| {
        let mut command = Command::new("script");
        command.args([
            "-qec",
            &format!("{} places info nonesuch", crate::support::EXOSHELL),
            "/dev/null",
        ]);
        world.dress(&mut command);
        command.env("TERM", "xterm");
        command.envs(no_color.map(|value| ("NO_COLOR", value)));
        Program::start(command, b"").finish().text()
    };
    assert!(at_terminal(None).contains("\u{1b}[31m"));
    assert!(
        at_terminal(Some("")).contains("\u{1b}[31m"),
        "an empty NO_COLOR counts as unset"
    );
    assert!(!at_terminal(Some("1")).contains('\u{1b}'));
    let piped = world.exoshell(["places", "info", "nonesuch"]);
    assert!(!piped.talk().contains('\u{1b}'));
}

#[test]
fn config_is_written_once_shown_with_sources_and_layered() {
    let world = World::new().with_variable("TERMINAL_TIMEOUT", "7");
    let path = world.exoshell(["config", "path"]).text();
    assert_eq!(
        path.trim_end(),
        world.home.join("config.toml").to_str().unwrap()
    );
    assert_eq!(world.exoshell(["config", "init"]).code(), 0);
    let before = fs::read_to_string(path.trim_end()).unwrap();
    let again = world.exoshell(["config", "init"]);
    assert_eq!(again.code(), 125);
    assert!(again.talk().contains("exists already"), "{}", again.talk());
    assert_eq!(fs::read_to_string(path.trim_end()).unwrap(), before);
    // The template changes nothing; what is written in the file goes before the defaults, the
    // environment before the file.
    fs::write(path.trim_end(), format!("{before}\n")).unwrap();
    assert_eq!(world.exoshell(["run", "echo hi"]).text(), "hi\n");
    fs::write(
        path.trim_end(),
        "[terminal]\ntimeout_seconds = 5\nkill_grace_seconds = 1\n",
    )
    .unwrap();
    let show = world.json(["config", "show", "--json"]);
    let find = |key: &str| {
        let list = show["settings"].as_array().unwrap();
        let setting = list.iter().find(|setting| setting["key"] == key).unwrap();
        (setting["value"].to_string(), setting["source"].to_string())
    };
    assert!(
        find("terminal.timeout_seconds").0.contains('7')
            && find("terminal.timeout_seconds")
                .1
                .contains("TERMINAL_TIMEOUT")
    );
    assert!(
        find("terminal.kill_grace_seconds").0.contains('1')
            && find("terminal.kill_grace_seconds")
                .1
                .contains("config.toml")
    );
    assert!(
        find("terminal.max_timeout_seconds").1.contains("default"),
        "{:?}",
        find("terminal.max_timeout_seconds")
    );
}

#[test]
fn places_are_listed_described_and_removed() {
    let world = World::new();
    let none = world.exoshell(["places", "ls"]);
    assert_eq!((none.code(), none.text().as_str()), (0, ""));
    assert_eq!(world.processes(), [], "a listing starts nothing");
    world.task("a b/../ü", "cd /usr").printed("");
    let info = world.json(["places", "info", "a b/../ü", "--json"]);
    assert_eq!(
        (&info["task"], &info["cwd"], &info["session"]),
        (&json!("a b/../ü"), &json!("/usr"), &json!(true))
    );
    assert_eq!(world.exoshell(["places", "info", "nonesuch"]).code(), 125);
    let gone = world.exoshell(["places", "rm", "nonesuch"]);
    assert_eq!(gone.code(), 1);
    assert!(
        gone.talk().contains("no place of task `nonesuch`"),
        "{}",
        gone.talk()
    );
    let gone = world.exoshell(["places", "rm", "nonesuch", "--json"]);
    let answer: Value = serde_json::from_slice(&gone.out).unwrap();
    assert_eq!((gone.code(), &answer["error_kind"]), (1, &json!("usage")));
    // One that is there is removed all the same.
    let both = world.exoshell(["places", "rm", "nonesuch", "a b/../ü", "--json"]);
    let answer: Value = serde_json::from_slice(&both.out).unwrap();
    assert_eq!(
        (both.code(), &answer["removed"], &answer["unknown"]),
        (
            1,
            &json!(["a b/../ü"]),
            &json!(["no place of task `nonesuch`"])
        )
    );
    assert_eq!(world.exoshell(["places", "rm", "a b/../ü"]).code(), 1);
    let answer = world.task("a b/../ü", "pwd");
    answer.printed(&format!("{}\n", world.work.display()));
    assert_eq!(answer.hint(), "", "a removed place is no lost state");
    assert_eq!(world.exoshell(["places", "rm", "--all"]).code(), 0);
    assert_eq!(world.exoshell(["places", "rm", "--all"]).code(), 0);
}

#[test]
fn batch_mode_gives_each_task_a_directory_that_goes_with_it() {
    let world = World::new().with_variable("EXOSHELL_BATCH", "1");
    let dir = |task: &str| world.task(task, "pwd").output().trim_end().to_owned();
    let [a, b] = ["one", "../two"].map(dir);
    assert_ne!(a, b);
    assert_eq!(dir("one"), a, "it stays");
    let name = a.rsplit('/').next().unwrap();
    let tag = name.strip_prefix("exoshell-one-").unwrap();
    assert!(
        tag.len() == 8 && tag.chars().all(|c| c.is_ascii_hexdigit()),
        "{name}"
    );
    assert_eq!(std::path::Path::new(&b).parent().unwrap(), world.work);
    world
        .task("one", "echo x > file; mkdir -p d/e; ln -s /usr link")
        .printed("");
    assert_eq!(world.exoshell(["places", "rm", "one"]).code(), 0);
    assert!(!std::path::Path::new(&a).exists() && std::path::Path::new(&b).exists());
    assert!(std::path::Path::new("/usr/bin").exists());
    assert_eq!(world.exoshell(["places", "rm", "--all"]).code(), 0);
    assert_eq!(fs::read_dir(&world.work).unwrap().count(), 0);
}

#[test]
fn a_benign_exit_code_is_explained() {
    let world = World::new();
    let answer = world.terminal("grep nothing /etc/passwd");
    assert_eq!(answer.code(), 1);
    assert!(answer.hint().contains("no"), "{}", answer.0);
    let answer = world.terminal("echo a > a; echo b > b; diff a b >/dev/null");
    assert!(answer.hint().contains("differ"), "{}", answer.0);
}

#[test]
fn the_call_without_a_task_is_the_task_default_and_the_flag_wins() {
    let world = World::new();
    world.terminal("export A=default").printed("");
    world.task("default", "echo $A").printed("default\n");
    let ran = world.exoshell([
        "call",
        "--task",
        "flag",
        "terminal",
        "{\"command\":\"export A=flag\",\"task_id\":\"other\"}",
    ]);
    assert_eq!(ran.code(), 0);
    world.task("flag", "echo $A").printed("flag\n");
    world.task("other", "echo ${A-unset}").printed("unset\n");
}

#[test]
fn a_failed_command_is_still_a_call_that_worked() {
    let world = World::new();
    let (answer, code) = world.call_with_code(&json!({"command": "exit 9"}));
    assert_eq!((answer.code(), code, answer.kind()), (9, 0, ""));
    assert!(answer.0["error"].is_null(), "{}", answer.0);
    for field in [
        "output",
        "exit_code",
        "error",
        "cwd",
        "duration_ms",
        "timings",
    ] {
        assert!(answer.0.get(field).is_some(), "{field}");
    }
}

#[test]
fn a_backend_that_nobody_configured_is_no_fault_unless_it_is_in_use() {
    let world = World::new();
    for backend in ["ssh", "command"] {
        let doctor = world.exoshell(["doctor", "--backend", backend]);
        let text = doctor.text();
        assert_eq!(doctor.code(), 0, "{text}");
        assert!(
            text.starts_with(&format!("{backend}: not configured\n")),
            "{text}"
        );
        assert!(!text.contains("broken"), "{text}");
        let doctor = world.json(["doctor", "--backend", backend, "--json"]);
        let report = &doctor["backends"][0];
        assert_eq!(
            (
                &report["configured"],
                &report["works"],
                &report["checks"][0]["outcome"]
            ),
            (&json!(false), &json!(false), &json!("not_configured")),
            "{doctor}"
        );
    }
    let world = world.with_variable("TERMINAL_ENV", "ssh");
    let doctor = world.exoshell(["doctor", "--backend", "ssh"]);
    assert_eq!(doctor.code(), 125, "{}", doctor.text());
}
