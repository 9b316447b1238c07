use super::*;

#[test]
fn volumes_are_read_and_bad_ones_say_why() {
    let home = Some(Path::new("/home/me"));
    let good = [
        ("/a:/b", "/a:/b"),
        ("/a:/b/:ro", "/a:/b:ro"),
        ("cache:/var/cache:rw,z", "cache:/var/cache:rw,z"),
        ("~/x y:/b", "/home/me/x y:/b"),
        ("/a:/workspace//.", "/a:/workspace"),
    ];
    for (entry, word) in good {
        let volume = read(entry, home);
        assert_eq!(volume.unwrap().as_volume(), word, "{entry}");
    }
    let bad = [
        ("", "no colon"),
        ("/just/a/path", "no colon"),
        (":/b", "empty"),
        ("/a:", "empty"),
        ("/a:b", "not an absolute path"),
        ("./a:/b", "relative"),
        ("../a:/b", "relative"),
        (".:/b", "relative"),
        ("a/b:/b", "relative"),
        ("~other/a:/b", "relative"),
        ("-v:/b", "neither"),
        ("a b:/c", "neither"),
        ("/a:/b:", "options"),
        ("/a:/b:r o", "options"),
        ("/a:/b:maybe", "options"),
        ("/a:/b:ro,maybe", "options"),
        ("/a:/b:ro:x", "too many"),
        ("/a\n:/b", "control"),
    ];
    for (entry, why) in bad {
        let note = read(entry, home).unwrap_err();
        assert!(
            note.contains(why) && note.contains("skipped"),
            "{entry}: {note}"
        );
    }
}

#[test]
fn a_path_is_a_mount_that_an_engine_refuses_when_it_is_missing() {
    let cases = [
        ("/a:/b", Some("type=bind,source=/a,target=/b")),
        ("/a,c:/b:rw", Some("type=bind,\"source=/a,c\",target=/b")),
        (
            "/a:/b:ro,rshared",
            Some("type=bind,source=/a,target=/b,readonly,bind-propagation=rshared"),
        ),
        ("/a:/b:Z", None),
        ("cache:/b", None),
    ];
    for (entry, expected) in cases {
        let volume = read(entry, None).unwrap();
        assert_eq!(volume.as_mount().as_deref(), expected, "{entry}");
    }
}

#[test]
fn mounts_in_extra_words_are_seen() {
    let words = [
        "-v",
        "/a:/one",
        "--volume=/b:/two:ro",
        "--mount",
        "type=bind,src=/c,dst=/three",
        "--tmpfs",
        "/four:size=1m",
        "--mount=type=volume,target=/five/",
        "-e",
        "X=/six:/seven",
    ];
    let words: Vec<String> = words.into_iter().map(str::to_owned).collect();
    assert_eq!(
        targets_of(&words),
        ["/one", "/two", "/three", "/four", "/five"]
    );
}

#[test]
fn a_mount_survives_commas_and_quotes_in_its_path() {
    assert_eq!(
        bind("/a", "/b", true),
        "type=bind,source=/a,target=/b,readonly"
    );
    assert_eq!(
        bind("/a,\"b\"", "/c", false),
        "type=bind,\"source=/a,\"\"b\"\"\",target=/c"
    );
}
