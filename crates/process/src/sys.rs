//! The few system calls that have no safe wrapper, each made safe here.
#![expect(
    unsafe_code,
    reason = "fork, exec, signal masks and descriptor ranges have no safe form"
)]

use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, FromRawFd as _, OwnedFd, RawFd};

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::process::{Pid, WaitOptions, WaitStatus, wait};

/// Which side of a fork this is.
#[derive(Debug)]
pub(crate) enum Fork {
    Child,
    Parent(Pid),
}

/// Forks. Only for processes with a single thread, where the child may go on as usual.
pub(crate) fn fork() -> io::Result<Fork> {
    // SAFETY: every caller is single-threaded (the spawner is forked before any thread exists,
    // and its descendants start none), so no lock can be held by a thread that is not copied.
    let result = unsafe { libc::fork() };
    match result {
        -1 => Err(io::Error::last_os_error()),
        0 => Ok(Fork::Child),
        pid => Pid::from_raw(pid)
            .map(Fork::Parent)
            .ok_or_else(|| io::Error::other("fork returned a negative process id")),
    }
}

/// Goes on as a daemon: the caller's process waits until the daemon tells how its start went,
/// and ends with that.
///
/// Returns in the daemon only, with the pipe to tell it on: nothing but an end of file is
/// success, any text is the reason of a failure. Must be called before any thread exists.
pub fn fork_daemon() -> io::Result<OwnedFd> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    match fork()? {
        Fork::Child => {
            drop(read);
            rustix::process::setsid()?;
            Ok(write)
        }
        Fork::Parent(_) => {
            drop(write);
            let mut reason = Vec::new();
            let mut buffer = [0_u8; 4096];
            while let Ok(length) = rustix::io::read(&read, &mut buffer) {
                match buffer.get(..length) {
                    Some([]) | None => break,
                    Some(text) => reason.extend_from_slice(text),
                }
            }
            let _ = rustix::io::write(rustix::stdio::stderr(), &reason);
            exit_now(if reason.is_empty() { 0 } else { 125 })
        }
    }
}

/// Runs something in a fork and waits for its end. Must be called before any thread exists.
pub fn run_forked(job: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    match fork()? {
        Fork::Child => exit_now(i32::from(job().is_err())),
        Fork::Parent(pid) => {
            let status = rustix::process::waitpid(Some(pid), WaitOptions::empty())?;
            match status.and_then(|(_, status)| status.exit_status()) {
                Some(0) => Ok(()),
                _ => Err(io::Error::other("the guest's daemon could not be started")),
            }
        }
    }
}

/// Ends this process at once, without running anything of the process it was forked from.
pub(crate) fn exit_now(code: i32) -> ! {
    // SAFETY: `_exit` has no preconditions and does not return.
    unsafe { libc::_exit(code) }
}

/// Replaces this process. Returns only on failure.
pub(crate) fn execute(
    program: &CString,
    arguments: &[CString],
    environment: &[CString],
) -> io::Error {
    let pointers = |strings: &[CString]| -> Vec<*const libc::c_char> {
        strings
            .iter()
            .map(|s| s.as_ptr())
            .chain(std::iter::once(std::ptr::null()))
            .collect()
    };
    let argv = pointers(arguments);
    let envp = pointers(environment);
    // SAFETY: all three point to NUL-terminated strings and NULL-terminated arrays that outlive
    // the call.
    unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), envp.as_ptr()) };
    io::Error::last_os_error()
}

