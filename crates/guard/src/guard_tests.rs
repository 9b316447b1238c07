use super::*;
use crate::{Action, CommandRule, Mode, PathRule};

fn context() -> Context {
    Context::new("/home/ada/work/project", "/home/ada")
}

fn verdict(command: &str) -> Verdict {
    Guard::new().check(command, &context()).verdict
}

/// Checks every line of a table and lists all that are wrong.
fn all(table: &str, expected: Verdict) {
    let commands = table
        .lines()
        .filter(|line| !line.starts_with("# Commands") && !line.is_empty());
    let wrong: Vec<String> = commands
        .map(|line| line.replace('⏎', "\n"))
        .filter_map(|command| {
            let finding = Guard::new().check(&command, &context());
            (finding.verdict != expected).then(|| {
                format!(
                    "{}: {command:?} {} {}",
                    finding.verdict, finding.rule, finding.why
                )
            })
        })
        .collect();
    assert_eq!(wrong, Vec::<String>::new(), "expected {expected}");
}

#[test]
fn what_destroys_the_machine_is_blocked_however_it_is_written() {
    all(include_str!("examples/block.txt"), Verdict::Block);
}

#[test]
fn what_destroys_less_is_asked_about() {
    all(include_str!("examples/ask.txt"), Verdict::Ask);
}

#[test]
fn what_agents_do_all_day_passes() {
    all(include_str!("examples/allow.txt"), Verdict::Allow);
}

#[test]
fn the_span_points_at_the_cause() {
    let command = "ls && rm -rf build";
    let finding = Guard::new().check(command, &context());
    assert_eq!(finding.span.of(command), "build");
    let command = "bash -c 'cd x; rm -rf /'";
    let finding = Guard::new().check(command, &context());
    assert_eq!(finding.span.of(command), "'cd x; rm -rf /'");
}

#[test]
fn the_reason_is_a_sentence_with_the_thing_in_it() {
    let finding = Guard::new().check("rm -rf ~/old", &context());
    assert_eq!(finding.why, "It deletes a whole directory: /home/ada/old.");
}

#[test]
fn the_directory_a_command_starts_in_counts() {
    let guard = Guard::new();
    assert_eq!(
        guard
            .check("rm -rf *", &Context::new("/", "/home/ada"))
            .verdict,
        Verdict::Block
    );
    assert_eq!(
        guard
            .check("rm -rf *", &Context::new("/home/ada", "/home/ada"))
            .verdict,
        Verdict::Block
    );
    assert_eq!(
        guard
            .check("rm -rf ../..", &Context::new("/home/ada/x", "/home/ada"))
            .verdict,
        Verdict::Block
    );
    assert_eq!(guard.check("rm -rf *", &context()).verdict, Verdict::Ask);
    assert_eq!(
        guard.check("rm -rf *", &Context::default()).verdict,
        Verdict::Ask
    );
}

#[test]
fn a_user_who_is_root_may_work_in_their_home() {
    let root = Context::new("/root/project", "/root");
    assert_eq!(
        Guard::new().check("echo x > notes.md", &root).verdict,
        Verdict::Allow
    );
    assert_eq!(
        Guard::new().check("rm -rf /root", &root).verdict,
        Verdict::Block
    );
}

#[test]
fn bytes_that_are_no_text_are_asked_about() {
    let finding = Guard::new().check_bytes(b"ls \xff", &context());
    assert_eq!(
        (finding.verdict, finding.rule, finding.span),
        (Verdict::Ask, "not-text", Span::new(3, 4))
    );
    assert_eq!(
        Guard::new().check_bytes(b"ls", &context()).verdict,
        Verdict::Allow
    );
}

#[test]
fn characters_that_are_none_are_asked_about() {
    assert_eq!(verdict("echo \u{10FFFF}"), Verdict::Ask);
    assert_eq!(verdict("echo \u{FFFE}"), Verdict::Ask);
}

#[test]
fn what_is_too_long_is_asked_about() {
    let long = "x".repeat(MAX_COMMAND + 1);
    assert_eq!(Guard::new().check(&long, &context()).rule, "too-large");
}

