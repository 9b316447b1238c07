//! What a command would do: allow it, ask a person, or block it.
//!
//! The guard judges what the shell would do and not what the text looks like. A command is parsed
//! by the grammar of bash ([`syntax`](self), our own parser; its module says why), then walked: quoting is undone,
//! variables, arrays, directories, functions and aliases are followed as far as they are known,
//! substitutions and nested shells are entered, wrappers such as `sudo`, `xargs` or `find -exec` are
//! taken off, and each program's options are read the way that program reads them. Text that never
//! reaches an executor is data. What cannot be known is asked about; what cannot be parsed, or is
//! too deep or too long, as well.
//!
//! It is pure and synchronous, knows no other crate of ours, and never runs anything. It is a seat
//! belt and not the boundary: that is the place a command runs in.
//!
//! ```
//! use exoshell_guard::{Context, Guard, Verdict};
//!
//! let guard = Guard::new();
//! let context = Context::new("/home/ada/project", "/home/ada");
//! assert_eq!(guard.check("echo 'rm -rf /'", &context).verdict, Verdict::Allow);
//! assert_eq!(guard.check("a=r; ${a}m build -rf", &context).verdict, Verdict::Ask);
//!
//! let finding = guard.check("cd / && r''m -rf ./*", &context);
//! assert_eq!(finding.verdict, Verdict::Block);
//! assert_eq!(finding.category.name(), "fs-wipe-root");
//! ```

#![cfg_attr(
    not(test),
    deny(
        clippy::string_slice,
        clippy::indexing_slicing,
        reason = "the text is hostile: no length and no boundary may be taken for granted"
    )
)]

mod approval;
mod context;
mod finding;
mod guard;
mod names;
mod paths;
mod policy;
mod rules;
mod run;
mod syntax;
mod text;
mod tools;
mod visible;

pub use approval::{Decision, Grants, Mode};
pub use context::{Context, Input};
pub use finding::{ApprovalKey, Category, Finding, Span, Target, Verdict};
pub use guard::{Guard, MAX_COMMAND, resolve};
pub use policy::{Action, CommandRule, PathRule, UserRules};
pub use rules::{Rule, all as rules};
pub use visible::visible;
