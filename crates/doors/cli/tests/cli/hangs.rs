//! Nothing that a command leaves open, asks for or ends with can hold the call.

use std::fs;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use crate::support::{Program, Ran, World, processes_naming, quoted, unique_sleep};

/// How long after the shell's exit a call may take: 1 s by the requirement, and as much again
/// for starting two programs on a loaded machine.
const SOON: Duration = Duration::from_secs(2);

/// Makes the session, so that what follows is timed without the login shell.
fn warm() -> World {
    let world = World::new();
    world.terminal("true").printed("");
    world
}

#[test]
fn h1_a_silent_grandchild_does_not_hold_the_call() {
    let world = warm();
    let sleep = unique_sleep();
    for form in [
        format!("setsid sleep {sleep} & echo done"),
        format!("sleep {sleep} & disown; echo done"),
        format!("nohup sleep {sleep} & echo done"),
        format!("(sleep {sleep} &); echo done"),
        format!("setsid -f sleep {sleep}; echo done"),
    ] {
        let ran = world.start_call(&json!({ "command": form })).finish();
        let answer = crate::support::Answer::parse(&ran.out);
        assert_eq!(answer.code(), 0, "{}", answer.0);
        assert!(answer.output().contains("done\n"), "{}", answer.0);
        assert!(ran.took < SOON, "`{form}` took {:?}", ran.took);
        assert!(
            answer
                .left_running()
                .iter()
                .any(|command| command.contains(&sleep)),
            "`{form}` is not named: {}",
            answer.0
        );
        let report = world.json(["places", "info", "default", "--json"]);
        assert!(report["leftovers"].to_string().contains(&sleep), "{report}");
    }
    // All of them go with their place.
    assert_eq!(
        processes_naming(&sleep)
            .iter()
            .filter(|p| p.name == "sleep")
            .count(),
        5
    );
    let ran = world.exoshell(["places", "rm", "default"]);
    assert_eq!(ran.code(), 0);
    assert_eq!(processes_naming(&sleep), []);
}

#[test]
fn h1_a_noisy_grandchild_does_not_hold_the_call() {
    let world = warm();
    for form in [
        "(while :; do echo x; done) & echo done",
        "setsid yes & echo done",
        "(while :; do echo x >&2; done) & sleep 0.2; echo done",
    ] {
        let ran = world
            .start_call(&json!({ "command": form }))
            .finish_within(Duration::from_secs(20));
        let answer = crate::support::Answer::parse(&ran.out);
        assert_eq!(answer.code(), 0, "{}", answer.0);
        assert!(
            answer.output().contains("done\n") || answer.0["truncated"] == true,
            "{}",
            answer.0
        );
        assert!(ran.took < SOON, "`{form}` took {:?}", ran.took);
        let run = world.start(["run", "--task", "other", form]).finish();
        assert!(run.text().contains("done\n"));
        assert!(run.took < SOON, "`{form}` took {:?} in `run`", run.took);
        let removed = world.exoshell(["places", "rm", "default", "other"]);
        assert_eq!(removed.code(), 0);
        world.terminal("true").printed("");
    }
}

#[test]
fn h1_a_survivor_goes_on_writing_without_harm() {
    let world = warm();
    // It neither blocks on a full pipe nor dies of a closed one.
    let loop_ = "(i=0; while [ $i -lt 3000 ]; do echo 0123456789012345678901234567890123456789012345678901234567890123456789; i=$((i+1)); done; touch finished) & echo done";
    world.terminal(loop_);
    crate::support::wait_until(Duration::from_secs(20), "the survivor finishes", || {
        world.work.join("finished").exists()
    });
    world.terminal("echo next").printed("next\n");
}

#[test]
fn h2_output_right_before_the_exit_is_delivered_to_the_last_byte() {
    let world = warm();
    let command = "head -c 5000000 /dev/zero | tr '\\0' x; printf END";
    for _ in 0..3 {
        let ran = world.exoshell(["run", command]);
        assert_eq!((ran.out.len(), ran.code()), (5_000_003, 0));
        assert!(ran.out.ends_with(b"xEND"));
    }
    // Also when something outlives the shell.
    let ran = world.exoshell(["run", &format!("sleep {} & {command}", unique_sleep())]);
    assert_eq!(ran.out.len(), 5_000_003);
    let answer = world.terminal(command);
    assert!(answer.output().ends_with("xEND"), "the tail is shown");
    let file = fs::read(answer.0["output_file"].as_str().unwrap()).unwrap();
    assert_eq!(file.len(), 5_000_003);
    assert!(file.ends_with(b"xEND"));
}

