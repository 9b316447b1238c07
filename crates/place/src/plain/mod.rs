//! Commands where no guest can run: one pipe for each, a plain shell behind it.
//!
//! The shell's own reports travel among the output, behind a byte no text has and a random
//! nonce, and are taken out again. There is no terminal, no background process, no copy of large
//! output and no lease: a command that neither reads nor writes outlives a host that is killed.

mod ending;
mod reader;
mod running;
mod scanner;
mod script;
mod state;
mod stream;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use exoshell_wire::{Failure, FailureKind, Note, RawBytes};
use tokio::sync::{mpsc, oneshot, watch};

use crate::{Place, PlaceError, nonce};
use running::Running;
use state::{Ready, Start, State};

pub use stream::{PlainStdin, PlainStream};

/// How many events and pieces of stdin may wait.
const QUEUE: usize = 8;

/// A command for a [`PlainShell`].
#[derive(Debug, Clone)]
pub struct PlainCommand {
    /// The session it belongs to; `None` is a fresh one for this command only.
    pub session: Option<String>,
    /// The command text.
    pub command: Bytes,
    /// The directory for this command only; may start with `~` or be relative.
    pub workdir: Option<RawBytes>,
    /// Variables for this command only.
    pub env: Vec<(RawBytes, RawBytes)>,
    /// Variables a session begins with.
    pub extra_env: Vec<(RawBytes, RawBytes)>,
    /// The directory a session begins in; `None` is the place's own.
    pub cwd: Option<RawBytes>,
    /// When to stop it.
    pub timeout: Option<Duration>,
    /// How long TERM may take before KILL.
    pub grace: Duration,
    /// Whether stderr goes into stdout, in the order written.
    pub merge: bool,
    /// Whether a stdin follows; otherwise it is empty.
    pub stdin: bool,
    /// Whether what the command changed is carried over.
    pub persist: bool,
}

impl PlainCommand {
    /// Describes a command on its own, without a limit.
    pub fn new(command: impl Into<Bytes>) -> Self {
        Self {
            session: None,
            command: command.into(),
            workdir: None,
            env: Vec::new(),
            extra_env: Vec::new(),
            cwd: None,
            timeout: None,
            grace: Duration::from_secs(2),
            merge: false,
            stdin: false,
            persist: true,
        }
    }

    /// Refuses what no shell could take.
    fn check(&self) -> Result<(), PlaceError> {
        let bad = |message: String| Err(Failure::new(FailureKind::BadRequest, message).into());
        if self.command.contains(&0) {
            return bad("the command contains a NUL byte, which no shell can read".to_owned());
        }
        let mut given = self.env.iter().chain(&self.extra_env);
        if let Some((name, _)) = given.find(|pair| !script::is_variable(pair)) {
            let name = name.display();
            return bad(format!("`{name}` cannot be a variable with that value"));
        }
        for path in self.workdir.iter().chain(&self.cwd) {
            if path.0.contains(&0) {
                let path = path.display();
                let message = format!("cannot enter `{path}`: it contains a NUL byte");
                return Err(Failure::new(FailureKind::Workdir, message).into());
            }
        }
        Ok(())
    }
}

/// Runs commands in a place without a guest. Clones share their sessions.
#[derive(Debug, Clone)]
pub struct PlainShell {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    place: Arc<dyn Place>,
    why: String,
    sessions: Mutex<HashMap<String, Start>>,
    /// How many commands are under way, those being ended included.
    busy: watch::Sender<usize>,
}

impl PlainShell {
    /// Describes the shell of a place; `why` says why no guest runs there. Touches nothing.
    pub fn new(place: Arc<dyn Place>, why: impl Into<String>) -> Self {
        Self {
            inner: Arc::new(Inner {
                place,
                why: why.into(),
                sessions: Mutex::default(),
                busy: watch::Sender::new(0),
            }),
        }
    }

