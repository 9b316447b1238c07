//! What is carried from one command to the next.

use super::*;

#[tokio::test]
async fn directory_and_exported_variables_are_carried_over() {
    for (name, place) in Fixture::all() {
        let end = place
            .say("cd /bin; export A='a b' B=\"it's\"; C=3; exit 3")
            .await;
        assert_eq!(end.done.outcome, Outcome::Exited(3), "{name}");
        assert_eq!(end.done.cwd, RawBytes::from("/bin"), "{name}");
        let end = place.say("pwd; echo \"$A|$B|${C-none}\"; unset A").await;
        assert_eq!(end.out, "/bin\na b|it's|none\n", "{name}");
        let end = place.say("echo \"${A-none}$B\"").await;
        assert_eq!(end.out, "noneit's\n", "{name}");
    }
}

#[tokio::test]
async fn values_of_any_kind_survive() {
    for (name, place) in Fixture::all() {
        let value = b"a\n\n\t\x1b[m\x01\x7f \\ \"\\$x`'!\xe4\x81\xc3\xa9\n";
        let command = PlainCommand {
            env: vec![("GIVEN".into(), RawBytes(value.to_vec()))],
            ..in_session("export V=\"$GIVEN\"")
        };
        place.finish(command).await;
        let end = place.say("printf %s \"$V\"").await;
        assert_eq!(end.out, String::from_utf8_lossy(value), "{name}");
        assert_eq!(end.done.stdout_bytes, value.len() as u64, "{name}");
    }
}

#[tokio::test]
async fn the_way_back_is_carried_over() {
    let place = Fixture::bash();
    place.say("cd /usr; cd /bin").await;
    assert_eq!(place.say("cd - && cd -").await.out, "/usr\n/bin\n");
}

#[tokio::test]
async fn variables_of_the_place_can_be_removed_for_good() {
    let place = Fixture::bash();
    place.say("unset HOME").await;
    assert_eq!(place.say("echo \"${HOME-none}\"").await.out, "none\n");
}

#[tokio::test]
async fn sessions_do_not_see_each_other() {
    let place = Fixture::bash();
    place.say("cd /usr; export A=1").await;
    let other = PlainCommand {
        session: Some("other".to_owned()),
        ..PlainCommand::new("pwd; echo \"${A-none}\"")
    };
    let end = place.finish(other).await;
    assert!(end.out.ends_with("none\n") && !end.out.starts_with("/usr\n"));
    let alone = place.run("echo \"${A-none}\"; export A=2").await;
    assert_eq!(alone.out, "none\n");
    assert_eq!(place.say("echo $A").await.out, "1\n");
    assert_eq!(place.shell.sessions().len(), 2);
    assert!(place.shell.end_session("s") && !place.shell.end_session("s"));
    assert_eq!(place.say("echo \"${A-none}\"").await.out, "none\n");
}

#[tokio::test]
async fn a_command_that_breaks_its_shell_leaves_the_last_good_state() {
    for (name, place) in Fixture::all() {
        place.say("cd /bin; export A=1").await;
        for command in [
            "cd /nonesuch",
            "echo 'unclosed",
            "export A=2; cd /; exec sh -c :",
            "export A=2; kill -9 $$",
            "set -e; false",
            "set -u; echo $nonesuch",
        ] {
            place.say(command).await;
            let end = place.say("pwd; echo $A").await;
            assert_eq!(end.out, "/bin\n1\n", "{name}: {command}");
        }
        let end = place.say("exec sh -c :").await;
        assert_eq!(end.done.notes, [Note::StateNotCaptured], "{name}");
    }
}

#[tokio::test]
async fn a_trap_of_the_command_does_not_hide_what_it_changed() {
    for (name, place) in Fixture::all() {
        let end = place
            .say("trap 'echo bye' EXIT; export A=1; cd /bin; false")
            .await;
        assert_eq!(end.out, "bye\n", "{name}");
        assert_eq!(end.done.outcome, Outcome::Exited(1), "{name}");
        assert_eq!(place.say("echo $A; pwd").await.out, "1\n/bin\n", "{name}");
    }
}

#[tokio::test]
async fn without_persist_nothing_is_carried_over() {
    let place = Fixture::bash();
    place.say("cd /usr; export A=1").await;
    let command = PlainCommand {
        persist: false,
        ..in_session("cd /bin; export A=2")
    };
    let end = place.finish(command).await;
    assert_eq!(end.done.cwd, RawBytes::from("/usr"));
    assert_eq!(place.say("pwd; echo $A").await.out, "/usr\n1\n");
}

