//! A process's life: from its start to its last byte of output.

use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use exoshell_process::readable_bytes;
use exoshell_redact::{RedactStream, Redactor};
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

/// How long output may pause before a few letters that were held back are shown.
const PAUSE: Duration = Duration::from_millis(50);

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
    let redactor = guest.redactor(&plan.hidden).get();
    let process = Arc::new(Process {
        id: exec.id.clone(),
        session,
        command: shown_command(&redactor, command),
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
        .map(|pipe| {
            Ok(Source {
                pipe: output::receiver(pipe)?,
                redact: redactor.stream(),
            })
        })
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
        command: shown_command(&left.redactor, &left.command),
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
        let (stop, stopped) = cell::channel(false);
        let pumps: Vec<_> = left
            .pipes
            .into_iter()
            .map(|pipe| {
                let source = Source {
                    pipe,
                    redact: left.redactor.stream(),
                };
                let job = Fill::new(&shared, None);
                tokio::spawn(job.until(source, stopped.clone()))
            })
            .collect();
        shared.tree.gone().await;
        stop.send_replace(true);
        for pump in pumps {
            if let Ok(Some(mut source)) = pump.await {
                shared.take_output(&source.redact.finish());
            }
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
    pub(crate) redactor: Redactor,
}

/// Returns the text of a command as it is shown: its secrets are hidden before it is cut, for half
/// a secret has no shape.
fn shown_command(redactor: &Redactor, command: &[u8]) -> Vec<u8> {
    // What is cut off need not be looked at; a secret at the edge is still whole.
    let command = command
        .get(..command.len().min(2 * SHOWN_COMMAND))
        .unwrap_or_default();
    let mut shown = redactor.redact_bytes(command).into_owned();
    shown.truncate(SHOWN_COMMAND);
    shown
}

/// Where a process's output comes from, and what hides the secrets in it.
struct Source {
    pipe: Receiver,
    redact: RedactStream,
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
    async fn run(self, sources: Vec<Source>) {
        let process = &self.process;
        let observer = Observer {
            guest: Arc::clone(&self.guest),
            watch: Arc::clone(&self.watch),
        };
        let (stop, stopped) = cell::channel(false);
        let pumps: Vec<_> = sources
            .into_iter()
            .map(|source| {
                let job = Fill::new(process, Some(observer.clone()));
                tokio::spawn(job.until(source, stopped.clone()))
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
        for source in open {
            tokio::spawn(fill(source, Arc::clone(process)));
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
    /// Taken and given back, so that it is allocated once.
    out: Vec<u8>,
}

impl Fill {
    fn new(process: &Shared, observer: Option<Observer>) -> Self {
        Self {
            process: Arc::clone(process),
            observer,
            out: Vec::new(),
        }
    }

    /// Moves a pipe into the store until its end or until `stop`; returns the pipe when
    /// something may still write to it.
    async fn until(mut self, mut source: Source, mut stop: cell::Receiver<bool>) -> Option<Source> {
        let mut buffer = vec![0_u8; 32 * 1024];
        let mut relaxed = true;
        loop {
            tokio::select! {
                biased;
                ready = source.pipe.readable() => {
                    let read = match ready {
                        Ok(()) => source.pipe.try_read(&mut buffer),
                        Err(error) => Err(error),
                    };
                    self.note(&mut source.redact, read, &buffer)?;
                    relaxed = source.redact.held() == 0;
                }
                _ = stop.wait_for(|stop| *stop) => break,
                () = tokio::time::sleep(PAUSE), if !relaxed => {
                    // A prompt is shown to its last letter; if those few letters begin a secret,
                    // the rest of it is hidden all the same.
                    relaxed = true;
                    self.out.extend(source.redact.relax());
                    self.hand_on();
                }
            }
            if *stop.borrow() {
                break;
            }
            // A process that never stops writing must not keep the others waiting.
            tokio::task::yield_now().await;
        }
        // Whatever was written before the end is in the pipe now.
        let mut left = usize::try_from(readable_bytes(source.pipe.as_fd())).unwrap_or(0);
        while left > 0 {
            // Straight from the pipe: the runtime's idea of its readiness may be a turn old.
            let read = rustix::io::read(source.pipe.as_fd(), &mut buffer);
            let read = read.map_err(std::io::Error::from);
            let taken = self.note(&mut source.redact, read, &buffer)?;
            if taken == 0 {
                break;
            }
            left = left.saturating_sub(taken);
        }
        if exoshell_process::has_writers(source.pipe.as_fd()) {
            return Some(source);
        }
        self.end(&mut source.redact);
        None
    }

    /// Takes what was read, and returns how much; `None` at the end of the pipe.
    fn note(
        &mut self,
        redact: &mut RedactStream,
        read: std::io::Result<usize>,
        buffer: &[u8],
    ) -> Option<usize> {
        match read {
            Ok(length) if length > 0 => {
                let bytes = buffer.get(..length).unwrap_or_default();
                redact.push_into(bytes, &mut self.out);
                self.hand_on();
                Some(length)
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Some(0),
            // A terminal whose programs are gone answers with an error instead of an end.
            Ok(_) | Err(_) => {
                self.end(redact);
                None
            }
        }
    }

    /// Shows what was held back: no more will come.
    fn end(&mut self, redact: &mut RedactStream) {
        redact.finish_into(&mut self.out);
        self.hand_on();
    }

    fn hand_on(&mut self) {
        if self.out.is_empty() {
            return;
        }
        if let Some(observer) = &self.observer {
            observer.look(&self.process, &self.out);
        }
        self.process.take_output(&self.out);
        self.out.clear();
    }
}

/// Moves a pipe into the store until its end.
async fn fill(source: Source, process: Shared) {
    let (_keep, never) = cell::channel(false);
    Fill::new(&process, None).until(source, never).await;
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