#[test]
fn h2_no_output_of_short_commands_is_lost_when_many_run_at_once() {
    let world = warm();
    let lost: Vec<String> = crate::support::block_on(async {
        let runtime = std::sync::Arc::new(crate::support::runtime(&world));
        let mut tasks = Vec::new();
        for number in 0..300 {
            let runtime = std::sync::Arc::clone(&runtime);
            tasks.push(tokio::spawn(async move {
                let mut out = Vec::new();
                let request = exoshell_runtime::RunRequest::new(format!("echo {number}"));
                let end = runtime
                    .run(request, |_, bytes| out.extend_from_slice(bytes))
                    .await
                    .unwrap();
                let expected = format!("{number}\n").into_bytes();
                (out != expected)
                    .then(|| format!("{number}: {out:?}, exit code {}", end.exit_code()))
            }));
        }
        let mut lost = Vec::new();
        for task in tasks {
            lost.extend(task.await.unwrap());
        }
        lost
    });
    assert!(lost.is_empty(), "{} of 300: {lost:?}", lost.len());
}

/// Runs a text as a file, as users would, with stdin empty.
fn bash_file(world: &World, text: &[u8]) -> Ran {
    let file = world.root().join("script");
    fs::write(&file, text).unwrap();
    let mut command = Command::new("bash");
    command.arg(&file);
    world.dress(&mut command);
    command.env_remove("EXOSHELL_HOME");
    Program::start(command, b"").finish()
}

