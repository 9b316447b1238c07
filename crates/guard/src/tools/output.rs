//! Programs whose output is known when their input is.

use super::options::{Grammar, Options};
use super::{Handler, Table};
use crate::run::{Call, Origin, Run, Stream};
use crate::text::{self, Escapes, UNKNOWN};

pub(super) const TABLE: Table = &[
    (&["echo"], echo as Handler),
    (&["printf"], printf),
    (&["cat", "gcat", "tac_", "head", "tail", "sort_"], cat),
    (&["pwd"], pwd),
    (&["which", "type", "whereis_"], which),
    (&["base64", "gbase64", "base32", "basenc"], base64),
    (&["xxd"], xxd),
    (&["uudecode"], uudecode),
    (&["rev"], rev),
    (&["tr"], tr),
    (&["mktemp"], mktemp),
    (&["printenv"], printenv),
    (
        &[
            "ls", "basename", "dirname", "date", "id", "whoami", "uname", "hostname", "seq", "yes",
            "expr", "realpath", "readlink", "stat", "file", "wc", "du", "df",
        ],
        info,
    ),
];

fn echo(_: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let mut words = call.texts().peekable();
    let mut escapes = false;
    let mut newline = true;
    while let Some(options) = words.next_if(|word| {
        word.strip_prefix('-').is_some_and(|letters| {
            !letters.is_empty() && letters.bytes().all(|byte| b"neE".contains(&byte))
        })
    }) {
        newline &= !options.contains('n');
        for letter in options.chars() {
            escapes = match letter {
                'e' => true,
                'E' => false,
                _ => escapes,
            };
        }
    }
    let mut line = text::inactive(words.collect::<Vec<_>>().join(" "));
    if escapes {
        let (unescaped, ended) = text::unescape(&line, Escapes::Echo);
        newline &= !ended;
        line = unescaped;
    }
    if newline {
        line.push('\n');
    }
    Stream::known(line)
}

fn printf(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let mut words: Vec<&str> = call.texts().collect();
    let mut variable = None;
    if let ["-v", name, ..] = words.as_slice() {
        variable = Some((*name).to_owned());
        words.drain(..2);
    }
    if words.first() == Some(&"--") {
        words.remove(0);
    }
    let Some((format, arguments)) = words.split_first() else {
        return Stream::silent();
    };
    let printed = text::printf(format, arguments);
    let Some(name) = variable else {
        return Stream::known(printed);
    };
    run.expanded_again_in_brackets(&name);
    run.assign(&name, printed);
    Stream::silent()
}

/// Prints files; with other options only their origin is followed.
fn cat(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let grammar = if call.name == "cat" {
        Grammar::PLAIN
    } else {
        Grammar::new("ncs", &["lines", "bytes"])
    };
    let options = Options::parse(call.arguments, grammar);
    let mut output = Stream::silent();
    for operand in &options.operands {
        let stream = run.read_file(operand.text, call.span_of(operand.at));
        output.append(stream);
    }
    if options.operands.is_empty() {
        output = run.stdin.clone().unwrap_or_default();
    }
    if call.name != "cat"
        && output
            .text
            .as_deref()
            .is_some_and(|text| text.lines().count() > 1 || options.has("c", "bytes"))
    {
        output.text = None;
    }
    output
}

fn pwd(run: &mut Run<'_>, _: &Call<'_>) -> Stream {
    match run.state.cwd.as_deref() {
        Some(cwd) => Stream::known(format!("{cwd}\n")),
        None => Stream::unknown(),
    }
}

fn which(_: &mut Run<'_>, call: &Call<'_>) -> Stream {
    match call.texts().find(|text| !text.starts_with('-')) {
        Some(name) => Stream::known(format!("{name}\n")),
        None => Stream::unknown(),
    }
}

/// The text a decoder would read.
fn input(run: &mut Run<'_>, call: &Call<'_>, options: &Options<'_>) -> Stream {
    match options.operands.first() {
        Some(file) => run.read_file(file.text, call.span_of(file.at)),
        None => run.stdin.clone().unwrap_or_default(),
    }
}

fn base64(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, Grammar::new("wb", &["wrap", "break"]));
    let mut stream = input(run, call, &options);
    if !(options.short("dD") || options.long_flag("decode")) {
        stream.text = None;
        return stream;
    }
    let bits = if call.name == "base32" || options.long_flag("base32") {
        5
    } else {
        6
    };
    stream.text = stream
        .text
        .filter(|text| !text.contains(UNKNOWN))
        .map(|text| text::decode_base(&text, bits));
    stream.origin = stream.origin.with(Origin::DECODED);
    stream
}

fn xxd(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, Grammar::new("clsgo", &[]));
    let mut stream = input(run, call, &options);
    let reverts = options.short("r")
        || options.long_flag("revert")
        || call.texts().any(|text| text == "-revert");
    stream.text = stream
        .text
        .filter(|text| reverts && !text.contains(UNKNOWN))
        .map(|text| text::decode_hex(&text));
    if reverts {
        stream.origin = stream.origin.with(Origin::DECODED);
    }
    stream
}

fn uudecode(run: &mut Run<'_>, _: &Call<'_>) -> Stream {
    let origin = run
        .stdin
        .as_ref()
        .map_or(Origin::FILE, |stream| stream.origin);
    Stream::from(origin.with(Origin::DECODED))
}

fn rev(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, Grammar::PLAIN);
    let mut stream = input(run, call, &options);
    stream.text = stream.text.map(|text| {
        text.lines()
            .map(|line| line.chars().rev().collect::<String>() + "\n")
            .collect()
    });
    stream.origin = stream.origin.with(Origin::DECODED);
    stream
}

fn tr(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, Grammar::PLAIN.stopping());
    let mut stream = run.stdin.clone().unwrap_or_default();
    let sets: Vec<&str> = options.texts().collect();
    stream.text = match (stream.text, sets.as_slice()) {
        (Some(text), [from, to]) if options.flags.is_empty() => {
            Some(text::translate(&text, from, to))
        }
        (Some(text), [unwanted])
            if options.short("d")
                && unwanted.len() < 64
                && !unwanted.contains(['[', '-', '\\']) =>
        {
            Some(text.replace(|character: char| unwanted.contains(character), ""))
        }
        _ => None,
    };
    stream.origin = stream.origin.with(Origin::DECODED);
    stream
}

fn mktemp(_: &mut Run<'_>, _: &Call<'_>) -> Stream {
    Stream::known(format!("/tmp/tmp.{UNKNOWN}\n"))
}

fn printenv(_: &mut Run<'_>, _: &Call<'_>) -> Stream {
    Stream::from(Origin::SECRET)
}

/// Prints facts; names given to it say nothing about what runs.
fn info(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    // `ls -d /*` names everything in a directory.
    if call.name == "ls" {
        let options = Options::parse(
            call.arguments,
            Grammar::new("IwT", &["ignore", "width", "sort", "time"]),
        );
        let named: Vec<&str> = options.texts().filter(|text| text::globbed(text)).collect();
        if !named.is_empty() && options.has("d", "directory") {
            return Stream::known(named.join("\n") + "\n");
        }
        return Stream::unknown();
    }
    let origin = run
        .stdin
        .as_ref()
        .map_or(Origin::NONE, |stream| stream.origin);
    Stream::from(origin)
}
