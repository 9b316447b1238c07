use proptest::prelude::*;

use super::{quote, read_word, skip_value};

fn word(text: &[u8]) -> Vec<u8> {
    let mut input = text;
    let word = read_word(&mut input).unwrap();
    assert_eq!(input, b"");
    word
}

#[test]
fn every_way_bash_quotes_is_undone() {
    assert_eq!(word(br#""a \"b\" \$c \\ \`""#), br#"a "b" $c \ `"#);
    assert_eq!(word(br"$'a\nb\tc\'d\\\377\x41\e'"), b"a\nb\tc'd\\\xffA\x1b");
    assert_eq!(word(b"'it'\\''s'"), b"it's");
    assert_eq!(word(b"plain"), b"plain");
    assert_eq!(word(b"\"two\nlines\""), b"two\nlines");
}

#[test]
fn arrays_are_skipped_whole() {
    let text = br#"([0]="a ) b" [1]=$'c\'d' [key]="")"#;
    let mut input: &[u8] = text;
    assert_eq!(skip_value(&mut input), Some(&text[..]));
    assert_eq!(input, b"");
}

proptest! {
    #[test]
    fn e4_quoted_bytes_come_back(bytes in proptest::collection::vec(1_u8..=255, 0..200)) {
        prop_assert_eq!(word(&quote(&bytes)), bytes);
    }

    #[test]
    fn no_input_makes_the_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_word(&mut &bytes[..]);
        let _ = skip_value(&mut &bytes[..]);
    }
}
