//! `exoshell doctor`.

use std::fmt::Write as _;

use exoshell_runtime::{BackendReport, CheckOutcome, RuntimeError};

use super::{load, place_args, written};
use crate::args::{DoctorArgs, PlaceArgs};
use crate::output;

/// Looks at every backend, or one. Exits with 0 when the configured one, or that one, works.
pub(crate) async fn run(args: DoctorArgs) -> u8 {
    try_run(&args)
        .await
        .unwrap_or_else(|error| output::error(&error, args.json))
}

async fn try_run(args: &DoctorArgs) -> Result<u8, RuntimeError> {
    let only = args.backend.as_deref().map(place_args::parse).transpose()?;
    let runtime = load(&PlaceArgs::default())?;
    let reports = runtime.doctor(only).await;
    // A backend that nobody configured is no fault, unless tasks are to use it.
    let fails = |report: &BackendReport| {
        let asked = report.wanted || (only.is_some() && report.configured);
        asked && !report.works
    };
    let code = if reports.iter().any(fails) {
        output::OWN_FAILURE
    } else {
        0
    };
    let shown = if args.json {
        output::json(&serde_json::json!({ "backends": reports }))
    } else {
        output::text(&text(&reports))
    };
    Ok(match written(shown) {
        0 => code,
        failed => failed,
    })
}

fn text(reports: &[BackendReport]) -> String {
    let mut text = String::new();
    for report in reports {
        let mark = if report.works {
            "works"
        } else if !report.configured {
            "not configured"
        } else {
            "does not work"
        };
        let wanted = if report.wanted { " (in use)" } else { "" };
        let other = |engine: &&String| *engine != report.backend;
        let engine = report.engine.as_ref().filter(other);
        let engine = engine.map_or_else(String::new, |engine| format!(" ({engine})"));
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}{engine}: {mark}{wanted}", report.backend);
        for check in &report.checks {
            let mark = match check.outcome {
                CheckOutcome::Fine => "ok     ",
                CheckOutcome::Limited => "limited",
                CheckOutcome::Broken => "broken ",
                CheckOutcome::NotConfigured => "missing",
            };
            let _ = writeln!(text, "  {mark}  {}: {}", check.name, check.found);
            if let Some(remedy) = &check.remedy {
                let _ = writeln!(text, "           {remedy}");
            }
        }
    }
    text
}
