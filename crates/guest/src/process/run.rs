//! A process's life: from its start to its last byte of output.

use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use exoshell_process::readable_bytes;
use exoshell_wire::{Failure, FailureKind, Happened, ProcessState, RawBytes, Start};
use tokio::net::unix::pipe::Receiver;
use tokio::sync::watch as cell;

use super::journal::now_ms;
use super::screen::Emulator;
use super::store::Store;
use super::watch::Watch;
use super::{Life, Process, Shared, Terminal};
use crate::guest::Guest;
use crate::output;
use crate::plan::Plan;
use crate::shell::Pipes;
use crate::sudo::Sudo;
use crate::tree::{Exit, Tree};

/// How much of a command's text is kept to show it.
const SHOWN_COMMAND: usize = 4096;

/// How much of the output goes with an event.
const EVENT_TAIL: usize = 2000;

/// How much of what a foreground command left running writes is kept on disk.
const ADOPTED_DISK: u64 = 8 * 1024 * 1024;

/// How long the last output of a terminal may take to arrive: the kernel passes it on in a task
/// of its own.
const TERMINAL_DRAIN: Duration = Duration::from_millis(150);

/// Starts a process and returns it once its shell runs.
pub(crate) async fn start(
    guest: &Arc<Guest>,
    request: &Start,
    command: &[u8],
) -> Result<Shared, Failure> {
    let watch = Watch::new(&request.watch)?;
    let exec = &request.exec;
    let mut plan = Plan::make(guest, exec)?;
    let started = plan.start(guest, &exec.id, command).await?;
    let session = plan.session.as_ref().map(|session| session.key.clone());
    let cwd = plan.directory().to_vec();
    let Pipes {
        stdin,
        stdout,
        stderr,
        master,
        ..
    } = started.pipes;
    let terminal = match (master, exec.terminal) {
        (Some(master), Some(size)) => Some(Terminal {
            master: Mutex::new(Some(master)),
            size: Mutex::new(size),
            emulator: Emulator::new(size),
        }),
        _ => None,
    };
    let internal = |error: std::io::Error| {
        Failure::new(
            FailureKind::Internal,
            format!("the process could not be followed: {error}"),
        )
    };
    let input = output::sender(stdin).map_err(internal)?;
    let process = Arc::new(Process {
        id: exec.id.clone(),
        session,
        command: command
            .get(..command.len().min(SHOWN_COMMAND))
            .unwrap_or_default()
            .to_vec(),
        cwd,
        pid: started.pid,
        adopted: false,
        started: Instant::now(),
        started_ms: now_ms(),
        tree: started.tree,
        store: Store::new(guest.spill_dir().join(&exec.id), request.disk_bytes),
        input: tokio::sync::Mutex::new(Some(input)),
        terminal,
        state: cell::Sender::new(Life {
            state: ProcessState::Running,
            ended: None,
        }),
        verdict: Mutex::new(None),
    });
    let pipes = [stdout, stderr]
        .into_iter()
        .map(output::receiver)
        .collect::<Result<Vec<_>, _>>()
        .map_err(internal)?;
    guest.add_process(Arc::clone(&process));
    let runner = Runner {
        guest: Arc::clone(guest),
        process: Arc::clone(&process),
        watch: Arc::new(Mutex::new(watch)),
        notify: request.notify,
    };
    let armed = exec.sudo.then(|| Sudo::arm(guest, &exec.id, &process.tree));
    tokio::spawn(async move {
        runner.run(pipes).await;
        drop(armed);
    });
    spawn_timers(guest, &process, request);
    Ok(process)
}

