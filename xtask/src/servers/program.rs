//! Running programs, and ending those that were started.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::ErrorKind;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::Result;

/// How often a condition is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Runs a program to its end and returns what it printed.
pub(super) fn output(command: &mut Command) -> Result<String> {
    let shown = shown(command);
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run `{shown}`: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    Err(format!(
        "`{shown}` failed ({}): {}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    )
    .into())
}

/// Runs a program to its end with a file as its input.
pub(super) fn output_with_input(command: &mut Command, input: &Path) -> Result<String> {
    let shown = shown(command);
    let file = File::open(input).map_err(|error| format!("{}: {error}", input.display()))?;
    let output = command
        .stdin(file)
        .output()
        .map_err(|error| format!("cannot run `{shown}`: {error}"))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned());
    }
    Err(format!(
        "`{shown}` failed ({}): {}",
        output.status,
        String::from_utf8_lossy(&output.stderr).trim()
    )
    .into())
}

/// Runs a program and tells whether it did well.
pub(super) fn succeeds(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

fn shown(command: &Command) -> String {
    let words = [command.get_program()]
        .into_iter()
        .chain(command.get_args());
    words
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Starts a server that outlives us, in a process group of its own so that Ctrl-C is ours alone.
pub(super) fn start_server(command: &mut Command, log: &Path) -> Result<u32> {
    let shown = shown(command);
    let file = File::create(log).map_err(|error| format!("{}: {error}", log.display()))?;
    let child = command
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        .process_group(0)
        .spawn()
        .map_err(|error| format!("cannot start `{shown}`: {error}"))?;
    Ok(child.id())
}

/// Waits until a server answers; what it wrote is part of the error when it does not.
pub(super) fn wait_for_server(
    name: &str,
    log: &Path,
    limit: Duration,
    mut answers: impl FnMut() -> bool,
) -> Result<()> {
    if wait_until(limit, &mut answers) {
        return Ok(());
    }
    let text = fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let tail = lines
        .get(lines.len().saturating_sub(20)..)
        .unwrap_or_default();
    Err(format!(
        "{name} did not answer within {limit:?}; the end of {}:\n{}",
        log.display(),
        tail.join("\n")
    )
    .into())
}

/// Looks at a condition until it holds, and tells whether it did in time.
pub(super) fn wait_until(limit: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + limit;
    loop {
        if holds() {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        thread::sleep(LOOK);
    }
}

/// Returns the processes whose command line names this path.
pub(super) fn naming(path: &Path) -> Vec<u32> {
    let own = std::process::id();
    let word = path.as_os_str().as_encoded_bytes();
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|pid| *pid != own && is_naming(*pid, word))
        .collect()
}

/// Tells whether a process lives whose command line names this path; a zombie has none.
pub(super) fn is_alive(pid: u32, path: &Path) -> bool {
    is_naming(pid, path.as_os_str().as_encoded_bytes())
}

fn is_naming(pid: u32, word: &[u8]) -> bool {
    fs::read(format!("/proc/{pid}/cmdline"))
        .is_ok_and(|line| line.windows(word.len()).any(|window| window == word))
}

/// Ends processes that name this path: politely, then by force.
pub(super) fn end(pids: &[u32], path: &Path, grace: Duration) -> Result<()> {
    let living = || -> Vec<u32> {
        let alive = |pid: &&u32| is_alive(**pid, path);
        pids.iter().filter(alive).copied().collect()
    };
    for (signal, limit) in [("-TERM", grace), ("-KILL", Duration::from_secs(5))] {
        for pid in living() {
            succeeds(Command::new("kill").args([signal, &pid.to_string()]));
        }
        if wait_until(limit, || living().is_empty()) {
            return Ok(());
        }
    }
    Err(format!("processes {:?} do not end", living()).into())
}

/// Removes a folder with everything in it; one that is not there is fine.
pub(super) fn remove_folder(path: &Path) -> Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {error}", path.display()).into())
        }
        _ => Ok(()),
    }
}

/// Takes away what is mounted below a folder, the deepest first.
pub(super) fn unmount_below(path: &Path) {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mut points: Vec<&str> = mounts
        .lines()
        .filter_map(|line| line.split(' ').nth(1))
        .filter(|point| Path::new(point).starts_with(path))
        .collect();
    points.sort_unstable_by_key(|point| std::cmp::Reverse(point.len()));
    for point in points {
        succeeds(Command::new("umount").args(["--lazy", point]));
    }
}