#[test]
fn a_long_data_file_is_no_reason_to_ask() {
    let body = "some line of text\n".repeat(3_000);
    assert_eq!(
        verdict(&format!("cat > notes.txt <<'EOF'\n{body}EOF\n")),
        Verdict::Allow
    );
}

#[test]
fn nesting_without_end_is_answered() {
    for (open, close) in [
        ("$(", ")"),
        ("`", "`"),
        ("( ", " )"),
        ("{ ", "; }"),
        ("$((", "))"),
        ("((", "))"),
        ("${x:-", "}"),
        ("<(", ")"),
        ("a[", "]=1"),
        ("\"$(", ")\""),
        ("if true; then ", "; fi"),
        ("eval ", ""),
        ("sudo ", ""),
        ("{a,", "}"),
        ("x=(", ")"),
        ("[[ ", " ]]"),
        ("@(", ")"),
        ("<<E ", ""),
        ("case x in x) ", ";; esac"),
    ] {
        for depth in [10, 50, 200, 5_000] {
            let command = format!("echo {}ls{}", open.repeat(depth), close.repeat(depth));
            let finding = Guard::new().check(&command, &context());
            assert!(finding.span.end <= command.len(), "{open} {depth}");
            let unclosed = format!("echo {}", open.repeat(depth));
            Guard::new().check(&unclosed, &context());
        }
    }
    assert_eq!(
        verdict(&format!("echo {}ls{}", "$(".repeat(200), ")".repeat(200))),
        Verdict::Ask
    );
}

#[test]
fn values_that_double_do_not_grow_without_end() {
    let doubling = format!("a=x; {} echo $a", "a=$a$a;".repeat(200));
    assert!(verdict(&doubling) <= Verdict::Ask);
    let loops = format!(
        "{} rm x {}",
        "for i in 1 2 3 4 5 6 7 8; do ".repeat(12),
        "; done".repeat(12)
    );
    assert_eq!(verdict(&loops), Verdict::Ask);
    let braces = format!("echo {}", "{a,b}".repeat(30));
    assert!(verdict(&braces) <= Verdict::Ask);
    let functions: Vec<String> = (0..200)
        .map(|n| format!("f{n}() {{ f{m}; f{m}; }};", m = n + 1))
        .collect();
    let functions = functions.join(" ");
    assert!(verdict(&format!("{functions} f0")) <= Verdict::Ask);
}

#[test]
fn every_span_lies_in_the_text() {
    for table in [
        include_str!("examples/block.txt"),
        include_str!("examples/ask.txt"),
    ] {
        for line in table.lines() {
            let command = line.replace('⏎', "\n");
            let span = Guard::new().check(&command, &context()).span;
            assert!(
                span.start <= span.end && command.get(span.start..span.end).is_some(),
                "{command}"
            );
        }
    }
}

#[test]
fn code_out_of_another_text_points_at_where_it_stands() {
    let span = |command: &'static str| Guard::new().check(command, &context()).span.of(command);
    assert_eq!(span("echo é `rm -rf x`"), "`rm -rf x`");
    assert_eq!(span("eval 'f(){ rm -rf /opt/x; }'; f"), "f");
    assert_eq!(span("`\u{280}`\u{280}"), "`\u{280}`");
    assert_eq!(span("é=1; a['$(rm -rf x)']=1"), "a['$(rm -rf x)']=1");
}

