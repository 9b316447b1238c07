//! The editable window of recent rows.

use std::collections::VecDeque;

use memchr::memchr;

use super::TextSink;
use super::history::{History, ROW_CAP, ROWS};

/// Bounds the blanks that moving right past the end of a row can create: without it, a few bytes
/// of input would make kilobytes of text.
const JUMP_CAP: usize = 256;

/// Names what an erase-in-line removes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Erase {
    /// From the cursor to the end.
    Right,
    /// From the start to the cursor, which is included.
    Left,
    /// The whole row.
    All,
}

/// Holds one row under edit.
#[derive(Debug, Clone, Default)]
struct Row {
    cells: Vec<char>,
    /// The row is empty because its text was erased, and no line feed has passed it since.
    erased: bool,
}

/// Applies text and cursor moves to the most recent rows.
///
/// While nothing is being edited, `rows` is empty and the cursor stands at the end of the history:
/// plain text then only passes through. The first edit takes the current row back from the
/// history, moving up takes further ones, and enough line feeds give them back.
#[derive(Debug, Clone, Default)]
pub(super) struct Screen {
    history: History,
    /// The rows under edit, a suffix of the window.
    rows: VecDeque<Row>,
    /// The cursor's row; rows below the last one come to exist when written to.
    row: usize,
    col: usize,
    /// The lowest row the cursor has reached, the limit of moving down.
    lowest: usize,
    /// Line feeds at the bottom since `rows` was started: giving the rows back only after as many
    /// as there are rows keeps taking and giving linear in the input.
    feeds: usize,
    saved: Option<(usize, usize)>,
    /// A carriage return came while nothing was being edited; with a line feed next, it is none.
    returned: bool,
}

