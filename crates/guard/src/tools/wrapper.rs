//! Programs that run another program: they are taken off and the rest is judged.

use super::options::{Grammar, Operand, Options};
use super::shell::{Kind, SHELLS};
use crate::finding::Target;
use crate::run::{Argument, Call, Origin, Run, Stream};
use crate::text::UNKNOWN;

/// How a wrapper finds the command it runs.
#[derive(Debug, Clone)]
pub(super) struct Wrapper {
    /// Words that must come before the command: `exec` in `docker exec`.
    words: Vec<&'static str>,
    /// Letters and long names of options that take a value.
    short: &'static str,
    long: Vec<&'static str>,
    /// Operands before the command; `None` when no operand is one.
    skip: Option<usize>,
    /// Letters and long names whose value is shell code.
    code: (&'static str, Vec<&'static str>),
    /// Letters that mean that nothing is run.
    idle: &'static str,
    dashed: bool,
    rest: Rest,
}

/// What the words after the options are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rest {
    Command,
    /// `NAME=value` may come first.
    Assignments,
    /// Shell code in one or more words.
    Code,
    /// Each word is shell code of its own.
    Codes,
    /// Runs somewhere else: nothing there is blocked.
    Elsewhere,
}

/// The table of wrappers; its head says how it is written.
const TABLE: &str = include_str!("wrappers.txt");

/// Reads the table: each wrapper with the names it goes by.
pub(super) fn table() -> impl Iterator<Item = (Vec<&'static str>, Wrapper)> {
    let lines = || TABLE.lines().filter(|line| !line.starts_with('#'));
    let container = lines()
        .find_map(|line| line.strip_prefix("@container "))
        .unwrap_or_default();
    lines()
        .filter(|line| !line.starts_with('@'))
        .map(move |line| row(line, container))
}

fn row(line: &'static str, container: &'static str) -> (Vec<&'static str>, Wrapper) {
    let (head, tail) = line.split_once(" : ").unwrap_or((line, ""));
    let mut words = head.split_whitespace();
    let names = words.next().unwrap_or_default().split('|').collect();
    let mut wrapper = Wrapper {
        words: words.collect(),
        short: "",
        long: Vec::new(),
        skip: Some(0),
        code: ("", Vec::new()),
        idle: "",
        dashed: false,
        rest: Rest::Command,
    };
    for word in tail.split_whitespace() {
        if word == "--@container" {
            wrapper.long = container.split('|').collect();
        } else if let Some(long) = word.strip_prefix("--") {
            wrapper.long = long.split('|').collect();
        } else if let Some(short) = word.strip_prefix('-') {
            wrapper.short = short;
        } else if let Some(count) = word.strip_prefix("skip=") {
            wrapper.skip = count.parse().ok();
        } else if let Some(code) = word.strip_prefix("code=") {
            let mut names = code.split('|');
            wrapper.code = (names.next().unwrap_or_default(), names.collect());
        } else if let Some(idle) = word.strip_prefix("idle=") {
            wrapper.idle = idle;
        } else {
            match word {
                "dashed" => wrapper.dashed = true,
                "assignments" => wrapper.rest = Rest::Assignments,
                "code" => wrapper.rest = Rest::Code,
                "codes" => wrapper.rest = Rest::Codes,
                "elsewhere" => wrapper.rest = Rest::Elsewhere,
                _ => debug_assert!(false, "the table of wrappers has an unknown word: {word}"),
            }
        }
    }
    (names, wrapper)
}

/// Judges the command inside, if this is a wrapper with a command.
pub(super) fn judge(run: &mut Run<'_>, call: &Call<'_>, wrappers: &[Wrapper]) -> Option<Stream> {
    wrappers
        .iter()
        .find_map(|wrapper| wrapped(run, call, wrapper))
}

