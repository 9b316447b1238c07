//! What one command changes is there for the next, and nothing else is.

use std::fs;

use serde_json::json;

use crate::support::{HEX, World, hex, processes_naming, quoted, unique_sleep};

/// Holds everything that ever broke a snapshot.
const AWKWARD: &str = "one\ntwo 'three' \"four\" `id` $(id) ${HOME} \\ } ) ü 漢字 🦀\n\n";

#[test]
fn must_show_state_reaches_a_new_process_byte_for_byte() {
    let world = World::new();
    let first = format!(
        "cd /tmp; export V={}; say() {{ printf %s \"$V\"; }}; shopt -s nullglob",
        quoted(AWKWARD)
    );
    world.terminal(&first).printed("");
    let second = format!("pwd; shopt nullglob; say | {HEX}");
    let expected = format!("/tmp\nnullglob       \ton\n{}", hex(AWKWARD.as_bytes()));
    world.terminal(&second).printed(&expected);
}

#[test]
fn e4_every_byte_survives_in_a_value_whatever_the_locale() {
    for locale in ["C", "C.UTF-8"] {
        let world = World::new().with_variable("LC_ALL", locale);
        let make = "v=; for i in {1..255}; do printf -v c %03o $i; printf -v b \"\\\\$c\"; v+=$b; done; \
                    export V=$v W=$'\\xff\\xfe\\x80 \\xc3' X=$'\\u00fc\\xff\\u6f22'";
        world.terminal(make).printed("");
        let all: Vec<u8> = (1..=255).collect();
        let show = format!("printenv V | {HEX}; echo; printf %s \"$W\" | {HEX}");
        let expected = format!("{}0a\n{}", hex(&all), hex(b"\xff\xfe\x80 \xc3"));
        world.terminal(&show).printed(&expected);
        // And after one more round, when the value only passes through.
        world.terminal("export OTHER=1").printed("");
        world.terminal(&show).printed(&expected);
    }
}

#[test]
fn e4_a_value_of_100_kib_arrives_whole_and_nothing_in_it_is_executed() {
    let world = World::new();
    let make = "export V=$(head -c 102400 /dev/zero | tr '\\0' '(')\"'\\$(touch $HOME/executed)}\"; \
                printf %s \"$V\" | sha256sum";
    let made = world.terminal(make);
    assert_eq!(made.code(), 0, "{}", made.0);
    world
        .terminal("printf %s \"$V\" | sha256sum; printf %s \"$(printenv V)\" | sha256sum")
        .printed(&made.output().repeat(2));
    assert!(!world.user.join("executed").exists());
}

#[test]
fn a_directory_survives_an_exit_with_a_code() {
    let world = World::new();
    let answer = world.terminal("cd /usr; exit 3");
    assert_eq!((answer.code(), answer.cwd()), (3, "/usr"), "{}", answer.0);
    world.terminal("pwd").printed("/usr\n");
}

#[test]
fn directories_with_awkward_names_are_kept() {
    let world = World::new();
    for name in ["a b", "-n", "line\nbreak", "end\n", "'\"$(id)", "ü漢", "~"] {
        let path = world.work.join(name);
        fs::create_dir(&path).unwrap();
        let path = path.to_str().unwrap();
        world
            .terminal(&format!("cd -- {}", quoted(path)))
            .printed("");
        world
            .terminal(&format!("printf %s \"$PWD\" | {HEX}"))
            .printed(&hex(path.as_bytes()));
        // The shell must really be there, not only say so.
        world
            .terminal(&format!("readlink -n /proc/self/cwd | {HEX}"))
            .printed(&hex(path.as_bytes()));
    }
    world
        .terminal(&format!(
            "cd {}/$'\\xff\\xfe' 2>/dev/null || mkdir {0}/$'\\xff\\xfe' && cd {0}/$'\\xff\\xfe'",
            quoted(world.work.to_str().unwrap())
        ))
        .printed("");
    let mut raw = world.work.to_str().unwrap().as_bytes().to_vec();
    raw.extend(b"/\xff\xfe");
    world
        .terminal(&format!("printf %s \"$PWD\" | {HEX}"))
        .printed(&hex(&raw));
}

