use proptest::prelude::*;

use super::*;

const NONCE: &str = "0123abcd";

fn mark(kind: &str) -> Vec<u8> {
    [b"\x1e", NONCE.as_bytes(), kind.as_bytes()].concat()
}

/// Scans a stream that comes in pieces of this size; neighbouring texts are joined.
fn scan(bytes: &[u8], size: usize) -> Vec<Piece> {
    let mut scanner = Scanner::new(NONCE);
    let mut pieces = Vec::new();
    for part in bytes.chunks(size) {
        scanner.push(part);
        pieces.extend(std::iter::from_fn(|| scanner.next()));
    }
    pieces.extend(scanner.rest());
    let mut joined: Vec<Piece> = Vec::new();
    for piece in pieces {
        match (joined.last_mut(), piece) {
            (Some(Piece::Text(before)), Piece::Text(after)) => {
                *before = [before.as_ref(), &after].concat().into();
            }
            (_, piece) => joined.push(piece),
        }
    }
    joined
}

fn conversation(text: &[u8]) -> Vec<u8> {
    [
        b"Welcome!\n".to_vec(),
        mark("Rready"),
        mark("E"),
        text.to_vec(),
        mark("Sstate\n\0"),
        mark("E"),
        b"last".to_vec(),
        mark("X7;"),
        b"never seen".to_vec(),
    ]
    .concat()
}

fn expected(text: &[u8]) -> Vec<Piece> {
    let mut pieces = vec![Piece::Report(b'R', "ready".into())];
    if !text.is_empty() {
        pieces.push(Piece::Text(text.to_vec().into()));
    }
    pieces.extend([
        Piece::Report(b'S', "state\n\0".into()),
        Piece::Text("last".into()),
        Piece::End(7),
    ]);
    pieces
}

#[test]
fn reports_are_taken_out_of_the_text_however_it_is_cut() {
    for size in 1..80 {
        let pieces = scan(&conversation(b"out\n"), size);
        assert_eq!(pieces, expected(b"out\n"), "{size}");
    }
}

#[test]
fn what_only_looks_like_a_marker_is_text() {
    let text = b"\x1e\x1e0123abc\x1e0123abc\x1e \x1e".to_vec();
    for size in [1, 2, 7, 1000] {
        assert_eq!(scan(&conversation(&text), size), expected(&text), "{size}");
    }
}

#[test]
fn a_stream_that_breaks_off_inside_a_marker_keeps_its_last_bytes() {
    let bytes = [mark("R"), mark("E"), b"a\x1e0123".to_vec()].concat();
    assert_eq!(
        scan(&bytes, 3).last(),
        Some(&Piece::Text(Bytes::from_static(b"a\x1e0123")))
    );
}

#[test]
fn what_comes_before_the_first_report_is_kept_in_part() {
    let mut scanner = Scanner::new(NONCE);
    scanner.push(&b"noise".repeat(10_000));
    assert_eq!(scanner.next(), None);
    assert!(scanner.noise().starts_with(b"noisenoise"));
    assert_eq!(scanner.noise().len(), MAX_NOISE);
}

proptest! {
    #[test]
    fn no_text_is_lost_or_changed(
        text in proptest::collection::vec(prop_oneof![Just(0x1e_u8), Just(b'0'), Just(b'1'), any::<u8>()], 0..200),
        size in 1_usize..60,
    ) {
        prop_assume!(memmem::find(&text, &mark("")).is_none());
        // A marker that the text begins is completed by the one behind it only by chance.
        let bytes = conversation(&text);
        prop_assume!(memmem::find_iter(&bytes, &mark("")).count() == 5);
        prop_assert_eq!(scan(&bytes, size), expected(&text));
    }
}