/// Keeps what a finished foreground command left running as a process of its own.
pub(crate) fn adopt(guest: &Arc<Guest>, id: &str, session: Option<&str>, left: Adopted) -> Shared {
    let process = Arc::new(Process {
        id: id.to_owned(),
        session: session.map(str::to_owned),
        command: left.command,
        cwd: left.cwd,
        pid: left.pid,
        adopted: true,
        started: Instant::now(),
        started_ms: now_ms(),
        tree: left.tree,
        store: Store::new(guest.spill_dir().join(id), ADOPTED_DISK),
        input: tokio::sync::Mutex::new(None),
        terminal: None,
        state: cell::Sender::new(Life {
            state: ProcessState::Running,
            ended: None,
        }),
        verdict: Mutex::new(None),
    });
    guest.add_process(Arc::clone(&process));
    let guest = Arc::clone(guest);
    let shared = Arc::clone(&process);
    tokio::spawn(async move {
        let pumps: Vec<_> = left
            .pipes
            .into_iter()
            .map(|pipe| tokio::spawn(fill(pipe, Arc::clone(&shared), None)))
            .collect();
        shared.tree.gone().await;
        for pump in &pumps {
            pump.abort();
        }
        shared.finish(ProcessState::Exited { code: None });
        guest.note_change();
    });
    process
}

/// What a foreground command left running.
pub(crate) struct Adopted {
    pub(crate) tree: Tree,
    pub(crate) pipes: Vec<Receiver>,
    pub(crate) command: Vec<u8>,
    pub(crate) cwd: Vec<u8>,
    pub(crate) pid: u32,
}

impl Process {
    /// Notes the end, once. What was asked for goes before what it looks like.
    fn finish(&self, seen: ProcessState) {
        let verdict = *self.verdict.lock().unwrap_or_else(PoisonError::into_inner);
        self.state.send_modify(|life| {
            if !life.state.is_over() {
                life.state = verdict.unwrap_or(seen);
                life.ended = Some(Instant::now());
            }
        });
    }

    fn take_output(&self, bytes: &[u8]) {
        if let Some(terminal) = &self.terminal {
            terminal.emulator.push(bytes);
        }
        self.store.push(bytes);
    }

    fn tail(&self) -> RawBytes {
        RawBytes(self.store.tail(EVENT_TAIL).bytes)
    }
}

/// Follows one process to its end.
struct Runner {
    guest: Arc<Guest>,
    process: Shared,
    watch: Arc<Mutex<Watch>>,
    notify: bool,
}

impl Runner {
    async fn run(self, pipes: Vec<Receiver>) {
        let process = &self.process;
        let observer = Observer {
            guest: Arc::clone(&self.guest),
            watch: Arc::clone(&self.watch),
        };
        let (stop, stopped) = cell::channel(false);
        let pumps: Vec<_> = pipes
            .into_iter()
            .map(|pipe| {
                let job = Fill {
                    process: Arc::clone(process),
                    observer: Some(observer.clone()),
                };
                tokio::spawn(job.until(pipe, stopped.clone()))
            })
            .collect();
        let exit = process.tree.exited().await;
        if process.terminal.is_some() {
            let _ = tokio::time::timeout(TERMINAL_DRAIN, process.tree.gone()).await;
            tokio::task::yield_now().await;
        }
        stop.send_replace(true);
        let mut open = Vec::new();
        for pump in pumps {
            open.extend(pump.await.ok().flatten());
        }
        *process.input.lock().await = None;
        if let Some(terminal) = &process.terminal {
            let mut master = terminal
                .master
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            *master = None;
        }
        self.announce(state_of(exit));
        // What it left behind goes on writing to the same store.
        for pipe in open {
            tokio::spawn(fill(pipe, Arc::clone(process), None));
        }
        self.guest.note_change();
    }

    /// Notes the end and tells of it, the watch's last word first: nothing comes after the end.
    fn announce(&self, seen: ProcessState) {
        let process = &self.process;
        let last = self
            .watch
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .finish();
        let journal = self.guest.journal();
        for happened in last {
            journal.add(&process.id, process.session.as_deref(), happened);
        }
        process.finish(seen);
        if self.notify {
            let happened = Happened::Completed {
                state: process.state(),
                tail: process.tail(),
            };
            journal.add(&process.id, process.session.as_deref(), happened);
        }
    }
}

