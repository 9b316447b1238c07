use std::path::Path;

use super::{Direction, SyncEntry};

fn parse(text: &str) -> Result<SyncEntry, String> {
    let home = Some(Path::new("/home/ada"));
    SyncEntry::parse(text, home).map_err(|error| error.why)
}

#[test]
fn an_entry_has_two_sides_and_goes_in_unless_it_says_otherwise() {
    let entry = |local: &str, remote: &str, direction| {
        Ok(SyncEntry {
            local: local.into(),
            remote: remote.into(),
            direction,
        })
    };
    assert_eq!(
        parse("~/.config/tool:~/.config/tool"),
        entry("/home/ada/.config/tool", "~/.config/tool", Direction::In)
    );
    assert_eq!(parse("/a:/b:ro"), entry("/a", "/b", Direction::In));
    assert_eq!(parse("/a:~/b/:rw"), entry("/a", "~/b", Direction::Both));
    assert_eq!(
        parse("~//etc:/b"),
        entry("/home/ada/etc", "/b", Direction::In)
    );
}

#[test]
fn a_bad_entry_says_what_is_wrong() {
    for (text, why) in [
        ("/a", "it names only one side"),
        ("/a:/b:rx", "`rx` is neither `ro` nor `rw`"),
        (
            "/a:/b:/c:ro",
            "it has too many colons, and a path cannot contain one",
        ),
        ("a:/b", "the local path must begin with `/` or `~/`"),
        ("/a:b", "the remote path must begin with `/` or `~/`"),
        (":/b", "the local path is empty"),
        ("/a:", "the remote path is empty"),
        ("/a:/b/../c", "the remote path contains `..`"),
        ("/a/..:/b", "the local path contains `..`"),
        (
            "/a:~",
            "the remote path is a whole home or disk; name what is needed in it",
        ),
        (
            "/:/b",
            "the local path is a whole home or disk; name what is needed in it",
        ),
        ("/a:~ada/b", "the remote path must begin with `/` or `~/`"),
        ("/a:/b\0", "the remote path contains NUL"),
    ] {
        assert_eq!(parse(text), Err(why.to_owned()), "{text}");
    }
}

#[test]
fn the_text_of_a_bad_entry_names_it_and_what_to_write() {
    let error = SyncEntry::parse("/a", None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`/a` cannot be synced: it names only one side; write `LOCAL:REMOTE`, `LOCAL:REMOTE:ro` \
         or `LOCAL:REMOTE:rw`"
    );
    let error = SyncEntry::parse("~/a:/b", None).unwrap_err();
    assert_eq!(error.why, "the home of this user is not known");
}