fn wrapped(run: &mut Run<'_>, call: &Call<'_>, wrapper: &Wrapper) -> Option<Stream> {
    let from = after_words(call, &wrapper.words)?;
    let inner = Call {
        arguments: call.from(from),
        ..*call
    };
    let grammar = Grammar {
        short: wrapper.short,
        long: &wrapper.long,
        permutes: wrapper.skip.is_none(),
        single_dash: wrapper.dashed,
    };
    let options = Options::parse(inner.arguments, grammar);
    if options.asks_for_help() || (!wrapper.idle.is_empty() && options.short(wrapper.idle)) {
        return Some(Stream::unknown());
    }
    let coded = codes(run, &inner, &options, wrapper);
    let found = wrapper.skip.and_then(|skip| options.operands.get(skip));
    if matches!(wrapper.rest, Rest::Command | Rest::Assignments) && wrapper.skip.is_some() {
        misread(run, &inner, &options, found);
    }
    // `screen -X stuff text` types into another shell.
    if call.name == "screen"
        && options
            .value("X", "")
            .is_some_and(|verb| matches!(verb, "stuff" | "exec" | "screen" | "eval"))
    {
        run.report("tool-runs-command", call.span, Target::None, "screen -X");
    }
    // `script file -- command`
    if call.name == "script"
        && let Some(at) = call.arguments.iter().position(|word| word.text == "--")
        && call.arguments.len() > at + 1
    {
        return Some(command(run, call.from(at + 1), call));
    }
    let words = match found {
        Some(first) => inner.from(first.at),
        None => return coded.then(Stream::unknown),
    };
    if matches!(call.name, "docker" | "podman" | "nerdctl") {
        container(run, call);
    }
    // `arch x86_64 command`
    let words = match words {
        [first, rest @ ..]
            if matches!(call.name, "setarch" | "arch")
                && !rest.is_empty()
                && is_architecture(&first.text) =>
        {
            let options = rest
                .iter()
                .take_while(|word| word.text.starts_with('-'))
                .count();
            rest.get(options..).unwrap_or(rest)
        }
        _ => words,
    };
    // `flock file -c code`: the option comes after the operand.
    if let [option, code, ..] = words
        && !wrapper.code.0.is_empty()
        && (option.text.strip_prefix('-') == Some(wrapper.code.0) || option.text == "--command")
    {
        return Some(run.subshell(|run| run.executes_text(&code.text, code.span)));
    }
    if let Some(entrypoint) = options
        .value("", "entrypoint")
        .filter(|entrypoint| !entrypoint.is_empty())
    {
        let mut with = vec![Argument {
            text: entrypoint.to_owned(),
            span: call.span,
        }];
        with.extend_from_slice(words);
        return Some(rest(run, call, &with, wrapper.rest));
    }
    Some(rest(run, call, words, wrapper.rest))
}

/// Options whose values are optional, and those not known here, hide where the command begins:
/// what looks like a program in front of it, or after a word that is none, is judged as well.
fn misread(run: &mut Run<'_>, call: &Call<'_>, options: &Options<'_>, found: Option<&Operand<'_>>) {
    let end = found.map_or(call.arguments.len(), |found| found.at);
    let taken = options.flags.iter().find_map(|flag| {
        let next = call.arguments.get(flag.at + 1)?;
        let apart = flag.value == Some(next.text.as_str()) && flag.at < end;
        (apart && super::is_program(&next.text)).then_some(flag.at + 1)
    });
    if let Some(at) = taken {
        command(run, call.from(at), call);
    }
    let Some(found) = found else { return };
    let unsure = found.doubtful || matches!(call.name, "runcon" | "proot" | "firejail");
    if !unsure || super::is_program(found.text) {
        return;
    }
    let later = call.from(found.at + 1);
    if let Some(at) = later
        .iter()
        .take(32)
        .position(|word| super::is_program(&word.text))
    {
        command(run, call.from(found.at + 1 + at), call);
    }
}

/// `bwrap`: its options take none, one or two values each.
fn bwrap(run: &mut Run<'_>, call: &Call<'_>) -> Option<Stream> {
    let mut at = 0;
    while let Some(word) = call.arguments.get(at) {
        let Some(name) = word.text.strip_prefix("--") else {
            break;
        };
        at += 1;
        if name.is_empty() {
            break;
        }
        let name = name.trim_end_matches("-try");
        at += match name {
            "help" | "version" => return Some(Stream::unknown()),
            "bind" | "dev-bind" | "ro-bind" | "bind-fd" | "ro-bind-fd" | "symlink" | "setenv"
            | "file" | "bind-data" | "ro-bind-data" | "chmod" => 2,
            "overlay" => 3,
            "new-session"
            | "die-with-parent"
            | "as-pid-1"
            | "clearenv"
            | "disable-userns"
            | "assert-userns-disabled" => 0,
            _ if name.starts_with("unshare-") => 0,
            _ if name.starts_with("share-") => 0,
            _ => 1,
        };
    }
    let words = call.from(at);
    (!words.is_empty()).then(|| command(run, words, call))
}

