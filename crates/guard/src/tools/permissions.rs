//! Modes, owners and attributes.

use super::options::{Grammar, Options};
use super::{Handler, Table};
use crate::finding::{Span, Target};
use crate::paths::Loss;
use crate::run::{Call, Run, Stream};
use crate::text::UNKNOWN;

pub(super) const TABLE: Table = &[
    (&["chmod", "gchmod"], chmod as Handler),
    (&["chown", "chgrp", "gchown"], chown),
    (&["setfacl"], setfacl),
    (&["chattr"], chattr),
    (&["setcap"], setcap),
];

/// What a mode gives away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gives {
    Nothing,
    /// Others may read.
    Reading,
    /// Others may write.
    Writing,
    /// The file runs as its owner or group.
    Identity,
}

impl Run<'_> {
    /// Judges a mode that something gets.
    pub(crate) fn mode(&mut self, mode: &str, span: Span, target: Target) {
        match gives(mode) {
            Gives::Writing => self.report("world-writable", span, target, mode),
            Gives::Identity => self.report("set-identity", span, target, mode),
            Gives::Nothing | Gives::Reading => {}
        }
    }
}

fn gives(mode: &str) -> Gives {
    if !mode.is_empty() && mode.bytes().all(|byte| (b'0'..=b'7').contains(&byte)) {
        let bits = u32::from_str_radix(mode, 8).unwrap_or(0);
        return if bits & 0o2 != 0 {
            Gives::Writing
        } else if bits & 0o6000 != 0 {
            Gives::Identity
        } else if bits & 0o44 != 0 {
            Gives::Reading
        } else {
            Gives::Nothing
        };
    }
    let mut given = Gives::Nothing;
    for clause in mode.split(',') {
        let who_end = clause.find(['+', '-', '=']).unwrap_or(clause.len());
        let (who, rest) = clause.split_at(who_end);
        let others = who.contains(['o', 'a']);
        let mut adds = false;
        for letter in rest.chars() {
            match letter {
                '+' | '=' => adds = true,
                '-' => adds = false,
                'w' | 'u' if adds && others => return Gives::Writing,
                's' if adds && (who.is_empty() || who.contains(['u', 'g', 'a'])) => {
                    return Gives::Identity;
                }
                'r' if adds && (others || who.contains('g')) => given = Gives::Reading,
                _ => {}
            }
        }
    }
    given
}

fn chmod(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let texts: Vec<&str> = call.texts().collect();
    if texts
        .iter()
        .any(|text| matches!(*text, "--help" | "--version"))
    {
        return Stream::unknown();
    }
    let recursive = texts.iter().any(|text| {
        *text == "--recursive"
            || text.starts_with('-') && !text.starts_with("--") && text.contains('R')
    });
    // A mode may begin with a dash: `-w` is one, `-R` is an option.
    let is_option = |text: &str| {
        text.starts_with("--")
            || text.strip_prefix('-').is_some_and(|letters| {
                !letters.is_empty() && letters.chars().all(|letter| "RvcfhHLP".contains(letter))
            })
    };
    let mut operands = call
        .arguments
        .iter()
        .filter(|argument| !is_option(&argument.text));
    let reference = texts.iter().any(|text| text.starts_with("--reference"));
    let mode = if reference { None } else { operands.next() };
    let files: Vec<_> = operands.collect();
    let target = files
        .first()
        .map_or(Target::None, |file| run.paths().target_of(&file.text));
    if let Some(mode) = mode {
        run.mode(&mode.text, mode.span, target);
    }
    for file in files {
        let path = run.paths().absolute(&file.text);
        let opened = mode.is_some_and(|mode| gives(&mode.text) == Gives::Reading);
        if opened && run.paths().secret(&path) {
            run.report("user-settings", file.span, target, &file.text);
        }
        if run.paths().system(&path) && !path.starts_with("/usr/local") {
            run.report("system-permissions", file.span, target, &file.text);
        }
        let whole = !matches!(run.paths().loss(&file.text), Loss::Some(_));
        if (recursive && whole)
            || (call.bulk
                && file.text.starts_with('/')
                && path.trim_start_matches('/').starts_with(UNKNOWN))
            || (call.bulk && path == "/")
        {
            run.report("system-permissions", file.span, target, &file.text);
        }
    }
    Stream::silent()
}

fn chown(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, Grammar::new("", &["from", "reference"]));
    if options.asks_for_help() {
        return Stream::unknown();
    }
    let recursive = options.has("R", "recursive");
    let mut operands = options.operands.iter();
    let owner = if options.long_flag("reference") {
        None
    } else {
        operands.next()
    };
    let root = owner.is_some_and(|owner| {
        let user = owner.text.split([':', '.']).next().unwrap_or_default();
        matches!(user, "root" | "0")
            || (user.is_empty() && matches!(owner.text, ":root" | ":0" | ":wheel"))
    });
    for file in operands {
        let target = run.paths().target_of(file.text);
        let whole = !matches!(run.paths().loss(file.text), Loss::Some(_));
        let path = run.paths().absolute(file.text);
        if (recursive && (root || whole)) || (call.bulk && (root || path == "/")) {
            run.report("ownership", call.span_of(file.at), target, file.text);
        } else if run.paths().system(&path)
            && matches!(target, Target::System)
            && !path.starts_with("/usr/local")
        {
            run.report(
                "system-permissions",
                call.span_of(file.at),
                target,
                file.text,
            );
        }
    }
    Stream::silent()
}

fn setfacl(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(
        call.arguments,
        Grammar::new("mMxXs", &["modify", "set", "remove", "restore"]),
    );
    for (entry, at) in options
        .values("ms", "modify")
        .chain(options.values("", "set"))
    {
        let open = entry.split(',').any(|entry| {
            let entry = entry
                .trim_start_matches("d:")
                .trim_start_matches("default:");
            let others = entry.starts_with("o:")
                || entry.starts_with("other:")
                || entry.starts_with("o::")
                || entry.starts_with("u:nobody");
            others
                && entry
                    .rsplit(':')
                    .next()
                    .is_some_and(|bits| bits.contains(['w', '7', '6', '2', '3']))
        });
        if open {
            run.report("world-writable", call.span_of(at), Target::None, entry);
        }
    }
    Stream::silent()
}

/// An immutable file that is made mutable is about to be changed.
fn chattr(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let changes = call.texts().any(|text| {
        (text.starts_with('-') || text.starts_with('+'))
            && text.contains(['i', 'a'])
            && !text.starts_with("--")
    });
    if changes {
        run.report("ownership", call.span, Target::None, "chattr");
    }
    Stream::silent()
}

fn setcap(run: &mut Run<'_>, call: &Call<'_>) -> Stream {
    let options = Options::parse(call.arguments, Grammar::new("n", &[]));
    if !options.short("vrh") && options.operands.len() > 1 {
        run.report("set-identity", call.span, Target::None, "setcap");
    }
    Stream::silent()
}
