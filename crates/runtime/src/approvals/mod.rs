//! Approvals: the one gate in front of everything that starts something or writes a file.
//!
//! Every route calls [`Runtime::admit`] with an [`Intent`] before it touches a place. The guard
//! judges it, the mode and earlier grants decide, and what is left is a question: to the callback
//! of the embedding program or the prompt of the door ([`Approver`]), else to whoever looks at the
//! stored questions (`exoshell approvals`). Where nobody answers, nothing runs. Whatever comes out
//! is written to the audit, and an attempt whose start cannot be written is not made.

mod allow_list;
mod approver;
mod checker;
mod intent;
mod locate;
mod manage;
mod nested;
mod policy;
mod refusal;
mod store;
mod watch;

use std::time::{Duration, Instant};

use exoshell_guard::{Decision, Finding, Grants, Verdict, visible};
use exoshell_wire::ProcessStatus;

use crate::audit::{Approval, Attempt, AttemptKind, Ended, Outcome, Ticket};
use crate::error::RuntimeError;
use crate::places::slot::Slot;
use crate::runtime::Runtime;

pub use approver::{Answer, Approver, ApproverFuture, Question};
pub use checker::Checker;
pub(crate) use intent::{Input, Intent};
pub(crate) use manage::only_people;
pub use manage::{ApprovalsReport, Grant};
pub use nested::inside_guest;
pub(crate) use policy::Policy;
pub use refusal::{Refusal, RefusalKind};
use store::State;
pub(crate) use store::Store;
pub use store::StoredQuestion;
pub use watch::ApprovalWatch;

/// What a prompt may take longer than the time it gives a person.
const PROMPT_SLACK: Duration = Duration::from_secs(10);

/// An attempt that may be made. Its end goes to the audit.
#[derive(Debug)]
#[must_use = "the end of the attempt must be written"]
pub(crate) struct Admitted {
    ticket: Ticket,
}

impl Admitted {
    /// Writes how the attempt ended. It is over, so a failure to write can only be told.
    pub(crate) fn end(self, outcome: &Outcome) -> Result<(), RuntimeError> {
        Ok(self.ticket.end(outcome)?)
    }

    /// Writes that nothing came of it, for which the caller has a better error.
    pub(crate) fn failed(self, error: &RuntimeError) {
        let mut outcome = Outcome::new(Ended::Failed);
        outcome.error_kind = serde_json::to_value(error.kind())
            .ok()
            .and_then(|kind| kind.as_str().map(str::to_owned));
        let _ = self.ticket.end(&outcome);
    }
}

/// What was decided about an intent.
enum Verdicted {
    Run {
        approval: Approval,
        approver: Option<String>,
    },
    Refuse {
        kind: RefusalKind,
        approval_id: Option<String>,
        approver: Option<String>,
    },
}

impl Verdicted {
    const fn run(approval: Approval) -> Self {
        Self::Run {
            approval,
            approver: None,
        }
    }

    const fn refuse(kind: RefusalKind) -> Self {
        Self::Refuse {
            kind,
            approval_id: None,
            approver: None,
        }
    }
}

impl Runtime {
    /// Lets an intent pass, or says why not. Nothing may be started or written without it.
    pub(crate) async fn admit(&self, intent: &Intent<'_>) -> Result<Admitted, RuntimeError> {
        let script = intent.script();
        let finding = self.inner.policy.judge(intent, &script);
        let cause = finding.span.of(&script);
        self.admit_finding(intent, &intent.whole(), cause, &finding)
            .await
    }

    /// Lets something be written to a process that runs.
    pub(crate) async fn admit_input(
        &self,
        slot: &Slot,
        process: &ProcessStatus,
        bytes: &[u8],
        enter: bool,
    ) -> Result<Admitted, RuntimeError> {
        let mut text = String::from_utf8_lossy(bytes).into_owned();
        if enter {
            text.push('\n');
        }
        let session = process.session.as_deref().unwrap_or_default();
        let task = session.strip_prefix("task:").unwrap_or(session);
        let mut intent = Intent::new(AttemptKind::Input, task, slot, &text);
        intent.directory = Some(process.cwd.display());
        intent.process = Some(process.id.clone());
        let command = process.command.display();
        let (finding, is_code) = self.inner.policy.judge_input(&intent, &command);
        let data;
        let kept = if is_code || finding.verdict != Verdict::Allow {
            text.as_str()
        } else {
            // What a program asks for may well be a password, and nobody has to know it.
            data = format!("({} bytes of input)", text.len());
            data.as_str()
        };
        self.admit_finding(&intent, kept, finding.span.of(&text), &finding)
            .await
    }

