use super::*;

#[test]
fn an_attempt_learns_from_what_the_engine_says() {
    let mut attempt = Attempt {
        main: Main::Mounted("/h/guest".into()),
        refused: BTreeSet::new(),
    };
    let disk = "--storage-opt is supported only for overlay over xfs with 'pquota' mount option";
    assert!(attempt.learn(disk));
    assert!(!attempt.learn(disk), "the same refusal twice is final");
    assert_eq!(attempt.refused, [Limit::Disk].into());
    let noexec = "exec: \"/.exoshell/guest\": permission denied: unknown";
    assert!(attempt.learn(noexec));
    assert_eq!(attempt.main, Main::Copied);
    assert!(attempt.learn(noexec));
    assert_eq!(attempt.main, Main::Keeper);
    assert!(!attempt.learn(noexec));
}

#[test]
fn an_engine_elsewhere_gets_a_copy() {
    let mut attempt = Attempt {
        main: Main::Mounted("/h/guest".into()),
        refused: BTreeSet::new(),
    };
    assert!(attempt.learn("bind source path does not exist: /h/guest"));
    assert_eq!(attempt.main, Main::Copied);
    assert!(!attempt.learn("No such image: x"));
}

#[test]
fn names_of_containers_are_valid_whatever_the_task_is_called() {
    for task in ["", "a b/c", "ÜÖÄ", &"x".repeat(300), "--rm"] {
        let name = container_name(task).unwrap();
        assert!(name.starts_with("exoshell-") && name.len() < 64, "{name}");
        let valid = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        assert!(name.chars().all(valid), "{name}");
    }
    assert_ne!(container_name("a").unwrap(), container_name("a").unwrap());
}