impl Screen {
    /// Writes text that has no control characters but line feed and tab.
    pub(super) fn text(&mut self, text: &str, sink: &mut dyn TextSink) {
        let mut rest = text;
        while let Some(first) = rest.as_bytes().first() {
            if self.rows.is_empty() && (!self.returned || *first == b'\n') {
                self.returned = false;
                return self.history.push(rest, sink);
            }
            let end = memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len());
            self.print(&rest[..end], sink);
            if end == rest.len() {
                return;
            }
            self.line_feed(sink);
            rest = &rest[end + 1..];
        }
    }

    pub(super) fn carriage_return(&mut self) {
        if self.rows.is_empty() {
            self.returned = !self.history.at_row_start();
        } else {
            self.col = 0;
        }
    }

    pub(super) fn up(&mut self, count: usize) {
        self.edit();
        for _ in 0..count.min(ROWS) {
            if self.row > 0 {
                self.row -= 1;
            } else if !self.take_row_above() {
                return;
            }
        }
    }

    pub(super) fn down(&mut self, count: usize) {
        if !self.rows.is_empty() {
            self.row = self.row.saturating_add(count).min(self.lowest);
        }
    }

    /// Moves to the start of a row below, a new one if there is none: staying would make the text
    /// that follows overwrite what a person has seen.
    pub(super) fn next_row(&mut self, count: usize, sink: &mut dyn TextSink) {
        if self.rows.is_empty() || self.row == self.lowest {
            self.text("\n", sink);
        } else {
            self.down(count);
            self.col = 0;
        }
    }

    pub(super) fn left(&mut self, count: usize) {
        self.edit();
        self.col = self.col.saturating_sub(count);
    }

    pub(super) fn right(&mut self, count: usize) {
        self.edit();
        self.column(self.col.saturating_add(count));
    }

    pub(super) fn column(&mut self, col: usize) {
        self.edit();
        self.col = col.min(self.row_len().max(JUMP_CAP - 1));
    }

    pub(super) fn erase_in_row(&mut self, what: Erase) {
        if what == Erase::Right && self.at_end() {
            return;
        }
        self.edit();
        let Some(row) = self.rows.get_mut(self.row) else {
            return;
        };
        let cells = &mut row.cells;
        let had_text = !cells.is_empty();
        match what {
            Erase::Right => cells.truncate(self.col),
            Erase::Left if self.col + 1 < cells.len() => cells[..=self.col].fill(' '),
            Erase::Left | Erase::All => cells.clear(),
        }
        row.erased |= cells.is_empty() && (had_text || what == Erase::All);
    }

    /// Erases from the cursor to the end of the window.
    pub(super) fn erase_below(&mut self) {
        if self.at_end() {
            return;
        }
        self.erase_in_row(Erase::Right);
        self.rows.truncate(self.row + 1);
    }

    /// Makes the next cells blank, without moving.
    pub(super) fn blank(&mut self, count: usize) {
        if let Some(cells) = self.cells_from_cursor() {
            let count = count.min(cells.len());
            cells[..count].fill(' ');
        }
    }

    /// Removes the next cells; what follows moves left.
    pub(super) fn delete(&mut self, count: usize) {
        let col = self.col;
        let len = self.cells_from_cursor().map_or(0, |cells| cells.len());
        if let Some(row) = self.rows.get_mut(self.row)
            && len > 0
        {
            row.cells.drain(col..col + count.min(len));
        }
    }

    /// Inserts blanks at the cursor; what follows moves right.
    pub(super) fn insert(&mut self, count: usize) {
        let col = self.col;
        let len = self.cells_from_cursor().map_or(0, |cells| cells.len());
        let count = count.min(JUMP_CAP).min(ROW_CAP.saturating_sub(col + len));
        if let Some(row) = self.rows.get_mut(self.row)
            && len > 0
        {
            row.cells.splice(col..col, std::iter::repeat_n(' ', count));
        }
    }

    pub(super) fn save_cursor(&mut self) {
        self.edit();
        self.saved = Some((self.row, self.col));
    }

    pub(super) fn restore_cursor(&mut self) {
        if let Some((row, col)) = self.saved {
            self.row = row;
            self.col = col;
        }
    }

    /// Hands all text to the sink.
    pub(super) fn finish(mut self, sink: &mut dyn TextSink) {
        // Rows that were erased below the cursor are not seen, so their line feeds are not either.
        while self.rows.len() > self.row + 1 && self.rows.back().is_some_and(|row| row.erased) {
            self.rows.pop_back();
        }
        self.give_rows(sink);
        self.history.finish(sink);
    }

    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        let cells: usize = self.rows.iter().map(|row| row.cells.capacity()).sum();
        self.history.held_bytes() + cells * size_of::<char>()
    }

    /// Tells whether the cursor is known to stand after all text.
    fn at_end(&self) -> bool {
        self.rows.is_empty() && !self.returned
    }

    fn row_len(&self) -> usize {
        self.rows.get(self.row).map_or(0, |row| row.cells.len())
    }

    fn cells_from_cursor(&mut self) -> Option<&mut [char]> {
        if self.at_end() {
            return None;
        }
        self.edit();
        self.rows.get_mut(self.row)?.cells.get_mut(self.col..)
    }

    /// Takes the current row back from the history, unless rows are already under edit.
    fn edit(&mut self) {
        if !self.rows.is_empty() {
            return;
        }
        let mut row = Row::default();
        self.history.take_row(&mut row.cells);
        self.col = if self.returned { 0 } else { row.cells.len() };
        self.returned = false;
        self.rows.push_back(row);
        self.row = 0;
        self.lowest = 0;
        self.feeds = 0;
    }

    fn take_row_above(&mut self) -> bool {
        let mut row = Row::default();
        if self.lowest + 1 >= ROWS || !self.history.take_row_above(&mut row.cells) {
            return false;
        }
        self.rows.push_front(row);
        self.lowest += 1;
        self.feeds = 0;
        if let Some((row, _)) = &mut self.saved {
            *row += 1;
        }
        true
    }

    /// Makes the cursor's row exist.
    fn reach_row(&mut self) {
        if self.rows.len() <= self.row {
            self.rows.resize_with(self.row + 1, Row::default);
        }
    }

    fn print(&mut self, text: &str, sink: &mut dyn TextSink) {
        let mut rest = text;
        while !rest.is_empty() {
            self.edit();
            self.reach_row();
            if self.col >= ROW_CAP {
                self.flush_row(sink);
                if self.rows.is_empty() {
                    return self.history.push(rest, sink);
                }
            }
            let room = ROW_CAP - self.col;
            // Cutting by bytes is enough: it only makes a run of wide characters take more turns.
            let mut end = rest.len().min(room);
            while !rest.is_char_boundary(end) {
                end -= 1;
            }
            if end == 0 {
                end = rest.chars().next().map_or(0, char::len_utf8);
            }
            self.put(&rest[..end]);
            rest = &rest[end..];
        }
    }

    /// Overwrites cells with text that fits the row.
    fn put(&mut self, text: &str) {
        let Some(row) = self.rows.get_mut(self.row) else {
            return;
        };
        let cells = &mut row.cells;
        row.erased = false;
        if self.col > cells.len() {
            self.col = self.col.min(cells.len().max(JUMP_CAP - 1));
            cells.resize(self.col, ' ');
        }
        if text.is_ascii() {
            self.col = overwrite(cells, self.col, text.bytes().map(char::from));
        } else {
            self.col = overwrite(cells, self.col, text.chars());
        }
    }

    fn line_feed(&mut self, sink: &mut dyn TextSink) {
        if self.rows.is_empty() {
            return self.history.push("\n", sink);
        }
        self.reach_row();
        for row in self.rows.range_mut(..=self.row) {
            row.erased = false;
        }
        self.col = 0;
        if self.row < self.lowest {
            self.row += 1;
            return self.reach_row();
        }
        self.feeds += 1;
        if self.saved.is_none() && self.feeds >= self.rows.len() {
            self.give_rows(sink);
            return self.history.push("\n", sink);
        }
        self.row += 1;
        self.lowest += 1;
        self.reach_row();
        if self.lowest >= ROWS {
            self.drop_rows(1, sink);
        }
    }

    /// Gives all rows back to the history; the last one becomes its unfinished line.
    fn give_rows(&mut self, sink: &mut dyn TextSink) {
        for (at, row) in self.rows.drain(..).enumerate() {
            if at > 0 {
                self.history.push("\n", sink);
            }
            self.history.push_cells(&row.cells, sink);
        }
    }

    /// Gives the topmost rows back to the history.
    fn drop_rows(&mut self, count: usize, sink: &mut dyn TextSink) {
        for row in self.rows.drain(..count) {
            self.history.push_cells(&row.cells, sink);
            self.history.push("\n", sink);
        }
        self.row -= count;
        self.lowest -= count;
        self.saved = self
            .saved
            .and_then(|(row, col)| Some((row.checked_sub(count)?, col)));
    }

    /// Makes the text of a full row final, and the cursor's row its empty continuation.
    fn flush_row(&mut self, sink: &mut dyn TextSink) {
        self.drop_rows(self.row, sink);
        if let Some(row) = self.rows.front_mut() {
            self.history.push_cells(&row.cells, sink);
            row.cells.clear();
        }
        self.history.seal();
        self.col = 0;
        if self.lowest == 0 && self.saved.is_none() {
            self.rows.clear();
        }
    }
}

/// Writes over the cells from `col` on, past their end too, and returns the column after.
fn overwrite(cells: &mut Vec<char>, col: usize, mut text: impl Iterator<Item = char>) -> usize {
    for (written, cell) in cells[col..].iter_mut().enumerate() {
        match text.next() {
            Some(char) => *cell = char,
            None => return col + written,
        }
    }
    cells.extend(text);
    cells.len()
}

#[cfg(test)]
#[path = "screen_tests.rs"]
mod tests;
