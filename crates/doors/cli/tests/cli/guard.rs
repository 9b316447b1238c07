//! The guard in front of every door: what needs a yes does not run without one.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Answer, EXOSHELL, Program, World, wait_until};

/// A world with the guard as it is by default, and a file that dangerous commands would remove.
struct Guarded {
    world: World,
}

impl Guarded {
    fn new() -> Self {
        Self::with_config("")
    }

    fn with_config(text: &str) -> Self {
        // A test's own settings come after those of the harness; empty counts as unset.
        let world = World::new()
            .with_variable("EXOSHELL_APPROVAL", "")
            .with_config(text);
        fs::create_dir(world.work.join("build")).unwrap();
        Self { world }
    }

    fn is_unharmed(&self) -> bool {
        self.world.work.join("build").exists()
    }

    fn with_stdin(&self, words: &[&str], stdin: &str) -> crate::support::Ran {
        Program::start(self.world.command(words), stdin.as_bytes()).finish()
    }

    fn question(&self) -> Value {
        let report = self.world.json(["approvals", "ls", "--json"]);
        report["questions"]
            .as_array()
            .unwrap()
            .last()
            .unwrap()
            .clone()
    }
}

const DELETE: &str = "rm -rf build";

/// Every way to start something or to write to it, each with its stdin.
fn routes(bash: &str, on_terminal: &str) -> Vec<(Vec<String>, &'static str)> {
    let word = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
    let call = |tool: &str, arguments: &Value| word(&["call", tool, &arguments.to_string()]);
    let mut routes = Vec::new();
    for words in [
        &["run", DELETE] as &[&str],
        &["run", "--task", "t", DELETE],
        &["run", "--pty", DELETE],
        &["run", "--json", DELETE],
        &["run", "--background", DELETE],
        &["run", "--background", "--pty", DELETE],
        &["run", "--env", "LD_PRELOAD=/tmp/x.so", "ls"],
    ] {
        routes.push((word(words), ""));
    }
    for words in [
        &["run", "--stdin", "bash"] as &[&str],
        &["run", "--json", "--stdin", "bash"],
        &["run", "--pty", "--stdin", "bash"],
        &["shell"],
        &["shell", "--json"],
    ] {
        routes.push((word(words), DELETE));
    }
    for arguments in [
        json!({"command": DELETE}),
        json!({"command": DELETE, "pty": true}),
        json!({"command": DELETE, "background": true}),
        json!({"command": DELETE, "background": true, "pty": true}),
        json!({"command": "bash", "stdin": DELETE}),
        json!({"command": "bash", "stdin": DELETE, "background": true}),
        json!({"command": "ls", "env": {"BASH_ENV": "/tmp/x"}}),
    ] {
        routes.push((call("terminal", &arguments), ""));
    }
    for arguments in [
        json!({"action": "submit", "session_id": bash, "data": DELETE}),
        json!({"action": "write", "session_id": bash, "data": "rm -rf build\n"}),
        json!({"action": "write", "session_id": bash, "data": "rm -rf bui"}),
        json!({"action": "submit", "session_id": on_terminal, "data": DELETE}),
    ] {
        routes.push((call("process", &arguments), ""));
    }
    routes
}

#[test]
fn a3_every_route_passes_the_guard_and_without_an_approver_each_is_refused() {
    let guarded = Guarded::new();
    let world = &guarded.world;
    let plain = world.json([
        "call",
        "terminal",
        r#"{"command":"bash","background":true}"#,
    ]);
    let bash = plain["session_id"].as_str().unwrap().to_owned();
    let terminal = json!({"command": "bash", "background": true, "pty": true});
    let terminal = world.json(["call", "terminal", &terminal.to_string()]);
    let on_terminal = terminal["session_id"].as_str().unwrap().to_owned();
    for (words, stdin) in routes(&bash, &on_terminal) {
        let shown: Vec<&str> = words.iter().map(String::as_str).collect();
        let ran = guarded.with_stdin(&shown, stdin);
        let said = format!("{}{}", ran.text(), ran.talk());
        assert!(
            said.contains("needs the user's approval"),
            "{shown:?}: {said}"
        );
        assert_eq!(ran.code(), 77, "{shown:?}: {said}");
        assert!(guarded.is_unharmed(), "{shown:?}");
    }
    world.json(["places", "rm", "--all", "--json"]);
}

