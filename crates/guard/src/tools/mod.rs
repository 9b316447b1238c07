//! Programs: what each would do with its arguments.
//!
//! A program is handled by code when its arguments hide other commands or paths, and by patterns
//! in [`crate::rules`] when its options and operands say it all. Many have both.

mod awk;
mod builtin;
mod delete;
mod disk;
mod effects;
mod find;
mod git;
mod interpreter;
mod network;
mod options;
mod output;
pub(crate) mod pattern;
mod permissions;
mod process;
mod programs;
mod sed;
mod shell;
mod sql;
mod wrapper;
mod write;

use std::collections::HashMap;
use std::sync::LazyLock;

use crate::rules;
use crate::run::{Call, Run, Stream};
use options::{Grammar, Options};

/// Judges a call and returns what it prints.
type Handler = fn(&mut Run<'_>, &Call<'_>) -> Stream;

/// Programs and the code that knows them.
type Table = &'static [(&'static [&'static str], Handler)];

static HANDLERS: LazyLock<HashMap<&'static str, Handler>> = LazyLock::new(|| {
    let tables: &[Table] = &[
        builtin::TABLE,
        delete::TABLE,
        disk::TABLE,
        find::TABLE,
        git::TABLE,
        network::TABLE,
        output::TABLE,
        permissions::TABLE,
        process::TABLE,
        programs::TABLE,
        sed::TABLE,
        awk::TABLE,
        shell::TABLE,
        sql::TABLE,
        write::TABLE,
    ];
    let mut handlers = HashMap::new();
    for (names, handler) in tables.iter().copied().flatten() {
        handlers.extend(names.iter().map(|name| (*name, *handler)));
    }
    handlers
});

/// Judges one call by everything that is known of its program.
pub(crate) fn judge(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let name = canonical(call.name);
    let call = &Call { name, ..*call };
    if call.word.contains('/') {
        run.executes_file(call.word, shell::Kind::Program, call.span);
    }
    let output = if let Some(output) = wrapper::judge(run, call) {
        output
    } else if let Some(handler) = HANDLERS.get(name) {
        handler(run, call)
    } else if let Some(output) = interpreter::judge(run, call) {
        output
    } else {
        effects::passes_through(run, call)
    };
    patterns(run, call);
    run.reads_secrets(call);
    output
}

/// Versioned and prefixed names of one program mean the same.
fn canonical(name: &str) -> &str {
    match name {
        "gmake" => return "make",
        "gsed" => return "sed",
        "gtar" | "bsdtar" => return "tar",
        "grm" => return "rm",
        "gfind" | "bfs" => return "find",
        "gxargs" => return "xargs",
        _ => {}
    }
    let bare = name.trim_end_matches(|last: char| last.is_ascii_digit() || last == '.');
    match bare.strip_suffix('-').unwrap_or(bare) {
        short @ ("python" | "pypy" | "perl" | "ruby" | "php" | "lua" | "node" | "tclsh" | "pip" | "bash" | "gawk") => short,
        _ => name.strip_suffix(".exe").unwrap_or(name),
    }
}

/// Reports every pattern rule that finds the call.
fn patterns(run: &mut Run<'_>, call: &Call<'_>) {
    let patterns = rules::of_program(call.name);
    if patterns.is_empty() {
        return;
    }
    let options = Options::parse(call.arguments, programs::grammar(call.name));
    if helps(&options) {
        return;
    }
    for (pattern, rule) in patterns {
        if let Some(at) = pattern.finds(call, &options) {
            run.report(rule.id, call.span_of(at), crate::finding::Target::None, call.name);
        }
    }
}

/// Tells whether a program with subcommands is only asked what it can do.
fn helps(options: &Options<'_>) -> bool {
    options.asks_for_help() || options.operands.first().is_some_and(|first| first.text == "help")
}
