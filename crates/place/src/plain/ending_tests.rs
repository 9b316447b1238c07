//! How commands end that do not end by themselves.

use super::*;

fn limited(command: &str, millis: u64) -> PlainCommand {
    PlainCommand {
        timeout: Some(Duration::from_millis(millis)),
        grace: Duration::from_millis(500),
        ..PlainCommand::new(command.to_owned())
    }
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended_and_its_output_kept() {
    for (name, place) in Fixture::all() {
        let began = Instant::now();
        let end = place.finish(limited(PARTIAL, 300)).await;
        assert_eq!(end.out, "partial\n", "{name}");
        assert_eq!(end.done.cause, Cause::Timeout, "{name}");
        assert_eq!(end.done.unkillable, [], "{name}");
        assert!(began.elapsed() < Duration::from_secs(20), "{name}");
        assert!(!lives(end.pid), "{name}");
    }
}

#[tokio::test]
async fn a_cancelled_command_is_ended_and_its_output_kept() {
    for (name, place) in Fixture::all() {
        let mut stream = place.shell.run(limited(PARTIAL, 60_000)).await.unwrap();
        wait_for(&mut stream, "partial").await;
        stream.cancel();
        stream.cancel();
        let end = finish(&mut stream).await;
        assert_eq!(end.done.cause, Cause::Interrupted, "{name}");
        assert_eq!(end.done.unkillable, [], "{name}");
    }
}

#[tokio::test]
async fn the_whole_tree_is_ended_even_what_ignores_the_first_signal_or_left_its_session() {
    for (name, place) in [("bash", Fixture::bash()), ("dash", Fixture::dash())] {
        let file = |part: &str| place.path().join(part);
        let command = "cd; sh -c 'trap \"\" TERM; echo $$ >stubborn; while :; do sleep 1000; done' & \
                       setsid sh -c 'echo $$ >away; sleep 1000' & \
                       (echo $(sh -c 'echo $PPID') >child; sleep 1000; true) & \
                       while ! [ -s stubborn ] || ! [ -s away ] || ! [ -s child ]; do sleep 0.05; done; \
                       echo ready; wait";
        let mut stream = place.shell.run(limited(command, 60_000)).await.unwrap();
        wait_for(&mut stream, "ready").await;
        let pids = ["stubborn", "away", "child"].map(|part| noted(file(part)));
        assert!(pids.iter().all(|pid| lives(*pid)), "{name}");
        stream.cancel();
        let end = finish(&mut stream).await;
        assert_eq!(end.done.cause, Cause::Interrupted, "{name}");
        assert_eq!(end.done.unkillable, [], "{name}");
        assert!(!pids.iter().any(|pid| lives(*pid)), "{name}");
    }
}

#[tokio::test]
async fn a_shell_that_ignores_the_first_signal_is_killed() {
    for (name, place) in Fixture::all() {
        let command = "trap '' TERM; echo partial; while :; do sleep 1; done";
        let end = place.finish(limited(command, 300)).await;
        assert_eq!(end.out, "partial\n", "{name}");
        assert_eq!(end.done.cause, Cause::Timeout, "{name}");
        assert_eq!(end.done.outcome, Outcome::Signalled(9), "{name}");
        assert_eq!(end.done.unkillable, [], "{name}");
    }
}

#[tokio::test]
async fn a_command_without_setsid_is_ended_with_its_children() {
    let place = Fixture::poor();
    let command = "cd; (echo a; sh -c 'echo $$ >child; while :; do sleep 1; done'); true";
    let end = place.finish(limited(command, 500)).await;
    assert_eq!(end.done.cause, Cause::Timeout);
    assert!(!lives(end.pid) && !lives(noted(place.path().join("child"))));
}

#[tokio::test]
async fn dropping_the_stream_ends_the_command() {
    for (name, place) in [("bash", Fixture::bash()), ("dash", Fixture::dash())] {
        let command = "cd; echo $$ >pid; echo ready; sleep 1000";
        let mut stream = place.shell.run(limited(command, 60_000)).await.unwrap();
        wait_for(&mut stream, "ready").await;
        let pid = noted(place.path().join("pid"));
        assert!(lives(pid), "{name}");
        drop(stream);
        place.shell.idle().await;
        assert!(!lives(pid), "{name}");
    }
}

#[tokio::test]
async fn a_start_that_nobody_waits_for_runs_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let slow = "sleep 0.3; exec \"$@\"";
    let place = Fixture::with(folder, &["sh", "-c", slow, "slow"]);
    let file = place.path().join("made");
    let command = PlainCommand::new(format!("echo >'{}'", file.display()));
    let run = place.shell.run(command);
    let given_up = tokio::time::timeout(Duration::from_millis(100), run).await;
    assert!(given_up.is_err());
    place.shell.idle().await;
    // Whatever was launched has lost its stdin; it cannot have got the command.
    tokio::time::sleep(Duration::from_millis(600)).await;
    assert!(!file.exists());
}

