//! Containers that are being made when something else happens.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use exoshell_testkit::Engine;
use rustix::process::Signal;
use serde_json::json;

use crate::site::{Kind, Sleep};
use crate::support::{Answer, PATIENCE, wait_until};

/// Tells of the moment in which a task's container is made.
struct Births(Child);

impl Births {
    fn of(engine: &Engine, task: &str) -> Self {
        // What happened before the listener was ready is told, too.
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let mut listener = engine.command();
        listener
            .args(["events", "--since", &since.as_secs().to_string()])
            .args(["--filter", "event=create", "--format", "{{.ID}}"])
            .args(["--filter", &format!("label=exoshell.task={task}")])
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        Self(listener.spawn().unwrap())
    }

    /// Waits for the first one.
    fn wait(&mut self) {
        let mut line = String::new();
        let stdout = self.0.stdout.take().unwrap();
        BufReader::new(stdout).read_line(&mut line).unwrap();
        assert_ne!(line, "", "no container was made");
    }
}

impl Drop for Births {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_host_that_ends_while_it_makes_a_container_leaves_one_that_is_listed_and_removed() {
    let site = Kind::Docker.site();
    for signal in [Signal::KILL, Signal::INT] {
        let task = format!("born-{}", Sleep::new().0);
        let mut births = Births::of(site.engine(), &task);
        let call = site.start_call(&json!({"command": "echo never", "task_id": task}));
        births.wait();
        call.signal(signal);
        drop(call);
        wait_until(PATIENCE, "the container is there", || {
            site.containers().len() == 1
        });
        let list = site.json(["places", "ls", "--json"]);
        assert_eq!(list["places"][0]["task"], task.as_str(), "{list}");
        let removed = site.exoshell(["places", "rm", &task]);
        assert_eq!(removed.code(), 0, "{}", removed.talk());
        assert_eq!(site.containers(), [""; 0]);
        assert_eq!(site.json(["places", "ls", "--json"])["places"], json!([]));
    }
}

#[test]
fn a_container_that_cannot_be_made_is_not_listed() {
    let site = Kind::Docker.site_with(&[("docker.image", "\"127.0.0.1:1/none/such\"")]);
    let answer = site.terminal("echo never");
    assert_eq!(answer.kind(), "unreachable", "{}", answer.0);
    assert_eq!(site.json(["places", "ls", "--json"])["places"], json!([]));
    // One that was there before stays known, whatever becomes of it.
    let mut call = site.command(["run", "--image", exoshell_testkit::image::DEBIAN, "true"]);
    assert!(call.output().unwrap().status.success());
    site.terminal("echo never");
    let list = site.json(["places", "ls", "--json"]);
    assert_eq!(list["places"].as_array().unwrap().len(), 1, "{list}");
}

#[test]
fn a_call_and_a_removal_at_once_harm_neither_of_them() {
    let site = Kind::Docker.site();
    for moment in ["at once", "while it is made", "while it runs"] {
        let task = format!("race-{}", Sleep::new().0);
        let mut births = (moment == "while it is made").then(|| Births::of(site.engine(), &task));
        let sleep = Sleep::new();
        let command = if moment == "while it runs" {
            sleep.fill("sleep N")
        } else {
            "echo ran".to_owned()
        };
        let call = site.start_call(&json!({"command": command, "task_id": task}));
        if let Some(births) = &mut births {
            births.wait();
        } else if moment == "while it runs" {
            sleep.runs(1);
        }
        let removal = site.start(["places", "rm", &task]);
        let removal = removal.finish_within(PATIENCE);
        let call = call.finish_within(PATIENCE);
        for talk in [removal.talk(), call.talk()] {
            assert!(!talk.contains("panicked"), "{moment}: {talk}");
        }
        let answer = Answer::parse(&call.out);
        let fine = answer.code() == 0 && answer.output() == "ran\n";
        assert!(
            fine || answer.kind() == "place_lost",
            "{moment}: {}",
            answer.0
        );
        assert!(
            removal.code() == 0 || removal.talk().contains("no place of task"),
            "{moment}: {}",
            removal.talk()
        );
        // Whatever there is now is listed, so that it can be removed.
        let list = site.json(["places", "ls", "--json"]);
        let listed = list["places"].as_array().unwrap().len();
        assert_eq!(listed, site.containers().len(), "{moment}: {list}");
        site.exoshell(["places", "rm", &task]);
        assert_eq!(site.containers(), [""; 0], "{moment}");
    }
}
