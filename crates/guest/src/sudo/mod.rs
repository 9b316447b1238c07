//! Passwords for sudo: which command may ask for one, and which host answers.
//!
//! A command whose request says so is *armed*: its environment names our askpass program. When
//! sudo runs it, the program hands its stdout, which is sudo's own pipe, to the guest. The guest
//! proves who asks, asks the host, and writes the password into that pipe itself. So it passes
//! through no process that a command could start or imitate, and is in no argument, environment
//! or file.

mod asker;
mod askpass;
mod door;
mod shim;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use exoshell_mux::{Channel, Item};
use exoshell_process::Identity;
use exoshell_wire::{Failure, FailureKind, MAX_PASSWORD, PasswordWanted, Passwords, Reply, stream};
use tokio::sync::{Notify, mpsc, oneshot};
use zeroize::{Zeroize as _, Zeroizing};

use crate::connection::answer;
use crate::guest::Guest;
use crate::tree::Tree;
pub(crate) use askpass::run as run_askpass;
pub(crate) use door::{Door, FOLDER};
pub(crate) use shim::{run as run_shim, without};

/// The name our program has when it is asked for a password.
pub(crate) const ASKPASS: &str = "askpass";

/// The name it has in front of the real `sudo`.
pub(crate) const SHIM: &str = "sudo";

/// How long a question waits for its command to be listed, and for a host that answers.
const SOON: Duration = Duration::from_secs(2);

/// How long a host may take to answer; it asks a person for less.
const ANSWER_LIMIT: Duration = Duration::from_secs(120);

/// How many questions of one command may wait.
const MAX_WAITING: usize = 4;

/// How many processes are counted per command before those that ended are forgotten.
const MAX_COUNTED: usize = 256;

/// A password while it is on its way; wiped when it is dropped.
type Password = Zeroizing<Vec<u8>>;

/// Which commands may ask.
#[derive(Debug, Default)]
pub(crate) struct Sudo {
    door: OnceLock<Option<Door>>,
    armed: Mutex<HashMap<String, Arc<Armed>>>,
    /// Wakes questions that wait for a command or for a host.
    changed: Notify,
}

/// A command that may ask.
#[derive(Debug)]
struct Armed {
    tree: Tree,
    /// Whoever answers; the newest.
    host: Mutex<Option<mpsc::Sender<Question>>>,
    /// How often each sudo has asked.
    asked: Mutex<HashMap<Identity, u32>>,
}

#[derive(Debug)]
struct Question {
    attempt: u32,
    answer: oneshot::Sender<Password>,
}

/// Lets a command ask for as long as this is held.
#[derive(Debug)]
pub(crate) struct ArmedGuard {
    guest: Arc<Guest>,
    id: String,
}

impl Drop for ArmedGuard {
    fn drop(&mut self) {
        if let Some(armed) = self.guest.sudo().armed().remove(&self.id) {
            *armed.host() = None;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Sudo {
    /// Returns where sudo finds our programs, opening the door for them on first use; `None`
    /// where that does not work, which leaves sudo as it is.
    pub(crate) fn door(&self, guest: &Arc<Guest>) -> Option<&Door> {
        self.door.get_or_init(|| Door::open(guest).ok()).as_ref()
    }

    fn armed(&self) -> MutexGuard<'_, HashMap<String, Arc<Armed>>> {
        lock(&self.armed)
    }

    /// Lets a command that was started ask.
    pub(crate) fn arm(guest: &Arc<Guest>, id: &str, tree: &Tree) -> ArmedGuard {
        let armed = Armed {
            tree: tree.clone(),
            host: Mutex::default(),
            asked: Mutex::default(),
        };
        let sudo = guest.sudo();
        sudo.armed().insert(id.to_owned(), Arc::new(armed));
        sudo.changed.notify_waiters();
        ArmedGuard {
            guest: Arc::clone(guest),
            id: id.to_owned(),
        }
    }

    /// Finds the command that one of these processes supervises. One that was only just started
    /// may be listed a moment later.
    async fn command_of(&self, ancestors: &[u32]) -> Option<Arc<Armed>> {
        self.soon(|| {
            let armed = self.armed();
            armed
                .values()
                .find(|armed| {
                    armed
                        .tree
                        .supervisor()
                        .is_some_and(|pid| ancestors.contains(&pid))
                })
                .cloned()
        })
        .await
    }

    async fn soon<T>(&self, look: impl Fn() -> Option<T>) -> Option<T> {
        let found = async {
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if let Some(found) = look() {
                    return found;
                }
                changed.await;
            }
        };
        tokio::time::timeout(SOON, found).await.ok()
    }

    /// Asks the host of a command. `None`: there is no password.
    async fn ask(&self, armed: &Armed, asker: Identity) -> Option<Password> {
        let host = self.soon(|| armed.host().clone()).await?;
        let attempt = armed.count(asker);
        let (sender, receiver) = oneshot::channel();
        let question = Question {
            attempt,
            answer: sender,
        };
        host.send(question).await.ok()?;
        drop(host);
        let password = tokio::time::timeout(ANSWER_LIMIT, receiver).await;
        password.ok()?.ok().filter(|password| !password.is_empty())
    }
}

impl Armed {
    fn host(&self) -> MutexGuard<'_, Option<mpsc::Sender<Question>>> {
        lock(&self.host)
    }

