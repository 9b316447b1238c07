//! One command whose sudo may ask.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use bytes::Bytes;
use exoshell_place::{Link, PasswordStream, PlaceError};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::{Key, Password, PasswordRequest};
use crate::runtime::{Inner, Runtime};

/// How long a program that ends after its call waits for the first question of a process.
const FIRST_QUESTION: Duration = Duration::from_secs(2);

/// How far the questions of a command are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    NotAsked,
    Asked,
    Answered,
}

/// A command whose sudo may ask.
#[derive(Debug)]
pub(crate) struct Asking {
    /// Not the runtime itself, which a process may outlive.
    runtime: Weak<Inner>,
    key: Key,
    command: String,
    seen: Mutex<Seen>,
    phase: watch::Sender<Phase>,
}

#[derive(Debug, Default)]
struct Seen {
    /// What was given last.
    given: Option<Password>,
    wrong: bool,
    none: bool,
}

impl Asking {
    pub(super) fn new(runtime: &Runtime, key: Key, command: &str) -> Self {
        Self {
            runtime: Arc::downgrade(&runtime.inner),
            key,
            command: command.to_owned(),
            seen: Mutex::default(),
            phase: watch::Sender::new(Phase::NotAsked),
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Tells whether sudo did not take what it was given.
    pub(super) fn was_wrong(&self) -> bool {
        self.seen().wrong
    }

    /// Tells whether sudo asked in vain.
    pub(super) fn had_none(&self) -> bool {
        self.seen().none
    }

    /// Notes how the command ended.
    pub(super) fn ended(&self, exit_code: i32) {
        let used = self.seen().given.take().is_some();
        if let Some(inner) = self.runtime.upgrade().filter(|_| used) {
            inner.passwords.cache.ended(&self.key, exit_code);
        }
    }

    /// Answers the guest until the command has ended or the pipe is lost.
    async fn answer(&self, mut questions: PasswordStream) -> Result<(), PlaceError> {
        while let Some(wanted) = questions.next().await? {
            self.phase.send_replace(Phase::Asked);
            let password = self.password(wanted.attempt).await;
            let none = Bytes::from_static(b"\n");
            let line = password.as_ref().map_or(none, Password::line);
            questions.give(line).await?;
            self.phase.send_replace(Phase::Answered);
        }
        Ok(())
    }

    /// Finds a password, or none.
    async fn password(&self, attempt: u32) -> Option<Password> {
        let inner = self.runtime.upgrade()?;
        let last = self.seen().given.take();
        if attempt > 1 {
            inner.passwords.refuse(&self.key);
            self.seen().wrong = true;
        }
        let found = self.find(&inner, attempt).await;
        // Whoever gives the wrong one again would only lock the account.
        let again = |password: &Password| {
            attempt > 1 && last.as_ref().is_some_and(|last| last.equals(password))
        };
        let found = found.filter(|password| !again(password));
        if found.is_none() {
            inner.passwords.cache.forget(&self.key);
        }
        let mut seen = self.seen();
        seen.none = found.is_none();
        seen.given.clone_from(&found);
        found
    }

    async fn find(&self, inner: &Inner, attempt: u32) -> Option<Password> {
        let sources = &inner.passwords;
        if let Some(kept) = sources.cache.get(&self.key) {
            return Some(kept);
        }
        let request = PasswordRequest {
            task: self.key.task.clone(),
            place: self.key.place.clone(),
            command: self.command.clone(),
            attempt,
        };
        let mut given = None;
        if let Some(callback) = &sources.callback {
            given = callback.ask(request.clone()).await;
        }
        if given.is_none() {
            let set = sources.environment(&inner.environment, &self.key);
            if let Some(password) = set.filter(Password::is_usable) {
                // It is there the next time as well.
                return Some(password);
            }
        }
        if let Some(prompt) = sources.prompt.as_ref().filter(|_| given.is_none()) {
            given = prompt.ask(request).await;
        }
        if let Some(password) = &given {
            sources.cache.keep(&self.key, password);
        }
        given
    }
}

/// Answers the guest while it is held.
#[derive(Debug)]
pub(crate) struct Answers {
    asking: Arc<Asking>,
    task: Option<JoinHandle<()>>,
}

impl Answers {
    /// Starts to answer.
    pub(crate) fn start(asking: &Arc<Asking>, link: &Link, id: &str) -> Self {
        let questions = link.passwords(id);
        let asked = Arc::clone(asking);
        let task = tokio::spawn(async move {
            if let Ok(questions) = questions {
                // Whatever becomes of the pipe, the command's own channel tells.
                let _ = asked.answer(questions).await;
            }
        });
        Self {
            asking: Arc::clone(asking),
            task: Some(task),
        }
    }

    /// Goes on over another link.
    pub(crate) fn again(&mut self, link: &Link, id: &str) {
        *self = Self::start(&Arc::clone(&self.asking), link, id);
    }

    /// Answers for as long as the process runs and this program does. One that ends after its
    /// call waits for the first question, which comes soon or not at all.
    pub(crate) async fn detach(mut self, wait: bool) {
        let Some(mut task) = self.task.take() else {
            return;
        };
        if !wait {
            return;
        }
        let mut phase = self.asking.phase.subscribe();
        let answered = async {
            let asked = phase.wait_for(|phase| *phase != Phase::NotAsked);
            if tokio::time::timeout(FIRST_QUESTION, asked).await.is_ok() {
                let _ = phase.wait_for(|phase| *phase == Phase::Answered).await;
            }
        };
        tokio::select! {
            () = answered => {}
            _ = &mut task => {}
        }
    }
}

impl Drop for Answers {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}
