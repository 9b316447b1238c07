use super::*;

#[test]
fn extra_words_may_not_change_what_a_container_is_known_by() {
    let refused: [&[&str]; 8] = [
        &["--label", "exoshell=0"],
        &["--label=exoshell=0"],
        &["-l", "exoshell.task-id=x"],
        &["-l=exoshell.name=x"],
        &["--label", "exoshell"],
        &["--cpus", "1", "--name", "mine"],
        &["--name=mine"],
        &["--name"],
    ];
    let fine: [&[&str]; 5] = [
        &[],
        &["--label", "mine=1"],
        &["--label", "exoshells=1"],
        &["--env", "exoshell=0"],
        &["--hostname", "name"],
    ];
    let find = |words: &[&str]| {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        identity_in(&words).map(str::to_owned)
    };
    for words in refused {
        assert!(find(words).is_some(), "{words:?}");
    }
    for words in fine {
        assert_eq!(find(words), None, "{words:?}");
    }
}

#[test]
fn the_user_in_extra_words_is_seen() {
    let cases: [(&[&str], Option<&str>); 7] = [
        (&[], None),
        (&["--user", "nobody"], Some("nobody")),
        (&["--user=1000:1000"], Some("1000:1000")),
        (&["-u", "0", "--cpus", "1"], Some("0")),
        (&["-u7"], Some("7")),
        (&["--user", "a", "-u=b"], Some("b")),
        (&["--userns", "host", "--ulimit", "core=0"], None),
    ];
    for (words, expected) in cases {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        assert_eq!(user_in(&words), expected, "{words:?}");
    }
}
