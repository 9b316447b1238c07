//! The tree of a script.

use std::cell::OnceCell;
use std::ops::Deref;
use std::rc::Rc;

use crate::finding::Span;

/// Commands in the order in which they would run.
#[derive(Debug, Default)]
pub(crate) struct List {
    pub(crate) items: Vec<Item>,
}

/// Pipelines joined by `&&` and `||`, up to a `;`, `&` or line break.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) first: Pipeline,
    pub(crate) rest: Vec<Pipeline>,
    pub(crate) background: bool,
}

/// Commands joined by pipes.
#[derive(Debug)]
pub(crate) struct Pipeline {
    pub(crate) first: Command,
    pub(crate) rest: Vec<Command>,
}

/// One command with its redirections.
#[derive(Debug)]
pub(crate) struct Command {
    pub(crate) body: Body,
    pub(crate) redirects: Vec<Redirect>,
    pub(crate) span: Span,
}

/// What kind of command it is.
#[derive(Debug)]
pub(crate) enum Body {
    Simple {
        assigns: Vec<Assign>,
        words: Vec<Word>,
        /// Arrays among the arguments of `declare` and its kin.
        arrays: Vec<Assign>,
    },
    Group(List),
    Subshell(List),
    /// Conditions and branches in the order of the text; all are walked.
    Branches(Vec<List>),
    Loop {
        condition: List,
        body: List,
    },
    For {
        name: String,
        /// `None` stands for the positional parameters.
        words: Option<Vec<Word>>,
        body: List,
    },
    ForArithmetic {
        expressions: Vec<Part>,
        body: List,
    },
    Case {
        word: Word,
        arms: Vec<Arm>,
    },
    Function {
        name: String,
        body: Rc<Command>,
    },
    /// The operands of `[[ ]]`.
    Test(Vec<Word>),
    Arithmetic(Vec<Part>),
    Coprocess(Box<Command>),
}

/// One branch of a `case`.
#[derive(Debug)]
pub(crate) struct Arm {
    pub(crate) patterns: Vec<Word>,
    pub(crate) body: List,
}

/// `name=value`, `name+=value`, `name[i]=value` or `name=(…)`.
#[derive(Debug)]
pub(crate) struct Assign {
    pub(crate) name: String,
    pub(crate) subscript: Option<Vec<Part>>,
    pub(crate) append: bool,
    pub(crate) value: Value,
    pub(crate) span: Span,
}

#[derive(Debug)]
pub(crate) enum Value {
    Scalar(Word),
    Array(Vec<Word>),
}

/// A redirection.
#[derive(Debug)]
pub(crate) struct Redirect {
    pub(crate) kind: RedirectKind,
    pub(crate) target: Word,
    /// The text of a here-document, read when its line has ended.
    pub(crate) body: Rc<OnceCell<Word>>,
    /// The descriptor in front, if one is written.
    pub(crate) descriptor: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RedirectKind {
    Read,
    Write,
    Append,
    ReadWrite,
    Duplicate,
    HereDocument,
    HereString,
}

/// One word: what becomes no, one or more arguments.
#[derive(Debug, Clone, Default)]
pub(crate) struct Word {
    pub(crate) parts: Parts,
    pub(crate) span: Span,
}

/// The parts of a word. Most words have one, which needs no list.
#[derive(Debug, Clone)]
pub(crate) enum Parts {
    One(Part),
    Many(Vec<Part>),
}

impl Default for Parts {
    fn default() -> Self {
        Self::Many(Vec::new())
    }
}

impl Deref for Parts {
    type Target = [Part];

    fn deref(&self) -> &[Part] {
        match self {
            Self::One(part) => std::slice::from_ref(part),
            Self::Many(parts) => parts,
        }
    }
}

/// A piece of a word.
#[derive(Debug, Clone)]
pub(crate) enum Part {
    /// Text with its quotes and escapes undone.
    Text {
        text: String,
        quoted: bool,
    },
    Parameter {
        parameter: Rc<Parameter>,
        quoted: bool,
    },
    Substitution {
        list: Rc<List>,
        quoted: bool,
        /// Where it stands, when its own spans are those of a text taken out of this one.
        within: Option<Span>,
    },
    Process {
        list: Rc<List>,
        direction: Direction,
    },
    Arithmetic {
        parts: Rc<Vec<Self>>,
    },
}

/// Which end of a process substitution the command holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// `<(…)`: the command reads.
    From,
    /// `>(…)`: the command writes.
    Into,
}

/// `$name` or `${…}`.
#[derive(Debug)]
pub(crate) struct Parameter {
    pub(crate) name: String,
    pub(crate) subscript: Option<Vec<Part>>,
    pub(crate) fetch: Fetch,
    pub(crate) operation: Operation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fetch {
    Value,
    Indirect,
    Length,
}

/// What is done with a parameter's value.
#[derive(Debug)]
pub(crate) enum Operation {
    None,
    /// `-`, `=`, `?` or `+`.
    Fallback {
        sign: char,
        word: Vec<Part>,
    },
    TrimStart {
        pattern: Vec<Part>,
        longest: bool,
    },
    TrimEnd {
        pattern: Vec<Part>,
        longest: bool,
    },
    Replace {
        pattern: Vec<Part>,
        with: Vec<Part>,
        all: bool,
    },
    Slice {
        from: Vec<Part>,
        length: Option<Vec<Part>>,
    },
    /// `^`, `^^`, `,`, `,,` or `@X`, whose result is not worked out.
    Other(Vec<Part>),
    /// `${!prefix*}`.
    Names,
}
