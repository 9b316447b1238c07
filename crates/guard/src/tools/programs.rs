//! Programs with one trap each, and how the others read their options.

use std::sync::LazyLock;

use super::builtin::ordinary;
use super::options::{Grammar, Options};
use super::shell::Kind;
use super::{Handler, Table};
use crate::finding::{Span, Target};
use crate::names::Names;
use crate::run::{Argument, Call, Run, Stream};

pub(super) const TABLE: Table = &[
    (
        &[
            "vim", "vi", "nvim", "view", "vimdiff", "gvim", "rvim", "ex_",
        ],
        vim as Handler,
    ),
    (&["man"], man),
    (&["rg", "ripgrep"], rg),
    (&["less", "more_", "bat", "batcat", "fzf", "sk"], pager),
    (&["make", "ninja", "just", "rake_", "bmake"], make),
    (&["crontab"], crontab),
    (&["at", "batch"], at),
    (&["ansible"], ansible),
    (&["gdb", "lldb"], debugger),
    (&["visudo", "vipw", "vigr"], visudo),
    (&["strace_"], man),
    (&["docker", "podman", "nerdctl"], containers),
    (
        &["aws", "gsutil", "gcloud", "rclone", "s3cmd", "mc", "az"],
        cloud_copy,
    ),
    (&["gh", "glab"], forge),
    (&["busctl", "dbus-send", "gdbus", "qdbus"], bus),
    (&["rtcwake"], rtcwake),
    (&["pip", "pip3", "npm", "gem", "go"], remote_package),
    (&["xdotool", "ydotool", "wtype"], keystrokes),
];

/// The options of programs; its head says how it is written.
const GRAMMARS: &str = include_str!("grammars.txt");

/// Letters and long names that take a value, and whether `-name` is a long option.
type Row = (&'static str, Vec<&'static str>, bool);

static BY_NAME: LazyLock<Names<Row>> = LazyLock::new(|| {
    let mut grammars = Names::default();
    for line in GRAMMARS.lines().filter(|line| !line.starts_with('#')) {
        let (names, tail) = line.split_once(" :").unwrap_or((line, ""));
        let mut row: Row = ("", Vec::new(), false);
        for word in tail.split_whitespace() {
            if let Some(long) = word.strip_prefix("--") {
                row.1 = long.split('|').collect();
            } else if let Some(short) = word.strip_prefix('-') {
                row.0 = short;
            } else {
                row.2 = word == "dashed";
            }
        }
        grammars.extend(names.split('|').map(|name| (name, row.clone())));
    }
    grammars
});

/// How a program reads its options, for patterns.
pub(super) fn grammar(name: &str) -> Grammar<'static> {
    BY_NAME
        .get(name)
        .map_or(Grammar::PLAIN, |(short, long, dashed)| Grammar {
            short,
            long,
            permutes: true,
            single_dash: *dashed,
        })
}

/// `-c command` and `+command`; `!` in them runs a shell, `w` writes.
fn vim(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, Grammar::new("cSuwWTtqi", &["cmd"]));
    if options.asks_for_help() {
        return Stream::unknown();
    }
    let plus = call
        .arguments
        .iter()
        .enumerate()
        .filter_map(|(at, argument)| argument.text.strip_prefix('+').map(|text| (text, at)));
    let commands: Vec<(&str, usize)> = options.values("c", "cmd").chain(plus).collect();
    for (command, at) in commands {
        vim_command(
            run,
            command.trim_start_matches(':').trim(),
            call.span_of(at),
        );
    }
    if options.short("s")
        && options.short("e")
        && let Some(text) = run.stdin.as_ref().and_then(|stream| stream.text.clone())
    {
        for line in text.lines() {
            vim_command(run, line.trim_start_matches(':').trim(), call.span);
        }
    }
    Stream::unknown()
}

fn vim_command(run: &mut Run<'_>, command: &str, span: Span) {
    for part in command.split('|') {
        let part = part.trim();
        let shell = part
            .strip_prefix('!')
            .or_else(|| part.strip_prefix("r !"))
            .or_else(|| part.strip_prefix("%!"))
            .or_else(|| part.strip_prefix("w !"));
        if let Some(code) = shell {
            run.report("tool-runs-command", span, Target::None, part);
            run.subshell(|run| run.script(code, span));
        } else if [
            "system(",
            "systemlist(",
            "python",
            "py3",
            "pyx",
            "perl ",
            "ruby ",
            "lua ",
            "terminal",
            "term ",
            "call job_start",
            "so ",
            "source ",
        ]
        .iter()
        .any(|name| part.starts_with(name) || part.contains("system("))
        {
            run.report("tool-runs-command", span, Target::None, part);
        } else if part.starts_with('w') || part.starts_with("sav") {
            let mut words = part.split_whitespace();
            let verb = words.next().unwrap_or_default().trim_end_matches('!');
            if matches!(verb, "w" | "wq" | "write" | "sav" | "saveas")
                && let Some(file) = words.next()
            {
                run.writes_to(file, false, span);
            }
        }
    }
}

