//! sudo with a real password-protected user: who gets the password, and who does not.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use exoshell_runtime::config::{Config, Environment, Resolved};
use exoshell_runtime::{Password, Runtime, TerminalRequest, TerminalResult};

use crate::support::{
    Answer, PATH, PATIENCE, Person, Program, block_on, processes_with, quoted, wait_until,
};

const WRONG: &str = "the sudo password was wrong";

#[test]
fn s3_the_password_of_the_environment_reaches_sudo_and_nobody_else() {
    let person = Person::new();
    let set = [("SUDO_PASSWORD", person.password.as_str())];
    let script = "sudo id -u && touch asked && until [ -e go ]; do sleep 0.05; done; \
                  sudo -k; sudo tr '\\0' '\\n' < /proc/self/environ; env; set";
    let program = Program::start(person.command(&set, &["run", script]), b"");
    wait_until(PATIENCE, "sudo has its password", || {
        person.home().join("asked").exists()
    });
    // Only the program that was given it, so the search finds what there is to find.
    assert_eq!(processes_with(&person.password), [program.pid()]);
    assert!(person.files_with(&person.password).is_empty());
    fs::write(person.home().join("go"), "").unwrap();
    let ran = program.finish();
    assert!(ran.text().starts_with("0\n"), "{}", ran.talk());
    assert_eq!(ran.code(), 0, "{}", ran.talk());
    for text in [ran.text(), ran.talk()] {
        assert!(!text.contains(&person.password), "{text}");
    }
    assert_eq!(processes_with(&person.password), [0_u32; 0]);
    assert!(person.files_with(&person.password).is_empty());
}

#[test]
fn sudo_is_found_by_name_by_path_and_in_a_nested_shell() {
    let person = Person::new();
    let set = [("SUDO_PASSWORD", person.password.as_str())];
    for command in [
        "sudo -k; sudo id -u",
        "/usr/bin/sudo -k; /usr/bin/sudo id -u",
        "bash -c 'sudo -k; sudo id -u'",
        "sudo -k; echo x | sudo tee /dev/null >&2; sudo -k; if true; then sudo id -u; fi",
    ] {
        let ran = person.exoshell(&set, &["run", command]);
        assert_eq!(
            (ran.text().as_str(), ran.code()),
            ("0\n", 0),
            "{command}: {}",
            ran.talk()
        );
    }
    // Its stdin is still its own, however much there is.
    let lines = "line\n".repeat(200_000);
    let mut command = person.command(&set, &["run", "--stdin", "sudo -k; sudo wc -l"]);
    command.env("LC_ALL", "C");
    let ran = Program::start(command, lines.as_bytes()).finish();
    assert_eq!(ran.text(), "200000\n", "{}", ran.talk());
}

#[test]
fn s4_a_wrong_password_is_tried_once_and_named() {
    let person = Person::new();
    let set = [("SUDO_PASSWORD", "open barley")];
    let ran = person.exoshell(&set, &["run", "sudo id -u; sudo id -u"]);
    assert_eq!((ran.text().as_str(), ran.code()), ("", 1));
    assert!(ran.talk().contains(WRONG), "{}", ran.talk());
    assert_eq!(
        ran.talk().matches("1 incorrect password attempt").count(),
        1
    );
    assert!(!ran.talk().contains("open barley"));
}

#[test]
fn s1_sudo_that_shall_not_ask_does_not() {
    let person = Person::new();
    let set = [("SUDO_PASSWORD", person.password.as_str())];
    let ran = person.exoshell(&set, &["run", "sudo -n true; env"]);
    assert_eq!(ran.talk(), "sudo: a password is required\n");
    assert!(!ran.text().contains("SUDO_ASKPASS"), "{}", ran.text());
    let ran = person.exoshell(&set, &["run", "echo sudo ls > x; grep sudo x; env"]);
    assert!(ran.text().starts_with("sudo ls\n"));
    assert!(!ran.text().contains("SUDO_ASKPASS"), "{}", ran.text());
    // An empty password is none.
    let ran = person.exoshell(&[("SUDO_PASSWORD", "")], &["run", "sudo id -u; env"]);
    assert!(
        ran.talk().contains("a terminal is required"),
        "{}",
        ran.talk()
    );
    assert!(!ran.text().contains("SUDO_ASKPASS"), "{}", ran.text());
}