#[tokio::test]
async fn a_session_begins_with_what_it_is_given() {
    let place = Fixture::bash();
    let command = PlainCommand {
        cwd: Some("/usr".into()),
        extra_env: vec![("PAGER".into(), "cat".into())],
        env: vec![("ONCE".into(), "o'nce\n".into())],
        ..in_session("pwd; echo \"$PAGER$ONCE\"; export B=1")
    };
    assert_eq!(place.finish(command).await.out, "/usr\ncato'nce\n\n");
    let end = place.say("pwd; echo \"$PAGER${ONCE-none}$B\"").await;
    assert_eq!(end.out, "/usr\ncatnone1\n");
}

#[tokio::test]
async fn a_working_directory_holds_for_one_command() {
    for (name, place) in Fixture::all() {
        place
            .say("cd; if ! [ -d 'x y' ]; then command -v mkdir >/dev/null && mkdir 'x y'; fi; cd /")
            .await;
        if name == "poor" {
            std::fs::create_dir(place.path().join("x y")).unwrap();
        }
        for (workdir, ends) in [
            ("~/x y", "/x y\n"),
            ("~", "\n"),
            ("bin", "/bin\n"),
            ("/", "/\n"),
        ] {
            let command = PlainCommand {
                workdir: Some(workdir.into()),
                ..in_session("pwd")
            };
            let end = place.finish(command).await;
            assert!(end.out.ends_with(ends), "{name}: {workdir}: {end:?}");
            assert_eq!(end.done.cwd, RawBytes::from("/"), "{name}: {workdir}");
        }
        assert_eq!(place.say("pwd").await.out, "/\n", "{name}");
    }
}

#[tokio::test]
async fn a_working_directory_that_cannot_be_entered_is_an_error_and_nothing_runs() {
    for (name, place) in Fixture::all() {
        place.say("cd; echo >file").await;
        for (workdir, why) in [
            ("/none's uch", "there is no such directory"),
            ("~/file", "it is not a directory"),
        ] {
            let command = PlainCommand {
                workdir: Some(workdir.into()),
                ..in_session("echo >made")
            };
            let error = place.shell.run(command).await.unwrap_err();
            let expected = format!("cannot enter the working directory `{workdir}`: {why}");
            assert_eq!(error.to_string(), expected, "{name}");
            let workdir = FailureKind::Workdir;
            assert!(matches!(error, PlaceError::Failed(failure) if failure.kind == workdir));
        }
        let end = place.say("[ -e made ]").await;
        assert_eq!(end.done.outcome, Outcome::Exited(1), "{name}");
    }
}

#[tokio::test]
async fn a_session_whose_directory_is_gone_goes_on_at_home() {
    for (name, place) in [
        ("bash", Fixture::bash()),
        ("dash", Fixture::dash()),
        ("busybox", Fixture::busybox()),
    ] {
        let end = place.say("cd; mkdir sub; cd sub; rmdir ../sub").await;
        let gone = end.done.cwd;
        let end = place.say("echo ran").await;
        assert_eq!(end.out, "ran\n", "{name}");
        let [Note::DirectoryGone { gone: said, used }] = end.done.notes.as_slice() else {
            panic!("{name}: {:?}", end.done.notes);
        };
        assert_eq!((said, used), (&gone, &end.done.cwd), "{name}");
        assert_eq!(place.say("true").await.done.notes, [], "{name}: said once");
    }
}

#[tokio::test]
async fn the_first_result_of_a_session_says_what_is_missing() {
    let no_guest = Note::NoGuest {
        why: "it is a double".to_owned(),
    };
    let no_bash = Note::NoBash { shell: "sh".into() };
    let bash = Fixture::bash();
    assert_eq!(
        bash.say("true").await.done.notes,
        std::slice::from_ref(&no_guest)
    );
    assert_eq!(bash.say("true").await.done.notes, []);
    let dash = Fixture::dash();
    assert_eq!(dash.say("true").await.done.notes, [no_guest, no_bash]);
    assert_eq!(dash.say("true").await.done.notes, []);
}

#[tokio::test]
async fn what_commands_change_at_the_same_time_all_survives() {
    let place = Fixture::bash();
    place.say("true").await;
    let commands = (0..6).map(|index| {
        let shell = place.shell.clone();
        tokio::spawn(async move {
            let command = in_session(&format!("export V{index}={index}; sleep 0.2"));
            finish(&mut shell.run(command).await.unwrap()).await
        })
    });
    for command in commands.collect::<Vec<_>>() {
        command.await.unwrap();
    }
    assert_eq!(place.say("echo $V0$V1$V2$V3$V4$V5").await.out, "012345\n");
}
