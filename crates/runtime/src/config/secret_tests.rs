use super::*;

#[test]
fn a_secret_value_is_never_shown() {
    assert_eq!(shown_value("TERMINAL_SSH_KEY", OsStr::new("abc")), "***");
    assert_eq!(shown_value("TERMINAL_TIMEOUT", OsStr::new("abc")), "abc");
}

#[test]
fn shown_text_is_escaped_and_cut_at_eighty_characters() {
    assert_eq!(
        shown("a\n\u{1b}[31m\u{202e}'\"é"),
        "a\\n\\u{1b}[31m\\u{202e}'\"é"
    );
    assert_eq!(shown(&"x".repeat(80)), "x".repeat(80));
    assert_eq!(shown(&"x".repeat(81)), format!("{}…", "x".repeat(80)));
}
