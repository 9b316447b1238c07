//! Podman of a user without any rights.

use std::fs;
use std::os::unix::fs::lchown;
use std::path::Path;
use std::process::Command;

use exoshell_testkit::{Engine, image};
use serde_json::{Value, json};

use crate::site::Sleep;
use crate::support::{Answer, EXOSHELL, Program};

/// A folder of that user with the product in it.
struct Home {
    engine: Engine,
    folder: tempfile::TempDir,
}

impl Home {
    #[track_caller]
    fn new(engine: Engine) -> Self {
        let folder = tempfile::Builder::new()
            .prefix("exo-rootless-")
            .tempdir()
            .unwrap();
        let user = engine.prefix()[2].clone();
        let id = |flag: &str| -> u32 {
            let output = Command::new("id").args([flag, &user]).output().unwrap();
            String::from_utf8_lossy(&output.stdout)
                .trim()
                .parse()
                .unwrap()
        };
        fs::copy(EXOSHELL, folder.path().join("exoshell")).unwrap();
        lchown(folder.path(), Some(id("-u")), Some(id("-g"))).unwrap();
        Self { engine, folder }
    }

    #[track_caller]
    fn exoshell(&self, words: &[&str], input: &Value) -> Answer {
        let own: &Path = self.folder.path();
        let mut prefix = self.engine.prefix().iter();
        let mut command = Command::new(prefix.next().unwrap());
        command
            .args(prefix)
            .arg(own.join("exoshell"))
            .args(words)
            .env_clear()
            .env("PATH", crate::support::PATH)
            .envs(
                self.engine
                    .variables()
                    .iter()
                    .map(|(name, value)| (name, value)),
            )
            .env("EXOSHELL_HOME", own.join("home"))
            .env("EXOSHELL_APPROVAL", "auto")
            .env("TERMINAL_ENV", "podman")
            .env("TERMINAL_DOCKER_IMAGE", image::DEBIAN)
            .current_dir(own);
        let ran = Program::start(command, input.to_string().as_bytes()).finish();
        assert!(!ran.out.is_empty(), "{}", ran.talk());
        Answer::parse(&ran.out)
    }

    #[track_caller]
    fn call(&self, tool: &str, arguments: &Value) -> Answer {
        self.exoshell(&["call", tool, "-"], arguments)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // Only where a test failed is there anything left.
        for id in self.engine.mounting(self.folder.path()) {
            self.engine.remove(&id);
        }
    }
}

#[test]
fn a_user_without_rights_runs_keeps_kills_and_removes() {
    let home = match Engine::rootless() {
        Ok(engine) => Home::new(engine),
        // Not a skip: what this machine cannot do is a fact with a name.
        Err(why) => return assert!(!why.is_empty()),
    };
    let answer = home.call(
        "terminal",
        &json!({"command": "id -u; pwd; echo hi > file; cat file"}),
    );
    assert_eq!(
        (answer.code(), answer.output()),
        (0, "0\n/root\nhi\n"),
        "{}",
        answer.0
    );
    let sleep = Sleep::new();
    let command = sleep.fill("echo begun; sleep N");
    let begun = home.call("terminal", &json!({"command": command, "background": true}));
    let id = begun.0["session_id"].as_str().unwrap().to_owned();
    sleep.runs(1);
    let log = home.call("process", &json!({"action": "log", "session_id": id}));
    assert_eq!(log.output(), "begun\n", "{}", log.0);
    let killed = home.call("process", &json!({"action": "kill", "session_id": id}));
    assert_eq!(killed.error(), "", "{}", killed.0);
    sleep.ends_within(std::time::Duration::from_secs(5));
    let info = home.exoshell(&["places", "info", "default", "--json"], &Value::Null);
    let container = info.0["id"].as_str().unwrap().to_owned();
    home.engine.inspect(&container);
    let removed = home.exoshell(&["places", "rm", "--all", "--json"], &Value::Null);
    assert_eq!(removed.0["removed"], json!(["default"]), "{}", removed.0);
    let mut look = home.engine.command();
    let gone = look
        .args(["container", "inspect", &container])
        .output()
        .unwrap();
    assert!(!gone.status.success(), "it is still there");
    assert_eq!(home.engine.mounting(home.folder.path()), [""; 0]);
}
