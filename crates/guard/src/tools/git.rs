//! `git`: what is lost, what is overwritten elsewhere, and what it is told to run.

use super::builtin::ordinary;
use super::options::{Grammar, Options};
use super::{Handler, Table};
use crate::finding::{Span, Target};
use crate::run::{Call, Origin, Run, Stream};

pub(super) const TABLE: Table = &[(&["git"], git as Handler)];

/// Options of git itself that take a value.
const GLOBAL: Grammar<'static> = Grammar::new(
    "Cc",
    &[
        "git-dir",
        "work-tree",
        "namespace",
        "super-prefix",
        "config-env",
        "exec-path_",
        "list-cmds",
        "attr-source",
    ],
)
.stopping();

fn git(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let global = Options::parse(call.arguments, GLOBAL);
    for (setting, at) in global.values("c", "") {
        let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
        setting_runs(run, name, value, call.span_of(at));
    }
    if let Some(path) = global
        .flags
        .iter()
        .find(|flag| flag.name == "exec-path" && flag.value.is_some())
    {
        run.report(
            "tool-runs-command",
            call.span_of(path.at),
            Target::None,
            "--exec-path",
        );
    }
    let Some(verb) = global.operands.first() else {
        return Stream::unknown();
    };
    let rest = Call {
        arguments: call.from(verb.at + 1),
        ..*call
    };
    let plain = Options::parse(rest.arguments, Grammar::PLAIN);
    if plain.asks_for_help() || (plain.short("h") && rest.arguments.len() == 1) {
        return Stream::unknown();
    }
    for flag in plain
        .flags
        .iter()
        .filter(|flag| flag.long && flag.name == "output")
    {
        if let Some(file) = flag.value {
            run.writes_to(file, false, rest.span_of(flag.at));
        }
    }
    // `git -C elsewhere` acts on another directory.
    let target = global
        .value("C", "")
        .map_or(Target::Workspace, |directory| {
            run.paths().target_of(directory)
        });
    let target = if target == Target::Workspace && run.state.cwd.is_none() {
        Target::Unknown
    } else {
        target
    };
    touches(run, &global, &rest, verb.text);
    subcommand(run, &rest, verb.text, target)
}

/// Verbs that leave the files of a working tree as they are.
const KEEPING: &[&str] = &[
    "status",
    "log",
    "diff",
    "show",
    "blame",
    "annotate",
    "grep",
    "ls-files",
    "ls-tree",
    "ls-remote",
    "rev-parse",
    "rev-list",
    "branch",
    "remote",
    "describe",
    "shortlog",
    "cat-file",
    "config",
    "fetch",
    "tag",
    "reflog",
    "help",
    "version",
    "add",
    "commit",
    "push",
    "diff-tree",
    "diff-index",
    "archive",
    "bundle",
    "fsck",
    "count-objects",
    "for-each-ref",
    "merge-base",
    "name-rev",
    "whatchanged",
    "show-ref",
    "var",
    "check-ignore",
    "check-attr",
    "notes",
    "range-diff",
    "cherry",
    "stage",
];

/// Judges a working tree, and files in it, that the user's rules or our controls protect.
fn touches(run: &mut Run<'_>, global: &Options<'_>, call: &Call<'_>, verb: &str) {
    let outer = run.state.cwd.clone();
    let directory = global
        .value("C", "")
        .or_else(|| global.value("", "work-tree"))
        .unwrap_or(".");
    let inside = run.paths().resolve(directory);
    let own = inside
        .as_ref()
        .is_some_and(|inside| run.paths().control(&inside.path));
    let reads = matches!(
        verb,
        "status" | "log" | "diff" | "show" | "ls-files" | "rev-parse"
    );
    if own && !reads {
        run.report("own-controls", call.span, Target::None, directory);
    }
    let dry = matches!(verb, "clean" | "rm" | "mv")
        && Options::parse(call.arguments, Grammar::PLAIN).has("n", "dry-run");
    if dry || KEEPING.contains(&verb) || run.user_rules.paths.is_empty() {
        return;
    }
    if let Some((repository, at)) = global.values("", "git-dir").next() {
        let path = run.paths().absolute(repository);
        run.denied(&path, false, repository, call.span_of(at));
    }
    if let Some(inside) = &inside {
        run.denied(&inside.path, verb == "clean", directory, call.span);
    }
    run.enter(inside.map(|inside| inside.path));
    for operand in &Options::parse(call.arguments, Grammar::PLAIN).operands {
        let path = run.paths().absolute(operand.text);
        if !path.is_empty() {
            let whole = matches!(verb, "rm" | "mv" | "checkout" | "restore" | "clean");
            run.denied(&path, whole, operand.text, call.span_of(operand.at));
        }
    }
    run.state.cwd = outer;
}

