//! Builtins of the shell that change what later words mean.

use super::options::{Grammar, Options};
use super::{Handler, Table};
use crate::finding::{Span, Target};
use crate::run::{Call, Origin, Run, Stream};
use crate::text::{STAR, UNKNOWN, uncertain};

pub(super) const TABLE: Table = &[
    (&["cd", "pushd", "chdir"], cd as Handler),
    (&["popd"], popd),
    (
        &["export", "declare", "typeset", "local", "readonly"],
        declare,
    ),
    (&["alias"], alias),
    (&["shopt"], shopt),
    (&["set"], set),
    (&["shift"], shift),
    (&["read"], read),
    (&["mapfile", "readarray"], mapfile),
    (&["unset"], unset),
    (&["let"], let_builtin),
    (&["test", "["], test),
    (&["history", "fc"], history),
    (&["compgen", "complete"], compgen),
    (&["enable"], enable),
    (&["hash"], hash),
    (&["bind"], bind),
    (
        &[
            "true", ":", "false", "exit", "return", "break", "continue", "sleep",
        ],
        silent,
    ),
    (&["wait", "getopts"], sets_names),
];

fn silent(_: &mut Run<'_>, _: &Call<'_>) -> Stream {
    Stream::silent()
}

/// Builtins that set the variables they are given by name.
fn sets_names(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    for text in call.texts() {
        run.expanded_again_in_brackets(text);
    }
    Stream::silent()
}

fn cd(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let operands: Vec<&str> = call
        .texts()
        .filter(|text| !matches!(*text, "-L" | "-P" | "-e" | "-@" | "--" | "-n"))
        .collect();
    let directory = match operands.first() {
        None => run.home.clone(),
        Some(&"-") => {
            run.state.cwd = None;
            return Stream::unknown();
        }
        Some(directory) => (*directory).to_owned(),
    };
    if directory.is_empty() {
        return Stream::silent();
    }
    let resolved = run.paths().resolve(&directory).map(|resolved| {
        let mut path = resolved.path;
        if resolved.contents {
            path.push('/');
            path.push(STAR);
        }
        path
    });
    run.enter(resolved);
    Stream::silent()
}

fn popd(run: &mut Run<'_>, _: &Call<'_>) -> Stream {
    run.state.cwd = None;
    Stream::unknown()
}

fn declare(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let flagged = |letter: char| {
        call.texts().any(|text| {
            text.strip_prefix('-')
                .is_some_and(|letters| letters.contains(letter))
        })
    };
    let (integer, reference) = (flagged('i'), flagged('n'));
    let prints = call.texts().any(|text| text == "-p") || call.arguments.is_empty();
    for argument in call.arguments {
        let Some((name, value)) = argument.text.split_once('=') else {
            run.expanded_again_in_brackets(&argument.text);
            if integer && !argument.text.starts_with('-') {
                run.make_integer(&argument.text);
            }
            let value = run.state.scalar(&argument.text).map(str::to_owned);
            if let Some(value) = value.filter(|_| call.name == "export") {
                run.environment(&argument.text, &value, argument.span);
            }
            continue;
        };
        let append = name.ends_with('+');
        let name = name.trim_end_matches('+');
        run.expanded_again_in_brackets(name);
        let value = if append {
            run.state.scalar(name).unwrap_or_default().to_owned() + value
        } else {
            value.to_owned()
        };
        if reference {
            run.leaves_table(&value);
            run.expanded_again_in_brackets(&value);
        }
        if integer {
            run.make_integer(name);
        }
        if !name.is_empty() && !name.starts_with('-') {
            run.environment(name, &value, argument.span);
            run.assign(name, value);
        }
    }
    if prints && matches!(call.name, "export" | "declare") {
        return Stream::from(Origin::SECRET);
    }
    Stream::silent()
}

fn alias(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    for argument in call.arguments {
        if let Some((name, text)) = argument.text.split_once('=') {
            run.state.set_alias(name, text);
            run.leaves_code(text, true, argument.span);
        }
    }
    Stream::silent()
}

fn shopt(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let texts: Vec<&str> = call.texts().collect();
    if texts.contains(&"expand_aliases") {
        run.state.aliases_expand = texts.contains(&"-s");
    }
    Stream::silent()
}

