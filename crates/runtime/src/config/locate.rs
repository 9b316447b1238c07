//! Where our home folder and the configuration file are, and what relative paths mean.

use std::path::{Component, Path, PathBuf};

use super::env::{self, Environment};
use super::error::ConfigError;
use super::file::FILE_NAME;

/// Name of our home folder in the user's.
const DEFAULT_HOME: &str = ".exoshell";

/// Holds where things are, before any file is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Locations {
    /// Folder of configuration, state and sockets.
    pub home: PathBuf,
    /// Path of the configuration file, whether it exists or not.
    pub config_file: PathBuf,
    /// Whether the file was named by the user, so that a missing one is an error.
    pub config_required: bool,
}

impl Locations {
    /// Finds the home folder and the configuration file.
    pub fn find(environment: &Environment) -> Result<Self, ConfigError> {
        let anchor = Anchor {
            directory: environment.directory(),
            user_home: environment.user_home(),
        };
        let home = match environment.get(env::EXOSHELL_HOME) {
            Some(home) => anchor.resolve(Path::new(home))?,
            None => anchor.resolve(
                &environment
                    .user_home()
                    .ok_or(ConfigError::NoHome)?
                    .join(DEFAULT_HOME),
            )?,
        };
        let named = environment
            .get(env::EXOSHELL_CONFIG)
            .map(|file| anchor.resolve(Path::new(file)))
            .transpose()?;
        let config_required = named.is_some();
        let config_file = named.unwrap_or_else(|| home.join(FILE_NAME));
        Ok(Self {
            home,
            config_file,
            config_required,
        })
    }
}

/// Holds what paths start from.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Anchor<'a> {
    /// Where relative paths start.
    pub(super) directory: Option<&'a Path>,
    /// What `~` stands for.
    pub(super) user_home: Option<&'a Path>,
}

impl Anchor<'_> {
    /// Makes a path absolute; `~` is understood because not every caller has a shell in front of it.
    pub(super) fn resolve(self, path: &Path) -> Result<PathBuf, ConfigError> {
        let expanded = match path.strip_prefix("~") {
            Ok(rest) => self
                .user_home
                .ok_or_else(|| ConfigError::NoUserHome {
                    path: path.to_owned(),
                })?
                .join(rest),
            Err(_not_under_home) => path.to_owned(),
        };
        let absolute = if expanded.is_absolute() {
            expanded
        } else {
            self.directory
                .ok_or_else(|| ConfigError::NoDirectory {
                    path: path.to_owned(),
                })?
                .join(expanded)
        };
        Ok(absolute
            .components()
            .filter(|part| *part != Component::CurDir)
            .collect())
    }
}

#[cfg(test)]
#[path = "locate_tests.rs"]
mod tests;
