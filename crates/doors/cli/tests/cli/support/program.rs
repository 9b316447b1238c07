//! Running a program with a time limit.

use std::io::{Read, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{PATIENCE, wait_until};

/// A program under way, both outputs read from the start.
#[derive(Debug)]
pub(crate) struct Program {
    child: Child,
    began: Instant,
    shown: String,
    stdout: Option<JoinHandle<Vec<u8>>>,
    stderr: Option<JoinHandle<Vec<u8>>>,
}

/// How a program ended.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) status: ExitStatus,
    pub(crate) out: Vec<u8>,
    pub(crate) err: Vec<u8>,
    pub(crate) took: Duration,
}

impl Ran {
    /// Returns the exit code as a shell shows it.
    pub(crate) fn code(&self) -> i32 {
        self.status
            .code()
            .unwrap_or_else(|| 128 + self.status.signal().unwrap_or(0))
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.out).into_owned()
    }

    pub(crate) fn talk(&self) -> String {
        String::from_utf8_lossy(&self.err).into_owned()
    }
}

fn reader(mut from: impl Read + Send + 'static) -> JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut all = Vec::new();
        // A broken pipe is an end like any other.
        let _ = from.read_to_end(&mut all);
        all
    })
}

impl Program {
    /// Starts a program; its stdin is what is given, then its end.
    #[track_caller]
    pub(crate) fn start(mut command: Command, stdin: &[u8]) -> Self {
        let shown = format!("{command:?}");
        let has_input = !stdin.is_empty();
        command
            .stdin(if has_input {
                Stdio::piped()
            } else {
                Stdio::null()
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap_or_else(|e| panic!("{shown}: {e}"));
        if let Some(mut pipe) = child.stdin.take() {
            let bytes = stdin.to_vec();
            std::thread::spawn(move || {
                // A program that does not read it is free to do so.
                let _ = pipe.write_all(&bytes);
            });
        }
        Self {
            began: Instant::now(),
            stdout: child.stdout.take().map(reader),
            stderr: child.stderr.take().map(reader),
            child,
            shown,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).unwrap();
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for its end and for the end of its outputs: nothing it started may hold them.
    #[track_caller]
    pub(crate) fn finish(self) -> Ran {
        self.finish_within(PATIENCE)
    }

    #[track_caller]
    pub(crate) fn finish_within(mut self, limit: Duration) -> Ran {
        let deadline = Instant::now() + limit;
        while self.child.try_wait().unwrap().is_none() {
            assert!(
                Instant::now() < deadline,
                "still running after {limit:?}: {}",
                self.shown
            );
            std::thread::sleep(Duration::from_millis(2));
        }
        let took = self.began.elapsed();
        let status = self.child.wait().unwrap();
        let collect = |stream: Option<JoinHandle<Vec<u8>>>| {
            let stream = stream.unwrap();
            wait_until(
                Duration::from_secs(10),
                "somebody else holds the program's output open",
                || stream.is_finished(),
            );
            stream.join().unwrap()
        };
        Ran {
            status,
            out: collect(self.stdout.take()),
            err: collect(self.stderr.take()),
            took,
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // Only where a test failed: a finished program is not signalled.
        if matches!(self.child.try_wait(), Ok(None)) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
