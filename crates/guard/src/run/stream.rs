//! What flows between commands: text as far as it is known, and where it comes from.

/// Where a text comes from, as a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Origin(u8);

impl Origin {
    pub(crate) const NONE: Self = Self(0);
    /// From the network.
    pub(crate) const NETWORK: Self = Self(1);
    /// Out of an encoding or an archive.
    pub(crate) const DECODED: Self = Self(2);
    /// From a secret, or the environment.
    pub(crate) const SECRET: Self = Self(4);
    /// From a file that is not seen here.
    pub(crate) const FILE: Self = Self(8);

    /// From a list of processes found by name.
    pub(crate) const PROCESSES: Self = Self(16);

    /// From our own controls, or a list of our own processes.
    pub(crate) const CONTROL: Self = Self(32);

    pub(crate) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) fn has(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// The output of a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Stream {
    /// The text, if it is known; parts of it may be unknown.
    pub(crate) text: Option<String>,
    pub(crate) origin: Origin,
}

impl Stream {
    /// Output about which nothing is known.
    pub(crate) fn unknown() -> Self {
        Self::default()
    }

    /// Output that is known to be `text`.
    pub(crate) fn known(text: impl Into<String>) -> Self {
        let text = text.into();
        let short = text.len() <= crate::text::MAX_TEXT;
        Self {
            text: short.then_some(text),
            origin: Origin::NONE,
        }
    }

    /// Unknown output from somewhere.
    pub(crate) fn from(origin: Origin) -> Self {
        Self { text: None, origin }
    }

    pub(crate) fn silent() -> Self {
        Self::known("")
    }

    /// Returns how many bytes a copy copies.
    pub(crate) fn weight(&self) -> usize {
        self.text.as_deref().map_or(0, str::len)
    }

    /// Adds what the next command prints.
    pub(crate) fn append(&mut self, next: Self) {
        self.origin = self.origin.with(next.origin);
        self.text = match (self.text.take(), next.text) {
            (Some(mut text), Some(next)) if text.len() + next.len() <= crate::text::MAX_TEXT => {
                text.push_str(&next);
                Some(text)
            }
            _ => None,
        };
    }
}
