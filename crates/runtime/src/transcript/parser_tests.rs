use super::*;

fn shown(text: &str) -> String {
    let mut parser = Parser::default();
    let mut screen = Screen::default();
    let mut out = String::new();
    parser.feed(text, &mut screen, &mut out);
    screen.finish(&mut out);
    out
}

#[test]
fn o5_csi_sequences_are_removed() {
    for sequence in [
        "\x1B[0m",
        "\x1B[38;2;1;2;3m",
        "\x1B[38:2::1:2:3m",
        "\x1B[?25l",
        "\x1B[?1049h",
        "\x1B[>4;2m",
        "\x1B[=5u",
        "\x1B[!p",
        "\x1B[2 q",
        "\x1B[1 A",
        "\x1B[?2K",
        "\x1B[?J",
        "\x1B[H",
        "\x1B[2J",
        "\x1B[3J",
        "\x1B[12;40f",
        "\x1B[6n",
        "\x1B[1;24r",
        "\x1B[5;10s",
        "\u{9B}31m",
        "\u{9B}?25h",
    ] {
        assert_eq!(shown(&format!("a{sequence}b")), "ab", "{sequence:?}");
    }
}

#[test]
fn o5_two_byte_and_charset_escapes_are_removed() {
    for sequence in [
        "\x1B(B",
        "\x1B)0",
        "\x1B%G",
        "\x1B#8",
        "\x1B F",
        "\x1B=",
        "\x1B>",
        "\x1Bc",
        "\x1B\\",
        "\x1BN",
        "\x1B7",
        "\x1B\x1B[m",
        "\u{8E}",
        "\u{9C}",
        "\u{80}",
    ] {
        assert_eq!(shown(&format!("a{sequence}b")), "ab", "{sequence:?}");
    }
}

#[test]
fn o5_hyperlinks_leave_only_their_text() {
    assert_eq!(
        shown("see \x1B]8;id=1;https://a.example/x\x1B\\the docs\x1B]8;;\x1B\\ now"),
        "see the docs now"
    );
    assert_eq!(
        shown("\x1B]8;;https://a.example\x07link\x1B]8;;\x07"),
        "link"
    );
}

#[test]
fn o5_clipboard_and_title_strings_are_removed() {
    assert_eq!(shown("a\x1B]52;c;aGVsbG8=\x07b"), "ab");
    assert_eq!(shown("a\x1B]52;c;aGVsbG8=\x1B\\b"), "ab");
    assert_eq!(shown("a\u{9D}0;title\u{9C}b"), "ab");
    assert_eq!(shown("a\x1B]0;Fenêtre\x07b"), "ab");
    assert_eq!(shown("a\x1Bktitle\x1B\\b"), "ab");
    let clipboard = "QUJD".repeat(25_000);
    assert_eq!(shown(&format!("a\x1B]52;c;{clipboard}\x07b")), "ab");
}

#[test]
fn o5_device_and_other_strings_are_removed() {
    assert_eq!(shown("a\x1BPq#0;2;0;0;0\n#0~~-\n\x1B\\b"), "ab");
    assert_eq!(shown("a\x1BXanything\x1B\\b"), "ab");
    assert_eq!(shown("a\x1B^private\x1B\\b"), "ab");
    assert_eq!(shown("a\x1B_Gf=100;AAAA\x1B\\b"), "ab");
    assert_eq!(
        shown("a\u{90}x\u{9C}\u{98}x\u{9C}\u{9E}x\u{9C}\u{9F}x\u{9C}b"),
        "ab"
    );
    // A terminal multiplexer's passthrough wraps one string in another.
    assert_eq!(shown("a\x1BPtmux;\x1B\x1B]52;c;QQ==\x07\x1B\\b"), "ab");
}

#[test]
fn an_unterminated_line_string_ends_with_its_line() {
    assert_eq!(shown("a\x1B]0;never ended\nerror: b\n"), "a\nerror: b\n");
    assert_eq!(shown("a\x1B_never ended\r\nb"), "a\nb");
}

#[test]
fn an_unterminated_string_does_not_swallow_the_rest() {
    let long = "x".repeat(LINE_STRING_CAP);
    assert_eq!(shown(&format!("a\x1B]{long}after")), "aafter");
    let long = "x\n".repeat(DEVICE_STRING_CAP / 2);
    assert_eq!(shown(&format!("a\x1BP{long}after")), "aafter");
}

#[test]
fn an_unterminated_control_sequence_gives_way_to_what_cannot_be_in_it() {
    assert_eq!(shown("a\x1B[31\nb"), "a\nb");
    assert_eq!(shown("a\x1B[31é"), "aé");
    assert_eq!(shown("a\x1B[31\x1B[32mb"), "ab");
    assert_eq!(shown("a\x1B\nb"), "a\nb");
    let digits = "1".repeat(CSI_CAP);
    assert_eq!(shown(&format!("a\x1B[{digits}2b")), "a2b");
    assert_eq!(shown(&format!("a\x1B[{digits} 2")), "a 2");
    assert_eq!(shown("a\x1B          b"), "a      b");
}

#[test]
fn a_sequence_cut_off_by_the_end_leaves_nothing() {
    for start in ["\x1B", "\x1B[", "\x1B[3", "\x1B]8;;x", "\x1BP", "\x1B("] {
        assert_eq!(shown(&format!("a{start}")), "a");
    }
}

#[test]
fn o5_control_characters_are_dropped() {
    assert_eq!(
        shown("a\0b\x01c\x07d\x0Be\x0Cf\x0E\x0Fg\x7Fh\ti\n"),
        "abcdefgh\ti\n"
    );
}

#[test]
fn huge_parameters_are_harmless() {
    let digits = "9".repeat(40);
    assert_eq!(
        shown(&format!("ab\x1B[{digits}D\x1B[{digits}A\x1B[{digits}BX")),
        "Xb"
    );
}

#[test]
fn the_scanner_finds_exactly_the_control_characters() {
    for before in 0..70 {
        let plain = "x".repeat(before);
        for control in ["\0", "\r", "\x1B", "\x7F", "\u{80}", "\u{9F}"] {
            let text = format!("{plain}{control}\x1B tail that is longer than one block of text");
            assert_eq!(find_control(text.as_bytes()), before);
        }
        for fine in ["\n", "\t", " ", "~", "\u{A0}", "Â", "é", "漢", "😀"] {
            let text = format!("{plain}{fine}{plain}");
            assert_eq!(find_control(text.as_bytes()), text.len());
        }
    }
}
