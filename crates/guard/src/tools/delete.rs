//! Programs that delete.

use super::options::{Grammar, Options};
use super::{Handler, Table};
use crate::finding::Target;
use crate::run::{Call, Run, Stream};

pub(super) const TABLE: Table = &[
    (&["rm", "srm", "safe-rm"], rm as Handler),
    (
        &[
            "rimraf",
            "del-cli",
            "trash",
            "trash-put",
            "del",
            "rmrf",
            "rip",
            "rm-improved",
        ],
        always_recursive,
    ),
    (&["unlink", "rmdir"], unlink),
    (&["shred", "wipe", "scrub"], shred),
    (&["truncate"], truncate),
];

fn rm(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, Grammar::PLAIN);
    if options.asks_for_help() {
        return Stream::unknown();
    }
    let recursive = options.has("rR", "recursive");
    for operand in &options.operands {
        run.deletes(operand.text, recursive, call.bulk, call.span_of(operand.at));
    }
    Stream::silent()
}

fn always_recursive(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, Grammar::PLAIN);
    if options.asks_for_help() {
        return Stream::unknown();
    }
    for operand in &options.operands {
        run.deletes(operand.text, true, call.bulk, call.span_of(operand.at));
    }
    Stream::silent()
}

fn unlink(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, Grammar::PLAIN);
    for operand in options.operands.iter().filter(|_| !options.asks_for_help()) {
        run.deletes(
            operand.text,
            false,
            call.bulk && call.name == "unlink",
            call.span_of(operand.at),
        );
    }
    Stream::silent()
}

fn shred(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(
        call.arguments,
        Grammar::new("ns", &["iterations", "size", "random-source"]),
    );
    if options.asks_for_help() {
        return Stream::unknown();
    }
    for operand in &options.operands {
        let span = call.span_of(operand.at);
        run.writes_to(operand.text, false, span);
        let target = run.paths().target_of(operand.text);
        run.report("shred", span, target, operand.text);
    }
    if options.operands.is_empty() && call.bulk {
        run.report("shred", call.span, Target::Unknown, "");
    }
    Stream::silent()
}

fn truncate(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, Grammar::new("sr", &["size", "reference"]));
    for operand in options.operands.iter().filter(|_| !options.asks_for_help()) {
        run.writes_to(operand.text, false, call.span_of(operand.at));
    }
    let empties = options
        .value("s", "size")
        .is_some_and(|size| size.trim_start_matches(['<', '=']) == "0");
    let many = call.bulk || empties && options.texts().any(crate::text::globbed);
    if many && !options.asks_for_help() {
        run.report("bulk-delete", call.span, Target::Unknown, call.name);
    }
    Stream::silent()
}
