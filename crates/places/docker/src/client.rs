//! Running the client program.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use bytes::Bytes;
use exoshell_place::{Launched, PlaceError, SUDO_PASSWORD, Trouble};
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWriteExt as _, BufReader,
};
use tokio::process::{Child, Command};
use tokio::sync::{Semaphore, SemaphorePermit};

use crate::classify;

/// How many clients this process runs at once. A hundred places that start together would
/// otherwise need a hundred clients of some 30 MB each, and the engine works no faster for it.
const MAX_CLIENTS: usize = 4;

static CLIENTS: Semaphore = Semaphore::const_new(MAX_CLIENTS);

/// No answer of a client that we read is longer.
const MAX_ANSWER: u64 = 4 << 20;

/// The client program and the engine it talks to.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    program: PathBuf,
    /// The words that choose the engine.
    engine: Vec<String>,
    /// Whether its engine has answered before.
    answered: bool,
}

/// What a client said and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) ok: bool,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Answer {
    /// Returns all that may explain a failure.
    pub(crate) fn complaint(&self) -> &str {
        if self.stderr.trim().is_empty() {
            &self.stdout
        } else {
            &self.stderr
        }
    }
}

impl Client {
    pub(crate) fn new(program: PathBuf, engine: Vec<String>) -> Self {
        Self {
            program,
            engine,
            answered: false,
        }
    }

    /// Returns the program's path.
    pub(crate) fn program(&self) -> &Path {
        &self.program
    }

    /// Returns the program's name, for messages.
    pub(crate) fn name(&self) -> &str {
        self.program
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or("docker")
    }

    /// Notes that the engine is there: when it no longer answers, it may be restarting.
    #[must_use]
    pub(crate) fn answered(mut self) -> Self {
        self.answered = true;
        self
    }

    /// Describes what a failed answer means.
    pub(crate) fn failure(&self, what: &str, answer: &Answer) -> PlaceError {
        self.explain(what, answer.complaint())
    }

    /// Describes what the words of a client mean.
    pub(crate) fn explain(&self, what: &str, text: &str) -> PlaceError {
        match classify::failure(self.name(), what, text) {
            PlaceError::Backend {
                trouble: Trouble::NoDaemon,
                message,
                hint,
            } if self.answered => PlaceError::backend(Trouble::Interrupted, message, hint),
            error => error,
        }
    }

    /// Runs the client to its end; it is killed when the time is up.
    pub(crate) async fn run(
        &self,
        what: &str,
        words: &[String],
        limit: Duration,
    ) -> Result<Answer, PlaceError> {
        self.feed(what, words, Bytes::new(), limit).await
    }

    /// Runs the client, which must succeed, and returns what it printed.
    pub(crate) async fn succeed(
        &self,
        what: &str,
        words: &[String],
        limit: Duration,
    ) -> Result<String, PlaceError> {
        let answer = self.run(what, words, limit).await?;
        if answer.ok {
            Ok(answer.stdout)
        } else {
            Err(self.failure(what, &answer))
        }
    }

    /// Runs the client with these bytes as its stdin.
    pub(crate) async fn feed(
        &self,
        what: &str,
        words: &[String],
        input: Bytes,
        limit: Duration,
    ) -> Result<Answer, PlaceError> {
        let _permit = self.turn().await?;
        let work = async {
            let mut child = self.spawn(words, !input.is_empty())?;
            let stdin = child.stdin.take();
            let write = async {
                if let Some(mut stdin) = stdin {
                    // A client that does not want all of it says why by itself.
                    let _ = stdin.write_all(&input).await;
                    let _ = stdin.shutdown().await;
                }
            };
            let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
            let ((), stdout, stderr) = tokio::join!(write, read(stdout), read(stderr));
            let status = child.wait().await.map_err(|error| self.broken(&error))?;
            Ok(Answer {
                ok: status.success(),
                stdout,
                stderr,
            })
        };
        match tokio::time::timeout(limit, work).await {
            Ok(answer) => answer,
            Err(_late) => Err(classify::too_slow(self.name(), what, limit.as_secs())),
        }
    }

