//! Output: whole, in order, bounded, readable.

use serde_json::json;

use crate::site::Kind;

/// The limit of what a result shows, in characters, and what the sentence about it may add.
const LIMIT: usize = 50_000;
const ROOM: usize = 500;

pub(crate) fn stdout_and_stderr_are_in_the_order_they_were_written(kind: Kind) {
    let site = kind.site();
    let command = "for i in 1 2 3 4 5 6 7 8 9; do echo o$i; echo e$i >&2; /bin/echo p$i; done";
    let join = |form: &dyn Fn(u32) -> String| (1..=9).map(form).collect::<Vec<_>>().concat();
    let expected = join(&|i| format!("o{i}\ne{i}\np{i}\n"));
    for _ in 0..3 {
        site.terminal(command).printed(&expected);
    }
    let ran = site.exoshell(["run", "--task", "default", command]);
    assert_eq!(ran.text(), join(&|i| format!("o{i}\np{i}\n")));
    assert_eq!(ran.talk(), join(&|i| format!("e{i}\n")));
}

pub(crate) fn bad_bytes_are_replaced_and_split_characters_are_whole(kind: Kind) {
    let site = kind.site();
    site.terminal("printf 'a\\xffb\\xb0\\xa1'")
        .printed("a\u{fffd}b\u{fffd}\u{fffd}");
    site.terminal("printf '\\xe6'; sleep 0.1; printf '\\xbc'; sleep 0.1; printf '\\xa2 \\xf0\\x9f'; sleep 0.1; printf '\\xa6\\x80'")
        .printed("漢 🦀");
    site.terminal("printf '\\xf0\\x9f'").printed("\u{fffd}");
}

pub(crate) fn only_what_a_person_would_see_is_shown(kind: Kind) {
    let site = kind.site();
    for (command, seen) in [
        ("printf 'Working\\rDone\\033[K\\n'", "Done\n"),
        ("printf 'ab\\bc\\n'", "ac\n"),
        ("printf 'dos\\r\\nline\\r\\n'", "dos\nline\n"),
        (
            "printf '\\033[31mred\\033[0m \\033]8;;http://x\\033\\\\link\\033]8;;\\033\\\\\\n'",
            "red link\n",
        ),
        ("printf '\\033P1$r0m\\033\\\\x\\n'", "x\n"),
        ("for i in 1 2 3; do printf '\\r%d%%' $i; done; echo", "3%\n"),
        (
            "printf '\\n\\nx  \\n\\nno newline'",
            "\n\nx  \n\nno newline",
        ),
    ] {
        site.terminal(command).printed(seen);
    }
}

pub(crate) fn no_byte_is_lost_before_the_exit(kind: Kind) {
    let site = kind.site();
    let command = "head -c 5000000 /dev/zero | tr '\\0' x; printf END";
    for _ in 0..2 {
        let ran = site.exoshell(["run", "--task", "default", command]);
        assert_eq!(
            (ran.out.len(), ran.code()),
            (5_000_003, 0),
            "{}",
            ran.talk()
        );
        assert!(ran.out.ends_with(b"xEND"));
    }
    let answer = site.terminal(command);
    assert!(answer.output().ends_with("xEND"), "the tail is shown");
    assert_eq!(answer.0["output_chars"], 5_000_003);
}

pub(crate) fn what_is_too_long_is_cut_in_the_middle_and_kept_whole_in_the_place(kind: Kind) {
    let site = kind.site();
    site.terminal("umask 000; cd /usr").printed("");
    let answer = site.terminal("echo BANNER; seq 1000000 1020000; echo LAST ERROR");
    let output = answer.output();
    assert!(output.starts_with("BANNER\n") && output.ends_with("LAST ERROR\n"));
    assert!(output.chars().count() <= LIMIT + ROOM);
    assert_eq!(answer.0["truncated"], true);
    assert_eq!(answer.0["output_lines"], 20_003);
    assert_eq!(answer.0["output_chars"], 7 + 20_001 * 8 + 11);
    // Head 40 %, tail 60 %, and a line between that says how much is missing.
    let gap = output
        .lines()
        .position(|line| line.parse::<u32>().is_err() && line != "BANNER")
        .unwrap();
    let head: usize = output.lines().take(gap).map(|line| line.len() + 1).sum();
    assert!((18_000..=21_000).contains(&head), "{head}");
    // The file is in the place, private, and no part of the workspace.
    let file = answer.0["output_file"].as_str().unwrap();
    assert!(!file.starts_with("/usr"), "{file}");
    let look = json!({
        "command": "wc -l <\"$F\"; stat -c %a \"$F\"; stat -c %a \"$(dirname \"$F\")\"; tail -1 \"$F\"",
        "env": {"F": file},
    });
    site.call(&look).printed("20003\n600\n700\nLAST ERROR\n");
}
