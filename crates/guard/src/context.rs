//! What a check knows of the world.

/// What a command reads from its standard input, or is typed to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Input<'a> {
    /// Nothing.
    #[default]
    Empty,
    /// This text.
    Text(&'a str),
    /// Something that is not known yet.
    Unknown,
}

/// Where a command would run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Context {
    /// The directory the command starts in, absolute; empty when it is not known.
    pub cwd: String,
    /// The home directory, absolute; empty when it is not known.
    pub home: String,
    /// The task's own directory. Without one, nothing counts as the task's own.
    pub workspace: Option<String>,
    /// Directories for temporary files, beside `/tmp` and `/var/tmp`.
    pub temp: Vec<String>,
    /// Our own state, settings, sockets and logs: writing there is `self-control`.
    pub controls: Vec<String>,
    /// Whether the command runs in a shell whose state outlives it: then functions, aliases and
    /// the like are judged for what later commands could make of them.
    pub persists: bool,
}

impl Context {
    /// Returns the context of a command that starts in `cwd`, which is also its workspace.
    pub fn new(cwd: impl Into<String>, home: impl Into<String>) -> Self {
        let cwd = cwd.into();
        Self {
            workspace: (!cwd.is_empty()).then(|| cwd.clone()),
            cwd,
            home: home.into(),
            temp: Vec::new(),
            controls: Vec::new(),
            persists: false,
        }
    }
}

impl Default for Context {
    fn default() -> Self {
        Self::new("", "")
    }
}
