//! The report as a person reads it.

use std::fmt::Write as _;

use super::Report;
use super::row::{Row, Unit};

const HEADINGS: [&str; 7] = ["row", "ours", "plain", "ratio", "target", "met", "beside"];

/// Renders the report as an aligned table with the remarks below it.
pub(super) fn render(report: &Report) -> String {
    let lines: Vec<[String; 7]> = std::iter::once(HEADINGS.map(str::to_owned))
        .chain(report.rows.iter().map(cells))
        .collect();
    let width = |column: usize| {
        let lengths = lines.iter().filter_map(|line| line.get(column));
        lengths.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..HEADINGS.len()).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let mut row = String::new();
        for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let gap = if column == 0 { "" } else { "  " };
            // Numbers end under each other.
            let _ = match column {
                1..=3 => write!(row, "{gap}{cell:>width$}"),
                _ => write!(row, "{gap}{cell:<width$}"),
            };
        }
        text.push_str(row.trim_end());
        text.push('\n');
    }
    text.push('\n');
    for row in &report.rows {
        if let Some(note) = &row.note {
            let _ = writeln!(text, "{}: {note}", row.name);
        }
    }
    let _ = writeln!(
        text,
        "exoshell {}, {} processors{}{}; medians, both sides in turns in this run",
        report.version,
        report.cpus,
        if report.quick { ", quick" } else { "" },
        if report.debug_build {
            ", DEBUG BUILD: the numbers mean little"
        } else {
            ""
        },
    );
    text
}

fn cells(row: &Row) -> [String; 7] {
    let unit = row.unit.text();
    let number = |value: Option<f64>| {
        value.map_or_else(|| "-".to_owned(), |v| format!("{} {unit}", digits(row, v)))
    };
    [
        row.name.to_owned(),
        number(row.ours),
        number(row.against),
        row.ratio()
            .map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.2}")),
        row.target
            .as_ref()
            .map_or_else(String::new, |t| t.text.clone()),
        match &row.target {
            Some(target) if target.met => "yes",
            Some(_) => "NO",
            None => "",
        }
        .to_owned(),
        row.baseline.to_owned(),
    ]
}

fn digits(row: &Row, value: f64) -> String {
    match row.unit {
        Unit::Mb => format!("{value:.1}"),
        Unit::Ms | Unit::CpuMs if value >= 100.0 => format!("{value:.0}"),
        Unit::Ms | Unit::CpuMs => format!("{value:.3}"),
    }
}