fn set(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    if call.arguments.is_empty() {
        return Stream::from(Origin::SECRET);
    }
    let mut arguments = call.arguments.iter();
    let mut parameters = None;
    while let Some(argument) = arguments.next() {
        match argument.text.as_str() {
            "--" | "-" => {
                parameters = Some(arguments.map(|argument| argument.text.clone()).collect());
                break;
            }
            "+o" | "-o" => {
                let off = argument.text == "+o";
                if arguments
                    .next()
                    .is_some_and(|name| off && name.text == "history")
                {
                    run.report("history-off", call.span, Target::None, "");
                }
            }
            option if option.len() > 1 && option.starts_with(['-', '+']) => {}
            _ => {
                parameters = Some(
                    std::iter::once(argument)
                        .chain(arguments)
                        .map(|argument| argument.text.clone())
                        .collect::<Vec<_>>(),
                );
                break;
            }
        }
    }
    if let Some(parameters) = parameters {
        run.state.set_parameters(parameters);
    }
    Stream::silent()
}

fn shift(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let count: usize = call
        .texts()
        .next()
        .map_or(Some(1), |text| text.parse().ok())
        .unwrap_or(1);
    if let Some(items) = run.state.positional.take()
        && run.handle(items.len() * 32)
    {
        run.state
            .set_parameters(items.iter().skip(count).cloned().collect());
    }
    Stream::silent()
}

/// Takes a line off the input and puts its words into variables.
fn read(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, Grammar::new("adinNptu", &[]).stopping());
    let delimiter = options
        .value("d", "")
        .and_then(|text| text.chars().next())
        .unwrap_or('\n');
    let delimiter = if options.value("d", "") == Some("") {
        '\0'
    } else {
        delimiter
    };
    let line = run.stdin.as_mut().and_then(|stream| {
        let text = stream.text.as_mut()?;
        let (line, rest) = match text.split_once(delimiter) {
            Some((line, rest)) => (line.to_owned(), rest.to_owned()),
            None => (std::mem::take(text), String::new()),
        };
        *text = rest;
        Some(line)
    });
    let separators = run.state.scalar("IFS").unwrap_or(" \t\n").to_owned();
    if let Some(array) = options.value("a", "") {
        run.expanded_again_in_brackets(array);
        let items = line.as_deref().map_or_else(
            || vec![UNKNOWN.to_string()],
            |line| words(line, &separators),
        );
        run.state.set_array(array, items);
        return Stream::silent();
    }
    let names: Vec<&str> = options.texts().collect();
    let names = if names.is_empty() {
        vec!["REPLY"]
    } else {
        names
    };
    let mut rest = line;
    for (index, name) in names.iter().enumerate() {
        run.expanded_again_in_brackets(name);
        let value = match (&rest, index + 1 == names.len()) {
            (None, _) => UNKNOWN.to_string(),
            (Some(line), true) => line
                .trim_matches(|character| separators.contains(character))
                .to_owned(),
            (Some(line), false) => {
                let trimmed = line.trim_start_matches(|character| separators.contains(character));
                let (first, after) = trimmed
                    .split_once(|character| separators.contains(character))
                    .unwrap_or((trimmed, ""));
                let (first, after) = (first.to_owned(), after.to_owned());
                rest = Some(after);
                first
            }
        };
        run.assign(name, value);
    }
    Stream::silent()
}

fn words(line: &str, separators: &str) -> Vec<String> {
    line.split(|character| separators.contains(character))
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

fn mapfile(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, Grammar::new("dnOsuCc", &[]).stopping());
    if let Some(code) = options.value("C", "") {
        run.executes_text(code, call.span);
    }
    let name = options.texts().next().unwrap_or("MAPFILE").to_owned();
    run.expanded_again_in_brackets(&name);
    let items = match run.stdin.as_ref().and_then(|stream| stream.text.as_deref()) {
        Some(text) => text.lines().map(str::to_owned).collect(),
        None => vec![UNKNOWN.to_string()],
    };
    run.state.set_array(&name, items);
    Stream::silent()
}

fn unset(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    for argument in call.arguments {
        if matches!(
            argument.text.as_str(),
            "HISTFILE" | "HISTSIZE" | "HISTFILESIZE" | "PROMPT_COMMAND" | "SHELLOPTS"
        ) && argument.text.starts_with("HIST")
        {
            run.report("history-off", argument.span, Target::None, &argument.text);
        }
        run.expanded_again_in_brackets(&argument.text);
        run.state.unset(&argument.text);
    }
    Stream::silent()
}