    async fn admit_finding(
        &self,
        intent: &Intent<'_>,
        text: &str,
        cause: &str,
        finding: &Finding,
    ) -> Result<Admitted, RuntimeError> {
        let verdicted = self.decide(intent, text, cause, finding).await?;
        let (approval, approver) = match &verdicted {
            Verdicted::Run { approval, approver } => (*approval, approver),
            Verdicted::Refuse { approver, .. } => (Approval::None, approver),
        };
        let redactor = self.inner.keeper.strict_redactor();
        let attempt = Attempt {
            cwd: intent.directory.as_deref(),
            principal: self.inner.policy.gateway(),
            verdict: finding.verdict.name(),
            category: (finding.verdict != Verdict::Allow).then(|| finding.category.name()),
            rule: (!finding.rule.is_empty()).then_some(finding.rule),
            approval,
            approver: approver.as_deref(),
            ..Attempt::new(
                intent.task,
                intent.slot.place.backend(),
                &intent.slot.label,
                intent.kind,
                text,
            )
        };
        let ticket = self.inner.audit.start(&attempt, redactor)?;
        match verdicted {
            Verdicted::Run { .. } => Ok(Admitted { ticket }),
            Verdicted::Refuse {
                kind, approval_id, ..
            } => {
                let mut outcome = Outcome::new(Ended::Denied);
                outcome.error_kind = Some(kind.name().to_owned());
                ticket.end(&outcome)?;
                Err(RuntimeError::Refused(Box::new(Refusal {
                    kind,
                    command: self.shown(text),
                    description: finding.why.clone(),
                    pattern_key: pattern_key(finding),
                    approval_id,
                })))
            }
        }
    }

    async fn decide(
        &self,
        intent: &Intent<'_>,
        text: &str,
        cause: &str,
        finding: &Finding,
    ) -> Result<Verdicted, RuntimeError> {
        let policy = &self.inner.policy;
        match policy.mode().decide(finding) {
            Decision::Run if finding.verdict == Verdict::Allow => {
                return Ok(Verdicted::run(Approval::None));
            }
            Decision::Run => return Ok(Verdicted::run(Approval::Mode)),
            Decision::Refuse if finding.verdict == Verdict::Block => {
                return Ok(Verdicted::refuse(RefusalKind::Blocked));
            }
            Decision::Refuse => return Ok(Verdicted::refuse(RefusalKind::Denied)),
            Decision::Ask => {}
        }
        if policy.is_nested() {
            return Ok(Verdicted::refuse(RefusalKind::Required));
        }
        if policy::always(&self.inner.config).cover(finding) {
            return Ok(Verdicted::run(Approval::Always));
        }
        let session = policy.session(intent.task);
        if self.inner.approvals.grants(&session).cover(finding) {
            return Ok(Verdicted::run(Approval::Session));
        }
        let question = self.question(intent, text, cause, finding);
        let approver = self.inner.approver.as_ref();
        let approver = approver.filter(|asked| !policy.asks_later() || asked.is_callback());
        match (self.inner.approvals.spend(&question)?, approver) {
            (
                Some(StoredQuestion {
                    state: State::Allowed(answer),
                    answered_by,
                    ..
                }),
                _,
            ) => Ok(Verdicted::Run {
                approval: approval(answer),
                approver: answered_by,
            }),
            // Whoever is here can say it again.
            (Some(stored), None) => Ok(Verdicted::Refuse {
                kind: RefusalKind::Denied,
                approval_id: Some(stored.id),
                approver: stored.answered_by,
            }),
            (_, Some(approver)) => {
                let asked = approver.ask(&question);
                // A callback that fails, and one that never answers, mean no. A prompt watches the
                // time itself, and leaves the terminal as it was.
                let mut limit = self.inner.config.approval.timeout;
                if !approver.is_callback() {
                    limit += PROMPT_SLACK;
                }
                let answer = tokio::time::timeout(limit, asked).await;
                let answer = answer.ok().and_then(Result::ok).unwrap_or(Answer::Deny);
                self.take_answer(&question, answer, approver.name())
            }
            (None, None) => self.ask_later(&question).await,
        }
    }

