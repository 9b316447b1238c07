//! `exoshell approvals`: questions that wait for an answer, and what was allowed.

use std::collections::HashSet;

use exoshell_runtime::{Answer, Runtime, RuntimeError, StoredQuestion};
use serde_json::json;

use super::places::{printable, table};
use super::{load, written};
use crate::args::{ApprovalsCommand, PlaceArgs};
use crate::output;
use crate::prompt::{Reply, Terminal, TerminalApprover};

/// Longest text in a row of the table, in characters.
const TEXT: usize = 80;

/// Lists, answers, takes back or watches.
pub(crate) async fn run(command: ApprovalsCommand) -> u8 {
    let as_json = command.is_json();
    let result = match load(&PlaceArgs::default()) {
        Ok(runtime) => act(&runtime, command).await,
        Err(error) => Err(error),
    };
    result.unwrap_or_else(|error| output::error(&error, as_json))
}

async fn act(runtime: &Runtime, command: ApprovalsCommand) -> Result<u8, RuntimeError> {
    match command {
        ApprovalsCommand::Ls { json } => Ok(list(runtime, json)),
        ApprovalsCommand::Show { id, json } => show(runtime, &id, json),
        ApprovalsCommand::Allow {
            id,
            session,
            always,
            json,
        } => {
            let answer = match (session, always) {
                (_, true) => Answer::Always,
                (true, _) => Answer::Session,
                _ => Answer::Once,
            };
            answered(runtime, &id, answer, json)
        }
        ApprovalsCommand::Deny { id, json } => answered(runtime, &id, Answer::Deny, json),
        ApprovalsCommand::Revoke { key, all, json } => {
            let taken = runtime.revoke_approvals(key.as_deref().filter(|_| !all))?;
            if json {
                return Ok(written(output::json(&json!({ "revoked": taken }))));
            }
            output::talk(&match taken {
                0 => "nothing of that was allowed".to_owned(),
                taken => format!("took back {taken}"),
            });
            Ok(u8::from(taken == 0))
        }
        ApprovalsCommand::Watch { json } => watch(runtime, json).await,
    }
}

fn answered(
    runtime: &Runtime,
    id: &str,
    answer: Answer,
    as_json: bool,
) -> Result<u8, RuntimeError> {
    let question = runtime.answer_approval(id, answer, "exoshell approvals")?;
    if as_json {
        return Ok(written(output::json(&question)));
    }
    output::talk(&crate::prompt::sheet(&question, output::colour()));
    output::talk(&match answer {
        Answer::Deny => format!("denied {id}"),
        Answer::Once => format!("allowed {id} once: the next call that is exactly this one runs"),
        Answer::Session | Answer::Always if question.keys.is_empty() => {
            format!("allowed {id} once: each such case is a question of its own")
        }
        Answer::Session => format!(
            "allowed {} for {}",
            question.keys.join(", "),
            question.session
        ),
        Answer::Always => format!("allowed {} from now on", question.keys.join(", ")),
    });
    Ok(0)
}

fn show(runtime: &Runtime, id: &str, as_json: bool) -> Result<u8, RuntimeError> {
    let questions = runtime.approvals().questions;
    let question = questions.into_iter().find(|question| question.id == id);
    let question = question.ok_or_else(|| {
        RuntimeError::Usage(format!(
            "there is no question `{id}`; `exoshell approvals ls` lists those that exist"
        ))
    })?;
    if as_json {
        return Ok(written(output::json(&question)));
    }
    let text = format!("{}\n", crate::prompt::sheet(&question, output::colour()));
    Ok(written(output::data(text.as_bytes())))
}

fn list(runtime: &Runtime, as_json: bool) -> u8 {
    let report = runtime.approvals();
    if as_json {
        return written(output::json(&report));
    }
    if report.questions.is_empty() && report.grants.is_empty() {
        output::talk("no question waits, and nothing is allowed beyond the mode");
        return 0;
    }
    let mut text = String::new();
    if !report.questions.is_empty() {
        let header = ["ID", "STATE", "TASK", "BACKEND", "WHY", "TEXT"].map(str::to_owned);
        let rows: Vec<[String; 6]> = report.questions.iter().map(cells).collect();
        text.push_str(&table(&header, &rows));
    }
    if !report.grants.is_empty() {
        if !text.is_empty() {
            text.push('\n');
        }
        let header = ["ALLOWED", "FOR"].map(str::to_owned);
        let rows: Vec<[String; 2]> = report
            .grants
            .into_iter()
            .map(|grant| {
                [
                    grant.key,
                    grant.session.unwrap_or_else(|| "always".to_owned()),
                ]
            })
            .collect();
        text.push_str(&table(&header, &rows));
    }
    written(output::data(text.as_bytes()))
}

fn cells(question: &StoredQuestion) -> [String; 6] {
    let mut text = printable(&question.text);
    if text.chars().count() > TEXT {
        text = text.chars().take(TEXT - 1).chain(['…']).collect();
    }
    [
        question.id.clone(),
        question.state_name().to_owned(),
        printable(&question.task),
        question.backend.clone(),
        printable(&question.why),
        text,
    ]
}

/// Shows questions as they come; at a terminal each can be answered at once.
async fn watch(runtime: &Runtime, as_json: bool) -> Result<u8, RuntimeError> {
    let mut changes = runtime.watch_approvals()?;
    let mut seen = HashSet::new();
    let person = !as_json && TerminalApprover::if_person().is_some();
    if !as_json {
        output::talk("waiting for questions; Ctrl-C ends");
    }
    loop {
        for question in runtime.approvals().questions {
            if !question.is_pending() || !seen.insert(question.id.clone()) {
                continue;
            }
            if as_json {
                let mut line = serde_json::to_vec(&question).unwrap_or_default();
                line.push(b'\n');
                let shown = written(output::data(&line));
                if shown != 0 {
                    return Ok(shown);
                }
            } else if person {
                if !ask(runtime, question).await {
                    return Ok(0);
                }
            } else {
                let row = cells(&question).join("  ");
                if written(output::data(format!("{row}\n").as_bytes())) != 0 {
                    return Ok(0);
                }
            }
        }
        changes.next().await;
    }
}

/// Asks; tells whether to go on. A question without an answer stays one.
async fn ask(runtime: &Runtime, question: StoredQuestion) -> bool {
    let timeout = runtime.config().approval.timeout;
    let text = crate::prompt::stored_words(&question, timeout, output::colour());
    let answer = tokio::task::spawn_blocking(move || Terminal::open()?.ask(&text, timeout)).await;
    let answer = match answer {
        Ok(Ok(Some(Reply::Answer(answer)))) => answer,
        Ok(Ok(Some(Reply::Stop))) => return false,
        _ => {
            let id = &question.id;
            output::talk(&format!("exoshell: {id} stays unanswered"));
            return true;
        }
    };
    match runtime.answer_approval(&question.id, answer, "exoshell approvals watch") {
        Ok(_) => output::talk(&format!("exoshell: {}: {}", question.id, word(answer))),
        Err(error) => output::talk(&format!("exoshell: {error}")),
    }
    true
}

const fn word(answer: Answer) -> &'static str {
    match answer {
        Answer::Once => "allowed once",
        Answer::Session => "allowed for the session",
        Answer::Always => "allowed from now on",
        Answer::Deny => "denied",
    }
}
