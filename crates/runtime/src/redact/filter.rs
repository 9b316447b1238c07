//! The place of redaction in a transcript.

use super::into_text;
use super::stream::RedactStream;
use crate::transcript::{TextFilter, TextSink};

/// Hides secrets in the text of a transcript.
#[derive(Debug)]
pub struct RedactFilter {
    stream: RedactStream,
    /// Taken and given back, so that it is allocated once.
    out: Vec<u8>,
}

impl RedactFilter {
    pub(super) fn new(stream: RedactStream) -> Self {
        Self {
            stream,
            out: Vec::new(),
        }
    }

    fn hand_on(&mut self, sink: &mut dyn TextSink) {
        match std::str::from_utf8(&self.out) {
            Ok("") => {}
            Ok(text) => sink.push(text),
            Err(_) => sink.push(&into_text(self.out.clone())),
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
