//! `exoshell audit`.

use std::collections::{BTreeMap, VecDeque};

use exoshell_runtime::RuntimeError;
use exoshell_runtime::audit::{Audit, Filter, Limits, Report};
use exoshell_runtime::config::{Config, Environment, Resolved};
use serde::Serialize;
use serde_json::Value;

use super::places::{printable, table};
use super::written;
use crate::args::AuditCommand;
use crate::output;

/// Longest text in a row of the table, in characters.
const TEXT: usize = 80;

/// An attempt: what was to be done, and how it ended, if it did.
#[derive(Debug, Serialize)]
struct Row {
    start: Value,
    end: Option<Value>,
}

/// Shows or checks the audit.
pub(crate) fn run(command: AuditCommand) -> u8 {
    let (result, as_json) = match command {
        AuditCommand::Show { task, tail, json } => (show(task, tail, json), json),
        AuditCommand::Verify { json } => (verify(json), json),
    };
    result.unwrap_or_else(|error| output::error(&error, as_json))
}

fn audit() -> Result<Audit, RuntimeError> {
    let config = Resolved::load(&Environment::from_process(), Config::default())?;
    Ok(Audit::new(&config.home, Limits::default()))
}

fn show(task: Option<String>, tail: Option<usize>, as_json: bool) -> Result<u8, RuntimeError> {
    let rows = attempts(&audit()?, task, tail)?;
    if as_json {
        let mut lines = Vec::new();
        for row in &rows {
            lines.extend(serde_json::to_vec(row).unwrap_or_default());
            lines.push(b'\n');
        }
        return Ok(written(output::data(&lines)));
    }
    if rows.is_empty() {
        output::talk("no attempt like that is recorded");
        return Ok(0);
    }
    let header = [
        "TIME", "TASK", "BACKEND", "KIND", "VERDICT", "APPROVAL", "ENDED", "TEXT",
    ]
    .map(str::to_owned);
    let cells: Vec<[String; 8]> = rows.iter().map(cells).collect();
    Ok(written(output::data(table(&header, &cells).as_bytes())))
}

/// Puts each end to its start; of many, the last `tail`.
fn attempts(
    audit: &Audit,
    task: Option<String>,
    tail: Option<usize>,
) -> Result<VecDeque<Row>, RuntimeError> {
    let mut rows: VecDeque<Row> = VecDeque::new();
    // Where the row of a start is, counted from the very first.
    let mut places: BTreeMap<u64, usize> = BTreeMap::new();
    let mut dropped = 0;
    for record in audit.show(Filter { task, tail: None })? {
        let record = record?;
        let number = |name: &str| record.get(name).and_then(Value::as_u64);
        match record.get("record").and_then(Value::as_str) {
            Some("start") => {
                if let Some(seq) = number("seq") {
                    places.insert(seq, dropped + rows.len());
                }
                rows.push_back(Row {
                    start: record,
                    end: None,
                });
            }
            Some("end") => {
                let place = number("start").and_then(|start| places.remove(&start));
                let row = place.and_then(|place| rows.get_mut(place.checked_sub(dropped)?));
                if let Some(row) = row {
                    row.end = Some(record);
                }
            }
            _ => {}
        }
        if tail.is_some_and(|tail| rows.len() > tail) {
            rows.pop_front();
            dropped += 1;
        }
    }
    Ok(rows)
}

fn cells(row: &Row) -> [String; 8] {
    let text = |name: &str| {
        let value = row.start.get(name).and_then(Value::as_str);
        printable(value.unwrap_or_default())
    };
    let time: String = text("time").chars().take(19).collect();
    let mut what: String = text("text");
    if what.chars().count() > TEXT {
        what = what.chars().take(TEXT - 1).chain(['…']).collect();
    }
    [
        time,
        text("task"),
        text("backend"),
        text("kind"),
        text("verdict"),
        text("approval"),
        row.end.as_ref().map_or_else(|| "open".to_owned(), ended),
        what,
    ]
}

fn ended(end: &Value) -> String {
    let word = |name: &str| end.get(name).and_then(Value::as_str).map(printable);
    let number = |name: &str| end.get(name).and_then(Value::as_i64);
    if let Some(code) = number("exit_code") {
        return format!("exit {code}");
    }
    if let Some(signal) = number("signal") {
        return format!("signal {signal}");
    }
    let how = word("ended").unwrap_or_default();
    word("error_kind").map_or_else(|| how.clone(), |kind| format!("{how}: {kind}"))
}

fn verify(as_json: bool) -> Result<u8, RuntimeError> {
    let report = audit()?.verify()?;
    let code = u8::from(!report.intact);
    if as_json {
        let shown = written(output::json(&report));
        return Ok(if shown == 0 { code } else { shown });
    }
    output::talk(&sentence(&report));
    Ok(code)
}

fn sentence(report: &Report) -> String {
    if let Some(fault) = &report.fault {
        return format!("exoshell: the audit is broken: {}", fault.message);
    }
    let mut text = format!(
        "the audit is intact: {} record(s) in {} file(s)",
        report.records, report.files
    );
    if report.torn > 0 || report.unfinished > 0 {
        text.push_str("; a process was killed while it wrote, what it left is kept aside");
    }
    text
}
