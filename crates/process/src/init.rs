//! The main process of a container.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::process::{Pid, WaitStatus};

use crate::sys::{self, Fork, Reaped};

/// The signals that ask for the end.
const STOP_SIGNALS: [i32; 3] = [libc::SIGTERM, libc::SIGINT, libc::SIGHUP];

/// Becomes an init: runs a job as a child, reaps whatever comes to it, and returns the job's
/// exit code, or 128 plus the signal that ended it.
///
/// TERM, INT and HUP close the pipe whose other end the job has; it should then end. One that
/// takes longer than `limit` is not waited for: in a container everything ends with its init.
///
/// Must be called before any thread exists.
pub fn run_init(limit: Duration, job: impl FnOnce(OwnedFd) -> i32) -> io::Result<i32> {
    let (stopped, stop) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let [term, int, hup] = STOP_SIGNALS;
    // Blocked before the fork, so that none is lost in between.
    let events = sys::signal_events(&[libc::SIGCHLD, term, int, hup])?;
    match sys::fork()? {
        Fork::Child => {
            drop((stop, events));
            sys::reset_signals();
            // A terminal's signals are for the init.
            let _ = rustix::process::setsid();
            sys::exit_now(job(stopped))
        }
        Fork::Parent(child) => {
            drop(stopped);
            sys::set_name(c"exoshell-init");
            // As the first process of its namespace it has the orphans anyway.
            let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
            Ok(watch(child, &events, stop, limit))
        }
    }
}

/// Reaps until the child has ended. Returns what to exit with.
fn watch(child: Pid, events: &OwnedFd, stop: OwnedFd, limit: Duration) -> i32 {
    let mut stop = Some(stop);
    let mut deadline: Option<Instant> = None;
    loop {
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return 128 + libc::SIGKILL;
        }
        let wait = left.and_then(|left| rustix::time::Timespec::try_from(left).ok());
        let _ = poll(&mut [PollFd::new(events, PollFlags::IN)], wait.as_ref());
        while let Some(signal) = sys::next_signal(events) {
            if STOP_SIGNALS.contains(&signal) {
                stop = None;
                deadline.get_or_insert_with(|| Instant::now() + limit);
            }
        }
        while let Reaped::One(pid, status) = sys::reap_one() {
            if pid == child {
                drop(stop);
                return code(status);
            }
        }
    }
}

fn code(status: WaitStatus) -> i32 {
    status
        .exit_status()
        .or_else(|| status.terminating_signal().map(|signal| 128 + signal))
        .unwrap_or(1)
}