    /// Starts a command. Nothing was run if this fails or is dropped.
    pub async fn run(&self, command: PlainCommand) -> Result<PlainStream, PlaceError> {
        command.check()?;
        let nonce = nonce()?;
        let words = ["sh", "-c", script::LAUNCHER].map(str::to_owned);
        let launched = self.inner.place.launch(&words).await?;
        let (start, fresh) = self.inner.start(&command);
        let (feed, food) = mpsc::channel(QUEUE);
        let (tell, events) = mpsc::channel(QUEUE);
        let (cancel, cancelled) = watch::channel(false);
        let (answer, answered) = oneshot::channel();
        let stream = PlainStream::new(events, cancel, command.stdin.then(|| feed.clone()));
        let running = Running {
            shell: Busy::new(&self.inner),
            nonce,
            start,
            fresh,
            command,
            feed,
            tell,
            cancelled,
        };
        tokio::spawn(running.run(launched, food, answer));
        match answered.await {
            Ok(Ok(())) => Ok(stream),
            Ok(Err(error)) => Err(error),
            Err(_gone) => Err(PlaceError::Nonsense("a task was given up".to_owned())),
        }
    }

    /// Forgets a session; tells whether there was one. What runs in it goes on.
    pub fn end_session(&self, session: &str) -> bool {
        self.inner.sessions().remove(session).is_some()
    }

    /// Lists the sessions, with their directories where those are known.
    pub fn sessions(&self) -> Vec<(String, Option<RawBytes>)> {
        let sessions = self.inner.sessions();
        let listed = sessions
            .iter()
            .map(|(name, start)| (name.clone(), start.cwd.clone().map(RawBytes)));
        listed.collect()
    }

    /// Waits until no command is under way, those included whose stream was dropped.
    pub async fn idle(&self) {
        let mut busy = self.inner.busy.subscribe();
        // The sender lives as long as we do.
        let _ = busy.wait_for(|count| *count == 0).await;
    }
}

impl Inner {
    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Start>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns where a command starts, and whether its session is new.
    fn start(&self, command: &PlainCommand) -> (Start, bool) {
        let first = || {
            let pairs = command.extra_env.iter();
            Start {
                cwd: command.cwd.clone().map(|cwd| cwd.0),
                variables: pairs
                    .map(|(name, value)| (name.0.clone(), Some(value.0.clone())))
                    .collect(),
            }
        };
        let known = command
            .session
            .as_ref()
            .and_then(|name| self.sessions().get(name).cloned());
        let fresh = known.is_none();
        let mut start = known.unwrap_or_else(first);
        if fresh && let Some(name) = &command.session {
            self.sessions().insert(name.clone(), start.clone());
        }
        for (name, value) in &command.env {
            let value = Some(value.0.clone());
            start.variables.insert(name.0.clone(), value);
        }
        (start, fresh)
    }

    /// Applies what a command changed; returns the session's directory.
    fn carry_over(&self, command: &PlainCommand, ready: &Ready, state: Option<State>) -> Vec<u8> {
        let here = ready.state.cwd.clone();
        let after = state.as_ref().map(|state| state.cwd.clone());
        let mut sessions = self.sessions();
        let Some(session) = command
            .session
            .as_ref()
            .and_then(|name| sessions.get_mut(name))
        else {
            return after.unwrap_or(here);
        };
        if ready.gone {
            session.cwd = None;
        }
        if let Some(state) = state.filter(|_| command.persist) {
            state.carry_over(&ready.state, session);
        }
        // A session whose directory never changed is where the place put it.
        match (&session.cwd, &command.workdir) {
            (Some(cwd), _) => cwd.clone(),
            (None, None) => session.cwd.insert(here).clone(),
            (None, Some(_)) => here,
        }
    }

    /// Returns what the caller should know of a command's start.
    fn notes(&self, fresh: bool, ready: &Ready, start: &Start) -> Vec<Note> {
        let mut notes = Vec::new();
        if fresh {
            notes.push(Note::NoGuest {
                why: self.why.clone(),
            });
            if !ready.bash {
                notes.push(Note::NoBash {
                    shell: RawBytes::from("sh"),
                });
            }
        }
        if let Some(gone) = start.cwd.as_ref().filter(|_| ready.gone) {
            notes.push(Note::DirectoryGone {
                gone: RawBytes(gone.clone()),
                used: RawBytes(ready.state.cwd.clone()),
            });
        }
        notes
    }
}

/// Counts a command as under way.
#[derive(Debug)]
struct Busy(Arc<Inner>);

impl Busy {
    fn new(inner: &Arc<Inner>) -> Self {
        inner.busy.send_modify(|count| *count += 1);
        Self(Arc::clone(inner))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.busy.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
#[path = "plain_tests.rs"]
mod tests;