/// Texts that wrappers get wrong.
const TEXTS: &[&str] = &[
    "cat <<EOF\nhello $((1+1))\nEOF",
    "cat <<'EOF'\n$x\nEOF\n",
    "cat <<-EOF\n\thello\n\tEOF",
    "cat <<A <<B\na\nA\nb\nB",
    "cat <<EOF\nno end",
    "echo hi # comment",
    "# only a comment",
    "echo hi;",
    "echo hi &",
    "echo hi \\",
    "echo hi\\",
    "echo 'hi\\'",
    "echo hi \\\\",
    "echo \"hi\\\n there\"",
    "echo 'unbalanced",
    "echo \"unbalanced",
    "echo before\necho `unbalanced",
    "echo before\nif true; then",
    "echo one; )",
    "echo one\n)\necho two",
    "echo one\nfi\necho two",
    "exit 3",
    "false",
    "(exit 4)",
    "return 5; echo after $?",
    "echo $#; echo \"$@\"; echo ${BASH_SOURCE-unset} | wc -l",
    "nonexistent-program-4711",
    "/etc/passwd",
    "/nonexistent/x",
    "f() { return 6; }; f",
    "set -e; false; echo no",
    "kill -TERM $$",
    "kill -9 $$; sleep 5",
    "echo $?; echo $LINENO; true\necho $LINENO",
    "shopt -s expand_aliases\nalias a='echo aliased'\na",
    "alias a='echo aliased'; a",
    "x=1 y=2; echo $x$y; unset x; echo ${x-unset}",
    "printf 'no newline'",
    "printf 'a\\0b' | od -c | head -1",
    "echo \u{fc} \u{6f22} \u{1f980}",
    "\n\n  \n\techo blank\n\n",
    "\r\necho carriage",
    "echo a; echo b >&2; echo c",
    "declare -i n=3; n+=4; echo $n; echo ${n@A}",
    "coproc cat; echo hi >&${COPROC[1]}; read -u ${COPROC[0]} x; echo $x",
    "diff <(echo a) <(echo a) && echo same",
    "trap 'echo bye' EXIT; echo hi",
    "trap 'echo term' TERM; kill $$; echo after",
    "set -x; true; { set +x; } 2>/dev/null; echo x",
    "eval 'echo in eval'; source /dev/stdin <<< 'echo in source'",
    "echo !$ !! a^b^c",
    "[[ abc =~ ^a(.)c$ ]] && echo ${BASH_REMATCH[1]}",
    "exec 3>&1; echo three >&3; exec 3>&-",
    "while read l; do echo $l; done < /etc/hostname | wc -l",
    "cd /usr && pwd; echo $OLDPWD | wc -l",
    "wait; jobs; echo $!",
    "time true 2>/dev/null; echo timed",
    "exec echo replaced",
    "set -- a b; echo $2 $#; shift; echo $1",
    "printf '%s\\n' {a..c}{1,2}",
    "umask; ulimit -n >/dev/null; echo ok",
    "set -e; cd /usr; ls /nonexistent; echo no",
    "echo ${x[a b]}; echo after",
    "echo ${x:?gone}; echo after",
    "echo $((1/0)); echo after",
    "readonly r=1; r=2; echo after",
    "set -o posix; readonly r=1; export r=2; echo after",
    "echo hi >&6; echo hi >&4; echo hi >&10; echo $?",
    "exec 10>log; echo ten >&10; cat log; rm log",
    "exec 6>log; echo six >&6; exec 6>&-; cat log; rm log",
    "exec 3<<<three 4<<<four; cat <&4 <&3; cat <&4",
    "exec 2>/dev/null; ls /nonexistent; echo $?",
    "exec >/dev/null; echo hidden",
    "trap 'echo dbg $BASH_COMMAND' DEBUG; x=1; echo $x",
    "set -T; trap 'echo ret' RETURN; f() { :; }; f",
    "set -eE; trap 'echo err $?' ERR; false",
    "trap 'echo bye; exit 9' EXIT; exit 3",
    "trap 'echo usr1' USR1; kill -USR1 $$; sleep 0.1; echo done",
    "f() { exit 5; }; f; echo no",
    "(exit 7) || exit; echo no",
    "echo $BASH_SUBSHELL; (echo $BASH_SUBSHELL)",
    "f() { echo ${FUNCNAME[0]}; caller 0 >/dev/null; local x=1; echo $x; }; f",
    "set -o pipefail; false | cat; echo $?",
    "shopt -s lastpipe; echo x | read y; echo $y",
    "mapfile -t a <<< $'1\n2'; echo ${#a[@]}",
    "select x in a b; do echo $x; done <<< 1 2>/dev/null",
    "read -t 1 x; echo $?",
    "printf '%s\n' \"$(<<<'x' cat)\"",
    "unset PATH; echo $PATH; ls",
    "exit 256",
    "exit -1",
    "exit abc",
    "return",
    "break; continue; echo ok",
    "if true; then echo a; fi; }",
    "cat <<'E'; echo after\nbody\nE",
    "echo a\\0b",
    "$'\\x01' 2>/dev/null; echo $?",
    "false | true; echo ${PIPESTATUS[@]}",
];

#[test]
fn h3_any_command_text_behaves_as_in_a_file() {
    let world = warm();
    let mut strange = Vec::new();
    for (number, text) in TEXTS.iter().copied().enumerate() {
        let expected = bash_file(&world, text.as_bytes());
        let ran = world.exoshell(["run", text]);
        if (ran.text(), ran.code()) != (expected.text(), expected.code()) {
            strange.push(format!(
                "run {text:?}: ours {} {:?} {:?}, bash {} {:?} {:?}",
                ran.code(),
                ran.text(),
                ran.talk(),
                expected.code(),
                expected.text(),
                expected.talk()
            ));
        }
        // A task of its own, since some of these change what the next one means.
        let answer = world.task(&format!("h3-{number}"), text);
        if answer.code() != i64::from(expected.code()) {
            strange.push(format!(
                "call {text:?}: {} instead of {}",
                answer.0,
                expected.code()
            ));
        }
        for wrapper in ["builtin", "BASH_EXECUTION_STRING", "declare -x"] {
            if answer.output().contains(wrapper) || ran.talk().contains(wrapper) {
                strange.push(format!(
                    "{text:?} shows `{wrapper}`: {:.200}",
                    answer.output()
                ));
            }
        }
    }
    assert!(strange.is_empty(), "{}", strange.join("\n"));
}

