//! The process that starts supervisors.

use std::collections::HashSet;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::process::{Pid, Signal, kill_process};

use crate::launch::{Descriptor, Holder, Launch, Order, Report};
use crate::supervisor;
use crate::sys::{self, Fork, Reaped};
use crate::tree;

/// How many descriptors one launch may carry, the two of ours included.
const MAX_DESCRIPTORS: usize = 16;

fn packet_pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

/// The guest's handle to its spawner.
#[derive(Debug)]
pub struct Spawner {
    socket: OwnedFd,
    pid: u32,
}

impl Spawner {
    /// Forks the spawner. Must be called before the process starts any thread.
    pub fn fork() -> io::Result<Self> {
        let (ours, theirs) = packet_pair()?;
        match sys::fork()? {
            Fork::Parent(pid) => {
                rustix::io::ioctl_fionbio(&ours, true)?;
                Ok(Self {
                    socket: ours,
                    pid: pid.as_raw_nonzero().get().cast_unsigned(),
                })
            }
            Fork::Child => {
                // Locks and pipes of the guest end with the guest, not with its spawner.
                drop(ours);
                sys::close_all_but(&theirs);
                serve(theirs);
                sys::exit_now(0)
            }
        }
    }

    /// Returns the spawner's process id.
    pub const fn pid(&self) -> u32 {
        self.pid
    }

