use super::*;

fn transcript(limit: usize, bytes: &[u8]) -> Cut {
    let mut transcript = Transcript::new(limit);
    transcript.push(bytes);
    transcript.finish()
}

#[test]
fn o3_banner_and_error_of_ten_thousand_lines_are_both_shown() {
    let mut transcript = Transcript::default();
    transcript.push(b"\x1B[1m== banner ==\x1B[0m\r\n");
    for line in 0..9_998 {
        transcript.push(format!("line {line} of the build\n").as_bytes());
    }
    transcript.push(b"\x1B[31merror: last line\x1B[0m\n");
    let cut = transcript.finish();
    assert!(cut.text.starts_with("== banner ==\nline 0 of the build\n"));
    assert!(cut.text.ends_with("\nerror: last line\n"));
    assert!(cut.truncated);
    assert_eq!(cut.total_lines, 10_000);
    assert!(cut.shown_chars <= DEFAULT_LIMIT as u64);
}

#[test]
fn o4_raw_bytes_are_counted_before_decoding() {
    let mut transcript = Transcript::new(100);
    transcript.push(b"\xD6\xD0\xFF");
    transcript.push(b"\x1B[K");
    assert_eq!(transcript.raw_bytes(), 6);
    assert_eq!(transcript.finish().text, "\u{FFFD}\u{FFFD}\u{FFFD}");
}

#[test]
fn o5_overwritten_text_does_not_count_against_the_limit() {
    let progress = b"\rWorking 12%".repeat(1_000);
    let cut = transcript(20, &progress);
    assert_eq!(cut.text, "Working 12%");
    assert!(!cut.truncated);
}

#[test]
fn o5_the_filter_sees_normalised_text_and_the_cut_sees_filtered_text() {
    /// Replaces a word, whatever the pieces it comes in.
    struct Mask(String);
    impl TextFilter for Mask {
        fn push(&mut self, text: &str, _out: &mut dyn TextSink) {
            self.0.push_str(text);
        }
        fn finish(&mut self, out: &mut dyn TextSink) {
            out.push(&self.0.replace("secret", "***"));
        }
    }
    let mut transcript = Transcript::with_filter(10, Box::new(Mask(String::new())));
    transcript.push(b"xx se\x1B[1mcr");
    transcript.push(b"et\x1B[0m yy");
    let cut = transcript.finish();
    assert_eq!(cut.text, "xx *** yy");
    assert!(!cut.truncated);
}

#[test]
fn a_transcript_can_move_between_threads() {
    fn movable<T: Send>() {}
    movable::<Transcript>();
}
