//! Paths that only readers may be given: those the user denies, and our own controls.
//!
//! Handlers know where a program writes, but not every program has one. So whatever is not known
//! to only read counts as writing to the paths among its arguments; what deletes or moves whole
//! directories also counts as writing to what lies below them.

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::finding::{Span, Target};
use crate::paths::covers;
use crate::run::{Call, Run};
use crate::text::{self, STAR, UNKNOWN};

/// Programs that change nothing they are given.
static READERS: LazyLock<HashSet<&str>> =
    LazyLock::new(|| include_str!("readers.txt").split_whitespace().collect());

/// Programs that take away whole directories whatever their options are.
const TAKING: &[&str] = &[
    "mv",
    "gmv",
    "rimraf",
    "del-cli",
    "trash",
    "trash-put",
    "del",
    "rmrf",
    "rip",
    "rename",
    "prename",
    "perl-rename",
    "rm-improved",
    "gio",
];

/// Programs that read their sources; where they write is known by their handlers.
const COPIERS: &[&str] = &[
    "cp", "gcp", "install", "ginstall", "ditto", "scp", "rsync", "tar", "zip", "curl", "wget",
];

/// Judges the arguments of a call that names protected paths.
pub(super) fn judge(run: &mut Run<'_>, call: &Call<'_>) {
    let rules = !run.user_rules.paths.is_empty();
    let controls = !run.context.controls.is_empty();
    if reads(call)
        || call
            .texts()
            .any(|text| matches!(text, "--help" | "--version"))
    {
        return;
    }
    let whole = call.bulk || takes_whole(call);
    let extracts = call.name == "tar"
        && (call
            .texts()
            .next()
            .is_some_and(|first| !first.starts_with("--") && first.contains('x'))
            || call
                .texts()
                .any(|text| matches!(text, "--extract" | "--get" | "-x")));
    let copies = COPIERS.contains(&call.name) && !whole && !extracts;
    if rules
        && matches!(
            call.name,
            "fd" | "fdfind" | "unzip" | "unrar" | "7z" | "cpio" | "bsdcpio"
        )
    {
        touches_here(run, call, whole);
    }
    let links = matches!(call.name, "ln" | "gln" | "mount" | "bindfs");
    for argument in call.arguments {
        let text = argument.text.as_str();
        let likely = rules || controls || text.contains("exoshell") || text::globbed(text);
        if !likely || text.len() > 4096 {
            continue;
        }
        // A relative path is built on the directory.
        let directory = run.state.cwd.as_deref().map_or(0, str::len);
        let cost = if text::globbed(text) { 24 } else { 4 };
        if !run.step(cost) || !run.handle((text.len() + directory) * 4) {
            return;
        }
        for candidate in candidates(text) {
            let reach = Reach {
                whole,
                links,
                copies: copies || call.name == "dd" && text.starts_with("if="),
                bulk: call.bulk,
            };
            touches(run, candidate, reach, argument.span);
        }
    }
    if call.name == "zip"
        && let Some(file) = call
            .arguments
            .iter()
            .find(|file| !file.text.starts_with('-'))
    {
        run.writes_to(&file.text, false, file.span);
    }
}

/// How far a program reaches from a path it is given.
#[derive(Debug, Clone, Copy)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a fact of its own about the program"
)]
struct Reach {
    /// What lies below is taken as well.
    whole: bool,
    /// It only reads the path.
    copies: bool,
    /// It makes another way to the path.
    links: bool,
    /// The path was found by another program.
    bulk: bool,
}

/// Tells whether a program only reads, with these options.
fn reads(call: &Call<'_>) -> bool {
    let any = |wanted: &dyn Fn(&str) -> bool| call.texts().any(wanted);
    match call.name {
        "find" => {
            !any(&|text| matches!(text, "-delete") || text.starts_with("-fprint") || text == "-fls")
        }
        "fd" | "fdfind" => !fd_changes(call),
        "xargs" | "parallel" => true,
        "jq" | "yq" => {
            !any(&|text| text.starts_with("-i") || text == "--in-place" || text == "--inplace")
        }
        "sed" => !any(&|text| {
            text.starts_with("--in-place")
                || text.starts_with('-') && !text.starts_with("--") && text.contains('i')
        }),
        name if super::shell::SHELLS.contains(&name) => any(&|text| text == "-n"),
        "awk" | "gawk" | "mawk" => !any(&|text| text.contains("inplace")),
        "sort" | "shuf" => !any(&|text| text.starts_with("-o") || text.starts_with("--o")),
        "tree" => !any(&|text| text.starts_with("-o")),
        "uniq" | "xxd" => call.texts().filter(|text| !text.starts_with('-')).count() < 2,
        "tar" => lists(call),
        "unzip" => any(&|text| matches!(text, "-l" | "-v" | "-t" | "-p" | "-Z")),
        // A copy reads its sources; where it goes is judged by its handler.
        name => READERS.contains(name),
    }
}

