//! The engine's own interface: HTTP over its unix socket.
//!
//! It is used for what has to be cheap: looking at containers, and the pipe of a place, which
//! then costs no client process.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bytes::Bytes;
use exoshell_place::{Launched, PlaceError, Trouble};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST, UPGRADE};
use hyper::{Method, Request, Response, StatusCode, body::Incoming};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, BufReader};
use tokio::net::UnixStream;

use crate::classify;
use crate::client::Answer;
use crate::streams::Demultiplexer;

/// No answer that we read is longer.
const MAX_ANSWER: usize = 4 << 20;

/// How long the engine may take to answer a question.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// How much of a command's stderr waits for its reader.
const STDERR_BUFFER: usize = 16 * 1024;

/// How much is read ahead of a program's output, so that a frame and its header cost one read.
const READ_BUFFER: usize = 16 * 1024;

/// An engine reached over its socket.
#[derive(Debug, Clone)]
pub(crate) struct Api {
    socket: PathBuf,
    /// The client's name, for what to do about a failure.
    program: String,
}

/// Why a request failed before there was an answer.
#[derive(Debug)]
struct NoAnswer {
    message: String,
    denied: bool,
}

impl Api {
    pub(crate) fn new(socket: PathBuf, program: String) -> Self {
        Self { socket, program }
    }

    /// Returns the socket's path.
    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Asks a question and returns the answer; `None` when there is no such thing.
    pub(crate) async fn get(&self, what: &str, path: &str) -> Result<Option<Value>, PlaceError> {
        self.get_within(what, path, ANSWER_LIMIT).await
    }

    /// Asks a question that must be answered in this time.
    pub(crate) async fn get_within(
        &self,
        what: &str,
        path: &str,
        limit: Duration,
    ) -> Result<Option<Value>, PlaceError> {
        let ask = self.ask(Method::GET, path, None);
        let answer = within(limit, ask).await;
        self.read(what, answer.map_err(|error| self.interrupted(&error))?)
    }

    /// Asks an engine that nobody has heard of yet for its version.
    pub(crate) async fn version(&self, limit: Duration) -> Result<Option<Value>, PlaceError> {
        let ask = self.ask(Method::GET, "/version", None);
        let answer = within(limit, ask).await;
        let answer = answer.map_err(|error| self.unreachable(&error))?;
        self.read("ask for its version", answer)
    }

    fn read(
        &self,
        what: &str,
        (status, body): (StatusCode, Bytes),
    ) -> Result<Option<Value>, PlaceError> {
        match status {
            StatusCode::NOT_FOUND => Ok(None),
            status if status.is_success() => match serde_json::from_slice(&body) {
                Ok(value) => Ok(Some(value)),
                Err(error) => Err(PlaceError::Nonsense(error.to_string())),
            },
            _ => Err(classify::failure(&self.program, what, &message(&body))),
        }
    }

    /// Asks for a change and returns what the engine says of it. One that is made already is fine.
    pub(crate) async fn change(
        &self,
        what: &str,
        method: Method,
        path: &str,
        limit: Duration,
    ) -> Result<Answer, PlaceError> {
        let ask = self.ask(method, path, None);
        let Ok(answer) = tokio::time::timeout(limit, ask).await else {
            return Err(classify::too_slow(&self.program, what, limit.as_secs()));
        };
        let (status, body) = answer.map_err(|error| self.unreachable(&error))?;
        let ok = status.is_success() || status == StatusCode::NOT_MODIFIED;
        Ok(Answer {
            ok,
            stdout: String::new(),
            stderr: if ok { String::new() } else { message(&body) },
        })
    }

    /// Starts a program in a container with its streams piped.
    pub(crate) async fn exec(
        &self,
        container: &str,
        words: &[String],
    ) -> Result<Launched, PlaceError> {
        const WHAT: &str = "run a program in the container";
        let wanted = json!({
            "AttachStdin": true, "AttachStdout": true, "AttachStderr": true, "Tty": false,
            "Cmd": words,
        });
        let path = format!("/containers/{}/exec", encode(container));
        let create = self.ask(Method::POST, &path, Some(&wanted));
        let (status, body) = within(EXEC_LIMIT, create)
            .await
            .map_err(|error| self.interrupted(&error))?;
        if !status.is_success() {
            return Err(classify::failure(&self.program, WHAT, &message(&body)));
        }
        let id = serde_json::from_slice::<Value>(&body)
            .ok()
            .and_then(|answer| Some(answer.get("Id")?.as_str()?.to_owned()))
            .ok_or_else(|| PlaceError::Nonsense("the engine named no exec id".to_owned()))?;
        match within(EXEC_LIMIT, self.start_exec(&id)).await {
            Ok(Ok(launched)) => Ok(launched),
            Ok(Err(body)) => Err(classify::failure(&self.program, WHAT, &message(&body))),
            Err(error) => Err(self.interrupted(&error)),
        }
    }

