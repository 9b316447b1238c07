//! Programs on a terminal, driven by a model and by a person.

use std::fs;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{EXOSHELL, Program, World, descriptors, quoted, wait_until};

#[test]
fn p1_tty_names_a_device_in_the_foreground_and_in_the_background() {
    let world = World::new();
    let device = |text: &str| assert!(text.trim().starts_with("/dev/pts/"), "{text:?}");
    device(world.call(&json!({"command": "tty", "pty": true})).output());
    device(&world.exoshell(["run", "--pty", "tty"]).text());
    let id = world.begin("tty; stty size", &json!({"pty": true}));
    let answer = world.wait_for_end(&id);
    device(answer.output());
    assert!(answer.output().ends_with("\n30 120\n"), "{}", answer.0);
    let ran = world.exoshell(["run", "--background", "--pty", "tty"]);
    let id = ran.text().trim().to_owned();
    device(world.wait_for_end(&id).output());
    // Without it there is none.
    let answer = world.terminal("tty");
    assert_eq!((answer.output(), answer.code()), ("not a tty\n", 1));
    let id = world.begin("tty", &json!({}));
    let answer = world.wait_for_end(&id);
    assert_eq!((answer.output(), answer.code()), ("not a tty\n", 1));
}

/// Writes to a process and asserts that it could be done.
#[track_caller]
fn send(world: &World, action: &str, id: &str, more: &Value) {
    let answer = world.process(action, id, more);
    assert_eq!(answer.error(), "", "{}", answer.0);
}

#[test]
fn p2_a_python_prompt_takes_lines_keys_and_the_end_of_input() {
    let world = World::new();
    let id = world.begin("python3 -q -i", &json!({"pty": true}));
    world.wait_for_screen(&id, |screen| screen.starts_with(">>>"));
    send(&world, "submit", &id, &json!({"data": "6*7"}));
    world.wait_for_screen(&id, |screen| screen.contains("\n42\n>>>"));
    send(
        &world,
        "write",
        &id,
        &json!({"data": "while True: pass\n\n"}),
    );
    send(&world, "write", &id, &json!({"keys": ["ctrl-c"]}));
    world.wait_for_screen(&id, |screen| screen.contains("KeyboardInterrupt"));
    send(
        &world,
        "submit",
        &id,
        &json!({"data": "import sys; sys.stdin.read() and sys.exit(9)"}),
    );
    send(&world, "submit", &id, &json!({"data": "text"}));
    send(&world, "close", &id, &json!({}));
    let ended = world.wait_for_end(&id);
    assert_eq!((ended.status(), ended.code()), ("exited", 9), "{}", ended.0);
}

#[test]
fn p2_vim_is_drawn_edited_in_and_left() {
    let world = World::new();
    let file = world.work.join("note.txt");
    fs::write(&file, "first\nsecond 漢字\n").unwrap();
    let id = world.begin(
        "vi -N -u NONE -i NONE -n note.txt",
        &json!({"pty": true, "env": {"LC_ALL": "C.UTF-8"}}),
    );
    let drawn = world.wait_for_screen(&id, |screen| screen.contains("second 漢字"));
    assert_eq!(drawn.0["alternate_screen"], true, "{}", drawn.0);
    assert!(!drawn.0["screen"].as_str().unwrap().contains('\u{1b}'));
    send(&world, "write", &id, &json!({"keys": ["down", "down"]}));
    send(&world, "write", &id, &json!({"data": "othird"}));
    send(&world, "submit", &id, &json!({"data": ""}));
    send(
        &world,
        "write",
        &id,
        &json!({"data": "fourth", "keys": ["escape"]}),
    );
    world.wait_for_screen(&id, |screen| screen.contains("third\nfourth"));
    send(&world, "resize", &id, &json!({"cols": 60, "rows": 12}));
    let small = world.wait_for_screen(&id, |screen| screen.contains("fourth"));
    assert!(
        small.0["screen"].as_str().unwrap().lines().count() <= 12,
        "{}",
        small.0
    );
    send(&world, "submit", &id, &json!({"data": ":wq"}));
    let ended = world.wait_for_end(&id);
    assert_eq!(ended.code(), 0, "{}", ended.0);
    assert_eq!(
        fs::read_to_string(&file).unwrap(),
        "first\nsecond 漢字\nthird\nfourth\n"
    );
}

