use super::{Content, Digest, Hasher};

const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

#[test]
fn the_text_of_a_digest_is_read_back() {
    let digest = Content::of(b"").digest;
    assert_eq!(digest.to_string(), EMPTY);
    assert_eq!(EMPTY.parse::<Digest>().unwrap(), digest);
}

#[test]
fn what_is_no_digest_is_refused() {
    for bad in [
        "",
        "e3",
        &EMPTY[1..],
        &EMPTY.to_uppercase(),
        &format!("{EMPTY}00"),
    ] {
        assert!(bad.parse::<Digest>().is_err(), "{bad}");
    }
}

#[test]
fn pieces_make_the_same_content_as_the_whole() {
    let mut hasher = Hasher::default();
    hasher.update(b"one ");
    hasher.update(b"two");
    assert_eq!(hasher.finish(), Content::of(b"one two"));
}
