//! Processes of a world, through the tools and words that people and models use.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Answer, Program, World, wait_until};

/// The variable that makes the test binary a host; see [`Host`].
const HOST: &str = "EXOSHELL_E2E_HOST";

/// The test that is the host's program.
const HOST_TEST: &str = "recovery::the_program_that_other_tests_kill";

impl World {
    /// Calls the tool `process`, as a program of its own.
    #[track_caller]
    pub(crate) fn process(&self, action: &str, id: &str, more: &Value) -> Answer {
        self.process_with_code(action, id, more).0
    }

    /// Calls the tool `process` and also returns the exit code.
    #[track_caller]
    pub(crate) fn process_with_code(&self, action: &str, id: &str, more: &Value) -> (Answer, i32) {
        let ran = self.start_process_call(action, id, more).finish();
        (Answer::parse(&ran.out), ran.code())
    }

    /// Starts a call of the tool `process`.
    #[track_caller]
    pub(crate) fn start_process_call(&self, action: &str, id: &str, more: &Value) -> Program {
        let mut arguments = json!({"action": action, "session_id": id});
        for (name, value) in more.as_object().unwrap() {
            arguments[name] = value.clone();
        }
        let command = self.command(["call", "process", "-"]);
        Program::start(command, arguments.to_string().as_bytes())
    }

    /// Starts a process with the tool `terminal` and returns its id.
    #[track_caller]
    pub(crate) fn begin(&self, command: &str, more: &Value) -> String {
        let mut arguments = json!({"command": command, "background": true});
        for (name, value) in more.as_object().unwrap() {
            arguments[name] = value.clone();
        }
        let answer = self.call(&arguments);
        answer.0["session_id"]
            .as_str()
            .unwrap_or_else(|| panic!("not started: {}", answer.0))
            .to_owned()
    }

    /// Waits for the end of a process.
    #[track_caller]
    pub(crate) fn wait_for_end(&self, id: &str) -> Answer {
        let answer = self.process("wait", id, &json!({"timeout": 60}));
        assert_eq!(answer.0["wait"], "exited", "{}", answer.0);
        answer
    }

    /// Waits for a line of a process's output.
    #[track_caller]
    pub(crate) fn wait_for_line(&self, id: &str, pattern: &str) {
        let ran = self.exoshell(["wait", id, "--until", pattern, "--timeout", "60"]);
        assert_eq!(
            ran.code(),
            0,
            "no `{pattern}`: {}",
            self.exoshell(["logs", id]).text()
        );
    }

    /// Waits until a process's terminal shows what is asked for, and returns the whole screen.
    #[track_caller]
    pub(crate) fn wait_for_screen(&self, id: &str, shows: impl Fn(&str) -> bool) -> Answer {
        let mut answer = self.process("screen", id, &json!({}));
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        while !shows(answer.0["screen"].as_str().unwrap_or_default()) {
            assert!(
                std::time::Instant::now() < deadline,
                "the screen never showed it: {}",
                answer.0
            );
            answer = self.process("screen", id, &json!({}));
        }
        answer
    }

    /// Returns all output of a process, as it was written.
    #[track_caller]
    pub(crate) fn logs(&self, id: &str) -> String {
        let ran = self.exoshell(["logs", id]);
        assert_eq!(ran.code(), 0, "{}", ran.talk());
        ran.text()
    }

    /// Takes the events that a consumer has not seen.
    #[track_caller]
    pub(crate) fn events(&self, consumer: &str) -> Vec<Value> {
        let ran = self.exoshell(["events", "--json", "--consumer", consumer]);
        assert_eq!(ran.code(), 0, "{}", ran.talk());
        ran.text()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

/// A program of its own that has a runtime, starts processes in it and follows them until
/// somebody kills it.
#[derive(Debug)]
pub(crate) struct Host {
    program: Program,
    ids: Vec<String>,
}

impl Host {
    /// Starts a host; each element of `calls` is a call of the tool `terminal`.
    #[track_caller]
    pub(crate) fn start(world: &World, name: &str, calls: &Value) -> Self {
        let report = world.root().join(format!("{name}.host"));
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", HOST_TEST, "--test-threads=1"]);
        world.dress(&mut command);
        let task = json!({"calls": calls, "report": report});
        command.env(HOST, task.to_string());
        let mut program = Program::start(command, b"");
        wait_until(Duration::from_secs(60), "the host has started", || {
            report.exists() || program.has_ended()
        });
        let report = fs::read(&report).unwrap_or_else(|error| panic!("the host failed: {error}"));
        let ids = serde_json::from_slice(&report).unwrap();
        Self { program, ids }
    }

    /// Returns the id of one of the processes.
    #[track_caller]
    pub(crate) fn id(&self, index: usize) -> &str {
        &self.ids[index]
    }

    /// Kills it as nothing can be prepared for.
    pub(crate) fn kill(self) {
        self.program.signal(rustix::process::Signal::KILL);
        self.program.finish();
    }

    /// Returns what this program is to do if it is a host.
    pub(crate) fn work() -> Option<(Value, PathBuf)> {
        let task: Value = serde_json::from_str(&std::env::var(HOST).ok()?).unwrap();
        let report = PathBuf::from(task["report"].as_str().unwrap());
        Some((task["calls"].clone(), report))
    }
}
