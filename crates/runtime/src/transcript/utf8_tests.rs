use proptest::prelude::*;

use super::*;

fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut decoder = Decoder::default();
    let mut text = String::new();
    for chunk in chunks {
        decoder.push(chunk, |piece| text.push_str(piece));
    }
    decoder.finish(|piece| text.push_str(piece));
    text
}

#[test]
fn o4_a_character_split_at_every_boundary_stays_intact() {
    let source = "é漢😀\u{10FFFF}a";
    let bytes = source.as_bytes();
    for first in 0..=bytes.len() {
        for second in first..=bytes.len() {
            let chunks = [&bytes[..first], &bytes[first..second], &bytes[second..]];
            assert_eq!(decode(chunks), source);
        }
    }
    assert_eq!(decode(bytes.chunks(1)), source);
}

#[test]
fn o4_gbk_bytes_and_lone_ff_become_valid_utf8() {
    // "中文" in GBK, then a lone 0xFF in text.
    let bytes = b"\xD6\xD0\xCE\xC4 ok \xFF end";
    let text = decode([bytes.as_slice()]);
    assert_eq!(text, String::from_utf8_lossy(bytes));
    assert!(text.ends_with(" ok \u{FFFD} end"));
}

#[test]
fn a_character_cut_short_by_the_end_is_one_replacement() {
    assert_eq!(decode([b"a\xF0\x9F\x98".as_slice()]), "a\u{FFFD}");
}

#[test]
fn a_character_over_a_block_boundary_stays_intact() {
    let source = format!("{}漢字", "x".repeat(BLOCK - 1));
    assert_eq!(decode([source.as_bytes()]), source);
}

fn near_utf8() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        any::<u8>().prop_map(|byte| vec![byte]),
        any::<char>().prop_map(|char| char.to_string().into_bytes()),
        (any::<char>(), 0..4usize).prop_map(|(char, keep)| {
            let mut bytes = char.to_string().into_bytes();
            bytes.truncate(keep);
            bytes
        }),
        Just(b"\xED\xA0\x80".to_vec()),
        Just(b"\xF4\x90\x80\x80".to_vec()),
    ];
    prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    #[test]
    fn o4_any_split_of_any_bytes_decodes_as_the_standard_library_does(
        bytes in near_utf8(),
        size in 1..8usize,
    ) {
        let expected = String::from_utf8_lossy(&bytes);
        prop_assert_eq!(&decode([bytes.as_slice()]), &expected);
        prop_assert_eq!(&decode(bytes.chunks(size)), &expected);
    }
}
