use exoshell_wire::{FileEntry, FileKind};

use super::{Lines, MAX_LINE};

fn entry(path: &str) -> FileEntry {
    FileEntry {
        path: path.into(),
        kind: FileKind::Link,
        mode: 0,
        mtime_ns: 0,
        size: None,
        sha256: None,
        why: None,
    }
}

fn text(paths: &[&str]) -> Vec<u8> {
    let line = |path: &&str| serde_json::to_string(&entry(path)).unwrap() + "\n";
    paths.iter().map(line).collect::<String>().into_bytes()
}

#[test]
fn entries_are_read_however_they_were_cut() {
    let whole = text(&["a", "b\n", "c"]);
    for size in 1..whole.len() {
        let mut lines = Lines::default();
        for piece in whole.chunks(size) {
            lines.push(piece, 3).unwrap();
        }
        assert_eq!(lines.finish().unwrap(), ["a", "b\n", "c"].map(entry));
    }
}

#[test]
fn more_entries_than_were_asked_for_are_refused() {
    let mut lines = Lines::default();
    assert!(lines.push(&text(&["a", "b"]), 1).is_err());
}

#[test]
fn a_line_that_never_ends_is_refused() {
    let mut lines = Lines::default();
    lines.push(&vec![b'x'; MAX_LINE], 1).unwrap();
    assert!(lines.push(b"x", 1).is_err());
    let mut lines = Lines::default();
    lines.push(b"{", 1).unwrap();
    assert!(lines.finish().is_err());
}