    /// Counts the questions of one sudo.
    fn count(&self, asker: Identity) -> u32 {
        let mut asked = lock(&self.asked);
        if asked.len() >= MAX_COUNTED {
            asked.retain(|known, _| *known == asker || exoshell_process::is_alive(*known));
        }
        let count = asked.entry(asker).or_default();
        *count += 1;
        *count
    }
}

/// Passes the questions of a command on to a host, until either is gone.
pub(crate) async fn serve(guest: &Guest, mut channel: Channel, request: &Passwords) {
    let sudo = guest.sudo();
    let armed = sudo.armed().get(&request.id).cloned();
    let Some(armed) = armed else {
        let failure = Failure::new(
            FailureKind::NoRun,
            format!("no command `{}` runs that may ask", request.id),
        );
        return answer(channel, &Reply::<()>::Failed(failure));
    };
    let (sender, mut questions) = mpsc::channel(MAX_WAITING);
    *armed.host() = Some(sender);
    drop(armed);
    sudo.changed.notify_waiters();
    let gone = channel.sender();
    let mut line = Line::default();
    loop {
        let question = tokio::select! {
            biased;
            _ = gone.cancelled() => return,
            question = questions.recv() => question,
        };
        let Some(question) = question else {
            return answer(channel, &Reply::Ok(()));
        };
        let wanted = PasswordWanted {
            attempt: question.attempt,
        };
        let event = serde_json::to_vec(&wanted).unwrap_or_default();
        if channel.event(event).is_err() {
            return;
        }
        let password = tokio::select! {
            biased;
            // A host that answered may be gone already.
            password = line.next(&mut channel) => password,
            _ = gone.cancelled() => return,
        };
        let Some(password) = password else { return };
        // Whoever asked may have given up.
        let _ = question.answer.send(password);
    }
}

/// Lines of answers, as they arrive.
#[derive(Default)]
struct Line {
    rest: Password,
}

impl Line {
    /// Returns the next line; `None` when there is none, or none that is short enough.
    async fn next(&mut self, channel: &mut Channel) -> Option<Password> {
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let after = Zeroizing::new(self.rest.split_off(end + 1));
                let mut line = std::mem::replace(&mut self.rest, after);
                line.truncate(end);
                return Some(line);
            }
            if self.rest.len() > MAX_PASSWORD {
                return None;
            }
            if let Item::Data {
                stream: stream::STDIN,
                bytes,
                ..
            } = channel.receive().await.ok()?
            {
                // Grown by hand: what a vector leaves behind when it moves is not wiped.
                let mut longer = Zeroizing::new(Vec::with_capacity(self.rest.len() + bytes.len()));
                longer.extend_from_slice(&self.rest);
                longer.extend_from_slice(&bytes);
                self.rest = longer;
                if let Ok(mut own) = bytes.try_into_mut() {
                    own.as_mut().zeroize();
                }
            }
        }
    }
}