    /// Starts a prepared program; the inner error is the engine's refusal.
    async fn start_exec(&self, id: &str) -> Result<Result<Launched, Bytes>, NoAnswer> {
        let start = json!({ "Detach": false, "Tty": false });
        let path = format!("/exec/{}/start", encode(id));
        let mut response = self.send(Method::POST, &path, Some(&start), true).await?;
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Ok(Err(collect(response).await?));
        }
        let upgraded = hyper::upgrade::on(&mut response).await.map_err(failed)?;
        let parts = upgraded
            .downcast::<TokioIo<UnixStream>>()
            .map_err(|_other| failed("the engine's connection changed its kind"))?;
        let (reader, writer) = parts.io.into_inner().into_split();
        let reader = io::Cursor::new(parts.read_buf).chain(reader);
        let reader = BufReader::with_capacity(READ_BUFFER, reader);
        let (stderr, errors) = tokio::io::duplex(STDERR_BUFFER);
        Ok(Ok(Launched {
            stdin: Box::new(writer),
            stdout: Box::new(Demultiplexer::new(reader, errors)),
            stderr: Box::new(stderr),
            keep: Box::new(()),
        }))
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<(StatusCode, Bytes), NoAnswer> {
        let response = self.send(method, path, body, false).await?;
        let status = response.status();
        Ok((status, collect(response).await?))
    }

    /// Sends one request over a connection of its own: the engine accepts faster than a pool of
    /// kept connections could be looked after.
    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        upgrade: bool,
    ) -> Result<Response<Incoming>, NoAnswer> {
        let stream = UnixStream::connect(&self.socket)
            .await
            .map_err(|error| NoAnswer {
                message: format!("`{}`: {error}", self.socket.display()),
                denied: error.kind() == io::ErrorKind::PermissionDenied,
            })?;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
            .await
            .map_err(failed)?;
        // It ends with the answer, with the upgrade, or when the sender is dropped.
        tokio::spawn(connection.with_upgrades());
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, "localhost")
            .header(CONTENT_TYPE, "application/json");
        if upgrade {
            request = request.header(CONNECTION, "Upgrade").header(UPGRADE, "tcp");
        }
        let body = body.map(Value::to_string).unwrap_or_default();
        let request = request.body(Full::new(Bytes::from(body))).map_err(failed)?;
        sender.send_request(request).await.map_err(failed)
    }

    /// The engine does not answer a first question.
    fn unreachable(&self, error: &NoAnswer) -> PlaceError {
        if error.denied {
            return PlaceError::backend(
                Trouble::NotAllowed,
                format!("the engine's socket may not be used: {}", error.message),
                "add yourself to the `docker` group and log in again, or use rootless Docker or \
                 Podman",
            );
        }
        classify::no_daemon(&self.program, &error.message)
    }

    /// The engine does not answer any more: it may be restarting.
    fn interrupted(&self, error: &NoAnswer) -> PlaceError {
        if error.denied {
            return self.unreachable(error);
        }
        PlaceError::backend(
            Trouble::Interrupted,
            format!("the container engine went away: {}", error.message),
            format!("try again when `{} version` answers", self.program),
        )
    }
}

/// How long the engine may take to start a program in a container.
const EXEC_LIMIT: Duration = Duration::from_secs(30);

async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, NoAnswer>>,
) -> Result<T, NoAnswer> {
    match tokio::time::timeout(limit, work).await {
        Ok(result) => result,
        Err(_late) => Err(NoAnswer {
            message: format!("nothing came within {} s", limit.as_secs()),
            denied: false,
        }),
    }
}

async fn collect(response: Response<Incoming>) -> Result<Bytes, NoAnswer> {
    let body = Limited::new(response.into_body(), MAX_ANSWER);
    Ok(body.collect().await.map_err(failed)?.to_bytes())
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "it is the argument of `map_err`"
)]
fn failed(error: impl ToString) -> NoAnswer {
    NoAnswer {
        message: error.to_string(),
        denied: false,
    }
}

/// Returns the text of an engine's refusal.
fn message(body: &[u8]) -> String {
    serde_json::from_slice::<Value>(body)
        .ok()
        .and_then(|body| Some(body.get("message")?.as_str()?.to_owned()))
        .unwrap_or_else(|| String::from_utf8_lossy(body).into_owned())
}

/// Makes text fit for a part of an address.
pub(crate) fn encode(text: &str) -> String {
    text.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'/' | b':' | b'@' => {
                char::from(byte).to_string()
            }
            other => format!("%{other:02X}"),
        })
        .collect()
}

#[cfg(test)]
#[path = "api_tests.rs"]
mod tests;