#[test]
fn p2_pagers_monitors_and_prompts_show_what_a_person_would_see() {
    let world = World::new();
    let pager = world.begin("seq 1 500 | less", &json!({"pty": true}));
    let top = world.begin("top -d 1", &json!({"pty": true}));
    let prompt = world.begin(
        "read -r -p 'name? ' name; read -r -p 'sure? ' sure; echo \"[$name][$sure]\"; cat; echo end",
        &json!({"pty": true}),
    );
    let first = world.wait_for_screen(&pager, |screen| screen.contains("\n29\n"));
    assert!(
        first.0["screen"].as_str().unwrap().starts_with("1\n2\n"),
        "{}",
        first.0
    );
    send(&world, "write", &pager, &json!({"data": "G"}));
    world.wait_for_screen(&pager, |screen| {
        screen.contains("\n500\n") && screen.contains("(END)")
    });
    send(&world, "submit", &pager, &json!({"data": "/^47"}));
    send(&world, "write", &pager, &json!({"data": "g"}));
    world.wait_for_screen(&pager, |screen| screen.starts_with("1\n2\n"));
    send(&world, "write", &pager, &json!({"data": "q"}));
    assert_eq!(world.wait_for_end(&pager).code(), 0);

    world.wait_for_screen(&top, |screen| {
        screen.contains("PID") && screen.contains("top - ")
    });
    send(&world, "write", &top, &json!({"keys": ["q"]}));
    assert_eq!(world.wait_for_end(&top).code(), 0);

    world.wait_for_line(&prompt, r"name\? $");
    send(&world, "submit", &prompt, &json!({"data": "Ada"}));
    world.wait_for_line(&prompt, r"sure\? $");
    send(
        &world,
        "write",
        &prompt,
        &json!({"data": "yes", "keys": ["enter"]}),
    );
    world.wait_for_line(&prompt, r"\[Ada\]\[yes\]");
    send(&world, "write", &prompt, &json!({"keys": ["eof"]}));
    let ended = world.wait_for_end(&prompt);
    assert_eq!(ended.code(), 0, "{}", ended.0);
    assert!(world.logs(&prompt).ends_with("end\r\n"));
}

#[test]
fn p3_terminals_that_ended_however_they_did_are_all_given_back() {
    let world = World::new();
    let warm = world.begin("true", &json!({"pty": true}));
    world.wait_for_end(&warm);
    let guest = world.guest_pid();
    let terminals = || {
        let held = fs::read_dir(format!("/proc/{guest}/fd")).unwrap().flatten();
        held.filter_map(|entry| fs::read_link(entry.path()).ok())
            .filter(|path| path.to_string_lossy().contains("pt"))
            .count()
    };
    assert_eq!(terminals(), 0);
    let before = descriptors(guest);
    for _ in 0..12 {
        let ids = [
            "exit 3",
            "exec sleep 500",
            "kill -SEGV $$",
            "exec sleep 500",
        ]
        .map(|command| world.begin(command, &json!({"pty": true})));
        world.process("kill", &ids[1], &json!({}));
        world.process("signal", &ids[3], &json!({"signal": "KILL"}));
        for id in &ids {
            world.wait_for_end(id);
            for (action, more) in [
                ("write", json!({"data": "x"})),
                ("resize", json!({"cols": 80, "rows": 24})),
            ] {
                let answer = world.process(action, id, &more);
                assert!(
                    answer.error().contains("has ended"),
                    "{action}: {}",
                    answer.0
                );
            }
        }
    }
    wait_until(Duration::from_secs(10), "all are given back", || {
        terminals() == 0 && descriptors(guest) <= before + 4
    });
}

/// A terminal multiplexer of a test's own, for somebody to sit at.
struct Tmux<'a> {
    world: &'a World,
    socket: String,
}