fn subcommand(run: &mut Run<'_>, call: &Call<'_>, verb: &str, target: Target) -> Stream {
    let loses = match verb {
        "push" => return push(run, call),
        "reset" => options(call, "").long_flag("hard") || merge_reset(call),
        "clean" => clean(call),
        "checkout" => checkout(call),
        "restore" => restore(call),
        "switch" => {
            options(call, "cC").has("f", "force")
                || options(call, "cC").long_flag("discard-changes")
                || options(call, "").short("C")
        }
        "stash" => matches!(operands(call).first(), Some(&("drop" | "clear"))),
        "branch" => branch(call),
        "tag" => options(call, "mFu").has("d", "delete") || options(call, "mFu").has("f", "force"),
        "filter-branch" | "filter-repo" => !operands_or_flags_empty(call),
        "reflog" => {
            matches!(operands(call).first(), Some(&("expire" | "delete")))
                && !options(call, "").has("n", "dry-run")
        }
        "gc" | "prune" => gc(call, verb),
        "update-ref" => {
            options(call, "m").has("d", "delete") || options(call, "").long_flag("stdin")
        }
        "worktree" => {
            matches!(operands(call).first(), Some(&"remove")) && options(call, "").has("f", "force")
        }
        "rm" => {
            (options(call, "").has("f", "force") || options(call, "").short("r"))
                && !options(call, "").has("n", "dry-run")
                && !options(call, "").long_flag("cached")
        }
        "replace" => options(call, "").has("d", "delete") || options(call, "").has("f", "force"),
        "notes" => matches!(operands(call).first(), Some(&("remove" | "prune"))),
        "submodule" => return submodule(run, call, target),
        "checkout-index" | "read-tree" => {
            options(call, "").has("f", "force")
                || options(call, "").short("u")
                || options(call, "").long_flag("reset")
        }
        "remote" => return remote(run, call),
        "config" => return config(run, call),
        "clone" => return clone(run, call),
        "symbolic-ref" => options(call, "m").has("d", "delete"),
        "rebase" | "bisect" | "difftool" | "mergetool" | "grep" | "submodule-foreach"
        | "send-email" | "archive" | "fetch" | "pull" | "ls-remote" | "daemon" | "instaweb"
        | "web--browse" | "credential" | "hook" | "for-each-repo" => {
            return runs_command(run, call, verb);
        }
        _ => false,
    };
    if loses {
        run.report("git-loses-work", call.span, target, verb);
    }
    Stream::unknown()
}

fn options<'c>(call: &Call<'c>, short: &'static str) -> Options<'c> {
    Options::parse(
        call.arguments,
        Grammar::new(
            short,
            &[
                "message",
                "file",
                "source",
                "orphan",
                "conflict",
                "pathspec-from-file",
                "exclude",
                "expire",
                "prune_",
            ],
        ),
    )
}

fn operands<'c>(call: &Call<'c>) -> Vec<&'c str> {
    options(call, "").texts().collect()
}

fn operands_or_flags_empty(call: &Call<'_>) -> bool {
    call.arguments.is_empty()
        || options(call, "").long_flag("analyze")
        || options(call, "").long_flag("dry-run")
}

/// `reset --merge` drops changes too.
fn merge_reset(call: &Call<'_>) -> bool {
    options(call, "")
        .flags
        .iter()
        .any(|flag| flag.long && flag.name == "merge")
}

