//! What a shell knows while it runs: variables, functions, aliases, directory, files.

use std::collections::HashMap;
use std::rc::Rc;

use super::stream::Stream;
use crate::syntax::Command;
use crate::text::UNKNOWN;

/// Longer lists of positional parameters are not known.
const MAX_PARAMETERS: usize = 1024;

/// Longer arrays are not known.
pub(crate) const MAX_ITEMS: usize = 256;

/// Longer paths are none: the system refuses them.
const MAX_PATH: usize = 4096;

/// The value of a variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Variable {
    Scalar(String),
    Array(Vec<String>),
}

/// A shell's state. Copies are cheap until one of them changes.
#[derive(Debug, Clone)]
pub(crate) struct State {
    variables: Rc<HashMap<String, Variable>>,
    functions: Rc<HashMap<String, Rc<Command>>>,
    aliases: Rc<HashMap<String, String>>,
    files: Rc<HashMap<String, Stream>>,
    /// Programs that got another path here, by that path.
    programs: Rc<HashMap<String, String>>,
    /// The positional parameters, if they are known.
    pub(crate) positional: Option<Rc<Vec<String>>>,
    /// What `$0` is, if it is known.
    pub(crate) name: Option<Rc<str>>,
    /// The directory, if it is known.
    pub(crate) cwd: Option<Rc<str>>,
    pub(crate) aliases_expand: bool,
}

impl State {
    pub(crate) fn new(cwd: &str, home: &str) -> Self {
        let cwd = (!cwd.is_empty()).then(|| Rc::from(cwd));
        let mut state = Self {
            variables: Rc::default(),
            functions: Rc::default(),
            aliases: Rc::default(),
            files: Rc::default(),
            programs: Rc::default(),
            positional: None,
            name: None,
            cwd,
            aliases_expand: false,
        };
        state.set("HOME", Variable::Scalar(home.to_owned()));
        state.set("IFS", Variable::Scalar(" \t\n".to_owned()));
        state
    }

    /// Sets the positional parameters.
    pub(crate) fn set_parameters(&mut self, parameters: Vec<String>) {
        self.positional = (parameters.len() <= MAX_PARAMETERS).then(|| Rc::new(parameters));
    }

    /// Changes the directory.
    pub(crate) fn enter(&mut self, directory: Option<String>) {
        self.cwd = directory
            .filter(|path| path.len() <= MAX_PATH)
            .map(Rc::from);
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&Variable> {
        self.variables.get(name)
    }

    pub(crate) fn set(&mut self, name: &str, value: Variable) {
        Rc::make_mut(&mut self.variables).insert(name.to_owned(), value);
    }

    /// Sets an array; one that is too long is not known.
    pub(crate) fn set_array(&mut self, name: &str, items: Vec<String>) {
        let value = if items.len() > MAX_ITEMS {
            Variable::Scalar(UNKNOWN.to_string())
        } else {
            Variable::Array(items)
        };
        self.set(name, value);
    }

    pub(crate) fn unset(&mut self, name: &str) {
        if self.variables.contains_key(name) {
            Rc::make_mut(&mut self.variables)
                .insert(name.to_owned(), Variable::Scalar(String::new()));
        }
    }

    /// Returns the value of a scalar, or the first item of an array.
    pub(crate) fn scalar(&self, name: &str) -> Option<&str> {
        match self.variables.get(name)? {
            Variable::Scalar(text) => Some(text),
            Variable::Array(items) => items.first().map(String::as_str),
        }
    }

    pub(crate) fn function(&self, name: &str) -> Option<Rc<Command>> {
        self.functions.get(name).cloned()
    }

    pub(crate) fn define(&mut self, name: &str, body: &Rc<Command>) {
        Rc::make_mut(&mut self.functions).insert(name.to_owned(), Rc::clone(body));
    }

    /// Takes over the functions and aliases of another state.
    pub(super) fn functions_of(&mut self, other: &Self) {
        self.functions = Rc::clone(&other.functions);
        self.aliases = Rc::clone(&other.aliases);
        self.aliases_expand = other.aliases_expand;
    }

    pub(crate) fn alias(&self, name: &str) -> Option<&str> {
        self.aliases.get(name).map(String::as_str)
    }

    pub(crate) fn set_alias(&mut self, name: &str, text: &str) {
        Rc::make_mut(&mut self.aliases).insert(name.to_owned(), text.to_owned());
    }

    /// Returns what this command line wrote to a file.
    pub(crate) fn file(&self, path: &str) -> Option<&Stream> {
        self.files.get(path)
    }

    /// Returns the stream of a file at or above `path`, for directories that were fetched whole.
    pub(crate) fn file_or_parent(&self, path: &str) -> Option<&Stream> {
        if self.files.is_empty() {
            return None;
        }
        let mut path = path;
        loop {
            if let Some(stream) = self.files.get(path) {
                return Some(stream);
            }
            path = path
                .rsplit_once('/')
                .map(|(parent, _)| parent)
                .filter(|parent| !parent.is_empty())?;
        }
    }

    /// Tells whether a program got another name here.
    pub(crate) fn renames_programs(&self) -> bool {
        !self.programs.is_empty()
    }

    /// Returns the program that a path, or a bare name, stands for since this command.
    pub(crate) fn program(&self, path: &str, name: &str) -> Option<&str> {
        let found = self.programs.get(path).or_else(|| self.programs.get(name));
        found.map(String::as_str)
    }

    pub(crate) fn rename_program(&mut self, path: &str, name: &str) {
        let programs = Rc::make_mut(&mut self.programs);
        if let Some(bare) = path.rsplit('/').next() {
            programs.insert(bare.to_owned(), name.to_owned());
        }
        programs.insert(path.to_owned(), name.to_owned());
    }

    pub(crate) fn write_file(&mut self, path: &str, stream: Stream) {
        Rc::make_mut(&mut self.files).insert(path.to_owned(), stream);
    }
}

impl State {
    /// Takes over what a subshell leaves behind: its files, nothing else.
    pub(crate) fn after_subshell(&mut self, inner: &Self) {
        self.files = Rc::clone(&inner.files);
        self.programs = Rc::clone(&inner.programs);
    }
}
