//! A place that is there, reached by us and by the plain tool in turns.

use std::process::Command;
use std::time::Duration;

use super::super::calls::Ours;
use super::super::lab::{Home, Lab};
use super::super::row::{Row, Unit};
use super::super::stats::Samples;
use super::super::{Failure, Filter, plain, progress, volume};

/// The pause of the paced rows.
const PAUSE: Duration = Duration::from_millis(20);

/// What engines still do after a plain tool has ended, such as Podman's clean-up of each command,
/// is over after this long; it must not count against us.
const SETTLE: Duration = Duration::from_millis(400);

/// How many paced calls come before it is the plain tool's turn. The first is not counted.
const ROUND: usize = 5;

/// How many of our calls come back to back before it is another side's turn, and how many of the
/// plain tool, which takes far longer. The first of a block is not counted.
const BLOCK: usize = 25;
const PLAIN_BLOCK: usize = 6;

/// The task of these rows.
pub(super) const TASK: &str = "bench";

/// How often a call in a place may take as long as one on this machine.
const TIMES_LOCAL: f64 = 2.0;

/// What these rows are called, and what they are compared with.
#[derive(Debug)]
pub(super) struct Names {
    pub(super) apart: &'static str,
    pub(super) apart_local: &'static str,
    pub(super) together: &'static str,
    pub(super) together_local: &'static str,
    pub(super) process: &'static str,
    pub(super) volume: &'static str,
    /// The plain tool that runs `true` there.
    pub(super) plain: &'static str,
    /// The plain tool that prints a file from there.
    pub(super) cat: &'static str,
    /// How many times faster than the plain tool we want to be.
    pub(super) faster: f64,
}

/// What a call on this machine is called.
const LOCAL: &str = "the same call on this machine";

impl Names {
    /// Returns the names of all rows.
    pub(super) const fn all(&self) -> [&'static str; 6] {
        [
            self.apart,
            self.apart_local,
            self.together,
            self.together_local,
            self.process,
            self.volume,
        ]
    }

    const fn calls(&self) -> [&'static str; 4] {
        [
            self.apart,
            self.apart_local,
            self.together,
            self.together_local,
        ]
    }
}

/// A place, our way into it and the plain tool's.
pub(super) struct Site<'a> {
    pub(super) names: &'static Names,
    /// Our way in: [`TASK`] of this home.
    pub(super) home: &'a Home,
    /// The plain tool's; the words of a command there are its last arguments.
    pub(super) plain: &'a dyn Fn(&[&str]) -> Command,
    /// A folder there for a large file.
    pub(super) folder: String,
}

