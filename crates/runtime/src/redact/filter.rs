//! The place of redaction in a transcript.

use exoshell_redact::{RedactStream, Redactor};

use crate::transcript::{TextFilter, TextSink};

/// Hides secrets in the text of a transcript.
#[derive(Debug)]
pub struct RedactFilter {
    stream: RedactStream,
    /// Taken and given back, so that it is allocated once.
    out: Vec<u8>,
}

impl RedactFilter {
    /// Makes a filter for one transcript.
    pub fn new(redactor: &Redactor) -> Self {
        Self {
            stream: redactor.stream(),
            out: Vec::new(),
        }
    }

    fn hand_on(&mut self, sink: &mut dyn TextSink) {
        match std::str::from_utf8(&self.out) {
            Ok("") => {}
            Ok(text) => sink.push(text),
            // Text goes in, but a known value need not be text.
            Err(_) => sink.push(&String::from_utf8_lossy(&self.out)),
        }
        self.out.clear();
    }
}

impl TextFilter for RedactFilter {
    fn push(&mut self, text: &str, out: &mut dyn TextSink) {
        self.stream.push_into(text.as_bytes(), &mut self.out);
        self.hand_on(out);
    }

    fn finish(&mut self, out: &mut dyn TextSink) {
        self.stream.finish_into(&mut self.out);
        self.hand_on(out);
    }
}

#[cfg(test)]
#[path = "filter_tests.rs"]
mod tests;
