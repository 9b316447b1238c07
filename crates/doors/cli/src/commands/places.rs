//! `exoshell places`.

use std::fmt::Write as _;

use exoshell_runtime::{Cleaned, PlaceReport, RuntimeError};
use serde_json::json;

use super::{load, written};
use crate::args::PlacesCommand;
use crate::output;

/// Lists, describes or removes places.
pub(crate) async fn run(command: PlacesCommand) -> u8 {
    let (result, as_json) = match command {
        PlacesCommand::Ls { json } => (list(json).await, json),
        PlacesCommand::Info { task, json } => (info(&task, json).await, json),
        PlacesCommand::Rm { task, all, json } => (remove(&task, all, json).await, json),
    };
    result.unwrap_or_else(|error| output::error(&error, as_json))
}

async fn list(as_json: bool) -> Result<u8, RuntimeError> {
    let report = load(None)?.places().await?;
    for warning in &report.warnings {
        output::talk(&format!("exoshell: warning: {warning}"));
    }
    if as_json {
        return Ok(written(output::json(&report)));
    }
    if report.places.is_empty() {
        output::talk("no places; `exoshell run --task NAME …` makes one");
        return Ok(0);
    }
    let rows: Vec<[String; 6]> = report.places.iter().map(row).collect();
    let header = ["TASK", "BACKEND", "STATE", "AGE", "IDLE", "DIRECTORY"].map(str::to_owned);
    Ok(written(output::data(table(&header, &rows).as_bytes())))
}

fn row(place: &PlaceReport) -> [String; 6] {
    let state = match (place.session, place.running, place.leftovers.len()) {
        (false, _, _) => "no session".to_owned(),
        (true, 0, 0) => "idle".to_owned(),
        (true, running, 0) => format!("{running} running"),
        (true, running, left) => format!("{running} running, {left} left over"),
    };
    [
        place.task.clone(),
        place.backend.clone(),
        state,
        span(place.age_seconds),
        place.idle_seconds.map_or_else(String::new, span),
        place.cwd.clone(),
    ]
}

pub(super) fn span(seconds: u64) -> String {
    match seconds {
        0..=119 => format!("{seconds}s"),
        120..=7199 => format!("{}m", seconds / 60),
        7200..=172_799 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

pub(super) fn table<const N: usize>(header: &[String; N], rows: &[[String; N]]) -> String {
    let mut widths = [0; N];
    for line in std::iter::once(header).chain(rows) {
        for (width, cell) in widths.iter_mut().zip(line) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for line in std::iter::once(header).chain(rows) {
        let cells: Vec<String> = line
            .iter()
            .zip(widths)
            .map(|(cell, width)| format!("{cell:width$}"))
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text
}

async fn info(task: &str, as_json: bool) -> Result<u8, RuntimeError> {
    let Some(place) = load(None)?.place(task).await? else {
        return Err(RuntimeError::Usage(format!(
            "the task `{task}` has no place; `exoshell places ls` lists those that exist"
        )));
    };
    if as_json {
        return Ok(written(output::json(&place)));
    }
    let [task, backend, state, age, idle, directory] = row(&place);
    let mut text = format!(
        "task       {task}\nbackend    {backend}\nstate      {state}\nage        {age}\n\
         idle       {idle}\ndirectory  {directory}\n"
    );
    if let Some(bytes) = place.disk_bytes {
        let _ = writeln!(text, "disk       {} MB", bytes / 1_000_000);
    }
    for process in &place.leftovers {
        let _ = writeln!(text, "left over  {}  {}", process.pid, process.command);
    }
    Ok(written(output::data(text.as_bytes())))
}

async fn remove(tasks: &[String], all: bool, as_json: bool) -> Result<u8, RuntimeError> {
    let runtime = load(None)?;
    let cleaned = if all {
        runtime.cleanup_all().await?
    } else {
        let mut total = Cleaned::default();
        for task in tasks {
            let mut one = runtime.cleanup(task).await?;
            total.removed.append(&mut one.removed);
            total.failed.append(&mut one.failed);
            total.ended += one.ended;
        }
        total
    };
    let code = if cleaned.failed.is_empty() {
        0
    } else {
        output::OWN_FAILURE
    };
    if as_json {
        let shown = written(output::json(&json!(cleaned)));
        return Ok(if shown == 0 { code } else { shown });
    }
    output::talk(&format!(
        "removed {} place(s), ended {} process group(s)",
        cleaned.removed.len(),
        cleaned.ended
    ));
    for failure in &cleaned.failed {
        output::talk(&format!("exoshell: error: not removed: {failure}"));
    }
    Ok(code)
}