/// `fd -x program` with a program that does not only read.
fn fd_changes(call: &Call<'_>) -> bool {
    let at = call
        .texts()
        .position(|text| matches!(text, "-x" | "-X" | "--exec" | "--exec-batch"));
    at.and_then(|at| call.arguments.get(at + 1))
        .is_some_and(|program| !READERS.contains(program.text.as_str()))
}

fn lists(call: &Call<'_>) -> bool {
    call.texts().next().is_some_and(|first| {
        first == "--list"
            || !first.starts_with("--")
                && first.contains('t')
                && !first.contains(['x', 'c', 'r', 'u'])
    })
}

fn takes_whole(call: &Call<'_>) -> bool {
    let short = |letters: &[char]| {
        call.texts().any(|text| {
            text.strip_prefix('-')
                .is_some_and(|rest| !rest.starts_with('-') && rest.contains(letters))
        })
    };
    let long = |start: &str| call.texts().any(|text| text.starts_with(start));
    match call.name {
        "rm" | "srm" | "safe-rm" => call.bulk || short(&['r', 'R']) || long("--r"),
        "chmod" | "gchmod" | "chown" | "chgrp" | "gchown" | "setfacl" | "chattr" | "chcon" => {
            short(&['R']) || long("--rec")
        }
        "rsync" => long("--del") || long("--remove-source"),
        "tar" => long("--remove-files"),
        "zip" => short(&['m']) || long("--move"),
        "find" | "fd" | "fdfind" => true,
        "unlink" | "rmdir" | "shred" | "wipe" | "truncate" => call.bulk,
        name => TAKING.contains(&name),
    }
}

/// Returns the parts of an argument that may be a path.
fn candidates(text: &str) -> impl Iterator<Item = &str> {
    let whole = (!text.starts_with('-')).then_some(text);
    let value = text.split_once('=').map(|(_, value)| value);
    let attached = text
        .strip_prefix('-')
        .filter(|rest| !rest.starts_with('-'))
        .map(|rest| text::from(rest, rest.chars().next().map_or(0, char::len_utf8)))
        .filter(|rest| !rest.is_empty());
    let mounted = text.contains(':').then(|| text.split(':').next()).flatten();
    let list = value.into_iter().flat_map(|value| value.split([',', ':']));
    let prefixed = text
        .strip_prefix('@')
        .or_else(|| text.strip_prefix("file://"));
    whole
        .into_iter()
        .chain(list)
        .chain(
            value
                .and_then(|value| value.split_once('='))
                .map(|(_, value)| value),
        )
        .chain(attached)
        .chain(mounted)
        .chain(prefixed)
        .filter(|part| !part.is_empty() && !part.contains('\n'))
}

/// The current directory, for programs that work there when they are told nothing else.
fn touches_here(run: &mut Run<'_>, call: &Call<'_>, whole: bool) {
    let here = run.paths().absolute(".");
    let elsewhere = call
        .texts()
        .any(|text| text == "-d" || text.starts_with("-o"))
        || whole
            && call
                .arguments
                .iter()
                .filter(|word| !word.text.starts_with('-'))
                .count()
                > 2;
    if !here.is_empty() && !elsewhere {
        run.denied(&here, whole, ".", call.span);
    }
}

fn touches(run: &mut Run<'_>, text: &str, reach: Reach, span: Span) {
    let Some(resolved) = run.paths().resolve(text) else {
        return;
    };
    let mut path = resolved.path;
    if resolved.contents && !reach.bulk {
        path = contents(path, text);
    }
    if reach.bulk {
        path = path.replace(UNKNOWN, &STAR.to_string());
    }
    if !reach.copies {
        run.denied(&path, reach.whole, text, span);
    }
    let up = reach.whole || reach.links;
    let controls = &run.context.controls;
    let own = run.paths().control(&path)
        || controls.iter().any(|control| covers(&path, control, up))
        || [".exoshell", ".config/exoshell"]
            .iter()
            .any(|own| text::globbed(text) && covers(&path, &format!("{}/{own}", run.home), up));
    if own {
        run.report("own-controls", span, Target::None, text);
    }
}

/// Returns the pattern for what is in a directory, as far as `text` named it.
pub(super) fn contents(mut path: String, text: &str) -> String {
    path.push('/');
    if text
        .rsplit('/')
        .next()
        .is_some_and(|last| last.starts_with('.'))
    {
        path.push('.');
    }
    path.push(STAR);
    path
}

impl Run<'_> {
    /// Reports what the user's rules say about a path that is written to, or above which something
    /// is taken away.
    pub(crate) fn denied(&mut self, path: &str, whole: bool, text: &str, span: Span) {
        if let Some(rule) = self.user_rules.path(path, whole).report() {
            self.report(rule, span, Target::None, text);
        }
    }
}