    /// Runs the client and hands over every line it prints, as it comes.
    pub(crate) async fn follow(
        &self,
        what: &str,
        words: &[String],
        limit: Duration,
        mut line: impl FnMut(Option<&str>),
    ) -> Result<Answer, PlaceError> {
        /// After how long without a line the caller hears that it goes on.
        const SILENCE: Duration = Duration::from_secs(10);
        let _permit = self.turn().await?;
        let work = async {
            let mut child = self.spawn(words, false)?;
            let mut stdout = lines(child.stdout.take());
            let mut stderr = lines(child.stderr.take());
            let mut answer = Answer {
                ok: false,
                stdout: String::new(),
                stderr: String::new(),
            };
            let (mut more, mut complaints) = (true, true);
            while more || complaints {
                tokio::select! {
                    text = stdout.next_line(), if more => match text {
                        Ok(Some(text)) => { keep(&mut answer.stdout, &text); line(Some(&text)); }
                        _ => more = false,
                    },
                    text = stderr.next_line(), if complaints => match text {
                        Ok(Some(text)) => { keep(&mut answer.stderr, &text); line(Some(&text)); }
                        _ => complaints = false,
                    },
                    () = tokio::time::sleep(SILENCE) => line(None),
                }
            }
            let status = child.wait().await.map_err(|error| self.broken(&error))?;
            answer.ok = status.success();
            Ok(answer)
        };
        match tokio::time::timeout(limit, work).await {
            Ok(answer) => answer,
            Err(_late) => Err(classify::too_slow(self.name(), what, limit.as_secs())),
        }
    }

    /// Starts the client for its streams; it lives as long as what is returned.
    pub(crate) fn launch(&self, words: &[String]) -> Result<Launched, PlaceError> {
        let mut all = vec![self.program.display().to_string()];
        all.extend(self.engine.iter().cloned());
        all.extend(words.iter().cloned());
        Launched::program(&all).map_err(|error| self.broken(&error))
    }

    async fn turn(&self) -> Result<SemaphorePermit<'static>, PlaceError> {
        CLIENTS
            .acquire()
            .await
            .map_err(|error| PlaceError::Nonsense(error.to_string()))
    }

    fn spawn(&self, words: &[String], input: bool) -> Result<Child, PlaceError> {
        Command::new(&self.program)
            .args(&self.engine)
            .args(words)
            .env_remove(SUDO_PASSWORD)
            .stdin(if input { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| self.broken(&error))
    }

    fn broken(&self, error: &std::io::Error) -> PlaceError {
        PlaceError::backend(
            Trouble::NoProgram,
            format!("`{}` cannot be run: {error}", self.program.display()),
            "set `EXOSHELL_DOCKER_BINARY` to a working `docker` or `podman`",
        )
    }
}

fn lines(
    stream: Option<impl AsyncRead + Send + Unpin + 'static>,
) -> tokio::io::Lines<BufReader<Box<dyn AsyncRead + Send + Unpin>>> {
    let stream: Box<dyn AsyncRead + Send + Unpin> = match stream {
        Some(stream) => Box::new(stream.take(MAX_ANSWER)),
        None => Box::new(tokio::io::empty()),
    };
    BufReader::new(stream).lines()
}

fn keep(kept: &mut String, line: &str) {
    kept.push_str(line);
    kept.push('\n');
}

/// Reads a stream to its end and keeps no more than an answer can be long.
async fn read(stream: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut stream) = stream else {
        return String::new();
    };
    let mut kept = Vec::new();
    // What was read before an error is all there is.
    let _ = (&mut stream).take(MAX_ANSWER).read_to_end(&mut kept).await;
    let _ = tokio::io::copy(&mut stream, &mut tokio::io::sink()).await;
    String::from_utf8_lossy(&kept).into_owned()
}

/// Makes a list of words out of anything that is text.
pub(crate) fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.into_iter().map(str::to_owned).collect()
}
