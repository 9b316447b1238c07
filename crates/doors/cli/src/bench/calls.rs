//! Single calls: how long a small command takes.

use std::time::Duration;

use super::Failure;
use super::lab::{Call, Home, Lab};
use super::plain;
use super::procfs;
use super::row::{Row, Unit};
use super::stats::Samples;

/// The pause of the paced rows: what an agent leaves at the very least between two calls.
const PAUSE: Duration = Duration::from_millis(20);

/// The task of these rows.
const TASK: &str = "bench";

/// How many calls come back to back before it is the other side's turn. The first of them is
/// not counted: nothing came right before it.
const BLOCK: usize = 25;

/// A way of calling.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// `true`, with a pause before each call.
    Paced,
    /// `true`, as fast as answers come.
    BackToBack,
    /// `echo hi`, with a pause.
    Echo,
    /// The processor time of `true`.
    Cpu,
}

/// All of them, in the order they are measured.
pub(super) const KINDS: [Kind; 4] = [Kind::Paced, Kind::BackToBack, Kind::Echo, Kind::Cpu];

impl Kind {
    /// Returns the names of its rows.
    pub(super) const fn names(self) -> &'static [&'static str] {
        match self {
            Self::Paced => &["true, 20 ms apart"],
            Self::BackToBack => &["true, back to back"],
            Self::Echo => &["echo hi, 20 ms apart"],
            Self::Cpu => &["true, cpu time"],
        }
    }

    /// Measures its rows in a home of their own.
    pub(super) async fn measure(self, lab: &Lab) -> Result<Vec<Row>, Failure> {
        let home = lab.home()?;
        for _ in 0..5 {
            // The session is opened, and everything has been used once.
            home.call(TASK, "true").await?;
            plain::bash("true")?;
        }
        let name = self.names()[0];
        let row = match self {
            Self::Paced => paced(lab, &home, name).await?,
            Self::BackToBack => back_to_back(lab, &home, name).await?,
            Self::Echo => echo(lab, &home, name).await?,
            Self::Cpu => cpu(lab, &home, name).await?,
        };
        home.end().await?;
        Ok(vec![row])
    }
}

/// Our side of a comparison.
#[derive(Debug, Default)]
pub(super) struct Ours {
    /// The whole calls.
    pub(super) times: Samples,
    parts: [Samples; 3],
    warm: u32,
    calls: u32,
}

impl Ours {
    /// Adds a call.
    pub(super) fn push(&mut self, call: Call) {
        self.times.push(call.time);
        for (samples, part) in self.parts.iter_mut().zip(call.parts) {
            samples.push_ms(part);
        }
        self.warm += u32::from(call.warm);
        self.calls += 1;
    }

    /// Tells where the time went.
    pub(super) fn note(&self) -> String {
        let [spawn, run, drain] = self.parts.each_ref().map(Samples::median);
        let outside = (self.times.median() - spawn - run - drain).max(0.0);
        format!(
            "in the guest: {spawn:.3} ms until the shell has it, {run:.3} ms until it ended, \
             {drain:.3} ms to collect; {outside:.3} ms outside; {} of {} calls found a warm shell",
            self.warm, self.calls
        )
    }

    /// Makes the row.
    pub(super) fn row(&self, name: &'static str, baseline: &'static str, plain: &Samples) -> Row {
        Row::new(
            name,
            Unit::Ms,
            self.times.median(),
            baseline,
            plain.median(),
        )
        .with_p95(self.times.p95(), plain.p95())
        .with_note(self.note())
    }
}

async fn paced(lab: &Lab, home: &Home, name: &'static str) -> Result<Row, Failure> {
    let mut ours = Ours::default();
    let mut plain = Samples::default();
    for _ in 0..lab.rounds(250, 40) {
        tokio::time::sleep(PAUSE).await;
        ours.push(home.call(TASK, "true").await?);
        tokio::time::sleep(PAUSE).await;
        plain.push(plain::bash("true")?);
    }
    Ok(ours.row(name, "bash -c true", &plain).at_most_times(1.0))
}

