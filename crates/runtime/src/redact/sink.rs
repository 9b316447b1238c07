//! Hiding secrets in output as it streams.

use std::convert::Infallible;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use exoshell_redact::RedactStream;
use tokio::sync::Notify;

use super::Keeper;
use crate::run::OutputStream;

/// How long output may pause before a few letters that were held back are shown.
pub(crate) const QUIET: Duration = Duration::from_millis(100);

/// Passes a command's streams on, each without its secrets.
pub(crate) struct StreamSink<F> {
    inner: Mutex<Inner<F>>,
    /// Told when something is held back.
    held: Notify,
}

struct Inner<F> {
    keeper: Keeper,
    /// Made when they are needed: until then more secrets may become known.
    stdout: Option<RedactStream>,
    stderr: Option<RedactStream>,
    sink: F,
    /// Counts pushes, to notice a pause.
    pushes: u64,
    /// Taken and given back, so that it is allocated once.
    out: Vec<u8>,
}

impl<F: FnMut(OutputStream, &[u8])> StreamSink<F> {
    pub(crate) fn new(keeper: Keeper, sink: F) -> Self {
        Self {
            inner: Mutex::new(Inner {
                keeper,
                stdout: None,
                stderr: None,
                sink,
                pushes: 0,
                out: Vec::new(),
            }),
            held: Notify::new(),
        }
    }

    /// Takes the next bytes of a stream.
    pub(crate) fn push(&self, stream: OutputStream, bytes: &[u8]) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.pushes += 1;
        let held = inner.pass(stream, |redact, out| redact.push_into(bytes, out));
        if held > 0 {
            self.held.notify_one();
        }
    }

    /// Shows what was held back: no more will come.
    pub(crate) fn finish(&self) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.pass_all(RedactStream::finish_into);
    }

    /// Shows the end of a prompt once output pauses, for ever. Only a few letters are let go, and
    /// what follows them is still hidden if it turns out to be a secret.
    pub(crate) async fn relax(&self) -> Infallible {
        loop {
            self.held.notified().await;
            let mut seen = self.pushes();
            loop {
                tokio::time::sleep(QUIET).await;
                let now = self.pushes();
                if now == seen {
                    break;
                }
                seen = now;
            }
            let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
            inner.pass_all(|redact, out| out.extend(redact.relax()));
        }
    }

    fn pushes(&self) -> u64 {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.pushes
    }
}

impl<F: FnMut(OutputStream, &[u8])> Inner<F> {
    /// Takes a step with every stream that has begun.
    fn pass_all(&mut self, step: impl Fn(&mut RedactStream, &mut Vec<u8>)) {
        if self.stdout.is_some() {
            self.pass(OutputStream::Stdout, &step);
        }
        if self.stderr.is_some() {
            self.pass(OutputStream::Stderr, &step);
        }
    }

    /// Hands on what a step lets through; returns how much is held back after it.
    fn pass(
        &mut self,
        stream: OutputStream,
        step: impl FnOnce(&mut RedactStream, &mut Vec<u8>),
    ) -> usize {
        let redact = match stream {
            OutputStream::Stdout => &mut self.stdout,
            OutputStream::Stderr => &mut self.stderr,
        };
        let redact = redact.get_or_insert_with(|| self.keeper.redactor().stream());
        step(redact, &mut self.out);
        let held = redact.held();
        if !self.out.is_empty() {
            (self.sink)(stream, &self.out);
            self.out.clear();
        }
        held
    }
}
