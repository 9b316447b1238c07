//! Running one command.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use exoshell_mux::{Channel, Item};
use exoshell_process::ProcessEntry;
use exoshell_wire::{
    Cause, Exec, ExecDone, ExecStarted, Failure, FailureKind, Note, Outcome, ProcessInfo, RawBytes,
    Reply, SessionRef, ShellKind, SpillFile, Timings, stream,
};
use tokio::io::AsyncWriteExt as _;
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio::sync::watch;

use crate::guest::Guest;
use crate::output::{self, Pump};
use crate::plan::{Plan, Started};
use crate::process::{self, Adopted, describe};
use crate::shell::{Pipes, sh_file};
use crate::spill::Spill;
use crate::tree::{Exit, Tree};

/// The longest command text.
const MAX_COMMAND: usize = 64 * 1024 * 1024;

/// How much stdin is held for a command that does not read it yet.
const MAX_PENDING_STDIN: usize = 256 * 1024;

/// How long output of processes that outlive the shell is still waited for: long enough for a
/// `tee` behind a process substitution to finish, short enough to go unnoticed otherwise.
const LINGERING_OUTPUT: Duration = Duration::from_millis(150);

/// Runs a command and answers on its channel.
pub(crate) async fn serve(guest: Arc<Guest>, mut channel: Channel, exec: Exec) {
    // Without a result the host is gone and there is nobody to answer.
    if let Some(result) = run(&guest, &mut channel, &exec).await {
        let sender = channel.sender();
        crate::connection::answer(channel, &Reply::from(result));
        // The answer is on its way before anything is prepared, and whoever waits for it gets
        // the processor first.
        let _ = sender.flushed().await;
        std::thread::yield_now();
    }
    if let SessionRef::Key(key) = &exec.session
        && let Some(session) = guest.session(key)
    {
        guest.prepare(&session);
    }
}

/// `None` when the pipe was lost.
async fn run(
    guest: &Arc<Guest>,
    channel: &mut Channel,
    exec: &Exec,
) -> Option<Result<ExecDone, Failure>> {
    let command = match receive_command(channel).await? {
        Ok(command) => command,
        Err(failure) => return Some(Err(failure)),
    };
    let arrived = Instant::now();
    let mut plan = match Plan::make(guest, exec) {
        Ok(plan) => plan,
        Err(failure) => return Some(Err(failure)),
    };
    let started = match plan.start(guest, &exec.id, &command).await {
        Ok(started) => started,
        Err(failure) => return Some(Err(failure)),
    };
    let timings = Timings {
        spawn_us: microseconds(arrived.elapsed()),
        warm: started.warm,
        ..Timings::default()
    };
    let event = ExecStarted { pid: started.pid };
    let _ = channel.event(serde_json::to_vec(&event).unwrap_or_default());
    let run = Run {
        guest,
        exec,
        plan,
        timings,
    };
    run.follow(channel, started).await
}

/// Collects the command text; it must be whole and free of NUL before anything starts.
pub(crate) async fn receive_command(channel: &mut Channel) -> Option<Result<Vec<u8>, Failure>> {
    let mut command = Vec::new();
    loop {
        match channel.receive().await.ok()? {
            Item::Data {
                stream: stream::COMMAND,
                bytes,
                last,
            } => {
                command.extend_from_slice(&bytes);
                if command.len() > MAX_COMMAND {
                    return Some(Err(Failure::new(
                        FailureKind::BadRequest,
                        format!("the command is over {} MiB", MAX_COMMAND >> 20),
                    )));
                }
                if last {
                    break;
                }
            }
            Item::Cancel => {
                return Some(Err(Failure::new(
                    FailureKind::Ended,
                    "cancelled before it was started",
                )));
            }
            _ => {}
        }
    }
    if command.contains(&0) {
        return Some(Err(Failure::new(
            FailureKind::BadRequest,
            "the command contains a NUL byte, which no shell can read",
        )));
    }
    Some(Ok(command))
}

/// A command under way.
struct Run<'a> {
    guest: &'a Arc<Guest>,
    exec: &'a Exec,
    plan: Plan,
    timings: Timings,
}

