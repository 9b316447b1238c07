use super::super::Normaliser;
use super::*;

fn shown(text: &str) -> String {
    let mut normaliser = Normaliser::new();
    let mut out = String::new();
    normaliser.push(text.as_bytes(), &mut out);
    normaliser.finish(&mut out);
    out
}

#[test]
fn o5_carriage_return_overwrites() {
    assert_eq!(shown("a\rb\n"), "b\n");
    assert_eq!(shown("abc\rX"), "Xbc");
    assert_eq!(shown("Working\rWorking.\rWorking..\n"), "Working..\n");
    assert_eq!(shown("one\ntwo\r2\nthree"), "one\n2wo\nthree");
    assert_eq!(shown("abc\r"), "abc");
    assert_eq!(shown("\rabc\r\r\x1B[mX\r"), "Xbc");
}

#[test]
fn o5_carriage_return_and_line_feed_are_one_line_end() {
    assert_eq!(shown("a\r\nb\r\n\r\nc\r\r\nd"), "a\nb\n\nc\nd");
    assert_eq!(shown("a\r\x1B[0m\nb"), "a\nb");
}

#[test]
fn o5_backspace_moves_left() {
    assert_eq!(shown("abc\x08\x08X"), "aXc");
    assert_eq!(shown("\x08a\x08\x08\x08b"), "b");
    assert_eq!(shown("N\x08NA\x08AM\x08ME\x08E\n_\x08x"), "NAME\nx");
    assert_eq!(shown("a\n\x08b"), "a\nb");
    assert_eq!(shown("|\x08/\x08-\x08 \x08done"), "done");
}

#[test]
fn o5_erase_in_line_leaves_no_blanks() {
    assert_eq!(shown("progress 50%\r\x1B[Kdone\n"), "done\n");
    assert_eq!(shown("progress 50%\r\x1B[2K"), "");
    assert_eq!(shown("abcdef\x1B[3D\x1B[K"), "abc");
    assert_eq!(shown("abcdef\x1B[3D\x1B[1K"), "    ef");
    assert_eq!(shown("abcdef\x1B[1K\rx"), "x");
    assert_eq!(shown("abc\x1B[2Kd"), "   d");
    assert_eq!(shown("kept\x1B[K\n\x1B[Kalso\n"), "kept\nalso\n");
}

#[test]
fn o5_the_cursor_moves_within_a_row() {
    assert_eq!(shown("abcdef\x1B[4DX"), "abXdef");
    assert_eq!(shown("abc\x1B[1GX\x1B[CY"), "XbY");
    assert_eq!(shown("a\x1B[3Cb"), "a   b");
    assert_eq!(shown("a\x1B[5Gb"), "a   b");
    assert_eq!(shown("abc\x1B[99D\x1B[2X"), "  c");
    assert_eq!(shown("abcd\r\x1B[2P"), "cd");
    assert_eq!(shown("abcd\r\x1B[2@X"), "X abcd");
    assert_eq!(shown("abc\x1B[P\x1B[X\x1B[@d"), "abcd");
}

#[test]
fn o5_the_cursor_moves_between_rows() {
    assert_eq!(shown("one\ntwo\n\x1B[2AX\n\nend"), "Xne\ntwo\nend");
    assert_eq!(shown("one\ntwo\x1B[AX"), "oneX\ntwo");
    assert_eq!(shown("one\ntwo\x1B[FX\x1B[EY"), "Xne\nYwo");
    assert_eq!(shown("one\ntwo\x1B[A\x1B[BX"), "one\ntwoX");
    assert_eq!(shown("one\ntwo\x1B[9AX\x1B[9B\rY"), "oneX\nYwo");
    assert_eq!(shown("one\ntwo\x1BM\rX"), "Xne\ntwo");
    assert_eq!(shown("one\ntwo\n\x1B[A"), "one\ntwo\n");
}

#[test]
fn moving_to_a_row_below_the_last_never_overwrites() {
    assert_eq!(shown("one\x1B[Etwo"), "one\ntwo");
    assert_eq!(shown("one\x1BEtwo\u{85}three"), "one\ntwo\nthree");
    assert_eq!(shown("one\x1B[Btwo"), "onetwo");
}