/// The calls that start something in a place, or write to it, and the only files that may make
/// them: behind the gate, or with files that the user configured.
#[test]
fn a3_no_file_starts_or_writes_anything_without_the_gate() {
    const CALLS: &[&str] = &[
        "Running::start(",
        ".run(PlainCommand",
        "link.start(",
        ".write_process(",
        ".write_file(",
        ".put_file(",
        ".launch(",
    ];
    let sources = concat!(env!("CARGO_MANIFEST_DIR"), "/../../runtime/src");
    let mut found = Vec::new();
    let mut folders = vec![std::path::PathBuf::from(sources)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(sources).unwrap().display().to_string();
            let code = path.extension().is_some_and(|kind| kind == "rs");
            if !code || name.ends_with("_tests.rs") || name.ends_with("testing.rs") {
                continue;
            }
            let text: String = fs::read_to_string(&path)
                .unwrap()
                .split_whitespace()
                .collect();
            for call in CALLS.iter().filter(|call| text.contains(*call)) {
                found.push(format!("{name} {call}"));
            }
        }
    }
    found.sort();
    // `execute`, `start_process` and `write_to_process` pass the gate first.
    let gated = [
        "processes.rs .write_process(",
        "processes/start.rs .write_process(",
        "processes/start.rs link.start(",
        "run/start.rs .run(PlainCommand",
        "run/start.rs Running::start(",
        // The files that the user's own configuration names, and nothing that a model says.
        "sync/push.rs .put_file(",
    ];
    assert_eq!(
        found, gated,
        "a new route needs the gate, and a line in the test above"
    );
}

#[test]
fn a_denied_call_tells_the_model_what_to_do_and_how_to_loosen_things_is_not_said() {
    let guarded = Guarded::new();
    let (answer, code) = guarded.world.call_with_code(&json!({"command": DELETE}));
    assert_eq!(code, 77);
    let fields = &answer.0;
    assert_eq!(fields["status"], "approval_required");
    assert_eq!(fields["error_kind"], "denied");
    assert_eq!(fields["command"], DELETE);
    assert_eq!(fields["pattern_key"], "recursive-delete:workspace");
    assert!(fields["approval_id"].as_str().unwrap().starts_with("ap_"));
    assert!(
        fields["description"]
            .as_str()
            .unwrap()
            .contains("deletes a whole directory")
    );
    let text = fields.to_string();
    assert!(text.contains("Ask the user"), "{text}");
    for word in [
        "EXOSHELL_APPROVAL",
        "approval.mode",
        "approvals allow",
        "auto",
    ] {
        assert!(!text.contains(word), "{text}");
    }
    let (blocked, code) = guarded
        .world
        .call_with_code(&json!({"command": "rm -rf /"}));
    assert_eq!(code, 77);
    assert_eq!(blocked.0["status"], "blocked");
    assert!(
        blocked.0["error"]
            .as_str()
            .unwrap()
            .contains("Do not try it again")
    );
}

#[test]
fn an_approval_from_another_terminal_is_used_once() {
    let guarded = Guarded::new();
    let world = &guarded.world;
    world.call(&json!({"command": DELETE}));
    let id = guarded.question()["id"].as_str().unwrap().to_owned();
    assert_eq!(world.exoshell(["approvals", "allow", &id]).code(), 0);
    let other = world.call(&json!({"command": "rm -rf build/x"}));
    assert_eq!(other.0["status"], "approval_required");
    let allowed = world.call(&json!({"command": DELETE}));
    assert_eq!(allowed.0["exit_code"], 0, "{}", allowed.0);
    assert!(!guarded.is_unharmed());
    let again = world.call(&json!({"command": DELETE}));
    assert_eq!(again.0["status"], "approval_required");
    // A no holds, and says so.
    let id = again.0["approval_id"].as_str().unwrap();
    assert_eq!(world.exoshell(["approvals", "deny", id]).code(), 0);
    let denied = world.call(&json!({"command": DELETE}));
    assert_eq!(denied.0["status"], "blocked");
    assert_ne!(world.exoshell(["approvals", "allow", id]).code(), 0);
    assert_ne!(world.exoshell(["approvals", "allow", "ap_none"]).code(), 0);
}