/// Gives a descriptor a fixed number, without close-on-exec.
pub(crate) fn install_descriptor(source: RawFd, number: RawFd) -> io::Result<()> {
    // SAFETY: the caller runs in a forked child whose descriptor table is its own, and owns
    // every number it installs over.
    let result = unsafe { libc::dup2(source, number) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Gives a descriptor a fixed number that ends with the next exec.
pub(crate) fn install_closed_on_exec(source: RawFd, number: RawFd) -> io::Result<()> {
    // SAFETY: the caller runs in a forked child that has moved all it needs off these numbers.
    let result = unsafe { libc::dup3(source, number, libc::O_CLOEXEC) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Moves a descriptor to the first free number from `floor` on, with close-on-exec.
pub(crate) fn lift_descriptor(source: RawFd, floor: RawFd) -> io::Result<RawFd> {
    // SAFETY: duplicating a descriptor affects no memory.
    let result = unsafe { libc::fcntl(source, libc::F_DUPFD_CLOEXEC, floor) };
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(result)
}

/// Marks every descriptor from 3 on to be closed by the next exec. On kernels before 5.11 only
/// those that already are get closed, which is all that this program opens itself.
pub(crate) fn close_all_on_exec() {
    const CLOSE_RANGE_CLOEXEC: libc::c_uint = 4;
    let first: libc::c_uint = 3;
    // SAFETY: changing a flag of descriptors affects no memory and no owner.
    unsafe {
        libc::syscall(
            libc::SYS_close_range,
            first,
            libc::c_uint::MAX,
            CLOSE_RANGE_CLOEXEC,
        )
    };
}

/// Closes every descriptor from 3 on: whatever a careless caller let this process inherit.
///
/// Only for the very start of a program, before it opened anything itself.
pub fn close_inherited() {
    close_range(3, libc::c_uint::MAX);
}

/// Closes every descriptor from 3 on but this one, in a fork that goes its own way.
pub(crate) fn close_all_but(kept: &OwnedFd) {
    let kept = kept.as_raw_fd().cast_unsigned();
    if kept > 3 {
        close_range(3, kept - 1);
    }
    close_range(kept + 1, libc::c_uint::MAX);
}

fn close_range(first: libc::c_uint, last: libc::c_uint) {
    // SAFETY: both callers own none of these descriptors: one has opened nothing yet, the other
    // is a fork that never drops what it was copied with.
    let result = unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) };
    if result == 0 {
        return;
    }
    // Kernels before 5.9 do not know the call.
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile)
        .current
        .and_then(|limit| libc::c_uint::try_from(limit).ok())
        .unwrap_or(65_536)
        .min(65_536);
    for number in first..=last.min(limit) {
        // SAFETY: as above.
        unsafe { libc::close(number.cast_signed()) };
    }
}

/// Blocks SIGCHLD and returns a descriptor that becomes readable when a child changes.
pub(crate) fn child_events() -> io::Result<OwnedFd> {
    signal_events(&[libc::SIGCHLD])
}

/// Blocks these signals and returns a descriptor that becomes readable when one comes.
pub(crate) fn signal_events(signals: &[i32]) -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised by sigemptyset before use; the calls touch nothing else.
    let fd = unsafe {
        let mut set = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut set);
        for signal in signals {
            libc::sigaddset(&raw mut set, *signal);
        }
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK)
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: signalfd returned a fresh descriptor that nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Takes the next signal that is pending on a descriptor of [`signal_events`].
pub(crate) fn next_signal(events: &OwnedFd) -> Option<i32> {
    let mut record = [0_u8; size_of::<libc::signalfd_siginfo>()];
    let length = rustix::io::read(events, &mut record[..]).ok()?;
    // The record begins with the signal's number.
    let number = record.get(..length)?.first_chunk::<4>()?;
    Some(i32::from_ne_bytes(*number))
}

/// Takes what is pending on a descriptor of [`child_events`].
pub(crate) fn clear_child_events(events: &OwnedFd) {
    while next_signal(events).is_some() {}
}

/// Gives every signal its default action and an empty mask, as a new program expects.
pub(crate) fn reset_signals() {
    // SAFETY: installing default actions and an empty mask has no preconditions.
    unsafe {
        for signal in 1..=64 {
            // KILL, STOP and the two that libc keeps refuse; that is fine.
            libc::signal(signal, libc::SIG_DFL);
        }
        let mut set = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut set);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const set, std::ptr::null_mut());
    }
}

