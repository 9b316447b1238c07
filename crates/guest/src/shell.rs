//! Shells: finding one, starting one, and handing it a command.
//!
//! A bash is started ahead of its command: it has taken on the session's state and waits. The
//! command's text reaches it through a file in memory and is evaluated as it is, so nothing is
//! ever spliced into it, and no byte of ours can end up in what the command writes.

use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use exoshell_process::{
    Descriptor, Launch, Spawner, memory_file, read_memory_file, sealed_memory_file,
};
use exoshell_wire::{RawBytes, Shell, ShellKind, TerminalSize};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::session::capture::{BASH_CAPTURE, SH_CAPTURE, parse_bash, parse_sh};
use crate::session::state::ShellState;
use crate::terminal::{self, Master};
use crate::tree::Tree;

/// Where shells usually are, best first. The place's `PATH` is not asked: a session may change
/// it, and the shell must not change with it.
const CANDIDATES: &[(ShellKind, &str)] = &[
    (ShellKind::Bash, "/bin/bash"),
    (ShellKind::Bash, "/usr/bin/bash"),
    (ShellKind::Bash, "/usr/local/bin/bash"),
    (ShellKind::Bash, "/run/current-system/sw/bin/bash"),
    (ShellKind::Sh, "/bin/sh"),
    (ShellKind::Sh, "/usr/bin/sh"),
    (ShellKind::Sh, "/bin/busybox"),
];

/// The numbers of a waiting shell's descriptors beyond 0 to 2; all are closed before a command
/// runs, so that it has none but its own.
const TRIGGER: u32 = 4;
const TEXT: u32 = 5;
const NOTHING: u32 = 7;
const STDIN: u32 = 8;
const STDERR: u32 = 9;

/// What a shell's supervisor holds for it. The shell opens them by name when it ends, so neither
/// the command nor its children ever hold them.
const CAPTURE: u32 = 3;
const EPILOGUE: u32 = 4;
const NAMES: u32 = 5;

/// An `sh` cannot do without holding its capture.
const SH_CAPTURE_NUMBER: u32 = 6;

/// Lists the shells of the place, best first.
pub(crate) fn find_shells() -> Vec<Shell> {
    CANDIDATES
        .iter()
        .filter(|(_, path)| is_executable(Path::new(path)))
        .map(|(kind, path)| Shell {
            kind: *kind,
            path: RawBytes::from(*path),
        })
        .collect()
}

fn is_executable(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
        && std::fs::metadata(path).is_ok_and(|m| m.is_file())
}

/// The script a waiting bash runs: one line and one compound command, so that it is parsed whole
/// before the command's text can change how lines are read (`set -v`, aliases).
fn bash_script() -> String {
    let read = format!(r"IFS= \builtin read -r -d '' -u {TEXT} BASH_EXECUTION_STRING");
    // A text that begins with a dash is no option.
    let eval = r#"\builtin eval -- "$BASH_EXECUTION_STRING""#;
    let epilogue = format!(r"\builtin . /proc/$PPID/fd/{EPILOGUE}");
    // What a shell prints while it takes on a state is nobody's output, so it goes where its
    // stderr goes until then.
    format!(
        "{{ exec 0<&{NOTHING} {NOTHING}<&-; {read}; {eval} >&2; \
         \\builtin read -r -u {TRIGGER} BASH_EXECUTION_STRING || \\builtin exit 125; \
         \\builtin set -- \"$BASH_EXECUTION_STRING\"; {read}; {eval} >&2; {read}; \
         case $1 in *i) exec 0<&{STDIN} ;; esac; \
         case $1 in m*) exec 2>&1 ;; *) exec 2>&{STDERR} ;; esac; \
         exec {TRIGGER}<&- {TEXT}<&- {STDIN}<&- {STDERR}>&-; \
         \\builtin trap '{{ \\builtin set +xv; }} 2>/dev/null; {epilogue}' EXIT; \
         SECONDS=0; \\builtin set --; {eval}; \
         {{ BASH_EXECUTION_STRING=$?; \\unset -f builtin; \\builtin set +xv; \
         \\builtin trap - DEBUG ERR RETURN; \\builtin set -- \"$BASH_EXECUTION_STRING\"; }} \
         >/dev/null 2>&1; {epilogue} 2>/dev/null; {{ \\builtin exit \"$1\"; }} 2>/dev/null; }}\n"
    )
}

