//! Places where no guest can run: commands work all the same, one plain shell for each.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::time::Duration;

use exoshell_testkit::{Sshd, SshdOptions};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::site::{Site, Sleep, refused};
use crate::support::Answer;

const SECOND: Duration = Duration::from_secs(1);

/// A host where no folder lets programs run.
fn without_programs() -> Site {
    let host = SshdOptions::default()
        .home_mount("noexec")
        .temporary_mount("noexec")
        .start();
    Site::on(host, &[("terminal.kill_grace_seconds", "1")])
}

/// A host with a processor that there is no guest for.
fn with_another_processor() -> Site {
    let host = Sshd::start();
    let folder = host.home().join("odd");
    fs::create_dir(&folder).unwrap();
    let uname = folder.join("uname");
    let script = "#!/bin/sh\ncase $1 in -m) echo riscv64;; *) exec /bin/uname \"$@\";; esac\n";
    fs::write(&uname, script).unwrap();
    fs::set_permissions(&uname, fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(host.home().join(".bashrc"), "PATH=$HOME/odd:$PATH\n").unwrap();
    Site::on(host, &[("terminal.kill_grace_seconds", "1")])
}

/// Runs commands in one program, `exoshell shell`, and returns their answers.
#[track_caller]
fn in_one_program(site: &Site, commands: &[&str]) -> Vec<Answer> {
    let mut command = site.command(["shell", "--task", "t", "--json"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    for command in commands {
        writeln!(stdin, "{command}").unwrap();
    }
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let answers = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<Value>();
    answers.map(|answer| Answer(answer.unwrap())).collect()
}

#[track_caller]
fn commands_work(site: &Site, why: &str) {
    let answers = in_one_program(
        site,
        &[
            "cd /usr && export A='x y' && f() { :; }; echo one; echo two >&2",
            "pwd; echo \"$A\"; exit 3",
            "cd lib; unset A",
            "pwd; echo ${A-unset}",
        ],
    );
    let [first, second, third, fourth] = answers.as_slice() else {
        panic!("{answers:?}");
    };
    first.printed("one\ntwo\n");
    for word in ["no guest can run here", why, "plain shell"] {
        assert!(first.hint().contains(word), "no `{word}`: {}", first.0);
    }
    assert_eq!(
        (second.output(), second.code()),
        ("/usr\nx y\n", 3),
        "{}",
        second.0
    );
    assert_eq!(second.hint(), "", "it is said once");
    third.printed("");
    fourth.printed("/usr/lib\nunset\n");
    // Other programs find the directory, for it is no secret.
    site.task("t", "pwd").printed("/usr/lib\n");
    site.task("other", "cd /etc").printed("");
    site.task("other", "pwd; cd /").printed("/etc\n");
    let listed = site.json(["places", "info", "t", "--json"]).to_string();
    assert!(listed.contains("/usr/lib"), "{listed}");
    let given = site.call(&json!({
        "command": "cat; printf %s \"$V\"; pwd",
        "stdin": "line\nno end",
        "env": {"V": "$(id) 'q'\n"},
        "workdir": "/usr/share",
        "task_id": "t",
    }));
    given.printed("line\nno end$(id) 'q'\n/usr/share\n");
    let ran = site.exoshell(["run", "echo out; echo err >&2; exit 4"]);
    assert_eq!(
        (ran.code(), ran.text().as_str()),
        (4, "out\n"),
        "{}",
        ran.talk()
    );
    assert!(ran.talk().starts_with("err\n"), "{}", ran.talk());
    assert!(
        ran.talk().contains("no guest can run here"),
        "{}",
        ran.talk()
    );
}

#[track_caller]
fn the_tree_ends(site: &Site) {
    let sleep = Sleep::new();
    let form = "echo begun; trap '' TERM; setsid sleep N & (sleep N &) ; sleep N";
    let command = sleep.fill(form);
    let answer = site.call(&json!({"command": command, "timeout": 2}));
    assert_eq!(
        (answer.code(), answer.status()),
        (124, "timeout"),
        "{}",
        answer.0
    );
    assert!(answer.output().starts_with("begun\n"), "{}", answer.0);
    sleep.ends_within(5 * SECOND);
    let call = site.start_call(&json!({ "command": command }));
    sleep.runs(3);
    call.signal(Signal::INT);
    let answer = Answer::parse(&call.finish().out);
    assert_eq!(
        (answer.code(), answer.status()),
        (130, "interrupted"),
        "{}",
        answer.0
    );
    sleep.ends_within(5 * SECOND);
}

#[track_caller]
fn what_needs_a_guest_is_refused(site: &Site, why: &str) {
    for more in [json!({"pty": true}), json!({"background": true})] {
        let mut arguments = json!({"command": "echo it runs"});
        arguments
            .as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        let answer = site.call(&arguments);
        refused(&answer, -1, "unsupported", why);
        assert!(answer.error().contains("no guest can run"), "{}", answer.0);
    }
    let doctor = site.exoshell(["doctor", "--backend", "ssh"]);
    assert!(doctor.text().contains(why), "{}", doctor.text());
    let doctor = site
        .json(["doctor", "--backend", "ssh", "--json"])
        .to_string();
    assert!(
        doctor.contains("limited") && doctor.contains("without a guest"),
        "{doctor}"
    );
}

#[test]
fn commands_work_where_no_folder_lets_programs_run() {
    commands_work(&without_programs(), "noexec");
}

#[test]
fn commands_work_on_an_unknown_processor() {
    commands_work(&with_another_processor(), "riscv64");
}

#[test]
fn timeouts_and_interrupts_end_the_tree_without_a_guest() {
    the_tree_ends(&without_programs());
}

#[test]
fn what_needs_a_guest_is_refused_where_no_folder_lets_programs_run() {
    what_needs_a_guest_is_refused(&without_programs(), "noexec");
}

#[test]
fn what_needs_a_guest_is_refused_on_an_unknown_processor() {
    what_needs_a_guest_is_refused(&with_another_processor(), "riscv64");
}
