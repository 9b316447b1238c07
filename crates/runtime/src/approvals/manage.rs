//! Looking at questions and grants, and answering, from any program of the user's.

use serde::Serialize;

use super::allow_list;
use super::approver::Answer;
use super::nested::inside_guest;
use super::refusal::{Refusal, RefusalKind};
use super::store::StoredQuestion;
use super::watch::ApprovalWatch;
use crate::error::RuntimeError;
use crate::runtime::Runtime;

/// Something that was allowed for longer than one call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Grant {
    /// What, as `category:target`.
    pub key: String,
    /// For whom; `None` = for good.
    pub session: Option<String>,
}

/// All questions and grants.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ApprovalsReport {
    /// The questions that are not void, the oldest first.
    pub questions: Vec<StoredQuestion>,
    /// What is allowed without a question.
    pub grants: Vec<Grant>,
}

impl Runtime {
    /// Lists questions and grants.
    pub fn approvals(&self) -> ApprovalsReport {
        let always = allow_list::read(&self.inner.config.config_file).unwrap_or_default();
        let mut grants: Vec<Grant> = always
            .into_iter()
            .map(|key| Grant { key, session: None })
            .collect();
        for stored in self.inner.approvals.session_grants() {
            grants.extend(stored.keys.into_iter().map(|key| Grant {
                key,
                session: Some(stored.session.clone()),
            }));
        }
        ApprovalsReport {
            questions: self.inner.approvals.questions(),
            grants,
        }
    }

    /// Answers a stored question for a person. Refused where a model may be the one who answers.
    pub fn answer_approval(
        &self,
        id: &str,
        answer: Answer,
        by: &str,
    ) -> Result<StoredQuestion, RuntimeError> {
        only_people("answer a question")?;
        let stored = self.inner.approvals.answer(id, answer, by)?;
        match answer {
            Answer::Session | Answer::Always if stored.keys.is_empty() => {}
            Answer::Session => self.inner.approvals.grant(&stored.session, &stored.keys)?,
            Answer::Always => allow_list::add(&self.inner.config.config_file, &stored.keys)?,
            Answer::Once | Answer::Deny => {}
        }
        Ok(stored)
    }

    /// Takes back what was allowed for sessions, for good and not used yet: one key, or all; or the
    /// answer to one question, by its id. Tells how many.
    pub fn revoke_approvals(&self, key: Option<&str>) -> Result<usize, RuntimeError> {
        only_people("take back an approval")?;
        if let Some(id) = key.filter(|key| key.starts_with("ap_")) {
            return Ok(usize::from(self.inner.approvals.forget(id)?));
        }
        let file = &self.inner.config.config_file;
        let mut taken = self.inner.approvals.revoke(key)?;
        for listed in allow_list::read(file).unwrap_or_default() {
            if key.is_none_or(|key| key == listed) && allow_list::remove(file, &listed)? {
                taken += 1;
            }
        }
        Ok(taken)
    }

    /// Reports when questions are asked or answered.
    pub fn watch_approvals(&self) -> Result<ApprovalWatch, RuntimeError> {
        self.inner.approvals.watch()
    }
}

/// Refuses what only a person may do where a command in a guest has started this program.
pub(crate) fn only_people(what: &str) -> Result<(), RuntimeError> {
    if !inside_guest() {
        return Ok(());
    }
    Err(RuntimeError::Refused(Box::new(Refusal {
        kind: RefusalKind::Denied,
        command: what.to_owned(),
        description: "only the user can do that, and not from a command that Exoshell runs"
            .to_owned(),
        pattern_key: "self-control:none".to_owned(),
        approval_id: None,
    })))
}