/// What a bash does at its end, as a file it reads: prints its state to where its supervisor
/// keeps it. Only the first line can be seen by a command that turned on `set -v` or a trap.
fn bash_epilogue() -> String {
    format!(
        "{{ \\builtin set +euxv; \\builtin trap - DEBUG ERR RETURN; }} >/dev/null 2>&1\n\
         \\builtin [ -v BASH_EXECUTION_STRING ] || \\builtin return 0\n\
         {{ \\builtin declare -F >|/proc/$PPID/fd/{NAMES}; {{ {BASH_CAPTURE}; }} \
         >|/proc/$PPID/fd/{CAPTURE} </proc/$PPID/fd/{NAMES}; }} 2>/dev/null\n\
         \\builtin unset -v BASH_EXECUTION_STRING\n"
    )
}

/// The same for a POSIX `sh`, which can neither wait nor hide a descriptor from its children:
/// it gets its text as files and is started for the command.
fn sh_script(streams: Streams) -> String {
    let stdin = if streams.stdin { STDIN } else { NOTHING };
    let stderr = if streams.merge {
        format!(" 2>&1 {STDERR}>&-")
    } else {
        format!(" 2>&{STDERR} {STDERR}>&-")
    };
    format!(
        "exec 0<&{stdin} {STDIN}<&- {NOTHING}<&-{stderr}; \
         trap 's=$?; {{ {}; }} >&{SH_CAPTURE_NUMBER}; exit $s' EXIT; . \"$1\"; \
         s=$?; {{ {SH_CAPTURE}; }} >&{SH_CAPTURE_NUMBER}; exit $s",
        SH_CAPTURE.replace('\'', r"'\''")
    )
}

/// How a command's streams are laid.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Streams {
    /// stderr goes where stdout goes.
    pub(crate) merge: bool,
    /// stdin is fed; otherwise it is empty.
    pub(crate) stdin: bool,
}

/// The guest's ends of a running shell.
#[derive(Debug)]
pub(crate) struct Pipes {
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
    /// Where the shell leaves its state.
    pub(crate) capture: OwnedFd,
    /// Its terminal, if it has one; `stdin` and `stdout` are then ends of it.
    pub(crate) master: Option<Master>,
}

/// A shell that stands ready.
#[derive(Debug)]
pub(crate) struct WaitingShell {
    pub(crate) tree: Tree,
    pub(crate) pipes: Pipes,
    /// The state it is in.
    pub(crate) state: Arc<ShellState>,
    /// Which directory it stands in, should another one have taken the name.
    pub(crate) directory: Option<(u64, u64)>,
    trigger: OwnedFd,
    text: OwnedFd,
    text_end: u64,
}

/// Returns the identity of a directory.
pub(crate) fn directory_id(path: &[u8]) -> Option<(u64, u64)> {
    let stat = rustix::fs::stat(path).ok()?;
    (rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Directory)
        .then_some((stat.st_dev, stat.st_ino))
}

/// What starting a shell needs to know.
#[derive(Debug)]
pub(crate) struct Start {
    /// The environment to execute with.
    pub(crate) environment: Vec<Vec<u8>>,
    /// What the shell is after `replay`.
    pub(crate) state: Arc<ShellState>,
    /// The script that brings it there.
    pub(crate) replay: Vec<u8>,
}

/// The shell of a place and how to start it.
#[derive(Debug)]
pub(crate) struct Shells {
    pub(crate) program: Shell,
    script: String,
    epilogue: OwnedFd,
    nothing: OwnedFd,
    sink: OwnedFd,
}

impl Shells {
    pub(crate) fn new(program: Shell) -> io::Result<Self> {
        // An empty file stands in where even /dev/null is missing.
        let nothing = match std::fs::File::open("/dev/null") {
            Ok(file) => file.into(),
            Err(_) => memory_file("nothing", b"")?,
        };
        let sink = match std::fs::OpenOptions::new().write(true).open("/dev/null") {
            Ok(file) => file.into(),
            Err(_) => memory_file("sink", b"")?,
        };
        Ok(Self {
            program,
            script: bash_script(),
            epilogue: sealed_memory_file("epilogue", bash_epilogue().as_bytes())?,
            nothing,
            sink,
        })
    }

