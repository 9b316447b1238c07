//! The sweep of what nobody will come back for.

use std::time::{Duration, Instant};

use exoshell_testkit::{Engine, image};
use rustix::process::Signal;
use serde_json::json;

use super::start_call_as;
use crate::site::{Kind, Sleep};
use crate::support::{PATIENCE, unique_sleep, wait_until};

/// The idle time of the world; twice that is how old an orphan is.
const LIFETIME: u64 = 5;

/// A container that the product did not make, removed at the end.
struct Made {
    engine: Engine,
    id: String,
}

impl Made {
    #[track_caller]
    fn new(engine: &Engine, verb: &[&str], labels: &[String], command: &[&str]) -> Self {
        // Named as the product's own are: by a label that goes with the name.
        let name = format!("exoshell-test-{}", unique_sleep());
        let own = format!("exoshell.name={name}");
        let mut words = verb.to_vec();
        words.extend(["--name", &name, "--label", &own]);
        for label in labels {
            words.extend(["--label", label]);
        }
        words.push(image::BUSYBOX);
        words.extend(command);
        Self {
            id: engine.run(&words),
            engine: engine.clone(),
        }
    }

    fn exists(&self) -> bool {
        let mut look = self.engine.command();
        look.args(["container", "inspect", &self.id]);
        look.output().unwrap().status.success()
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        self.engine.remove(&self.id);
    }
}

pub(super) fn only_old_ended_containers_of_this_home_are_swept(kind: Kind) {
    let lifetime = LIFETIME.to_string();
    let site = kind.site_with(&[
        ("places.lifetime_seconds", lifetime.as_str()),
        ("docker.reaper", "false"),
    ]);
    let engine = site.engine();
    let sleep = Sleep::new();
    site.begin(&sleep.fill("sleep N"), &json!({}));
    let own = site.container();
    let profile = engine.inspect(&own)["Config"]["Labels"]["exoshell.profile"].clone();
    let profile = format!("exoshell.profile={}", profile.as_str().unwrap());
    let ours = ["exoshell=1".to_owned(), profile.clone()];
    let other = ["exoshell=1".to_owned(), "exoshell.profile=other".to_owned()];
    let foreign = [profile, "somebody=else".to_owned()];

    let run = ["run", "--detach"];
    let old = Made::new(engine, &run, &ours, &["true"]);
    let kept = [
        ("running", Made::new(engine, &run, &ours, &["sleep", "600"])),
        ("other profile", Made::new(engine, &run, &other, &["true"])),
        ("foreign", Made::new(engine, &run, &foreign, &["true"])),
        (
            "never started",
            Made::new(engine, &["create"], &ours, &["true"]),
        ),
    ];
    let since = Instant::now();
    let patience = Duration::from_secs(2 * LIFETIME + 1);
    wait_until(PATIENCE, "the old ones are old", || {
        since.elapsed() > patience
    });

    // Switched off, nothing is swept, however long a call takes.
    site.terminal("sleep 1").printed("");
    assert!(old.exists(), "the sweep is switched off");

    let young = Made::new(engine, &run, &ours, &["true"]);
    let on = [("TERMINAL_DOCKER_ORPHAN_REAPER", "true")];
    let long = Sleep::new();
    let arguments = json!({"command": long.fill("sleep N")});
    let call = start_call_as(&site, &[], &on, &arguments);
    wait_until(PATIENCE, "the old one is gone", || !old.exists());
    assert!(young.exists(), "it ended just now");
    for (what, made) in &kept {
        assert!(made.exists(), "{what}");
    }
    assert!(site.containers().contains(&own));
    // Nothing of this is the call's business.
    long.runs(1);
    call.signal(Signal::INT);
    assert_eq!(call.finish().code(), 0);
    sleep.runs(1);
}
