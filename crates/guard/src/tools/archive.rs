//! Archives and compressed files.

use super::options::{Grammar, Options};
use super::{Handler, Table};
use crate::finding::Target;
use crate::run::{Call, Origin, Run, Stream};
use crate::text::UNKNOWN;

pub(super) const TABLE: Table = &[
    (&["tar"], tar as Handler),
    (
        &["unzip", "7z", "7za", "unrar", "cpio", "pax", "dpkg-deb"],
        extract,
    ),
    (
        &[
            "gzip",
            "gunzip",
            "bzip2",
            "bunzip2",
            "xz",
            "unxz",
            "zstd",
            "unzstd",
            "lz4",
            "brotli",
            "zcat",
            "bzcat",
            "xzcat",
            "zstdcat",
            "lzcat",
            "gzcat",
            "uncompress",
            "compress",
        ],
        decompress,
    ),
];

/// Letters of `tar` that take a value.
const TAR_VALUES: &str = "fCIbFgHKLNTVX";

/// Long options of `tar` that take a value.
const TAR: &[&str] = &[
    "file",
    "directory",
    "use-compress-program",
    "to-command",
    "checkpoint-action",
    "rsh-command",
    "info-script",
    "new-volume-script",
    "exclude",
    "transform",
    "files-from",
    "owner",
    "group",
    "mode",
    "exclude-from",
    "strip-components",
    "rmt-command",
];

fn tar(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let mut arguments = call.arguments.to_vec();
    // The old form: letters without a dash, their values in order after them.
    if let Some(first) = arguments
        .first_mut()
        .filter(|first| !first.text.starts_with('-') && first.text.len() < 12)
    {
        first.text = reordered(&first.text);
    }
    let options = Options::parse(&arguments, Grammar::new(TAR_VALUES, TAR));
    if options.asks_for_help() {
        return Stream::unknown();
    }
    tar_commands(run, call, &options);
    let extracts = options.has("x", "extract") || options.long_flag("get");
    let creates = options.has("cru", "create");
    if extracts && !options.has("O", "to-stdout") {
        let directory = options.value("C", "directory").unwrap_or(".");
        run.writes_to(directory, true, call.span);
        if options.has("P", "absolute-names")
            && options
                .flags
                .iter()
                .any(|flag| flag.name == "absolute-names")
        {
            run.report(
                "system-write",
                call.span,
                Target::System,
                "absolute names in an archive",
            );
        }
    }
    let mut origin = run
        .stdin
        .as_ref()
        .map_or(Origin::NONE, |stream| stream.origin);
    if extracts {
        return Stream::from(origin.with(Origin::DECODED));
    }
    if creates {
        for operand in &options.operands {
            origin = origin.with(run.read_file(operand.text, call.span_of(operand.at)).origin);
        }
        if let Some(file) = options.value("f", "file").filter(|file| *file != "-") {
            run.writes_to(file, false, call.span);
        }
        if options.long_flag("remove-files") {
            run.report("bulk-delete", call.span, Target::Unknown, "--remove-files");
        }
    }
    Stream::from(origin)
}

/// Options of `tar` whose value is a command.
fn tar_commands(run: &mut Run<'_>, call: &Call<'_>, options: &Options<'_>) {
    for flag in options.flags.iter().filter(|flag| flag.value.is_some()) {
        let value = flag.value.unwrap_or_default();
        let span = call.span_of(flag.at);
        let command = match flag.name {
            "to-command" | "rsh-command" | "info-script" | "new-volume-script" | "rmt-command"
                if flag.long =>
            {
                value
            }
            "F" if !flag.long => value,
            "checkpoint-action" if value.contains("exec") => {
                value.split_once('=').map_or(value, |(_, command)| command)
            }
            "I" | "use-compress-program" if !compressor(value) => value,
            name if flag.long && "to-command".starts_with(name) && name.len() > 2 => value,
            _ => continue,
        };
        run.report("tool-runs-command", span, Target::None, command);
        run.subshell(|run| run.script(command, span));
    }
}

/// Moves the letters that take a value to the end, each then takes the next word in turn. Only
/// the first such letter is followed; `f` comes first in nearly all uses.
fn reordered(letters: &str) -> String {
    let (values, flags): (Vec<char>, Vec<char>) = letters
        .chars()
        .partition(|letter| TAR_VALUES.contains(*letter));
    let mut text = String::from("-");
    text.extend(flags);
    text.extend(values.first());
    text
}

/// Tells whether a command is one of the usual compressors and nothing else.
pub(super) fn compressor(command: &str) -> bool {
    let program = command.split_whitespace().next().unwrap_or_default();
    let program = program.rsplit('/').next().unwrap_or_default();
    let known = [
        "gzip",
        "pigz",
        "bzip2",
        "pbzip2",
        "lbzip2",
        "xz",
        "pixz",
        "zstd",
        "zstdmt",
        "pzstd",
        "lz4",
        "lzip",
        "plzip",
        "lzma",
        "brotli",
        "lzop",
        "compress",
        "uncompress",
        "unzstd",
        "unxz",
        "gunzip",
    ];
    known.contains(&program) && !command.contains([';', '|', '&', '$', '`', '\''])
}

fn extract(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, Grammar::new("dxPDFOIo", &["directory"]));
    let directory = match call.name {
        "unzip" => options.value("d", ""),
        "cpio" => options.value("D", "directory"),
        "7z" | "7za" => call.texts().find_map(|text| text.strip_prefix("-o")),
        "dpkg-deb" => options.texts().nth(1),
        _ => None,
    };
    if let Some(directory) = directory.filter(|directory| !directory.is_empty()) {
        run.writes_to(directory, true, call.span);
    }
    Stream::from(Origin::DECODED)
}

fn decompress(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, Grammar::new("STM", &["suffix", "threads"]));
    let mut origin = run
        .stdin
        .as_ref()
        .map_or(Origin::NONE, |stream| stream.origin);
    for operand in &options.operands {
        origin = origin.with(run.read_file(operand.text, call.span_of(operand.at)).origin);
        let keeps = options.short("ckltv") || call.name.ends_with("cat");
        if !keeps && operand.text != UNKNOWN.to_string() {
            run.writes_to(operand.text, true, call.span_of(operand.at));
        }
    }
    Stream::from(origin.with(Origin::DECODED))
}
