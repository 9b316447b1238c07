use proptest::prelude::*;

use super::*;

fn cut(limit: usize, text: &str) -> Cut {
    let mut head_tail = HeadTail::new(limit);
    head_tail.push(text);
    head_tail.finish()
}

#[test]
fn text_within_the_limit_is_kept_whole() {
    for text in ["", "a", "a\n", "a\nb", "漢字\n漢字"] {
        let cut = cut(10, text);
        assert_eq!(cut.text, text);
        assert!(!cut.truncated);
        assert_eq!(cut.total_chars, text.chars().count() as u64);
        assert_eq!(cut.total_lines, text.lines().count() as u64);
        assert_eq!(cut.shown_chars, cut.total_chars);
        assert_eq!((cut.omitted_chars, cut.omitted_lines), (0, 0));
    }
    assert_eq!(cut(5, "abcde").text, "abcde");
    assert_eq!(cut(usize::MAX, "abcde").text, "abcde");
}

#[test]
fn o3_longer_text_keeps_two_fifths_in_front_and_three_fifths_behind() {
    let cut = cut(10, "0123456789abcdef");
    assert_eq!(
        cut.text,
        "0123\n[… 6 of 16 characters left out (1 of 1 lines) …]\nabcdef"
    );
    assert!(cut.truncated);
    assert_eq!(
        (cut.shown_chars, cut.omitted_chars, cut.total_chars),
        (10, 6, 16)
    );
    assert_eq!((cut.omitted_lines, cut.total_lines), (1, 1));
}

#[test]
fn o3_the_first_and_the_last_line_survive_and_the_numbers_add_up() {
    let mut text = String::from("$ make all\n");
    for line in 0..9_998 {
        text = text + "compiling unit " + &line.to_string() + "\n";
    }
    text.push_str("error: it broke\n");
    let cut = cut(5_000, &text);
    assert!(cut.text.starts_with("$ make all\n"));
    assert!(cut.text.ends_with("\nerror: it broke\n"));
    assert_eq!(cut.total_lines, 10_000);
    assert_eq!(cut.total_chars, text.len() as u64);
    assert_eq!(cut.shown_chars + cut.omitted_chars, cut.total_chars);
    assert!(cut.shown_chars <= 5_000 && cut.shown_chars > 4_500);
    let shown_lines = cut.text.lines().count() as u64 - 1;
    assert_eq!(shown_lines + cut.omitted_lines, cut.total_lines);
    for line in cut.text.lines().filter(|line| !line.starts_with("[…")) {
        assert!(
            text.contains(&format!("{line}\n")),
            "not a whole line: {line}"
        );
    }
}

#[test]
fn an_edge_is_moved_to_a_line_end_only_when_that_is_cheap() {
    let text = format!("ab\n{}\nyz", "x".repeat(200));
    let cut = cut(50, &text);
    assert!(cut.text.starts_with("ab\nxxxxxxxxxxxxxxxxx\n[… "));
    assert!(cut.text.ends_with("…]\nxxxxxxxxxxxxxxxxxxxxxxxxxxx\nyz"));
    assert_eq!((cut.omitted_lines, cut.total_lines), (1, 3));
}

#[test]
fn a_last_line_without_a_line_feed_counts() {
    assert_eq!(cut(10, "a\nb").total_lines, 2);
    assert_eq!(cut(10, "a\nb\n").total_lines, 2);
    assert_eq!(cut(0, "a\nb").total_lines, 2);
    assert_eq!(cut(0, "a\nb\n").total_lines, 2);
}

#[test]
fn a_limit_of_nothing_leaves_the_notice() {
    let cut = cut(0, "a\nb\n");
    assert_eq!(
        cut.text,
        "[… 4 of 4 characters left out (2 of 2 lines) …]\n"
    );
    assert_eq!(cut.shown_chars, 0);
}

#[test]
fn memory_stays_within_a_multiple_of_the_limit() {
    let mut head_tail = HeadTail::new(1_000);
    let piece = "漢字 text\n".repeat(10_000);
    for _ in 0..20 {
        head_tail.push(&piece);
        assert!(head_tail.head.capacity() + head_tail.tail.capacity() < 128 * 1024);
    }
    assert_eq!(head_tail.finish().total_lines, 200_000);
}

proptest! {
    #[test]
    fn the_parts_are_the_text_and_do_not_depend_on_the_pieces(
        text in "(?s)[a-c\u{e9}\u{6f22}\u{1f600}\n]{0,200}",
        limit in 0..120usize,
        size in 1..40usize,
    ) {
        let whole = cut(limit, &text);
        let chars: Vec<char> = text.chars().collect();
        let mut pieces = HeadTail::new(limit);
        for piece in chars.chunks(size) {
            pieces.push(&piece.iter().collect::<String>());
        }
        prop_assert_eq!(&pieces.finish(), &whole);
        prop_assert_eq!(whole.total_chars, chars.len() as u64);
        prop_assert_eq!(whole.total_lines, text.lines().count() as u64);
        prop_assert_eq!(whole.truncated, chars.len() > limit);
        prop_assert!(whole.shown_chars <= limit as u64);
        prop_assert_eq!(whole.shown_chars + whole.omitted_chars, whole.total_chars);
        if let Some((head, tail)) = whole.text.split_once("[… ") {
            let (_, tail) = tail.split_once("…]\n").unwrap();
            let head_text = if text.starts_with(head) { head } else { &head[..head.len() - 1] };
            prop_assert!(text.starts_with(head_text));
            prop_assert!(text.ends_with(tail));
        } else {
            prop_assert_eq!(&whole.text, &text);
        }
    }
}
