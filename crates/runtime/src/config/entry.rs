//! What the entries of a list must be.

use exoshell_guard::ApprovalKey;

/// Says what each entry of a list must be.
#[derive(Clone, Copy)]
pub(super) enum Entry {
    /// Any text.
    Any,
    /// The first words of a command.
    FirstWords,
    /// A path that means the same wherever it is used.
    Path,
    /// A category at a class of targets.
    ApprovalKey,
}

impl Entry {
    /// Tells whether a text can be an entry.
    pub(super) fn fits(self, text: &str) -> bool {
        if text.contains('\0') {
            return false;
        }
        match self {
            Self::Any => true,
            Self::FirstWords => {
                !text.trim().is_empty() && !text.contains([';', '|', '&', '\'', '"', '`', '\n'])
            }
            Self::Path => text.starts_with('/') || text == "~" || text.starts_with("~/"),
            Self::ApprovalKey => ApprovalKey::parse(text).is_some(),
        }
    }

    /// Says what a list takes.
    pub(super) const fn takes(self) -> &'static str {
        match self {
            Self::Any => "a list of strings",
            Self::FirstWords => {
                "a list of strings, each the first words of a command without quotes, `;`, `|` or `&`"
            }
            Self::Path => "a list of paths that start with `/` or `~/`",
            Self::ApprovalKey => {
                "a list of strings such as `recursive-delete:workspace` (category and target)"
            }
        }
    }
}
