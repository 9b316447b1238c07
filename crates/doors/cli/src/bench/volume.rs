//! A lot of output.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::time::Duration;

use exoshell_runtime::{RunRequest, TerminalRequest};

use super::Failure;
use super::lab::{Home, Lab};
use super::plain;
use super::procfs;
use super::row::{Row, Unit};
use super::stats::{Samples, milliseconds};

/// The names of these rows.
pub(super) const NAMES: &[&str] = &[RAW, TERMINAL, RAW_MEMORY, TERMINAL_MEMORY];

const RAW: &str = "100 MB, streamed";
const TERMINAL: &str = "100 MB, terminal";
const RAW_MEMORY: &str = "100 MB, streamed, host memory growth";
const TERMINAL_MEMORY: &str = "100 MB, terminal, host memory growth";

/// How much output there is.
pub(super) const MEGABYTES: f64 = 100.0;
/// The same in bytes.
pub(super) const BYTES: u64 = 100_000_000;
const CAT: &str = "cat FILE | reader";
const TASK: &str = "bench";
const PAUSE: Duration = Duration::from_millis(50);

/// Sends 100 MB through `cat`, through [`Runtime::run`](exoshell_runtime::Runtime::run) and
/// through `terminal`, in turns.
pub(super) async fn measure(lab: &Lab) -> Result<Vec<Row>, Failure> {
    let home = lab.home()?;
    let file = lab.root().join("output.txt");
    write_file(&file)?;
    home.call(TASK, "true").await?;
    let mut cat = Samples::default();
    let mut raw = Samples::default();
    let mut terminal = Samples::default();
    let mut growth = [Growth::default(), Growth::default()];
    for round in 0..=lab.rounds(11, 3) {
        tokio::time::sleep(PAUSE).await;
        let (time, bytes) = plain::cat(&file)?;
        if bytes != BYTES {
            return Err(format!("`cat` brought {bytes} bytes").into());
        }
        tokio::time::sleep(PAUSE).await;
        let (streamed, grown) = watched(streamed(&home, TASK, command(&file))).await?;
        growth[0].add(grown);
        tokio::time::sleep(PAUSE).await;
        let (kept, grown) = watched(kept(&home, &file)).await?;
        growth[1].add(grown);
        // The first round fills caches and buffers.
        if round > 0 {
            cat.push(time);
            raw.push_ms(streamed);
            terminal.push_ms(kept);
        }
    }
    std::fs::remove_file(&file)?;
    home.end().await?;
    let speed = |samples: &Samples| MEGABYTES / samples.median() * 1000.0;
    let note = |samples: &Samples| format!("{:.0} MB/s beside {:.0}", speed(samples), speed(&cat));
    let against = cat.median();
    Ok(vec![
        Row::new(RAW, Unit::Ms, raw.median(), CAT, against)
            .with_p95(raw.p95(), cat.p95())
            .at_most_times(1.43)
            .with_note(note(&raw)),
        Row::new(TERMINAL, Unit::Ms, terminal.median(), CAT, against)
            .with_p95(terminal.p95(), cat.p95())
            .with_target("≥ 150 MB/s".to_owned(), speed(&terminal) >= 150.0)
            .with_note(note(&terminal)),
        growth[0].row(RAW_MEMORY),
        growth[1].row(TERMINAL_MEMORY),
    ])
}

/// Writes lines such as a build prints them.
fn write_file(path: &Path) -> std::io::Result<()> {
    let mut file = BufWriter::new(File::create(path)?);
    let mut left = usize::try_from(BYTES).unwrap_or(0);
    let mut number = 0_u64;
    while left > 0 {
        let line = format!(
            "[{number:>8}] Compiling crate-{} v1.{}.0 (/srv/build/workspace/crate-{})\n",
            number % 977,
            number % 31,
            number % 977
        );
        let piece = line.as_bytes().get(..left).unwrap_or(line.as_bytes());
        file.write_all(piece)?;
        left -= piece.len();
        number += 1;
    }
    file.flush()
}

/// How this process grew, in megabytes.
#[derive(Debug, Clone, Copy, Default)]
struct Growth {
    /// Over what it had before.
    grown: f64,
    /// The most it had.
    peak: f64,
    /// Whether earlier peaks hide something.
    inexact: bool,
}

impl Growth {
    /// Takes the worse of both.
    const fn add(&mut self, other: Self) {
        self.grown = self.grown.max(other.grown);
        self.peak = self.peak.max(other.peak);
        self.inexact |= other.inexact;
    }

    fn row(self, name: &'static str) -> Row {
        let hidden = if self.inexact {
            "; this kernel cannot reset the peak, so growth below an earlier one is not seen"
        } else {
            ""
        };
        Row::limit(name, Unit::Mb, self.grown, 32.0)
            .with_note(format!("resident; at most {:.1} MB{hidden}", self.peak))
    }
}

/// Runs something and watches how this process grows meanwhile.
async fn watched(
    job: impl Future<Output = Result<f64, Failure>>,
) -> Result<(f64, Growth), Failure> {
    let inexact = !procfs::reset_peak();
    let before = if inexact {
        procfs::peak_rss_mb()?
    } else {
        procfs::rss_mb(std::process::id())?
    };
    let result = job.await?;
    let peak = procfs::peak_rss_mb()?;
    let growth = Growth {
        grown: (peak - before).max(0.0),
        peak,
        inexact,
    };
    Ok((result, growth))
}

/// Streams what a command writes, which must be [`BYTES`]; returns the milliseconds it took.
pub(super) async fn streamed(home: &Home, task: &str, command: String) -> Result<f64, Failure> {
    let request = RunRequest::new(command).in_task(task);
    let mut bytes = 0_u64;
    let began = std::time::Instant::now();
    let run = home.runtime().run(request, |_, piece| {
        bytes += piece.len() as u64;
    });
    let end = run.await?;
    let time = began.elapsed();
    if bytes != BYTES || end.exit_code() != 0 {
        return Err(format!("{bytes} bytes came, exit code {}", end.exit_code()).into());
    }
    Ok(milliseconds(time))
}

/// Runs the file through the tool, which normalises, cuts and keeps the rest on disk.
async fn kept(home: &Home, file: &Path) -> Result<f64, Failure> {
    let request = TerminalRequest::new(command(file)).in_task(TASK);
    let began = std::time::Instant::now();
    let result = home.runtime().terminal(request).await;
    let time = began.elapsed();
    let kept = result.output_file.as_ref();
    let size = kept.and_then(|path| std::fs::metadata(path).ok());
    if result.exit_code != 0 || size.is_none_or(|meta| meta.len() != BYTES) {
        let why = result.error.unwrap_or_default();
        return Err(format!("the output was not kept whole: {why}").into());
    }
    if let Some(path) = kept {
        std::fs::remove_file(path)?;
    }
    Ok(milliseconds(time))
}

fn command(file: &Path) -> String {
    format!("cat '{}'", file.display())
}