fn clean(call: &Call<'_>) -> bool {
    let options = Options::parse(call.arguments, Grammar::new("e", &["exclude"]));
    options.has("f", "force") && !options.has("n", "dry-run")
}

/// Paths are overwritten, branches are only changed.
fn checkout(call: &Call<'_>) -> bool {
    let options = Options::parse(
        call.arguments,
        Grammar::new("bB", &["orphan", "conflict", "pathspec-from-file"]),
    );
    if options.has("f", "force") || options.short("B") || options.long_flag("pathspec-from-file") {
        return true;
    }
    if options.short("p") && !call.texts().any(|text| text == "--") {
        return false;
    }
    let dashes = call.texts().position(|text| text == "--");
    if let Some(at) = dashes {
        return at + 1 < call.arguments.len();
    }
    if options.short("b")
        || options.long_flag("orphan")
        || options.short("t")
        || options.long_flag("track")
    {
        return false;
    }
    let words: Vec<&str> = options.texts().collect();
    let path = |word: &str| {
        word == "."
            || word.starts_with("./")
            || word.starts_with("../")
            || word.starts_with(':')
            || crate::text::globbed(word)
            || word.ends_with('/')
            || looks_like_file(word)
    };
    match words.as_slice() {
        [only] => path(only),
        [_, _, ..] => true,
        [] => options.long_flag("ours") || options.long_flag("theirs"),
    }
}

/// `src/main.rs` is a file, `feature/x` a branch, `v1.2.3` a tag.
fn looks_like_file(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    match name.rsplit_once('.') {
        Some((stem, extension)) => {
            !stem.is_empty()
                && (1..=5).contains(&extension.len())
                && extension
                    .bytes()
                    .all(|byte| byte.is_ascii_alphabetic() || byte == b'5' || byte == b'3')
                && !word.starts_with("release")
                && !name.starts_with('v')
        }
        None => false,
    }
}

fn restore(call: &Call<'_>) -> bool {
    let options = Options::parse(
        call.arguments,
        Grammar::new("s", &["source", "pathspec-from-file", "conflict"]),
    );
    let staged = options.has("S", "staged");
    let worktree = options.has("W", "worktree");
    (!staged || worktree)
        && (!options.operands.is_empty() || options.long_flag("pathspec-from-file"))
}

fn branch(call: &Call<'_>) -> bool {
    let options = Options::parse(
        call.arguments,
        Grammar::new(
            "u",
            &[
                "set-upstream-to",
                "sort",
                "format",
                "contains",
                "merged",
                "points-at",
            ],
        ),
    );
    let force = options.has("f", "force");
    options.short("D") || force
}

fn gc(call: &Call<'_>, verb: &str) -> bool {
    let options = Options::parse(call.arguments, Grammar::PLAIN);
    let now = options.flags.iter().any(|flag| {
        matches!(flag.name, "prune" | "expire")
            && flag
                .value
                .is_some_and(|value| matches!(value, "now" | "all" | "0"))
    });
    if verb == "prune" {
        return !options.has("n", "dry-run") && (now || options.operands.is_empty());
    }
    now
}

fn push(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(
        call.arguments,
        Grammar::new("o", &["push-option", "repo", "receive-pack", "exec"]),
    );
    if options.has("n", "dry-run") {
        return Stream::unknown();
    }
    for (command, at) in options
        .values("", "receive-pack")
        .chain(options.values("", "exec"))
    {
        run.report("tool-runs-command", call.span_of(at), Target::None, command);
    }
    let forced = options.flags.iter().any(|flag| {
        if flag.long {
            matches!(
                flag.name,
                "force" | "force-with-lease" | "mirror" | "delete" | "prune" | "force-if-includes"
            ) || (flag.name.len() > 2
                && ("force".starts_with(flag.name)
                    || "delete".starts_with(flag.name)
                    || "mirror".starts_with(flag.name)))
        } else {
            matches!(flag.name, "f" | "d")
        }
    });
    let refspec = options
        .texts()
        .any(|text| text.starts_with('+') || (text.starts_with(':') && text.len() > 1));
    if forced || refspec {
        run.report("git-rewrites-remote", call.span, Target::Remote, "");
    }
    // The remote may be a command: `ext::sh -c …`.
    if let Some(repository) = options.texts().next() {
        remote_command(run, repository, call.span);
    }
    Stream::unknown()
}

