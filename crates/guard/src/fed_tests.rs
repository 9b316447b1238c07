use super::*;

fn context() -> Context {
    Context::new("/home/ada/work/project", "/home/ada")
}

fn fed(command: &str, text: &str) -> Finding {
    Guard::new().check_fed(command, Input::Text(text), &context())
}

#[test]
fn text_for_a_shell_is_judged_as_shell_code() {
    for command in [
        "bash",
        "sh -s a b",
        "bash -",
        "cat | bash",
        "tee x | sh",
        "bash /dev/stdin",
        ". /dev/stdin",
        "bash <(cat)",
        "eval \"$(cat)\"",
        "while read -r line; do $line; done",
        "true; { bash; }",
        "sudo bash",
        "sudo -i",
        "sudo -u bob -s",
        "su",
        "nice -n 5 zsh",
        "cat > x.sh; bash x.sh",
        "bash\n}; { cat",
    ] {
        let finding = fed(command, "rm -rf /\n");
        assert_eq!(
            finding.verdict,
            Verdict::Block,
            "{command} {}",
            finding.rule
        );
        assert_ne!(fed(command, "ls\n").verdict, Verdict::Block, "{command}");
    }
    assert_eq!(fed("bash", "ls\n").verdict, Verdict::Ask);
}

#[test]
fn programs_that_start_a_shell_by_themselves_run_what_they_read() {
    for command in [
        "script",
        "script -q log",
        "tmux new",
        "tmux new -s x",
        "screen",
        "unshare -r",
        "chroot /srv/x",
        "nsenter -t 1",
        "login",
        "machinectl shell",
        "ssh host",
        "docker exec -i c bash",
        "docker run -i image",
        "kubectl exec -i pod -- sh",
        "fakeroot",
        "setarch",
        "poetry shell",
    ] {
        assert_ne!(
            fed(command, "rm -rf /\n").verdict,
            Verdict::Allow,
            "{command}"
        );
        let unknown = Guard::new().check_fed(command, Input::Unknown, &context());
        assert_ne!(unknown.verdict, Verdict::Allow, "{command}");
    }
}

#[test]
fn text_for_an_interpreter_is_code() {
    for command in [
        "python3",
        "python3 -",
        "perl",
        "node",
        "awk -f -",
        "awk -f /dev/stdin x",
        "make -f -",
        "psql db",
        "sed -f - x",
        "gdb ./x",
        "ruby -",
        "python3 -i x.py",
        "python3 -m pdb x.py",
        "python3 manage.py shell",
        "ghci",
        "curl -K - https://example.org",
        "exec 3<&0; bash /dev/fd/3",
        "cp /dev/stdin x.sh; sh x.sh",
    ] {
        let text = "1e ls\n\\! ls\nsystem(1)\n";
        assert_eq!(fed(command, text).verdict, Verdict::Ask, "{command}");
        let unknown = Guard::new().check_fed(command, Input::Unknown, &context());
        assert_eq!(unknown.verdict, Verdict::Ask, "{command}");
    }
}

#[test]
fn text_for_other_programs_is_data() {
    for command in [
        "cat",
        "cat > notes.txt",
        "grep -c rm",
        "wc -l",
        "python3 x.py",
        "bash x.sh",
        "jq .",
        "tee log.txt",
        "npm init",
        "git commit -F -",
        "sort | uniq -c",
        "cat | less",
        "./configure",
        "git log",
        "journalctl -u x",
        "tmux ls",
        "screen -ls",
        "psql -c 'select 1'",
        "redis-cli ping",
    ] {
        let text = "rm -rf /\ny\nno\n";
        let finding = fed(command, text);
        assert_eq!(finding.verdict, Verdict::Allow, "{command} {}", finding.why);
        let unknown = Guard::new().check_fed(command, Input::Unknown, &context());
        assert_eq!(unknown.verdict, Verdict::Allow, "{command} {}", unknown.why);
    }
    assert_eq!(fed("bash", "").verdict, Verdict::Allow);
    let empty = Guard::new().check_fed("python3", Input::Empty, &context());
    assert_eq!(empty.verdict, Verdict::Allow);
}

#[test]
fn a_way_out_of_an_editor_or_a_pager_is_asked_about() {
    for command in [
        "vi x",
        "vim x",
        "less x",
        "man ls",
        "git log",
        "sudo less x",
        "cat x | less",
        "nano x",
        "systemctl status x",
    ] {
        assert_eq!(fed(command, "!rm x\n").verdict, Verdict::Ask, "{command}");
        assert_eq!(fed(command, ":!rm x\n").verdict, Verdict::Ask, "{command}");
        assert_eq!(fed(command, "q\n").verdict, Verdict::Allow, "{command}");
    }
    assert_eq!(fed("gdb x", "bt\nquit\ny\n").verdict, Verdict::Allow);
    assert_eq!(fed("gdb x", "shell reboot\n").verdict, Verdict::Ask);
}

#[test]
fn the_rules_of_the_user_see_what_is_fed() {
    let guard = Guard::with_rules(UserRules {
        commands: vec![crate::CommandRule::new("git push", crate::Action::Deny)],
        paths: Vec::new(),
    });
    let text = Input::Text("git push\n");
    let finding = guard.check_user_rules_fed("bash", text, &context());
    assert_eq!(finding.verdict, Verdict::Block);
    let finding = guard.check_user_rules_fed("cat", text, &context());
    assert_eq!(finding.verdict, Verdict::Allow);
}

#[test]
fn text_that_cannot_be_walked_is_not_known() {
    assert_eq!(fed("bash", &"ls\n".repeat(40_000)).verdict, Verdict::Ask);
    assert_eq!(fed("bash", "ls \u{FFFE}").verdict, Verdict::Ask);
    assert_eq!(fed("wc -c", &"ls\n".repeat(40_000)).verdict, Verdict::Allow);
}
