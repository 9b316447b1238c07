use super::*;

fn parsed(words: &[&str]) -> Result<(Action, Settings), String> {
    parse(words.iter().map(OsString::from)).map_err(|error| error.to_string())
}

#[test]
fn attach_takes_several_folders_in_order() {
    let (action, settings) = parsed(&[
        "attach",
        "--dir",
        "/a",
        "--dir",
        "/b",
        "--nonce",
        "n",
        "--existing",
        "--home",
        "/work",
        "--idle-ms",
        "1500",
        "--exit-after-ms",
        "20",
        "--keep-ms",
        "30",
        "--shell-ms",
        "40",
    ])
    .unwrap();
    let expected = Action::Attach {
        nonce: "n".to_owned(),
        existing: true,
    };
    assert_eq!(action, expected);
    assert_eq!(settings.dirs, [PathBuf::from("/a"), PathBuf::from("/b")]);
    assert_eq!(settings.home, Some(PathBuf::from("/work")));
    assert_eq!(settings.idle, Some(Duration::from_millis(1500)));
    assert_eq!(settings.exit_after, Duration::from_millis(20));
    assert_eq!(settings.keep, Duration::from_millis(30));
    assert_eq!(settings.shell, Duration::from_millis(40));
}

#[test]
fn an_init_never_ends_for_idleness_unless_told() {
    let (action, settings) = parsed(&["init", "--dir", "/a"]).unwrap();
    assert_eq!(action, Action::Init);
    assert_eq!((settings.idle, settings.home), (None, None));
}

#[test]
fn what_makes_no_sense_is_named() {
    for (words, complaint) in [
        (&["attach", "--dir", "/a"][..], "`attach` needs `--nonce`"),
        (&["start"], "`--dir` is missing"),
        (
            &["start", "--dir", "here"],
            "`--dir` takes an absolute folder",
        ),
        (&["init", "--dir", "/a", "--home", "x"], "`--home` takes"),
        (
            &["init", "--dir", "/a", "--idle-ms", "x"],
            "`--idle-ms` takes",
        ),
        (&["init", "--dir", "/a", "--existing"], "goes with `attach`"),
        (&["start", "--dir"], "`--dir` needs a value"),
        (&["start", "--what", "x"], "unknown option `--what`"),
        (&["leave", "--dir", "/a"], "unknown action `leave`"),
        (&[], "nothing to do"),
    ] {
        let error = parsed(words).unwrap_err();
        assert!(error.contains(complaint), "{words:?}: {error}");
    }
}