#[test]
fn o5_erase_below_after_moving_up_removes_the_rows() {
    assert_eq!(
        shown("log\n a 10%\n b 20%\n\x1B[2A\x1B[Jdone\n"),
        "log\ndone\n"
    );
    assert_eq!(shown("a\nb\n\x1B[A\x1B[J"), "a\n");
    assert_eq!(shown("a\nbcd\x1B[2D\x1B[0J"), "a\nb");
    assert_eq!(shown("a\nb\nc\x1B[2A\r\x1B[J\x1B[2Bz"), "\n\nz");
}

#[test]
fn o5_clear_screen_and_home_keep_what_was_seen() {
    assert_eq!(shown("seen\n\x1B[H\x1B[2J\x1B[3Jnext\n"), "seen\nnext\n");
    assert_eq!(shown("seen\n\x1B[H\x1B[Jnext\n"), "seen\nnext\n");
    assert_eq!(shown("a\x1B[?1049h\x1B[Hb\x1B[?1049l\n"), "ab\n");
    assert_eq!(shown("a\x1Bcb"), "ab");
}

#[test]
fn o5_line_by_line_erasure_leaves_only_the_final_frame() {
    let erase = "\x1B[2K\x1B[1A\x1B[2K\x1B[1A\x1B[2K\x1B[G";
    assert_eq!(shown(&format!("x\na\nb\n{erase}done")), "x\ndone");
    assert_eq!(shown(&format!("a 1\nb 1\n{erase}a 2\nb 2\n")), "a 2\nb 2\n");
}

#[test]
fn o5_saved_cursor_positions_are_restored() {
    assert_eq!(shown("at \x1B[s 10%\x1B[u 20%\x1B[u100%\n"), "at 100%\n");
    assert_eq!(shown("a\n\x1B7b\nc\n\x1B8X\n\n"), "a\nX\nc\n");
    let lines = "line\n".repeat(200);
    assert_eq!(
        shown(&format!("\x1B7{lines}\x1B8end")),
        format!("{lines}end")
    );
}

#[test]
fn o5_nested_progress_bars_end_with_their_final_states() {
    // As tqdm writes them: the bar at position 1 goes down a line, draws, and comes up again.
    let bar = |done: usize, of: usize| {
        let percent = done * 100 / of;
        format!("{percent:3}%|{:<4}| {done}/{of}", "█".repeat(percent / 25))
    };
    let mut bytes = String::from("\router: ") + &bar(0, 2);
    for outer in 1..=2 {
        for inner in 0..=4 {
            bytes = bytes + "\n\rinner: " + &bar(inner, 4) + "\x1B[A";
        }
        bytes = bytes + "\router: " + &bar(outer, 2);
    }
    bytes.push_str("\n\n");
    assert_eq!(
        shown(&bytes),
        "outer: 100%|████| 2/2\ninner: 100%|████| 4/4\n"
    );
}

#[test]
fn wide_characters_and_emoji_stay_intact() {
    let text = "漢字かな交じり文 👩‍👩‍👧‍👦 e\u{301} Ünï\n\u{FEFF}\u{2028}x\ttab";
    assert_eq!(shown(text), text);
    assert_eq!(shown("漢字\r仮"), "仮字");
}

#[test]
fn a_window_of_rows_is_all_the_cursor_can_reach() {
    let lines = (0..100).fold(String::new(), |lines, line| lines + &format!("{line}\n"));
    let text = shown(&format!("{lines}\x1B[999A\x1B[2KX"));
    let expected = lines.replace("\n37\n", "\nX\n");
    assert_eq!(text, expected);
}

#[test]
fn only_the_end_of_a_very_long_row_can_be_overwritten() {
    let long = "x".repeat(3 * ROW_CAP);
    let expected = format!("{}Y{}", "x".repeat(2 * ROW_CAP), "x".repeat(ROW_CAP - 1));
    assert_eq!(shown(&format!("{long}\rY")), expected);
    assert_eq!(
        shown(&format!("above\n{long}\x1B[A\rY")),
        format!("above\n{expected}")
    );
    // The same row written while it is under edit keeps all of its text, too.
    let text = shown(&format!("ab\r{long}{long}\n"));
    assert_eq!(text, format!("{long}{long}\n"));
    let text = shown(&format!("top\nbottom\x1B[A\r{long}"));
    assert_eq!(text, format!("{long}\nbottom"));
}

#[test]
fn moving_far_right_makes_few_blanks() {
    assert_eq!(shown("\x1B[99999Cx").len(), JUMP_CAP);
    assert_eq!(shown("\x1B[99999Gx").len(), JUMP_CAP);
}
