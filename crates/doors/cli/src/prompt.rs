//! Asking the person at the terminal.

use std::fs::{File, OpenOptions};
use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::sync::Arc;
use std::time::{Duration, Instant};

use exoshell_runtime::{Answer, Approver, ApproverFuture, Question, StoredQuestion, inside_guest};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush, tcgetattr,
    tcsetattr,
};

use crate::output;

/// Asks on the terminal that this program was started from.
#[derive(Debug)]
pub(crate) struct TerminalApprover;

impl TerminalApprover {
    /// Returns the way to ask, if a person is there: not where a command that Exoshell runs has
    /// started this program, because then a model holds the terminal.
    pub(crate) fn if_person() -> Option<Arc<dyn Approver>> {
        let person = io::stdin().is_terminal() && io::stderr().is_terminal() && !inside_guest();
        person.then(|| Arc::new(Self) as Arc<dyn Approver>)
    }
}

impl Approver for TerminalApprover {
    fn ask<'a>(&'a self, question: &'a Question) -> ApproverFuture<'a> {
        Box::pin(async move {
            let text = words(question, output::colour());
            let timeout = question.timeout;
            let asked = tokio::task::spawn_blocking(move || Terminal::open()?.ask(&text, timeout));
            Ok(match asked.await?? {
                Some(Reply::Answer(answer)) => answer,
                Some(Reply::Stop) => Answer::Deny,
                None => {
                    output::talk("exoshell: no answer, so no");
                    Answer::Deny
                }
            })
        })
    }

    fn name(&self) -> &'static str {
        "terminal"
    }

    fn is_callback(&self) -> bool {
        false
    }
}

/// Says what is asked.
fn words(question: &Question, colour: bool) -> String {
    let sheet = Sheet {
        backend: &question.backend,
        task: &question.task,
        directory: question.directory.as_deref(),
        process: question.process.as_deref(),
        text: &question.text,
        hidden: false,
        why: &question.why,
        keys: &question.keys,
    };
    format!(
        "\n{}\n{}",
        sheet.words(colour),
        choices(&question.keys, question.timeout)
    )
}

/// Says what a stored question asks, and how to answer.
pub(crate) fn stored_words(question: &StoredQuestion, timeout: Duration, colour: bool) -> String {
    format!(
        "\n{}\n{}",
        sheet(question, colour),
        choices(&question.keys, timeout)
    )
}

/// Says what a stored question asks.
pub(crate) fn sheet(question: &StoredQuestion, colour: bool) -> String {
    let sheet = Sheet {
        backend: &question.backend,
        task: &question.task,
        directory: question.directory.as_deref(),
        process: question.process.as_deref(),
        text: &question.text,
        hidden: question.hidden,
        why: &question.why,
        keys: &question.keys,
    };
    sheet.words(colour)
}

/// Names the answers there are.
fn choices(keys: &[String], timeout: Duration) -> String {
    let longer = if keys.is_empty() {
        ""
    } else {
        "[s]ession  [a]lways  "
    };
    format!(
        "  [o]nce  {longer}[d]eny  ({} s, then deny) > ",
        timeout.as_secs()
    )
}

/// What a person sees of a question.
struct Sheet<'a> {
    backend: &'a str,
    task: &'a str,
    directory: Option<&'a str>,
    process: Option<&'a str>,
    text: &'a str,
    /// Whether secrets in the text are hidden.
    hidden: bool,
    why: &'a str,
    keys: &'a [String],
}

impl Sheet<'_> {
    fn words(&self, colour: bool) -> String {
        let (bold, plain) = if colour {
            ("\x1b[1m", "\x1b[0m")
        } else {
            ("", "")
        };
        let mut place = format!("{}, task {}", self.backend, self.task);
        if let Some(directory) = self.directory {
            place = format!("{place}, {directory}");
        }
        if let Some(process) = self.process {
            place = format!("{place}, written to {process}");
        }
        let rows =
            |text: &str| rows(text, columns().saturating_sub(MARGIN).max(20)).join("\n           ");
        let mut words = format!(
            "{bold}exoshell: this needs your approval{plain}\n  where    {}\n  runs     \
             {bold}{}{plain}\n  because  {}",
            rows(&place),
            rows(self.text),
            rows(self.why),
        );
        if self.hidden {
            words
                .push_str("\n  note     secrets in it are hidden, and with them what stands there");
        }
        if !self.keys.is_empty() {
            let keys = self.keys.join(", ");
            words = format!("{words}\n  session and always cover: {keys}");
        }
        words
    }
}

