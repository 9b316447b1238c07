use super::*;
#[test]
fn smoke() {
    assert_eq!(Redactor::default().redact("a\n"), "a\n");
}