#[test]
fn h3_a_command_of_one_mebibyte_runs_as_a_file_does() {
    let world = warm();
    let mut text = String::from("x=0\n");
    while text.len() < 1 << 20 {
        text.push_str("x=$((x+1)) # some filler so that the text grows faster than it runs\n");
    }
    text.push_str("echo $x\ncat <<EOF\n");
    text.push_str(&"y".repeat(200_000));
    text.push_str("\nEOF");
    let expected = bash_file(&world, text.as_bytes());
    assert_eq!(expected.code(), 0);
    let answer = world.call(&json!({"command": text, "task_id": "large"}));
    assert_eq!(answer.code(), 0, "{}", answer.error());
    let file = fs::read(answer.0["output_file"].as_str().unwrap()).unwrap();
    assert!(file == expected.out, "the output differs");
    // One argument of the command line holds less than a mebibyte, but it holds this.
    let line = format!(": {}; echo ok", "z".repeat(100_000));
    assert_eq!(world.exoshell(["run", &line]).text(), "ok\n");
}

fn repository(world: &World) {
    let setup = "git init -q . && git config user.name T && git config user.email t@example.org && \
                 for i in 1 2 3; do seq 500 > f$i && git add . && git commit -qm \"commit $i\"; done && echo made";
    world.terminal(setup).printed("made\n");
}

#[test]
fn h4_git_neither_pages_nor_asks_nor_opens_an_editor() {
    let world = warm();
    repository(&world);
    let limit = 20;
    let log = world.call(&json!({"command": "git log --stat; git diff HEAD~2", "timeout": limit}));
    assert_eq!((log.code(), log.status()), (0, ""), "{}", log.0);
    let commit = world.call(&json!({"command": "echo x > f1; git commit -a", "timeout": limit}));
    assert_eq!(commit.status(), "", "{}", commit.0);
    assert!(!commit.output().is_empty() || commit.code() == 0);
    let amend = world.call(&json!({"command": "git commit --amend; git rebase -i HEAD~1; git status --short", "timeout": limit}));
    assert_eq!(amend.status(), "", "{}", amend.0);
    let push = world.call(&json!({"command": "git push https://nobody@127.0.0.1:9/x.git HEAD; git -c credential.helper= ls-remote https://127.0.0.1:9/x", "timeout": limit}));
    assert_eq!(push.status(), "", "{}", push.0);
}

#[test]
fn h4_pagers_do_not_wait() {
    let world = warm();
    for command in [
        "man ls | head -1; man ls",
        "seq 5000 | less | tail -1",
        "seq 5000 | more | tail -1",
        "${PAGER:-less} /etc/passwd",
    ] {
        let answer = world.call(&json!({"command": command, "timeout": 30}));
        assert_eq!(answer.status(), "", "`{command}`: {}", answer.0);
    }
}

#[test]
fn h5_reading_stdin_finds_its_end_at_once() {
    let world = warm();
    let show = "read x; echo \"$? <$x>\"; cat; [ -c /dev/stdin ] && readlink /proc/self/fd/0; \
                bash -c 'read y; echo $?'; [ -t 0 ] || echo no terminal";
    world
        .terminal(show)
        .printed("1 <>\n/dev/null\n1\nno terminal\n");
    // The caller's own stdin is not passed on unless that is asked for.
    let mut command = world.command(["run", "cat; echo end"]);
    command.stdin(std::process::Stdio::piped());
    let mut child = command
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let stdin = child.stdin.take();
    let output = child.wait_with_output().unwrap();
    drop(stdin);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "end\n");
}

#[test]
fn h5_given_stdin_is_read_whole_and_then_ends() {
    let world = warm();
    let text = "line one\nline two without an end";
    world
        .call(&json!({"command": "cat; echo \"|$?\"", "stdin": text}))
        .printed(&format!("{text}|0\n"));
    world
        .call(&json!({"command": "cat", "stdin": ""}))
        .printed("");
    // More than any pipe holds, and a command that does not read it.
    let large = "x".repeat(3_000_000);
    world
        .call(&json!({"command": "wc -c", "stdin": large}))
        .printed("3000000\n");
    world
        .call(&json!({"command": "head -c 5", "stdin": large}))
        .printed("xxxxx");
    world
        .call(&json!({"command": "echo unread", "stdin": large}))
        .printed("unread\n");
}