impl Site<'_> {
    /// Measures the rows that are wanted.
    pub(super) async fn measure(&self, lab: &Lab, filter: &Filter) -> Result<Vec<Row>, Failure> {
        let names = self.names;
        let mut rows = Vec::new();
        if filter.wants_any(&names.calls()) {
            progress(names.apart);
            rows.extend(Box::pin(self.calls(lab)).await?);
        }
        if filter.wants(names.process) {
            progress(names.process);
            rows.push(self.processes(lab).await?);
        }
        if filter.wants(names.volume) {
            progress(names.volume);
            rows.push(Box::pin(self.volume(lab)).await?);
        }
        Ok(rows)
    }

    fn plain_true(&self) -> Result<Duration, Failure> {
        Ok(plain::silent((self.plain)(&["true"]))?)
    }

    async fn calls(&self, lab: &Lab) -> Result<Vec<Row>, Failure> {
        let local = lab.home()?;
        for _ in 0..5 {
            self.home.call(TASK, "true").await?;
            local.call(TASK, "true").await?;
        }
        self.plain_true()?;
        let apart = self.apart(lab, &local).await?;
        let together = self.together(lab, &local).await?;
        local.end().await?;
        let names = self.names;
        Ok([
            apart.rows(names, names.apart, names.apart_local),
            together.rows(names, names.together, names.together_local),
        ]
        .concat())
    }

    async fn apart(&self, lab: &Lab, local: &Home) -> Result<Sides, Failure> {
        let mut sides = Sides::default();
        for _ in 0..lab.rounds(30, 8) {
            for number in 0..ROUND {
                tokio::time::sleep(PAUSE).await;
                let ours = self.home.call(TASK, "true").await?;
                tokio::time::sleep(PAUSE).await;
                let here = local.call(TASK, "true").await?;
                if number > 0 {
                    sides.ours.push(ours);
                    sides.local.push(here);
                }
            }
            for _ in 0..2 {
                tokio::time::sleep(PAUSE).await;
                sides.plain.push(self.plain_true()?);
            }
            tokio::time::sleep(SETTLE).await;
        }
        Ok(sides)
    }

    async fn together(&self, lab: &Lab, local: &Home) -> Result<Sides, Failure> {
        let mut sides = Sides::default();
        for _ in 0..lab.rounds(10, 3) {
            for (home, side) in [(self.home, &mut sides.ours), (local, &mut sides.local)] {
                tokio::time::sleep(PAUSE).await;
                for number in 0..BLOCK {
                    let call = home.call(TASK, "true").await?;
                    if number > 0 {
                        side.push(call);
                    }
                }
            }
            tokio::time::sleep(PAUSE).await;
            for number in 0..PLAIN_BLOCK {
                let time = self.plain_true()?;
                if number > 0 {
                    sides.plain.push(time);
                }
            }
            tokio::time::sleep(SETTLE).await;
        }
        Ok(sides)
    }

    /// Starts this program for one command in the place, which is there.
    async fn processes(&self, lab: &Lab) -> Result<Row, Failure> {
        self.home.call(TASK, "true").await?;
        let mut ours = Samples::default();
        let mut plain = Samples::default();
        for round in 0..=lab.rounds(25, 8) {
            tokio::time::sleep(PAUSE).await;
            let mut command = self.home.ourselves()?;
            command.args(["run", "--task", TASK, "true"]);
            let time = plain::silent(command)?;
            tokio::time::sleep(PAUSE).await;
            let theirs = self.plain_true()?;
            if round > 0 {
                ours.push(time);
                plain.push(theirs);
            }
        }
        let names = self.names;
        let (our, their) = (ours.median(), plain.median());
        Ok(Row::new(names.process, Unit::Ms, our, names.plain, their)
            .with_p95(ours.p95(), plain.p95())
            .with_note("`exoshell run true` from start to end; the place and its guest are up"))
    }

    /// Brings 100 MB of output here.
    async fn volume(&self, lab: &Lab) -> Result<Row, Failure> {
        let file = format!("{}/exoshell-bench-{}", self.folder, std::process::id());
        let line = "Compiling crate-977 v1.31.0 (/srv/build/workspace/crate-977)";
        let write = format!("yes '{line}' | head -c {} > '{file}'", volume::BYTES);
        let result = match self.home.call(TASK, &write).await {
            Ok(_) => self.stream(lab, &file).await,
            Err(error) => Err(error),
        };
        self.home.call(TASK, &format!("rm -f '{file}'")).await?;
        result
    }

    async fn stream(&self, lab: &Lab, file: &str) -> Result<Row, Failure> {
        let mut ours = Samples::default();
        let mut plain = Samples::default();
        for round in 0..=lab.rounds(5, 2) {
            let command = format!("cat '{file}'");
            let time = volume::streamed(self.home, TASK, command).await?;
            let (theirs, bytes) = plain::counted((self.plain)(&["cat", file]))?;
            if bytes != volume::BYTES {
                return Err(format!("the plain tool brought {bytes} bytes").into());
            }
            if round > 0 {
                ours.push_ms(time);
                plain.push(theirs);
            }
        }
        let speed = |samples: &Samples| volume::MEGABYTES / samples.median() * 1000.0;
        let note = format!("{:.0} MB/s beside {:.0}", speed(&ours), speed(&plain));
        let names = self.names;
        let (our, their) = (ours.median(), plain.median());
        Ok(Row::new(names.volume, Unit::Ms, our, names.cat, their)
            .with_p95(ours.p95(), plain.p95())
            .with_note(note))
    }
}

/// The sides of a comparison.
#[derive(Debug, Default)]
struct Sides {
    ours: Ours,
    local: Ours,
    plain: Samples,
}

impl Sides {
    /// Makes a row beside the plain tool and one beside this machine.
    fn rows(&self, names: &Names, name: &'static str, name_local: &'static str) -> Vec<Row> {
        let row = self.ours.row(name, names.plain, &self.plain);
        let faster = row.ratio().map_or(0.0, |ratio| 1.0 / ratio);
        let text = format!("≥ {} × faster", names.faster);
        let local = self.ours.row(name_local, LOCAL, &self.local.times);
        vec![
            row.with_target(text, faster >= names.faster),
            local
                .at_most_times(TIMES_LOCAL)
                .with_note(format!("here, {}", self.local.note())),
        ]
    }
}