#[test]
fn a_link_is_kept_as_the_way_it_was_entered() {
    let world = World::new();
    std::os::unix::fs::symlink("/usr/share", world.work.join("link")).unwrap();
    let link = world.work.join("link");
    let link = link.to_str().unwrap();
    world.terminal("cd link").printed("");
    world
        .terminal("pwd; pwd -P")
        .printed(&format!("{link}\n/usr/share\n"));
}

#[test]
fn an_exit_trap_of_the_command_runs_once_and_the_directory_is_kept() {
    let world = World::new();
    world
        .terminal("trap 'echo bye' EXIT; cd /usr")
        .printed("bye\n");
    world.terminal("pwd").printed("/usr\n");
}

#[test]
fn an_exit_trap_with_an_exit_leaves_the_last_good_state() {
    // The one case in which a shell that ends by itself cannot be seen into: the command's own
    // trap took the place of ours, and `exit` skips what would come after it.
    let world = World::new();
    world.terminal("cd /usr; export A=1").printed("");
    let answer = world.terminal("trap 'echo bye' EXIT; cd /; export A=2; exit 3");
    assert_eq!((answer.output(), answer.code()), ("bye\n", 3));
    world.terminal("pwd; echo $A").printed("/usr\n1\n");
}

#[test]
fn a_debug_trap_neither_shows_our_commands_nor_loses_the_state() {
    let world = World::new();
    world
        .terminal("trap 'echo dbg' DEBUG; cd /usr; export A=1")
        .printed("dbg\ndbg\n");
    world.terminal("pwd; echo $A").printed("/usr\n1\n");
}

#[test]
fn an_err_trap_and_a_return_trap_lose_nothing() {
    let world = World::new();
    let answer =
        world.terminal("set -E; trap 'echo err' ERR; trap 'echo ret' RETURN; cd /usr; false");
    assert_eq!((answer.output(), answer.code()), ("err\n", 1));
    world.terminal("pwd").printed("/usr\n");
}

#[test]
fn e5_a_shell_that_ends_itself_never_prints_its_variables() {
    for end in [
        "set -e; false",
        "set -eu; ls /nonexistent",
        "echo ${x[a b]}",
        "set -e; (exit 3)",
        "set -e; f() { false; }; f",
    ] {
        let world = World::new().with_variable("HARMLESS", "very-private");
        let command = format!("cd /usr; export TOKEN=very-secret; {end}");
        let answer = world.terminal(&command);
        assert!(
            !answer.output().contains("very-"),
            "`{end}` in a call: {}",
            answer.output()
        );
        let ran = world.exoshell(["run", "--task", "default", &command]);
        assert!(
            !ran.talk().contains("very-") && !ran.text().contains("very-"),
            "`{end}` in run: {}",
            ran.talk()
        );
        world
            .terminal("pwd; [ $TOKEN = very-secret ] && echo kept; echo $TOKEN")
            .printed("/usr\nkept\n[redacted: secret value]\n");
    }
}

#[test]
fn the_only_trap_of_ours_is_one_short_line() {
    // State after `exit N` needs an EXIT trap; a command that lists traps sees that one.
    let world = World::new();
    let answer = world.terminal("trap -p; trap - EXIT; trap -p");
    assert_eq!(answer.output().lines().count(), 1, "{}", answer.0);
    assert!(answer.output().len() < 100, "{}", answer.0);
}

