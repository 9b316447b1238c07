//! Programs: what each would do with its arguments.
//!
//! A program is handled by code when its arguments hide other commands or paths, and by patterns
//! in [`crate::rules`] when its options and operands say it all. Many have both.

mod archive;
mod awk;
mod builtin;
mod delete;
mod disk;
mod effects;
mod fed;
mod find;
mod git;
mod interpreter;
mod network;
mod options;
mod output;
mod pattern;
mod permissions;
mod process;
mod programs;
mod protected;
mod sed;
mod shell;
mod sql;
mod wrapper;
mod write;

use std::sync::LazyLock;

use crate::names::Names;
use crate::rules::{self, Rule};
use crate::run::{Call, Run, Stream};
use options::{Grammar, Options};
use pattern::Pattern;

/// Judges a call and returns what it prints.
type Handler = fn(&mut Run<'_>, &Call<'_>) -> Stream;

/// Programs and the code that knows them.
type Table = &'static [(&'static [&'static str], Handler)];

/// Everything that is known of a program.
#[derive(Debug, Default)]
struct Program {
    handler: Option<Handler>,
    wrappers: Vec<wrapper::Wrapper>,
    interpreter: Option<&'static interpreter::Interpreter>,
    /// Whether it prints or copies the files it is given.
    reads: bool,
    patterns: Vec<(Pattern, &'static Rule)>,
}

/// All programs, found by one look.
static PROGRAMS: LazyLock<Names<Program>> = LazyLock::new(|| {
    let tables: &[Table] = &[
        archive::TABLE,
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
    let mut programs = Names::<Program>::default();
    for (names, handler) in tables.iter().copied().flatten() {
        for name in *names {
            programs.entry(name).or_default().handler = Some(*handler);
        }
    }
    for (names, wrapper) in wrapper::table() {
        for name in names {
            programs
                .entry(name)
                .or_default()
                .wrappers
                .push(wrapper.clone());
        }
    }
    for interpreter in interpreter::INTERPRETERS {
        for name in interpreter.names {
            programs.entry(name).or_default().interpreter = Some(interpreter);
        }
    }
    for name in effects::READERS {
        programs.entry(name).or_default().reads = true;
    }
    for rule in rules::all() {
        for text in rule.patterns {
            let pattern = Pattern::parse(text);
            for name in pattern.programs() {
                programs
                    .entry(name)
                    .or_default()
                    .patterns
                    .push((pattern.clone(), rule));
            }
        }
    }
    programs
});

/// Judges one call by everything that is known of its program.
pub(crate) fn judge(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let renamed = if run.state.renames_programs() {
        let path = run.paths().absolute(call.word);
        run.state.program(&path, call.name).map(str::to_owned)
    } else {
        None
    };
    let name = canonical(renamed.as_deref().unwrap_or(call.name));
    let call = &Call { name, ..*call };
    if call.word.contains('/') {
        run.executes_file(call.word, shell::Kind::Program, call.span);
        programs::init_script(run, call);
    }
    if let Some(output) = wrapper::special(run, call) {
        return output;
    }
    fed::judge(run, call);
    let Some(program) = PROGRAMS.get(name) else {
        fed::shell(run, call);
        protected::judge(run, call);
        return effects::passes_through(run, call, false);
    };
    let wrapped = wrapper::judge(run, call, &program.wrappers);
    if wrapped.is_none() {
        fed::shell(run, call);
    }
    let direct = wrapped.is_none();
    let output = if let Some(output) = wrapped {
        output
    } else if let Some(handler) = program.handler {
        handler(run, call)
    } else if let Some(interpreter) = program.interpreter {
        interpreter::judge(run, call, interpreter)
    } else {
        effects::passes_through(run, call, program.reads)
    };
    if direct {
        protected::judge(run, call);
    }
    if !program.patterns.is_empty() {
        patterns(run, call, &program.patterns);
    }
    if program.reads {
        run.reads_secrets(call);
    }
    output
}

/// Tells whether a word names a program that is known here.
fn is_program(word: &str) -> bool {
    let name = canonical(word.rsplit('/').next().unwrap_or(word));
    PROGRAMS.get(name).is_some()
        || matches!(
            name,
            "env" | "sudo" | "doas" | "pkexec" | "su" | "runuser" | "exec" | "command" | "busybox"
        )
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
    if !name.ends_with(|last: char| last.is_ascii_digit() || last == '.' || last == 'e') {
        return name;
    }
    let bare = name.trim_end_matches(|last: char| last.is_ascii_digit() || last == '.');
    match bare.strip_suffix('-').unwrap_or(bare) {
        short @ ("python" | "pypy" | "perl" | "ruby" | "php" | "lua" | "node" | "tclsh" | "pip"
        | "bash" | "gawk") => short,
        _ => name.strip_suffix(".exe").unwrap_or(name),
    }
}

/// Reports every pattern rule that finds the call.
fn patterns(run: &mut Run<'_>, call: &Call<'_>, patterns: &[(Pattern, &'static Rule)]) {
    let options = Options::parse(call.arguments, programs::grammar(call.name));
    if helps(&options) {
        return;
    }
    for (pattern, rule) in patterns {
        if let Some(at) = pattern.finds(call, &options) {
            run.report(
                rule.id,
                call.span_of(at),
                crate::finding::Target::None,
                call.name,
            );
        }
    }
}

/// Tells whether a program with subcommands is only asked what it can do.
fn helps(options: &Options<'_>) -> bool {
    options.asks_for_help()
        || options
            .operands
            .first()
            .is_some_and(|first| first.text == "help")
}