/// `capsh -- arguments of a shell`
fn capsh(run: &mut Run<'_>, call: &Call<'_>) -> Option<Stream> {
    let at = call
        .arguments
        .iter()
        .position(|word| matches!(word.text.as_str(), "--" | "==" | "-+" | "=+"))?;
    let mut words = vec![Argument {
        text: "bash".to_owned(),
        span: call.span,
    }];
    words.extend_from_slice(call.from(at + 1));
    Some(command(run, &words, call))
}

/// Finds the words that make a program a wrapper; options of its own may come before them.
fn after_words(call: &Call<'_>, words: &[&str]) -> Option<usize> {
    let Some(first) = words.first() else {
        return Some(0);
    };
    let options = Options::parse(call.arguments, super::programs::grammar(call.name));
    let mut operands = options
        .operands
        .iter()
        .skip_while(|operand| operand.doubtful && operand.text != *first);
    let mut from = 0;
    for word in words {
        from = operands.next().filter(|operand| operand.text == *word)?.at + 1;
    }
    Some(from)
}

fn is_architecture(text: &str) -> bool {
    matches!(
        text,
        "x86_64"
            | "i386"
            | "i686"
            | "arm64"
            | "aarch64"
            | "linux32"
            | "linux64"
            | "ppc64"
            | "s390x"
    )
}

/// Judges option values that are shell code; tells whether there are any.
fn codes(run: &mut Run<'_>, call: &Call<'_>, options: &Options<'_>, wrapper: &Wrapper) -> bool {
    let mut any = false;
    for flag in &options.flags {
        let named = if flag.long {
            wrapper.code.1.contains(&flag.name)
        } else {
            !wrapper.code.0.is_empty() && wrapper.code.0.contains(flag.name)
        };
        if let Some(text) = flag.value.filter(|_| named) {
            let span = call.span_of(flag.at);
            run.subshell(|run| run.executes_text(text, span));
            any = true;
        }
    }
    any
}

/// Judges what a wrapper runs.
fn rest(run: &mut Run<'_>, call: &Call<'_>, words: &[Argument], rest: Rest) -> Stream {
    let words = match words.split_first() {
        Some((dashes, after)) if dashes.text == "--" => after,
        // `kubectl exec pod -c container -- command`
        Some((option, _)) if option.text.starts_with('-') => words
            .iter()
            .position(|word| word.text == "--")
            .and_then(|at| words.get(at + 1..))
            .unwrap_or(words),
        _ => words,
    };
    match rest {
        Rest::Command => command(run, words, call),
        Rest::Assignments => {
            let words = after_assignments(run, words);
            command(run, words, call)
        }
        Rest::Code => {
            let code: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
            let code = code.join(" ");
            run.subshell(|run| run.script(&code, call.span))
        }
        Rest::Codes => {
            for word in words {
                run.subshell(|run| run.script(&word.text, word.span));
            }
            Stream::unknown()
        }
        Rest::Elsewhere => {
            let outer = run.state.cwd.take();
            let output = run.elsewhere(|run| run.at_most_ask(|run| command(run, words, call)));
            run.state.cwd = outer;
            output
        }
    }
}

fn command(run: &mut Run<'_>, words: &[Argument], call: &Call<'_>) -> Stream {
    run.run_words(words, call.span, call.bulk)
}

/// Judges `NAME=value` words; returns the words after them.
fn after_assignments<'w>(run: &mut Run<'_>, words: &'w [Argument]) -> &'w [Argument] {
    let mut rest = words;
    while let Some((word, after)) = rest.split_first() {
        let Some((name, value)) = word.text.split_once('=') else {
            break;
        };
        if name.is_empty()
            || !name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'%')
        {
            break;
        }
        run.environment(name, value, word.span);
        rest = after;
    }
    rest
}

/// Containers that hold the host: its root mounted, its namespaces, all privileges.
fn container(run: &mut Run<'_>, call: &Call<'_>) {
    for (index, argument) in call.arguments.iter().enumerate() {
        let text = argument.text.as_str();
        let value = text.split_once('=').map_or_else(
            || {
                call.arguments
                    .get(index + 1)
                    .map_or("", |next| next.text.as_str())
            },
            |(_, value)| value,
        );
        let mounts = matches!(text, "-v" | "--volume")
            || text.starts_with("--volume=")
            || text.starts_with("--mount");
        let host_root = mounts
            && (value.starts_with("/:")
                || value.contains("source=/,")
                || value.contains("src=/,")
                || value.starts_with("/etc:")
                || value.contains("docker.sock"));
        let attached = text
            .strip_prefix("-v")
            .is_some_and(|rest| rest.starts_with("/:") || rest.contains("docker.sock"));
        if host_root
            || attached
            || text == "--privileged"
            || text == "--pid=host"
            || text.starts_with("--cap-add=ALL")
            || text.starts_with("--cap-add=SYS_ADMIN")
        {
            run.report("container-escape", argument.span, Target::System, text);
        }
    }
}