/// Runs a command that breaks its shell, and asserts that the next call is unharmed.
#[track_caller]
fn breaks_only_itself(command: &str) {
    let world = World::new();
    world
        .terminal("cd /usr; export KEPT=yes; ok() { echo ok; }")
        .printed("");
    let broken = world.call(&json!({"command": command, "timeout": 10}));
    assert_eq!(broken.status(), "", "{command}: {}", broken.0);
    let next = world.terminal("ok; echo \"$KEPT\"; pwd; true");
    assert_eq!(
        (next.output(), next.code()),
        ("ok\nyes\n/usr\n", 0),
        "after `{command}`, which gave {}",
        broken.0
    );
}

#[test]
fn a_command_that_ends_its_shell_does_no_harm() {
    for command in [
        "exit 7",
        "set -e; false; echo no",
        "set -u; echo $nope; echo no",
        "set -eu; set -o pipefail; false | true",
        "exec true",
        "exec /nonexistent",
        "kill -9 $$",
        "kill -TERM $$",
        "kill -SEGV $$",
        "set -t; true",
        "set -n; true",
        "set -x; set -v; true",
    ] {
        breaks_only_itself(command);
    }
}

#[test]
fn a_command_that_is_not_shell_text_does_no_harm() {
    for command in [
        "if",
        "echo 'open",
        "echo \"open",
        "echo $(open",
        "echo `open",
        "cat <<EOF\nopen",
        ")",
        "}",
        "esac",
        "foo() {",
        "case x in",
        "echo ${x",
        "echo $((1+",
        "{ echo hi",
        "done; echo hi",
    ] {
        breaks_only_itself(command);
    }
}

#[test]
fn a_command_that_turns_the_shell_against_us_does_no_harm() {
    for command in [
        "builtin() { :; }; read() { :; }; eval() { :; }; exec() { :; }; trap() { :; }",
        "export -f ok; builtin() { :; }; export -f builtin",
        "enable -n builtin declare printf shopt",
        "shopt -s expand_aliases; alias builtin=false eval=false exit=false",
        "shopt -s extdebug; trap false DEBUG",
        "unset PATH",
        "readonly PATH HOME PWD",
        "export IFS=a POSIXLY_CORRECT=1",
        "set -o posix",
        "set -- a b c; shift 2",
        "exec 0<&- 1>&- 2>&-",
        "exec 3>&- 4>&- 5>&- 6>&- 7>&- 8>&- 9>&- 10>&- 11>&- 12>&- 13>&-",
        "for f in /proc/$$/fd/*; do n=${f##*/}; eval \"exec $n>&-\"; done",
        "exec 10>/dev/null 6>/dev/null",
        "ulimit -f 0",
        "set -r",
        "trap '' EXIT; trap '' TERM HUP INT PIPE",
        "BASH_EXECUTION_STRING=gotcha; REPLY=m",
        "unset BASH_EXECUTION_STRING; exit 0",
        "printf '\\0END\\0' >&10",
    ] {
        breaks_only_itself(command);
    }
}

#[test]
fn changes_before_the_break_are_kept_where_the_shell_could_still_tell() {
    let world = World::new();
    for (number, end) in [
        "set -e; false",
        "set -u; echo $nope",
        "echo 'open",
        "exit 9",
    ]
    .into_iter()
    .enumerate()
    {
        let command = format!("export N={number}\ncd /usr\n{end}");
        world.terminal(&command);
        world
            .terminal("echo $N; pwd; cd /")
            .printed(&format!("{number}\n/usr\n"));
    }
}

