//! Whoever answers questions while a call waits.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::audit::AttemptKind;

/// A person's answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// This one, now.
    Once,
    /// Everything of this kind, in this session.
    Session,
    /// Everything of this kind, from now on.
    Always,
    /// No.
    Deny,
}

/// What a person is asked.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Question {
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
    /// Tells it from every other intent, to the last byte.
    pub fingerprint: String,
    /// What would be run, all of it, with invisible characters made visible.
    pub text: String,
    /// The same with secrets hidden, for everything that is kept.
    pub safe_text: String,
    /// The process it would be written to, if it is input.
    pub process: Option<String>,
    /// Why a yes is needed, in a sentence.
    pub why: String,
    /// The part of the text that caused it.
    pub cause: String,
    /// The guard's category.
    pub category: String,
    /// What a yes for the session or for good covers, as `category:target`; nothing where each
    /// case is a question of its own.
    pub keys: Vec<String>,
    /// How long there is to answer.
    pub timeout: Duration,
}

/// The future of an answer. An error means no.
pub type ApproverFuture<'a> = Pin<
    Box<dyn Future<Output = Result<Answer, Box<dyn std::error::Error + Send + Sync>>> + Send + 'a>,
>;

/// Answers questions: a callback of the embedding program, or a door's prompt.
pub trait Approver: Send + Sync + fmt::Debug {
    /// Asks. No answer in time, or an error, means no.
    fn ask<'a>(&'a self, question: &'a Question) -> ApproverFuture<'a>;

    /// Returns who answers, for the audit.
    fn name(&self) -> &str;

    /// Tells whether it is a callback, which goes before everything; a prompt gives way where a
    /// gateway asks its person itself.
    fn is_callback(&self) -> bool {
        true
    }
}
