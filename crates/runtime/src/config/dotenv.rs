//! The file `.env` of the home folder: values that may be forwarded into places.

use std::collections::BTreeMap;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// Nothing larger is read.
const MAX_SIZE: u64 = 1024 * 1024;

/// Reads the variables of the file; one that others can read is not used, with a note.
pub(crate) fn read(path: &Path, notes: &mut Vec<String>) -> BTreeMap<String, String> {
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                notes.push(format!("`{}` cannot be read: {error}", path.display()));
            }
            return BTreeMap::new();
        }
    };
    if metadata.mode() & 0o077 != 0 || metadata.len() > MAX_SIZE {
        notes.push(format!(
            "`{0}` is not used: it must be closed to others (chmod 600 {0}) and at most 1 MiB",
            path.display()
        ));
        return BTreeMap::new();
    }
    match std::fs::read_to_string(path) {
        Ok(text) => parse(&text),
        Err(error) => {
            notes.push(format!("`{}` cannot be read: {error}", path.display()));
            BTreeMap::new()
        }
    }
}

/// Reads the variables of the file for hiding them, whoever else can read it.
pub(crate) fn read_to_hide(path: &Path) -> BTreeMap<String, String> {
    let readable = std::fs::metadata(path).is_ok_and(|it| it.is_file() && it.len() <= MAX_SIZE);
    let text = readable.then(|| std::fs::read_to_string(path));
    text.and_then(Result::ok)
        .map_or_else(BTreeMap::new, |text| parse(&text))
}

/// Reads lines of `NAME=value`, with or without `export` and quotes; other lines are comments.
fn parse(text: &str) -> BTreeMap<String, String> {
    text.lines().filter_map(pair).collect()
}

fn pair(line: &str) -> Option<(String, String)> {
    let line = line.trim();
    let line = line.strip_prefix("export ").unwrap_or(line);
    if line.starts_with('#') {
        return None;
    }
    let (name, value) = line.split_once('=')?;
    let name = name.trim();
    if !super::is_variable_name(name) {
        return None;
    }
    let value = value.trim();
    let quoted = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    let value = quoted('"').or_else(|| quoted('\'')).unwrap_or(value);
    Some((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn lines_of_a_file_are_variables() {
        let text = "# a comment\nA=1\nexport B = \"two words\"\nC='x=y'\n1BAD=2\nno equals\nD=\n";
        let expected = [("A", "1"), ("B", "two words"), ("C", "x=y"), ("D", "")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(parse(text), BTreeMap::from(expected));
    }

    #[test]
    fn a_file_that_others_can_read_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".env");
        std::fs::write(&path, "TOKEN=x").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
        let mut notes = Vec::new();
        assert!(read(&path, &mut notes).is_empty());
        assert!(notes[0].contains("chmod 600"), "{notes:?}");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(&read(&path, &mut Vec::new())["TOKEN"], "x");
    }
}
