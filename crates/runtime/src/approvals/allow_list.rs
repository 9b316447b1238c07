//! What was allowed for good: `approval.allow` in the configuration file.

use std::fs;
use std::io;
use std::path::Path;

use toml_edit::{Array, DocumentMut, Item, Table, value};

use crate::config::Config;
use crate::error::RuntimeError;
use crate::state_file;

/// Reads the list; nothing where there is no file.
pub(super) fn read(file: &Path) -> Option<Vec<String>> {
    let text = fs::read_to_string(file).ok()?;
    Config::parse(&text, file).ok()?.approval.allow
}

/// Adds keys to the list. The rest of the file stays as it is, comments and all.
pub(super) fn add(file: &Path, keys: &[String]) -> Result<(), RuntimeError> {
    change(file, |list| {
        for key in keys {
            if !list.iter().any(|listed| listed.as_str() == Some(key)) {
                list.push(key.as_str());
            }
        }
    })
}

/// Takes a key off the list; tells whether it was there.
pub(super) fn remove(file: &Path, key: &str) -> Result<bool, RuntimeError> {
    if !read(file).is_some_and(|list| list.iter().any(|listed| listed == key)) {
        return Ok(false);
    }
    change(file, |list| {
        list.retain(|listed| listed.as_str() != Some(key));
    })?;
    Ok(true)
}

fn change(file: &Path, change: impl FnOnce(&mut Array)) -> Result<(), RuntimeError> {
    if let Some(folder) = file.parent() {
        state_file::make_folder(folder)?;
    }
    let _turn = state_file::lock(&file.with_extension("lock"))?;
    let failed = |error: io::Error| state_file::failure("cannot change", file)(error);
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => return Err(failed(error)),
    };
    // A file with a mistake is the user's to mend, not ours to write over.
    Config::parse(&text, file)?;
    let mut document: DocumentMut = text
        .parse()
        .map_err(|error: toml_edit::TomlError| failed(io::Error::other(error)))?;
    let table = document
        .entry("approval")
        .or_insert_with(|| Item::Table(Table::new()));
    let list = table.as_table_like_mut().map(|table| {
        table
            .entry("allow")
            .or_insert_with(|| value(Array::new()))
            .as_array_mut()
    });
    let Some(Some(list)) = list else {
        return Err(failed(io::Error::other("`approval.allow` is no list")));
    };
    change(list);
    state_file::write_text(file, &document.to_string())
}