#[test]
fn always_survives_a_restart_and_can_be_taken_back() {
    let guarded =
        Guarded::with_config("# my settings\n[terminal]\ntimeout_seconds = 50 # enough\n");
    let world = &guarded.world;
    world.call(&json!({"command": DELETE}));
    let id = guarded.question()["id"].as_str().unwrap().to_owned();
    assert_eq!(
        world
            .exoshell(["approvals", "allow", "--always", &id])
            .code(),
        0
    );
    let text = fs::read_to_string(world.home.join("config.toml")).unwrap();
    assert!(
        text.starts_with("# my settings\n[terminal]\ntimeout_seconds = 50 # enough\n")
            && text.contains("recursive-delete:workspace"),
        "{text}"
    );
    world.json(["places", "rm", "--all", "--json"]);
    let later = world.call(&json!({"command": "rm -rf dist", "task_id": "another"}));
    assert_eq!(later.0["exit_code"], 0, "{}", later.0);
    let key = "recursive-delete:workspace";
    assert_eq!(world.exoshell(["approvals", "revoke", key]).code(), 0);
    let asked = world.call(&json!({"command": "rm -rf dist", "task_id": "another"}));
    assert_eq!(asked.0["status"], "approval_required");
    assert_eq!(world.exoshell(["approvals", "revoke", "--all"]).code(), 1);
}