impl<'a> Tmux<'a> {
    fn start(world: &'a World) -> Self {
        let socket = world.root().join("tmux").to_str().unwrap().to_owned();
        let tmux = Self { world, socket };
        tmux.run(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "90",
            "-y",
            "20",
            "bash --norc",
        ]);
        tmux.run(&["send-keys", "-l", "PS1='outside$ '"]);
        tmux.run(&["send-keys", "Enter"]);
        tmux.shows(|text| text.lines().last().is_some_and(|line| line == "outside$"));
        tmux
    }

    #[track_caller]
    fn run(&self, arguments: &[&str]) -> String {
        let mut command = Command::new("tmux");
        self.world.dress(&mut command);
        command
            .args(["-S", &self.socket])
            .args(arguments)
            .env("TERM", "xterm-256color")
            .env("LC_ALL", "C.UTF-8");
        let ran = Program::start(command, b"").finish();
        assert_eq!(ran.code(), 0, "{arguments:?}: {}", ran.talk());
        ran.text()
    }

    fn type_line(&self, text: &str) {
        self.run(&["send-keys", "-l", text]);
        self.run(&["send-keys", "Enter"]);
    }

    #[track_caller]
    fn shows(&self, test: impl Fn(&str) -> bool) -> String {
        let mut text = String::new();
        let deadline = std::time::Instant::now() + Duration::from_secs(30);
        loop {
            let pane = self.run(&["capture-pane", "-p"]);
            text.clear();
            text.push_str(pane.trim_end());
            if test(&text) {
                return text;
            }
            assert!(std::time::Instant::now() < deadline, "never shown:\n{text}");
        }
    }

    fn attach(&self, id: &str) {
        self.type_line(&format!("{} attach {id}", quoted(EXOSHELL)));
    }

    fn detach(&self, id: &str) {
        self.run(&["send-keys", "C-]"]);
        let note = format!("detached from {id}");
        self.shows(|text| text.contains(&note) && text.ends_with("outside$"));
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        let _ = Command::new("tmux")
            .args(["-S", &self.socket, "kill-server"])
            .output();
    }
}

#[test]
fn a_person_attaches_types_resizes_detaches_and_comes_back() {
    let world = World::new();
    let id = world.begin("PS1='inside> ' bash --norc -i", &json!({"pty": true}));
    world.wait_for_screen(&id, |screen| screen.contains("inside>"));
    let tmux = Tmux::start(&world);
    tmux.attach(&id);
    tmux.shows(|text| text.ends_with("inside>"));
    tmux.type_line("echo typed-$((40 + 2)); stty size");
    tmux.shows(|text| text.contains("\ntyped-42\n20 90\n"));
    tmux.run(&["resize-window", "-x", "70", "-y", "15"]);
    wait_until(Duration::from_secs(20), "the new size arrives", || {
        tmux.type_line("clear; stty size");
        tmux.shows(|text| text.ends_with("inside>"))
            .starts_with("15 70")
    });
    tmux.detach(&id);
    assert_eq!(world.process("poll", &id, &json!({})).status(), "running");
    // Meanwhile somebody else goes on; whoever comes back sees it.
    send(
        &world,
        "submit",
        &id,
        &json!({"data": "clear; echo mean-$((1 + 1)); printf '\\e[31mred\\e[0m\\n'"}),
    );
    let there = world.wait_for_screen(&id, |screen| screen.contains("mean-2\nred\ninside>"));
    tmux.type_line("clear");
    tmux.attach(&id);
    let seen = tmux.shows(|text| text.ends_with("inside>") && text.contains("red"));
    assert_eq!(seen, there.0["screen"].as_str().unwrap().trim_end());
    tmux.type_line("exit 5");
    tmux.shows(|text| text.contains(&format!("[{id} ended]")));
    tmux.type_line("echo code-$?");
    tmux.shows(|text| text.contains("\ncode-5\n"));
    assert_eq!(world.exoshell(["wait", &id]).code(), 5);
}

#[test]
fn p4_a_secret_that_a_person_types_is_in_no_log_and_no_answer() {
    let world = World::new();
    let id = world.begin(
        "read -rs -p 'password: ' word; echo; echo \"length ${#word}\"; read -r x",
        &json!({"pty": true, "notify_on_complete": true}),
    );
    world.wait_for_line(&id, "password: $");
    let tmux = Tmux::start(&world);
    tmux.attach(&id);
    tmux.shows(|text| text.ends_with("password:"));
    let secret = "hunter2-open-sesame";
    tmux.type_line(secret);
    tmux.shows(|text| text.contains("length 19"));
    tmux.detach(&id);
    drop(tmux);
    let screen = world.process("screen", &id, &json!({})).0.to_string();
    let poll = world.process("poll", &id, &json!({})).0.to_string();
    send(&world, "submit", &id, &json!({}));
    world.wait_for_end(&id);
    let log = world.process("log", &id, &json!({})).0.to_string();
    let events = format!("{:?}", world.events("cli"));
    for text in [screen, poll, log, events, world.logs(&id)] {
        assert!(!text.contains(secret), "{text}");
    }
    let mut grep = Command::new("grep");
    grep.args(["-rl", "--exclude-dir=guest", secret])
        .arg(&world.home);
    assert_eq!(Program::start(grep, b"").finish().text(), "");
}