/// Judges the values of options that name a program to run.
fn helper_programs(run: &mut Run<'_>, call: &Call<'_>, options: &Options<'_>, names: &[&str]) {
    for flag in &options.flags {
        let Some(program) = flag
            .value
            .filter(|value| names.contains(&flag.name) && !ordinary(value))
        else {
            continue;
        };
        let span = call.span_of(flag.at);
        run.report("tool-runs-command", span, Target::None, program);
        run.subshell(|run| run.script(program, span));
    }
}

fn man(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(
        call.arguments,
        Grammar::new("PHMLmsSCR", &["pager", "html", "sections", "manpath"]),
    );
    helper_programs(run, call, &options, &["P", "pager", "H", "html"]);
    Stream::unknown()
}

fn rg(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(
        call.arguments,
        Grammar::new(
            "efgtTABCmjrMdE",
            &[
                "pre",
                "pre-glob",
                "hostname-bin",
                "regexp",
                "file",
                "glob",
                "type",
                "type-not",
                "max-count",
                "replace",
                "sort",
                "color",
                "max-depth",
                "context",
                "iglob",
            ],
        ),
    );
    for flag in options
        .flags
        .iter()
        .filter(|flag| flag.long && matches!(flag.name, "pre" | "hostname-bin"))
    {
        if let Some(program) = flag.value.filter(|program| !program.is_empty()) {
            run.report(
                "tool-runs-command",
                call.span_of(flag.at),
                Target::None,
                program,
            );
        }
    }
    super::effects::passes_through(run, call, true)
}

fn pager(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    if matches!(call.name, "fzf" | "sk") {
        let options = Options::parse(
            call.arguments,
            Grammar::new(
                "qfnd",
                &[
                    "preview",
                    "bind",
                    "query",
                    "filter",
                    "delimiter",
                    "height",
                    "prompt",
                ],
            ),
        );
        for (code, at) in options.values("", "preview") {
            let span = call.span_of(at);
            run.subshell(|run| run.script(code, span));
        }
        if options
            .values("", "bind")
            .any(|(code, _)| code.contains("execute") || code.contains("become"))
        {
            run.report("tool-runs-command", call.span, Target::None, "fzf --bind");
        }
        return Stream::unknown();
    }
    let options = Options::parse(
        call.arguments,
        Grammar::new(
            "poPlHr",
            &[
                "pager",
                "pattern",
                "language",
                "line-range",
                "style",
                "theme",
                "paging",
            ],
        ),
    );
    helper_programs(run, call, &options, &["pager"]);
    if call.name == "less"
        && call
            .texts()
            .any(|text| text.starts_with("+!") || text.starts_with("+|") || text.starts_with("++!"))
    {
        run.report("tool-runs-command", call.span, Target::None, "less +!");
    }
    super::effects::passes_through(run, call, true)
}

fn make(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(
        call.arguments,
        Grammar::new(
            "fCjIloW",
            &["file", "makefile", "directory", "jobs", "eval", "justfile"],
        ),
    );
    if options.asks_for_help()
        || options.short("n")
        || options.long_flag("dry-run")
        || options.long_flag("just-print")
    {
        return Stream::unknown();
    }
    for (code, at) in options.values("", "eval") {
        run.report("tool-runs-command", call.span_of(at), Target::None, code);
    }
    for (file, at) in options
        .values("f", "file")
        .chain(options.values("", "makefile"))
    {
        let span = call.span_of(at);
        if file == "-" || file == "/dev/stdin" {
            run.report(
                "tool-runs-command",
                span,
                Target::None,
                "a makefile from the input",
            );
        }
        run.executes_file(file, Kind::Interpreter, span);
    }
    run.executes_file("Makefile", Kind::Interpreter, call.span);
    for operand in &options.operands {
        if let Some(shell) = operand
            .text
            .strip_prefix("SHELL=")
            .filter(|shell| !shell.ends_with("sh"))
        {
            run.report(
                "tool-runs-command",
                call.span_of(operand.at),
                Target::None,
                shell,
            );
        }
    }
    Stream::unknown()
}

