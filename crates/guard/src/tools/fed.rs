//! What is typed to a command: a shell that was not asked for, or a way out of an editor.
//!
//! Shells and interpreters read their input as code by themselves. Here are the programs that start
//! a shell when they are given no command, and those that run one for whoever types to them.

use super::options::{Grammar, Options};
use super::shell::Kind;
use crate::finding::Target;
use crate::run::{Call, Run, Stream};

/// Programs that start a shell when they are given no command.
const STARTERS: &[&str] = &[
    "script",
    "scriptlive",
    "zellij",
    "dtach",
    "abduco",
    "unshare",
    "chroot",
    "arch-chroot",
    "nsenter",
    "login",
    "newgrp",
    "sg",
    "sulogin",
    "schroot",
    "systemd-nspawn",
    "pkexec",
    "run0",
    "fakeroot",
    "fakechroot",
    "proot",
    "bwrap",
    "firejail",
    "setarch",
    "linux32",
    "linux64",
    "i386",
    "x86_64",
    "uname26",
    "capsh",
    "nix-shell",
    "distrobox-enter",
    "lxc-attach",
    "mosh",
    "wsl",
    "xterm",
    "kitty",
    "alacritty",
    "foot",
    "rlwrap",
    "unbuffer",
    "telnetd",
    "aa-exec",
    "runcon",
];

/// The same for programs with subcommands.
const STARTING_WORDS: &[(&str, &str)] = &[
    ("machinectl", "shell"),
    ("machinectl", "login"),
    ("docker", "run"),
    ("docker", "attach"),
    ("podman", "run"),
    ("podman", "attach"),
    ("podman", "unshare"),
    ("nerdctl", "run"),
    ("kubectl", "attach"),
    ("kubectl", "run"),
    ("oc", "rsh"),
    ("adb", "shell"),
    ("vagrant", "ssh"),
    ("multipass", "shell"),
    ("limactl", "shell"),
    ("colima", "ssh"),
    ("toolbox", "enter"),
    ("distrobox", "enter"),
    ("poetry", "shell"),
    ("pipenv", "shell"),
    ("hatch", "shell"),
    ("nix", "develop"),
    ("nix", "shell"),
    ("guix", "shell"),
    ("guix", "environment"),
    ("singularity", "shell"),
    ("apptainer", "shell"),
    ("lxc", "shell"),
    ("incus", "shell"),
    ("heroku", "run"),
    ("heroku", "ps:exec"),
    ("fly", "ssh"),
    ("flyctl", "ssh"),
    ("rails", "console"),
    ("rails", "c"),
];

/// Programs on a terminal in which a key or a line runs a command.
const ESCAPING: &[&str] = &[
    "vi",
    "vim",
    "nvim",
    "view",
    "vimdiff",
    "gvim",
    "rvim",
    "ex",
    "ed",
    "red",
    "emacs",
    "nano",
    "pico",
    "micro",
    "hx",
    "helix",
    "kak",
    "joe",
    "jed",
    "ne",
    "mcedit",
    "less",
    "more",
    "most",
    "lv",
    "pg",
    "w3m",
    "lynx",
    "links",
    "elinks",
    "man",
    "info",
    "pinfo",
    "ranger",
    "nnn",
    "lf",
    "vifm",
    "mc",
    "ncdu",
    "tig",
    "lazygit",
    "htop",
    "top",
    "atop",
    "iftop",
    "crontab",
    "visudo",
    "vipw",
    "vigr",
    "mutt",
    "neomutt",
    "alpine",
    "mail",
    "mailx",
    "fzf",
    "sk",
    "journalctl",
    "systemctl",
    "timedatectl",
    "apropos",
    "ftp",
    "sftp",
    "lftp",
    "telnet",
    "dc",
    "smbclient",
    "gnuplot",
    "sudoedit",
    "aptitude",
    "fdisk",
    "cfdisk",
    "gdbtui",
];