impl Run<'_> {
    async fn follow(
        mut self,
        channel: &mut Channel,
        started: Started,
    ) -> Option<Result<ExecDone, Failure>> {
        let tree = started.tree;
        let Pipes {
            stdin,
            stdout,
            stderr,
            capture,
            master,
        } = started.pipes;
        let key = self.plan.session.as_ref().map(|s| s.key.clone());
        let listed = self.guest.running(&self.exec.id, key.as_deref(), &tree);
        let began = Instant::now();
        let outputs = match Outputs::start(self.guest, self.exec, [stdout, stderr], channel) {
            Ok(outputs) => outputs,
            Err(error) => {
                tree.kill(0).await;
                return Some(Err(Failure::new(
                    FailureKind::Internal,
                    format!("the output could not be followed: {error}"),
                )));
            }
        };
        let mut end = Watch::new(self.exec, stdin).until_end(channel, &tree).await;
        if listed.was_ended() {
            end.cause = Cause::Interrupted;
        }
        self.timings.run_us = microseconds(began.elapsed());
        let drained = Instant::now();
        let pumped = outputs.finish(&tree, end.exit, master.is_some()).await;
        self.remove_command_files();
        if end.cause == Cause::Ended && !self.plan.carry_over(self.guest, self.exec, &capture) {
            self.plan.notes.push(Note::StateNotCaptured);
        }
        let leftovers = self
            .leftovers(&tree, end.exit, key.as_deref(), pumped.open)
            .await;
        drop((listed, master));
        if end.host_lost {
            return None;
        }
        self.timings.drain_us = microseconds(drained.elapsed());
        Some(Ok(ExecDone {
            outcome: outcome(end.exit),
            cause: end.cause,
            cwd: RawBytes(self.plan.cwd()),
            leftovers,
            unkillable: describe(&self.exec.id, key.as_deref(), end.unkillable),
            spill: pumped.spill,
            notes: std::mem::take(&mut self.plan.notes),
            timings: self.timings,
            stdout_bytes: pumped.stdout_bytes,
            stderr_bytes: pumped.stderr_bytes,
        }))
    }

    /// Adopts what the command left running, and names it.
    async fn leftovers(
        &self,
        tree: &Tree,
        exit: Option<Exit>,
        key: Option<&str>,
        pipes: Vec<Receiver>,
    ) -> Vec<ProcessInfo> {
        if !exit.is_some_and(|exit| exit.leftovers) {
            return Vec::new();
        }
        let alive = tree.list().await;
        if alive.is_empty() {
            return Vec::new();
        }
        let left = Adopted {
            tree: tree.clone(),
            // Survivors must neither block on a full pipe nor die of a closed one.
            pipes,
            command: alive.first().map(|p| p.command.clone()).unwrap_or_default(),
            cwd: self.plan.directory().to_vec(),
            pid: alive.first().map_or(0, |process| process.pid),
        };
        process::adopt(self.guest, &self.exec.id, key, left);
        describe(&self.exec.id, key, alive)
    }

    fn remove_command_files(&self) {
        let is_sh = self
            .guest
            .shells()
            .is_ok_and(|shells| shells.program.kind == ShellKind::Sh);
        if is_sh {
            // A file that could not be made need not be removed.
            let _ = std::fs::remove_file(sh_file(&self.guest.dir, &self.exec.id));
        }
    }
}

fn outcome(exit: Option<Exit>) -> Outcome {
    match exit {
        Some(Exit {
            code: Some(code), ..
        }) => Outcome::Exited(code),
        Some(Exit {
            signal: Some(signal),
            ..
        }) => Outcome::Signalled(signal),
        _ => Outcome::Unknown,
    }
}

/// The pumps of a command's output.
struct Outputs {
    stdout: Pump,
    stderr: Pump,
    stop: watch::Sender<bool>,
    spill: Option<Arc<Spill>>,
}

/// What they moved.
struct Moved {
    stdout_bytes: u64,
    stderr_bytes: u64,
    spill: Option<SpillFile>,
    /// Pipes that something may still write to.
    open: Vec<Receiver>,
}

impl Outputs {
    fn start(
        guest: &Guest,
        exec: &Exec,
        [stdout, stderr]: [OwnedFd; 2],
        channel: &Channel,
    ) -> std::io::Result<Self> {
        let spill = exec
            .spill
            .map(|limits| Arc::new(Spill::new(&guest.spill_dir(), &exec.id, limits)));
        let (stop, stopped) = watch::channel(false);
        let pump = |pipe, number| {
            Pump::start(
                pipe,
                number,
                channel.sender(),
                spill.clone(),
                stopped.clone(),
            )
        };
        Ok(Self {
            stdout: pump(stdout, stream::STDOUT)?,
            stderr: pump(stderr, stream::STDERR)?,
            stop,
            spill,
        })
    }

