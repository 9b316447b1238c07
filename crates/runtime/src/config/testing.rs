//! A home folder for tests.

use std::path::PathBuf;

use super::{Config, ConfigError, Environment, Resolved, TerminalConfig};

/// Holds a temporary home folder; it is removed in the end.
pub(super) struct Home {
    pub(super) folder: tempfile::TempDir,
}

impl Home {
    pub(super) fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub(super) fn with_file(text: &str) -> Self {
        let home = Self::new();
        std::fs::write(home.file(), text).unwrap();
        home
    }

    pub(super) fn file(&self) -> PathBuf {
        self.folder.path().join("config.toml")
    }

    pub(super) fn load(&self, pairs: &[(&str, &str)]) -> Result<Resolved, ConfigError> {
        self.load_with(pairs, Config::default())
    }

    pub(super) fn load_with(
        &self,
        pairs: &[(&str, &str)],
        overrides: Config,
    ) -> Result<Resolved, ConfigError> {
        let home = ("EXOSHELL_HOME", self.folder.path().to_str().unwrap());
        let environment =
            Environment::from_pairs(pairs.iter().copied().chain([home])).in_directory("/srv/dir");
        Resolved::load(&environment, overrides)
    }
}

/// Makes a layer that only sets the timeout.
pub(super) fn timeout(seconds: f64) -> Config {
    Config {
        terminal: TerminalConfig {
            timeout_seconds: Some(seconds),
            ..TerminalConfig::default()
        },
        ..Config::default()
    }
}
