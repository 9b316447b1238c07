//! What is about to be started or written.

use std::borrow::Cow;
use std::fmt::Write as _;

use sha2::{Digest as _, Sha256};

use crate::audit::AttemptKind;
use crate::places::slot::Slot;
use crate::places::spec::short_hex;

/// What a command will read, as far as it is known before it runs.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Input<'a> {
    /// Nothing.
    #[default]
    Empty,
    /// These bytes.
    Bytes(&'a [u8]),
    /// Something that comes while it runs.
    Unknown,
}

/// Something that is about to be started or written.
#[derive(Debug, Clone)]
pub(crate) struct Intent<'a> {
    pub(crate) kind: AttemptKind,
    pub(crate) task: &'a str,
    pub(crate) slot: &'a Slot,
    /// The command, the script or the path, exactly as it will be used.
    pub(crate) text: &'a str,
    /// Variables for it alone.
    pub(crate) env: &'a [(String, String)],
    pub(crate) input: Input<'a>,
    /// Where it starts, if that is known.
    pub(crate) directory: Option<String>,
    /// The task's own directory.
    pub(crate) workspace: Option<String>,
    /// The process it is written to.
    pub(crate) process: Option<String>,
    /// Whether it runs in a shell whose state outlives it.
    pub(crate) persists: bool,
}

impl<'a> Intent<'a> {
    pub(crate) const fn new(
        kind: AttemptKind,
        task: &'a str,
        slot: &'a Slot,
        text: &'a str,
    ) -> Self {
        Self {
            kind,
            task,
            slot,
            text,
            env: &[],
            input: Input::Empty,
            directory: None,
            workspace: None,
            process: None,
            persists: false,
        }
    }

    /// Returns what is judged: the command with its variables, which decide what it does as much
    /// as its words. Its input is judged with it, but is no part of the text: text that is put
    /// around a command could be closed by it.
    pub(crate) fn script(&self) -> Cow<'a, str> {
        if self.env.is_empty() || matches!(self.kind, AttemptKind::File | AttemptKind::Code) {
            return Cow::Borrowed(self.text);
        }
        let mut script = String::new();
        for (name, value) in self.env {
            let _ = writeln!(script, "export {name}={}", quoted(value));
        }
        script.push_str(self.text);
        Cow::Owned(script)
    }

    /// Returns the whole of it, the input too: what is shown, and written to the audit.
    pub(crate) fn whole(&self) -> Cow<'a, str> {
        let script = self.script();
        match self.input {
            Input::Empty => script,
            Input::Bytes(bytes) => {
                let text = String::from_utf8_lossy(bytes);
                let end = if text.ends_with('\n') { "" } else { "\n" };
                Cow::Owned(format!("{script}\n--- its stdin:\n{text}{end}"))
            }
            Input::Unknown => Cow::Owned(format!("{script}\n--- its stdin comes while it runs\n")),
        }
    }

    /// Tells this intent from every other: a yes to it covers nothing else.
    pub(crate) fn fingerprint(&self, whole: &str) -> String {
        let mut hasher = Sha256::new();
        let kind = serde_json::to_string(&self.kind).unwrap_or_default();
        let directory = self.directory.as_deref().unwrap_or_default();
        for part in [
            kind.as_str(),
            self.task,
            &self.slot.label,
            directory,
            self.process.as_deref().unwrap_or_default(),
            whole,
        ] {
            hasher.update(part.len().to_le_bytes());
            hasher.update(part.as_bytes());
        }
        let digest = hasher.finalize();
        format!("{}{}", short_hex(&digest), short_hex(&digest[8..]))
    }
}

/// Quotes a value for a shell.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}
