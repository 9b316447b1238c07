use std::process::Command;

use super::*;

fn awkward() -> Vec<String> {
    [
        "",
        " ",
        "a b",
        "it's",
        "'",
        "''",
        "\"",
        "$HOME `id` $(id)",
        "back\\slash \\n \\0101 \\\\",
        "!! !x",
        "two\nlines\n",
        "\n",
        "carriage\rreturn\ttab",
        "*?[a]{b,c}~#;&|<>()=%",
        "=ls",
        "~",
        "-n",
        "--",
        "ümläut 漢字 \u{1f980}",
        "\u{1}\u{7f}",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// Runs a program that prints its arguments, each with a NUL behind it.
fn printed_by(shell: &[&str], words: &[String]) -> Vec<String> {
    let mut command = vec!["printf".to_owned(), "%s\\0".to_owned()];
    command.extend_from_slice(words);
    let output = Command::new(shell[0])
        .args(&shell[1..])
        .arg("-c")
        .arg(command_line(&command))
        .output()
        .unwrap_or_else(|error| panic!("{shell:?}: {error}"));
    let text = String::from_utf8(output.stdout).unwrap();
    let mut found: Vec<String> = text.split('\0').map(str::to_owned).collect();
    assert_eq!(found.pop().as_deref(), Some(""), "{shell:?}: {text}");
    found
}

#[test]
fn awkward_words_survive_every_login_shell() {
    for shell in [
        vec!["sh"],
        vec!["dash"],
        vec!["bash"],
        vec!["zsh"],
        vec!["fish"],
        vec!["tcsh"],
        vec!["busybox", "sh"],
    ] {
        assert_eq!(printed_by(&shell, &awkward()), awkward(), "{shell:?}");
        for word in awkward() {
            let words = vec![word];
            assert_eq!(printed_by(&shell, &words), words, "{shell:?}");
        }
    }
}

#[test]
fn plain_words_stay_readable() {
    let words = ["ls", "-l", "/tmp/x y"].map(str::to_owned);
    assert_eq!(command_line(&words), "ls -l '/tmp/x y'");
}

#[test]
fn a_quoted_word_is_one_word_of_a_posix_shell() {
    for word in awkward() {
        let output = Command::new("sh")
            .arg("-c")
            .arg(format!("printf %s {}", quote(&word)))
            .output()
            .unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), word);
    }
}
