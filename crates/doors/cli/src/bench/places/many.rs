//! Many docker places at once, from one host process.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use exoshell_runtime::{Runtime, TerminalRequest};

use super::super::Failure;
use super::super::lab::Lab;
use super::super::procfs;
use super::super::row::{Row, Unit};
use super::super::stats::{Samples, milliseconds};
use super::containers::Engine;

/// How often memory is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// How many megabytes the host with all its children may have.
const MEMORY_LIMIT: f64 = 300.0;

/// How many commands run in each place.
const COMMANDS: u32 = 5;

/// How many places.
#[derive(Debug, Clone, Copy)]
pub(super) struct Many {
    places: u32,
    names: &'static [&'static str; 3],
}

impl Many {
    /// Chooses the number.
    pub(super) fn new(lab: &Lab) -> Self {
        let all = Self {
            places: 100,
            names: &[
                "100 docker places, memory",
                "100 docker places, from the first to the last",
                "100 docker places, call",
            ],
        };
        let few = Self {
            places: 10,
            names: &[
                "10 docker places, memory",
                "10 docker places, from the first to the last",
                "10 docker places, call",
            ],
        };
        if lab.rounds(1, 0) == 1 { all } else { few }
    }

    /// Returns the names of these rows.
    pub(super) const fn names(&self) -> &'static [&'static str; 3] {
        self.names
    }

    /// Makes all places at once, uses each, and removes it.
    pub(super) async fn measure(self, lab: &Lab, engine: &Engine) -> Result<Vec<Row>, Failure> {
        let home = engine.home(lab)?;
        let prefix = format!("bench-crowd-{}", std::process::id());
        let tasks: Vec<String> = (0..self.places)
            .map(|number| format!("{prefix}-{number}"))
            .collect();
        let watch = Watch::start();
        let began = Instant::now();
        let runtime = home.runtime();
        let used = at_once(tasks.iter().map(|task| work(runtime.clone(), task.clone()))).await?;
        // All of them live now.
        let removed = at_once(
            tasks
                .iter()
                .map(|task| remove(runtime.clone(), task.clone())),
        )
        .await?;
        let time = milliseconds(began.elapsed());
        let peak = watch.stop();
        home.end().await?;
        let done = all_right(used)?;
        all_right(removed)?;
        left_behind(engine, &prefix)?;
        let mut new = Samples::default();
        let mut calls = Samples::default();
        for done in done {
            new.push(done.new);
            done.calls.into_iter().for_each(|time| calls.push(time));
        }
        let [memory, wall, call] = *self.names;
        let note = format!(
            "the most that this process ({:.1} MB then) and its children ({} then, {} at most) \
             had at once, as PSS; each place ran {COMMANDS} commands with the right answers before \
             the first was removed, and no container is left",
            peak.own, peak.children, peak.most_children
        );
        let note_wall = format!(
            "made, used and removed, all at once; the first command of a place came after \
             {:.0} ms (median)",
            new.median()
        );
        let note_call = format!("of the {} places; p95 {:.1} ms", self.places, calls.p95());
        Ok(vec![
            Row::limit(memory, Unit::Mb, peak.all, MEMORY_LIMIT).with_note(note),
            Row::told(wall, Unit::Ms, time).with_note(note_wall),
            Row::told(call, Unit::Ms, calls.median()).with_note(note_call),
        ])
    }
}

/// How one place went.
struct Done {
    new: Duration,
    calls: Vec<Duration>,
}

/// Makes a place and uses it; every answer is checked.
async fn work(runtime: Runtime, task: String) -> Result<Done, String> {
    let mut times = Vec::new();
    let mut wanted = task.clone();
    for number in 1..=COMMANDS {
        let command = format!("export WHO=\"$WHO.{number}\"; echo \"{task}$WHO\"");
        let began = Instant::now();
        let result = runtime
            .terminal(TerminalRequest::new(command).in_task(&task))
            .await;
        times.push(began.elapsed());
        let _ = write!(wanted, ".{number}");
        if result.exit_code != 0 || result.output.trim() != wanted {
            let why = result.error.unwrap_or(result.output);
            return Err(format!("command {number} of `{task}`: {why}"));
        }
    }
    Ok(Done {
        new: times.remove(0),
        calls: times,
    })
}

async fn remove(runtime: Runtime, task: String) -> Result<(), String> {
    let cleaned = runtime.cleanup(&task).await;
    let cleaned = cleaned.map_err(|error| error.to_string())?;
    cleaned.failed.into_iter().next().map_or(Ok(()), Err)
}

/// Does all of these at the same time.
async fn at_once<T: Send + 'static>(
    works: impl Iterator<Item = impl Future<Output = Result<T, String>> + Send + 'static>,
) -> Result<Vec<Result<T, String>>, Failure> {
    let mut running: tokio::task::JoinSet<_> = works.collect();
    let mut results = Vec::new();
    while let Some(done) = running.join_next().await {
        results.push(done?);
    }
    Ok(results)
}

fn all_right<T>(results: Vec<Result<T, String>>) -> Result<Vec<T>, Failure> {
    let all = results.len();
    let bad = results.iter().filter(|result| result.is_err()).count();
    let right: Result<Vec<T>, String> = results.into_iter().collect();
    right.map_err(|first| format!("{bad} of {all} places failed; the first: {first}").into())
}

/// Makes sure that the engine knows no container of these tasks.
fn left_behind(engine: &Engine, prefix: &str) -> Result<(), Failure> {
    let format = "{{.Label \"exoshell.task\"}}";
    let words = ["ps", "--all", "--filter", "label=exoshell=1"];
    let words = [&words[..], &["--format", format]].concat();
    let output = engine.client(&words).output()?;
    if !output.status.success() {
        return Err("the engine does not list its containers".into());
    }
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    let left = listed.lines().filter(|task| task.starts_with(prefix));
    match left.count() {
        0 => Ok(()),
        left => Err(format!("{left} containers are left").into()),
    }
}

/// The most memory that this process and its children had.
#[derive(Debug, Clone, Copy, Default)]
struct Peak {
    all: f64,
    /// This process's share of it.
    own: f64,
    /// How many children there were then.
    children: usize,
    /// How many there ever were at once.
    most_children: usize,
}

/// Looks at memory again and again, beside the work.
struct Watch {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<Peak>,
}

impl Watch {
    fn start() -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut peak = Peak::default();
            while !told.load(Ordering::Relaxed) {
                peak.look();
                std::thread::sleep(LOOK);
            }
            peak
        });
        Self { stop, thread }
    }

    fn stop(self) -> Peak {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap_or_default()
    }
}

impl Peak {
    fn look(&mut self) {
        let id = std::process::id();
        let children = procfs::descendants(&[id]);
        let own = procfs::pss_mb(id);
        let all = own + children.iter().map(|pid| procfs::pss_mb(*pid)).sum::<f64>();
        self.most_children = self.most_children.max(children.len());
        if all > self.all {
            self.all = all;
            self.own = own;
            self.children = children.len();
        }
    }
}
