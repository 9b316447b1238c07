//! One call of `terminal`: what it is given, what it runs, what it answers.

use serde_json::json;

use crate::site::{Kind, Site, refused};
use crate::support::{Answer, Program, quoted};

pub(crate) fn exit_code_is_the_commands_own(kind: Kind) {
    let site = kind.site();
    for (command, code) in [
        ("true", 0),
        ("exit 3", 3),
        ("exit 255", 255),
        ("(exit 124)", 124),
        ("nonexistent-program-4711", 127),
        ("/etc/passwd", 126),
    ] {
        let answer = site.terminal(command);
        assert_eq!(answer.code(), code, "`{command}`: {}", answer.0);
        // A command's own failure is no failure of ours.
        assert_eq!(
            (answer.error(), answer.kind(), answer.status()),
            ("", "", ""),
            "`{command}`: {}",
            answer.0
        );
    }
    let answer = site.terminal("echo x | grep y");
    assert_eq!((answer.code(), answer.output()), (1, ""), "{}", answer.0);
    assert!(answer.hint().contains("no"), "explained: {}", answer.0);
    let answer = site.terminal("pwd");
    assert_eq!(
        answer.output(),
        format!("{}\n", answer.cwd()),
        "{}",
        answer.0
    );
    assert!(answer.0["duration_ms"].is_u64(), "{}", answer.0);
}

pub(crate) fn run_has_the_exit_code_and_both_outputs_of_the_command(kind: Kind) {
    let site = kind.site();
    for (command, code) in [
        ("exit 7", 7),
        ("nonexistent-program-4711", 127),
        ("kill -9 $$", 137),
    ] {
        let ran = site.exoshell(["run", "--task", "t", command]);
        assert_eq!(ran.code(), code, "`{command}`: {}", ran.talk());
    }
    let ran = site.exoshell(["run", "--task", "t", "printf 'a\\xff\\0b'; echo err >&2"]);
    assert_eq!(ran.out, b"a\xff\0b");
    assert_eq!(ran.talk(), "err\n");
    let ran = site.exoshell([
        "run",
        "--task",
        "t",
        "--timeout",
        "1",
        "echo part; sleep 60",
    ]);
    assert_eq!((ran.code(), ran.text().as_str()), (124, "part\n"));
    assert!(ran.talk().contains("timed out after 1 s"), "{}", ran.talk());
}

pub(crate) fn a_workdir_holds_for_one_command_only(kind: Kind) {
    let site = kind.site();
    let work = site.enter_folder();
    site.terminal("mkdir below; mkdir -p ~/'x y'").printed("");
    let home = site.terminal("cd; pwd -P; cd - >/dev/null");
    let home = home.output().trim_end().to_owned();
    for (workdir, expected) in [
        ("/usr", "/usr".to_owned()),
        ("~", home.clone()),
        ("~/x y", format!("{home}/x y")),
        ("below", format!("{work}/below")),
        (".", work.clone()),
    ] {
        let answer = site.call(&json!({"command": "pwd -P", "workdir": workdir}));
        answer.printed(&format!("{expected}\n"));
        assert_eq!(answer.cwd(), work, "`{workdir}`: the session does not move");
    }
    // Not even a change of directory inside such a command moves the session.
    site.call(&json!({"command": "cd /usr/share", "workdir": "/usr"}))
        .printed("");
    site.terminal("pwd -P").printed(&format!("{work}\n"));
    site.terminal("rmdir ~/'x y'").printed("");
}

pub(crate) fn a_directory_that_cannot_be_entered_is_126_and_nothing_runs(kind: Kind) {
    let site = kind.site();
    site.enter_folder();
    site.terminal("touch file").printed("");
    for (workdir, why) in [
        ("/nonexistent/x", "No such file"),
        ("~/nowhere", "No such file"),
        ("relative/nowhere", "No such file"),
        ("file", "not a directory"),
    ] {
        let answer = site.call(&json!({"command": "touch ran", "workdir": workdir}));
        refused(&answer, 126, "usage", why);
    }
    site.terminal("ls").printed("file\n");
}

