use serde_json::json;

use super::*;

#[test]
fn docker_says_what_it_can_enforce() {
    let info = json!({"MemoryLimit": true, "PidsLimit": true, "CpuCfsQuota": true, "NCPU": 2,
        "Driver": "overlay2", "DriverStatus": [["Backing Filesystem", "extfs"], ["x", "y"]],
        "SecurityOptions": ["name=seccomp,profile=default"]});
    let expected = Abilities {
        missing: [Limit::Disk].into(),
        processors: Some(2),
        rootless: false,
        storage: "overlay2 on extfs".to_owned(),
    };
    assert_eq!(Abilities::read(&info), expected);
    let weak = json!({"MemoryLimit": false, "PidsLimit": false, "CpuCfsQuota": false,
        "Driver": "overlay2", "DriverStatus": [["Backing Filesystem", "xfs"]],
        "SecurityOptions": ["name=rootless"]});
    let expected = Abilities {
        missing: [Limit::Cpu, Limit::Memory, Limit::Pids].into(),
        processors: None,
        rootless: true,
        storage: "overlay2 on xfs".to_owned(),
    };
    assert_eq!(Abilities::read(&weak), expected);
}

#[test]
fn podman_says_what_it_can_enforce() {
    let info = json!({"host": {"cpus": 2, "cgroupVersion": "v2", "security": {"rootless": false},
            "cgroupControllers": ["cpu", "memory", "pids"]},
        "store": {"graphDriverName": "overlay", "graphStatus": {"Backing Filesystem": "xfs"}}});
    let expected = Abilities {
        missing: BTreeSet::new(),
        processors: Some(2),
        rootless: false,
        storage: "overlay on xfs".to_owned(),
    };
    assert_eq!(Abilities::read(&info), expected);
    let rootless = json!({"host": {"cgroupVersion": "v2", "security": {"rootless": true},
            "cgroupControllers": ["memory", "pids"]},
        "store": {"graphDriverName": "vfs"}});
    assert_eq!(
        Abilities::read(&rootless).missing,
        [Limit::Cpu, Limit::Disk].into()
    );
    let old = json!({"host": {"cgroupVersion": "v1", "security": {"rootless": true},
            "cgroupControllers": ["cpu", "memory", "pids"]},
        "store": {"graphDriverName": "vfs"}});
    assert_eq!(Abilities::read(&old).missing.len(), 4);
}
