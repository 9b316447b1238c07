use proptest::prelude::*;

use super::*;

fn normalise<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut normaliser = Normaliser::new();
    let mut text = String::new();
    for chunk in chunks {
        normaliser.push(chunk, &mut text);
    }
    normaliser.finish(&mut text);
    text
}

/// Counts text and forgets it.
#[derive(Default)]
struct Count(usize);

impl TextSink for Count {
    fn push(&mut self, text: &str) {
        self.0 += text.len();
    }
}

const MEGABYTES_50: usize = 50_000_000;
const MEMORY: usize = 2 * 1024 * 1024;

fn length_within_memory(chunk: &[u8]) -> usize {
    let mut normaliser = Normaliser::new();
    let mut count = Count::default();
    for _ in 0..MEGABYTES_50 / chunk.len() {
        normaliser.push(chunk, &mut count);
        assert!(
            normaliser.held_bytes() < MEMORY,
            "{}",
            normaliser.held_bytes()
        );
    }
    normaliser.finish(&mut count);
    count.0
}

#[test]
fn o5_memory_is_bounded_on_text_without_line_feeds() {
    assert_eq!(length_within_memory(&vec![b'x'; 50_000]), MEGABYTES_50);
}

#[test]
fn o5_memory_is_bounded_on_endless_carriage_returns() {
    let chunk = b"\r 45%|####      | 45/100 [00:01<00:01]".repeat(1_000);
    assert_eq!(length_within_memory(&chunk), 37);
}

#[test]
fn memory_is_bounded_on_edits_of_long_rows() {
    let mut chunk = b"x".repeat(5_000);
    chunk.extend(b"\n\x1B[99A\x1B[99B\r\x1B7\x1B[999C");
    length_within_memory(&chunk);
}