fn crontab(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, Grammar::new("u", &[]));
    if options.short("lVhT") || options.asks_for_help() {
        return Stream::unknown();
    }
    let user_file = options.value("u", "").is_some() && !options.operands.is_empty();
    if options.short("re") || !options.operands.is_empty() || run.stdin.is_some() || user_file {
        run.report("planned-task", call.span, Target::None, "crontab");
    }
    Stream::unknown()
}

fn at(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, Grammar::new("qft", &[]));
    if options.short("lVcrd") {
        return Stream::unknown();
    }
    run.report("planned-task", call.span, Target::None, call.name);
    if let Some(stream) = run.stdin.clone().filter(|stream| stream.text.is_some()) {
        run.executes_stream(&stream, Kind::Shell, call.span);
    }
    Stream::unknown()
}

/// `ansible hosts -m shell -a code`
fn ansible(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(
        call.arguments,
        Grammar::new(
            "maiuletfB",
            &[
                "module-name",
                "args",
                "inventory",
                "user",
                "limit",
                "extra-vars",
                "forks",
            ],
        ),
    );
    let module = options
        .value("m", "module-name")
        .unwrap_or("command")
        .to_owned();
    let Some((code, at)) = options.values("a", "args").next() else {
        return Stream::unknown();
    };
    let span = call.span_of(at);
    match module.rsplit('.').next().unwrap_or_default() {
        "shell" | "command" | "raw" | "script" => {
            run.subshell(|run| run.script(code, span));
        }
        "reboot" => run.report("shutdown", span, Target::Remote, "ansible reboot"),
        "file" if code.contains("state=absent") => {
            run.report("recursive-delete", span, Target::Remote, code);
        }
        "service" | "systemd"
            if code.contains("state=stopped") || code.contains("state=restarted") =>
        {
            run.report("service-stop", span, Target::Remote, code);
        }
        "user" | "group" if code.contains("state=absent") => {
            run.report("accounts", span, Target::Remote, code);
        }
        "apt" | "yum" | "dnf" | "package" | "pip" if code.contains("state=absent") => {
            run.report("package-remove", span, Target::Remote, code);
        }
        _ => {}
    }
    Stream::unknown()
}

/// `-ex 'shell …'` runs a command; without a program a debugger only starts.
fn debugger(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let grammar = Grammar::new("", &["ex", "eval-command", "x", "o", "one-line", "iex"])
        .dashed()
        .stopping();
    let options = Options::parse(call.arguments, grammar);
    for flag in &options.flags {
        let Some(code) = flag
            .value
            .filter(|_| matches!(flag.name, "ex" | "eval-command" | "o" | "one-line" | "iex"))
        else {
            continue;
        };
        let words: Vec<&str> = code.split_whitespace().collect();
        if matches!(
            words.first(),
            Some(
                &("shell"
                    | "!"
                    | "python"
                    | "py"
                    | "pipe"
                    | "platform"
                    | "script"
                    | "call"
                    | "print"
                    | "p")
            )
        ) && (!matches!(words.first(), Some(&("print" | "p"))) || code.contains("system"))
            || code.starts_with('!')
        {
            run.report(
                "tool-runs-command",
                call.span_of(flag.at),
                Target::None,
                code,
            );
            run.subshell(|run| {
                run.script(
                    code.trim_start_matches("shell").trim_start_matches('!'),
                    call.span_of(flag.at),
                )
            });
        }
    }
    let args = call.arguments.iter().position(|argument| {
        argument.text == "--args" || argument.text == "-args" || argument.text == "--"
    });
    if let Some(at) = args {
        return run.run_words(call.from(at + 1), call.span, call.bulk);
    }
    Stream::unknown()
}

fn visudo(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, Grammar::new("fx", &["file", "export"]));
    if !(options.has("c", "check") || options.short("Vh") || options.asks_for_help()) {
        run.report("accounts", call.span, Target::System, call.name);
    }
    Stream::unknown()
}

/// `-v /:/host` matters for every way to start a container.
fn containers(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let first = Options::parse(call.arguments, grammar("docker"));
    if first.texts().any(|word| matches!(word, "cp"))
        && let Some(target) = first
            .operands
            .last()
            .filter(|target| !target.text.contains(':'))
    {
        run.writes_to(target.text, false, call.span_of(target.at));
    }
    Stream::unknown()
}

