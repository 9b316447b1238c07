//! What can be wrong with a configuration.

use std::fmt;
use std::path::PathBuf;

/// Says where a value was given.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Site {
    /// In a configuration file.
    File {
        /// The file.
        path: PathBuf,
        /// Line of the key, counted from 1, where it is known.
        line: Option<usize>,
        /// Dotted path of the key.
        key: String,
    },
    /// In an environment variable.
    Variable {
        /// Name of the variable.
        name: String,
    },
    /// In a flag, or by the program that embeds us.
    Override {
        /// Dotted path of the key.
        key: String,
    },
}

impl fmt::Display for Site {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File {
                path,
                line: Some(line),
                key,
            } => write!(formatter, "`{key}` (`{}` line {line})", path.display()),
            Self::File {
                path,
                line: None,
                key,
            } => write!(formatter, "`{key}` (`{}`)", path.display()),
            Self::Variable { name } => write!(formatter, "environment variable `{name}`"),
            Self::Override { key } => write!(formatter, "the given `{key}`"),
        }
    }
}

/// Describes why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Neither our home folder nor the user's is known.
    #[error("cannot tell the home folder: `HOME` is not set")]
    NoHome,
    /// A path starts with `~`, and the user's home folder is not known.
    #[error("cannot resolve `{path}`: `HOME` is not set")]
    NoUserHome {
        /// The path as it was given.
        path: PathBuf,
    },
    /// A path is relative, and the current directory is not known.
    #[error("cannot resolve the relative path `{path}`: the current directory is not known")]
    NoDirectory {
        /// The path as it was given.
        path: PathBuf,
    },
    /// The file named by `EXOSHELL_CONFIG` does not exist.
    #[error("environment variable `EXOSHELL_CONFIG` names `{path}`, which does not exist")]
    MissingFile {
        /// The file.
        path: PathBuf,
    },
    /// The file exists but cannot be read.
    #[error("cannot read `{path}`")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is not TOML.
    #[error("`{}:{line}:{column}` is not valid TOML: {message}", path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Line, counted from 1.
        line: usize,
        /// Column in characters, counted from 1.
        column: usize,
        /// What the parser said.
        message: String,
    },
    /// The file has a key that nothing reads.
    #[error(
        "unknown key `{key}` (`{}` line {line}){}",
        path.display(),
        closest.map(|known| format!(", the closest known key is `{known}`")).unwrap_or_default()
    )]
    UnknownKey {
        /// The file.
        path: PathBuf,
        /// Line of the key, counted from 1.
        line: usize,
        /// Dotted path of the key.
        key: String,
        /// The known key that was probably meant.
        closest: Option<&'static str>,
    },
    /// A value is of another type than its key takes.
    #[error("{site} is {found}, it takes {takes}")]
    WrongType {
        /// Where the value was given.
        site: Site,
        /// What was found, with its article.
        found: &'static str,
        /// What the key takes.
        takes: String,
    },
    /// A value does not parse, or is out of range.
    #[error("{site} is `{value}`, it takes {takes}")]
    BadValue {
        /// Where the value was given.
        site: Site,
        /// The value, escaped, cut, and hidden where it may be a secret.
        value: String,
        /// What the key takes.
        takes: String,
    },
}

impl ConfigError {
    /// Returns what to do about it.
    pub fn hint(&self) -> String {
        match self {
            Self::NoHome => "set `EXOSHELL_HOME` to a folder that Exoshell may use".to_owned(),
            Self::NoUserHome { .. } => "set `HOME`, or give an absolute path".to_owned(),
            Self::NoDirectory { .. } => "give an absolute path, or start from a directory that exists".to_owned(),
            Self::MissingFile { .. } => "create the file with `exoshell config init`, or unset `EXOSHELL_CONFIG`".to_owned(),
            Self::Unreadable { .. } => "make it a file that you may read, or name another one in `EXOSHELL_CONFIG`".to_owned(),
            Self::Syntax { .. } => "text goes in quotes, lists in `[ ]`; `exoshell config init` shows how each key is written".to_owned(),
            Self::UnknownKey { closest: Some(known), .. } => format!("write `{known}`, or remove the key"),
            Self::UnknownKey { closest: None, .. } => {
                "remove the key; `exoshell config show` lists every known key".to_owned()
            }
            Self::WrongType { site, .. } | Self::BadValue { site, .. } => match site {
                Site::File { .. } => "change the value, or remove the key to get the default".to_owned(),
                Site::Variable { name } => format!("change `{name}`, or unset it"),
                Site::Override { .. } => "change the value, or leave it out".to_owned(),
            },
        }
    }
}