pub(crate) fn arguments_that_make_no_sense_are_refused_and_nothing_runs(kind: Kind) {
    let site = kind.site();
    site.enter_folder();
    for (arguments, word) in [
        (json!({"command": " \n"}), "empty"),
        (json!({"command": "touch a\0b"}), "NUL"),
        (json!({"command": "touch a", "timeout": -1}), "`timeout`"),
        (json!({"command": "touch a", "env": {"A B": "x"}}), "A B"),
        (json!({"command": "touch a", "force": true}), "`force`"),
    ] {
        let answer = site.call(&arguments);
        refused(&answer, -1, "usage", word);
        assert_eq!(answer.status(), "error", "{}", answer.0);
    }
    site.terminal("ls").printed("");
}

pub(crate) fn variables_of_a_call_hold_for_one_command_only(kind: Kind) {
    let site = kind.site();
    let awkward = "one\ntwo 'three' \"four\" `id` $(id) ${HOME} \\ ü 漢字 🦀";
    site.terminal("export BOTH=session").printed("");
    site.call(&json!({
        "command": "printf '%s|%s' \"$ONLY\" \"$BOTH\"",
        "env": {"ONLY": awkward, "BOTH": "call"},
    }))
    .printed(&format!("{awkward}|call"));
    site.terminal("echo \"${ONLY-unset} $BOTH\"")
        .printed("unset session\n");
}

pub(crate) fn credentials_and_our_own_settings_do_not_reach_commands(kind: Kind) {
    let secret = [
        ("ANTHROPIC_API_KEY", "hidden-1"),
        ("OPENAI_API_KEY", "hidden-2"),
        ("SUDO_PASSWORD", "hidden-3"),
        ("EXOSHELL_SESSION_KEY", "hidden-4"),
        ("HARMLESS", "shown"),
    ];
    // What is hidden in the output could have reached the command all the same.
    let site = kind.site_called_with(&[("secrets.redact", "false")], &secret);
    let seen = |text: &str| {
        assert!(
            !text.contains("hidden-") && !text.contains("EXOSHELL"),
            "{text}"
        );
        // This machine lends the caller's environment; containers and hosts have their own.
        match kind {
            Kind::Local => assert!(text.contains("HARMLESS=shown"), "{text}"),
            Kind::Docker | Kind::Podman | Kind::Ssh => {
                assert!(!text.contains("HARMLESS"), "{text}");
            }
            Kind::Command => {}
        }
    };
    let answer = site.terminal("env");
    assert_eq!(answer.code(), 0, "{}", answer.0);
    seen(answer.output());
    seen(&site.exoshell(["run", "env"]).text());
    let id = site.begin("env", &json!({}));
    seen(site.wait_for_end(&id).output());
}

pub(crate) fn nothing_waits_for_a_person(kind: Kind) {
    let site = kind.site();
    let variables = "echo $PAGER $GIT_PAGER $GIT_TERMINAL_PROMPT $DEBIAN_FRONTEND";
    site.terminal(variables)
        .printed("cat cat 0 noninteractive\n");
    // Stdin is empty, and there is no terminal to open.
    let read = "read x; echo \"$? <$x>\"; cat; bash -c 'read y; echo $?'; [ -t 0 ] || echo none";
    site.terminal(read).printed("1 <>\n1\nnone\n");
    let answer = site.terminal("exec 3<>/dev/tty; echo opened $?");
    assert!(
        !answer.output().contains("opened 0") && answer.output().contains("/dev/tty"),
        "{}",
        answer.0
    );
    let paged = site.call(&json!({"command": "seq 5000 | less | tail -1", "timeout": 30}));
    assert_eq!((paged.code(), paged.output()), (0, "5000\n"), "{}", paged.0);
}

pub(crate) fn given_stdin_is_read_whole_and_then_ends(kind: Kind) {
    let site = kind.site();
    let text = "line one\nline two without an end";
    site.call(&json!({"command": "cat; echo \"|$?\"", "stdin": text}))
        .printed(&format!("{text}|0\n"));
    site.call(&json!({"command": "cat", "stdin": ""}))
        .printed("");
    // More than any pipe holds, and commands that do not read it.
    let large = "x".repeat(3_000_000);
    site.call(&json!({"command": "wc -c", "stdin": large}))
        .printed("3000000\n");
    site.call(&json!({"command": "head -c 5", "stdin": large}))
        .printed("xxxxx");
    site.call(&json!({"command": "echo unread", "stdin": large}))
        .printed("unread\n");
}

