//! What a record says, and its bytes.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use super::time;
use crate::redact::Redactor;

/// Longest of the short texts, in bytes.
const SHORT: usize = 256;

/// The hash before the first record.
pub(super) const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// What stands before a record's own hash; the hash is over everything before it.
const HASH_MARK: &str = ",\"hash\":\"";
/// How long the hash is.
const HASH_LENGTH: usize = 64;

/// The fields of a record, besides those of the chain.
pub(super) type Fields = Map<String, Value>;

/// What kind of thing is attempted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum AttemptKind {
    /// A command in the foreground.
    Command,
    /// A process in the background.
    Process,
    /// Something written to a process that runs.
    Input,
    /// Something with a terminal of its own.
    Pty,
    /// A script.
    Code,
    /// A change of a file.
    File,
}

/// Who or what let an attempt pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Approval {
    /// Nobody was needed, or nobody agreed.
    None,
    /// A person, for this one.
    Once,
    /// A person, for the session.
    Session,
    /// A person, for good.
    Always,
    /// The approval mode.
    Mode,
    /// A rule of the user.
    UserRule,
}

/// Says what is about to be attempted. All texts are redacted before they are written.
#[derive(Debug, Clone)]
pub struct Attempt<'a> {
    /// The task.
    pub task: &'a str,
    /// The backend.
    pub backend: &'a str,
    /// The place, as people know it.
    pub place: &'a str,
    /// What kind of thing it is.
    pub kind: AttemptKind,
    /// The command, the script or the path.
    pub text: &'a str,
    /// The directory it is to run in.
    pub cwd: Option<&'a str>,
    /// Where it came from: the door, or the tool.
    pub origin: Option<&'a str>,
    /// For whom, where a gateway serves several people.
    pub principal: Option<&'a str>,
    /// The image of the place.
    pub image: Option<&'a str>,
    /// The guard's verdict: `allow`, `ask` or `block`.
    pub verdict: &'a str,
    /// The guard's category.
    pub category: Option<&'a str>,
    /// The rule that decided.
    pub rule: Option<&'a str>,
    /// How it was approved.
    pub approval: Approval,
    /// Who approved it.
    pub approver: Option<&'a str>,
}

impl<'a> Attempt<'a> {
    /// Describes an attempt that the guard lets pass without a question.
    pub fn new(
        task: &'a str,
        backend: &'a str,
        place: &'a str,
        kind: AttemptKind,
        text: &'a str,
    ) -> Self {
        Self {
            task,
            backend,
            place,
            kind,
            text,
            cwd: None,
            origin: None,
            principal: None,
            image: None,
            verdict: "allow",
            category: None,
            rule: None,
            approval: Approval::None,
            approver: None,
        }
    }

    pub(super) fn fields(&self, redactor: &Redactor, limit: usize) -> Fields {
        let short = |text: &str| Value::from(cut(redactor.redact(text), SHORT));
        let mut fields = Fields::new();
        let mut put = |name: &str, value: Value| {
            fields.insert(name.to_owned(), value);
        };
        put("record", "start".into());
        put("task", short(self.task));
        put("backend", short(self.backend));
        put("place", short(self.place));
        put("kind", serde_json::json!(self.kind));
        put("text", cut(redactor.redact(self.text), limit).into());
        put("text_bytes", self.text.len().into());
        put(
            "text_sha256",
            hex(&Sha256::digest(self.text.as_bytes())).into(),
        );
        put("verdict", short(self.verdict));
        put("approval", serde_json::json!(self.approval));
        let optional = [
            ("category", self.category),
            ("rule", self.rule),
            ("approver", self.approver),
            ("cwd", self.cwd),
            ("origin", self.origin),
            ("principal", self.principal),
            ("image", self.image),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                put(name, short(value));
            }
        }
        fields
    }
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Ended {
    /// It ran to its end, whatever its exit code.
    Done,
    /// It was started and goes on by itself.
    Started,
    /// The guard or a person said no.
    Denied,
    /// It could not be run.
    Failed,
    /// Whoever made it went away.
    Lost,
}

/// Says how an attempt ended.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// How.
    pub ended: Ended,
    /// The exit code.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// How long it took; without it, the time since the start record.
    pub duration: Option<Duration>,
    /// How many bytes came out.
    pub bytes_out: Option<u64>,
    /// The kind of our own error, if there was one.
    pub error_kind: Option<String>,
    /// The process that goes on.
    pub process: Option<String>,
}