#[test]
fn h5_the_terminal_cannot_be_opened() {
    let world = warm();
    let answer = world.terminal("exec 3<>/dev/tty; echo opened $?");
    assert!(
        !answer.output().contains("opened 0") && answer.output().contains("/dev/tty"),
        "{}",
        answer.0
    );
    let answer = world.terminal("echo x > /dev/tty || echo refused");
    assert!(answer.output().contains("refused"), "{}", answer.0);
}

#[test]
fn h6_no_command_has_our_terminal_or_our_session() {
    let world = World::new();
    // `script` gives the binary a terminal of its own, as a person would.
    let inner = format!(
        "{} run {}; {} call terminal {}",
        crate::support::EXOSHELL,
        quoted(
            "echo tty $(ps -o tty= -p $$) sid $(ps -o sid= -p $$); sleep 0.2 & wait; exec 3</dev/tty || echo none"
        ),
        crate::support::EXOSHELL,
        quoted(
            &json!({"command": "echo tty $(ps -o tty= -p $$); stty -a </dev/tty || echo none"})
                .to_string()
        ),
    );
    let mut command = Command::new("script");
    command.args([
        "-qec",
        &format!("echo outer $(ps -o sid= -p $$); {inner}"),
        "/dev/null",
    ]);
    world.dress(&mut command);
    let ran = Program::start(command, b"").finish();
    let text = ran.text().replace('\r', "");
    assert_eq!(ran.code(), 0, "{text}");
    assert_eq!(text.matches("tty ?").count(), 2, "{text}");
    assert_eq!(text.matches("none").count(), 2, "{text}");
    let number = |word: &str| {
        text.split(word)
            .nth(1)
            .unwrap()
            .split_whitespace()
            .next()
            .unwrap()
            .to_owned()
    };
    assert_ne!(number("outer"), number("sid"), "{text}");
}

#[test]
fn h6_the_guest_outlives_the_terminal_it_was_started_from() {
    let world = World::new();
    let mut command = Command::new("script");
    command.args([
        "-qec",
        &format!(
            "{} run --task t 'cd /usr; export A=1'",
            crate::support::EXOSHELL
        ),
        "/dev/null",
    ]);
    world.dress(&mut command);
    assert_eq!(Program::start(command, b"").finish().code(), 0);
    let answer = world.task("t", "pwd; echo $A");
    answer.printed("/usr\n1\n");
}

#[test]
fn output_through_a_process_substitution_is_delivered() {
    let world = warm();
    for _ in 0..5 {
        let answer = world.terminal("exec > >(tee log) 2>&1; echo hi; echo err >&2");
        answer.printed("hi\nerr\n");
        let ran = world.exoshell(["run", "exec > >(tee log) 2>&1; echo hi"]);
        assert_eq!((ran.text().as_str(), ran.code()), ("hi\n", 0));
        assert_eq!(fs::read_to_string(world.work.join("log")).unwrap(), "hi\n");
    }
}

#[test]
fn a_fifo_a_device_and_a_full_pipe_cost_only_the_commands_own_timeout() {
    let world = warm();
    world.terminal("mkfifo pipe").printed("");
    let answer = world.call(&json!({"command": "echo before; cat pipe", "timeout": 1}));
    assert_eq!(
        (answer.code(), answer.status()),
        (124, "timeout"),
        "{}",
        answer.0
    );
    assert!(answer.output().starts_with("before\n"));
}

#[test]
fn stopped_processes_do_not_hold_the_call() {
    let world = warm();
    let sleep = unique_sleep();
    let command = format!("sleep {sleep} & kill -STOP $!; kill -STOP $$");
    let ran = world
        .start_call(&json!({"command": command, "timeout": 1}))
        .finish_within(Duration::from_secs(10));
    let answer = crate::support::Answer::parse(&ran.out);
    assert_eq!(answer.code(), 124, "{}", answer.0);
    assert_eq!(processes_naming(&sleep), []);
}