pub(crate) fn the_text_of_a_command_is_read_as_a_file_is(kind: Kind) {
    let site = kind.site();
    for (text, output) in [
        ("cat <<EOF\n$((40+2))\nEOF", "42\n"),
        ("cat <<'EOF'\n$x `y`\nEOF\n", "$x `y`\n"),
        ("echo end # a comment", "end\n"),
        ("echo 'two\nlines'", "two\nlines\n"),
        ("echo a \\\n  b", "a b\n"),
        ("echo '$(id)' \"\\$(id)\" \\`", "$(id) $(id) `\n"),
        ("f() { echo in f; }\nf", "in f\n"),
        ("-x 2>/dev/null || echo dash", "dash\n"),
        ("echo ü 漢字 🦀", "ü 漢字 🦀\n"),
    ] {
        let answer = site.terminal(text);
        assert_eq!(
            (answer.output(), answer.code()),
            (output, 0),
            "`{text}`: {}",
            answer.0
        );
    }
    for open in ["echo 'open", "echo $(open", "if", "cat <<EOF\nopen"] {
        let answer = site.terminal(open);
        for ours in ["builtin", "declare -x", "BASH_EXECUTION_STRING"] {
            assert!(!answer.output().contains(ours), "`{open}`: {}", answer.0);
        }
    }
    // One mebibyte of text.
    let filler = "x=$((x+1)) # some filler so that the text grows faster than it runs\n";
    let times = (1 << 20) / filler.len();
    let text = format!("x=0\n{}echo $x", filler.repeat(times));
    site.terminal(&text).printed(&format!("{times}\n"));
    // Markers that anybody could think of are only text.
    let fake = quoted("\u{0}END 0\u{0} __EXIT__0 \u{1b}]133;D;0\u{7}").replace('\u{0}', "");
    let answer = site.terminal(&format!("echo {fake}; exit 5"));
    assert_eq!(answer.code(), 5, "{}", answer.0);
}

pub(crate) fn calls_at_the_same_time_merge_what_they_changed(kind: Kind) {
    let site = kind.site();
    let work = site.enter_folder();
    let calls: Vec<Program> = (0..8)
        .map(|i| site.start_call(&json!({"command": format!("echo {i} >>log; export P{i}=v{i}")})))
        .collect();
    for call in calls {
        Answer::parse(&call.finish().out).printed("");
    }
    let show = "for i in {0..7}; do n=P$i; [ \"${!n}\" = v$i ] || echo lost $n; done; \
                sort log | tr -d '\\n'; pwd -P";
    // Each of them ran, and none ran twice.
    site.terminal(show).printed(&format!("01234567{work}\n"));
}

pub(crate) fn first_calls_at_the_same_time_make_one_place(kind: Kind) {
    let site = kind.site();
    let calls: Vec<Program> = (0..6)
        .map(|i| site.start_call(&json!({"command": format!("export P{i}=1; hostname 2>/dev/null; readlink /proc/self/ns/mnt")})))
        .collect();
    let said: Vec<String> = calls
        .into_iter()
        .map(|call| {
            let answer = Answer::parse(&call.finish().out);
            assert_eq!(answer.code(), 0, "{}", answer.0);
            answer.output().to_owned()
        })
        .collect();
    assert!(said.iter().all(|one| *one == said[0]), "{said:#?}");
    site.terminal("echo $P0$P1$P2$P3$P4$P5").printed("111111\n");
    let list = site.json(["places", "ls", "--json"]);
    assert_eq!(list["places"].as_array().unwrap().len(), 1, "{list}");
    one_container(&site);
}

fn one_container(site: &Site) {
    let expected = usize::from(matches!(site.kind(), Kind::Docker | Kind::Podman));
    assert_eq!(site.containers().len(), expected);
}