    /// Tells whether shells can be started ahead of their commands.
    pub(crate) fn can_wait(&self) -> bool {
        self.program.kind == ShellKind::Bash
    }

    fn launch(&self, arguments: Vec<Vec<u8>>, start: &Start) -> Launch {
        Launch {
            program: self.program.path.0.clone(),
            arguments,
            environment: start.environment.clone(),
            directory: start.state.cwd.clone(),
            umask: start.state.umask,
            terminal: false,
            grace_ms: 2000,
        }
    }

    /// Starts a bash that waits for its command, on a terminal if one is wanted.
    pub(crate) fn start_waiting(
        &self,
        spawner: &Spawner,
        start: Start,
        size: Option<TerminalSize>,
    ) -> io::Result<WaitingShell> {
        let script = memory_file("script", self.script.as_bytes())?;
        let mut opening = start.replay.clone();
        opening.push(0);
        let text = memory_file("text", &opening)?;
        let (trigger_read, trigger) = pipe_with(PipeFlags::CLOEXEC)?;
        let launch = self.launch(vec![b"bash".to_vec()], &start);
        let (tree, pipes) = self.spawn(
            spawner,
            launch,
            &[(&script, 0), (&trigger_read, TRIGGER), (&text, TEXT)],
            size,
        )?;
        Ok(WaitingShell {
            tree,
            pipes,
            directory: directory_id(&start.state.cwd),
            state: start.state,
            trigger,
            text,
            text_end: opening.len() as u64,
        })
    }

    /// Starts an `sh` that runs a command from files.
    pub(crate) fn start_sh(
        &self,
        spawner: &Spawner,
        start: &Start,
        streams: Streams,
        file: &Path,
        size: Option<TerminalSize>,
    ) -> io::Result<(Tree, Pipes)> {
        let name: &[u8] = b"sh";
        let mut arguments = vec![name.to_vec(), b"-c".to_vec()];
        arguments.push(sh_script(streams).into_bytes());
        arguments.push(name.to_vec());
        arguments.push(file.as_os_str().as_encoded_bytes().to_vec());
        let launch = self.launch(arguments, start);
        self.spawn(spawner, launch, &[(&self.nothing, 0)], size)
    }

    /// Starts a login bash that prints the state its profile files leave it in.
    pub(crate) fn start_login(
        &self,
        spawner: &Spawner,
        start: &Start,
    ) -> io::Result<(Tree, Pipes)> {
        let arguments = vec![
            b"bash".to_vec(),
            b"--login".to_vec(),
            b"-c".to_vec(),
            format!("BASH_EXECUTION_STRING=; \\builtin . /proc/$PPID/fd/{EPILOGUE}").into_bytes(),
        ];
        let launch = self.launch(arguments, start);
        self.spawn(spawner, launch, &[(&self.nothing, 0)], None)
    }

    /// Starts a plain bash that prints the state every new bash has.
    pub(crate) fn start_baseline(&self, spawner: &Spawner) -> io::Result<(Tree, Pipes)> {
        let start = Start {
            environment: Vec::new(),
            state: Arc::new(ShellState {
                cwd: b"/".to_vec(),
                umask: 0o022,
                ..ShellState::default()
            }),
            replay: Vec::new(),
        };
        let script = format!("\\builtin . /proc/$PPID/fd/{EPILOGUE}");
        let arguments = vec![b"bash".to_vec(), b"-c".to_vec(), script.into_bytes()];
        let launch = self.launch(arguments, &start);
        self.spawn(spawner, launch, &[(&self.nothing, 0)], None)
    }

