//! The process above one command: its subreaper.

use std::ffi::CString;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::SendFlags;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitStatus, kill_process_group, pidfd_open, pidfd_send_signal,
};
use rustix::time::Timespec;

use crate::launch::{Order, ProcessEntry, Report, Stage};
use crate::spawner::{Arrived, receive_packet};
use crate::sys::{self, Fork, Reaped};
use crate::tree::{self, Identity};

/// Above all numbers a program is given.
const FLOOR: i32 = 64;

/// How many processes one report names.
const MAX_NAMED: usize = 32;

/// How long KILL is repeated before what is left counts as unkillable. Only processes of
/// another user or stuck in the kernel take that long.
const KILL_LIMIT: Duration = Duration::from_secs(5);

/// Runs a supervisor to its end. Called in a fresh fork of the spawner.
pub(crate) fn run(request: Arrived) -> ! {
    sys::set_name(c"exoshell-super");
    sys::exit_now(i32::from(supervise(request).is_none()))
}

fn supervise(request: Arrived) -> Option<()> {
    let _ = rustix::process::setsid();
    let request = arrange(request).ok()?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid())).ok()?;
    let events = sys::child_events().ok()?;
    let (status_read, status_write) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).ok()?;
    let child = match sys::fork() {
        Ok(Fork::Child) => become_program(&request, &status_write),
        Ok(Fork::Parent(child)) => child,
        Err(error) => {
            report(
                &request.control,
                &Report::Failed {
                    stage: Stage::Fork,
                    errno: error.raw_os_error().unwrap_or(0),
                },
            );
            return None;
        }
    };
    // The program's descriptors must live in the program only, or its readers never see an end.
    drop(status_write);
    drop(request.descriptors);
    let control = request.control;
    if let Some((stage, errno)) = start_failure(&status_read) {
        report(&control, &Report::Failed { stage, errno });
        return Some(());
    }
    drop(status_read);
    let pid = child.as_raw_nonzero().get().cast_unsigned();
    let supervisor = std::process::id();
    report(&control, &Report::Started { pid, supervisor });
    Supervisor {
        control,
        events,
        child,
        grace_ms: request.launch.grace_ms,
    }
    .watch();
    Some(())
}

/// Moves every descriptor out of the way, then puts those that stay here to their numbers.
fn arrange(request: Arrived) -> std::io::Result<Arrived> {
    let lift = |(fd, number): (OwnedFd, u32)| {
        let lifted = rustix::io::fcntl_dupfd_cloexec(&fd, FLOOR)?;
        std::io::Result::Ok((lifted, number))
    };
    let (control, _) = lift((request.control, 0))?;
    let descriptors = request
        .descriptors
        .into_iter()
        .map(lift)
        .collect::<Result<_, _>>()?;
    let kept: Vec<(OwnedFd, u32)> = request
        .kept
        .into_iter()
        .map(lift)
        .collect::<Result<_, _>>()?;
    for (fd, number) in &kept {
        sys::install_closed_on_exec(fd.as_raw_fd(), number.cast_signed())?;
    }
    Ok(Arrived {
        launch: request.launch,
        control,
        descriptors,
        kept: Vec::new(),
    })
}

/// In the child: takes on descriptors, directory and umask, and executes the program.
fn become_program(request: &Arrived, status: &OwnedFd) -> ! {
    let fail = |stage: Stage, errno: i32| -> ! {
        let mut message = [0_u8; 8];
        message[0] = stage as u8;
        message[4..].copy_from_slice(&errno.to_le_bytes());
        let _ = rustix::io::write(status, &message);
        sys::exit_now(127)
    };
    let execute = |error: std::io::Error| -> ! {
        fail(Stage::Execute, error.raw_os_error().unwrap_or(libc::EINVAL))
    };
    // Its own session: no controlling terminal, and nothing it signals by group is ours.
    let _ = rustix::process::setsid();
    let umask = rustix::fs::Mode::from_raw_mode(request.launch.umask & 0o777);
    let _ = rustix::process::umask(umask);
    if let Err(errno) = rustix::process::chdir(request.launch.directory.as_slice()) {
        fail(Stage::Directory, errno.raw_os_error());
    }
    if let Err(error) = install(request, status) {
        execute(error);
    }
    if request.launch.terminal {
        sys::take_terminal();
    }
    sys::reset_signals();
    let strings = |list: &[Vec<u8>]| -> Result<Vec<CString>, std::ffi::NulError> {
        list.iter().map(|s| CString::new(s.as_slice())).collect()
    };
    let program = CString::new(request.launch.program.as_slice());
    let (Ok(program), Ok(arguments), Ok(environment)) = (
        program,
        strings(&request.launch.arguments),
        strings(&request.launch.environment),
    ) else {
        fail(Stage::Execute, libc::EINVAL)
    };
    execute(sys::execute(&program, &arguments, &environment))
}