fn token() -> impl Strategy<Value = Vec<u8>> {
    let fixed = prop::sample::select(vec![
        "\r",
        "\n",
        "\r\n",
        "\t",
        "\x08",
        "\0",
        "\x1B",
        "\x1B[A",
        "\x1B[2A",
        "\x1B[B",
        "\x1B[3C",
        "\x1B[2D",
        "\x1B[E",
        "\x1B[F",
        "\x1B[4G",
        "\x1B[K",
        "\x1B[1K",
        "\x1B[2K",
        "\x1B[J",
        "\x1B[2J",
        "\x1B[H",
        "\x1B[P",
        "\x1B[2@",
        "\x1B[X",
        "\x1B7",
        "\x1B8",
        "\x1BM",
        "\x1BD",
        "\x1B[31m",
        "\x1B[?25l",
        "\x1B]8;;http://x\x1B\\",
        "\x1B]0;t\x07",
        "\x1BPq\n\x1B\\",
        "\x1B]",
        "\x1B[",
        "\u{9B}",
        "\u{9D}",
        "\u{85}",
        "abc",
        "some longer text",
        "é",
        "漢字",
        "😀",
        " ",
    ])
    .prop_map(|token| token.as_bytes().to_vec());
    prop_oneof![
        8 => fixed,
        1 => any::<u8>().prop_map(|byte| vec![byte]),
        1 => (1..3_000usize).prop_map(|len| vec![b'w'; len]),
        1 => (1..80usize).prop_map(|len| b"row\n".repeat(len)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn o5_the_text_has_no_control_characters(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let text = normalise([bytes.as_slice()]);
        prop_assert!(!text.contains(|char: char| char.is_control() && char != '\n' && char != '\t'));
    }

    #[test]
    fn o4_the_text_does_not_depend_on_the_chunks(
        tokens in prop::collection::vec(token(), 0..80),
        size in 1..50usize,
    ) {
        let bytes = tokens.concat();
        let whole = normalise([bytes.as_slice()]);
        prop_assert!(!whole.contains('\x1B'));
        prop_assert_eq!(&normalise(bytes.chunks(1)), &whole);
        prop_assert_eq!(&normalise(bytes.chunks(size)), &whole);
    }

    #[test]
    fn o5_plain_text_is_unchanged(text in "(?s)[^\\p{Cc}]{0,40}(\n\t?[^\\p{Cc}]{0,40}){0,20}") {
        prop_assert_eq!(&normalise([text.as_bytes()]), &text);
    }

    #[test]
    fn o5_edits_give_what_a_plain_grid_gives(
        ops in prop::collection::vec(prop::sample::select(Grid::OPS.to_vec()), 0..60),
    ) {
        let mut grid = Grid::default();
        for op in &ops {
            grid.apply(op);
        }
        let bytes = ops.concat();
        prop_assert_eq!(normalise([bytes.as_bytes()]), grid.text());
    }
}

#[test]
fn o4_long_streams_do_not_depend_on_the_chunks_either() {
    // Long enough for the history to be trimmed many times, at different places for each size.
    let mut bytes = Vec::new();
    for line in 0..6_000_usize {
        bytes.extend(format!("line {line} é漢").repeat(1 + line % 5).bytes());
        match line % 97 {
            13 => bytes.extend(b"\x1B[70A\rUP\x1B[70B"),
            29 => bytes.extend("漢".repeat(line % 4_000).bytes()),
            41 => bytes.extend(b"\x1B[3A\x1B[2K\x1B[J"),
            59 => bytes.extend(b"\rback\x1B7"),
            71 => bytes.extend(b"\x1B8here\x1B[K"),
            _ => {}
        }
        bytes.push(b'\n');
    }
    let whole = normalise([bytes.as_slice()]);
    for size in [1, 7, 1_000, 4_096, 65_537] {
        assert!(normalise(bytes.chunks(size)) == whole, "chunks of {size}");
    }
}

/// Does the same edits on rows that are never given away.
#[derive(Default)]
struct Grid {
    rows: Vec<(Vec<char>, bool)>,
    row: usize,
    col: usize,
    lowest: usize,
}

impl Grid {
    const OPS: [&str; 15] = [
        "\n", "\n", "\r", "\x08", "\x1B[A", "\x1B[2A", "\x1B[B", "\x1B[2C", "\x1B[3G", "\x1B[K",
        "\x1B[1K", "\x1B[2K", "\x1B[J", "abcd", "xé",
    ];

    fn current(&mut self) -> &mut (Vec<char>, bool) {
        let len = self.rows.len().max(self.row + 1);
        self.rows.resize(len, (Vec::new(), false));
        &mut self.rows[self.row]
    }

    fn erase(&mut self, from: usize, to: usize, all: bool) {
        if self.row >= self.rows.len() {
            return;
        }
        let cells = &mut self.rows[self.row].0;
        let to = to.min(cells.len());
        let counts = all || !cells.is_empty();
        if from < to {
            cells[from..to].fill('\0');
            while cells.last() == Some(&'\0') {
                cells.pop();
            }
            for cell in cells {
                if *cell == '\0' {
                    *cell = ' ';
                }
            }
        }
        self.rows[self.row].1 |= counts && self.rows[self.row].0.is_empty();
    }

    fn apply(&mut self, op: &str) {
        match op {
            "\n" => {
                self.current();
                for row in &mut self.rows[..=self.row] {
                    row.1 = false;
                }
                self.row += 1;
                self.col = 0;
                self.lowest = self.lowest.max(self.row);
                self.current();
            }
            "\r" => self.col = 0,
            "\x08" => self.col = self.col.saturating_sub(1),
            "\x1B[A" => self.row = self.row.saturating_sub(1),
            "\x1B[2A" => self.row = self.row.saturating_sub(2),
            "\x1B[B" => self.row = (self.row + 1).min(self.lowest),
            "\x1B[2C" => self.col += 2,
            "\x1B[3G" => self.col = 2,
            "\x1B[K" => self.erase(self.col, usize::MAX, false),
            "\x1B[1K" => self.erase(0, self.col + 1, false),
            "\x1B[2K" => self.erase(0, usize::MAX, true),
            "\x1B[J" => {
                self.erase(self.col, usize::MAX, false);
                self.rows.truncate(self.row + 1);
            }
            text => {
                for char in text.chars() {
                    let col = self.col;
                    let (cells, erased) = self.current();
                    *erased = false;
                    cells.resize(cells.len().max(col + 1), ' ');
                    cells[col] = char;
                    self.col += 1;
                }
            }
        }
    }

    fn text(mut self) -> String {
        while self.rows.len() > self.row + 1 && self.rows.last().is_some_and(|row| row.1) {
            self.rows.pop();
        }
        let rows: Vec<String> = self.rows.iter().map(|row| row.0.iter().collect()).collect();
        rows.join("\n")
    }
}