fn let_builtin(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    for text in call.texts() {
        run.evaluates(text);
    }
    Stream::silent()
}

fn test(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let texts: Vec<&str> = call.texts().collect();
    for pair in texts.windows(2) {
        if let ["-v", name] = pair {
            run.expanded_again_in_brackets(name);
        }
    }
    Stream::silent()
}

fn history(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, Grammar::new("d", &[]));
    if call.name == "history" && options.short("cdw") {
        run.report("history-off", call.span, Target::None, "");
    }
    Stream::from(Origin::SECRET)
}

/// `-C command` runs a command to find completions.
fn compgen(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, Grammar::new("AGWFCXPSo", &[]));
    if call.name == "complete"
        && (options.value("C", "").is_some()
            || options
                .value("W", "")
                .is_some_and(|words| words.contains(['$', '`'])))
    {
        run.leaves("complete", call.span);
    }
    for (words, _) in options.values("W", "").collect::<Vec<_>>() {
        run.expanded_again(words);
    }
    if call.name == "compgen"
        && let Some(code) = options.value("C", "")
    {
        run.report("tool-runs-command", call.span, Target::None, code);
        run.script(code, call.span);
    }
    Stream::unknown()
}

/// `-p path name` makes a name mean another program.
fn hash(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let sets = call
        .texts()
        .any(|text| text.starts_with('-') && text.contains('p'));
    if sets {
        run.leaves("hash -p", call.span);
    }
    Stream::unknown()
}

/// Keys can be bound to commands, and to text that is typed.
fn bind(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let lists = |text: &str| {
        text.strip_prefix('-').is_some_and(|letters| {
            !letters.is_empty() && letters.chars().all(|letter| "lpPsSvVX".contains(letter))
        })
    };
    if !call.texts().all(lists) {
        run.leaves("bind", call.span);
    }
    Stream::unknown()
}

/// `-f file` loads machine code into the shell.
fn enable(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    if call.texts().any(|text| text.starts_with("-f")) {
        run.report("tool-runs-command", call.span, Target::None, "enable -f");
    }
    Stream::unknown()
}

/// Variables that make a program load or run what they name.
const INJECTING: &[&str] = &[
    "LD_PRELOAD",
    "LD_AUDIT",
    "DYLD_INSERT_LIBRARIES",
    "DYLD_FORCE_FLAT_NAMESPACE",
    "BASH_ENV",
    "PROMPT_COMMAND",
    "PERL5OPT",
    "PERL5DB",
    "PYTHONSTARTUP",
    "PYTHONHOME",
    "RUBYOPT",
    "GIT_EXTERNAL_DIFF",
    "GIT_PROXY_COMMAND",
    "GIT_EXEC_PATH",
    "GIT_TEMPLATE_DIR",
    "GIT_ASKPASS",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "GCONV_PATH",
    "LESSOPEN",
    "LESSCLOSE",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "TAR_OPTIONS",
    "BASH_FUNC_ls%%",
    "ENV",
    "JAVA_TOOL_OPTIONS",
    "_JAVA_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "PHP_INI_SCAN_DIR",
    "PHPRC",
    "NODE_REPL_EXTERNAL_MODULE",
    "ELECTRON_RUN_AS_NODE",
    "GTK_MODULES",
    "QT_PLUGIN_PATH",
    "MAIL_CHECK_COMMAND",
    "PYTHONBREAKPOINT",
];

/// Variables whose value is itself a command.
const COMMANDS: &[&str] = &[
    "GIT_SSH_COMMAND",
    "GIT_SSH",
    "GIT_EDITOR",
    "GIT_SEQUENCE_EDITOR",
    "GIT_PAGER",
    "EDITOR",
    "VISUAL",
    "FCEDIT",
    "SUDO_EDITOR",
    "PAGER",
    "MANPAGER",
    "SYSTEMD_PAGER",
    "BROWSER",
    "RSYNC_RSH",
    "CVS_RSH",
    "SVN_SSH",
    "HG_EDITOR",
    "KUBE_EDITOR",
    "AWS_PAGER",
    "BAT_PAGER",
    "DELTA_PAGER",
    "PSQL_PAGER",
    "PSQL_EDITOR",
    "MERGE_TOOL",
];

