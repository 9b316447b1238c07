//! Programs that run text in a language of their own.

use super::options::{Grammar, Options};
use super::shell::Kind;
use crate::finding::Target;
use crate::run::{Argument, Call, Origin, Run, Stream};
use crate::text::uncertain;

/// How an interpreter is told to run text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Interpreter {
    pub(super) names: &'static [&'static str],
    /// Letters that take a value, those for code included.
    short: &'static str,
    /// Letters whose value is code.
    code: &'static str,
    /// Long names whose value is code.
    code_long: &'static [&'static str],
    /// Letters that only check or print.
    idle: &'static str,
    /// Whether long options begin with one dash.
    dashed: bool,
    /// Whether input without a file is code.
    reads_input: bool,
}

const BASE: Interpreter = Interpreter {
    names: &[],
    short: "e",
    code: "e",
    code_long: &["eval"],
    idle: "",
    dashed: false,
    reads_input: true,
};

pub(super) const INTERPRETERS: &[Interpreter] = &[
    Interpreter {
        names: &[
            "python",
            "pypy",
            "ipython",
            "bpython",
            "jython",
            "micropython",
        ],
        short: "cWXmQ",
        code: "c",
        code_long: &[],
        idle: "V",
        ..BASE
    },
    Interpreter {
        names: &["perl", "raku", "perl6"],
        short: "eEIMm",
        code: "eE",
        code_long: &[],
        idle: "v",
        ..BASE
    },
    Interpreter {
        names: &["ruby", "jruby", "truffleruby", "mruby"],
        short: "erICEKTW",
        code: "e",
        code_long: &[],
        idle: "v",
        ..BASE
    },
    Interpreter {
        names: &["irb", "pry"],
        short: "rIe",
        code: "e",
        code_long: &["exec"],
        idle: "v",
        ..BASE
    },
    Interpreter {
        names: &[
            "node",
            "nodejs",
            "ts-node",
            "tsx",
            "esno",
            "babel-node",
            "coffee",
            "zx",
        ],
        short: "epriC",
        code: "ep",
        code_long: &["eval", "print"],
        idle: "vhc",
        ..BASE
    },
    Interpreter {
        names: &["bun"],
        short: "ep",
        code: "ep",
        code_long: &["eval", "print"],
        idle: "v",
        reads_input: false,
        ..BASE
    },
    Interpreter {
        names: &["php"],
        short: "rBREFdfcStz",
        code: "rBRE",
        code_long: &["run", "process-code", "process-begin", "process-end"],
        idle: "vilm",
        ..BASE
    },
    Interpreter {
        names: &["lua", "luajit", "luau", "texlua"],
        short: "elW",
        code: "e",
        idle: "v",
        ..BASE
    },
    Interpreter {
        names: &["Rscript", "R", "littler", "r"],
        short: "ef",
        code: "e",
        ..BASE
    },
    Interpreter {
        names: &["julia"],
        short: "eELJpCt",
        code: "eE",
        code_long: &["eval", "print"],
        idle: "v",
        ..BASE
    },
    Interpreter {
        names: &["tclsh", "wish", "expect"],
        short: "cf",
        code: "c",
        ..BASE
    },
    Interpreter {
        names: &["osascript"],
        short: "els",
        code: "e",
        ..BASE
    },
    Interpreter {
        names: &["pwsh", "powershell"],
        short: "",
        code: "",
        code_long: &[
            "c",
            "Command",
            "command",
            "EncodedCommand",
            "encodedcommand",
            "e",
            "enc",
            "ec",
            "C",
            "Com",
        ],
        dashed: true,
        ..BASE
    },
    Interpreter {
        names: &[
            "groovy",
            "scala",
            "scala-cli",
            "kotlin",
            "kotlinc",
            "clojure",
            "clj",
            "bb",
            "babashka",
            "elixir",
            "iex",
            "ghc",
            "racket",
            "gracket",
            "jshell",
            "ocaml",
            "swift",
            "crystal",
            "nim",
            "janet",
            "fennel",
            "lein",
            "csi",
            "gnuplot",
            "hy",
            "io",
            "boot",
            "jbang",
        ],
        short: "e",
        code: "e",
        code_long: &["eval", "execute", "expr"],
        ..BASE
    },
    Interpreter {
        names: &[
            "guile",
            "scheme",
            "mit-scheme",
            "chez",
            "chibi-scheme",
            "nu",
            "nushell",
            "xonsh",
            "elvish",
            "ion",
            "murex",
            "rc",
            "es",
            "oil",
        ],
        short: "ceL",
        code: "ce",
        code_long: &["commands", "eval"],
        ..BASE
    },
    Interpreter {
        names: &["sbcl", "clisp", "ecl", "ccl", "abcl"],
        short: "x",
        code: "x",
        code_long: &["eval"],
        ..BASE
    },
    Interpreter {
        names: &["octave", "octave-cli", "maxima", "gp", "sage"],
        short: "e",
        code: "e",
        code_long: &["eval", "batch-string"],
        ..BASE
    },
    Interpreter {
        names: &["matlab", "erl"],
        short: "",
        code: "",
        code_long: &["eval", "batch", "r", "s_"],
        dashed: true,
        ..BASE
    },
    Interpreter {
        names: &["emacs", "emacsclient", "xemacs"],
        short: "lfe",
        code: "e",
        code_long: &["eval", "execute", "funcall"],
        reads_input: false,
        ..BASE
    },
    Interpreter {
        names: &["deno"],
        short: "",
        code: "",
        code_long: &[],
        reads_input: false,
        ..BASE
    },
    Interpreter {
        names: &["sclang", "dc", "m4", "cscript", "wscript"],
        short: "",
        code: "",
        code_long: &[],
        reads_input: false,
        ..BASE
    },
];

