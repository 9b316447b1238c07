//! `exoshell bench`: this machine in numbers, each beside the plain tool it is compared with.
//!
//! The two sides of a comparison are measured in one run, in turns, so that whatever else the
//! machine does hits both; what is told is the median. Everything happens in homes of the
//! bench's own under the system's folder for temporary files, so the user's guest and sessions
//! are never touched.

mod background;
mod calls;
mod crowd;
mod footprint;
mod lab;
mod plain;
mod procfs;
mod row;
mod stats;
mod table;
mod volume;

use std::io::IsTerminal as _;

use serde::Serialize;

use crate::args::BenchArgs;
use crate::commands::{interrupt_on_signals, written};
use crate::output;
use lab::Lab;
use row::Row;

/// The exit code of a bench that was stopped.
const INTERRUPTED: u8 = 130;

/// Why a part of the bench has no numbers.
type Failure = Box<dyn std::error::Error>;

/// What is printed.
#[derive(Debug, Serialize)]
struct Report {
    version: &'static str,
    quick: bool,
    debug_build: bool,
    cpus: usize,
    rows: Vec<Row>,
}

/// Measures and prints. Missing a target is an answer; only what could not be measured is an
/// error.
pub(crate) async fn run(args: BenchArgs) -> u8 {
    let lab = match Lab::open(args.quick) {
        Ok(lab) => lab,
        Err(error) => {
            output::talk(&format!("exoshell: error: cannot start the bench: {error}"));
            return output::OWN_FAILURE;
        }
    };
    let interrupt = interrupt_on_signals();
    let filter = Filter(args.only);
    let rows = tokio::select! {
        biased;
        () = interrupt.wait() => None,
        rows = measure(&lab, &filter) => Some(rows),
    };
    lab.close().await;
    let Some(rows) = rows else {
        return INTERRUPTED;
    };
    if rows.is_empty() {
        output::talk("exoshell: error: no row has a name like that");
        return 2;
    }
    let failed = rows.iter().any(|row| row.ours.is_none());
    let report = Report {
        version: env!("EXOSHELL_VERSION"),
        quick: args.quick,
        debug_build: cfg!(debug_assertions),
        cpus: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        rows,
    };
    let shown = if args.json {
        output::json(&report)
    } else {
        output::data(table::render(&report).as_bytes())
    };
    match written(shown) {
        0 if failed => output::OWN_FAILURE,
        code => code,
    }
}

/// Which rows are wanted.
struct Filter(Option<String>);

impl Filter {
    fn wants(&self, name: &str) -> bool {
        self.0.as_deref().is_none_or(|word| name.contains(word))
    }
}

/// Measures part after part. Those that look at how memory grows come first, before others have
/// made room in it.
async fn measure(lab: &Lab, filter: &Filter) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut add = |names: &[&'static str], part: Result<Vec<Row>, Failure>| match part {
        Ok(part) => rows.extend(part.into_iter().filter(|row| filter.wants(row.name))),
        Err(error) => rows.extend(
            names
                .iter()
                .filter(|name| filter.wants(name))
                .map(|name| Row::failed(name, &error.to_string())),
        ),
    };
    let wanted = |names: &[&'static str]| names.iter().any(|name| filter.wants(name));
    if wanted(footprint::NAMES) {
        progress("sizes and cold start");
        add(footprint::NAMES, Box::pin(footprint::measure(lab)).await);
    }
    if wanted(volume::NAMES) {
        progress("100 MB of output");
        add(volume::NAMES, Box::pin(volume::measure(lab)).await);
    }
    for kind in calls::KINDS {
        if wanted(kind.names()) {
            progress(kind.names()[0]);
            add(kind.names(), Box::pin(kind.measure(lab)).await);
        }
    }
    if wanted(background::NAMES) {
        progress("background processes");
        add(background::NAMES, Box::pin(background::measure(lab)).await);
    }
    if wanted(crowd::NAMES) {
        progress("1,000 sessions");
        add(crowd::NAMES, Box::pin(crowd::measure(lab)).await);
    }
    rows
}

/// Says what is being measured, to a person who watches.
fn progress(what: &str) {
    if std::io::stderr().is_terminal() {
        output::talk(&format!("measuring {what} …"));
    }
}
