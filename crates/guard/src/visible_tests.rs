use super::*;

#[test]
fn what_hides_is_shown_by_its_code() {
    assert_eq!(
        visible("r\u{200b}m \u{202e}x\u{1b}[2K"),
        "r<U+200B>m <U+202E>x<U+001B>[2K"
    );
    assert_eq!(
        visible("a\u{a0}b\u{2003}c\r\0"),
        "a<U+00A0>b<U+2003>c<U+000D><U+0000>"
    );
    assert_eq!(
        visible("\u{e000}\u{10ffff}\u{feff}"),
        "<U+E000><U+10FFFF><U+FEFF>"
    );
}

#[test]
fn letters_that_imitate_are_followed_by_their_code() {
    assert_eq!(visible("\u{0433}m"), "\u{0433}<U+0433>m");
    assert_eq!(visible("rm \u{2013}rf"), "rm \u{2013}<U+2013>rf");
    assert_eq!(
        visible("\u{ff52}\u{ff4d}"),
        "\u{ff52}<U+FF52>\u{ff4d}<U+FF4D>"
    );
}

#[test]
fn ordinary_text_stays_as_it_is() {
    for text in ["ls -la\n\tcat x", "日本語 été ñ", "echo '→ ok'"] {
        assert_eq!(visible(text), text);
    }
}

#[test]
fn names_that_imitate_are_told_from_names_in_another_script() {
    for name in [
        "\u{0433}m",
        "r\u{043c}",
        "\u{0441}\u{0430}t",
        "\u{ff52}\u{ff4d}",
        "rm\u{200b}",
        "r\u{1d426}",
        "ls\u{b}",
    ] {
        assert!(imitates(name), "{name:?}");
    }
    for name in ["rm", "скрипт.sh", "запустить", "日本", "café", "größe"] {
        assert!(!imitates(name), "{name:?}");
    }
}

#[test]
fn a_false_dash_begins_an_option() {
    assert!(false_dash("\u{2013}rf"));
    assert!(false_dash("\u{2212}\u{2212}force"));
    assert!(!false_dash("\u{2013} and so on"));
    assert!(!false_dash("-rf"));
}
