use super::*;

fn verdict(command: &str, persists: bool) -> Verdict {
    let mut context = Context::new("/home/ada/work/project", "/home/ada");
    context.persists = persists;
    Guard::new().check(command, &context).verdict
}

#[test]
fn what_later_commands_could_make_of_it_is_asked_about() {
    for command in [
        "ff() { \"$@\"; }",
        "ff() { rm -rf \"$1\"; }",
        "ff() { rm \"$@\"; }",
        "ff() { git $1 $2; }",
        "ff() { $c -rf x; }; c=ls",
        "c=ls; ff() { $c; }",
        "ff() { gg() { \"$@\"; }; }",
        "function ff { eval \"$*\"; }",
        "command_not_found_handle() { \"$@\"; }",
        "ls() { command rm -rf ~; }",
        "if true; then ff() { \"$@\"; }; else ff() { ls; }; fi",
        "alias r=rm",
        "alias e=eval",
        "alias ls='rm -rf ~/x'",
        "shopt -s expand_aliases; alias g=git",
        "trap '$x' DEBUG",
        "x=ls; trap '$x' DEBUG",
        "trap 'rm -rf x' EXIT",
        "hash -p /tmp/x ls",
        "BASH_CMDS[ls]=/tmp/x",
        "BASH_ALIASES[ls]='rm -rf x'",
        "BASH_ALIASES=([ls]=rm)",
        "declare -n z=BASH_ALIASES; z[ls]='rm -rf y'",
        "PROMPT_COMMAND[1]='ls'",
        "hash -p/tmp/x ls",
        "ff() { pip \"$@\"; }",
        "alias x='ls;'",
        "HISTFILE=~/.bashrc",
        "declare BASH_ALIASES[ls]=rm",
        "printf -v 'BASH_ALIASES[ls]' rm",
        "bind '\"\\C-m\": \"reboot\\n\"'",
        "bind -x '\"a\": reboot'",
        "enable -f ./x.so x",
        "PROMPT_COMMAND='ls'",
        "PS1='$(ls)'",
        "PS0='`ls`'",
    ] {
        assert_ne!(verdict(command, true), Verdict::Allow, "{command}");
    }
}

#[test]
fn honest_functions_and_aliases_pass() {
    for command in [
        "ff() { ls \"$@\"; }",
        "count() { wc -l \"$1\" | sort; }",
        "say() { local text=$1; echo \"$text\"; }; say hi",
        "commit() { git commit -m \"$1\"; }",
        "alias ll='ls -la'",
        "alias gs='git status'",
        "trap 'echo bye' EXIT",
        "hash -r",
        "bind -l",
        "PS1='\\u@\\h$ '",
        "count() { local n=0; while read -r l; do n=$((n+1)); done < \"$1\"; echo $n; }",
    ] {
        assert_eq!(verdict(command, true), Verdict::Allow, "{command}");
    }
}

#[test]
fn in_a_shell_that_ends_nothing_is_left() {
    for command in [
        "ff() { \"$@\"; }",
        "ff() { rm -rf \"$1\"; }",
        "alias r=rm",
        "hash -p /tmp/x ls",
        "BASH_ALIASES[ls]='rm -rf x'",
        "bind -x '\"a\": reboot'",
    ] {
        assert_eq!(verdict(command, false), Verdict::Allow, "{command}");
    }
}

#[test]
fn a_definition_alone_is_never_blocked() {
    assert_eq!(verdict("ff() { rm -rf /; }", true), Verdict::Ask);
    assert_eq!(verdict(":() { :|:& }", true), Verdict::Ask);
    assert_eq!(verdict(":() { :|:& }; :", true), Verdict::Block);
}
