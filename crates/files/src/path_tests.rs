use proptest::prelude::*;

use super::RelPath;

#[test]
fn what_could_leave_a_root_is_no_path() {
    for bad in [
        "/etc/passwd",
        "..",
        "../x",
        "a/../b",
        "a/..",
        "./a",
        "a//b",
        "a/",
        "/",
        "a\0b",
    ] {
        assert!(RelPath::new(bad).is_err(), "{bad:?}");
    }
    assert!(RelPath::new(vec![b'x'; 256]).is_err());
    assert!(RelPath::new("x/".repeat(2047) + "x").is_ok());
    assert!(RelPath::new("x/".repeat(2048) + "x").is_err());
}

#[test]
fn odd_names_are_paths() {
    for good in [&b"...\xff"[..], b"..a", b"-rf", b" ", b"a\nb", b"*"] {
        assert_eq!(RelPath::new(good).unwrap().as_bytes(), good);
    }
    assert!(RelPath::new("").unwrap().is_root());
}

#[test]
fn what_is_shown_has_no_control_characters() {
    assert_eq!(
        RelPath::new("a\u{1b}[31m").unwrap().display(),
        "a\u{fffd}[31m"
    );
}

proptest! {
    #[test]
    fn an_accepted_path_stays_beneath(bytes in prop::collection::vec(
        prop::sample::select(b"./a\0\xff".to_vec()), 0..12,
    )) {
        if let Ok(path) = RelPath::new(bytes) {
            let stays = |name: &[u8]| {
                !name.is_empty() && name != b"." && name != b".." && !name.contains(&0)
            };
            let beneath = path.as_bytes().split(|b| *b == b'/').all(stays);
            prop_assert!(path.is_root() || beneath);
        }
    }
}