/// Judges what an interpreter is told to run.
pub(super) fn judge(run: &mut Run<'_>, call: &Call<'_>, interpreter: &Interpreter) -> Stream {
    if call.name == "deno" {
        return deno(run, call);
    }
    if call.name == "crystal" && call.texts().next() == Some("eval")
        || call.name == "nim" && call.texts().next() == Some("e")
    {
        run.report("interpreter-string", call.span, Target::None, call.name);
    }
    let expanded = bundled(call, interpreter);
    let grammar = Grammar {
        single_dash: interpreter.dashed,
        ..Grammar::new(interpreter.short, interpreter.code_long).stopping()
    };
    let options = Options::parse(&expanded, grammar);
    if options.asks_for_help() {
        return Stream::unknown();
    }
    let code = options.flags.iter().find(|flag| {
        if flag.long {
            interpreter.code_long.contains(&flag.name)
        } else {
            interpreter.code.contains(flag.name)
        }
    });
    let module_at = options
        .flags
        .iter()
        .find(|flag| call.name == "python" && flag.name == "m")
        .map_or(usize::MAX, |flag| flag.at);
    if let Some(flag) = code.filter(|flag| flag.at < module_at) {
        edits(run, call, &options);
        let hidden = flag.value.is_some_and(uncertain);
        let rule = if hidden && run.substituted.has(Origin::NETWORK) {
            "downloaded-code"
        } else {
            "interpreter-string"
        };
        run.report(rule, call.span_of(flag.at), Target::None, call.name);
        return Stream::from(Origin::DECODED);
    }
    if options.short(interpreter.idle) && !interpreter.idle.is_empty() {
        return Stream::unknown();
    }
    if call.name == "python" && options.value("m", "").is_some() {
        return module(run, call, &options);
    }
    run_file(run, call, &options, interpreter);
    Stream::unknown()
}