/// `aws s3 cp a b` and its like: up sends, down fetches.
fn cloud_copy(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, grammar(call.name));
    let words: Vec<_> = options.operands.iter().collect();
    let Some(verb) = words.iter().position(|word| {
        matches!(
            word.text,
            "cp" | "mv"
                | "sync"
                | "copy"
                | "copyto"
                | "put"
                | "get"
                | "cat"
                | "upload"
                | "download"
                | "rsync"
                | "move"
        )
    }) else {
        return Stream::unknown();
    };
    let remote =
        |text: &str| text.contains("://") || (text.contains(':') && !text.starts_with('/'));
    let paths: Vec<_> = words.iter().skip(verb + 1).collect();
    let mut origin = run
        .stdin
        .as_ref()
        .map_or(crate::run::Origin::NONE, |stream| stream.origin);
    let goes_up = paths.last().is_some_and(|last| remote(last.text));
    for path in paths
        .iter()
        .filter(|path| !remote(path.text) && path.text != "-")
    {
        if goes_up {
            origin = origin.with(run.read_file(path.text, call.span_of(path.at)).origin);
        } else {
            run.writes_to(path.text, false, call.span_of(path.at));
            let file = run.paths().absolute(path.text);
            run.state
                .write_file(&file, Stream::from(crate::run::Origin::NETWORK));
        }
    }
    if goes_up {
        run.sends(origin, call.span);
        return Stream::unknown();
    }
    Stream::from(crate::run::Origin::NETWORK)
}

fn forge(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, grammar("gh"));
    let words: Vec<&str> = options.texts().collect();
    match words.as_slice() {
        ["gist", "create", files @ ..] => {
            let mut origin = run
                .stdin
                .as_ref()
                .map_or(crate::run::Origin::NONE, |stream| stream.origin);
            for file in files {
                origin = origin.with(run.read_file(file, call.span).origin);
            }
            run.sends(origin, call.span);
        }
        ["repo", "clone", url, ..] => {
            let name = url.rsplit('/').next().unwrap_or(url);
            let path = run.paths().absolute(name);
            run.state
                .write_file(&path, Stream::from(crate::run::Origin::NETWORK));
        }
        ["alias", "set", _, code, ..] if code.starts_with('!') || options.has("s", "shell") => {
            run.report("tool-runs-command", call.span, Target::None, code);
        }
        ["extension", "install", ..] => {
            run.report("tool-runs-command", call.span, Target::None, "gh extension");
        }
        _ => {}
    }
    Stream::from(crate::run::Origin::NETWORK)
}

/// A message that asks the login manager to stop the machine.
fn bus(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let stops = call.texts().any(|text| {
        let method = text.rsplit('.').next().unwrap_or(text);
        matches!(
            method,
            "Reboot"
                | "PowerOff"
                | "Halt"
                | "RebootWithFlags"
                | "PowerOffWithFlags"
                | "HaltWithFlags"
                | "KExec"
                | "SoftReboot"
                | "Shutdown"
                | "reboot"
                | "shutdown"
        )
    });
    let login = call.texts().any(|text| {
        text.contains("login1")
            || text.contains("systemd1")
            || text.contains("ConsoleKit")
            || text.contains("SessionManager")
            || text.contains("gnome")
    });
    if stops && login {
        run.report("shutdown", call.span, Target::System, call.name);
    }
    Stream::unknown()
}

fn rtcwake(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(
        call.arguments,
        Grammar::new("mstdA", &["mode", "seconds", "time", "device"]),
    );
    match options.value("m", "mode") {
        Some("off") => run.report("shutdown", call.span, Target::System, "rtcwake"),
        Some("no" | "show" | "disable" | "on") => {}
        _ if options.asks_for_help() || options.flags.is_empty() => {}
        _ => run.report("service-stop", call.span, Target::System, "rtcwake"),
    }
    Stream::unknown()
}

/// `go run https://…` is no thing, but packages run code when they come from a file made here.
fn remote_package(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    if call.name == "go" {
        let words: Vec<&str> = call.texts().filter(|text| !text.starts_with('-')).collect();
        if let ["run", file, ..] = words.as_slice() {
            run.executes_file(file, Kind::Interpreter, call.span);
        }
    }
    Stream::unknown()
}

/// Typing into another window runs whatever is typed there.
fn keystrokes(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let words: Vec<Argument> = call
        .arguments
        .iter()
        .filter(|argument| argument.text.contains(' '))
        .cloned()
        .collect();
    for word in words {
        run.subshell(|run| run.script(&word.text, word.span));
    }
    Stream::unknown()
}

/// `/etc/init.d/name stop` is what `service name stop` does.
pub(super) fn init_script(run: &mut Run<'_>, call: &Call<'_>) {
    let script = call.word.contains("/init.d/") || call.word.contains("/rc.d/");
    if script
        && matches!(
            call.texts().next(),
            Some("stop" | "restart" | "force-reload" | "force-stop")
        )
    {
        run.report("service-stop", call.span, Target::System, call.name);
    }
}
