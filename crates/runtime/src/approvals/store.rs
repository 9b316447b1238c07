//! Questions and grants that host processes share, as files in the home folder.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use exoshell_guard::{ApprovalKey, Grants};
use serde::{Deserialize, Serialize};

use super::approver::{Answer, Question};
use super::watch::ApprovalWatch;
use crate::audit::AttemptKind;
use crate::error::RuntimeError;
use crate::record::{file_name, now};
use crate::state_file;

/// What became of a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "scope")]
pub(crate) enum State {
    /// Nobody has answered.
    Pending,
    /// Yes; the next call that is exactly this one uses it up.
    Allowed(Answer),
    /// No.
    Denied,
}

/// A question that can be answered by another program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredQuestion {
    /// Its id.
    pub id: String,
    /// When it was asked, in seconds since 1970.
    pub asked: u64,
    /// When it is void.
    pub expires: u64,
    /// Whom an answer for the session holds for.
    pub session: String,
    /// The task.
    pub task: String,
    /// The backend.
    pub backend: String,
    /// The place.
    pub place: String,
    /// What kind of thing is attempted.
    pub kind: AttemptKind,
    /// The directory it would start in.
    pub directory: Option<String>,
    /// What would be run, as a person may see it.
    pub text: String,
    /// Whether secrets in it are hidden.
    #[serde(default)]
    pub hidden: bool,
    /// The process it would be written to, if it is input.
    #[serde(default)]
    pub process: Option<String>,
    /// Why a yes is needed.
    pub why: String,
    /// What a yes for the session or for good covers.
    pub keys: Vec<String>,
    /// Who answered.
    #[serde(default)]
    pub answered_by: Option<String>,
    pub(crate) fingerprint: String,
    #[serde(flatten)]
    pub(crate) state: State,
}

impl StoredQuestion {
    /// Tells whether it waits for an answer.
    pub fn is_pending(&self) -> bool {
        self.state == State::Pending
    }

    /// Tells in a word what became of it.
    pub const fn state_name(&self) -> &'static str {
        match self.state {
            State::Pending => "pending",
            State::Allowed(_) => "allowed",
            State::Denied => "denied",
        }
    }

    fn is_over(&self) -> bool {
        now() >= self.expires
    }
}

/// What was allowed for one session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SessionGrants {
    pub(super) session: String,
    pub(super) keys: Vec<String>,
    pub(super) expires: u64,
}

/// The shared files.
#[derive(Debug)]
pub(crate) struct Store {
    questions: PathBuf,
    sessions: PathBuf,
    expiry: Duration,
    session_ttl: Duration,
}

impl Store {
    /// Uses the files of a home folder. Nothing is touched before it is needed.
    pub(crate) fn new(home: &Path, expiry: Duration, session_ttl: Duration) -> Self {
        let folder = home.join("approvals");
        Self {
            sessions: folder.join("sessions"),
            questions: folder.join("questions"),
            expiry,
            session_ttl,
        }
    }

    fn lock(&self) -> Result<File, RuntimeError> {
        state_file::make_folder(&self.questions)?;
        state_file::make_folder(&self.sessions)?;
        state_file::lock(&self.questions.with_file_name("lock"))
    }

    fn path(&self, id: &str) -> PathBuf {
        self.questions.join(format!("{id}.json"))
    }

    fn session_path(&self, session: &str) -> PathBuf {
        self.sessions.join(format!("{}.json", file_name(session)))
    }

    /// Stores a question, unless it waits already.
    pub(super) fn ask(&self, question: &Question) -> Result<StoredQuestion, RuntimeError> {
        let _turn = self.lock()?;
        for stored in self.all() {
            if stored.is_over() {
                let _ = std::fs::remove_file(self.path(&stored.id));
            } else if stored.fingerprint == question.fingerprint {
                return Ok(stored);
            }
        }
        let nonce = exoshell_place::nonce()?;
        let stored = StoredQuestion {
            id: format!("ap_{}", nonce.get(..12).unwrap_or(&nonce)),
            asked: now(),
            expires: now().saturating_add(self.expiry.as_secs().max(1)),
            session: question.session.clone(),
            task: question.task.clone(),
            backend: question.backend.clone(),
            place: question.place.clone(),
            kind: question.kind,
            directory: question.directory.clone(),
            text: question.safe_text.clone(),
            hidden: question.safe_text != question.text,
            process: question.process.clone(),
            why: question.why.clone(),
            keys: question.keys.clone(),
            answered_by: None,
            fingerprint: question.fingerprint.clone(),
            state: State::Pending,
        };
        state_file::write(&self.path(&stored.id), &stored)?;
        Ok(stored)
    }