/// What stands before each row of a text, and some room.
const MARGIN: usize = 12;

fn columns() -> usize {
    usize::from(crate::raw_terminal::RawTerminal::current_size().cols)
}

/// Cuts a text into rows that the terminal does not wrap: what it wrapped could look like a row of
/// ours.
fn rows(text: &str, width: usize) -> Vec<String> {
    let mut rows = Vec::new();
    for line in text.trim_end().lines() {
        let letters: Vec<char> = line.chars().collect();
        if letters.is_empty() {
            rows.push(String::new());
        }
        rows.extend(
            letters
                .chunks(width)
                .map(|row| row.iter().collect::<String>()),
        );
    }
    rows
}

/// What a person did at a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reply {
    /// Answered.
    Answer(Answer),
    /// Pressed Ctrl-C.
    Stop,
}

/// Reads an answer. Nothing but a clear yes is one.
pub(crate) fn read_answer(line: &str) -> Answer {
    match line.trim().to_ascii_lowercase().as_str() {
        "o" | "once" => Answer::Once,
        "s" | "session" => Answer::Session,
        "a" | "always" => Answer::Always,
        _ => Answer::Deny,
    }
}

/// The controlling terminal, reading whole lines while held, whatever mode it was in.
#[derive(Debug)]
pub(crate) struct Terminal {
    file: File,
    before: Termios,
}

impl Terminal {
    pub(crate) fn open() -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).open("/dev/tty")?;
        let before = tcgetattr(&file)?;
        let mut lines = before.clone();
        lines.local_modes |= LocalModes::ICANON | LocalModes::ECHO;
        // Ctrl-C is an answer here: no.
        lines.local_modes &= !LocalModes::ISIG;
        lines.input_modes |= rustix::termios::InputModes::ICRNL;
        lines.output_modes |=
            rustix::termios::OutputModes::OPOST | rustix::termios::OutputModes::ONLCR;
        lines.special_codes[SpecialCodeIndex::VEOL] = 3;
        tcsetattr(&file, OptionalActions::Drain, &lines)?;
        Ok(Self { file, before })
    }

    /// Asks and waits for a line. What was typed before the question is no answer to it.
    pub(crate) fn ask(&mut self, text: &str, timeout: Duration) -> io::Result<Option<Reply>> {
        tcflush(&self.file, QueueSelector::IFlush)?;
        self.file.write_all(text.as_bytes())?;
        match self.line(timeout)? {
            Some(line) if line.contains('\u{3}') => {
                self.file.write_all(b"\n")?;
                Ok(Some(Reply::Stop))
            }
            Some(line) => {
                if !line.ends_with('\n') {
                    self.file.write_all(b"\n")?;
                }
                Ok(Some(Reply::Answer(read_answer(&line))))
            }
            None => {
                self.file.write_all(b"\n")?;
                Ok(None)
            }
        }
    }

    /// Reads a line; `None` when time is over.
    fn line(&mut self, timeout: Duration) -> io::Result<Option<String>> {
        let deadline = Instant::now() + timeout;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            let limit = Timespec {
                tv_sec: i64::try_from(left.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: left.subsec_nanos().into(),
            };
            let mut fds = [PollFd::new(&self.file, PollFlags::IN)];
            match poll(&mut fds, Some(&limit)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => {
                    let mut buffer = [0_u8; 1024];
                    let length = self.file.read(&mut buffer)?;
                    let line = buffer.get(..length).unwrap_or_default();
                    return Ok(Some(String::from_utf8_lossy(line).into_owned()));
                }
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // A terminal that is gone needs no restoring.
        let _ = tcsetattr(&self.file, OptionalActions::Drain, &self.before);
    }
}
