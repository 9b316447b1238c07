use super::key_bytes;

#[test]
fn p2_keys_send_what_a_terminal_sends() {
    assert_eq!(key_bytes("ctrl-c").unwrap(), [3]);
    assert_eq!(key_bytes("Ctrl-D").unwrap(), [4]);
    assert_eq!(key_bytes("enter").unwrap(), b"\r");
    assert_eq!(key_bytes("up").unwrap(), b"\x1b[A");
    assert_eq!(key_bytes("alt-x").unwrap(), b"\x1bx");
    assert_eq!(key_bytes("é").unwrap(), "é".as_bytes());
    assert!(key_bytes("hyper-q").is_err());
    assert!(key_bytes("").is_err());
}