    /// Returns the answer to exactly this question, if there is one. A yes is used up by it.
    pub(super) fn spend(
        &self,
        question: &Question,
    ) -> Result<Option<StoredQuestion>, RuntimeError> {
        if !self.questions.exists() {
            return Ok(None);
        }
        let _turn = self.lock()?;
        let answered = self.all().into_iter().find(|stored| {
            stored.fingerprint == question.fingerprint && !stored.is_pending() && !stored.is_over()
        });
        if let Some(StoredQuestion {
            id,
            state: State::Allowed(_),
            ..
        }) = &answered
        {
            let path = self.path(id);
            std::fs::remove_file(&path).map_err(state_file::failure("cannot remove", &path))?;
        }
        Ok(answered)
    }

    /// Keeps an answer. Only a question that waits can be answered.
    pub(super) fn answer(
        &self,
        id: &str,
        answer: Answer,
        by: &str,
    ) -> Result<StoredQuestion, RuntimeError> {
        let _turn = self.lock()?;
        let unknown = || {
            RuntimeError::Usage(format!(
                "no question `{id}` waits for an answer; `exoshell approvals ls` lists those that do"
            ))
        };
        let mut stored = self
            .all()
            .into_iter()
            .find(|stored| stored.id == id && stored.is_pending() && !stored.is_over())
            .ok_or_else(unknown)?;
        stored.state = match answer {
            Answer::Deny => State::Denied,
            answer => State::Allowed(answer),
        };
        stored.answered_by = Some(by.to_owned());
        state_file::write(&self.path(id), &stored)?;
        Ok(stored)
    }

    /// Returns all questions that are not void, the oldest first.
    pub(super) fn questions(&self) -> Vec<StoredQuestion> {
        let mut all = self.all();
        all.retain(|stored| !stored.is_over());
        all.sort_by(|a, b| (a.asked, &a.id).cmp(&(b.asked, &b.id)));
        all
    }

    fn all(&self) -> Vec<StoredQuestion> {
        state_file::read_all(&self.questions)
    }

    /// Returns what was allowed for a session.
    pub(super) fn grants(&self, session: &str) -> Grants {
        let mut grants = Grants::default();
        let stored = state_file::read::<SessionGrants>(&self.session_path(session));
        if let Some(stored) = stored.filter(|s| s.session == session && now() < s.expires) {
            for key in stored
                .keys
                .iter()
                .filter_map(|text| ApprovalKey::parse(text))
            {
                grants.insert(key);
            }
        }
        grants
    }

    /// Allows more for a session.
    pub(super) fn grant(&self, session: &str, keys: &[String]) -> Result<(), RuntimeError> {
        let _turn = self.lock()?;
        let path = self.session_path(session);
        let known = state_file::read::<SessionGrants>(&path)
            .filter(|stored| stored.session == session && now() < stored.expires);
        let mut all = known.map(|stored| stored.keys).unwrap_or_default();
        all.extend(keys.iter().cloned());
        all.sort();
        all.dedup();
        state_file::write(
            &path,
            &SessionGrants {
                session: session.to_owned(),
                keys: all,
                expires: now().saturating_add(self.session_ttl.as_secs()),
            },
        )
    }

    /// Returns everything that was allowed for sessions.
    pub(super) fn session_grants(&self) -> Vec<SessionGrants> {
        let mut all: Vec<SessionGrants> = state_file::read_all(&self.sessions);
        all.retain(|stored| now() < stored.expires);
        all.sort_by(|a, b| a.session.cmp(&b.session));
        all
    }

    /// Takes back an answer, or the question itself; tells whether it was there.
    pub(super) fn forget(&self, id: &str) -> Result<bool, RuntimeError> {
        let _turn = self.lock()?;
        let known = self.all().iter().any(|stored| stored.id == id);
        if known {
            let path = self.path(id);
            std::fs::remove_file(&path).map_err(state_file::failure("cannot remove", &path))?;
        }
        Ok(known)
    }

    /// Takes a key back from all sessions and unused answers, or all keys; tells how many were
    /// taken.
    pub(super) fn revoke(&self, key: Option<&str>) -> Result<usize, RuntimeError> {
        let _turn = self.lock()?;
        let mut taken = 0;
        for stored in self.all() {
            let named = key.is_none_or(|key| stored.keys.iter().any(|listed| listed == key));
            if named && matches!(stored.state, State::Allowed(_)) {
                let _ = std::fs::remove_file(self.path(&stored.id));
                taken += 1;
            }
        }
        for mut stored in self.session_grants() {
            let before = stored.keys.len();
            stored
                .keys
                .retain(|listed| key.is_some_and(|key| key != listed));
            taken += before - stored.keys.len();
            let path = self.session_path(&stored.session);
            if stored.keys.is_empty() {
                let _ = std::fs::remove_file(&path);
            } else {
                state_file::write(&path, &stored)?;
            }
        }
        Ok(taken)
    }

    /// Forgets what was allowed for a session that is over.
    pub(crate) fn end_session(&self, session: &str) {
        let _ = std::fs::remove_file(self.session_path(session));
    }

    /// Reports changes of the questions.
    pub(super) fn watch(&self) -> Result<ApprovalWatch, RuntimeError> {
        state_file::make_folder(&self.questions)?;
        ApprovalWatch::new(&self.questions)
    }
}