#[test]
fn the_users_rules_deny_ask_and_allow() {
    let rules = UserRules {
        commands: vec![
            CommandRule::new("git push", Action::Deny),
            CommandRule::new("npm install", Action::Ask),
            CommandRule::new("docker restart web", Action::Allow),
            CommandRule::new("rm -rf", Action::Allow),
        ],
        paths: vec![PathRule {
            path: "/srv/data".to_owned(),
            action: Action::Deny,
        }],
    };
    let guard = Guard::with_rules(rules);
    let verdict = |command: &str| guard.check(command, &context()).verdict;
    assert_eq!(verdict("git push"), Verdict::Block);
    assert_eq!(verdict("cd x && sudo nice git push origin"), Verdict::Block);
    assert_eq!(verdict("sh -c '/usr/bin/git push'"), Verdict::Block);
    assert_eq!(verdict("git pull"), Verdict::Allow);
    assert_eq!(verdict("npm install x"), Verdict::Ask);
    assert_eq!(verdict("docker restart web"), Verdict::Allow);
    assert_eq!(
        verdict("docker restart web; docker restart db"),
        Verdict::Ask
    );
    assert_eq!(
        verdict("docker restart web $(git reset --hard)"),
        Verdict::Ask
    );
    assert_eq!(verdict("docker restart web > /etc/x"), Verdict::Ask);
    assert_eq!(verdict("rm -rf build"), Verdict::Allow);
    assert_eq!(verdict("rm -rf /"), Verdict::Block);
    assert_eq!(verdict("./rm -rf build"), Verdict::Ask);
    assert_eq!(verdict("echo x > /srv/data/y"), Verdict::Block);
    assert_eq!(verdict("cat /srv/data/y"), Verdict::Allow);
    assert_eq!(
        guard.check_write("/srv/data/y", &context()).rule,
        "user-deny"
    );
}

#[test]
fn writes_of_tools_are_asked_about_where_programs_trust_files() {
    let guard = Guard::new();
    let mut context = context();
    context.controls.push("/var/exo".to_owned());
    let rule = |path: &str| guard.check_write(path, &context).rule;
    assert_eq!(rule("src/main.rs"), "");
    assert_eq!(rule("/tmp/x"), "");
    assert_eq!(rule("/etc/hosts"), "system-write");
    assert_eq!(rule("~/.ssh/config"), "user-settings");
    assert_eq!(rule("../../.bashrc"), "user-settings");
    assert_eq!(rule("/var/exo/config.toml"), "own-controls");
    assert_eq!(rule("~/.config/exoshell/config.toml"), "own-controls");
    assert!(guard.protects("/dev/sda", &context));
}

#[test]
fn paths_are_resolved_as_commands_see_them() {
    assert_eq!(
        resolve("../x", &context()).as_deref(),
        Some("/home/ada/work/x")
    );
    assert_eq!(
        resolve("~/x/./y", &context()).as_deref(),
        Some("/home/ada/x/y")
    );
}

#[test]
fn the_gravest_finding_is_shown_and_all_are_listed() {
    let finding = Guard::new().check("sh -c 'git push --force; rm -rf build'", &context());
    assert_eq!(finding.category, Category::GitDestructive);
    let keys: Vec<String> = finding.keys.iter().map(ToString::to_string).collect();
    assert_eq!(
        keys,
        [
            "shell-exec:none",
            "git-destructive:remote",
            "recursive-delete:workspace"
        ]
    );
    assert_eq!(Mode::Workspace.decide(&finding), crate::Decision::Ask);
}

#[test]
fn in_a_place_to_throw_away_only_the_users_own_rules_count() {
    let rules = UserRules {
        commands: vec![
            CommandRule::new("git push", Action::Deny),
            CommandRule::new("make", Action::Ask),
        ],
        paths: Vec::new(),
    };
    let guard = Guard::with_rules(rules);
    let context = Context::new("/w", "/root");
    let verdict = |command: &str| guard.check_user_rules(command, &context).verdict;
    assert_eq!(verdict("rm -rf /"), Verdict::Allow);
    assert_eq!(
        verdict("rm -rf /; bash -c 'git push origin'"),
        Verdict::Block
    );
    assert_eq!(verdict("docker run x git push"), Verdict::Block);
    assert_eq!(verdict("make all"), Verdict::Ask);
    assert_eq!(verdict("echo 'git push'"), Verdict::Allow);
    let padded = format!("#{}\ngit push", "x".repeat(MAX_COMMAND));
    assert_eq!(verdict(&padded), Verdict::Ask);
    let free = Guard::new();
    assert_eq!(
        free.check_user_rules(&padded, &context).verdict,
        Verdict::Allow
    );
}