    /// Keeps what a person answered.
    fn take_answer(
        &self,
        question: &Question,
        answer: Answer,
        by: &str,
    ) -> Result<Verdicted, RuntimeError> {
        let keys = &question.keys;
        match answer {
            Answer::Deny => {
                return Ok(Verdicted::Refuse {
                    kind: RefusalKind::Denied,
                    approval_id: None,
                    approver: Some(by.to_owned()),
                });
            }
            Answer::Once => {}
            // Nothing that could be kept: it is a yes for now.
            Answer::Session | Answer::Always if keys.is_empty() => {}
            Answer::Session => self.inner.approvals.grant(&question.session, keys)?,
            Answer::Always => allow_list::add(&self.inner.config.config_file, keys)?,
        }
        Ok(Verdicted::Run {
            approval: approval(answer),
            approver: Some(by.to_owned()),
        })
    }

    /// Stores the question for whoever answers it, and waits for that as long as configured.
    async fn ask_later(&self, question: &Question) -> Result<Verdicted, RuntimeError> {
        let approvals = &self.inner.approvals;
        let stored = approvals.ask(question)?;
        let wait = self.inner.config.approval.wait;
        if !wait.is_zero() {
            let deadline = Instant::now() + wait;
            let mut changes = approvals.watch()?;
            loop {
                if let Some(answered) = approvals.spend(question)? {
                    return match answered.state {
                        State::Allowed(answer) => self.take_answer(
                            question,
                            // What it grants was kept by whoever answered.
                            if answer == Answer::Deny {
                                answer
                            } else {
                                Answer::Once
                            },
                            answered.answered_by.as_deref().unwrap_or("another program"),
                        ),
                        _ => Ok(Verdicted::Refuse {
                            kind: RefusalKind::Denied,
                            approval_id: Some(answered.id),
                            approver: answered.answered_by,
                        }),
                    };
                }
                let left = deadline.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    break;
                }
                let _ =
                    tokio::time::timeout(left.min(Duration::from_secs(5)), changes.next()).await;
            }
        }
        Ok(Verdicted::Refuse {
            kind: RefusalKind::Required,
            approval_id: Some(stored.id),
            approver: None,
        })
    }

    fn question(
        &self,
        intent: &Intent<'_>,
        text: &str,
        cause: &str,
        finding: &Finding,
    ) -> Question {
        Question {
            session: self.inner.policy.session(intent.task),
            task: intent.task.to_owned(),
            backend: intent.slot.place.backend().to_owned(),
            place: intent.slot.label.clone(),
            kind: intent.kind,
            directory: intent.directory.clone(),
            fingerprint: intent.fingerprint(text),
            text: visible(text),
            safe_text: self.shown(text),
            process: intent.process.clone(),
            why: finding.why.clone(),
            cause: visible(cause),
            category: finding.category.name().to_owned(),
            keys: if Grants::can_cover(finding) {
                finding.keys.iter().map(ToString::to_string).collect()
            } else {
                Vec::new()
            },
            timeout: self.inner.config.approval.timeout,
        }
    }

    /// Returns a text as a person may see it: nothing invisible, nothing secret.
    fn shown(&self, text: &str) -> String {
        let redactor = self.inner.keeper.strict_redactor();
        redactor.redact(&visible(text)).into_owned()
    }
}

const fn approval(answer: Answer) -> Approval {
    match answer {
        Answer::Once => Approval::Once,
        Answer::Session => Approval::Session,
        Answer::Always => Approval::Always,
        Answer::Deny => Approval::None,
    }
}

/// Names what a finding is about, for programs.
fn pattern_key(finding: &Finding) -> String {
    format!("{}:{}", finding.category.name(), finding.target.name())
}

#[cfg(test)]
#[path = "approvals_tests.rs"]
mod tests;
