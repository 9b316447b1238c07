//! How commands are run.

use super::*;

#[tokio::test]
async fn output_and_exit_code_are_the_commands_own() {
    for (name, place) in Fixture::all() {
        let end = place.run("echo out; echo err >&2; exit 7").await;
        assert_eq!(
            (end.out.as_str(), end.err.as_str()),
            ("out\n", "err\n"),
            "{name}"
        );
        assert_eq!(end.done.outcome, Outcome::Exited(7), "{name}");
        assert_eq!(end.done.cause, Cause::Ended, "{name}");
        assert!(end.pid > 0, "{name}");
        for (command, code) in [
            ("true", 0),
            ("false", 1),
            ("nonesuch", 127),
            ("(exit 200)", 200),
        ] {
            let end = place.run(command).await;
            assert_eq!(end.done.outcome, Outcome::Exited(code), "{name}: {command}");
        }
    }
}

#[tokio::test]
async fn a_shell_that_is_killed_gives_its_signal() {
    for (name, place) in Fixture::all() {
        let end = place.run("echo before; kill -9 $$").await;
        assert_eq!(end.out, "before\n", "{name}");
        assert_eq!(end.done.outcome, Outcome::Signalled(9), "{name}");
        let end = place.run("exec sh -c 'exit 9'").await;
        assert_eq!(end.done.outcome, Outcome::Exited(9), "{name}");
    }
}

#[tokio::test]
async fn both_streams_can_be_one_in_the_order_written() {
    for (name, place) in Fixture::all() {
        let command = PlainCommand {
            merge: true,
            ..PlainCommand::new("echo 1; echo 2 >&2; echo 3; nonesuch; echo 4")
        };
        let end = place.finish(command).await;
        let lines: Vec<_> = end.out.lines().collect();
        assert_eq!(lines.len(), 5, "{name}: {lines:?}");
        assert_eq!((lines[1], lines[4]), ("2", "4"), "{name}");
        assert!(lines[3].contains("not found"), "{name}: {lines:?}");
        assert_eq!(end.err, "", "{name}");
    }
}

#[tokio::test]
async fn the_last_newline_is_there_only_if_it_was_written() {
    for (name, place) in Fixture::all() {
        assert_eq!(place.run("printf 'a\\nb'").await.out, "a\nb", "{name}");
        assert_eq!(place.run("printf 'a\\n\\n'").await.out, "a\n\n", "{name}");
        assert_eq!(place.run(":").await.out, "", "{name}");
    }
}

#[tokio::test]
async fn no_text_breaks_the_framing() {
    for (name, place) in Fixture::all() {
        for (command, code, out) in [
            ("cat <<X\na 'b\nX\necho c", 0, "a 'b\nc\n"),
            ("echo a # 'comment", 0, "a\n"),
            ("echo a #", 0, "a\n"),
            ("echo a \\", 0, "a"),
            ("\n\necho a\n\n", 0, "a\n"),
            ("printf '%s\\n' 'a\\nb\\\\c'", 0, "a\\nb\\\\c\n"),
            ("printf '%s' 'tab\t'", 0, "tab\t"),
            ("echo \"$#-$1-$0\"; set -u; echo a", 0, "0--"),
            ("printf '\\036'; echo x", 0, "\u{1e}x\n"),
            ("trap 'echo bye' EXIT; echo hi; exit 3", 3, "hi\nbye\n"),
            ("exec >/dev/null; echo no", 0, ""),
            ("set -e; false; echo no", 1, ""),
            ("set -x; echo a", 0, "a\n"),
            ("printf() { :; }; pwd() { :; }; echo a", 0, "a\n"),
            ("", 0, ""),
        ] {
            if command.starts_with("cat") && name == "poor" {
                continue;
            }
            let end = place.run(command).await;
            assert_eq!(end.done.outcome, Outcome::Exited(code), "{name}: {command}");
            assert!(end.out.starts_with(out), "{name}: {command}: {end:?}");
            assert!(
                !end.out.contains("exo") && !end.err.contains("exo"),
                "{name}: {end:?}"
            );
        }
        for command in ["echo 'a", "echo \"a", "if true", "echo $(", "echo )"] {
            let end = place.run(command).await;
            assert!(
                matches!(end.done.outcome, Outcome::Exited(1 | 2)),
                "{name}: {end:?}"
            );
            assert!(!end.err.is_empty(), "{name}: {command}");
        }
    }
}

