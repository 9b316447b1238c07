//! The layer that `config.toml` gives.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{ConfigError, Site};
use super::keys::{self, Key};
use super::nearest::nearest;
use super::schema::Config;
use super::secret::shown;
use super::slot::{Mismatch, type_name};

/// Name of the configuration file in the home folder.
pub(super) const FILE_NAME: &str = "config.toml";

/// Holds what a file says, and on which line.
#[derive(Debug, Default)]
pub(super) struct FileLayer {
    pub(super) config: Config,
    pub(super) lines: BTreeMap<&'static str, usize>,
}

impl Config {
    /// Parses the text of a configuration file; `path` only serves to name it in errors.
    ///
    /// Types and keys are checked here, ranges when the layer is resolved.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        parse(text, path).map(|layer| layer.config)
    }
}

/// Reads the file; `None` = there is none, and it was not required.
pub(super) fn read(path: &Path, required: bool) -> Result<Option<FileLayer>, ConfigError> {
    if std::fs::metadata(path).is_ok_and(|known| !known.is_file()) {
        return Err(ConfigError::Unreadable {
            path: path.to_owned(),
            source: io::Error::other("not a file"),
        });
    }
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error)
            if matches!(
                error.kind(),
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
            ) =>
        {
            return if required {
                Err(ConfigError::MissingFile {
                    path: path.to_owned(),
                })
            } else {
                Ok(None)
            };
        }
        Err(source) => {
            return Err(ConfigError::Unreadable {
                path: path.to_owned(),
                source,
            });
        }
    };
    match std::str::from_utf8(&bytes) {
        Ok(text) => parse(text, path).map(Some),
        Err(error) => {
            let valid =
                String::from_utf8_lossy(bytes.get(..error.valid_up_to()).unwrap_or_default());
            Err(syntax(
                path,
                &valid,
                valid.len(),
                "not UTF-8 text".to_owned(),
            ))
        }
    }
}

/// Parses the text of a file.
pub(super) fn parse(text: &str, path: &Path) -> Result<FileLayer, ConfigError> {
    let document = DeTable::parse(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        syntax(path, text, offset, error.message().replace('\n', ", "))
    })?;
    let mut reader = Reader {
        path,
        text,
        layer: FileLayer::default(),
    };
    for (name, value) in in_order(document.get_ref()) {
        reader.table(name, value)?;
    }
    Ok(reader.layer)
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    layer: FileLayer,
}

type Name<'i> = Spanned<Cow<'i, str>>;

impl Reader<'_> {
    fn table(&mut self, name: &Name<'_>, value: &Spanned<DeValue<'_>>) -> Result<(), ConfigError> {
        let table = name.get_ref();
        if !keys::is_table(table) {
            return Err(self.unknown(name, shown(table)));
        }
        let Some(entries) = value.get_ref().as_table() else {
            return Err(self.wrong_type(
                self.line(name),
                shown(table),
                type_name(value.get_ref()),
                "a table".to_owned(),
            ));
        };
        for (name, value) in in_order(entries) {
            let path = format!("{table}.{}", shown(name.get_ref()));
            let Some(key) = keys::find(&path) else {
                return Err(self.unknown(name, path));
            };
            self.key(key, name, value.get_ref())?;
        }
        Ok(())
    }

    fn key(
        &mut self,
        key: &'static Key,
        name: &Name<'_>,
        value: &DeValue<'_>,
    ) -> Result<(), ConfigError> {
        let line = self.line(name);
        self.layer.lines.insert(key.name, line);
        let read = key.slot.read_toml(value, &mut self.layer.config);
        read.map_err(|mismatch| match mismatch {
            Mismatch::Type { found } => {
                self.wrong_type(line, key.name.to_owned(), found, key.slot.takes())
            }
            Mismatch::Entry {
                part,
                offset,
                found,
            } => {
                let line = position(self.text, offset).0;
                self.wrong_type(
                    line,
                    format!("{}{part}", key.name),
                    found,
                    "a string".to_owned(),
                )
            }
            Mismatch::Value(value) => ConfigError::BadValue {
                site: Site::File {
                    path: self.path.to_owned(),
                    line: Some(line),
                    key: key.name.to_owned(),
                },
                value: shown(&value),
                takes: key.slot.takes(),
            },
        })
    }

    fn unknown(&self, name: &Name<'_>, key: String) -> ConfigError {
        let keys = keys::all().map(|known| known.name);
        let tables = keys::all().map(|known| known.parts().0);
        let closest = nearest(&key, keys.chain(tables));
        ConfigError::UnknownKey {
            path: self.path.to_owned(),
            line: self.line(name),
            key,
            closest,
        }
    }

    fn wrong_type(
        &self,
        line: usize,
        key: String,
        found: &'static str,
        takes: String,
    ) -> ConfigError {
        let site = Site::File {
            path: self.path.to_owned(),
            line: Some(line),
            key,
        };
        ConfigError::WrongType { site, found, takes }
    }

    fn line(&self, name: &Name<'_>) -> usize {
        position(self.text, name.span().start).0
    }
}

/// Returns the entries in the order of the file, so that the first mistake is the one reported.
fn in_order<'t, 'i>(table: &'t DeTable<'i>) -> Vec<(&'t Name<'i>, &'t Spanned<DeValue<'i>>)> {
    let mut entries: Vec<_> = table.iter().collect();
    entries.sort_by_key(|(name, _)| name.span().start);
    entries
}

fn syntax(path: &Path, text: &str, offset: usize, message: String) -> ConfigError {
    let (line, column) = position(text, offset);
    ConfigError::Syntax {
        path: path.to_owned(),
        line,
        column,
        message,
    }
}

/// Returns the line and the column of a byte offset, both counted from 1.
fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (
        before.matches('\n').count() + 1,
        before[line_start..].chars().count() + 1,
    )
}

#[cfg(test)]
#[path = "file_tests.rs"]
mod tests;
