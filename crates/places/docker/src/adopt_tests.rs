use super::*;

#[test]
fn a_missing_shell_is_told_from_other_failures() {
    assert!(no_shell(
        "OCI runtime exec failed: exec failed: unable to start container process: exec: \"sh\": executable file not found in $PATH: unknown"
    ));
    assert!(!no_shell("sh: 1: cannot create /x: Permission denied"));
    assert!(!no_shell(
        "Error response from daemon: No such container: sh"
    ));
}

#[test]
fn a_path_is_taken_only_behind_our_mark() {
    assert_eq!(
        marked("noise\nexoshell-guest-at:/a/guest-1\n"),
        Some("/a/guest-1".to_owned())
    );
    assert_eq!(marked("exoshell-guest-at:relative"), None);
    assert_eq!(marked("/a/guest-1"), None);
}
