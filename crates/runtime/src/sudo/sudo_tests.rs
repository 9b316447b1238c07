use super::Password;

#[test]
fn a_password_is_never_shown() {
    assert_eq!(
        format!("{:?}", Password::new("open sesame")),
        "Password(***)"
    );
}

#[test]
fn only_one_line_of_a_reasonable_length_is_a_password() {
    assert!(Password::new("open sesame").is_usable());
    assert!(!Password::new("").is_usable());
    assert!(!Password::new("two\nlines").is_usable());
    assert!(!Password::new("x".repeat(1025)).is_usable());
    assert_eq!(&Password::new("x").line()[..], b"x\n");
}