#[test]
fn letters_of_several_bytes_break_no_option() {
    for command in ["ruby -\u{202e}pp.rb", "perl -\u{e9}x y", "ruby -\u{e9}"] {
        let _ = verdict(command);
    }
}

fn runs_sudo(command: &str) -> bool {
    Guard::new().runs_sudo(command, &context())
}

#[test]
fn sudo_is_found_wherever_the_shell_would_run_it() {
    for command in [
        "sudo ls",
        "/usr/bin/sudo ls",
        "cd /tmp && sudo ls",
        "true; sudo ls",
        "echo x | sudo tee /etc/motd",
        "if true; then sudo ls; fi",
        "{ sudo ls; }",
        "(sudo ls) &",
        "! sudo ls",
        "time sudo ls",
        "env A=1 sudo ls",
        "A=1 nice -n 5 sudo -u bob ls",
        "bash -c 'sudo ls'",
        "bash <<'E'\nsudo ls\nE",
        "f() { sudo ls; }; f",
        "echo $(sudo id -u)",
        "echo a b | xargs -n 1 sudo touch",
        "find . -exec sudo chown root {} +",
        "su''do ls",
        "s=sudo; $s ls",
        "sudo -n true || sudo ls",
        "sudo -v",
        "sudo -l",
        "sudo -k ls",
        "sudo -i",
        "sudo -E -H ls",
        "sudo -u bob -- ls -n",
        "timeout 5 sudo ls",
    ] {
        assert!(runs_sudo(command), "{command}");
    }
}

#[test]
fn sudo_is_not_found_where_it_is_a_word_or_does_not_ask() {
    for command in [
        "echo sudo",
        "grep sudo x",
        "grep -rn 'sudo ls' .",
        "visudo",
        "man sudo",
        "which sudo",
        "command -v sudo",
        "apt-get install sudo",
        "ls # sudo ls",
        "cat <<'E'\nsudo ls\nE",
        "echo 'sudo ls' > x.sh",
        "f() { sudo ls; }",
        "git commit -m 'use sudo ls'",
        "sudo -n true",
        "sudo --non-interactive true",
        "sudo -nv && sudo -n ls",
        "echo x | sudo -S ls",
        "sudo -A ls",
        "sudo --askpass ls",
        "sudo -V",
        "sudo --help",
        "sudo -k",
        "sudo -K",
        "ssh host sudo ls",
        "ssh host 'cd x && sudo ls'",
        "docker exec c sudo ls",
        "./sudoku",
        "id -u",
        "",
    ] {
        assert!(!runs_sudo(command), "{command}");
    }
}

#[test]
fn the_largest_numbers_are_only_numbers() {
    for number in [i64::MAX, i64::MIN, i64::MIN + 1] {
        for command in [
            format!("x=abc; echo ${{x:{number}:{number}}} ${{x:1:{number}}} ${{x: {number}}}"),
            format!("a=(x y); echo ${{a[{number}]}} ${{a[@]:{number}:{number}}}; a[{number}]=z"),
            format!("echo {{{number}..{number}}} {{1..{number}}} {{-2147483648..2147483647}}"),
            format!("f() {{ echo ${{{}}}; }}; f a", number.unsigned_abs()),
        ] {
            assert_eq!(verdict(&command), Verdict::Allow, "{command}");
        }
    }
}

#[test]
fn braces_hide_nothing_behind_many_words() {
    let many = "x,".repeat(70);
    let deep = format!("{}rm,-rf}},/}}{}", "{".repeat(15), ",x}".repeat(13));
    assert_eq!(verdict("echo {1..9}{1..9}$(rm -rf /)"), Verdict::Block);
    assert_eq!(
        verdict("rm -rf x{1..9}{1..9}{/../../../../../../..,}"),
        Verdict::Block
    );
    for command in [
        format!("echo {{{many}$(reboot)}}"),
        format!("{{rm,-rf,/,{many}x}}"),
        format!("{{rm,-rf,/,{}}}", "x".repeat(20_000)),
        deep,
    ] {
        assert_ne!(verdict(&command), Verdict::Allow, "{command}");
    }
    for command in [
        "mkdir -p part{1..500}/{a..z}",
        "touch {1..9}{1..9}.{txt,md}",
        "echo {a,b}{1..99}",
    ] {
        assert_eq!(verdict(command), Verdict::Allow, "{command}");
    }
}

