//! What a command leaves behind for the next one in the same shell.
//!
//! A later command may call a function or an alias with anything, and its variables may have
//! changed by then: the body is walked with what is not known, and with arguments to fear.

use std::rc::Rc;

use super::Run;
use super::state::State;
use crate::finding::{Span, Target};
use crate::syntax::Command;

/// Arguments that make something bad of a program that takes any.
const PROBES: &[&[&str]] = &[
    &["-rf", "/"],
    &["push", "--force"],
    &["reset", "--hard"],
    &["-c", "reboot"],
    &["-e", "system('reboot')"],
    &[".", "-delete"],
    &["-R", "777", "/"],
    &["-9", "-1"],
    &["if=x", "of=/dev/sda"],
    &["rm", "-f", "x"],
    &["delete", "namespace", "x"],
    &["stop", "x"],
    &["uninstall", "-y", "x"],
    &["remove", "-y", "x"],
    &["destroy", "-auto-approve"],
    &["x", "/etc/passwd"],
    &["/etc/passwd"],
    &["reboot"],
];

/// Variables by which a shell finds what a name means.
const TABLES: &[&str] = &["BASH_CMDS", "BASH_ALIASES", "PROMPT_COMMAND"];

impl Run<'_> {
    /// Judges a function that later commands can call.
    pub(super) fn leaves_function(&mut self, name: &str, body: &Rc<Command>, span: Span) {
        if !self.context.persists || self.calls.iter().any(|call| call == name) {
            return;
        }
        self.later(span, |run, arguments| {
            run.state.define(name, body);
            run.calls.push(name.to_owned());
            match arguments {
                Some(arguments) => run.state.set_parameters(arguments),
                None => run.state.positional = None,
            }
            run.command(body);
            run.calls.pop();
        });
    }

    /// Judges an alias, or other code, that later commands can run with more words.
    pub(crate) fn leaves_code(&mut self, code: &str, takes_words: bool, span: Span) {
        if !self.context.persists {
            return;
        }
        let code = if takes_words {
            format!("{code} \"$@\"")
        } else {
            code.to_owned()
        };
        self.later(span, |run, arguments| {
            match arguments {
                Some(arguments) => run.state.set_parameters(arguments),
                None => run.state.positional = None,
            }
            run.script(&code, span);
        });
    }

    /// Asks about what makes later commands mean something else.
    pub(crate) fn leaves(&mut self, what: &str, span: Span) {
        if self.context.persists {
            self.report("later-command", span, Target::None, what);
        }
    }

    /// Asks about a table of the shell's own that a variable's name stands for.
    pub(crate) fn leaves_table(&mut self, name: &str) {
        if TABLES.iter().any(|table| name.starts_with(table)) {
            self.leaves(name, self.here);
        }
    }

    fn later(&mut self, span: Span, mut walk: impl FnMut(&mut Self, Option<Vec<String>>)) {
        let outer = self.state.clone();
        let here = self.here;
        self.took_parameters = false;
        for round in 0..=PROBES.len() {
            let arguments = round.checked_sub(1).and_then(|at| PROBES.get(at));
            let arguments =
                arguments.map(|words| words.iter().map(|word| (*word).to_owned()).collect());
            self.state = State::new("", &self.home);
            self.state.functions_of(&outer);
            self.at_most_ask(|run| {
                run.reading(None, |run| {
                    run.deeper(span, |run| {
                        run.pointing_at(span, |run| walk(run, arguments));
                        super::Stream::unknown()
                    })
                })
            });
            if !self.took_parameters {
                break;
            }
        }
        self.state = outer;
        self.here = here;
    }
}