/// Gives each descriptor its number. Sources are first lifted above all targets, so that none
/// is overwritten before its turn.
fn install(request: &Arrived, status: &OwnedFd) -> std::io::Result<()> {
    sys::close_all_on_exec();
    sys::lift_descriptor(status.as_raw_fd(), FLOOR)?;
    let lifted = request
        .descriptors
        .iter()
        .map(|(fd, number)| Ok((sys::lift_descriptor(fd.as_raw_fd(), FLOOR)?, *number)))
        .collect::<std::io::Result<Vec<_>>>()?;
    for (source, number) in lifted {
        sys::install_descriptor(source, number.cast_signed())?;
    }
    Ok(())
}

/// Waits until the program is executing (the pipe ends by close-on-exec) or has failed to.
fn start_failure(status: &OwnedFd) -> Option<(Stage, i32)> {
    let mut message = [0_u8; 8];
    loop {
        match rustix::io::read(status, &mut message) {
            Ok(8) => break,
            Err(Errno::INTR) => {}
            _ => return None,
        }
    }
    let stage = match message[0] {
        1 => Stage::Directory,
        _ => Stage::Execute,
    };
    let [_, _, _, _, a, b, c, d] = message;
    Some((stage, i32::from_le_bytes([a, b, c, d])))
}

fn report(control: &OwnedFd, report: &Report) {
    // A guest that is gone does not need it; its end is seen on the next poll.
    let _ = rustix::net::send(control, &report.encode(), SendFlags::NOSIGNAL);
}

struct Supervisor {
    control: OwnedFd,
    events: OwnedFd,
    child: Pid,
    grace_ms: u64,
}

impl Supervisor {
    /// Waits for the tree's end, obeying orders meanwhile.
    fn watch(mut self) {
        loop {
            if self.reap() == Tree::Gone {
                self.linger();
                return;
            }
            let mut fds = [
                PollFd::new(&self.control, PollFlags::IN),
                PollFd::new(&self.events, PollFlags::IN),
            ];
            if poll(&mut fds, None).is_err() {
                continue;
            }
            let ordered = !fds[0].revents().is_empty();
            sys::clear_child_events(&self.events);
            if !ordered {
                continue;
            }
            match receive_packet(&self.control) {
                Ok(Some(packet)) => {
                    if let Some(order) = Order::decode(&packet) {
                        self.obey(order);
                    }
                }
                Ok(None) => {
                    // The guest is gone: nobody will ever collect this command.
                    self.kill(self.grace_ms);
                    return;
                }
                Err(_) => {}
            }
        }
    }

    /// Waits until the guest has taken the last report, so that this process's own end does not
    /// compete with it for a processor.
    fn linger(&self) {
        let limit = Timespec {
            tv_sec: 1,
            tv_nsec: 0,
        };
        // Orders that come now are too late; only the guest's end of the socket matters.
        let mut fds = [PollFd::new(&self.control, PollFlags::empty())];
        let _ = poll(&mut fds, Some(&limit));
    }

    fn obey(&mut self, order: Order) {
        match order {
            Order::List => {
                let alive = named(&tree::descendants(std::process::id()));
                report(&self.control, &Report::Alive(alive));
            }
            Order::Signal { signal } => {
                if let Some(signal) = Signal::from_named_raw(signal) {
                    for identity in tree::descendants(std::process::id()) {
                        let _ = send(identity, signal);
                    }
                }
            }
            Order::Kill { grace_ms } => {
                let left = self.kill(grace_ms);
                report(&self.control, &Report::Killed(left));
            }
        }
    }