#[test]
fn a_workdir_holds_for_one_command_only() {
    let world = World::new();
    let spaced = world.user.join("x y");
    fs::create_dir(&spaced).unwrap();
    fs::create_dir(world.work.join("below")).unwrap();
    let user = world.user.to_str().unwrap();
    let work = world.work.to_str().unwrap();
    world.terminal("cd /; cd \"$OLDPWD\"").printed("");
    for (workdir, expected) in [
        ("/usr", "/usr".to_owned()),
        ("~", user.to_owned()),
        ("~/x y", format!("{user}/x y")),
        ("below", format!("{work}/below")),
        (".", work.to_owned()),
        ("..", world.root().to_str().unwrap().to_owned()),
    ] {
        let answer = world.call(&json!({"command": "readlink -f .", "workdir": workdir}));
        answer.printed(&format!("{expected}\n"));
        assert_eq!(answer.cwd(), work, "the answer's cwd is the session's");
        world
            .terminal("pwd; echo $OLDPWD")
            .printed(&format!("{work}\n/\n"));
    }
    // Not even a change of directory inside such a command moves the session.
    world
        .call(&json!({"command": "cd /usr/share", "workdir": "/usr"}))
        .printed("");
    world
        .terminal("pwd; echo $OLDPWD")
        .printed(&format!("{work}\n/\n"));
}

#[test]
fn e1_variables_of_a_call_hold_for_one_command_only() {
    let world = World::new();
    world.terminal("export BOTH=session").printed("");
    let arguments = json!({
        "command": "printf '%s|%s|%s' \"$ONLY\" \"$BOTH\" \"$(printenv ONLY)\"",
        "env": {"ONLY": AWKWARD, "BOTH": "call"},
    });
    let answer = world.call(&arguments);
    let awkward = AWKWARD;
    answer.printed(&format!(
        "{awkward}|call|{}",
        awkward.trim_end_matches('\n')
    ));
    world
        .terminal("echo \"${ONLY-unset} $BOTH\"")
        .printed("unset session\n");
}

#[test]
fn e1_reset_mode_starts_every_call_afresh() {
    let world = World::new().with_config("[terminal]\npersist = \"reset\"\n");
    world.terminal("cd /usr; export A=1").printed("");
    let work = world.work.to_str().unwrap().to_owned();
    world
        .terminal("pwd; echo ${A-unset}")
        .printed(&format!("{work}\nunset\n"));
}

#[test]
fn the_previous_directory_is_known_to_the_next_call() {
    let world = World::new();
    world.terminal("cd /usr; cd /tmp").printed("");
    world.terminal("cd -").printed("/usr\n");
    world.terminal("cd - && pwd").printed("/tmp\n/tmp\n");
}

#[test]
fn options_are_carried_over_but_never_those_that_would_break_the_next_call() {
    let world = World::new();
    world
        .terminal("set -o noglob -o pipefail; set -euxv; shopt -s dotglob globstar")
        .code();
    let show = "set +o | grep -E 'errexit|nounset|xtrace|verbose|noexec|noglob|pipefail'; \
                shopt -q dotglob && shopt -q globstar && echo on";
    world.terminal(show).printed(
        "set +o errexit\nset +o noexec\nset -o noglob\nset +o nounset\nset -o pipefail\n\
         set +o verbose\nset +o xtrace\non\n",
    );
    world
        .terminal("set +o noglob +o pipefail; shopt -u dotglob")
        .printed("");
    world
        .terminal("set -o | grep -E 'noglob|pipefail'; shopt dotglob globstar; true")
        .printed("noglob         \toff\npipefail       \toff\ndotglob        \toff\nglobstar       \ton\n");
}

#[test]
fn aliases_are_kept_and_expand_where_that_was_asked_for() {
    let world = World::new();
    world
        .terminal("shopt -s expand_aliases; alias hi='echo \"it'\\''s\"'; alias -- -x='echo dash'; alias un=true; unalias un")
        .printed("");
    world
        .terminal("hi; -x; alias un 2>/dev/null || echo none")
        .printed("it's\ndash\nnone\n");
    world
        .terminal("unalias hi; shopt -u expand_aliases")
        .printed("");
    world
        .terminal("alias; shopt expand_aliases; true")
        .printed("alias -- -x='echo dash'\nexpand_aliases \toff\n");
}

#[test]
fn the_umask_is_carried_over() {
    let world = World::new();
    world.terminal("umask 077").printed("");
    world
        .terminal("umask; touch f; stat -c %a f")
        .printed("0077\n600\n");
}