/// Judges the wrappers that have a way of their own.
pub(super) fn special(run: &mut Run<'_>, call: &Call<'_>) -> Option<Stream> {
    Some(match call.name {
        "env" => env(run, call),
        "sudo" => sudo(run, call),
        "doas" | "pkexec" => doas(run, call),
        "su" | "runuser" => su(run, call),
        "command" => return command_builtin(run, call),
        "exec" => {
            let options = Options::parse(call.arguments, Grammar::new("a", &[]).stopping());
            let first = options.operands.first()?.at;
            command(run, call.from(first), call)
        }
        "entr" => entr(run, call),
        "bwrap" => return bwrap(run, call),
        "capsh" => return capsh(run, call),
        "busybox" | "toybox" => {
            call.arguments
                .first()
                .filter(|first| !first.text.starts_with('-'))?;
            command(run, call.arguments, call)
        }
        name if name.starts_with("ld-linux") || name.starts_with("ld-musl") || name == "ld.so" => {
            return loader(run, call);
        }
        _ => return None,
    })
}

/// The dynamic loader, run by hand, runs a program.
fn loader(run: &mut Run<'_>, call: &Call<'_>) -> Option<Stream> {
    let options = Options::parse(
        call.arguments,
        Grammar::new("", &["library-path", "preload", "audit", "argv0"]).stopping(),
    );
    let first = options.operands.first()?.at;
    run.report("tool-runs-command", call.span, Target::None, call.name);
    Some(command(run, call.from(first), call))
}

fn env(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(
        call.arguments,
        Grammar::new("uCSPa", &["unset", "chdir", "split-string", "argv0"]).stopping(),
    );
    if options.asks_for_help() {
        return Stream::unknown();
    }
    let outer = run.state.cwd.clone();
    if let Some(directory) = options.value("C", "chdir") {
        let resolved = run.paths().resolve(directory);
        run.enter(resolved.map(|resolved| resolved.path));
    }
    let split = options.values("S", "split-string").next();
    let from = options
        .operands
        .first()
        .map_or(call.arguments.len(), |operand| operand.at);
    let mut words = Vec::new();
    if let Some((text, at)) = split {
        words.extend(text.split_whitespace().map(|word| Argument {
            text: unquoted(word),
            span: call.span_of(at),
        }));
        if text.contains(['\'', '"', '\\']) {
            words = split_string(text, call.span_of(at));
        }
    }
    words.extend_from_slice(call.from(from));
    // A lone dash is `-i`.
    if words.first().is_some_and(|first| first.text == "-") {
        words.remove(0);
    }
    let words = after_assignments(run, &words);
    let output = if words.is_empty() {
        Stream::from(Origin::SECRET)
    } else {
        command(run, words, call)
    };
    run.state.cwd = outer;
    output
}

fn unquoted(word: &str) -> String {
    word.trim_matches(['\'', '"']).to_owned()
}

/// Splits as `env -S` does: blanks and quotes, nothing else.
fn split_string(text: &str, span: crate::finding::Span) -> Vec<Argument> {
    let mut words: Vec<String> = Vec::new();
    let mut current: Option<String> = None;
    let mut quote = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match (character, quote) {
            ('\\', None | Some('"')) => match characters.next() {
                Some('_' | 't' | 'n') if quote.is_none() => words.extend(current.take()),
                Some(next) => current.get_or_insert_default().push(next),
                None => {}
            },
            (_, Some(open)) if character == open => quote = None,
            ('\'' | '"', None) => {
                quote = Some(character);
                current.get_or_insert_default();
            }
            (blank, None) if blank.is_whitespace() => words.extend(current.take()),
            (other, _) => current.get_or_insert_default().push(other),
        }
    }
    words.extend(current);
    words
        .into_iter()
        .map(|text| Argument { text, span })
        .collect()
}