/// Those of them that only show something.
const PAGING: &[&str] = &[
    "less",
    "more",
    "most",
    "lv",
    "pg",
    "man",
    "info",
    "pinfo",
    "apropos",
    "journalctl",
    "systemctl",
    "timedatectl",
    "git",
    "top",
    "htop",
    "atop",
    "iftop",
    "crontab",
    "visudo",
    "fzf",
    "sk",
];

/// Verbs of `git` that page or open an editor.
const PAGED: &[&str] = &[
    "log",
    "diff",
    "show",
    "blame",
    "grep",
    "branch",
    "tag",
    "help",
    "rebase",
    "reflog",
    "shortlog",
    "stash",
    "range-diff",
    "whatchanged",
    "config",
];

/// Commands of a debugger that run nothing but the program under test.
const DEBUGGING: &[&str] = &[
    "",
    "y",
    "n",
    "yes",
    "no",
    "q",
    "quit",
    "exit",
    "bt",
    "backtrace",
    "where",
    "c",
    "continue",
    "r",
    "run",
    "start",
    "s",
    "step",
    "next",
    "stepi",
    "si",
    "ni",
    "nexti",
    "finish",
    "fin",
    "until",
    "b",
    "break",
    "tbreak",
    "delete",
    "d",
    "disable",
    "enable",
    "info",
    "i",
    "list",
    "l",
    "frame",
    "f",
    "up",
    "down",
    "thread",
    "x",
    "display",
    "ptype",
    "whatis",
    "disassemble",
    "disas",
    "help",
    "h",
    "set",
    "show",
    "watch",
    "kill",
    "k",
];

/// Judges what is fed to a program that would run it.
pub(super) fn judge(run: &mut Run<'_>, call: &Call<'_>) {
    if run.stdin.is_none() && run.fed.is_none() {
        return;
    }
    if matches!(
        call.name,
        "gdb" | "lldb" | "cgdb" | "gdbtui" | "pdb" | "jdb"
    ) {
        debugger(run, call);
    } else if escapes(call) {
        typed(run, call);
    } else if reads_code(call) && run.stdin.as_ref().is_some_and(|input| !input.is_empty()) {
        let input = run.stdin.clone().unwrap_or_default();
        run.executes_stream(&input, Kind::Interpreter, call.span);
    } else if matches!(call.name, "redis-cli" | "mongo" | "mongosh" | "m4")
        && run.fed_unknown()
        && call
            .arguments
            .iter()
            .all(|word| word.text.starts_with('-') && !word.text.starts_with("--e"))
    {
        run.report("typed-command", call.span, Target::None, call.name);
    } else if call.name == "m4"
        && let Some(text) = run.stdin.as_ref().and_then(|input| input.text.as_deref())
        && text.contains("syscmd")
    {
        run.report("typed-command", call.span, Target::None, call.name);
    }
}

/// Programs that take code from their input when they are told so in words.
fn reads_code(call: &Call<'_>) -> bool {
    let words: Vec<&str> = call.texts().take(16).collect();
    let has = |word: &str| words.contains(&word);
    match call.name {
        "ghci" | "cling" | "utop" | "evcxr" | "sqlplus" | "msfconsole" => true,
        "python" => {
            has("-i")
                || words.windows(2).any(|pair| {
                    matches!(pair, ["-m", "code" | "pdb" | "asyncio" | "IPython"])
                        || pair.first().is_some_and(|file| file.ends_with("manage.py"))
                            && matches!(pair.last(), Some(&("shell" | "shell_plus" | "dbshell")))
                })
        }
        "node" | "nodejs" => has("-i") || has("--interactive"),
        "django-admin" | "flask" => has("shell") || has("dbshell"),
        "sbt" | "lein" | "bin/rails" => has("console") || has("repl"),
        "deno" => words.is_empty() || has("repl"),
        "bun" => has("-") || has("repl"),
        "curl" => {
            words
                .windows(2)
                .any(|pair| matches!(pair, ["-K" | "--config", "-"]))
                || has("-K-")
        }
        "ansible-playbook" => has("/dev/stdin"),
        _ => false,
    }
}

