//! `find`, `xargs`, `parallel`, `fd`: one command for many names.

use super::options::{Grammar, Options};
use super::{Handler, Table};
use crate::finding::{Span, Target};
use crate::paths::Loss;
use crate::run::{Argument, Call, Run, Stream};
use crate::text::{STAR, UNKNOWN};

pub(super) const TABLE: Table = &[
    (&["find"], find as Handler),
    (&["xargs"], xargs),
    (&["parallel", "rush", "env_parallel"], parallel),
    (&["fd", "fdfind"], fd),
];

/// Tests that do not choose by name, age or the like.
const NOT_CHOOSING: &[&str] = &[
    "-mindepth",
    "-maxdepth",
    "-depth",
    "-d",
    "-xdev",
    "-mount",
    "-print",
    "-print0",
    "-ls",
    "-type",
    "-xtype",
    "-follow",
    "-noleaf",
    "-ignore_readdir_race",
    "-true",
    "-o",
    "-or",
    "-a",
    "-and",
    "-warn",
    "-nowarn",
    "-quit",
    "-daystart",
    "-prune",
];

fn find(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let texts: Vec<&str> = call.texts().collect();
    if texts
        .iter()
        .any(|text| matches!(*text, "--help" | "-help" | "--version" | "-version"))
    {
        return Stream::unknown();
    }
    let mut at = 0;
    while texts.get(at).is_some_and(|text| {
        matches!(*text, "-H" | "-L" | "-P" | "-D" | "-E" | "-X" | "-s")
            || text.starts_with("-O")
            || text == &"--"
    }) {
        at += 1 + usize::from(texts.get(at) == Some(&"-D"));
    }
    let start = at;
    while texts.get(at).is_some_and(|text| {
        let expression = matches!(*text, "(" | "!" | ")" | ",");
        !expression && (text.len() < 2 || !text.starts_with('-'))
    }) {
        at += 1;
    }
    let roots: Vec<&str> = if at == start {
        vec!["."]
    } else {
        texts.get(start..at).unwrap_or_default().to_vec()
    };
    expression(run, call, &roots, at);
    let everything = !texts
        .iter()
        .skip(at)
        .any(|text| text.starts_with('-') && chooses(text));
    let names: Vec<String> = roots.iter().map(|root| found(root, everything)).collect();
    Stream::known(names.join("\n") + "\n")
}

fn chooses(text: &str) -> bool {
    !NOT_CHOOSING.contains(&text)
}

/// What `{}` stands for: everything below a root, or something there.
fn found(root: &str, everything: bool) -> String {
    let sign = if everything { STAR } else { UNKNOWN };
    format!("{}/{sign}", root.trim_end_matches('/'))
}

/// Walks the expression in order: a test only spares what comes after it.
fn expression(run: &mut Run<'_>, call: &Call<'_>, roots: &[&str], from: usize) {
    let mut everything = true;
    let mut at = from;
    while let Some(argument) = call.arguments.get(at) {
        let text = argument.text.as_str();
        match text {
            "-delete" => {
                for root in roots {
                    find_delete(run, root, everything, argument.span);
                }
            }
            "-exec" | "-execdir" | "-ok" | "-okdir" => {
                let end = call
                    .from(at)
                    .iter()
                    .position(|word| matches!(word.text.as_str(), ";" | "+"))
                    .map_or(call.arguments.len(), |end| at + end);
                let words = call.arguments.get(at + 1..end).unwrap_or_default();
                execute(run, call, words, roots, everything);
                at = end;
            }
            "-fprint" | "-fprint0" | "-fls" | "-fprintf" => {
                if let Some(file) = call.arguments.get(at + 1) {
                    run.writes_to(&file.text, false, file.span);
                }
                at += 1;
            }
            // A name that fits all chooses none.
            "-name" | "-iname" | "-path" | "-wholename" | "-regex" => {
                let pattern = call
                    .arguments
                    .get(at + 1)
                    .map_or("", |next| next.text.as_str());
                let all = !pattern.is_empty()
                    && pattern
                        .chars()
                        .all(|sign| "*./".contains(sign) || sign == STAR);
                everything &= all;
                at += 1;
            }
            _ if text.starts_with('-') && chooses(text) => everything = false,
            _ => {}
        }
        at += 1;
    }
}

fn find_delete(run: &mut Run<'_>, root: &str, everything: bool, span: Span) {
    let path = run.paths().absolute(root);
    run.denied(&path, true, root, span);
    let target = run.paths().target_of(root);
    let rule = match run.paths().loss(root) {
        Loss::Root if everything => "wipe-root",
        Loss::Home if everything => "wipe-home",
        Loss::System if everything => "wipe-system",
        _ => "bulk-delete",
    };
    run.report(rule, span, target, root);
}

fn execute(
    run: &mut Run<'_>,
    call: &Call<'_>,
    words: &[Argument],
    roots: &[&str],
    everything: bool,
) {
    let Some(first) = words.first() else { return };
    let name = first.text.rsplit('/').next().unwrap_or_default();
    if words.len() == 1 && super::shell::SHELLS.contains(&name) {
        run.report("tool-runs-command", first.span, Target::None, name);
    }
    for root in roots.iter().take(4) {
        let name = found(root, everything);
        let words: Vec<Argument> = words
            .iter()
            .map(|word| Argument {
                text: word.text.replace("{}", &name),
                span: word.span,
            })
            .collect();
        run.subshell(|run| run.run_words(&words, call.span, true));
    }
}