#[test]
fn who_is_not_sudo_gets_nothing_from_the_askpass_program() {
    let person = Person::new();
    let set = [("SUDO_PASSWORD", person.password.as_str())];
    let thief = person.home().join("thief");
    fs::write(&thief, "#!/bin/sh\nexec \"$REAL\" > \"$HOME/stolen\"\n").unwrap();
    let pipe = person.home().join("pipe");
    fs::write(&pipe, "#!/bin/sh\n\"$REAL\" | tee \"$HOME/stolen2\"\n").unwrap();
    let fifo = person.home().join("fifo");
    let text = "#!/bin/sh\nmkfifo \"$HOME/f\"; cat \"$HOME/f\" > \"$HOME/stolen3\" &\n\
                exec \"$REAL\" > \"$HOME/f\"\n";
    fs::write(&fifo, text).unwrap();
    for program in [&thief, &pipe, &fifo] {
        fs::set_permissions(program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let script = "export REAL=$SUDO_ASKPASS; sudo id -u; sudo -k; \
                  x=$(\"$REAL\" prompt); echo \"[$x] $?\"; \"$REAL\"; echo \"code $?\"; \
                  cp /bin/sh sudo; ./sudo -c '\"$REAL\"; exit $?'; echo \"code $?\"; \
                  for thief in thief pipe fifo; do SUDO_ASKPASS=$HOME/$thief sudo id -u; done; \
                  sudo id -u";
    let ran = person.exoshell(&set, &["run", script]);
    assert_eq!(ran.text(), "0\n[] 1\ncode 1\ncode 1\n0\n", "{}", ran.talk());
    assert!(person.files_with(&person.password).is_empty());
    // Nor does a command that runs no sudo, whatever a sudo inside of it asks.
    fs::write(person.home().join("script"), "sudo -k; sudo -A id -u\n").unwrap();
    let run = person.state().join("run");
    let folder = fs::read_dir(run)
        .unwrap()
        .flatten()
        .find(|e| e.path().is_dir())
        .unwrap();
    let askpass = folder.path().join("sudo/askpass");
    let command = format!("export SUDO_ASKPASS={}; . ./script", askpass.display());
    let ran = person.exoshell(&set, &["run", &command]);
    assert_eq!((ran.text().as_str(), ran.code()), ("", 1));
    assert!(
        ran.talk().contains("no password was provided"),
        "{}",
        ran.talk()
    );
}

#[test]
fn sudo_on_a_terminal_gets_it_and_the_path_stays_as_it_was() {
    let person = Person::new();
    let set = [("SUDO_PASSWORD", person.password.as_str())];
    let call = |arguments: &str| {
        Answer::parse(&person.exoshell(&set, &["call", "terminal", arguments]).out)
    };
    let path = || {
        let answer = call(r#"{"command": "echo $PATH"}"#);
        answer.output().trim_end().to_owned()
    };
    let before = path();
    let answer = call(r#"{"command": "sudo -k; sudo id -u; export PATH=$PATH:/x", "pty": true}"#);
    answer.printed("0\n");
    assert_eq!(path(), format!("{before}:/x"));
    // `sudo -n` stays what it is there, too.
    let answer = call(r#"{"command": "sudo -k; sudo -n true || sudo id -u", "pty": true}"#);
    assert_eq!(answer.output(), "sudo: a password is required\n0\n");
}

#[test]
fn sudo_in_a_process_gets_it_while_the_call_lasts() {
    let person = Person::new();
    let set = [("SUDO_PASSWORD", person.password.as_str())];
    let ran = person.exoshell(&set, &["run", "--background", "sudo id -u"]);
    let id = ran.text().trim().to_owned();
    person.exoshell(&[], &["wait", &id]);
    assert_eq!(person.exoshell(&[], &["logs", &id]).text(), "0\n");
    assert!(person.files_with(&person.password).is_empty());
}

#[test]
fn in_a_gateway_a_hint_says_how_to_set_it_up() {
    let person = Person::new();
    let gateway = [("EXOSHELL_GATEWAY_SESSION", "chat")];
    let ask = r#"{"command": "sudo id -u"}"#;
    let answer = Answer::parse(&person.exoshell(&gateway, &["call", "terminal", ask]).out);
    assert_eq!(answer.code(), 1);
    assert!(answer.hint().contains("SUDO_PASSWORD"), "{}", answer.0);
    assert!(answer.hint().contains("do not guess"), "{}", answer.0);
    let answer = Answer::parse(&person.exoshell(&[], &["call", "terminal", ask]).out);
    assert_eq!(answer.hint(), "", "{}", answer.0);
    let ask = r#"{"command": "sudo -n true"}"#;
    let answer = Answer::parse(&person.exoshell(&gateway, &["call", "terminal", ask]).out);
    assert_eq!(answer.hint(), "", "{}", answer.0);
}

/// Runs a command of this process's own runtime, in a place where it is the person's.
fn runtime(person: &Person, home: &std::path::Path) -> Runtime {
    let environment = Environment::from_pairs([
        ("PATH", PATH.to_owned()),
        ("HOME", home.display().to_string()),
        ("EXOSHELL_HOME", home.display().to_string()),
        ("EXOSHELL_APPROVAL", "auto".to_owned()),
        ("TERMINAL_ENV", "command".to_owned()),
    ])
    .in_directory(home);
    let mut words = person.words();
    let folder = person.home().display().to_string();
    words.extend(["env", "-i"].map(str::to_owned));
    words.push(format!("--chdir={folder}"));
    words.push(format!("PATH={PATH}"));
    words.push(format!("HOME={folder}"));
    let text = format!("[command]\nlaunch = {words:?}\n");
    fs::write(home.join("config.toml"), text).unwrap();
    let config = Resolved::load(&environment, Config::default()).unwrap();
    Runtime::new(config, environment)
}

#[test]
fn a_callback_is_asked_once_per_session_and_again_when_it_was_wrong() {
    let person = Person::new();
    let home = tempfile::tempdir().unwrap();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let calls = Arc::new(AtomicU32::new(0));
    let right = person.password.clone();
    let runtime = runtime(&person, home.path()).with_password_provider({
        let (asked, calls) = (Arc::clone(&asked), Arc::clone(&calls));
        move |request| {
            asked.lock().unwrap().push((request.task, request.attempt));
            let first = calls.fetch_add(1, Ordering::Relaxed) == 0;
            let given = if first { "open barley" } else { &right };
            let password = Password::new(given);
            Box::pin(async move { Some(password) })
        }
    });
    block_on(async {
        let run = async |task: &str, command: &str| -> TerminalResult {
            runtime
                .terminal(TerminalRequest::new(command).in_task(task))
                .await
        };
        let result = run("a", "grep sudo /etc/hostname; sudo -n true").await;
        assert_eq!((result.exit_code, asked.lock().unwrap().len()), (1, 0));
        let result = run("a", "sudo id -u").await;
        assert!(result.output.ends_with("0\n"), "{result:?}");
        assert!(result.hint.is_some_and(|hint| hint.contains(WRONG)));
        let result = run("a", "sudo -k; sudo id -u").await;
        assert_eq!((result.output.as_str(), result.hint), ("0\n", None));
        let result = run("b", "sudo -k; sudo id -u").await;
        assert_eq!(result.output, "0\n");
        let asked = asked.lock().unwrap().clone();
        let expected = [("a", 1), ("a", 2), ("b", 1)];
        assert_eq!(
            asked,
            expected.map(|(task, attempt)| (task.to_owned(), attempt))
        );
        assert!(!format!("{runtime:?}").contains(&person.password));
        runtime.cleanup_all().await.unwrap();
    });
}

/// Runs a command at a terminal and types this line when it is asked for a password.
fn typed(person: &Person, command: &str, line: &str) -> String {
    let call = person.command(&[], &["run", command]);
    let words: Vec<String> = [call.get_program()]
        .into_iter()
        .chain(call.get_args())
        .map(|word| quoted(word.to_str().unwrap()))
        .collect();
    let mut terminal = std::process::Command::new("script");
    terminal.args(["-qfec", &words.join(" "), "/dev/null"]);
    terminal.env_clear();
    for (name, value) in call.get_envs() {
        terminal.env(name, value.unwrap());
    }
    terminal
        .current_dir(person.home())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut terminal = terminal.spawn().unwrap();
    let mut output = terminal.stdout.take().unwrap();
    let mut shown = Vec::new();
    let asks = |shown: &[u8]| String::from_utf8_lossy(shown).contains("45 s): ");
    while !asks(&shown) {
        let mut byte = [0_u8; 1];
        assert_eq!(output.read(&mut byte).unwrap(), 1, "it does not ask");
        shown.extend(byte);
    }
    let mut keys = terminal.stdin.take().unwrap();
    keys.write_all(line.as_bytes()).unwrap();
    output.read_to_end(&mut shown).unwrap();
    drop(keys);
    terminal.wait().unwrap();
    String::from_utf8_lossy(&shown).replace('\r', "")
}

#[test]
fn the_person_at_the_terminal_is_asked_and_enter_means_none() {
    let person = Person::new();
    let shown = typed(&person, "sudo id -u", &format!("{}\n", person.password));
    assert!(shown.ends_with("45 s): \n0\n"), "{shown}");
    assert!(!shown.contains(&person.password), "{shown}");
    let shown = typed(&person, "sudo -k; sudo id -u", "\n");
    assert!(shown.contains("no password was provided"), "{shown}");
}

#[test]
fn the_client_of_a_place_does_not_get_the_password_and_sudo_there_does() {
    let person = Person::new();
    let client = "env >> \"$HOME/client\"; exec \"$@\"";
    let text = format!("[command]\nlaunch = [\"sh\", \"-c\", {client:?}, \"sh\"]\n");
    fs::write(person.home().join("other.toml"), text).unwrap();
    let config = person.home().join("other.toml").display().to_string();
    let set = [
        ("SUDO_PASSWORD", person.password.as_str()),
        ("EXOSHELL_CONFIG", config.as_str()),
        ("TERMINAL_ENV", "command"),
    ];
    let ran = person.exoshell(&set, &["run", "sudo -k; sudo id -u"]);
    assert_eq!(ran.text(), "0\n", "{}", ran.talk());
    let seen = fs::read_to_string(person.home().join("client")).unwrap();
    assert!(seen.contains("TERMINAL_ENV=command"), "{seen}");
    assert!(person.files_with(&person.password).is_empty());
}
