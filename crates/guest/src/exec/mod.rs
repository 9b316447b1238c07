//! Running one command.

mod audience;
mod line;
mod log;
mod outputs;
pub(crate) mod resume;
mod stdin;
mod watch;

use std::sync::Arc;
use std::time::{Duration, Instant};

use exoshell_mux::{Channel, Item};
use exoshell_wire::{
    Cause, Exec, ExecDone, ExecStarted, Failure, FailureKind, Note, Outcome, ProcessInfo, RawBytes,
    Reply, SessionRef, ShellKind, Timings, stream,
};
use tokio::net::unix::pipe::Receiver;

pub(crate) use audience::Audience;
use line::Line;
use outputs::{Moved, Outputs};
use watch::Watch;

use crate::connection::answer;
use crate::guest::Guest;
use crate::plan::{Plan, Started};
use crate::process::{self, Adopted, describe};
use crate::shell::{Pipes, sh_file};
use crate::sudo::Sudo;
use crate::tree::{Exit, Tree};

/// The longest command text.
const MAX_COMMAND: usize = 64 * 1024 * 1024;

/// Runs a command and answers on its channel.
pub(crate) async fn serve(guest: Arc<Guest>, mut channel: Channel, exec: Exec) {
    match receive_command(&mut channel).await {
        Some(Ok(command)) => run(&guest, channel, &exec, &command).await,
        Some(Err(failure)) => answer(channel, &Reply::<ExecDone>::Failed(failure)),
        // The host is gone, and nothing was started.
        None => {}
    }
    if let SessionRef::Key(key) = &exec.session
        && let Some(session) = guest.session(key)
    {
        guest.prepare(&session);
    }
}

async fn run(guest: &Arc<Guest>, channel: Channel, exec: &Exec, command: &[u8]) {
    let arrived = Instant::now();
    let mut plan = match Plan::make(guest, exec) {
        Ok(plan) => plan,
        Err(failure) => return answer(channel, &Reply::<ExecDone>::Failed(failure)),
    };
    let mut line = Line::new(guest, channel, exec);
    let result = match plan.start(guest, &exec.id, command).await {
        Ok(started) => {
            let timings = Timings {
                spawn_us: microseconds(arrived.elapsed()),
                warm: started.warm,
                ..Timings::default()
            };
            let armed = exec.sudo.then(|| Sudo::arm(guest, &exec.id, &started.tree));
            line.event(&ExecStarted {
                pid: started.pid,
                secrets: plan.hidden.told().clone(),
            });
            let run = Run {
                guest,
                exec,
                plan,
                timings,
            };
            let result = run.follow(&mut line, started).await;
            drop(armed);
            result
        }
        Err(failure) => {
            drop(plan);
            Err(failure)
        }
    };
    if !line.is_over() {
        line.conclude(&Reply::from(result)).await;
    }
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
    async fn follow(mut self, line: &mut Line, started: Started) -> Result<ExecDone, Failure> {
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
        let outputs = match Outputs::start(
            self.guest,
            self.exec,
            &self.plan.hidden,
            [stdout, stderr],
            &line.sink(),
        ) {
            Ok(outputs) => outputs,
            Err(error) => {
                tree.kill(0).await;
                return Err(Failure::new(
                    FailureKind::Internal,
                    format!("the output could not be followed: {error}"),
                ));
            }
        };
        let mut end = Watch::new(self.exec, stdin).until_end(line, &tree).await;
        if listed.was_ended() {
            end.cause = Cause::Interrupted;
        }
        self.timings.run_us = microseconds(began.elapsed());
        let drained = Instant::now();
        let moved = outputs.finish(&tree, end.exit, master.is_some());
        let moved = finish_on(line, moved).await;
        self.remove_command_files();
        if end.cause == Cause::Ended && !self.plan.carry_over(self.guest, self.exec, &capture) {
            self.plan.notes.push(Note::StateNotCaptured);
        }
        let leftovers = self
            .leftovers(&tree, end.exit, key.as_deref(), moved.open)
            .await;
        drop((listed, master));
        self.timings.drain_us = microseconds(drained.elapsed());
        Ok(ExecDone {
            outcome: outcome(end.exit),
            cause: end.cause,
            cwd: RawBytes(self.plan.cwd()),
            leftovers,
            unkillable: describe(&self.exec.id, key.as_deref(), end.unkillable),
            spill: moved.spill,
            notes: std::mem::take(&mut self.plan.notes),
            timings: self.timings,
            stdout_bytes: moved.stdout_bytes,
            stderr_bytes: moved.stderr_bytes,
        })
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
            redactor: self.guest.redactor(&self.plan.hidden).get(),
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

/// Collects the last output. It may have to wait for a host that is away, which comes back or
/// does not.
async fn finish_on(line: &mut Line, moved: impl Future<Output = Moved>) -> Moved {
    tokio::pin!(moved);
    loop {
        tokio::select! {
            biased;
            moved = &mut moved => return moved,
            _ = line.next(false) => {}
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

fn microseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
