//! Programs that create, copy and change files.

use super::archive::compressor;
use super::builtin::ordinary;
use super::options::{Grammar, Options};
use super::{Handler, Table};
use crate::finding::Target;
use crate::run::{Call, Origin, Run, Stream};

pub(super) const TABLE: Table = &[
    (
        &[
            "cp", "mv", "install", "ln", "gcp", "gmv", "ginstall", "gln", "link", "ditto",
        ],
        copy as Handler,
    ),
    (&["tee", "sponge"], tee),
    (&["touch", "mkdir", "mkfifo", "mknod"], create),
    (&["dd", "dcfldd", "dc3dd"], dd),
    (&["rsync"], rsync),
    (
        &[
            "sort", "patch", "objcopy", "split", "csplit", "shuf", "uniq", "iconv", "dos2unix",
            "ex", "ed", "crudini", "gpg", "openssl", "qemu-img", "ddrescue", "pv", "mcopy", "zip",
        ],
        to_file,
    ),
];

/// The last operand, or `-t`, is where the others go.
fn copy(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(
        call.arguments,
        Grammar::new(
            "tSmgo",
            &["target-directory", "suffix", "mode", "owner", "group"],
        ),
    );
    if options.asks_for_help() {
        return Stream::unknown();
    }
    if call.name == "install" {
        if let Some((mode, at)) = options.values("m", "mode").next() {
            run.mode(mode, call.span_of(at), Target::None);
        }
        if options.has("d", "directory") {
            for operand in &options.operands {
                run.writes_to(operand.text, false, call.span_of(operand.at));
            }
            return Stream::silent();
        }
    }
    let (sources, target) = match (
        options.values("t", "target-directory").next(),
        options.operands.split_last(),
    ) {
        (Some((directory, at)), _) => (&options.operands[..], Some((directory, at))),
        (None, Some((last, rest))) if !rest.is_empty() => (rest, Some((last.text, last.at))),
        (None, _) => (&options.operands[..], None),
    };
    // `ln -s target` makes a link of the same name here.
    let (target, at) = target.unwrap_or((".", 0));
    run.writes_to(target, false, call.span_of(at));
    if call.bulk && run.paths().absolute(target) == "/dev/null"
        || call.name == "mv" && run.paths().absolute(target) == "/dev/null"
    {
        run.report("bulk-delete", call.span, Target::Unknown, "mv to /dev/null");
    }
    for source in sources {
        let span = call.span_of(source.at);
        if call.name == "mv" {
            moved(run, source.text, span);
        }
        if matches!(call.name, "cp" | "mv" | "ln" | "install") {
            carry(run, source.text, target);
        }
    }
    Stream::silent()
}

/// Moving away is deleting from there.
fn moved(run: &mut Run<'_>, source: &str, span: crate::finding::Span) {
    let path = run.paths().absolute(source);
    let target = run.paths().target(&path);
    if run.paths().system(&path) {
        run.report("system-write", span, target, source);
    } else if run.paths().control(&path) {
        run.report("own-controls", span, target, source);
    } else if run.paths().user_setting(&path) {
        run.report("user-settings", span, target, source);
    } else if matches!(
        run.paths().loss(source),
        crate::paths::Loss::Root | crate::paths::Loss::Home | crate::paths::Loss::System
    ) {
        run.report("system-write", span, target, source);
    }
}

/// A file made here keeps its origin under its new name.
fn carry(run: &mut Run<'_>, source: &str, target: &str) {
    let from = run.paths().absolute(source);
    renamed(run, source, &from, target);
    let input = || {
        let named = matches!(
            from.as_str(),
            "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0"
        );
        run.stdin.clone().filter(|_| named)
    };
    let made = run.state.file_or_parent(&from).cloned();
    let Some(stream) = made.or_else(input) else {
        return;
    };
    let to = run.paths().absolute(target);
    let name = from.rsplit('/').next().unwrap_or_default().to_owned();
    run.state
        .write_file(&format!("{to}/{name}"), stream.clone());
    run.state.write_file(&to, stream);
}

/// A program of the system keeps its meaning under a new name.
fn renamed(run: &mut Run<'_>, source: &str, from: &str, target: &str) {
    let name = source.rsplit('/').next().unwrap_or_default();
    let known = run.state.program(from, "/").map(str::to_owned);
    let system = ["/bin/", "/sbin/", "/usr/", "/opt/"]
        .iter()
        .any(|top| from.starts_with(top));
    let name = match known {
        Some(known) => known,
        None if (system || !source.contains('/')) && super::is_program(name) => name.to_owned(),
        None => return,
    };
    let to = run.paths().absolute(target);
    run.state.rename_program(&to, &name);
}

