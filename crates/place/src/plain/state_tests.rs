use super::*;

fn variables(pairs: &[(&str, &[u8])]) -> Variables {
    let owned = pairs
        .iter()
        .map(|(name, value)| (name.as_bytes().to_vec(), value.to_vec()));
    owned.collect()
}

#[test]
fn what_bash_prints_is_read() {
    let text = b"declare -x A=\"a \\\"b\\\" \\$c \\`d\\` \\\\\"\ndeclare -x B\ndeclare -rx C=\"1\n2\"\ndeclare -x D=$'\\E\\t\\003\\'\\\\'\ndeclare -x PWD=\"/x\"\n";
    let expected = variables(&[
        ("A", b"a \"b\" $c `d` \\"),
        ("C", b"1\n2"),
        ("D", b"\x1b\t\x03'\\"),
    ]);
    assert_eq!(exports(text), Some(expected));
}

#[test]
fn what_a_plain_sh_prints_is_read() {
    let text = b"export A='it'\"'\"'s'\nexport B\nexport C=''\nexport D=\"x\"\nexport E='1\n2'\n";
    let expected = variables(&[("A", b"it's"), ("C", b""), ("D", b"x"), ("E", b"1\n2")]);
    assert_eq!(exports(text), Some(expected));
}

#[test]
fn a_list_that_is_cut_or_mixed_with_something_else_is_not_used() {
    for text in [
        "export A='a",
        "export A='a'",
        "noise\nexport A='a'\n",
        "export A='a'\nnoise\n",
        "declare -ax A=([0]=\"x\")\n",
    ] {
        assert_eq!(exports(text.as_bytes()), None, "{text}");
    }
    assert!(State::parse(b"/w\n\0export A='a'\n\0export A='a'\n").is_some());
    assert!(State::parse(b"/w\n\0export A='a'\n\0export A='y\na'\n").is_none());
    assert!(State::parse(b"\n\0\0").is_none(), "no directory");
}

#[test]
fn only_what_changed_is_carried_over() {
    let before = State {
        cwd: b"/a".to_vec(),
        variables: variables(&[("GONE", b"1"), ("SAME", b"2"), ("NEW", b"3")]),
    };
    let after = State {
        cwd: b"/b".to_vec(),
        variables: variables(&[("SAME", b"2"), ("NEW", b"4"), ("MORE", b"5")]),
    };
    let mut session = Start::default();
    session
        .variables
        .insert(b"SAME".to_vec(), Some(b"of another call".to_vec()));
    after.carry_over(&before, &mut session);
    let expected = [
        ("GONE", None),
        ("MORE", Some("5")),
        ("NEW", Some("4")),
        ("SAME", Some("of another call")),
    ];
    let expected = expected.map(|(name, value)| {
        let value = value.map(|value| value.as_bytes().to_vec());
        (name.as_bytes().to_vec(), value)
    });
    assert_eq!(session.cwd.as_deref(), Some(b"/b".as_slice()));
    assert_eq!(session.variables, expected.into());
}
