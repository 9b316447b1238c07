//! Hiding secrets in the things that a runtime hands out.

use exoshell_redact::Redactor;
use exoshell_wire::{
    Acted, ExecDone, Happened, Note, OutputRead, ProcessEvent, ProcessInfo, ProcessStatus,
    RawBytes, Waited,
};
use serde_json::Value;

use crate::event::EventKind;
use crate::processes::{ProcessRecord, ProcessView};
use crate::tools::answer::{Leftover, TerminalResult};

/// Something that may hold secrets on its way out.
pub(crate) trait Outlet {
    /// Hides the secrets in it.
    fn clean(&mut self, redactor: &Redactor);
}

/// Hides the secrets in every text of a value.
pub fn clean_value(redactor: &Redactor, value: &mut Value) {
    match value {
        Value::String(text) => text.clean(redactor),
        Value::Array(list) => {
            for item in list {
                clean_value(redactor, item);
            }
        }
        Value::Object(map) => {
            for (_, item) in map {
                clean_value(redactor, item);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

impl Outlet for String {
    fn clean(&mut self, redactor: &Redactor) {
        if let std::borrow::Cow::Owned(text) = redactor.redact(self) {
            *self = text;
        }
    }
}

impl Outlet for RawBytes {
    fn clean(&mut self, redactor: &Redactor) {
        if let std::borrow::Cow::Owned(bytes) = redactor.redact_bytes(&self.0) {
            self.0 = bytes;
        }
    }
}

impl<T: Outlet> Outlet for Option<T> {
    fn clean(&mut self, redactor: &Redactor) {
        if let Some(inner) = self {
            inner.clean(redactor);
        }
    }
}

impl<T: Outlet> Outlet for Vec<T> {
    fn clean(&mut self, redactor: &Redactor) {
        for item in self {
            item.clean(redactor);
        }
    }
}

impl<T: Outlet> Outlet for Box<T> {
    fn clean(&mut self, redactor: &Redactor) {
        (**self).clean(redactor);
    }
}

impl Outlet for ProcessStatus {
    fn clean(&mut self, redactor: &Redactor) {
        self.command.clean(redactor);
        self.cwd.clean(redactor);
    }
}

impl Outlet for ProcessInfo {
    fn clean(&mut self, redactor: &Redactor) {
        self.command.clean(redactor);
    }
}

impl Outlet for ProcessRecord {
    fn clean(&mut self, redactor: &Redactor) {
        self.command.clean(redactor);
    }
}

impl Outlet for ProcessView {
    fn clean(&mut self, redactor: &Redactor) {
        match self {
            Self::Known(status) => status.clean(redactor),
            Self::Lost(record) | Self::Unreachable(record) => record.clean(redactor),
        }
    }
}

impl Outlet for Waited {
    fn clean(&mut self, redactor: &Redactor) {
        self.line.clean(redactor);
        self.status.clean(redactor);
    }
}

impl Outlet for OutputRead {
    fn clean(&mut self, redactor: &Redactor) {
        self.status.clean(redactor);
    }
}

impl Outlet for Acted {
    fn clean(&mut self, redactor: &Redactor) {
        self.status.clean(redactor);
        self.unkillable.clean(redactor);
        if let Some(screen) = &mut self.screen {
            screen.rows.clean(redactor);
            screen.drawn.clean(redactor);
        }
    }
}

impl Outlet for Note {
    fn clean(&mut self, redactor: &Redactor) {
        match self {
            Self::DirectoryGone { gone, used } => {
                gone.clean(redactor);
                used.clean(redactor);
            }
            Self::LoginFailed { why } | Self::NoGuest { why } => why.clean(redactor),
            Self::NoBash { .. } | Self::StateNotCaptured => {}
        }
    }
}

impl Outlet for ExecDone {
    fn clean(&mut self, redactor: &Redactor) {
        self.cwd.clean(redactor);
        self.leftovers.clean(redactor);
        self.unkillable.clean(redactor);
        self.notes.clean(redactor);
    }
}

impl Outlet for ProcessEvent {
    fn clean(&mut self, redactor: &Redactor) {
        match &mut self.happened {
            Happened::Completed { tail, .. } | Happened::Progress { tail, .. } => {
                tail.clean(redactor);
            }
            Happened::Matched { pattern, line, .. } => {
                pattern.clean(redactor);
                line.clean(redactor);
            }
            Happened::WatchOff { why } => why.clean(redactor),
            Happened::Dropped { .. } => {}
        }
    }
}

impl Outlet for EventKind {
    fn clean(&mut self, redactor: &Redactor) {
        if let Self::Progress { step } = self {
            step.clean(redactor);
        }
    }
}

impl Outlet for Leftover {
    fn clean(&mut self, redactor: &Redactor) {
        self.command.clean(redactor);
    }
}

impl Outlet for TerminalResult {
    /// Its output went through a filter before it was cut, so only the texts around it are left.
    fn clean(&mut self, redactor: &Redactor) {
        self.error.clean(redactor);
        self.hint.clean(redactor);
        self.cwd.clean(redactor);
        self.output_file_note.clean(redactor);
        self.left_running.clean(redactor);
        self.not_killed.clean(redactor);
    }
}