fn tee(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, Grammar::PLAIN);
    let input = run.stdin.clone().unwrap_or_default();
    for operand in options.operands.iter().filter(|_| !options.asks_for_help()) {
        let append = options.has("a", "append");
        run.writes_to(operand.text, append, call.span_of(operand.at));
        let path = run.paths().absolute(operand.text);
        if path == "/proc/sysrq-trigger" {
            run.system_request(&input);
        }
        if !path.is_empty() && !path.starts_with("/dev/") {
            run.state.write_file(&path, input.clone());
        }
    }
    input
}

fn create(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(
        call.arguments,
        Grammar::new("mrdtZ", &["mode", "reference", "date", "time"]),
    );
    if options.asks_for_help() {
        return Stream::unknown();
    }
    if call.name != "touch"
        && let Some((mode, at)) = options.values("m", "mode").next()
    {
        run.mode(mode, call.span_of(at), Target::None);
    }
    for operand in &options.operands {
        run.writes_to(operand.text, true, call.span_of(operand.at));
    }
    Stream::silent()
}

fn dd(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let mut stream = run.stdin.clone().unwrap_or_default();
    let mut output = None;
    for argument in call.arguments {
        if argument.text.starts_with("--") {
            return Stream::unknown();
        }
        match argument.text.split_once('=') {
            Some(("if", file)) => stream = run.read_file(file, argument.span),
            Some(("of", file)) => output = Some((file, argument.span)),
            _ => {}
        }
    }
    let Some((file, span)) = output else {
        return stream;
    };
    run.writes_to(file, false, span);
    let path = run.paths().absolute(file);
    if path == "/proc/sysrq-trigger" {
        run.system_request(&stream);
    }
    if !path.is_empty() && !path.starts_with("/dev/") {
        run.state.write_file(&path, stream);
    }
    Stream::silent()
}

/// Long options of `rsync` that take a value.
const RSYNC: &[&str] = &[
    "rsh",
    "exclude",
    "include",
    "exclude-from",
    "include-from",
    "files-from",
    "rsync-path",
    "log-file",
    "bwlimit",
    "filter",
    "temp-dir",
    "backup-dir",
    "port",
    "timeout",
    "chmod",
    "chown",
    "partial-dir",
    "link-dest",
    "compare-dest",
    "max-size",
    "min-size",
    "info",
    "out-format",
    "password-file",
];

fn rsync(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, Grammar::new("eBfTM", RSYNC));
    if options.asks_for_help() {
        return Stream::unknown();
    }
    for (command, at) in options
        .values("e", "rsh")
        .chain(options.values("", "rsync-path"))
    {
        let rsync_path = command
            .split_whitespace()
            .any(|word| word.ends_with("rsync"))
            && command.starts_with("sudo");
        if !ordinary(command) && !rsync_path {
            run.report("tool-runs-command", call.span_of(at), Target::None, command);
            run.script(command, call.span_of(at));
        }
    }
    let dry = options.has("n", "dry-run");
    let deletes = options.flags.iter().find(|flag| {
        flag.long
            && (flag.name == "del"
                || flag.name.starts_with("delete")
                || "delete".starts_with(flag.name) && flag.name.len() > 3
                || flag.name == "remove-source-files")
            && flag.name != "delete-missing-args_"
    });
    let Some((target, sources)) = options.operands.split_last() else {
        return Stream::unknown();
    };
    let remote = |text: &str| text.contains(':') && !text.starts_with('/');
    if !dry {
        if let Some(flag) = deletes {
            let target = if remote(target.text) {
                Target::Remote
            } else {
                run.paths().target_of(target.text)
            };
            run.report("sync-delete", call.span_of(flag.at), target, call.name);
        }
        if !sources.is_empty() && !remote(target.text) {
            run.writes_to(target.text, false, call.span_of(target.at));
        }
    }
    let mut origin = Origin::NONE;
    for source in sources {
        if remote(source.text) {
            origin = origin.with(Origin::NETWORK);
        } else {
            origin = origin.with(run.read_file(source.text, call.span_of(source.at)).origin);
        }
    }
    if remote(target.text) {
        run.sends(origin, call.span);
    } else if origin.has(Origin::NETWORK) {
        let path = run.paths().absolute(target.text);
        run.state.write_file(&path, Stream::from(Origin::NETWORK));
    }
    Stream::unknown()
}