/// A wrapper without a command starts a shell, which reads what flows in.
pub(super) fn shell(run: &mut Run<'_>, call: &Call<'_>) {
    let Some(input) = run.stdin.clone().filter(|input| !input.is_empty()) else {
        return;
    };
    if STARTERS.contains(&call.name) || starting_words(call) {
        run.at_most_ask(|run| run.executes_stream(&input, Kind::Shell, call.span));
    }
}

fn starting_words(call: &Call<'_>) -> bool {
    let words: Vec<&str> = call
        .texts()
        .filter(|text| !text.starts_with('-'))
        .take(16)
        .collect();
    let first = words.first().copied();
    match call.name {
        "tmux" | "byobu" | "tmate" => first.is_none_or(|verb| {
            ["new", "attach", "a", "at", "respawn", "split"]
                .iter()
                .any(|start| verb == *start || verb.len() > 2 && verb.starts_with(start))
        }),
        "screen" => !call
            .texts()
            .any(|text| matches!(text, "-ls" | "-list" | "-X" | "-v")),
        "gcloud" => words.contains(&"ssh"),
        "aws" => words.contains(&"start-session") || words.contains(&"execute-command"),
        _ => STARTING_WORDS
            .iter()
            .any(|(name, word)| *name == call.name && first == Some(*word)),
    }
}

fn escapes(call: &Call<'_>) -> bool {
    if call.name == "git" {
        let verb = call.texts().find(|text| !text.starts_with('-'));
        return verb.is_some_and(|verb| PAGED.contains(&verb))
            && !call
                .texts()
                .any(|text| matches!(text, "--no-pager" | "-" | "--stdin"));
    }
    if ESCAPING.contains(&call.name) {
        let options = Options::parse(call.arguments, Grammar::PLAIN);
        return !options.asks_for_help();
    }
    false
}

/// What somebody types to an editor or a pager: a plain answer is fine, anything else may be a
/// command.
fn typed(run: &mut Run<'_>, call: &Call<'_>) {
    let Some(input) = run.fed.clone() else {
        return;
    };
    let fine = if PAGING.contains(&call.name) {
        // It may never page; what is typed later is judged then.
        input.text.as_deref().is_none_or(pages)
    } else {
        input.text.as_deref().is_some_and(plain)
    };
    if !fine {
        run.report("typed-command", call.span, Target::None, call.name);
    }
}

/// Tells whether a text holds nothing by which a pager starts a command.
fn pages(text: &str) -> bool {
    text.chars()
        .all(|sign| !matches!(sign, '!' | '|' | ':') && (!sign.is_control() || sign == '\n'))
}

/// Tells whether a text is an answer and no command: letters, digits, blanks and a few signs.
fn plain(text: &str) -> bool {
    text.chars().all(|sign| {
        sign.is_alphanumeric() || matches!(sign, ' ' | '\n' | '\r' | '.' | ',' | '-' | '_' | '/')
    })
}

fn debugger(run: &mut Run<'_>, call: &Call<'_>) {
    let Some(input) = run.stdin.clone().filter(|input| !input.is_empty()) else {
        return;
    };
    if !run.handle(input.weight() * 16) {
        return;
    }
    let harmless = input.text.as_deref().is_some_and(|text| {
        text.lines().all(|line| {
            let word = line.split_whitespace().next().unwrap_or_default();
            DEBUGGING.contains(&word) && !line.contains(['(', '!', '|', '`', '='])
        })
    });
    if !harmless {
        run.report("typed-command", call.span, Target::None, call.name);
    }
}

impl Run<'_> {
    /// Tells whether the current command reads what the whole one is fed, and that is not known.
    pub(super) fn fed_unknown(&self) -> bool {
        self.fed.as_ref().is_some_and(|fed| fed.text.is_none()) && self.stdin == self.fed
    }
}

impl Stream {
    /// Tells whether nothing flows.
    pub(crate) fn is_empty(&self) -> bool {
        self.text.as_deref() == Some("")
    }
}
