//! What a container may do and how much, seen from inside.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, chown};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::site::{Kind, Site};
use crate::support::{Answer, EXOSHELL, Program};

/// Where a limit is told to those inside, by both versions of the kernel's control groups.
const LIMITS: [(&str, &str, &str, &str); 3] = [
    (
        "pids",
        "/sys/fs/cgroup/pids.max",
        "/sys/fs/cgroup/pids/pids.max",
        "256",
    ),
    (
        "memory",
        "/sys/fs/cgroup/memory.max",
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "536870912",
    ),
    (
        "cpu",
        "/sys/fs/cgroup/cpu.max",
        "/sys/fs/cgroup/cpu/cpu.cfs_quota_us",
        "50000",
    ),
];

fn unenforced(info: &Value) -> BTreeSet<&str> {
    let list = info["unenforced"].as_array().into_iter().flatten();
    list.filter_map(Value::as_str).collect()
}

#[track_caller]
fn status_is(site: &Site, expected: &[(&str, &str)]) {
    let answer = site.terminal("cat /proc/self/status");
    for (name, value) in expected {
        let line = format!("{name}:\t{value}\n");
        assert!(
            answer.output().contains(&line),
            "{line}: {}",
            answer.output()
        );
    }
}

#[test]
fn a_disk_limit_that_cannot_be_held_is_news_only_for_who_set_one() {
    for (settings, asked) in [(&[][..], false), (&[("container.disk_mb", "1024")], true)] {
        let site = Kind::Docker.site_with(settings);
        let answer = site.terminal("true");
        let info = site.json(["places", "info", "default", "--json"]);
        let named = unenforced(&info).contains("disk");
        let said = answer.hint().contains("disk");
        assert_eq!(said, asked && named, "{} {info}", answer.0);
        assert!(named, "the test engine holds disk limits: {info}");
    }
}

pub(super) fn every_limit_is_what_was_promised_or_named_as_unenforced(kind: Kind) {
    let site = kind.site_with(&[
        ("container.cpu", "0.5"),
        ("container.memory_mb", "512"),
        ("container.disk_mb", "1024"),
    ]);
    // CHOWN 0, DAC_OVERRIDE 1, FOWNER 3, SETGID 6, SETUID 7.
    let capabilities = "00000000000000cb";
    status_is(
        &site,
        &[
            ("CapEff", capabilities),
            ("CapBnd", capabilities),
            ("NoNewPrivs", "1"),
        ],
    );
    site.terminal("cat /proc/1/comm").printed("exoshell-init\n");

    let mounts = site.terminal("cat /proc/mounts").output().to_owned();
    for (target, kilobytes, flags) in [
        ("/tmp", 512 << 10, "nosuid"),
        ("/var/tmp", 256 << 10, "nosuid noexec"),
        ("/run", 64 << 10, "nosuid noexec"),
        ("/workspace", 10 << 20, "nosuid"),
        ("/home", 1 << 20, "nosuid"),
        ("/root", 1 << 20, "nosuid"),
    ] {
        let fields = mounts
            .lines()
            .map(|line| line.split(' ').collect::<Vec<_>>());
        let fields = fields.into_iter().find(|fields| fields[1] == target);
        let fields = fields.unwrap_or_else(|| panic!("no {target}: {mounts}"));
        assert_eq!(fields[2], "tmpfs", "{fields:?}");
        let options: BTreeSet<&str> = fields[3].split(',').collect();
        assert!(
            options.contains(format!("size={kilobytes}k").as_str()),
            "{fields:?}"
        );
        for flag in ["nosuid", "noexec"] {
            assert_eq!(options.contains(flag), flags.contains(flag), "{fields:?}");
        }
    }

    let info = site.json(["places", "info", "default", "--json"]);
    let unenforced = unenforced(&info);
    for (name, new, old, expected) in LIMITS {
        let answer = site.terminal(&format!("cat {new} 2>/dev/null || cat {old}"));
        let holds = answer.output().split_whitespace().next() == Some(expected);
        assert_ne!(
            holds,
            unenforced.contains(name),
            "{name}: {} {info}",
            answer.0
        );
    }
    let answer = site.terminal("df -Pk / | tail -n 1 | tr -s ' ' | cut -d' ' -f2");
    let size: u64 = answer.output().trim().parse().unwrap();
    assert_ne!(
        size <= 1 << 20,
        unenforced.contains("disk"),
        "{size} {info}"
    );

    // More processes than allowed are refused there, and nothing else suffers.
    if !unenforced.contains("pids") {
        let answer = site.terminal("for i in $(seq 300); do sleep 5 & done 2>&1; wait");
        assert!(
            answer.output().contains("Resource temporarily unavailable"),
            "{}",
            answer.0
        );
        site.terminal("echo fine").printed("fine\n");
    }
}

/// A user that this machine does not know.
const NOBODY: u32 = 54_321;

fn give(path: &Path, user: u32) {
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        give(&entry.path(), user);
    }
    std::os::unix::fs::lchown(path, Some(user), Some(user)).unwrap();
}

/// Runs the product as another user, who may talk to the engine.
#[track_caller]
fn as_nobody(site: &Site, program: &Path, arguments: &[&str]) -> Answer {
    let socket = site.engine().variables()[0].1.clone();
    let socket = socket.strip_prefix("unix://").unwrap().to_owned();
    let group = fs::metadata(socket).unwrap().gid().to_string();
    let mut command = Command::new("setpriv");
    command
        .args([
            "--reuid",
            &NOBODY.to_string(),
            "--regid",
            &NOBODY.to_string(),
        ])
        .args(["--groups", &group, "--inh-caps=-all"])
        .arg(program)
        .args(arguments);
    site.dress(&mut command);
    Answer::parse(&Program::start(command, b"").finish().out)
}

#[test]
fn files_in_a_mounted_workspace_belong_to_the_host_user() {
    let site = Kind::Docker.site_with(&[
        ("docker.run_as_host_user", "true"),
        ("docker.mount_cwd", "true"),
    ]);
    let program = site.root().join("exoshell");
    fs::copy(EXOSHELL, &program).unwrap();
    // Tests share the guest's file, so that user gets one of its own.
    fs::remove_dir_all(site.home.join("guest")).unwrap();
    for folder in [&site.home, &site.user, &site.work] {
        give(folder, NOBODY);
    }
    let command = "id -u; id -g; pwd; echo hi > made; cat /proc/self/status";
    let answer = as_nobody(&site, &program, &["run", "--json", "--task", "t", command]);
    assert_eq!(answer.code(), 0, "{}", answer.0);
    let expected = format!("{NOBODY}\n{NOBODY}\n/workspace\n");
    assert!(answer.output().starts_with(&expected), "{}", answer.0);
    // Nobody there can become somebody else.
    for line in ["CapEff:\t0000000000000000\n", "CapBnd:\t000000000000000b\n"] {
        assert!(
            answer.output().contains(line),
            "{line}: {}",
            answer.output()
        );
    }
    let made = fs::metadata(site.work.join("made")).unwrap();
    assert_eq!((made.uid(), made.gid(), made.len()), (NOBODY, NOBODY, 3));
    let removed = as_nobody(&site, &program, &["places", "rm", "--all", "--json"]);
    assert_eq!(removed.0["removed"][0], "t", "{}", removed.0);
    assert_eq!(site.containers(), [""; 0]);
    give(&site.home, 0);
    chown(&site.home, Some(0), Some(0)).unwrap();
}