/// How those programs read their options.
fn writer_grammar(name: &str) -> Grammar<'static> {
    match name {
        "sort" => Grammar::new(
            "okStT",
            &[
                "output",
                "key",
                "buffer-size",
                "field-separator",
                "temporary-directory",
                "compress-program",
                "parallel",
                "files0-from",
            ],
        ),
        "patch" => Grammar::new(
            "odiprBDFVYz",
            &["output", "directory", "input", "strip", "reject-file"],
        ),
        "gpg" => Grammar::new(
            "oru",
            &["output", "recipient", "local-user", "passphrase", "homedir"],
        ),
        "openssl" => Grammar::new("", &["out", "in", "k", "pass", "keyout"]).dashed(),
        "qemu-img" | "ddrescue" => Grammar::new("fOob", &[]),
        "zip" => Grammar::new("xiTb", &[]),
        _ => Grammar::new("o", &["output"]),
    }
}

/// Programs that name the file they write.
fn to_file(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, writer_grammar(call.name));
    if options.asks_for_help() {
        return Stream::unknown();
    }
    for (command, at) in options
        .values("", "compress-program")
        .filter(|(command, _)| !compressor(command))
    {
        run.report("tool-runs-command", call.span_of(at), Target::None, command);
        run.script(command, call.span_of(at));
    }
    if call.name == "zip"
        && options.has("T", "test")
        && call
            .texts()
            .any(|text| text.starts_with("-TT") || text == "--unzip-command")
    {
        run.report("tool-runs-command", call.span, Target::None, "zip -TT");
    }
    if call.name == "zip" && options.has("m", "move") {
        run.report("bulk-delete", call.span, Target::Unknown, "zip --move");
    }
    if matches!(call.name, "ed" | "ex") {
        editor_input(run, call);
    }
    let named = if call.name == "openssl" {
        options
            .value("", "out")
            .or_else(|| options.value("", "keyout"))
    } else {
        options.value("o", "output")
    };
    let named = match call.name {
        "qemu-img" | "ddrescue" | "uniq" if options.operands.len() > 1 => options.texts().last(),
        "dos2unix" | "patch" => options.texts().next(),
        _ => named,
    };
    if let Some(file) = named.filter(|file| *file != "-") {
        run.writes_to(file, false, call.span);
    }
    if call.name == "patch"
        && let Some(directory) = options.value("d", "directory")
    {
        run.writes_to(directory, true, call.span);
    }
    let decodes = (call.name == "openssl" && options.flags.iter().any(|flag| flag.name == "d"))
        || (call.name == "gpg" && options.has("d", "decrypt"));
    let mut stream = super::effects::passes_through(run, call, true);
    if decodes {
        stream.origin = stream.origin.with(Origin::DECODED);
        let encoded = run.stdin.as_ref().and_then(|input| input.text.clone());
        if options.texts().next() == Some("base64")
            || options
                .flags
                .iter()
                .any(|flag| matches!(flag.name, "base64" | "a"))
        {
            stream.text = encoded.map(|text| crate::text::decode_base(&text, 6));
        }
    }
    stream
}

/// `!command` in the input of a line editor is run; `w file` writes.
fn editor_input(run: &mut Run<'_>, call: &Call<'_>) {
    let Some(text) = run.stdin.as_ref().and_then(|stream| stream.text.clone()) else {
        if let Some(file) = call.texts().rfind(|text| !text.starts_with('-')) {
            run.writes_to(file, false, call.span);
        }
        return;
    };
    for line in text.lines() {
        let line = line.trim();
        if let Some(command) = line
            .strip_prefix('!')
            .or_else(|| line.strip_prefix("r !"))
            .or_else(|| line.strip_prefix("w !"))
        {
            run.report("tool-runs-command", call.span, Target::None, command);
            run.script(command, call.span);
        } else if let Some(file) = line.strip_prefix("w ").or_else(|| line.strip_prefix("w! ")) {
            run.writes_to(file.trim(), false, call.span);
        }
        if (line == "w" || line == "wq" || line == "x" || line == "w!")
            && let Some(file) = call.texts().rfind(|text| !text.starts_with('-'))
        {
            run.writes_to(file, false, call.span);
        }
    }
}
