//! What an engine can enforce on this machine.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::classify::Limit;

/// What an engine says it can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Abilities {
    /// Limits that it cannot enforce here.
    pub(crate) missing: BTreeSet<Limit>,
    /// How many processors the machine has; a larger limit is none.
    pub(crate) processors: Option<u64>,
    /// Whether the engine runs without root, so that root inside is the user outside.
    pub(crate) rootless: bool,
    /// The storage driver and the filesystem under it.
    pub(crate) storage: String,
}

impl Abilities {
    /// Reads the engine's description of itself, as Docker and Podman write it.
    pub(crate) fn read(info: &Value) -> Self {
        if info.get("host").is_some() {
            Self::read_podman(info)
        } else {
            Self::read_docker(info)
        }
    }

    fn read_docker(info: &Value) -> Self {
        let lacks = |name: &str| info.get(name).and_then(Value::as_bool) == Some(false);
        let mut missing = BTreeSet::new();
        if lacks("MemoryLimit") {
            missing.insert(Limit::Memory);
        }
        if lacks("PidsLimit") {
            missing.insert(Limit::Pids);
        }
        if lacks("CpuCfsQuota") {
            missing.insert(Limit::Cpu);
        }
        let driver = info
            .get("Driver")
            .and_then(Value::as_str)
            .unwrap_or("unknown");
        let status = info.get("DriverStatus").and_then(Value::as_array);
        let backing = status.into_iter().flatten().find_map(|pair| {
            (pair.get(0)?.as_str()? == "Backing Filesystem").then(|| pair.get(1)?.as_str())?
        });
        if !can_limit_disk(driver, backing) {
            missing.insert(Limit::Disk);
        }
        let security = info.get("SecurityOptions").and_then(Value::as_array);
        let rootless = security
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .any(|option| option.contains("rootless"));
        Self {
            missing,
            processors: info.get("NCPU").and_then(Value::as_u64),
            rootless,
            storage: describe(driver, backing),
        }
    }

    fn read_podman(info: &Value) -> Self {
        let at = |path: &str| info.pointer(path);
        let rootless = at("/host/security/rootless").and_then(Value::as_bool) == Some(true);
        let v1 = at("/host/cgroupVersion").and_then(Value::as_str) == Some("v1");
        let controllers = at("/host/cgroupControllers").and_then(Value::as_array);
        let mut missing = BTreeSet::new();
        for (limit, name) in [
            (Limit::Cpu, "cpu"),
            (Limit::Memory, "memory"),
            (Limit::Pids, "pids"),
        ] {
            let absent = controllers.is_some_and(|all| {
                !all.iter()
                    .any(|controller| controller.as_str() == Some(name))
            });
            // Without root, version 1 of the kernel's groups cannot be used at all.
            if absent || (rootless && v1) {
                missing.insert(limit);
            }
        }
        let driver = at("/store/graphDriverName")
            .and_then(Value::as_str)
            .unwrap_or("unknown");
        let backing = at("/store/graphStatus/Backing Filesystem").and_then(Value::as_str);
        if rootless || !can_limit_disk(driver, backing) {
            missing.insert(Limit::Disk);
        }
        Self {
            missing,
            processors: at("/host/cpus").and_then(Value::as_u64),
            rootless,
            storage: describe(driver, backing),
        }
    }
}

/// Tells whether a storage driver may be able to bound a container's filesystem. Whether `overlay`
/// on XFS can depends on its mount options, which only a try shows.
fn can_limit_disk(driver: &str, backing: Option<&str>) -> bool {
    match driver {
        "overlay2" | "overlay" => backing == Some("xfs"),
        "btrfs" | "zfs" | "devicemapper" | "windowsfilter" => true,
        _ => false,
    }
}

fn describe(driver: &str, backing: Option<&str>) -> String {
    match backing {
        Some(backing) => format!("{driver} on {backing}"),
        None => driver.to_owned(),
    }
}

#[cfg(test)]
#[path = "limits_tests.rs"]
mod tests;
