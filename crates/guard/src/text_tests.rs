use super::*;

#[test]
fn escapes_are_undone_as_bash_does() {
    assert_eq!(unescape(r"\x72\155\u0020\55", Escapes::Quotes).0, "rm -");
    assert_eq!(unescape(r"rm\0zz", Escapes::Quotes).0, "rm");
    assert_eq!(unescape(r"a\cb", Escapes::Echo), ("a".to_owned(), true));
    assert_eq!(unescape(r"\0162\q", Escapes::Echo).0, "r\\q");
}

#[test]
fn patterns_match_names() {
    assert!(matches("r*", "rm") && matches("*", "") && matches("a*b*c", "axbxc"));
    assert!(!matches("r*", "mr") && !matches("a?", "a") && !matches("", "a"));
    let mut active = String::new();
    activate("/b?n/[r][!x]*", &mut active);
    assert_eq!(active, format!("/b{ONE}n/r{ONE}{STAR}"));
    assert!(matches(&active, "/bin/rm"));
}

#[test]
fn many_stars_do_not_take_for_ever() {
    assert!(!matches(&"*a".repeat(50), &"b".repeat(10_000)));
}

#[test]
fn encodings_are_decoded() {
    assert_eq!(decode_base("cm0gLXJm\nIC8=", 6), "rm -rf /");
    assert_eq!(decode_base("OJWSALLSMYQC6===", 5), "rm -rf /");
    assert_eq!(decode_hex("72 6d20"), "rm ");
    assert_eq!(translate("ql", "a-z", "b-za"), "rm");
}

#[test]
fn printf_repeats_its_format() {
    assert_eq!(printf("%s-%d\\n", &["a", "1", "b", "2"]), "a-1\nb-2\n");
    assert_eq!(printf("%b%%", &["\\x41"]), "A%");
    assert_eq!(printf("x", &["a", "b"]), "x");
}