#[test]
fn a_command_that_exoshell_runs_cannot_loosen_anything() {
    let guarded = Guarded::with_config("[guard]\nallow = [\"exoshell\"]\n");
    let world = &guarded.world;
    world.call(&json!({"command": DELETE}));
    let id = guarded.question()["id"].as_str().unwrap().to_owned();
    let shell = json!({"command": "bash", "background": true, "pty": true});
    let shell = world.json(["call", "terminal", &shell.to_string()]);
    fs::write(
        world.work.join("process"),
        shell["session_id"].as_str().unwrap(),
    )
    .unwrap();
    let fake = world.root().join("fake");
    fs::create_dir(&fake).unwrap();
    fs::write(fake.join("config.toml"), "[approval]\nmode = \"auto\"\n").unwrap();
    let home = world.home.display().to_string();
    // What the guard cannot see: a program of the model's that calls ours.
    let script = world.work.join("script.sh");
    let inside = |body: &str| {
        fs::write(&script, format!("#!/bin/bash\n{body}\n")).unwrap();
        world.terminal("bash ./script.sh").0["output"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    for attempt in [
        format!("EXOSHELL_HOME={home} {EXOSHELL} approvals allow --always {id}"),
        format!("EXOSHELL_HOME={home} setsid {EXOSHELL} approvals allow {id}"),
        format!("EXOSHELL_HOME={home} EXOSHELL_APPROVAL=auto {EXOSHELL} run '{DELETE}'"),
        format!("EXOSHELL_HOME={} {EXOSHELL} run '{DELETE}'", fake.display()),
        format!("EXOSHELL_HOME={home} {EXOSHELL} approvals revoke --all"),
        // At a terminal the model would be the one to answer.
        format!(
            "echo o | EXOSHELL_HOME={home} script -qec \"{EXOSHELL} run '{DELETE}'\" /dev/null"
        ),
        format!(
            "(sleep 1; echo '{DELETE}') | EXOSHELL_HOME={home} script -qec \"{EXOSHELL} attach \
             $(cat process)\" /dev/null"
        ),
        // Out of sight of its parents.
        format!("EXOSHELL_HOME={home} unshare -pf --mount-proc {EXOSHELL} approvals allow {id}"),
        // Away from its parents, but not from the guest.
        format!(
            "(EXOSHELL_HOME={home} setsid {EXOSHELL} approvals allow {id} > out 2>&1 &); \
             for i in $(seq 200); do grep -q . out && break; sleep 0.05; done; cat out"
        ),
    ] {
        let said = inside(&attempt);
        assert!(
            said.contains("only the user") || said.contains("needs the user's approval"),
            "{attempt}: {said}"
        );
        assert!(guarded.is_unharmed(), "{attempt}");
    }
    assert_eq!(guarded.question()["state"], "pending");
    let _ = Command::new(EXOSHELL)
        .args(["places", "rm", "--all"])
        .env("EXOSHELL_HOME", &fake)
        .output();
}

#[test]
fn commands_that_touch_our_controls_are_asked_about() {
    let guarded = Guarded::with_config("[approval]\nmode = \"workspace\"\n");
    let world = &guarded.world;
    let home = world.home.display();
    for command in [
        format!("echo '[approval]' >> {home}/config.toml"),
        format!("rm {home}/audit/audit.jsonl"),
        format!("sed -i s/ask/auto/ {home}/config.toml"),
        "exoshell approvals allow ap_1".to_owned(),
    ] {
        let answer = world.terminal(&command);
        assert_eq!(
            answer.0["status"], "approval_required",
            "{command}: {}",
            answer.0
        );
    }
}

#[test]
fn the_audit_tells_what_was_done_and_a_changed_line_is_found() {
    let guarded = Guarded::new();
    let world = &guarded.world;
    world.terminal("echo one; exit 3");
    world.terminal(DELETE);
    world.exoshell(["run", "kill -TERM $$"]);
    let ran = world.exoshell(["audit", "show", "--json"]);
    let rows: Vec<Value> = ran
        .text()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(rows.len(), 3, "{rows:?}");
    assert_eq!(rows[0]["end"]["exit_code"], 3);
    assert_eq!(rows[0]["end"]["bytes_out"], 4);
    assert_eq!(rows[1]["end"]["ended"], "denied");
    assert_eq!(rows[1]["start"]["verdict"], "ask");
    assert_eq!(rows[2]["end"]["signal"], 15);
    assert_eq!(world.exoshell(["audit", "verify"]).code(), 0);
    let file = world.home.join("audit/audit.jsonl");
    let whole = fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let without = |at: usize| {
        let rest: Vec<&str> = lines
            .iter()
            .enumerate()
            .filter(|(i, _)| *i != at)
            .map(|(_, l)| *l)
            .collect();
        rest.join("\n") + "\n"
    };
    let mut swapped = lines.clone();
    swapped.swap(1, 2);
    for (what, text) in [
        ("altered", whole.replacen("echo one", "echo two", 1)),
        ("removed", without(2)),
        ("removed at the end", without(lines.len() - 1)),
        ("removed at the start", without(0)),
        ("reordered", swapped.join("\n") + "\n"),
    ] {
        fs::write(&file, text).unwrap();
        assert_eq!(world.exoshell(["audit", "verify"]).code(), 1, "{what}");
    }
    fs::write(&file, &whole).unwrap();
    assert_eq!(world.exoshell(["audit", "verify"]).code(), 0);
}

#[test]
fn check_judges_without_running() {
    let guarded = Guarded::new();
    let world = &guarded.world;
    for (command, code) in [("ls", 0), (DELETE, 76), ("rm -rf /", 77)] {
        assert_eq!(world.exoshell(["check", command]).code(), code, "{command}");
    }
    let lines = "{\"id\": 7, \"command\": \"rm -rf /\"}\n\"ls\"\nnonsense\n{\"x\":1}\n";
    let ran = guarded.with_stdin(&["check", "--jsonl"], lines);
    let answers: Vec<Value> = ran
        .text()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(answers[0]["verdict"], "block");
    assert_eq!(answers[0]["id"], 7);
    assert_eq!(answers[1]["verdict"], "allow");
    assert_eq!(answers[2]["line"], 3);
    assert!(answers[3]["error"].is_string());
    assert_eq!(ran.code(), 0);
    assert!(guarded.is_unharmed());
}

/// A tmux of its own with one program in it.
struct Tmux<'a> {
    world: &'a World,
    socket: String,
}

impl<'a> Tmux<'a> {
    fn new(world: &'a World) -> Self {
        let socket = world.root().join("tmux").display().to_string();
        let tmux = Self { world, socket };
        tmux.tmux(&[
            "new-session",
            "-d",
            "-x",
            "100",
            "-y",
            "200",
            "bash --norc --noprofile",
        ]);
        tmux
    }

    fn tmux(&self, words: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command
            .args(["-S", &self.socket, "-f", "/dev/null"])
            .args(words);
        self.world.dress(&mut command);
        command.env("TERM", "xterm-256color").env("PS1", "$ ");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn screen(&self) -> String {
        self.tmux(&["capture-pane", "-p"])
    }

    fn keys(&self, text: &str) {
        self.tmux(&["send-keys", "-l", text]);
        self.tmux(&["send-keys", "Enter"]);
    }

    /// Waits until a line of the screen begins with this, apart from spaces, and returns it.
    fn line(&self, beginning: &str) -> String {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let screen = self.screen();
            if let Some(line) = screen
                .lines()
                .find(|line| line.trim_start().starts_with(beginning))
            {
                return line.to_owned();
            }
            assert!(
                Instant::now() < deadline,
                "no line `{beginning}` in:\n{screen}"
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn a_person_at_a_terminal_is_asked_and_each_answer_means_what_it_says() {
    let guarded = Guarded::with_config("[approval]\ntimeout_seconds = 60\n");
    let world = &guarded.world;
    let tmux = Tmux::new(world);
    let run = |number: usize, command: &str, answer: Option<&str>| {
        let command = format!("{command} # {number}");
        tmux.keys(&format!(
            "{EXOSHELL} run --task t '{command}'; echo done-{number} $?"
        ));
        if let Some(answer) = answer {
            tmux.line(&format!("runs     {command}"));
            let mut screen = String::new();
            wait_until(Duration::from_secs(60), "the question is complete", || {
                screen = tmux.screen();
                screen.trim_end().ends_with("(60 s, then deny) >")
            });
            for part in [
                "exoshell: this needs your approval",
                "because  It deletes a whole directory",
                "[o]nce  [s]ession  [a]lways  [d]eny  (60 s, then deny) >",
            ] {
                assert!(screen.contains(part), "{screen}");
            }
            if answer == "C-c" {
                tmux.tmux(&["send-keys", "C-c"]);
            } else {
                tmux.keys(answer);
            }
        }
        let code = tmux.line(&format!("done-{number} "));
        code.rsplit(' ').next().unwrap().to_owned()
    };
    assert_eq!(run(1, DELETE, Some("d")), "77");
    assert_eq!(run(2, DELETE, Some("")), "77");
    assert_eq!(run(3, DELETE, Some("yes please")), "77");
    assert_eq!(run(4, DELETE, Some("C-c")), "77");
    assert!(guarded.is_unharmed());
    assert_eq!(run(5, DELETE, Some("o")), "0");
    assert!(!guarded.is_unharmed());
    assert_eq!(run(6, "rm -rf a", Some("s")), "0");
    assert_eq!(run(7, "rm -rf b", None), "0");
    world.json(["places", "rm", "t", "--json"]);
    assert_eq!(run(8, "rm -rf c", Some("a")), "0");
    world.json(["places", "rm", "t", "--json"]);
    assert_eq!(run(9, "rm -rf d", None), "0");
}

#[test]
fn a_person_who_does_not_answer_in_time_has_said_no() {
    let guarded = Guarded::with_config("[approval]\ntimeout_seconds = 1\n");
    let tmux = Tmux::new(&guarded.world);
    tmux.keys(&format!("{EXOSHELL} run '{DELETE}'; echo done $?"));
    tmux.line("exoshell: no answer, so no");
    tmux.line("done 77");
    assert!(guarded.is_unharmed());
    // What was typed before the question is no answer to it.
    tmux.keys(&format!(
        "{EXOSHELL} run 'until [ -e typed ]; do sleep 0.05; done'; {EXOSHELL} run \
         '{DELETE}'; echo over $?"
    ));
    tmux.keys("o");
    fs::write(guarded.world.work.join("typed"), "").unwrap();
    tmux.line("over 77");
    assert!(guarded.is_unharmed());
}

#[test]
fn what_a_program_is_told_is_not_kept() {
    let guarded = Guarded::new();
    let world = &guarded.world;
    let start = json!({"command": "read -rs word; echo \"${#word}\"", "background": true});
    let id = world.json(["call", "terminal", &start.to_string()])["session_id"].clone();
    let submit = json!({"action": "submit", "session_id": id, "data": "open-sesame"});
    let answer = world.json(["call", "process", &submit.to_string()]);
    assert!(answer["error"].is_null(), "{answer}");
    let shown = world.exoshell(["audit", "show", "--json"]).text();
    assert!(shown.contains("(12 bytes of input)"), "{shown}");
    assert!(!shown.contains("open-sesame"), "{shown}");
}

#[test]
fn stdin_of_a_command_is_not_taken_for_an_answer() {
    let guarded = Guarded::new();
    let ran = guarded.with_stdin(&["run", "--stdin", DELETE], "o\na\ny\n");
    assert_eq!(ran.code(), 77);
    assert!(guarded.is_unharmed());
    let answer = Answer::parse(
        &guarded
            .with_stdin(
                &["call", "terminal", "-"],
                &json!({"command": DELETE}).to_string(),
            )
            .out,
    );
    assert_eq!(answer.0["status"], "approval_required");
}
