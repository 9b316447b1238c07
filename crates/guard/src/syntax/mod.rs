//! The grammar of bash as a tree: our own parser, and why.
//!
//! Several crates parse bash; all that were measured accept some short input with a clean status
//! while they drop a command that bash runs, some overflow the stack or loop on hostile input (an
//! abort that cannot be caught), and the two best need a newer compiler than this workspace. The
//! guard needs few things from a tree but needs them exactly: every simple command with its words
//! as parts, with substitutions already parsed inside quotes, operands, subscripts, arithmetic and
//! here-documents; byte spans; a bound on depth and on work; and what came before an error, since
//! bash runs that. So the parser is here, in one pass, without a second word lexer on top, and it
//! is compared with a real bash by a test.
//!
//! What it refuses becomes a question to a person, so it may be stricter than bash, never laxer.

mod command;
mod heredoc;
mod parameter;
mod reader;
mod tree;
mod word;

pub(crate) use reader::{Failure, Parser};
pub(crate) use tree::{
    Arm, Assign, Body, Command, Direction, Fetch, Item, List, Operation, Parameter, Part, Pipeline,
    Redirect, RedirectKind, Value, Word,
};

#[cfg(test)]
#[path = "syntax_tests.rs"]
mod tests;