/// `-lane code` and `-pi.bak`: letters with optional values do not swallow the letters after them.
fn bundled(call: &Call<'_>, interpreter: &Interpreter) -> Vec<Argument> {
    if !matches!(call.name, "perl" | "ruby") {
        return call.arguments.to_vec();
    }
    let mut ended = false;
    call.arguments
        .iter()
        .map(|argument| {
            let text = argument.text.as_str();
            let bundle =
                !ended && text.len() > 2 && text.starts_with('-') && !text.starts_with("--");
            ended |= text == "--" || !text.starts_with('-');
            let first = text.chars().nth(1).unwrap_or_default();
            if !bundle
                || interpreter
                    .short
                    .contains(first.encode_utf8(&mut [0; 4]) as &str)
            {
                return argument.clone();
            }
            // `-i.bak` ends the bundle.
            let text = match text.find("i.") {
                Some(at) if at > 0 => format!("{}i", crate::text::upto(text, at)),
                _ => text.to_owned(),
            };
            Argument {
                text,
                span: argument.span,
            }
        })
        .collect()
}

/// `-i` edits the files named after the code.
fn edits(run: &mut Run<'_>, call: &Call<'_>, options: &Options<'_>) {
    if matches!(call.name, "perl" | "ruby") && options.short("i") {
        for operand in &options.operands {
            run.writes_to(operand.text, false, call.span_of(operand.at));
        }
    }
}

/// `python -m module` is that program.
fn module(run: &mut Run<'_>, call: &Call<'_>, options: &Options<'_>) -> Stream {
    let Some((name, at)) = options.values("m", "").next() else {
        return Stream::unknown();
    };
    let after = call
        .arguments
        .iter()
        .position(|argument| argument.text == name || argument.text == format!("-m{name}"))
        .unwrap_or(at);
    let mut words = vec![Argument {
        text: name.to_owned(),
        span: call.span_of(at),
    }];
    words.extend_from_slice(call.from(after + 1));
    match name {
        "pip" | "twine" | "alembic" | "awscli" | "ansible" => {
            run.run_words(&words, call.span, call.bulk)
        }
        "timeit" | "cProfile" | "trace"
            if call.texts().any(|text| text == "-s" || text == "-c") || name == "timeit" =>
        {
            run.report("interpreter-string", call.span, Target::None, name);
            Stream::unknown()
        }
        _ => Stream::unknown(),
    }
}

fn run_file(run: &mut Run<'_>, call: &Call<'_>, options: &Options<'_>, interpreter: &Interpreter) {
    // Modules to load first are code as well.
    for (file, at) in options
        .values("r", "require")
        .chain(options.values("f", "file"))
    {
        run.executes_file(file, Kind::Interpreter, call.span_of(at));
    }
    match options.operands.first() {
        Some(file) if file.text != "-" => {
            let remote = file.text.starts_with("http://") || file.text.starts_with("https://");
            if remote || (uncertain(file.text) && run.substituted.has(Origin::NETWORK)) {
                run.report(
                    "downloaded-code",
                    call.span_of(file.at),
                    Target::Remote,
                    file.text,
                );
            }
            run.executes_file(file.text, Kind::Interpreter, call.span_of(file.at));
        }
        _ => {
            if let Some(input) = run.stdin.clone().filter(|_| interpreter.reads_input) {
                run.executes_stream(&input, Kind::Interpreter, call.span);
            }
        }
    }
}

fn deno(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(
        call.arguments,
        Grammar::new("", &["eval", "config", "import-map"]),
    );
    let words: Vec<&str> = options.texts().collect();
    if options.asks_for_help() {
        return Stream::unknown();
    }
    match words.as_slice() {
        ["eval", ..] => run.report("interpreter-string", call.span, Target::None, "deno"),
        ["repl", ..] if options.long_flag("eval") => {
            run.report("interpreter-string", call.span, Target::None, "deno");
        }
        ["run", file, ..] if file.starts_with("http") => {
            run.report("downloaded-code", call.span, Target::Remote, file);
        }
        ["run", "-", ..] => {
            if let Some(input) = run.stdin.clone() {
                run.executes_stream(&input, Kind::Interpreter, call.span);
            }
        }
        ["run", file, ..] => run.executes_file(file, Kind::Interpreter, call.span),
        _ => {}
    }
    Stream::unknown()
}