fn sudo(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    const LONG: &[&str] = &[
        "user",
        "group",
        "host",
        "prompt",
        "close-from",
        "role",
        "type",
        "command-timeout",
        "other-user",
        "chdir",
        "chroot",
        "preserve-env_",
    ];
    let options = Options::parse(call.arguments, Grammar::new("ughpCrtTUDR", LONG).stopping());
    if asks_password(&options) {
        run.meets_sudo();
    }
    if options.asks_for_help()
        || options.short("VlvkK") && options.operands.is_empty() && !options.short("sSiA")
    {
        return Stream::unknown();
    }
    if options.has("S", "stdin") || options.has("A", "askpass") {
        run.report("password-input", call.span, Target::None, "");
    }
    let from = options
        .operands
        .first()
        .map_or(call.arguments.len(), |operand| operand.at);
    let words = after_assignments(run, call.from(from));
    if options.has("e", "edit") {
        for word in words {
            run.writes_to(&word.text, false, word.span);
        }
        return Stream::unknown();
    }
    let shell = options.short("si") || options.long_flag("shell") || options.long_flag("login");
    root(run, call, words, shell)
}

/// Tells whether sudo may ask for a password, and on its own.
fn asks_password(options: &Options<'_>) -> bool {
    let only_tells = options.asks_for_help() || options.has("V", "version");
    let only_forgets = options.has("K", "remove-timestamp")
        || options.has("k", "reset-timestamp")
            && options.operands.is_empty()
            && !options.short("vlsie");
    let told_otherwise = options.has("n", "non-interactive")
        || options.has("S", "stdin")
        || options.has("A", "askpass");
    !(only_tells || only_forgets || told_otherwise)
}

/// Runs words as root; a shell without anything to do is a root shell.
fn root(run: &mut Run<'_>, call: &Call<'_>, words: &[Argument], shell: bool) -> Stream {
    let Some((first, arguments)) = words.split_first() else {
        if shell {
            run.report("root-shell", call.span, Target::None, "");
            if let Some(input) = run.stdin.clone() {
                run.executes_stream(&input, Kind::Shell, call.span);
            }
        }
        return Stream::unknown();
    };
    let name = first.text.rsplit('/').next().unwrap_or_default();
    let bare = arguments
        .iter()
        .all(|word| word.text.starts_with('-') && !word.text.contains('c'))
        && run.stdin.is_none();
    if bare && (SHELLS.contains(&name) || name == "su") {
        run.report("root-shell", call.span, Target::None, name);
    }
    command(run, words, call)
}

fn doas(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, Grammar::new("uC", &["user"]).stopping());
    let from = options
        .operands
        .first()
        .map_or(call.arguments.len(), |operand| operand.at);
    root(run, call, call.from(from), options.short("s"))
}

fn su(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(
        call.arguments,
        Grammar::new(
            "cgGsuwC",
            &[
                "command",
                "group",
                "supp-group",
                "shell",
                "user",
                "session-command",
            ],
        ),
    );
    if options.asks_for_help() {
        return Stream::unknown();
    }
    let code = options
        .value("cC", "command")
        .or_else(|| options.value("", "session-command"));
    if let Some(code) = code {
        return run.subshell(|run| run.executes_text(code, call.span));
    }
    if call.name == "runuser" && options.value("u", "user").is_some() {
        let from = options
            .operands
            .first()
            .map_or(call.arguments.len(), |operand| operand.at);
        return root(run, call, call.from(from), false);
    }
    run.report("root-shell", call.span, Target::None, call.name);
    if let Some(stream) = run.stdin.clone() {
        run.executes_stream(&stream, Kind::Shell, call.span);
    }
    Stream::unknown()
}

fn command_builtin(run: &mut Run<'_>, call: &Call<'_>) -> Option<Stream> {
    let options = Options::parse(call.arguments, Grammar::PLAIN.stopping());
    let words = call.from(options.operands.first()?.at);
    let (first, arguments) = words.split_first()?;
    if options.short("vV") {
        return Some(Stream::known(format!("{}\n", first.text)));
    }
    // Functions and aliases are passed over.
    let name = first.text.rsplit('/').next().unwrap_or_default();
    if name.contains(UNKNOWN) {
        return Some(command(run, words, call));
    }
    run.deeper(call.span, |run| {
        super::judge(
            run,
            &Call {
                name,
                word: &first.text,
                arguments,
                ..*call
            },
        )
    })
    .into()
}

/// `entr -s code`, or a command in which `/_` is the changed file.
fn entr(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, Grammar::PLAIN.stopping());
    let Some(first) = options.operands.first() else {
        return Stream::unknown();
    };
    if options.short("s") {
        return run.executes_text(first.text, call.span);
    }
    command(run, call.from(first.at), call)
}