/// Programs that are fine as a pager, editor or remote shell.
const ORDINARY: &[&str] = &[
    "cat",
    "less",
    "more",
    "most",
    "bat",
    "delta",
    "vim",
    "vi",
    "nvim",
    "nano",
    "emacs",
    "emacsclient",
    "code",
    "subl",
    "true",
    ":",
    "ssh",
    "head",
    "micro",
    "hx",
    "helix",
    "echo",
    "diff-so-fancy",
    "open",
    "xdg-open",
    "firefox",
    "false",
    "ed",
    "pspg",
    "vimdiff",
    "meld",
    "kak",
    "joe",
    "gedit",
    "kate",
    "lv",
    "tail",
    "w3m",
    "lynx",
    "",
];

impl Run<'_> {
    /// Judges a variable that a command gets.
    pub(crate) fn environment(&mut self, name: &str, value: &str, span: Span) {
        let rule = match name {
            _ if name.starts_with("EXOSHELL_") => "own-controls",
            "HISTFILE" if value.is_empty() || value == "/dev/null" => "history-off",
            "HISTFILE" => {
                self.writes_to(value, true, span);
                return;
            }
            "HISTSIZE" | "HISTFILESIZE" if value == "0" => "history-off",
            "HISTIGNORE" if value == "*" => "history-off",
            "NODE_OPTIONS"
                if ![
                    "-r",
                    "--require",
                    "--import",
                    "--loader",
                    "--experimental-loader",
                    "--inspect",
                ]
                .iter()
                .any(|option| value.contains(option)) =>
            {
                return;
            }
            "JAVA_TOOL_OPTIONS" | "_JAVA_OPTIONS" | "JDK_JAVA_OPTIONS"
                if !value.contains("-javaagent")
                    && !value.contains("-agent")
                    && !value.contains("OnError")
                    && !value.contains("OnOutOfMemory") =>
            {
                return;
            }
            "PS4" | "PS1" | "PS0" | "PS2" | "MAILPATH"
                if !value.contains("$(") && !value.contains('`') =>
            {
                return;
            }
            "MAKEFLAGS" | "GNUMAKEFLAGS" | "MFLAGS" if !makes(value) => return,
            "NODE_OPTIONS" | "PS4" | "PS1" | "PS0" | "PS2" | "MAILPATH" | "MAKEFLAGS"
            | "GNUMAKEFLAGS" | "MFLAGS" => "environment-injection",
            "ENV" if !value.contains(['/', UNKNOWN]) => return,
            "LD_LIBRARY_PATH" | "PATH" => {
                let first = value.split(':').next().unwrap_or_default();
                let planted = matches!(first, "" | ".")
                    || self.paths().target_of(first) == Target::Temp && !uncertain(first);
                if !planted || value.is_empty() {
                    return;
                }
                "environment-injection"
            }
            _ if name.starts_with("GIT_CONFIG_")
                && !name.ends_with("NOSYSTEM")
                && !value.starts_with("/dev/null") =>
            {
                "environment-injection"
            }
            _ if name.starts_with("BASH_FUNC_") => "environment-injection",
            _ if INJECTING.contains(&name) => "environment-injection",
            _ if COMMANDS.contains(&name) => {
                let mut words = value.split_whitespace();
                let program = words
                    .next()
                    .unwrap_or_default()
                    .rsplit('/')
                    .next()
                    .unwrap_or_default();
                let plain = ORDINARY.contains(&program)
                    && !value.contains([';', '|', '`', '$', '>', '!'])
                    && !value.contains("ProxyCommand")
                    && !value.contains("LocalCommand");
                if plain {
                    return;
                }
                self.script(value, span);
                "environment-injection"
            }
            _ => return,
        };
        self.report(rule, span, Target::None, name);
    }

    /// Expands again what stands in the brackets of a name, as bash does.
    pub(crate) fn expanded_again_in_brackets(&mut self, name: &str) {
        if name.contains('[') {
            self.expanded_again(name);
        }
    }
}

/// Tells whether options for `make` bring rules of their own.
fn makes(options: &str) -> bool {
    uncertain(options)
        || ["eval", "SHELL=", "-f", "file=", "-I", "include-dir"]
            .iter()
            .any(|option| options.contains(option))
}

/// Tells whether a program named as pager, editor or helper is an ordinary one.
pub(super) fn ordinary(command: &str) -> bool {
    let program = command.split_whitespace().next().unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or_default();
    ORDINARY.contains(&program) && !command.contains([';', '|', '`', '$', '>', '&', '\n'])
}