#[test]
fn what_is_left_of_a_long_loop_is_not_forgotten() {
    let many = "ls ".repeat(9);
    let lines = "ls\n".repeat(9);
    let words = "x ".repeat(300);
    for command in [
        format!("for c in {many} reboot; do $c; done"),
        format!("printf '{lines}reboot\\n' | while read -r c; do $c; done"),
        format!("printf '{lines}reboot\\n' | xargs -I{{}} sh -c '{{}}'"),
        format!("echo {words} /etc/shadow | xargs sh -c 'eval \"$*\"'"),
        format!("a=({words} reboot); ${{a[300]}}"),
        "a[300]=reboot; ${a[300]}".to_owned(),
        format!("set -- {} reboot; ${{1201}}", "x ".repeat(1200)),
    ] {
        assert_ne!(verdict(&command), Verdict::Allow, "{command}");
    }
    for command in [
        format!("for f in {words}; do wc -l \"$f\"; done"),
        format!("a=({words}); echo \"${{a[@]}}\" \"${{#a[@]}}\""),
        format!("git add {words}"),
    ] {
        assert_eq!(verdict(&command), Verdict::Allow, "{command}");
    }
}

/// Returns the fuel that a text takes when it is repeated.
fn fuel(unit: &str, times: usize) -> Option<u32> {
    let (context, rules) = (context(), UserRules::default());
    Run::new(&context, &rules).fuel_used(&unit.repeat(times))
}

#[test]
fn work_grows_with_the_length_of_a_text_or_its_fuel_runs_out() {
    for unit in [
        "a;",
        "a|",
        "a&",
        "a>b;",
        "$a ",
        "$(a)",
        "echo {a,b}{c,d};",
        "x=1;",
        "cd ..;cat x;",
        "git status --short; ls -la src | head -n 5\n",
        "for i in 1 2 3;do for j in 1 2 3;do a;done;done;",
        "bash -c 'sh -c \"eval \\\"ls; ls\\\"\"';",
        "f(){ a;};f;",
        "/*/?[a-z]*/* ",
    ] {
        let times = 2048 / unit.len();
        let (once, twice) = (fuel(unit, times), fuel(unit, times * 2));
        let (Some(once), Some(twice)) = (once, twice) else {
            panic!("4 KiB of {unit:?} take more fuel than there is");
        };
        // Charges are rounded, which is worth a hundredth; what grows faster is worth a double.
        let limit = once * 2 + once / 100 + 64;
        assert!(twice <= limit, "{unit:?}: {once}, then {twice}");
    }
}

#[test]
fn what_grows_from_command_to_command_uses_up_its_fuel() {
    for unit in [
        "set -- a $@;",
        "x=a$x;echo $x;",
        "x=$x$x;",
        "x+=aaaaaaaa;",
        "echo $x >f;x=$(cat f)$(cat f)a;",
        "cd a;",
        "a[x]=$b;",
        "a+=(b);",
    ] {
        let finding = Guard::new().check(&unit.repeat(MAX_COMMAND / unit.len()), &context());
        assert_eq!(finding.verdict, Verdict::Ask, "{unit:?}");
        assert_eq!(fuel(unit, MAX_COMMAND / unit.len()), None, "{unit:?}");
    }
    // Many words in wrappers that each look at all of them.
    for unit in ["xargs ", "sudo ", "$a "] {
        let command = unit.repeat(MAX_COMMAND / unit.len());
        assert_eq!(verdict(&command), Verdict::Ask, "{unit:?}");
    }
    // All commands of a group are given the same input.
    let command = format!(
        "{{ {} }} <<E\n{}\nE\n",
        "a;".repeat(10_000),
        "text ".repeat(8000)
    );
    assert_eq!(verdict(&command), Verdict::Ask);
}
