use super::exit_hint;

#[test]
fn benign_codes_are_explained() {
    assert!(
        exit_hint("grep foo bar", 1)
            .unwrap()
            .contains("nothing matched")
    );
    assert!(exit_hint("cat x | LC_ALL=C /usr/bin/grep -q y", 1).is_some());
    assert!(
        exit_hint("cd /x && diff a b", 1)
            .unwrap()
            .contains("differ")
    );
    assert!(exit_hint("curl -f http://x", 22).is_some());
}

#[test]
fn real_failures_are_left_alone() {
    assert_eq!(exit_hint("grep foo bar", 2), None);
    assert_eq!(exit_hint("make", 1), None);
    assert_eq!(exit_hint("grep foo bar | sort", 1), None);
    assert_eq!(exit_hint("", 1), None);
}