fn remote_command(run: &mut Run<'_>, url: &str, span: Span) {
    if let Some(command) = url.strip_prefix("ext::") {
        run.report("tool-runs-command", span, Target::None, command);
        run.subshell(|run| run.script(command, span));
    }
}

/// Settings whose value git runs.
fn setting_runs(run: &mut Run<'_>, name: &str, value: &str, span: Span) {
    let name = name.to_ascii_lowercase();
    let last = name.rsplit('.').next().unwrap_or_default();
    let alias = name.starts_with("alias.");
    if alias {
        if let Some(command) = value.strip_prefix('!') {
            run.report("tool-runs-command", span, Target::None, command);
            run.subshell(|run| run.script(command, span));
        }
        return;
    }
    if name == "http.sslverify" && value.eq_ignore_ascii_case("false") {
        run.report("protection-off", span, Target::None, "http.sslVerify");
    }
    let runs = [
        "core.pager",
        "core.editor",
        "core.sshcommand",
        "core.fsmonitor",
        "core.askpass",
        "core.hookspath",
        "core.gitproxy",
        "sequence.editor",
        "diff.external",
        "gpg.program",
        "uploadpack.packobjectshook",
        "core.alternaterefscommand",
        "protocol.ext.allow",
        "core.worktree_",
    ]
    .contains(&name.as_str())
        || (name.starts_with("credential.")
            && name.ends_with("helper")
            && (value.starts_with('!') || value.starts_with('/')))
        || name.starts_with("pager.")
        || last == "textconv"
        || last == "command" && name.starts_with("diff.")
        || (last == "cmd" && (name.starts_with("difftool.") || name.starts_with("mergetool.")))
        || (name.starts_with("filter.")
            && (last == "clean" || last == "smudge" || last == "process"))
        || name.starts_with("trailer.") && last == "command"
        || name.starts_with("include.path")
        || last == "program" && name.starts_with("gpg.");
    let switch = matches!(value, "true" | "false" | "" | "never" | "user" | "1" | "0");
    if !runs
        || switch
        || (ordinary(value) && name != "core.hookspath")
        || (name.contains("hookspath")
            && (value.starts_with(".githooks") || value == ".husky" || value == "/dev/null"))
    {
        return;
    }
    run.report("tool-runs-command", span, Target::None, value);
    run.subshell(|run| run.script(value.trim_start_matches('!'), span));
}

fn config(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(
        call.arguments,
        Grammar::new("f", &["file", "type", "default", "blob"]),
    );
    let reads = [
        "get",
        "get-all",
        "list",
        "get-regexp",
        "show-origin",
        "get-urlmatch",
    ]
    .iter()
    .any(|name| {
        options
            .flags
            .iter()
            .any(|flag| flag.long && flag.name == *name)
    }) || options.short("l");
    if reads {
        return Stream::unknown();
    }
    let mut words: Vec<&str> = options.texts().collect();
    match words.as_slice() {
        ["get" | "list", _, ..] => return Stream::unknown(),
        ["set" | "unset", _, ..] => {
            words.remove(0);
        }
        _ => {}
    }
    if options.long_flag("system") {
        run.report(
            "system-write",
            call.span,
            Target::System,
            "git config --system",
        );
    }
    if let [name, value, ..] = words.as_slice() {
        let local = !options.long_flag("global");
        let alias = name.to_ascii_lowercase().starts_with("alias.");
        if !(local && !alias && name.eq_ignore_ascii_case("core.hooksPath"))
            || value.starts_with('/')
        {
            setting_runs(run, name, value, call.span);
        }
        if !local && name.eq_ignore_ascii_case("core.hooksPath") {
            run.report("user-settings", call.span, Target::Home, name);
        }
    }
    Stream::unknown()
}

fn remote(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    for argument in call.arguments {
        remote_command(run, &argument.text, argument.span);
    }
    Stream::unknown()
}