/// Makes the terminal on descriptor 1 the controlling one of this new session. A terminal that
/// refuses still works as plain input and output.
pub(crate) fn take_terminal() {
    // SAFETY: the call concerns a descriptor of this process and no memory.
    unsafe { libc::ioctl(1, libc::TIOCSCTTY, 0) };
}

/// Ends a process of ours for good, even one that was stopped.
pub fn end_process(pid: u32) {
    if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
        // One that is gone is what was wanted.
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

/// Makes writes to a closed pipe return an error instead of ending the process.
pub fn block_pipe_signal() {
    // SAFETY: ignoring a signal has no preconditions.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
}

/// Names this process in process lists.
pub(crate) fn set_name(name: &'static std::ffi::CStr) {
    // SAFETY: the name is NUL-terminated and the kernel copies it.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// Takes the status of one ended child, if there is one.
pub(crate) enum Reaped {
    /// A child ended.
    One(Pid, WaitStatus),
    /// Children exist, none ended.
    Waiting,
    /// There are no children.
    NoChildren,
}

/// Takes the status of one ended child.
pub(crate) fn reap_one() -> Reaped {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) => return Reaped::One(pid, status),
            Ok(None) => return Reaped::Waiting,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return Reaped::NoChildren,
        }
    }
}

/// Makes an anonymous file in memory with this content, its position at the start.
pub fn memory_file(name: &str, content: &[u8]) -> io::Result<OwnedFd> {
    let fd = memfd_create(name, MemfdFlags::CLOEXEC)?;
    fill_memory_file(&fd, content)?;
    Ok(fd)
}

/// Makes an anonymous file in memory that nobody can change any more, whoever opens it.
pub fn sealed_memory_file(name: &str, content: &[u8]) -> io::Result<OwnedFd> {
    use rustix::fs::{SealFlags, fcntl_add_seals};
    let fd = memfd_create(name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    fill_memory_file(&fd, content)?;
    let all = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    fcntl_add_seals(&fd, all)?;
    Ok(fd)
}

fn fill_memory_file(fd: &OwnedFd, content: &[u8]) -> io::Result<()> {
    let mut written = 0;
    while let Some(rest) = content.get(written..).filter(|rest| !rest.is_empty()) {
        written += rustix::io::pwrite(fd, rest, written as u64)?;
    }
    Ok(())
}

/// Reads all of a file in memory, wherever its position is.
pub fn read_memory_file(file: &OwnedFd) -> io::Result<Vec<u8>> {
    let size = usize::try_from(rustix::fs::fstat(file)?.st_size).unwrap_or(0);
    let mut content = vec![0; size];
    let mut done = 0;
    while let Some(rest) = content.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match rustix::io::pread(file, rest, done as u64)? {
            0 => break,
            read => done += read,
        }
    }
    content.truncate(done);
    Ok(content)
}

/// Tells how many bytes wait in a pipe.
pub fn readable_bytes(pipe: impl AsFd) -> u64 {
    rustix::io::ioctl_fionread(pipe).unwrap_or(0)
}

/// Tells whether anything can still write to a pipe.
pub fn has_writers(pipe: impl AsFd) -> bool {
    use rustix::event::{PollFd, PollFlags, poll};
    let pipe = pipe.as_fd();
    let mut fds = [PollFd::new(&pipe, PollFlags::empty())];
    let now = rustix::time::Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut fds, Some(&now)).is_err() || !fds[0].revents().contains(PollFlags::HUP)
}

/// Asks for a larger pipe; the kernel may grant less.
pub fn pipe_capacity(pipe: impl AsFd, bytes: i32) {
    // SAFETY: setting a pipe's size affects no memory of ours.
    unsafe { libc::fcntl(pipe.as_fd().as_raw_fd(), libc::F_SETPIPE_SZ, bytes) };
}
