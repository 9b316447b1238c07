use super::*;
use crate::transcript::Transcript;

#[test]
fn a_transcript_with_the_filter_hides_secrets_split_by_colours_and_pieces() {
    let token = format!("ghp_{}", "aB3dE5".repeat(6));
    let redactor = Redactor::default();
    let mut transcript = Transcript::with_filter(1000, Box::new(RedactFilter::new(&redactor)));
    transcript.push(b"it is \x1b[1mgh");
    transcript.push(b"\x1b[0m");
    for byte in &token.as_bytes()[2..] {
        transcript.push(&[*byte]);
    }
    transcript.push("\nend é\n".as_bytes());
    assert_eq!(
        transcript.finish().text,
        "it is [redacted: github token]\nend é\n"
    );
    let mut filter = RedactFilter::new(&redactor);
    let mut out = String::new();
    filter.push("plain", &mut out);
    filter.finish(&mut out);
    assert_eq!(out, "plain");
}