    /// Collects everything that was written before the command ended.
    async fn finish(self, tree: &Tree, exit: Option<Exit>, on_terminal: bool) -> Moved {
        let Self {
            mut stdout,
            stderr,
            stop,
            spill,
        } = self;
        if on_terminal {
            // The kernel passes the last output of a terminal on in its own time.
            let _ = tokio::time::timeout(LINGERING_OUTPUT, stdout.ended()).await;
        }
        if exit.is_some_and(|exit| exit.leftovers) {
            // A short-lived companion (`> >(tee log)`) may still have to pass the output on.
            let _ = tokio::time::timeout(LINGERING_OUTPUT, tree.gone()).await;
        }
        stop.send_replace(true);
        let stdout = stdout.finish().await;
        let stderr = stderr.finish().await;
        Moved {
            stdout_bytes: stdout.bytes,
            stderr_bytes: stderr.bytes,
            spill: spill.and_then(|spill| spill.finish()),
            open: [stdout.open, stderr.open].into_iter().flatten().collect(),
        }
    }
}

/// Watches over a command until its shell has ended.
struct Watch<'a> {
    exec: &'a Exec,
    stdin: Stdin,
}

/// How the watch ended.
struct End {
    exit: Option<Exit>,
    cause: Cause,
    unkillable: Vec<ProcessEntry>,
    host_lost: bool,
}

impl<'a> Watch<'a> {
    fn new(exec: &'a Exec, stdin: OwnedFd) -> Self {
        Self {
            exec,
            stdin: Stdin::new(exec.stdin.then_some(stdin)),
        }
    }

    async fn until_end(mut self, channel: &mut Channel, tree: &Tree) -> End {
        let cancelled = channel.sender();
        let deadline = self
            .exec
            .timeout_ms
            .map(|ms| Instant::now() + Duration::from_millis(ms));
        let exit = tree.exited();
        tokio::pin!(exit);
        let cause = loop {
            tokio::select! {
                biased;
                exit = &mut exit => {
                    return End {
                        exit,
                        cause: Cause::Ended,
                        unkillable: Vec::new(),
                        host_lost: false,
                    };
                }
                lost = cancelled.cancelled() => {
                    if lost.is_err() {
                        return self.without_host(tree).await;
                    }
                    break Cause::Interrupted;
                }
                () = until(deadline) => break Cause::Timeout,
                item = channel.receive(), if self.stdin.has_room() => {
                    // Anything else is seen on the next round.
                    if let Ok(Item::Data { stream: stream::STDIN, bytes, last }) = item {
                        let ends_terminal = last && self.exec.terminal.is_some();
                        self.stdin.push(bytes, last && !ends_terminal);
                        if ends_terminal {
                            // A terminal has no end; there is a key for it.
                            self.stdin.push(Bytes::from_static(&[4]), true);
                        }
                    }
                }
                () = self.stdin.progress() => {}
            }
        };
        let unkillable = tree.kill(self.exec.grace_ms).await;
        End {
            exit: exit.await,
            cause,
            unkillable,
            host_lost: false,
        }
    }

    /// The pipe is lost: the command may live on for its lease, then it is ended.
    async fn without_host(self, tree: &Tree) -> End {
        let lease = Duration::from_millis(self.exec.lease_ms);
        let ended = tokio::time::timeout(lease, tree.exited()).await;
        if ended.is_err() {
            tree.kill(self.exec.grace_ms).await;
        }
        End {
            exit: tree.exited().await,
            cause: Cause::Interrupted,
            unkillable: Vec::new(),
            host_lost: true,
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

/// What is still to be written to a command's stdin.
struct Stdin {
    pipe: Option<Sender>,
    pending: VecDeque<Bytes>,
    bytes: usize,
    last: bool,
}

impl Stdin {
    /// Takes the pipe, or closes it at once when nothing will come.
    fn new(pipe: Option<OwnedFd>) -> Self {
        Self {
            pipe: pipe.and_then(|pipe| output::sender(pipe).ok()),
            pending: VecDeque::new(),
            bytes: 0,
            last: false,
        }
    }

    const fn has_room(&self) -> bool {
        self.bytes < MAX_PENDING_STDIN
    }

    fn push(&mut self, bytes: Bytes, last: bool) {
        self.last |= last;
        if self.pipe.is_some() && !bytes.is_empty() {
            self.bytes += bytes.len();
            self.pending.push_back(bytes);
        }
        self.close_at_end();
    }

    /// Closes the pipe behind the last byte.
    fn close_at_end(&mut self) {
        if self.last && self.pending.is_empty() {
            self.pipe = None;
        }
    }

    /// Writes some of what is pending; waits for ever when there is nothing to do.
    async fn progress(&mut self) {
        let (Some(pipe), Some(front)) = (&mut self.pipe, self.pending.front_mut()) else {
            return std::future::pending().await;
        };
        if let Ok(written) = pipe.write(front).await {
            let _ = front.split_to(written);
            self.bytes -= written;
            if front.is_empty() {
                self.pending.pop_front();
            }
        } else {
            // The command does not want to read any more.
            self.pipe = None;
            self.pending.clear();
            self.bytes = 0;
        }
        self.close_at_end();
    }
}

fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
