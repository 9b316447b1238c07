//! A thousand live sessions on one machine.

use std::time::Duration;

use super::Failure;
use super::calls::Ours;
use super::lab::{Home, Lab, call};
use super::procfs;
use super::row::{Row, Unit};

/// The names of these rows.
pub(super) const NAMES: &[&str] = &[PSS, PSS_ALL, RANDOM, WARM];

const PSS: &str = "1,000 sessions, memory";
const PSS_ALL: &str = "1,000 sessions, memory with shells";
const RANDOM: &str = "1,000 sessions, true in any";
const WARM: &str = "1,000 sessions, true in one that is used";

/// How many sessions there are, also in a quick run: the number is in the name.
const SESSIONS: u32 = 1000;

/// How many are opened at the same time.
const AT_ONCE: u32 = 8;

const PAUSE: Duration = Duration::from_millis(20);

/// Opens the sessions and measures memory and calls.
pub(super) async fn measure(lab: &Lab) -> Result<Vec<Row>, Failure> {
    let crowd = lab.home()?;
    open_all(&crowd).await?;
    // Shells that are being prepared are ready by then.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let mut rows = memory(&crowd).await?;
    rows.extend(calls(lab, &crowd).await?);
    crowd.end().await?;
    Ok(rows)
}

fn task(number: u32) -> String {
    format!("crowd-{number}")
}

async fn open_all(home: &Home) -> Result<(), Failure> {
    let mut workers = tokio::task::JoinSet::new();
    for first in 0..AT_ONCE {
        let runtime = home.runtime().clone();
        workers.spawn(async move {
            for number in (first..SESSIONS).step_by(AT_ONCE as usize) {
                call(&runtime, &task(number), "true").await?;
            }
            Ok::<(), String>(())
        });
    }
    while let Some(done) = workers.join_next().await {
        done??;
    }
    Ok(())
}

async fn memory(home: &Home) -> Result<Vec<Row>, Failure> {
    let report = home.runtime().places().await?;
    let guest = report.guest.ok_or("there is no guest")?;
    let live = report.places.iter().filter(|place| place.session).count();
    let host = procfs::pss_mb(std::process::id());
    let sum = |pids: &[u32]| -> f64 { pids.iter().map(|pid| procfs::pss_mb(*pid)).sum() };
    let own = sum(&guest.own_pids);
    let shells = procfs::descendants(&guest.own_pids);
    let all = host + own + sum(&shells);
    let note = format!(
        "{live} sessions live; PSS of this process ({host:.1} MB) and of the guest, its spawner \
         and its supervisors, {} processes ({own:.1} MB, the guest itself {:.1} MB)",
        guest.own_pids.len(),
        procfs::pss_mb(guest.pid),
    );
    let note_all = format!(
        "the same with what waits below the supervisors: {} processes, {} warm shells",
        shells.len(),
        guest.warm_shells
    );
    Ok(vec![
        Row::limit(PSS, Unit::Mb, host + own, 150.0).with_note(note),
        Row::told(PSS_ALL, Unit::Mb, all).with_note(note_all),
    ])
}

/// Calls any session of the crowd, one of it that is used all the time, and the only session of
/// another guest, in turns.
async fn calls(lab: &Lab, crowd: &Home) -> Result<Vec<Row>, Failure> {
    let alone = lab.home()?;
    for _ in 0..3 {
        alone.call("one", "true").await?;
        crowd.call(&task(0), "true").await?;
    }
    let mut random = Ours::default();
    let mut warm = Ours::default();
    let mut one = Ours::default();
    let mut dice = Dice(1);
    for _ in 0..lab.rounds(200, 40) {
        tokio::time::sleep(PAUSE).await;
        let any = task(dice.roll(SESSIONS));
        random.push(crowd.call(&any, "true").await?);
        tokio::time::sleep(PAUSE).await;
        warm.push(crowd.call(&task(0), "true").await?);
        tokio::time::sleep(PAUSE).await;
        one.push(alone.call("one", "true").await?);
    }
    alone.end().await?;
    let row = |name, ours: &Ours| ours.row(name, "true with one session", &one.times);
    Ok(vec![
        row(RANDOM, &random).at_most_times(2.0),
        row(WARM, &warm).at_most_times(2.0),
    ])
}

/// Numbers that jump about, the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u32) -> u32 {
        // Knuth's constants for a 64-bit linear generator; its high bits are the good ones.
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let high = u32::try_from(self.0 >> 33).unwrap_or(0);
        high % sides.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::Dice;

    #[test]
    fn dice_reach_most_sides() {
        let mut dice = Dice(1);
        let seen: std::collections::HashSet<u32> = (0..1000).map(|_| dice.roll(100)).collect();
        assert!(seen.len() > 90 && seen.iter().all(|side| *side < 100));
    }
}
