//! Any bytes as a command: an answer, always, with a span that lies in the text.
#![no_main]

use exoshell_guard::{Context, Guard, Verdict, visible};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let guard = Guard::new();
    let context = Context::new("/home/ada/project", "/home/ada");
    let finding = guard.check_bytes(bytes, &context);
    assert!(finding.span.start <= finding.span.end && finding.span.end <= bytes.len());
    assert_eq!(finding.verdict == Verdict::Allow, finding.keys.is_empty());
    if let Ok(text) = std::str::from_utf8(bytes) {
        assert!(text.get(finding.span.start..finding.span.end).is_some());
        assert!(!visible(text).contains('\u{202e}'));
        guard.check_write(text, &context);
    }
});