    /// Takes what ended, and tells when the program itself did.
    fn reap(&mut self) -> Tree {
        let mut program = None;
        let tree = loop {
            match sys::reap_one() {
                Reaped::One(pid, status) if pid == self.child => program = Some(status),
                Reaped::One(..) => {}
                Reaped::Waiting => break Tree::Alive,
                Reaped::NoChildren => break Tree::Gone,
            }
        };
        if let Some(status) = program {
            report(&self.control, &exit_report(status, tree));
        }
        tree
    }

    /// Ends the tree and returns what could not be ended.
    fn kill(&mut self, grace_ms: u64) -> Vec<ProcessEntry> {
        if !tree::has_proc_fs() {
            return self.kill_group(grace_ms);
        }
        let own = std::process::id();
        let deadline = Instant::now() + Duration::from_millis(grace_ms);
        // Only what is there now is told to end: what it starts from here on is its clean-up.
        for identity in tree::descendants(own) {
            let _ = send(identity, Signal::TERM);
            // A stopped process acts on TERM only when it goes on.
            let _ = send(identity, Signal::CONT);
        }
        loop {
            self.reap();
            if tree::descendants(own).is_empty() || Instant::now() >= deadline {
                break;
            }
            self.wait(Duration::from_millis(10));
        }
        self.kill_hard(own)
    }

    /// KILLs until two looks in a row find nothing, so that no fork slips through.
    fn kill_hard(&mut self, own: u32) -> Vec<ProcessEntry> {
        let limit = Instant::now() + KILL_LIMIT;
        let mut foreign: Vec<Identity> = Vec::new();
        let mut empty_looks = 0;
        loop {
            self.reap();
            let mut alive = tree::descendants(own);
            alive.retain(|identity| !foreign.contains(identity));
            if alive.is_empty() {
                empty_looks += 1;
                if empty_looks == 2 {
                    return named(&foreign);
                }
                continue;
            }
            empty_looks = 0;
            for identity in &alive {
                if send(*identity, Signal::KILL) == Err(Errno::PERM) {
                    foreign.push(*identity);
                }
            }
            if Instant::now() >= limit {
                foreign.extend(alive);
                return named(&foreign);
            }
            self.wait(Duration::from_millis(2));
        }
    }

    /// Without `/proc` only the program's own group can be found.
    fn kill_group(&mut self, grace_ms: u64) -> Vec<ProcessEntry> {
        let _ = kill_process_group(self.child, Signal::TERM);
        let deadline = Instant::now() + Duration::from_millis(grace_ms);
        while self.reap() == Tree::Alive && Instant::now() < deadline {
            self.wait(Duration::from_millis(10));
        }
        let _ = kill_process_group(self.child, Signal::KILL);
        let limit = Instant::now() + Duration::from_millis(200);
        while self.reap() == Tree::Alive && Instant::now() < limit {
            self.wait(Duration::from_millis(5));
        }
        Vec::new()
    }

    /// Waits for a child's end, but not longer than `limit`.
    fn wait(&self, limit: Duration) {
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: limit.subsec_nanos().into(),
        };
        let _ = poll(
            &mut [PollFd::new(&self.events, PollFlags::IN)],
            Some(&timeout),
        );
        sys::clear_child_events(&self.events);
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tree {
    Alive,
    Gone,
}

fn exit_report(status: WaitStatus, tree: Tree) -> Report {
    Report::Exited {
        code: status.exit_status(),
        signal: status.terminating_signal(),
        leftovers: tree == Tree::Alive,
    }
}

fn named(identities: &[Identity]) -> Vec<ProcessEntry> {
    identities
        .iter()
        .take(MAX_NAMED)
        .map(|identity| tree::describe(*identity))
        .collect()
}

/// Signals exactly this process: the descriptor pins the process, and the start time is
/// compared after it was taken, so a recycled number is never hit.
pub(crate) fn send(identity: Identity, signal: Signal) -> Result<(), Errno> {
    let pid = Pid::from_raw(identity.pid.cast_signed()).ok_or(Errno::SRCH)?;
    let descriptor = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(descriptor) => descriptor,
        Err(Errno::NOSYS) => {
            // Kernels before 5.3: the window between look and signal is as small as it gets.
            return if tree::is_alive(identity) {
                rustix::process::kill_process(pid, signal)
            } else {
                Err(Errno::SRCH)
            };
        }
        Err(errno) => return Err(errno),
    };
    if !tree::is_alive(identity) {
        return Err(Errno::SRCH);
    }
    pidfd_send_signal(descriptor, signal)
}