async fn back_to_back(lab: &Lab, home: &Home, name: &'static str) -> Result<Row, Failure> {
    let mut ours = Ours::default();
    let mut plain = Samples::default();
    for _ in 0..lab.rounds(20, 4) {
        tokio::time::sleep(PAUSE).await;
        for number in 0..BLOCK {
            let call = home.call(TASK, "true").await?;
            if number > 0 {
                ours.push(call);
            }
        }
        tokio::time::sleep(PAUSE).await;
        for number in 0..BLOCK {
            let time = plain::bash("true")?;
            if number > 0 {
                plain.push(time);
            }
        }
    }
    Ok(ours.row(name, "bash -c true", &plain).at_most_times(1.8))
}

async fn echo(lab: &Lab, home: &Home, name: &'static str) -> Result<Row, Failure> {
    let mut ours = Ours::default();
    let mut plain = Samples::default();
    for _ in 0..lab.rounds(100, 25) {
        tokio::time::sleep(PAUSE).await;
        ours.push(home.call(TASK, "echo hi").await?);
        tokio::time::sleep(PAUSE).await;
        plain.push(plain::bash_output("echo hi")?);
    }
    Ok(ours.row(name, "bash -c 'echo hi', read", &plain))
}

/// Compares processor time over blocks of calls, because the kernel tells it in ticks.
async fn cpu(lab: &Lab, home: &Home, name: &'static str) -> Result<Row, Failure> {
    const CALLS: u32 = 50;
    const SHORT: Duration = Duration::from_millis(5);
    let mut totals = Totals::default();
    let mut counted = 0.0;
    for _ in 0..lab.rounds(6, 2) {
        counted += f64::from(CALLS);
        let before = ours_so_far(home).await?;
        for _ in 0..CALLS {
            tokio::time::sleep(SHORT).await;
            home.call(TASK, "true").await?;
        }
        // The shell for the next call is part of the price.
        tokio::time::sleep(PAUSE * 2).await;
        let after = ours_so_far(home).await?;
        totals.host += after.host - before.host;
        totals.guest += after.guest - before.guest;
        totals.commands += after.commands - before.commands;
        let own = std::process::id();
        let before = procfs::cpu(own);
        for _ in 0..CALLS {
            tokio::time::sleep(SHORT).await;
            plain::bash("true")?;
        }
        let after = procfs::cpu(own);
        totals.plain += after.own - before.own + after.reaped - before.reaped;
    }
    let each = |total: f64| total / counted;
    let ours = totals.host + totals.guest + totals.commands;
    let note = format!(
        "host {:.3}, guest {:.3}, spawner with supervisors and shells {:.3}; counts this process, \
         the guest and all it started and waited for, the shell for the next call included, from \
         the kernel's ticks; the plain side counts this process's spawning too",
        each(totals.host),
        each(totals.guest),
        each(totals.commands),
    );
    let (ours, plain) = (each(ours), each(totals.plain));
    Ok(Row::new(name, Unit::CpuMs, ours, "bash -c true", plain).with_note(note))
}

#[derive(Debug, Default)]
struct Totals {
    host: f64,
    guest: f64,
    commands: f64,
    plain: f64,
}

async fn ours_so_far(home: &Home) -> Result<Totals, Failure> {
    let guest = home.guest().await?;
    let others = guest.own_pids.iter().filter(|pid| **pid != guest.pid);
    Ok(Totals {
        host: procfs::cpu(std::process::id()).own,
        guest: procfs::cpu(guest.pid).own,
        // A shell that waits is missing at both ends, so it is counted once in between.
        commands: others
            .map(|pid| procfs::cpu(*pid))
            .map(|cpu| cpu.own + cpu.reaped)
            .sum(),
        plain: 0.0,
    })
}
