use super::Store;

fn filled(disk: u64, lines: u64) -> (tempfile::TempDir, Store, Vec<u8>) {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::new(dir.path().join("p"), disk);
    let mut all = Vec::new();
    for line in 0..lines {
        let text = format!("line {line} of many\n");
        store.push(text.as_bytes());
        all.extend_from_slice(text.as_bytes());
    }
    (dir, store, all)
}

fn read_all(store: &Store, mut offset: u64) -> Vec<u8> {
    let mut all = Vec::new();
    loop {
        let piece = store.read(offset, 10_000);
        if piece.bytes.is_empty() {
            return all;
        }
        offset = piece.start + piece.bytes.len() as u64;
        all.extend(piece.bytes);
    }
}

#[test]
fn everything_is_there_while_it_fits() {
    let (_dir, store, all) = filled(4_000_000, 100_000);
    assert_eq!(store.start(), 0);
    assert_eq!(store.end(), all.len() as u64);
    assert_eq!(read_all(&store, 0), all);
    assert_eq!(store.lines(), 100_000);
}

#[test]
fn o2_memory_and_disk_stay_bounded_and_the_gap_is_known() {
    let (dir, store, all) = filled(1_000_000, 200_000);
    let on_disk: u64 = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|e| e.unwrap().metadata().unwrap().len())
        .sum();
    assert!(on_disk <= 1_000_000, "{on_disk}");
    let start = usize::try_from(store.start()).unwrap();
    assert!(start > 0);
    assert!(all.len() - start >= 700_000);
    let piece = store.read(0, 100);
    assert_eq!(piece.start, store.start());
    assert_eq!(read_all(&store, 0), &all[start..]);
}

#[test]
fn lines_are_found_by_number() {
    let (_dir, store, all) = filled(4_000_000, 100_000);
    let text = String::from_utf8(all).unwrap();
    for wanted in [0_u64, 1, 255, 256, 257, 70_000, 99_999] {
        let (offset, line) = store.find_line(wanted);
        assert_eq!(line, wanted);
        let at = usize::try_from(offset).unwrap();
        assert!(
            text[at..].starts_with(&format!("line {wanted} of many\n")),
            "{wanted}"
        );
    }
    assert_eq!(store.find_line(100_000), (store.end(), 100_000));
    assert_eq!(store.find_line(u64::MAX).0, store.end());
}

#[test]
fn a_line_that_is_gone_gives_the_oldest_whole_one() {
    let (_dir, store, _) = filled(1_000_000, 200_000);
    let (offset, line) = store.find_line(0);
    assert!(line > 0);
    let piece = store.read(offset, 40);
    let text = String::from_utf8_lossy(&piece.bytes).into_owned();
    assert!(
        text.starts_with(&format!("line {line} of many\n")),
        "{line}: {text}"
    );
}

#[test]
fn an_unfinished_last_line_is_a_line() {
    let store = Store::new("/nonexistent/p".into(), 1000);
    store.push(b"a\nb");
    assert_eq!(store.lines(), 2);
    store.push(b"\n");
    assert_eq!(store.lines(), 2);
}

#[test]
fn a_disk_that_cannot_be_written_costs_history_not_output() {
    let store = Store::new("/nonexistent/p".into(), 1_000_000);
    let block = vec![b'x'; 100_000];
    for _ in 0..5 {
        store.push(&block);
    }
    assert_eq!(store.end(), 500_000);
    assert!(store.end() - store.start() >= 200_000);
    assert_eq!(
        read_all(&store, 0).len() as u64,
        store.end() - store.start()
    );
}
