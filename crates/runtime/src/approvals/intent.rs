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
        }
    }

    /// Returns the whole of it as one script: what is judged, shown and written to the audit. The
    /// variables and the input of a command decide what it does as much as its words.
    pub(crate) fn judged(&self) -> Cow<'a, str> {
        if matches!(self.kind, AttemptKind::File | AttemptKind::Code) {
            return Cow::Borrowed(self.text);
        }
        let mut script = String::new();
        for (name, value) in self.env {
            let _ = writeln!(script, "export {name}={}", quoted(value));
        }
        match self.input {
            Input::Empty if script.is_empty() => return Cow::Borrowed(self.text),
            Input::Empty => script.push_str(self.text),
            Input::Bytes(bytes) => fed(&mut script, self.text, &String::from_utf8_lossy(bytes)),
            Input::Unknown => {
                let _ = write!(script, "cat - | {{ {}\n}}", self.text);
            }
        }
        Cow::Owned(script)
    }

    /// Tells this intent from every other: a yes to it covers nothing else.
    pub(crate) fn fingerprint(&self, judged: &str) -> String {
        let mut hasher = Sha256::new();
        let kind = serde_json::to_string(&self.kind).unwrap_or_default();
        let directory = self.directory.as_deref().unwrap_or_default();
        for part in [
            kind.as_str(),
            self.task,
            &self.slot.label,
            directory,
            self.process.as_deref().unwrap_or_default(),
            judged,
        ] {
            hasher.update(part.len().to_le_bytes());
            hasher.update(part.as_bytes());
        }
        let digest = hasher.finalize();
        format!("{}{}", short_hex(&digest), short_hex(&digest[8..]))
    }
}

/// Writes a command that reads this text.
pub(super) fn fed(script: &mut String, command: &str, text: &str) {
    let mut mark = "INPUT".to_owned();
    while text.lines().any(|line| line == mark) {
        mark.push('_');
    }
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let _ = write!(script, "{{ {command}\n}} <<'{mark}'\n{text}{end}{mark}\n");
}

/// Quotes a value for a shell.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}
