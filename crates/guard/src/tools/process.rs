//! Signals to processes, and the end of the machine.

use super::options::{Grammar, Options};
use super::{Handler, Table};
use crate::finding::Target;
use crate::run::{Call, Origin, Run, Stream};
use crate::text::{UNKNOWN, uncertain};

pub(super) const TABLE: Table = &[
    (&["kill"], kill as Handler),
    (&["pkill", "killall", "skill"], by_name),
    (&["killall5"], everything),
    (&["shutdown"], shutdown),
    (
        &["reboot", "halt", "poweroff", "fasthalt", "soft-reboot"],
        reboot,
    ),
    (&["init", "telinit"], init),
    (&["pgrep", "pidof", "ps", "lsof_"], listing),
];

/// Tells whether the name of a process, or a pattern for names, may mean one of ours.
fn ours(name: &str) -> bool {
    let plain = name.trim_start_matches('^');
    let plain = plain
        .split(['.', '*', '[', '?', '$', '(', '|'])
        .next()
        .unwrap_or(plain);
    name.contains("exoshell")
        || plain.len() > 2 && ("exoshell".starts_with(plain) || plain.starts_with("exoshell"))
}

/// Tells whether a signal cannot be caught.
fn fatal(signal: &str) -> bool {
    let signal = signal.to_ascii_uppercase();
    matches!(signal.trim_start_matches("SIG"), "9" | "KILL")
}

fn kill(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let mut arguments = call.arguments.iter();
    let mut signal = String::new();
    let mut targets = Vec::new();
    while let Some(argument) = arguments.next() {
        let text = argument.text.as_str();
        match text {
            "-l" | "-L" | "--list" | "--table" | "--help" | "--version" | "-V" => {
                return Stream::unknown();
            }
            "-s" | "-n" | "--signal" => {
                signal = arguments
                    .next()
                    .map(|next| next.text.clone())
                    .unwrap_or_default();
            }
            "-q" | "--queue" => {
                arguments.next();
            }
            "--" => {
                targets.extend(arguments.by_ref());
            }
            _ if text.starts_with("--signal=") => {
                text.trim_start_matches("--signal=").clone_into(&mut signal);
            }
            _ if text.len() > 1
                && text.starts_with('-')
                && signal.is_empty()
                && targets.is_empty() =>
            {
                text.trim_start_matches(['-', 's', 'n'])
                    .clone_into(&mut signal);
            }
            _ => targets.push(argument),
        }
    }
    let named = run
        .substituted
        .with(
            run.stdin
                .as_ref()
                .map_or(Origin::NONE, |stream| stream.origin),
        )
        .has(Origin::PROCESSES);
    let sources = run.substituted.with(
        run.stdin
            .as_ref()
            .map_or(Origin::NONE, |stream| stream.origin),
    );
    if sources.has(Origin::CONTROL) {
        run.report("own-controls", call.span, Target::None, call.name);
    }
    for target in targets {
        let text = target.text.trim();
        let by_name = text.contains(|first: char| first.is_ascii_alphabetic())
            && !text.starts_with('%')
            && !uncertain(text);
        let rule = match text {
            "-1" => "signal-all",
            "0" | "-0" | "1" => "kill-group",
            _ if fatal(&signal) && (call.bulk || by_name || (named && text.contains(UNKNOWN))) => {
                "kill-by-name"
            }
            _ => continue,
        };
        run.report(rule, target.span, Target::None, text);
    }
    Stream::silent()
}

fn by_name(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(
        call.arguments,
        Grammar::new(
            "sugtPGUFoyn",
            &[
                "signal",
                "user",
                "uid",
                "euid",
                "group",
                "parent",
                "terminal",
                "pidfile",
                "older-than",
                "younger-than",
                "ns",
            ],
        ),
    );
    if options.asks_for_help()
        || options.short("lLV") && call.name == "killall" && options.operands.is_empty()
    {
        return Stream::unknown();
    }
    let by_signal = options.flags.iter().any(|flag| {
        call.arguments
            .get(flag.at)
            .is_some_and(|argument| fatal(argument.text.trim_start_matches('-')))
            || (matches!(flag.name, "s" | "signal") && flag.value.is_some_and(fatal))
    });
    let broad = options
        .texts()
        .any(|name| matches!(name, "." | ".*" | "" | "*"))
        || options.has("uU", "user") && options.operands.is_empty()
        || (call.name == "killall" && options.has("r", "regexp"));
    if options.texts().any(ours) {
        run.report("own-controls", call.span, Target::None, call.name);
    }
    if by_signal || broad {
        run.report(
            "kill-by-name",
            call.span,
            Target::None,
            &super::effects::brief(call),
        );
    }
    Stream::silent()
}

fn everything(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    if !Options::parse(call.arguments, Grammar::PLAIN).asks_for_help() {
        run.report("signal-all", call.span, Target::None, "");
    }
    Stream::silent()
}

fn shutdown(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, Grammar::PLAIN);
    // `-c` takes a planned one back, `-k` only says so.
    let harmless = options.asks_for_help()
        || options.has("c", "cancel_")
        || options.short("k")
        || options.long_flag("show");
    if !harmless {
        run.report("shutdown", call.span, Target::System, call.name);
    }
    Stream::silent()
}

fn reboot(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, Grammar::PLAIN);
    if !(options.asks_for_help() || options.has("w", "wtmp-only")) {
        run.report("shutdown", call.span, Target::System, call.name);
    }
    Stream::silent()
}

fn init(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, Grammar::new("t", &[]));
    match options.texts().next() {
        Some("0" | "6") => run.report("shutdown", call.span, Target::System, call.name),
        Some("1" | "s" | "S" | "q" | "Q" | "u" | "U" | "3" | "5" | "2" | "4") => {
            run.report("service-stop", call.span, Target::System, call.name);
        }
        _ => {}
    }
    Stream::silent()
}

fn listing(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let own = call.texts().any(ours);
    let origin = run
        .stdin
        .as_ref()
        .map_or(Origin::NONE, |stream| stream.origin);
    let own = if own { Origin::CONTROL } else { Origin::NONE };
    Stream::from(origin.with(Origin::PROCESSES).with(own))
}
