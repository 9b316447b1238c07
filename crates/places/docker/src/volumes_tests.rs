use super::*;

#[test]
fn volumes_are_read_and_bad_ones_say_why() {
    let home = Some(Path::new("/home/me"));
    let good = [
        ("/a:/b", "/a:/b", "/b"),
        ("/a:/b/:ro", "/a:/b/:ro", "/b"),
        (
            "cache:/var/cache:rw,z",
            "cache:/var/cache:rw,z",
            "/var/cache",
        ),
        ("~/x y:/b", "/home/me/x y:/b", "/b"),
        ("/a:/workspace//.", "/a:/workspace//.", "/workspace"),
    ];
    for (entry, word, target) in good {
        let expected = Volume {
            word: word.to_owned(),
            target: target.to_owned(),
        };
        assert_eq!(read(entry, home), Ok(expected), "{entry}");
    }
    let bad = [
        ("", "no colon"),
        ("/just/a/path", "no colon"),
        (":/b", "empty"),
        ("/a:", "empty"),
        ("/a:b", "not an absolute path"),
        ("./a:/b", "neither"),
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