fn clone(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(
        call.arguments,
        Grammar::new(
            "bocju",
            &[
                "branch",
                "origin",
                "config",
                "depth",
                "jobs",
                "upload-pack",
                "reference",
                "template",
                "separate-git-dir",
                "filter",
                "shallow-since",
            ],
        ),
    );
    for (setting, at) in options.values("c", "config") {
        let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
        setting_runs(run, name, value, call.span_of(at));
    }
    if let Some(command) = options.value("u", "upload-pack") {
        run.report("tool-runs-command", call.span, Target::None, command);
    }
    let Some(url) = options.texts().next() else {
        return Stream::unknown();
    };
    remote_command(run, url, call.span);
    let name = url
        .trim_end_matches('/')
        .rsplit(['/', ':'])
        .next()
        .unwrap_or(url);
    let directory = options
        .texts()
        .nth(1)
        .unwrap_or(name.trim_end_matches(".git"));
    run.writes_to(directory, true, call.span);
    let path = run.paths().absolute(directory);
    if !path.is_empty() {
        run.state.write_file(&path, Stream::from(Origin::NETWORK));
    }
    Stream::unknown()
}

fn submodule(run: &mut Run<'_>, call: &Call<'_>, target: Target) -> Stream {
    let words = operands(call);
    match words.first() {
        Some(&"foreach") => {
            let code = call
                .texts()
                .skip_while(|text| *text != "foreach")
                .skip(1)
                .filter(|text| *text != "--recursive" && *text != "--quiet")
                .collect::<Vec<_>>()
                .join(" ");
            run.subshell(|run| run.script(&code, call.span));
        }
        Some(&"deinit") if options(call, "").has("f", "force") => {
            run.report("git-loses-work", call.span, target, "submodule deinit");
        }
        Some(&"update") if options(call, "").has("f", "force") => run.report(
            "git-loses-work",
            call.span,
            target,
            "submodule update --force",
        ),
        _ => {}
    }
    Stream::unknown()
}

/// Subcommands with an option, or words, that are a command.
fn runs_command(run: &mut Run<'_>, call: &Call<'_>, verb: &str) -> Stream {
    let options = Options::parse(
        call.arguments,
        Grammar::new(
            "xOtsXCC",
            &[
                "exec",
                "extcmd",
                "open-files-in-pager_",
                "upload-pack",
                "remote",
                "tool",
                "strategy",
            ],
        ),
    );
    let mut commands: Vec<(String, usize)> = Vec::new();
    match verb {
        "rebase" => commands.extend(
            options
                .values("x", "exec")
                .map(|(code, at)| (code.to_owned(), at)),
        ),
        "difftool" | "mergetool" => commands.extend(
            options
                .values("x", "extcmd")
                .map(|(code, at)| (code.to_owned(), at)),
        ),
        "grep" => {
            for (index, text) in call.texts().enumerate() {
                let value = text
                    .strip_prefix("--open-files-in-pager=")
                    .or_else(|| text.strip_prefix("-O"));
                commands.extend(
                    value
                        .filter(|value| !value.is_empty() && !ordinary(value))
                        .map(|value| (value.to_owned(), index)),
                );
            }
        }
        "bisect" if call.texts().next() == Some("run") => {
            return run.subshell(|run| run.run_words(call.from(1), call.span, false));
        }
        "fetch" | "pull" | "ls-remote" | "archive" => {
            commands.extend(
                options
                    .values("", "upload-pack")
                    .chain(options.values("", "exec"))
                    .map(|(code, at)| (code.to_owned(), at)),
            );
            for argument in call.arguments {
                remote_command(run, &argument.text, argument.span);
            }
            if verb == "pull" && options.has("f", "force")
                || verb == "fetch"
                    && options.has("f", "force")
                    && options.texts().any(|text| text.contains(':'))
            {
                run.report("git-loses-work", call.span, Target::Workspace, verb);
            }
        }
        _ => {}
    }
    for (code, at) in commands {
        let span = call.span_of(at);
        run.report("tool-runs-command", span, Target::None, &code);
        run.subshell(|run| run.script(&code, span));
    }
    Stream::from(if verb == "archive" {
        Origin::NETWORK
    } else {
        Origin::NONE
    })
}