impl Outcome {
    /// Says only how it ended.
    pub const fn new(ended: Ended) -> Self {
        Self {
            ended,
            exit_code: None,
            signal: None,
            duration: None,
            bytes_out: None,
            error_kind: None,
            process: None,
        }
    }

    pub(super) fn fields(
        &self,
        start: u64,
        task: &str,
        elapsed: Duration,
        redactor: &Redactor,
    ) -> Fields {
        let short = |text: &str| Value::from(cut(redactor.redact(text), SHORT));
        let duration = self.duration.unwrap_or(elapsed).as_micros();
        let duration = u64::try_from(duration).unwrap_or(u64::MAX);
        let mut fields = Fields::new();
        let mut put = |name: &str, value: Value| {
            fields.insert(name.to_owned(), value);
        };
        put("record", "end".into());
        put("start", start.into());
        put("task", short(task));
        put("ended", serde_json::json!(self.ended));
        put("duration_us", duration.into());
        let optional = [
            ("exit_code", self.exit_code.map(Value::from)),
            ("signal", self.signal.map(Value::from)),
            ("bytes_out", self.bytes_out.map(Value::from)),
            ("error_kind", self.error_kind.as_deref().map(short)),
            ("process", self.process.as_deref().map(short)),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                put(name, value);
            }
        }
        fields
    }
}

/// Keeps the start and the end of a text that is too long.
fn cut(text: Cow<'_, str>, limit: usize) -> String {
    if text.len() <= limit {
        return text.into_owned();
    }
    let mut head = limit / 4 * 3;
    while !text.is_char_boundary(head) {
        head -= 1;
    }
    let mut tail = text.len() - limit / 4;
    while !text.is_char_boundary(tail) {
        tail += 1;
    }
    format!(
        "{} … {} bytes left out … {}",
        &text[..head],
        tail - head,
        &text[tail..]
    )
}

/// A record's place in the chain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) number: u64,
    pub(super) hash: String,
}

impl Link {
    /// Returns what stands before the first record.
    pub(super) fn genesis() -> Self {
        Self {
            number: 0,
            hash: GENESIS.to_owned(),
        }
    }

    /// Returns the line of the record that follows this one, and its link.
    pub(super) fn follow(&self, fields: &Fields) -> (Vec<u8>, Self) {
        let number = self.number.saturating_add(1);
        let mut line = format!(
            "{{\"seq\":{number},\"time\":\"{}\",\"pid\":{},\"prev\":\"{}\"",
            time::rfc3339(SystemTime::now()),
            std::process::id(),
            self.hash
        );
        for (name, value) in fields {
            line.push_str(",\"");
            line.push_str(name);
            line.push_str("\":");
            line.push_str(&value.to_string());
        }
        let hash = hex(&Sha256::digest(line.as_bytes()));
        line.push_str(HASH_MARK);
        line.push_str(&hash);
        line.push_str("\"}\n");
        (line.into_bytes(), Self { number, hash })
    }
}

/// What a line says about its place in the chain.
#[derive(Debug, Clone)]
pub(super) struct Line {
    pub(super) link: Link,
    pub(super) prev: String,
    pub(super) value: Map<String, Value>,
}

/// Reads a line, without its end; `None` when its bytes are not those that were written.
pub(super) fn read(line: &[u8]) -> Option<Line> {
    let text = std::str::from_utf8(line).ok()?;
    let body = text.strip_suffix("\"}")?;
    let (body, hash) = body.split_at_checked(body.len().checked_sub(HASH_LENGTH)?)?;
    let body = body.strip_suffix(HASH_MARK)?;
    if hex(&Sha256::digest(body.as_bytes())) != hash {
        return None;
    }
    let value: Map<String, Value> = serde_json::from_str(text).ok()?;
    Some(Line {
        link: Link {
            number: value.get("seq")?.as_u64()?,
            hash: hash.to_owned(),
        },
        prev: value.get("prev")?.as_str()?.to_owned(),
        value,
    })
}

/// Writes bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| char::from(DIGITS[usize::from(value)]);
    bytes
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}