fn state_of(exit: Option<Exit>) -> ProcessState {
    match exit {
        Some(Exit {
            code: Some(code), ..
        }) => ProcessState::Exited { code: Some(code) },
        Some(Exit {
            signal: Some(signal),
            ..
        }) => ProcessState::Signalled { signal },
        // Its supervisor was killed, and the process with it.
        _ => ProcessState::Signalled { signal: 9 },
    }
}

/// Looks at output on its way to the store.
#[derive(Clone)]
struct Observer {
    guest: Arc<Guest>,
    watch: Arc<Mutex<Watch>>,
}

impl Observer {
    fn look(&self, process: &Process, bytes: &[u8]) {
        let events = self
            .watch
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(bytes);
        for happened in events {
            self.guest
                .journal()
                .add(&process.id, process.session.as_deref(), happened);
        }
    }
}

struct Fill {
    process: Shared,
    observer: Option<Observer>,
}

impl Fill {
    /// Moves a pipe into the store until its end or until `stop`; returns the pipe when
    /// something may still write to it.
    async fn until(self, pipe: Receiver, mut stop: cell::Receiver<bool>) -> Option<Receiver> {
        let mut buffer = vec![0_u8; 32 * 1024];
        loop {
            tokio::select! {
                biased;
                ready = pipe.readable() => {
                    ready.ok()?;
                    self.take(&pipe, &mut buffer)?;
                }
                _ = stop.wait_for(|stop| *stop) => break,
            }
            if *stop.borrow() {
                break;
            }
            // A process that never stops writing must not keep the others waiting.
            tokio::task::yield_now().await;
        }
        // Whatever was written before the end is in the pipe now.
        let mut left = usize::try_from(readable_bytes(pipe.as_fd())).unwrap_or(0);
        while left > 0 {
            // Straight from the pipe: the runtime's idea of its readiness may be a turn old.
            let taken = self.note(
                rustix::io::read(pipe.as_fd(), &mut buffer).map_err(std::io::Error::from),
                &buffer,
            )?;
            if taken == 0 {
                break;
            }
            left = left.saturating_sub(taken);
        }
        exoshell_process::has_writers(pipe.as_fd()).then_some(pipe)
    }

    /// Moves what is there; `None` at the end of the pipe.
    fn take(&self, pipe: &Receiver, buffer: &mut [u8]) -> Option<usize> {
        let read = pipe.try_read(buffer);
        self.note(read, buffer)
    }

    fn note(&self, read: std::io::Result<usize>, buffer: &[u8]) -> Option<usize> {
        match read {
            Ok(0) => None,
            Ok(length) => {
                let bytes = buffer.get(..length).unwrap_or_default();
                if let Some(observer) = &self.observer {
                    observer.look(&self.process, bytes);
                }
                self.process.take_output(bytes);
                Some(length)
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Some(0),
            // A terminal whose programs are gone answers with an error instead of an end.
            Err(_) => None,
        }
    }
}

/// Moves a pipe into the store until its end.
async fn fill(pipe: Receiver, process: Shared, observer: Option<Observer>) {
    let (_keep, never) = cell::channel(false);
    Fill { process, observer }.until(pipe, never).await;
}

fn spawn_timers(guest: &Arc<Guest>, process: &Shared, request: &Start) {
    if let Some(limit) = request.exec.timeout_ms {
        let process = Arc::clone(process);
        let grace_ms = request.exec.grace_ms;
        tokio::spawn(async move {
            tokio::select! {
                () = process.over() => {}
                () = tokio::time::sleep(Duration::from_millis(limit)) => {
                    process.kill(ProcessState::Timeout, grace_ms).await;
                }
            }
        });
    }
    if let Some(period) = request.check_interval_ms {
        let process = Arc::clone(process);
        let guest = Arc::clone(guest);
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    // Nothing follows the end.
                    biased;
                    () = process.over() => return,
                    () = tokio::time::sleep(Duration::from_millis(period.max(1000))) => {}
                }
                let happened = Happened::Progress {
                    uptime_ms: crate::milliseconds(process.started.elapsed()),
                    tail: process.tail(),
                };
                guest
                    .journal()
                    .add(&process.id, process.session.as_deref(), happened);
            }
        });
    }
}
