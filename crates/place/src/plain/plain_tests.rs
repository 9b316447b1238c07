use std::path::{Path, PathBuf};
use std::time::Instant;

use exoshell_wire::{Cause, ExecDone, Outcome, stream};
use tempfile::TempDir;

use super::*;
use crate::{Check, ExecEvent, Facts, Launched, Life, Pipe, PlaceFuture, Progress, Trouble};

/// A place whose programs are those of this machine, found in a `PATH` of its own.
#[derive(Debug)]
struct Double {
    before: Vec<String>,
}

impl Place for Double {
    fn backend(&self) -> &'static str {
        "double"
    }

    fn life(&self) -> Life {
        Life {
            lease: Duration::ZERO,
            heartbeat: None,
            linger: false,
            session: None,
        }
    }

    fn open<'a>(&'a self, _progress: &'a Progress) -> PlaceFuture<'a, Pipe> {
        Box::pin(async {
            Err(PlaceError::NoGuest {
                why: "it is a double".to_owned(),
            })
        })
    }

    fn open_existing(&self) -> PlaceFuture<'_, Option<Pipe>> {
        Box::pin(async { Ok(None) })
    }

    fn launch<'a>(&'a self, words: &'a [String]) -> PlaceFuture<'a, Launched> {
        Box::pin(async move {
            let words = [self.before.as_slice(), words].concat();
            Launched::program(&words).map_err(|error| PlaceError::Start {
                message: error.to_string(),
            })
        })
    }

    fn inspect(&self) -> PlaceFuture<'_, Facts> {
        Box::pin(async { Ok(Facts::default()) })
    }

    fn sweep(&self) -> PlaceFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn destroy(&self) -> PlaceFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn check(&self) -> PlaceFuture<'_, Vec<Check>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// A plain shell with a folder of its own.
struct Fixture {
    shell: PlainShell,
    folder: TempDir,
}

/// What a command came to.
#[derive(Debug)]
struct Finished {
    pid: u32,
    out: String,
    err: String,
    done: ExecDone,
}

impl Fixture {
    /// A place started by these words.
    fn with(folder: TempDir, before: &[&str]) -> Self {
        let before = before.iter().map(|word| (*word).to_owned()).collect();
        let shell = PlainShell::new(Arc::new(Double { before }), "it is a double");
        Self { shell, folder }
    }

    /// This machine as it is, with bash.
    fn bash() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = format!("HOME={}", folder.path().display());
        let path = "PATH=/usr/local/bin:/usr/bin:/bin";
        Self::with(folder, &["env", "-i", &home, path])
    }

    /// A place with only these programs, the first of which is its `sh`.
    fn bare(programs: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        for (name, program) in programs {
            std::os::unix::fs::symlink(program, bin.join(name)).unwrap();
        }
        let home = format!("HOME={}", folder.path().display());
        let path = format!("PATH={}", bin.display());
        Self::with(folder, &["env", "-i", &home, &path])
    }

    /// A place with dash, and no bash.
    fn dash() -> Self {
        Self::bare(&[
            ("sh", "/usr/bin/dash"),
            ("setsid", "/usr/bin/setsid"),
            ("sleep", "/usr/bin/sleep"),
            ("cat", "/usr/bin/cat"),
            ("yes", "/usr/bin/yes"),
            ("head", "/usr/bin/head"),
            ("rmdir", "/usr/bin/rmdir"),
            ("mkdir", "/usr/bin/mkdir"),
            ("wc", "/usr/bin/wc"),
        ])
    }

    /// A place with nothing but dash: no `setsid`.
    fn poor() -> Self {
        Self::bare(&[("sh", "/usr/bin/dash"), ("sleep", "/usr/bin/sleep")])
    }

    /// A root folder of its own with busybox, and without `/proc`.
    fn busybox() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().join("bin");
        for name in ["bin", "dev", "home", "tmp"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        std::fs::write(folder.path().join("dev/null"), "").unwrap();
        std::fs::copy("/usr/bin/busybox", bin.join("busybox")).unwrap();
        let applets = [
            "sh", "setsid", "sleep", "cat", "yes", "head", "rmdir", "mkdir", "wc", "env",
        ];
        for name in applets {
            std::os::unix::fs::symlink("busybox", bin.join(name)).unwrap();
        }
        let root = folder.path().display().to_string();
        let inside = ["/bin/env", "-i", "HOME=/home", "PATH=/bin"];
        let root_user = rustix::process::geteuid().is_root();
        let changer: &[&str] = if root_user {
            &["chroot"]
        } else {
            &["unshare", "--map-root-user", "chroot"]
        };
        Self::with(folder, &[changer, &[root.as_str()], &inside].concat())
    }

    /// Every kind of place.
    fn all() -> Vec<(&'static str, Self)> {
        vec![
            ("bash", Self::bash()),
            ("dash", Self::dash()),
            ("poor", Self::poor()),
            ("busybox", Self::busybox()),
        ]
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    async fn finish(&self, command: PlainCommand) -> Finished {
        let mut stream = self.shell.run(command).await.unwrap();
        let end = finish(&mut stream).await;
        let sent = end.done.stdout_bytes + end.done.stderr_bytes;
        if !end.out.contains('\u{fffd}') {
            assert_eq!(sent, (end.out.len() + end.err.len()) as u64);
        }
        end
    }

    async fn run(&self, command: &str) -> Finished {
        self.finish(PlainCommand::new(command.to_owned())).await
    }

    /// Runs a command in the session `s`.
    async fn say(&self, command: &str) -> Finished {
        self.finish(in_session(command)).await
    }
}

fn in_session(command: &str) -> PlainCommand {
    PlainCommand {
        session: Some("s".to_owned()),
        ..PlainCommand::new(command.to_owned())
    }
}

async fn finish(stream: &mut PlainStream) -> Finished {
    let (mut out, mut err, mut started) = (Vec::new(), Vec::new(), 0);
    loop {
        let event = tokio::time::timeout(Duration::from_secs(60), stream.next());
        match event.await.expect("the command must end").unwrap() {
            ExecEvent::Started { pid, .. } => started = pid,
            ExecEvent::Resumed(_) => unreachable!("a plain shell resumes nothing"),
            ExecEvent::Output { stream, bytes } if stream == stream::STDERR => err.extend(bytes),
            ExecEvent::Output { bytes, .. } => out.extend(bytes),
            ExecEvent::Done(done) => {
                return Finished {
                    pid: started,
                    out: String::from_utf8_lossy(&out).into_owned(),
                    err: String::from_utf8_lossy(&err).into_owned(),
                    done: *done,
                };
            }
        }
    }
}

/// Waits for a word of the command's output.
async fn wait_for(stream: &mut PlainStream, word: &str) {
    let mut seen = String::new();
    while !seen.contains(word) {
        let event = tokio::time::timeout(Duration::from_secs(60), stream.next());
        if let ExecEvent::Output { bytes, .. } = event.await.expect("output must come").unwrap() {
            seen.push_str(&String::from_utf8_lossy(&bytes));
        }
    }
}

fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(") ")
        .next()
        .and_then(|rest| rest.chars().next());
    state.is_some_and(|state| !matches!(state, 'Z' | 'X'))
}

/// Reads a process id that a command wrote to a file.
fn noted(file: PathBuf) -> u32 {
    std::fs::read_to_string(file)
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}

const PARTIAL: &str = "echo partial; sleep 1000";

#[path = "ending_tests.rs"]
mod ending;
#[path = "running_tests.rs"]
mod running;
#[path = "sessions_tests.rs"]
mod sessions;
