//! How long containers live.

use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::site::{Kind, Site, Sleep};
use crate::support::{Answer, PATIENCE, wait_until};

fn is_running(site: &Site, container: &str) -> bool {
    site.engine().inspect(container)["State"]["Running"] == true
}

pub(super) fn a_container_outlives_hosts_that_are_killed_with_all_of_its_output(kind: Kind) {
    let site = kind.site();
    let sleep = Sleep::new();
    let counting = "i=0; while [ $i -lt 40 ]; do i=$((i+1)); echo line $i; sleep 0.1; done";
    let id = site.begin(counting, &json!({}));
    let container = site.container();
    // Two hosts at work: one follows the output, one runs a command.
    let follower = site.start(["logs", "--follow", &id]);
    let caller = site.start_call(&json!({"command": sleep.fill("sleep N")}));
    sleep.runs(1);
    site.wait_for_line(&id, "line 3");
    for host in [follower, caller] {
        host.signal(Signal::KILL);
        drop(host);
    }
    assert!(is_running(&site, &container));
    let poll = site.process("poll", &id, &json!({}));
    assert_eq!(poll.error(), "", "{}", poll.0);
    let end = site.wait_for_end(&id);
    assert_eq!(end.0["exit_code"], 0, "{}", end.0);
    let expected: Vec<String> = (1..=40).map(|line| format!("line {line}\n")).collect();
    assert_eq!(site.logs(&id), expected.concat());
    assert_eq!(site.container(), container);
}

pub(super) fn without_persistence_a_container_goes_with_its_host(kind: Kind) {
    let site = kind.site_with(&[("docker.persist", "false")]);
    let ran = site.exoshell(["run", "echo hi"]);
    assert_eq!(
        (ran.code(), ran.text().as_str()),
        (0, "hi\n"),
        "{}",
        ran.talk()
    );
    wait_until(PATIENCE, "the container is gone after a polite end", || {
        site.containers().is_empty()
    });

    let mut command = site.command(["shell", "--json"]);
    let mut shell = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = shell.stdin.take().unwrap();
    std::io::Write::write_all(&mut stdin, b"touch /tmp/ready\n").unwrap();
    wait_until(PATIENCE, "the shell has a container", || {
        let containers = site.containers();
        containers.len() == 1 && is_running(&site, &containers[0])
    });
    let container = site.container();
    wait_until(PATIENCE, "the shell has done its command", || {
        let mut look = site.engine().command();
        look.args(["exec", &container, "test", "-e", "/tmp/ready"]);
        look.output().unwrap().status.success()
    });
    kill_process(Pid::from_child(&shell), Signal::KILL).unwrap();
    shell.wait().unwrap();
    wait_until(PATIENCE, "the container is gone after a kill", || {
        site.containers().is_empty()
    });
}

#[test]
fn an_idle_container_stops_and_is_started_again_but_not_while_a_process_or_its_result_is_kept() {
    let site = Kind::Docker.site_called_with(&[], &[("TERMINAL_LIFETIME_SECONDS", "2")]);
    site.terminal("echo kept > /var/kept").printed("");
    let container = site.container();
    let stops = || {
        wait_until(PATIENCE, "the idle container stops", || {
            !is_running(&site, &container)
        });
    };
    stops();
    let list = site.json(["places", "ls", "--json"]);
    assert_eq!(list["places"][0]["state"], "stopped", "{list}");
    assert!(!is_running(&site, &container), "a look starts nothing");
    let answer = site.terminal("cat /var/kept");
    answer.printed("kept\n");
    assert_eq!(site.container(), container);

    // Nobody looks, and the process outlasts the idle time.
    let id = site.begin("sleep 4; echo done; echo done > /var/done", &json!({}));
    wait_until(PATIENCE, "the process is done", || {
        let mut look = site.engine().command();
        look.args(["exec", &container, "test", "-e", "/var/done"]);
        look.output().unwrap().status.success()
    });
    // How it ended is in the guest's memory, which is kept for whoever asks.
    let since = Instant::now();
    wait_until(PATIENCE, "three times the idle time is over", || {
        since.elapsed() > Duration::from_secs(6)
    });
    assert!(is_running(&site, &container));
    let end = site.wait_for_end(&id);
    assert_eq!(end.0["exit_code"], 0, "{}", end.0);
    assert_eq!(site.logs(&id), "done\n");
    assert_eq!(site.container(), container);
}

#[test]
fn a_host_that_is_stopped_for_a_while_keeps_its_command() {
    // Longer than three heartbeats of 5 s, after which each side takes the other for gone.
    const STOP: Duration = Duration::from_secs(18);
    let site = Kind::Docker.site();
    site.terminal("true").code();
    let counting = "i=0; while [ $i -lt 40 ]; do i=$((i+1)); echo line $i; sleep 0.5; done";
    let sleep = Sleep::new();
    let command = sleep.fill(&format!("sleep N & {counting}; kill $!"));
    let call = site.start_call(&json!({"command": command}));
    sleep.runs(1);
    call.signal(Signal::STOP);
    let since = Instant::now();
    wait_until(PATIENCE, "it was stopped for a while", || {
        since.elapsed() > STOP
    });
    call.signal(Signal::CONT);
    let answer = Answer::parse(&call.finish_within(PATIENCE).out);
    let expected: Vec<String> = (1..=40).map(|line| format!("line {line}\n")).collect();
    answer.printed(&expected.concat());
}

pub(super) fn a_container_removed_in_mid_call_is_a_lost_place_and_the_next_call_works(kind: Kind) {
    let site = kind.site();
    site.terminal("cd /usr").printed("");
    let sleep = Sleep::new();
    let call = site.start_call(&json!({"command": sleep.fill("echo before; sleep N")}));
    sleep.runs(1);
    let lost = site.container();
    site.engine().remove(&lost);
    let ran = call.finish_within(Duration::from_secs(30));
    let answer = Answer::parse(&ran.out);
    assert_eq!(
        (answer.kind(), answer.status(), answer.code()),
        ("place_lost", "error", -1),
        "{}",
        answer.0
    );
    assert_eq!(answer.output(), "before\n", "{}", answer.0);
    assert_ne!(ran.code(), 0);
    assert_ne!(answer.hint(), "", "{}", answer.0);
    let answer = site.terminal("pwd; exit 7");
    assert_eq!((answer.code(), answer.kind()), (7, ""), "{}", answer.0);
    assert!(answer.hint().contains("gone"), "{}", answer.0);
    let container = site.container();
    assert_ne!(container, lost);
    let info = site.json(["places", "info", "default", "--json"]);
    let id = info["id"].as_str().unwrap();
    assert!(container.starts_with(id), "{info} is not about {container}");
}