#[tokio::test]
async fn the_call_returns_when_the_shell_ends_though_a_grandchild_holds_the_pipe() {
    for (name, place) in Fixture::all() {
        let began = Instant::now();
        let end = place.run("sleep 30 & echo $!").await;
        assert!(began.elapsed() < Duration::from_secs(10), "{name}");
        assert_eq!(end.done.outcome, Outcome::Exited(0), "{name}");
        let end = place.run(&format!("kill {}", end.out.trim())).await;
        assert_eq!(
            end.done.outcome,
            Outcome::Exited(0),
            "{name}: it was left running"
        );
    }
}

#[tokio::test]
async fn output_that_goes_on_in_the_background_does_not_spoil_the_state() {
    let place = Fixture::bash();
    let end = place
        .say("export A=1; cd /usr; yes & sleep 0.2; echo $! >~/pid")
        .await;
    assert_eq!(end.done.outcome, Outcome::Exited(0));
    let end = place.say("kill $(cat ~/pid); echo \"$A $PWD\"").await;
    let kept = end.out == "1 /usr\n";
    let refused = end.out.starts_with(' ');
    assert!(kept || refused, "never half a state: {:?}", end.out);
}

#[tokio::test]
async fn nobody_knows_the_code_of_a_command_that_kills_its_launcher() {
    let place = Fixture::bash();
    let end = place.run("kill -9 $PPID; echo a").await;
    assert_eq!(end.out, "a\n");
    assert_eq!(end.done.outcome, Outcome::Unknown);
    assert_eq!(end.done.cause, Cause::Ended);
    assert_eq!(end.done.unkillable, []);
}

#[tokio::test]
async fn a_command_whose_pipe_is_lost_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let home = format!("HOME={}", folder.path().display());
    let relayed = "cd; exec 3<&0; mkfifo f$$; \"$@\" <&3 >f$$ & echo $$ >relay$$; exec cat f$$";
    let place = Fixture::with(folder, &["env", &home, "sh", "-c", relayed, "relayed"]);
    let command = "cd; echo $$ >pid; kill -9 $(cat relay*); sleep 1000";
    let end = place.finish(limited(command, 60_000)).await;
    assert_eq!(end.done.outcome, Outcome::Unknown);
    assert_eq!(end.done.cause, Cause::Ended);
    assert!(!lives(noted(place.path().join("pid"))));
}

#[tokio::test]
async fn a_slow_reader_loses_nothing_and_the_limit_still_holds() {
    let place = Fixture::bash();
    let command = limited("yes 0123456", 300);
    let mut stream = place.shell.run(command).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1500)).await;
    let end = finish(&mut stream).await;
    assert_eq!(end.done.cause, Cause::Timeout);
    assert!(end.out.len() > 100_000);
    let whole = end.out.len() - end.out.len() % 8;
    assert!(end.out[..whole] == "0123456\n".repeat(whole / 8));
}

#[tokio::test]
async fn what_could_not_be_ended_is_named() {
    let folder = tempfile::tempdir().unwrap();
    // The second program cannot be started: the place is no longer reachable.
    let once = "mkdir \"$0/once\" 2>/dev/null || exit 1; exec \"$@\"";
    let root = folder.path().display().to_string();
    let place = Fixture::with(folder, &["sh", "-c", once, &root]);
    let mut stream = place.shell.run(limited(PARTIAL, 300)).await.unwrap();
    let end = finish(&mut stream).await;
    assert!(lives(end.pid));
    let pids: Vec<_> = end.done.unkillable.iter().map(|left| left.pid).collect();
    assert_eq!((end.done.cause, pids), (Cause::Timeout, vec![end.pid]));
    let group = format!("-{}", end.pid);
    let mut kill = std::process::Command::new("kill");
    let killed = kill.args(["-KILL", "--", &group]).status().unwrap();
    assert!(killed.success());
}
