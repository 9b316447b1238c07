//! What the kernel says of processes.

use std::collections::HashMap;
use std::fs;

use super::Failure;

/// Bytes in the kernel's kB.
const KIB: f64 = 1024.0;

/// Returns a process's resident memory in megabytes.
pub(super) fn rss_mb(pid: u32) -> Result<f64, Failure> {
    field_mb(&format!("/proc/{pid}/status"), "VmRSS:")
}

/// Returns the most memory this process ever had resident, in megabytes.
pub(super) fn peak_rss_mb() -> Result<f64, Failure> {
    field_mb("/proc/self/status", "VmHWM:")
}

/// Makes the peak start over. Returns whether the kernel can do that.
pub(super) fn reset_peak() -> bool {
    fs::write("/proc/self/clear_refs", "5").is_ok()
}

/// Returns a process's proportional share of memory in megabytes; 0 for one that is gone.
pub(super) fn pss_mb(pid: u32) -> f64 {
    field_mb(&format!("/proc/{pid}/smaps_rollup"), "Pss:").unwrap_or(0.0)
}

fn field_mb(path: &str, name: &str) -> Result<f64, Failure> {
    let text = fs::read_to_string(path).map_err(|error| format!("`{path}`: {error}"))?;
    text.lines()
        .find_map(|line| line.strip_prefix(name))
        .and_then(|rest| rest.split_whitespace().next())
        .and_then(|kib| kib.parse::<f64>().ok())
        .map(|kib| kib * KIB / 1e6)
        .ok_or_else(|| format!("`{path}` has no `{name}`").into())
}

/// The processor time of a process in milliseconds: its own, and that of all children it waited
/// for, with theirs. The kernel tells it in ticks of 10 ms.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cpu {
    /// Its own.
    pub(super) own: f64,
    /// Its children's.
    pub(super) reaped: f64,
}

/// Returns the processor time of a process; nothing for one that is gone.
pub(super) fn cpu(pid: u32) -> Cpu {
    let Some(fields) = stat(pid) else {
        return Cpu::default();
    };
    let ticks = |at: usize| -> f64 {
        let text = fields.get(at).map_or("0", String::as_str);
        text.parse().unwrap_or(0.0)
    };
    let per_second = u32::try_from(rustix::param::clock_ticks_per_second()).unwrap_or(100);
    let ms = 1000.0 / f64::from(per_second);
    Cpu {
        own: (ticks(UTIME) + ticks(UTIME + 1)) * ms,
        reaped: (ticks(UTIME + 2) + ticks(UTIME + 3)) * ms,
    }
}

/// Where the times and the parent are among the fields behind the name.
const UTIME: usize = 11;
const PARENT: usize = 1;

/// Returns the fields behind the name, which itself may hold anything.
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(") ")?;
    Some(rest.split_whitespace().map(str::to_owned).collect())
}

/// Returns the processes below these, without them.
pub(super) fn descendants(roots: &[u32]) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    for pid in pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
        let parent = stat(pid).and_then(|fields| fields.get(PARENT)?.parse().ok());
        if let Some(parent) = parent {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut found: Vec<u32> = Vec::new();
    let mut pending = roots.to_vec();
    while let Some(pid) = pending.pop() {
        for child in children.remove(&pid).into_iter().flatten() {
            pending.push(child);
            if !roots.contains(&child) {
                found.push(child);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{cpu, descendants, peak_rss_mb, pss_mb, reset_peak, rss_mb};

    #[test]
    fn this_process_has_memory_and_a_parent() {
        let own = std::process::id();
        assert!(rss_mb(own).expect("it can be read") > 0.1);
        assert!(pss_mb(own) > 0.1);
        assert!(cpu(own).own >= 0.0);
        let parent = std::os::unix::process::parent_id();
        assert!(descendants(&[parent]).contains(&own));
    }

    #[test]
    fn a_peak_is_seen_after_it_is_over() {
        if !reset_peak() {
            return;
        }
        let before = rss_mb(std::process::id()).expect("it can be read");
        let large = std::hint::black_box(vec![1_u8; 20_000_000]);
        drop(large);
        let peak = peak_rss_mb().expect("it can be read");
        assert!(peak - before > 15.0, "{before} MB, then {peak} MB");
    }

    #[test]
    fn a_process_that_is_gone_has_nothing() {
        assert!(pss_mb(u32::MAX).abs() < f64::EPSILON);
        assert!(rss_mb(u32::MAX).is_err());
    }
}
