//! When a person is asked: table `[approval]`.

use super::super::choices::{ApprovalMode, Named};
use super::super::env;
use super::super::slot::{Choice, Entry, Slot};
use super::{Key, SOME, store, take};

pub(super) static KEYS: &[Key] = &[
    Key {
        name: "approval.mode",
        variable: Some(env::EXOSHELL_APPROVAL),
        help: "What happens to commands that need a yes: \"ask\" a person; \"workspace\": code, and deletes inside the task's own directory and temp, pass, the rest asks; \"auto\": all pass, but what is blocked; \"deny\": none.",
        slot: Slot::Choice(Choice {
            names: ApprovalMode::names,
            read: |text, c| store(ApprovalMode::from_name(text), &mut c.approval.mode),
            apply: |c, r| take(&mut c.approval.mode, &mut r.approval.mode),
            show: |r| r.approval.mode.name(),
        }),
    },
    Key {
        name: "approval.allow",
        variable: None,
        help: "What was allowed for good, as \"category:target\"; the answer `always` adds to it.",
        slot: Slot::Words {
            each: Entry::ApprovalKey,
            layer: |c| &mut c.approval.allow,
            target: |r| &mut r.approval.allow,
        },
    },
    Key {
        name: "approval.timeout_seconds",
        variable: None,
        help: "How long a person who is asked has to answer; no answer means no.",
        slot: Slot::Seconds {
            min: SOME,
            layer: |c| &mut c.approval.timeout_seconds,
            target: |r| &mut r.approval.timeout,
        },
    },
    Key {
        name: "approval.wait_seconds",
        variable: None,
        help: "How long a call waits for an answer by `exoshell approvals` where nobody can be asked; 0 = it returns at once.",
        slot: Slot::Seconds {
            min: 0.0,
            layer: |c| &mut c.approval.wait_seconds,
            target: |r| &mut r.approval.wait,
        },
    },
    Key {
        name: "approval.expiry_seconds",
        variable: None,
        help: "How long a question can be answered by `exoshell approvals`, and a yes for once be used.",
        slot: Slot::Seconds {
            min: SOME,
            layer: |c| &mut c.approval.expiry_seconds,
            target: |r| &mut r.approval.expiry,
        },
    },
];