fn xargs(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    const LONG: &[&str] = &[
        "arg-file",
        "delimiter",
        "max-args",
        "max-procs",
        "max-chars",
        "max-lines_",
        "replace_",
        "process-slot-var",
    ];
    let options = Options::parse(call.arguments, Grammar::new("aEdILnPsJRS", LONG).stopping());
    if options.asks_for_help() {
        return Stream::unknown();
    }
    let replace = options
        .value("IJ", "replace")
        .or_else(|| options.has("i", "replace").then_some("{}"));
    let input = match options.value("a", "arg-file") {
        Some(file) => run.read_file(file, call.span),
        None => run.stdin.clone().unwrap_or_default(),
    };
    let items = items(&input, &options, replace.is_some());
    let Some(first) = options.operands.first() else {
        return Stream::from(input.origin);
    };
    let words = call.from(first.at);
    let outer = run.substituted;
    run.substituted = outer.with(input.origin);
    let rounds: Vec<Vec<String>> = if replace.is_some() {
        some(items, 4).map(|item| vec![item]).collect()
    } else {
        vec![items]
    };
    for items in rounds {
        let built = build(words, &items, replace, call.span);
        run.subshell(|run| {
            run.reading(Some(Stream::silent()), |run| {
                run.run_words(&built, call.span, true)
            })
        });
    }
    run.substituted = outer;
    Stream::from(input.origin)
}

/// Splits the input as `xargs` would.
fn items(input: &Stream, options: &Options<'_>, lines: bool) -> Vec<String> {
    let Some(text) = &input.text else {
        return vec![UNKNOWN.to_string()];
    };
    let items: Vec<String> = if options.has("0", "null") {
        text.split(['\0', '\n']).map(str::to_owned).collect()
    } else if let Some(delimiter) = options.value("d", "delimiter") {
        let delimiter = crate::text::unescape(delimiter, crate::text::Escapes::Echo).0;
        text.split(delimiter.chars().next().unwrap_or('\n'))
            .map(str::to_owned)
            .collect()
    } else if lines {
        text.lines().map(|line| line.trim().to_owned()).collect()
    } else {
        text.split_whitespace()
            .map(|word| word.trim_matches(['\'', '"']).to_owned())
            .collect()
    };
    let items = items
        .into_iter()
        .map(|item| item.trim_end_matches('\n').to_owned())
        .filter(|item| !item.is_empty())
        .collect();
    some(items, 64).collect()
}

/// Returns the first items, and an unknown one that stands for all others.
fn some(items: Vec<String>, count: usize) -> impl Iterator<Item = String> {
    let others = (items.len() > count).then(|| UNKNOWN.to_string());
    items.into_iter().take(count).chain(others)
}

fn build(words: &[Argument], items: &[String], replace: Option<&str>, span: Span) -> Vec<Argument> {
    if let (Some(mark), Some(item)) = (replace.filter(|mark| !mark.is_empty()), items.first()) {
        return words
            .iter()
            .map(|word| Argument {
                text: word.text.replace(mark, item),
                span: word.span,
            })
            .collect();
    }
    let added = items.iter().map(|item| Argument {
        text: item.clone(),
        span,
    });
    words.iter().cloned().chain(added).collect()
}

fn parallel(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    const LONG: &[&str] = &[
        "jobs", "arg-file", "colsep", "delay", "timeout", "joblog", "results", "sshlogin",
        "max-args", "retries", "workdir", "tmpdir", "memfree", "load", "basefile", "return", "env",
        "halt",
    ];
    let options = Options::parse(call.arguments, Grammar::new("jaCSnNPsILD", LONG).stopping());
    if options.asks_for_help() || options.long_flag("dry-run") || options.long_flag("dryrun") {
        return Stream::unknown();
    }
    let from = options
        .operands
        .first()
        .map_or(call.arguments.len(), |operand| operand.at);
    let words = call.from(from);
    let split = words
        .iter()
        .position(|word| word.text.starts_with(":::"))
        .unwrap_or(words.len());
    let (template, known) = words.split_at_checked(split).unwrap_or_default();
    let known: Vec<String> = known
        .iter()
        .skip(1)
        .filter(|word| !word.text.starts_with(":::"))
        .map(|word| word.text.clone())
        .collect();
    let items = if known.is_empty() {
        let input = run.stdin.clone().unwrap_or_default();
        items(&input, &options, true)
    } else {
        known
    };
    let template: Vec<&str> = template.iter().map(|word| word.text.as_str()).collect();
    let template = template.join(" ");
    for item in some(items, 8) {
        let script = if template.is_empty() {
            item
        } else if template.contains("{}") {
            template.replace("{}", &item)
        } else {
            format!("{template} {item}")
        };
        run.subshell(|run| run.script(&script, call.span));
    }
    if template.is_empty() {
        run.report("hidden-code", call.span, Target::None, "parallel");
    }
    Stream::unknown()
}

fn fd(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let execute = call.arguments.iter().position(|argument| {
        matches!(
            argument.text.as_str(),
            "-x" | "-X" | "--exec" | "--exec-batch"
        )
    });
    let Some(at) = execute else {
        return Stream::unknown();
    };
    let mut words: Vec<Argument> = call
        .from(at + 1)
        .iter()
        .take_while(|word| word.text != ";")
        .cloned()
        .collect();
    if words.iter().any(|word| word.text.contains("{}")) {
        for word in &mut words {
            word.text = word.text.replace("{}", &UNKNOWN.to_string());
        }
    } else {
        words.push(Argument {
            text: UNKNOWN.to_string(),
            span: call.span,
        });
    }
    run.subshell(|run| run.run_words(&words, call.span, true))
}