#[test]
fn functions_are_kept_whole_whatever_is_in_them() {
    let world = World::new();
    let define = r#"
first() { cat <<'E'
text
E
}
second() { echo "real $1"; local x='a
b'; echo "$x"; }
exported() { echo "exported $V"; }
sub() ( cd /; pwd )
gone() { :; }
export V=1; export -f exported; unset -f gone
"#;
    world.terminal(define).printed("");
    let expected = "text\nreal x\na\nb\nexported 1\n/\nnone\n";
    let usage = "first; second x; bash -c exported; sub; \
                 declare -F gone || echo none";
    world.terminal(usage).printed(expected);
    world.terminal("export OTHER=1").printed("");
    world.terminal(usage).printed(expected);
    world
        .terminal("export -fn exported; unset -f second")
        .printed("");
    world
        .terminal("bash -c exported 2>/dev/null; declare -F second; exported")
        .printed("exported 1\n");
}

#[test]
fn functions_whose_names_are_no_identifiers_are_kept() {
    let world = World::new();
    world
        .terminal("a-b() { echo one; }; ns::f() { echo two; }; f.g() { echo three; }; cd /usr; export V=1")
        .printed("");
    world
        .terminal("pwd; echo $V; a-b; ns::f; f.g")
        .printed("/usr\n1\none\ntwo\nthree\n");
}

#[test]
fn an_exported_function_costs_no_state() {
    let world = World::new();
    world
        .terminal(
            "a() { echo a; }; b() { echo b; }; c() { echo c; }; export -f a b; cd /usr; export V=1",
        )
        .printed("");
    world
        .terminal("bash -c 'a; b'; c; pwd; echo $V")
        .printed("a\nb\nc\n/usr\n1\n");
}

#[test]
fn e6_an_exported_function_of_a_profile_costs_no_state() {
    let world = World::new();
    fs::write(
        world.user.join(".profile"),
        "a() { echo a; }; b() { echo b; }; export -f a; export V=1\n",
    )
    .unwrap();
    let answer = world.terminal("a; b; echo $V; cd /usr");
    answer.printed("a\nb\n1\n");
    assert_eq!(answer.hint(), "");
    world.terminal("pwd").printed("/usr\n");
}

#[test]
fn a_function_with_a_redirection_costs_no_state() {
    let world = World::new();
    world
        .terminal("a() { echo lost; } >/dev/null; b() { echo b; }; c() ( echo c ) 2>&1; cd /usr; export V=1")
        .printed("");
    world
        .terminal("a; b; c; pwd; echo $V")
        .printed("b\nc\n/usr\n1\n");
}

#[test]
fn a_function_whose_heredoc_looks_like_a_function_is_kept() {
    let world = World::new();
    world
        .terminal("a() { cat <<E\n}\nb () \nE\n}\nb() { echo real; }\nc() { cat <<E\n}\nE\n}")
        .printed("");
    world.terminal("a; b; c").printed("}\nb () \nreal\n}\n");
    world.terminal("export OTHER=1").printed("");
    world.terminal("a; b; c").printed("}\nb () \nreal\n}\n");
}

#[test]
fn exported_arrays_are_kept() {
    let world = World::new();
    world
        .terminal("declare -ax A=(one 'two \")' $'three\\n' [7]='] x'); declare -Ax M=([k]='v ])' ['a b']=$'\\xff'); cd /usr")
        .printed("");
    let show = format!(
        "echo \"${{#A[@]}} ${{A[1]}} ${{A[7]}}\"; echo \"${{M[k]}}\"; printf %s \"${{M[a b]}}\" | {HEX}; pwd"
    );
    for _ in 0..3 {
        world
            .terminal(&show)
            .printed("4 two \") ] x\nv ])\nff/usr\n");
    }
}

#[test]
fn variables_that_are_not_plain_text_are_kept() {
    let world = World::new();
    world
        .terminal("declare -ix N=5; declare -rx R='read $only'; declare -ux U=up; export E=; export UNSET")
        .printed("");
    let show = "N+=1; echo $N; echo \"$R\"; (R=x) 2>/dev/null || echo readonly; U=abc; echo $U; \
                echo \"<${E-unset}> <${UNSET-unset}>\"; declare -p UNSET";
    let expected = "6\nread $only\nreadonly\nABC\n<> <unset>\ndeclare -x UNSET\n";
    world.terminal(show).printed(expected);
    world.terminal("N=5; export OTHER=1; U=up").printed("");
    world.terminal(show).printed(expected);
}

#[test]
fn what_is_unset_stays_unset() {
    let world = World::new().with_variable("CALLER", "1");
    world
        .terminal("unset CALLER; export A=1; f() { :; }")
        .printed("");
    world
        .terminal("unset A; unset -f f; echo ${CALLER-unset}")
        .printed("unset\n");
    world
        .terminal("echo ${A-unset} ${CALLER-unset}; declare -F")
        .printed("unset unset\n");
}

#[test]
fn a_function_exported_by_the_caller_can_be_unset_for_good() {
    let world = World::new().with_variable("BASH_FUNC_greet%%", "() { echo hello; }");
    world.terminal("greet").printed("hello\n");
    world.terminal("unset -f greet").printed("");
    world
        .terminal("greet 2>/dev/null || echo none")
        .printed("none\n");
    world
        .terminal("bash -c greet 2>/dev/null || echo none")
        .printed("none\n");
}

#[test]
fn no_variable_of_the_caller_is_lost_on_the_way_through_the_login_shell() {
    let large = "x".repeat(120_000);
    let world = World::new()
        .with_variable("LARGE", &large)
        .with_variable("PS4", "> ")
        .with_variable("BASH_COMPAT", "5.0")
        .with_variable("EMPTY", "");
    world
        .terminal("echo ${#LARGE} $(printenv LARGE | wc -c); printenv PS4 BASH_COMPAT; echo ${EMPTY-unset}")
        .printed("120000 120001\n> \n5.0\n\n");
}

#[test]
fn variables_whose_names_no_shell_can_hold_reach_the_command() {
    let world = World::new().with_variable("odd.name", "kept");
    world.terminal("printenv odd.name").printed("kept\n");
    world.terminal("printenv odd.name").printed("kept\n");
}

#[test]
fn plain_shell_variables_end_with_their_command() {
    let world = World::new();
    world.terminal("x=1; export Y=2; export -n Y").printed("");
    world
        .terminal("echo ${x-unset} ${Y-unset}")
        .printed("unset unset\n");
}

#[test]
fn bash_env_is_not_run_for_every_command() {
    let world = World::new();
    let file = world.work.join("env.sh");
    fs::write(&file, "echo polluted >> \"$HOME/runs\"\n").unwrap();
    let world = world
        .with_variable("BASH_ENV", &file)
        .with_variable("ENV", &file);
    world.terminal("echo one").printed("one\n");
    world.terminal("echo two").printed("two\n");
    assert!(!world.user.join("runs").exists());
    // A bash that the command starts itself reads it, as always.
    world
        .terminal("bash -c 'echo three'; wc -l < ~/runs")
        .printed("three\n1\n");
}

#[test]
fn e3_a_directory_that_is_gone_is_said_once_and_the_call_works() {
    let world = World::new();
    world.terminal("mkdir -p deep/er && cd deep/er").printed("");
    fs::remove_dir_all(world.work.join("deep")).unwrap();
    let work = world.work.to_str().unwrap();
    let answer = world.terminal("pwd");
    answer.printed(&format!("{work}\n"));
    assert!(
        answer.hint().contains("deep/er") && answer.hint().contains("does not exist"),
        "{}",
        answer.0
    );
    let answer = world.terminal("pwd");
    answer.printed(&format!("{work}\n"));
    assert_eq!(answer.hint(), "");
}

#[test]
fn e3_a_directory_removed_and_made_anew_is_entered_anew() {
    let world = World::new();
    world.terminal("mkdir d; cd d").printed("");
    world.terminal("true").printed("");
    fs::remove_dir(world.work.join("d")).unwrap();
    fs::create_dir(world.work.join("d")).unwrap();
    fs::write(world.work.join("d/new"), "").unwrap();
    world.terminal("ls").printed("new\n");
}

#[test]
fn e3_a_command_may_remove_its_own_directory() {
    let world = World::new();
    world.terminal("mkdir d; cd d; rmdir ../d").printed("");
    let answer = world.terminal("cd /usr && pwd");
    answer.printed("/usr\n");
}

#[test]
fn e5_two_tasks_never_see_each_other() {
    let world = World::new();
    world
        .task(
            "a",
            "cd /usr; export A=1; f() { echo f; }; alias x=y; umask 077",
        )
        .printed("");
    world.task("b", "cd /tmp; export B=1").printed("");
    let show = "pwd; echo ${A-unset} ${B-unset}; declare -F; alias; umask";
    world
        .task("a", show)
        .printed("/usr\n1 unset\ndeclare -f f\nalias x='y'\n0077\n");
    world.task("b", show).printed("/tmp\nunset 1\n0022\n");
    // One-shot runs see neither.
    let ran = world.exoshell(["run", "pwd; echo ${A-unset} ${B-unset}"]);
    assert_eq!(
        ran.text(),
        format!("{}\nunset unset\n", world.work.display())
    );
}

#[test]
fn e5_no_variable_function_or_trap_of_ours_is_in_a_command() {
    let world = World::new();
    // What a plain bash has of itself, plus what keeps programs from waiting for a person.
    let plain = std::process::Command::new("bash")
        .args(["-c", "compgen -v; compgen -e"])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", &world.user)
        .output()
        .unwrap();
    let plain = String::from_utf8(plain.stdout).unwrap();
    let quiet = ["DEBIAN_FRONTEND", "EDITOR", "PYTHONIOENCODING", "VISUAL"];
    for _ in 0..3 {
        let answer = world.terminal("compgen -v; compgen -e; declare -F; alias");
        let strange: Vec<&str> = answer
            .output()
            .lines()
            .filter(|name| !plain.lines().any(|known| known == *name))
            .filter(|name| !quiet.contains(name))
            .filter(|name| !["PIPESTATUS", "BASH_EXECUTION_STRING", "OLDPWD", "_"].contains(name))
            .filter(|name| !name.starts_with("GIT_") && !name.ends_with("PAGER"))
            .collect();
        assert_eq!(strange, [""; 0], "{}", answer.output());
        assert!(!answer.output().contains("EXOSHELL"));
    }
    world
        .terminal("echo $# \"$*\" \"$!\"; jobs")
        .printed("0  \n");
}

#[test]
fn e5_credentials_and_our_own_settings_do_not_reach_commands() {
    let world = World::new()
        // What is hidden in the output could have reached the command all the same.
        .with_config("[secrets]\nredact = false\n")
        .with_variable("ANTHROPIC_API_KEY", "hidden-1")
        .with_variable("OPENAI_API_KEY", "hidden-2")
        .with_variable("SUDO_PASSWORD", "hidden-3")
        .with_variable("EXOSHELL_SESSION_KEY", "hidden-4")
        .with_variable("HARMLESS", "shown");
    let answer = world.terminal("env");
    assert!(answer.output().contains("HARMLESS=shown"));
    assert!(
        !answer.output().contains("hidden-") && !answer.output().contains("EXOSHELL"),
        "{}",
        answer.output()
    );
    let ran = world.exoshell(["run", "env"]);
    assert!(
        !ran.text().contains("hidden-") && !ran.text().contains("EXOSHELL"),
        "{}",
        ran.text()
    );
}

#[test]
fn state_is_kept_in_memory_and_never_on_disk() {
    let world = World::new();
    world
        .terminal("export TOKEN=very-secret-4711; cd /usr")
        .printed("");
    world.terminal("true").printed("");
    let found = std::process::Command::new("grep")
        .args(["-rl", "very-secret-4711"])
        .arg(&world.home)
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
}

#[test]
fn e6_the_path_is_the_login_shells_and_its_aliases_are_off() {
    let world = World::new();
    let profile = "export PATH=\"$HOME/mine:$PATH\"\nexport FROM_PROFILE='a b'\nalias ls='echo aliased'\n\
                   shopt -s expand_aliases nullglob\nhelper() { __inner; }\n__inner() { echo inner; }\n\
                   set -u\necho noise; echo more noise >&2\n";
    fs::write(world.user.join(".profile"), profile).unwrap();
    let login = std::process::Command::new("bash")
        .args(["-lc", "echo $PATH"])
        .env_clear()
        .env("PATH", crate::support::PATH)
        .env("HOME", &world.user)
        .output()
        .unwrap();
    let login = String::from_utf8(login.stdout).unwrap();
    let path = login.lines().last().unwrap();
    world
        .terminal("echo \"$PATH\"; echo $FROM_PROFILE; alias; helper; ls -d /usr; echo ${nope-}")
        .printed(&format!("{path}\na b\ninner\n/usr\n\n"));
    // One-shot runs are like `bash -c`: the caller's environment as it is.
    let ran = world.exoshell(["run", "echo \"$PATH\" $FROM_PROFILE"]);
    assert_eq!(ran.text(), format!("{}\n", crate::support::PATH));
}

#[test]
fn e6_a_login_shell_that_hangs_is_given_up_and_said_once() {
    let world = World::new().with_config("[terminal]\nlogin_timeout_seconds = 1\n");
    let sleep = unique_sleep();
    fs::write(world.user.join(".profile"), format!("sleep {sleep}\n")).unwrap();
    let answer = world.terminal("cd /usr; echo ok");
    answer.printed("ok\n");
    assert!(
        answer.hint().contains("login shell took over 1 s"),
        "{}",
        answer.0
    );
    assert_eq!(processes_naming(&sleep), []);
    let answer = world.terminal("pwd");
    answer.printed("/usr\n");
    assert_eq!(answer.hint(), "");
}

#[test]
fn e6_a_login_shell_that_exits_fails_or_reads_is_survived_and_said_once() {
    for profile in [
        "exit 1\n",
        "kill -9 $$\n",
        "exec true\n",
        "fi\n",
        "read x; cat\n",
        "set -e; false\n",
    ] {
        let world = World::new().with_config("[terminal]\nlogin_timeout_seconds = 10\n");
        fs::write(world.user.join(".profile"), profile).unwrap();
        let answer = world.terminal("cd /usr; echo ok");
        answer.printed("ok\n");
        let harmless = matches!(profile, "fi\n" | "read x; cat\n");
        assert_eq!(
            answer.hint().contains("login shell"),
            !harmless,
            "{profile}: {}",
            answer.0
        );
        let answer = world.terminal("pwd");
        answer.printed("/usr\n");
        assert_eq!(answer.hint(), "");
    }
}

#[test]
fn e6_what_a_profile_starts_does_not_hold_the_call_and_ends_with_the_session() {
    let world = World::new();
    let sleep = unique_sleep();
    fs::write(world.user.join(".profile"), format!("sleep {sleep} &\n")).unwrap();
    world.terminal("echo ok").printed("ok\n");
    assert_eq!(processes_naming(&sleep).len(), 1);
    world.clean_up();
    assert_eq!(processes_naming(&sleep), []);
}
