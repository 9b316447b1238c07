//! `exoshell places`.

use std::fmt::Write as _;

use exoshell_runtime::{Cleaned, PlaceReport, RuntimeError};
use serde_json::json;

use super::{load, written};
use crate::args::{PlaceArgs, PlacesCommand};
use crate::output;

/// The exit code of a removal that found nothing to remove.
const NOTHING_THERE: u8 = 1;

/// Lists, describes or removes places.
pub(crate) async fn run(command: PlacesCommand) -> u8 {
    let (result, as_json) = match command {
        PlacesCommand::Ls { json } => (list(json).await, json),
        PlacesCommand::Info { task, json } => (info(&task, json).await, json),
        PlacesCommand::Rm {
            task,
            all,
            force,
            json,
        } => (remove(&task, all, force, json).await, json),
    };
    result.unwrap_or_else(|error| output::error(&error, as_json))
}

async fn list(as_json: bool) -> Result<u8, RuntimeError> {
    let report = load(&PlaceArgs::default())?.places().await?;
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
    let rows: Vec<[String; 7]> = report.places.iter().map(row).collect();
    let header = [
        "TASK",
        "BACKEND",
        "PLACE",
        "STATE",
        "AGE",
        "IDLE",
        "DIRECTORY",
    ]
    .map(str::to_owned);
    Ok(written(output::text(&table(&header, &rows))))
}

fn row(place: &PlaceReport) -> [String; 7] {
    let living = place.background;
    let state = if place.state != "running" {
        // Why it is out of reach would tear the table.
        let word = place.state.split(':').next();
        word.unwrap_or(&place.state).to_owned()
    } else if !place.session {
        "no session".to_owned()
    } else if place.running == 0 && living == 0 {
        "idle".to_owned()
    } else {
        let mut parts = Vec::new();
        if place.running > 0 {
            parts.push(format!("{} running", place.running));
        }
        if living > 0 {
            parts.push(format!("{living} in background"));
        }
        parts.join(", ")
    };
    [
        place.task.clone(),
        place.engine.as_ref().unwrap_or(&place.backend).clone(),
        place.id.clone().unwrap_or_default(),
        state,
        span(place.age_seconds),
        place.idle_seconds.map_or_else(String::new, span),
        place.cwd.clone(),
    ]
    .map(|cell| printable(&cell))
}

/// Makes foreign text safe for a terminal.
pub(super) fn printable(text: &str) -> String {
    text.chars()
        .flat_map(|letter| {
            let escape = letter.is_control().then(|| letter.escape_debug());
            let plain = (!letter.is_control()).then_some(letter);
            escape.into_iter().flatten().chain(plain)
        })
        .collect()
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
    let places = load(&PlaceArgs::default())?.places_of(task).await?;
    if places.is_empty() {
        return Err(RuntimeError::Usage(format!(
            "the task `{task}` has no place; `exoshell places ls` lists those that exist"
        )));
    }
    if as_json {
        // A task has one place, unless it was used with several backends.
        return Ok(written(match places.as_slice() {
            [place] => output::json(place),
            several => output::json(&several),
        }));
    }
    let texts: Vec<String> = places.iter().map(describe).collect();
    Ok(written(output::text(&texts.join("\n"))))
}

fn describe(place: &PlaceReport) -> String {
    let [task, backend, id, state, age, idle, directory] = row(place);
    let mut text = format!("task       {task}\nbackend    {backend}\n");
    // Writing to a String cannot fail.
    if !id.is_empty() {
        let _ = writeln!(text, "place      {id}");
    }
    if let Some(image) = &place.image {
        let _ = writeln!(text, "image      {image}");
    }
    let state = match place.state.strip_prefix("unreachable: ") {
        Some(why) => format!("unreachable: {}", printable(why)),
        None => state,
    };
    let _ = write!(
        text,
        "state      {state}\nage        {age}\nidle       {idle}\ndirectory  {directory}\n"
    );
    if let Some(bytes) = place.disk_bytes {
        let _ = writeln!(text, "disk       {} MB", bytes / 1_000_000);
    }
    if !place.unenforced.is_empty() {
        let _ = writeln!(text, "unenforced {}", place.unenforced.join(", "));
    }
    for process in &place.leftovers {
        let _ = writeln!(
            text,
            "process    {}  {}",
            process.pid,
            printable(&process.command)
        );
    }
    text
}

async fn remove(
    tasks: &[String],
    all: bool,
    force: bool,
    as_json: bool,
) -> Result<u8, RuntimeError> {
    let runtime = load(&PlaceArgs::default())?;
    let mut unknown = Vec::new();
    let cleaned = if all {
        if force {
            runtime.cleanup_all_forced().await?
        } else {
            runtime.cleanup_all().await?
        }
    } else {
        let mut total = Cleaned::default();
        for task in tasks {
            let mut one = if force {
                runtime.cleanup_forced(task).await?
            } else {
                runtime.cleanup(task).await?
            };
            if one.removed.is_empty() && one.failed.is_empty() {
                unknown.push(format!("no place of task `{task}`"));
            }
            total.removed.append(&mut one.removed);
            total.failed.append(&mut one.failed);
            total.notes.append(&mut one.notes);
            total.brought_back += one.brought_back;
            total.ended += one.ended;
        }
        total
    };
    let mut code = if cleaned.failed.is_empty() {
        0
    } else {
        output::OWN_FAILURE
    };
    if !unknown.is_empty() {
        let nothing_else = unknown.len() == tasks.len();
        if nothing_else || !as_json {
            let text = format!(
                "{}; `exoshell places ls` lists those that exist",
                unknown.join(", ")
            );
            output::error(&RuntimeError::Usage(text), as_json);
        }
        if code == 0 {
            code = NOTHING_THERE;
        }
        if nothing_else {
            return Ok(code);
        }
    }
    if as_json {
        let mut answer = json!(cleaned);
        if !unknown.is_empty() {
            answer["unknown"] = json!(unknown);
        }
        let shown = written(output::json(&answer));
        return Ok(if shown == 0 { code } else { shown });
    }
    output::talk(&format!(
        "removed {} place(s), ended {} process group(s)",
        cleaned.removed.len(),
        cleaned.ended
    ));
    if cleaned.brought_back > 0 {
        output::talk(&format!("brought {} file(s) back", cleaned.brought_back));
    }
    for note in &cleaned.notes {
        output::talk(&format!("exoshell: {note}"));
    }
    for failure in &cleaned.failed {
        output::talk(&format!("exoshell: error: not removed: {failure}"));
    }
    if !cleaned.failed.is_empty() {
        output::talk("  hint: mend what is in the way, or forget the place with `--force`");
    }
    Ok(code)
}
