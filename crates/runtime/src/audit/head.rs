//! The head: which record is the last. It is written after the record, so it never runs ahead.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use super::files;
use super::record::Link;

const NAME: &str = "head";

/// What the head says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Head {
    /// There is none.
    Missing,
    /// It cannot be read.
    Damaged,
    /// The last record.
    At(Link),
}

/// Opens the head for writing.
pub(super) fn open(folder: &Path) -> io::Result<File> {
    files::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(folder.join(NAME))
}

/// Writes the last record, in place: the length is always the same.
pub(super) fn write(file: &File, link: &Link) -> io::Result<()> {
    file.write_all_at(format!("{:020} {}\n", link.number, link.hash).as_bytes(), 0)
}

/// Reads the last record.
pub(super) fn read(folder: &Path) -> io::Result<Head> {
    let path = folder.join(NAME);
    if std::fs::metadata(&path).is_ok_and(|known| !known.is_file()) {
        return Ok(Head::Damaged);
    }
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Head::Missing),
        Err(error) => return Err(error),
    };
    if bytes.is_empty() {
        return Ok(Head::Missing);
    }
    let link = std::str::from_utf8(&bytes).ok().and_then(|text| {
        let (number, hash) = text.strip_suffix('\n')?.split_once(' ')?;
        let fits = number.len() == 20 && hash.len() == 64;
        fits.then_some(Link {
            number: number.parse().ok()?,
            hash: hash.to_owned(),
        })
    });
    Ok(link.map_or(Head::Damaged, Head::At))
}