#[tokio::test]
async fn bytes_of_any_kind_go_in_and_come_out() {
    for (name, place) in Fixture::all() {
        let text: Vec<u8> = (1..=255_u8).filter(|byte| *byte != b'\'').collect();
        let command = [b"printf '%s' '".as_slice(), &text, b"'"].concat();
        let mut stream = place.shell.run(PlainCommand::new(command)).await.unwrap();
        let mut out = Vec::new();
        while let ExecEvent::Started { .. } | ExecEvent::Output { .. } = {
            let event = stream.next().await.unwrap();
            if let ExecEvent::Output { bytes, .. } = &event {
                out.extend_from_slice(bytes);
            }
            event
        } {}
        assert_eq!(out, text, "{name}");
    }
}

#[tokio::test]
async fn a_command_longer_than_an_argument_may_be_is_run() {
    for (name, place) in Fixture::all() {
        let text = "x'\n".replace('\'', "y").repeat(100_000);
        let end = place.run(&format!("a='{text}'; echo ${{#a}}")).await;
        assert_eq!(end.out, "300000\n", "{name}: {}", end.err);
    }
}

#[tokio::test]
async fn a_mebibyte_of_output_comes_whole() {
    for (name, place) in [
        ("bash", Fixture::bash()),
        ("dash", Fixture::dash()),
        ("busybox", Fixture::busybox()),
    ] {
        let end = place
            .run("yes 0123456 | head -n 131072; echo end >&2")
            .await;
        assert_eq!(end.out, "0123456\n".repeat(131_072), "{name}");
        assert_eq!(end.err, "end\n", "{name}");
    }
}

#[tokio::test]
async fn stdin_is_empty_unless_it_is_given() {
    for (name, place) in [("bash", Fixture::bash()), ("dash", Fixture::dash())] {
        assert_eq!(place.run("cat; echo $?").await.out, "0\n", "{name}");
        let command = PlainCommand {
            stdin: true,
            ..PlainCommand::new("read -r a; echo \"<$a>\"; cat")
        };
        let mut stream = place.shell.run(command).await.unwrap();
        let stdin = stream.stdin();
        stdin.send("one\\\ntwo\n".into()).await.unwrap();
        stdin.send("three".into()).await.unwrap();
        stdin.finish().await.unwrap();
        assert_eq!(
            finish(&mut stream).await.out,
            "<one\\>\ntwo\nthree",
            "{name}"
        );
    }
    let place = Fixture::bash();
    let stream = place.shell.run(PlainCommand::new(":")).await.unwrap();
    let refused = stream.stdin().send("x".into()).await;
    assert!(matches!(refused, Err(PlaceError::Unsendable(_))));
    place.shell.idle().await;
}

#[tokio::test]
async fn stdin_that_nobody_reads_does_not_keep_the_command() {
    let place = Fixture::bash();
    let command = PlainCommand {
        stdin: true,
        ..PlainCommand::new("echo done")
    };
    let mut stream = place.shell.run(command).await.unwrap();
    let stdin = stream.stdin();
    let feeder =
        tokio::spawn(async move { while stdin.send(vec![b'x'; 65536].into()).await.is_ok() {} });
    assert_eq!(finish(&mut stream).await.out, "done\n");
    drop(stream);
    tokio::time::timeout(Duration::from_secs(20), feeder)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn what_a_place_prints_of_its_own_is_not_output() {
    let folder = tempfile::tempdir().unwrap();
    let noisy = "echo Welcome; echo Beware >&2; exec \"$@\"";
    let place = Fixture::with(folder, &["sh", "-c", noisy, "noisy"]);
    let end = place.run("echo a; echo b >&2").await;
    assert_eq!((end.out.as_str(), end.err.as_str()), ("a\n", "b\n"));
}

#[tokio::test]
async fn a_place_without_a_shell_says_what_it_said() {
    let folder = tempfile::tempdir().unwrap();
    let place = Fixture::with(
        folder,
        &["sh", "-c", "echo no such container >&2; exit 1", "x"],
    );
    let error = place
        .shell
        .run(PlainCommand::new("true"))
        .await
        .unwrap_err();
    assert_eq!(error.trouble(), Some(Trouble::DoesNotStart));
    assert_eq!(
        error.to_string(),
        "no shell answers in the place; it said `no such container`"
    );
}

#[tokio::test]
async fn what_no_shell_could_take_is_refused() {
    let place = Fixture::bash();
    let bad_name = PlainCommand {
        env: vec![("A B".into(), "x".into())],
        ..PlainCommand::new("true")
    };
    for command in [PlainCommand::new("echo \0"), bad_name] {
        let error = place.shell.run(command).await.unwrap_err();
        assert!(
            matches!(&error, PlaceError::Failed(failure) if failure.kind == FailureKind::BadRequest),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn a_command_has_no_terminal() {
    let place = Fixture::bash();
    let end = place.run("cat </dev/tty; tty; echo end").await;
    assert!(end.err.contains("/dev/tty"), "{end:?}");
    assert_eq!(end.out, "not a tty\nend\n");
}
