//! One command's process tree, as the guest's tasks see it.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use exoshell_process::{Control, Order, ProcessEntry, Report, Stage, receive_report, send_order};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot, watch};

/// How long a supervisor may take beyond the grace: its own limit for KILL, and a little.
const KILL_LIMIT: Duration = Duration::from_secs(6);

/// How long it may take to tell what is alive.
const LIST_LIMIT: Duration = Duration::from_secs(2);

/// How the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exit {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    /// Whether anything it started was alive at that moment.
    pub(crate) leftovers: bool,
}

/// Why the program did not start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StartFailure {
    pub(crate) stage: Stage,
    pub(crate) errno: i32,
}

/// What is known of a tree.
#[derive(Debug, Clone, Copy, Default)]
struct Status {
    pid: Option<u32>,
    supervisor: Option<u32>,
    failure: Option<StartFailure>,
    exit: Option<Exit>,
    gone: bool,
}

enum Ask {
    Kill {
        grace_ms: u64,
        answer: oneshot::Sender<Vec<ProcessEntry>>,
    },
    List(oneshot::Sender<Vec<ProcessEntry>>),
    Signal(i32),
}

/// A handle to a tree; clones share it. When the last one is dropped the tree is ended.
#[derive(Debug, Clone)]
pub(crate) struct Tree {
    asks: mpsc::Sender<Ask>,
    status: watch::Receiver<Status>,
}

impl Tree {
    /// Starts following a supervisor.
    pub(crate) fn follow(control: Control) -> io::Result<Self> {
        // Any kind of unix socket will do for waiting; the packets are read by their own call.
        let control = UnixStream::from_std(OwnedFd::from(control).into())?;
        let (asks, inbox) = mpsc::channel(16);
        let (sender, status) = watch::channel(Status::default());
        tokio::spawn(follow(control, inbox, sender));
        Ok(Self { asks, status })
    }

    /// Waits until the program runs, and returns its process id.
    pub(crate) async fn started(&self) -> Result<u32, StartFailure> {
        let lost = StartFailure {
            stage: Stage::Fork,
            errno: 0,
        };
        let status = self
            .wait(|s| s.pid.is_some() || s.failure.is_some() || s.gone)
            .await;
        match (status.failure, status.pid) {
            (Some(failure), _) => Err(failure),
            (None, Some(pid)) => Ok(pid),
            (None, None) => Err(lost),
        }
    }

    /// Waits until the program ended; `None` when its supervisor disappeared.
    pub(crate) async fn exited(&self) -> Option<Exit> {
        self.wait(|s| s.exit.is_some() || s.gone).await.exit
    }

    /// Tells whether the program has ended already.
    pub(crate) fn has_ended(&self) -> bool {
        let status = self.status.borrow();
        status.exit.is_some() || status.gone
    }

    /// Returns the process above all of the tree, once it runs.
    pub(crate) fn supervisor(&self) -> Option<u32> {
        self.status.borrow().supervisor
    }

    /// Waits until nothing of the tree is left.
    pub(crate) async fn gone(&self) {
        self.wait(|s| s.gone).await;
    }

    /// Ends the whole tree and returns what could not be ended.
    pub(crate) async fn kill(&self, grace_ms: u64) -> Vec<ProcessEntry> {
        let (answer, left) = oneshot::channel();
        let limit = Duration::from_millis(grace_ms) + KILL_LIMIT;
        let asked = async {
            let _ = self.asks.send(Ask::Kill { grace_ms, answer }).await;
            left.await.unwrap_or_default()
        };
        if let Ok(left) = tokio::time::timeout(limit, asked).await {
            return left;
        }
        // The supervisor does not act; a command may have stopped it. The spawner ends whatever a
        // killed one leaves behind.
        let supervisor = self.status.borrow().supervisor;
        if let Some(supervisor) = supervisor {
            exoshell_process::end_process(supervisor);
            self.gone().await;
        }
        Vec::new()
    }

    /// Sends a signal to every process of the tree.
    pub(crate) async fn signal(&self, signal: i32) {
        // A tree that is gone needs no signal.
        let _ = self.asks.send(Ask::Signal(signal)).await;
    }

    /// Lists what is alive.
    pub(crate) async fn list(&self) -> Vec<ProcessEntry> {
        let (answer, alive) = oneshot::channel();
        let asked = async {
            let _ = self.asks.send(Ask::List(answer)).await;
            alive.await.unwrap_or_default()
        };
        // One that does not answer has nothing to tell.
        tokio::time::timeout(LIST_LIMIT, asked)
            .await
            .unwrap_or_default()
    }

    async fn wait(&self, condition: impl Fn(&Status) -> bool) -> Status {
        let mut status = self.status.clone();
        // The follower marks the tree as gone before it ends, so a closed channel is impossible
        // without it; the last value is the answer either way.
        let found = status.wait_for(condition).await.map(|value| *value);
        match found {
            Ok(value) => value,
            Err(_) => Status {
                gone: true,
                ..*self.status.borrow()
            },
        }
    }
}

async fn follow(
    control: UnixStream,
    mut inbox: mpsc::Receiver<Ask>,
    status: watch::Sender<Status>,
) {
    let mut kills: VecDeque<oneshot::Sender<Vec<ProcessEntry>>> = VecDeque::new();
    let mut lists: VecDeque<oneshot::Sender<Vec<ProcessEntry>>> = VecDeque::new();
    loop {
        tokio::select! {
            biased;
            report = receive(&control) => match report {
                Some(Report::Alive(alive)) => {
                    if let Some(answer) = lists.pop_front() {
                        let _ = answer.send(alive);
                    }
                }
                Some(Report::Killed(left)) => {
                    if let Some(answer) = kills.pop_front() {
                        let _ = answer.send(left);
                    }
                }
                Some(report) => {
                    status.send_modify(|status| note(status, &report));
                    if matches!(report, Report::Exited { leftovers: false, .. }) {
                        // Nothing is left; closing the socket lets the supervisor go.
                        break;
                    }
                }
                None => break,
            },
            ask = inbox.recv() => {
                let order = match ask {
                    Some(Ask::Kill { grace_ms, answer }) => {
                        kills.push_back(answer);
                        Order::Kill { grace_ms }
                    }
                    Some(Ask::List(answer)) => {
                        lists.push_back(answer);
                        Order::List
                    }
                    Some(Ask::Signal(signal)) => Order::Signal { signal },
                    // Nobody cares any more: closing the socket makes the supervisor end the tree.
                    None => break,
                };
                let _ = send_order(&control, order);
            }
        }
    }
    status.send_modify(|status| status.gone = true);
}

fn note(status: &mut Status, report: &Report) {
    match *report {
        Report::Started { pid, supervisor } => {
            status.pid = Some(pid);
            status.supervisor = Some(supervisor);
        }
        Report::Failed { stage, errno } => {
            status.failure = Some(StartFailure { stage, errno });
        }
        Report::Exited {
            code,
            signal,
            leftovers,
        } => {
            status.exit = Some(Exit {
                code,
                signal,
                leftovers,
            });
        }
        Report::Alive(_) | Report::Killed(_) => {}
    }
}

/// Takes the next report; `None` at the end, an unreadable one included.
async fn receive(control: &UnixStream) -> Option<Report> {
    loop {
        control.readable().await.ok()?;
        match control.try_io(Interest::READABLE, || receive_report(control)) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            report => return report.ok().flatten(),
        }
    }
}