    /// Returns the descriptor that becomes readable when the spawner is gone.
    pub fn liveness(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Starts a program under a supervisor of its own, and returns at once.
    ///
    /// What becomes of it is reported on the returned [`Control`].
    pub fn spawn(&self, launch: &Launch, descriptors: &[Descriptor<'_>]) -> io::Result<Control> {
        if descriptors.len() + 2 > MAX_DESCRIPTORS {
            return Err(io::Error::other("too many descriptors for one launch"));
        }
        let numbers: Vec<_> = descriptors.iter().map(|d| (d.number, d.holder)).collect();
        // The request travels as a file, so no socket buffer limits an environment.
        let request = sys::memory_file("launch", &launch.encode(&numbers))?;
        let (ours, theirs) = packet_pair()?;
        let mut fds = vec![request.as_fd(), theirs.as_fd()];
        fds.extend(descriptors.iter().map(|d| d.source));
        loop {
            match self.send(&fds) {
                Ok(()) => break,
                Err(rustix::io::Errno::AGAIN) => {
                    // The spawner is behind by hundreds of requests; it catches up in no time.
                    poll(&mut [PollFd::new(&self.socket, PollFlags::OUT)], None)?;
                }
                Err(errno) => return Err(errno.into()),
            }
        }
        rustix::io::ioctl_fionbio(&ours, true)?;
        Ok(Control { socket: ours })
    }

    fn send(&self, fds: &[BorrowedFd<'_>]) -> rustix::io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut ancillary = SendAncillaryBuffer::new(&mut space);
        if !ancillary.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(rustix::io::Errno::TOOBIG);
        }
        let byte = [IoSlice::new(b"L")];
        sendmsg(&self.socket, &byte, &mut ancillary, SendFlags::NOSIGNAL).map(|_| ())
    }
}

/// The guest's end of a supervisor's control socket, non-blocking.
#[derive(Debug)]
pub struct Control {
    socket: OwnedFd,
}

impl AsFd for Control {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

impl From<Control> for OwnedFd {
    fn from(control: Control) -> Self {
        control.socket
    }
}

/// Takes the next report from a supervisor's control socket; `None` when the supervisor is
/// gone, `WouldBlock` when it is silent.
pub fn receive_report(socket: impl AsFd) -> io::Result<Option<Report>> {
    receive_packet(socket)?.map_or(Ok(None), |packet| {
        Report::decode(&packet)
            .map(Some)
            .ok_or_else(|| io::Error::other("a supervisor sent an unreadable report"))
    })
}

/// Gives an order on a control socket; a supervisor that is gone has nothing left to be ordered.
pub fn send_order(socket: impl AsFd, order: Order) -> io::Result<()> {
    match rustix::net::send(socket, &order.encode(), SendFlags::NOSIGNAL) {
        Ok(_) | Err(rustix::io::Errno::PIPE | rustix::io::Errno::CONNRESET) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Takes one packet; `None` at the end.
pub(crate) fn receive_packet(socket: impl AsFd) -> io::Result<Option<Vec<u8>>> {
    let mut buffer = vec![0_u8; 32 * 1024];
    let mut received = rustix::net::recv(&socket, &mut buffer[..], RecvFlags::empty());
    if matches!(received, Err(rustix::io::Errno::CONNRESET)) {
        // The other end left something unread; what it had sent before is still here.
        received = rustix::net::recv(&socket, &mut buffer[..], RecvFlags::empty());
    }
    match received {
        Ok((0, _)) | Err(rustix::io::Errno::CONNRESET) => Ok(None),
        Ok((length, _)) => {
            buffer.truncate(length);
            Ok(Some(buffer))
        }
        Err(errno) => Err(errno.into()),
    }
}

/// The spawner's life: fork a supervisor per request, adopt and end what a killed supervisor
/// leaves behind, stop when the guest is gone.
fn serve(socket: OwnedFd) {
    sys::set_name(c"exoshell-spawn");
    let _ = rustix::process::setsid();
    let _ = rustix::process::chdir("/");
    // Orphans of a supervisor that was killed come here instead of to init.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    let Ok(events) = sys::child_events() else {
        return;
    };
    let mut own = Some((socket, events));
    let mut supervisors = HashSet::new();
    while let Some((socket, events)) = &own {
        let mut fds = [
            PollFd::new(socket, PollFlags::IN),
            PollFd::new(events, PollFlags::IN),
        ];
        if poll(&mut fds, None).is_err() {
            continue;
        }
        if fds[1].revents().contains(PollFlags::IN) {
            sys::clear_child_events(events);
            if reap(&mut supervisors) {
                end_orphans(&supervisors);
            }
        }
        if fds[0].revents().is_empty() {
            continue;
        }
        match receive_launch(socket) {
            Ok(Some(request)) => {
                if let Some(pid) = start_supervisor(request, &mut own) {
                    supervisors.insert(pid);
                }
            }
            Ok(None) => break,
            Err(_) => {}
        }
    }
    // The supervisors see the guest's end on their own sockets and clear up themselves, once
    // those that were stopped go on.
    for supervisor in &supervisors {
        let _ = kill_process(*supervisor, Signal::CONT);
    }
    end_orphans(&supervisors);
}

/// Reaps ended children. Returns whether a supervisor did not end by itself.
fn reap(supervisors: &mut HashSet<Pid>) -> bool {
    let mut killed = false;
    while let Reaped::One(pid, status) = sys::reap_one() {
        killed |= supervisors.remove(&pid) && !status.exited();
    }
    killed
}

/// Ends every child that is no supervisor, with all it started.
fn end_orphans(supervisors: &HashSet<Pid>) {
    let own = std::process::id();
    for _ in 0..100 {
        let orphans: Vec<u32> = tree::children(own, &mut None)
            .into_iter()
            .filter(|pid| {
                Pid::from_raw(pid.cast_signed()).is_some_and(|pid| !supervisors.contains(&pid))
            })
            .filter(|pid| tree::identity_of(*pid).is_some())
            .collect();
        if orphans.is_empty() {
            return;
        }
        for orphan in orphans {
            let family = tree::descendants(orphan).into_iter().map(|i| i.pid);
            for pid in std::iter::once(orphan).chain(family) {
                if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
                    let _ = kill_process(pid, Signal::KILL);
                }
            }
        }
        while let Reaped::One(..) = sys::reap_one() {}
        let _ = poll(
            &mut [],
            Some(&rustix::time::Timespec {
                tv_sec: 0,
                tv_nsec: 5_000_000,
            }),
        );
    }
}

/// A launch as it arrives.
pub(crate) struct Arrived {
    pub(crate) launch: Launch,
    pub(crate) control: OwnedFd,
    pub(crate) descriptors: Vec<(OwnedFd, u32)>,
    pub(crate) kept: Vec<(OwnedFd, u32)>,
}

fn receive_launch(socket: &OwnedFd) -> io::Result<Option<Arrived>> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0_u8; 1];
    let received = recvmsg(
        socket,
        &mut [IoSliceMut::new(&mut byte)],
        &mut ancillary,
        RecvFlags::CMSG_CLOEXEC,
    )?;
    if received.bytes == 0 {
        return Ok(None);
    }
    let mut fds: Vec<OwnedFd> = Vec::new();
    for message in ancillary.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    let bad = || io::Error::other("a launch without its descriptors");
    if fds.len() < 2 {
        return Err(bad());
    }
    let descriptors = fds.split_off(2);
    let control = fds.pop().ok_or_else(bad)?;
    let request = fds.pop().ok_or_else(bad)?;
    let (launch, numbers) = Launch::decode(&sys::read_memory_file(&request)?).ok_or_else(bad)?;
    if numbers.len() != descriptors.len() {
        return Err(bad());
    }
    let mut arrived = Arrived {
        launch,
        control,
        descriptors: Vec::new(),
        kept: Vec::new(),
    };
    for (fd, (number, holder)) in descriptors.into_iter().zip(numbers) {
        match holder {
            Holder::Program => arrived.descriptors.push((fd, number)),
            Holder::Supervisor => arrived.kept.push((fd, number)),
        }
    }
    Ok(Some(arrived))
}

/// Forks a supervisor. It gives up the spawner's own descriptors, or the guest would not notice
/// when the spawner dies.
fn start_supervisor(request: Arrived, own: &mut Option<(OwnedFd, OwnedFd)>) -> Option<Pid> {
    match sys::fork() {
        Ok(Fork::Child) => {
            *own = None;
            supervisor::run(request)
        }
        Ok(Fork::Parent(pid)) => Some(pid),
        Err(error) => {
            let report = Report::Failed {
                stage: crate::launch::Stage::Fork,
                errno: error.raw_os_error().unwrap_or(0),
            };
            let _ = rustix::net::send(&request.control, &report.encode(), SendFlags::NOSIGNAL);
            None
        }
    }
}
