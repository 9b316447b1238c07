//! What it costs to be there: sizes, idle memory and the start of a process.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use exoshell_runtime::RunRequest;

use super::Failure;
use super::lab::{Home, Lab};
use super::plain;
use super::procfs;
use super::row::{Row, Unit};
use super::stats::Samples;

/// The names of these rows.
pub(super) const NAMES: &[&str] = &[COLD, HOST_IDLE, GUEST_IDLE, GUEST_DISK];

const COLD: &str = "exoshell run true, new process";
const HOST_IDLE: &str = "host, idle memory";
const GUEST_IDLE: &str = "guest, idle memory";
const GUEST_DISK: &str = "guest, size on disk";

const PAUSE: Duration = Duration::from_millis(20);

/// How long a process is left alone before it counts as idle.
const SETTLE: Duration = Duration::from_millis(300);

/// Measures them all with one guest.
pub(super) async fn measure(lab: &Lab) -> Result<Vec<Row>, Failure> {
    let home = lab.home()?;
    // Starts the guest and opens no session.
    home.runtime()
        .run(RunRequest::new("true"), |_, _| {})
        .await?;
    tokio::time::sleep(SETTLE).await;
    let guest = home.guest().await?;
    let guest_idle = procfs::rss_mb(guest.pid)?;
    let size = guest_size(home.path())?;
    let host_idle = host_idle(&home).await?;
    let cold = cold(lab, &home).await?;
    home.end().await?;
    Ok(vec![
        cold,
        Row::limit(HOST_IDLE, Unit::Mb, host_idle, 15.0)
            .with_note("resident, of `exoshell shell` with an open link after one command"),
        Row::limit(GUEST_IDLE, Unit::Mb, guest_idle, 5.0)
            .with_note("resident, of the guest itself after one command, without a session"),
        Row::limit(GUEST_DISK, Unit::Mb, size, 4.0),
    ])
}

/// Starts this program for one command, the guest being up.
async fn cold(lab: &Lab, home: &Home) -> Result<Row, Failure> {
    let mut ours = Samples::default();
    let mut plain = Samples::default();
    for round in 0..=lab.rounds(100, 20) {
        tokio::time::sleep(PAUSE).await;
        let mut command = home.ourselves()?;
        command.args(["run", "true"]);
        let time = plain::silent(command)?;
        tokio::time::sleep(PAUSE).await;
        let bash = plain::bash("true")?;
        if round > 0 {
            ours.push(time);
            plain.push(bash);
        }
    }
    Ok(Row::new(
        COLD,
        Unit::Ms,
        ours.median(),
        "bash -c true",
        plain.median(),
    )
    .with_p95(ours.p95(), plain.p95())
    .at_most(10.0)
    .with_note("the guest is up; a one-shot command, so no shell stands ready"))
}

/// Returns the resident megabytes of a host that has nothing to do.
async fn host_idle(home: &Home) -> Result<f64, Failure> {
    let mut child = home
        .ourselves()?
        .args(["shell", "--task", "idle"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut stdin = child.stdin.take().ok_or("no stdin")?;
    let mut stdout = BufReader::new(child.stdout.take().ok_or("no stdout")?);
    stdin.write_all(b"echo ready\n")?;
    let mut line = String::new();
    stdout.read_line(&mut line)?;
    tokio::time::sleep(SETTLE).await;
    let rss = procfs::rss_mb(child.id());
    // Without a stdin it ends.
    drop(stdin);
    child.wait()?;
    if line.trim() != "ready" {
        return Err(format!("the idle host said `{}`", line.trim()).into());
    }
    rss
}

/// Returns the megabytes of the guest program in a home.
fn guest_size(home: &Path) -> Result<f64, Failure> {
    for entry in std::fs::read_dir(home.join("guest"))? {
        if let Ok(meta) = std::fs::metadata(entry?.path().join("exoshell-guest")) {
            // A guest has far fewer bytes than a u32 can count.
            let bytes = u32::try_from(meta.len())?;
            return Ok(f64::from(bytes) / 1e6);
        }
    }
    Err("there is no guest program in the home".into())
}
