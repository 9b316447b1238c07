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
mod places;
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
    /// The places that no row tells of, and why.
    left_out: Vec<String>,
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
    let options = places::Options {
        image: args.image,
        host: args.host,
        crowd: args.crowd,
    };
    let measured = tokio::select! {
        biased;
        () = interrupt.wait() => None,
        measured = Box::pin(measure(&lab, &filter, options)) => Some(measured),
    };
    lab.close().await;
    let Some(Measured { rows, left_out }) = measured else {
        return INTERRUPTED;
    };
    if rows.is_empty() && left_out.is_empty() {
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
        left_out,
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

    fn wants_any(&self, names: &[&'static str]) -> bool {
        names.iter().any(|name| self.wants(name))
    }
}

/// What came of it.
#[derive(Debug, Default)]
struct Measured {
    rows: Vec<Row>,
    left_out: Vec<String>,
}

impl Measured {
    /// Adds the rows of a part; one without numbers still has its names.
    fn add(&mut self, filter: &Filter, names: &[&'static str], part: Result<Vec<Row>, Failure>) {
        match part {
            Ok(part) => {
                let wanted = part.into_iter().filter(|row| filter.wants(row.name));
                self.rows.extend(wanted);
            }
            Err(error) => {
                let wanted = names.iter().filter(|name| filter.wants(name));
                let failed = wanted.map(|name| Row::failed(name, &error.to_string()));
                self.rows.extend(failed);
            }
        }
    }

    /// Says that something is not measured, which is no failure.
    fn leave_out(&mut self, what: &str, why: &Failure) {
        let line = format!("the rows of {what} are left out: {why}");
        output::talk(&format!("exoshell: {line}"));
        self.left_out.push(line);
    }
}

/// Measures part after part. Those that look at how memory grows come first, before others have
/// made room in it.
async fn measure(lab: &Lab, filter: &Filter, options: places::Options) -> Measured {
    let mut measured = Measured::default();
    let mut add = |names: &[&'static str], part| measured.add(filter, names, part);
    let wanted = |names: &[&'static str]| filter.wants_any(names);
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
    Box::pin(places::measure(lab, filter, options, &mut measured)).await;
    measured
}

/// Says what is being measured, to a person who watches.
fn progress(what: &str) {
    if std::io::stderr().is_terminal() {
        output::talk(&format!("measuring {what} …"));
    }
}