    fn spawn(
        &self,
        spawner: &Spawner,
        mut launch: Launch,
        own: &[(&OwnedFd, u32)],
        size: Option<TerminalSize>,
    ) -> io::Result<(Tree, Pipes)> {
        let capture = memory_file("state", b"")?;
        let (ours, theirs) = match size {
            Some(size) => {
                launch.terminal = true;
                terminal_ends(size, capture)?
            }
            None => pipe_ends(capture)?,
        };
        let mut descriptors = vec![
            Descriptor::program(theirs.stdout.as_fd(), 1),
            // What a shell says before it has a command is nobody's output.
            Descriptor::program(self.sink.as_fd(), 2),
            Descriptor::program(theirs.stderr.as_fd(), STDERR),
            Descriptor::program(self.nothing.as_fd(), NOTHING),
            Descriptor::program(theirs.stdin.as_fd(), STDIN),
            Descriptor::supervisor(ours.capture.as_fd(), CAPTURE),
            Descriptor::supervisor(self.epilogue.as_fd(), EPILOGUE),
        ];
        let names = memory_file("names", b"")?;
        match self.program.kind {
            ShellKind::Bash => descriptors.push(Descriptor::supervisor(names.as_fd(), NAMES)),
            ShellKind::Sh => {
                descriptors.push(Descriptor::program(ours.capture.as_fd(), SH_CAPTURE_NUMBER));
            }
        }
        descriptors.extend(
            own.iter()
                .map(|(fd, number)| Descriptor::program(fd.as_fd(), *number)),
        );
        let control = spawner.spawn(&launch, &descriptors)?;
        Ok((Tree::follow(control)?, ours))
    }

    /// Reads the state a shell left; `None` when it left none or a cut one.
    pub(crate) fn captured(&self, capture: &OwnedFd) -> Option<ShellState> {
        let bytes = read_memory_file(capture).ok()?;
        match self.program.kind {
            ShellKind::Bash => parse_bash(&bytes),
            ShellKind::Sh => parse_sh(&bytes),
        }
    }
}

/// The shell's ends of its streams.
struct Theirs {
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
}

fn pipe_ends(capture: OwnedFd) -> io::Result<(Pipes, Theirs)> {
    let (stdin_read, stdin) = pipe_with(PipeFlags::CLOEXEC)?;
    let (stdout, stdout_write) = pipe_with(PipeFlags::CLOEXEC)?;
    let (stderr, stderr_write) = pipe_with(PipeFlags::CLOEXEC)?;
    let ours = Pipes {
        stdin,
        stdout,
        stderr,
        capture,
        master: None,
    };
    let theirs = Theirs {
        stdin: stdin_read,
        stdout: stdout_write,
        stderr: stderr_write,
    };
    Ok((ours, theirs))
}

fn terminal_ends(size: TerminalSize, capture: OwnedFd) -> io::Result<(Pipes, Theirs)> {
    let (master, slave) = terminal::open(size)?;
    // Everything is one stream on a terminal; a pipe that has ended stands in for stderr.
    let (stderr, _) = pipe_with(PipeFlags::CLOEXEC)?;
    let ours = Pipes {
        stdin: master.try_clone()?,
        stdout: master.try_clone()?,
        stderr,
        capture,
        master: Some(master),
    };
    let theirs = Theirs {
        stdin: slave.try_clone()?,
        stdout: slave.try_clone()?,
        stderr: slave,
    };
    Ok((ours, theirs))
}

impl WaitingShell {
    /// Hands the shell its command: first the script that brings its state up to date.
    pub(crate) fn hand_over(
        self,
        update: &[u8],
        command: &[u8],
        streams: Streams,
    ) -> io::Result<(Tree, Pipes)> {
        let mut message = Vec::with_capacity(update.len() + command.len() + 2);
        message.extend_from_slice(update);
        message.push(0);
        message.extend_from_slice(command);
        if ends_with_continuation(command) {
            // At the end of a file bash drops such a backslash; in a string it keeps it.
            message.push(b'\n');
        }
        write_at(&self.text, &message, self.text_end)?;
        let mode: &[u8] = match (streams.merge, streams.stdin) {
            (true, false) => b"m\n",
            (true, true) => b"mi\n",
            (false, true) => b"i\n",
            (false, false) => b"s\n",
        };
        rustix::io::write(&self.trigger, mode)?;
        Ok((self.tree, self.pipes))
    }
}

fn ends_with_continuation(command: &[u8]) -> bool {
    command.iter().rev().take_while(|b| **b == b'\\').count() % 2 == 1
}

fn write_at(file: &OwnedFd, bytes: &[u8], mut offset: u64) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let written = rustix::io::pwrite(file, rest, offset)?;
        offset += written as u64;
        rest = rest.get(written..).unwrap_or_default();
    }
    Ok(())
}

/// Returns the command file of an `sh` run.
pub(crate) fn sh_file(dir: &Path, id: &str) -> PathBuf {
    dir.join(format!("{id}.command.sh"))
}
