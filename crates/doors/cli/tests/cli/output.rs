//! Output: whole, bounded, readable.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::json;

use crate::support::{Answer, World, wait_until};

/// The limit of what a result shows, in characters, and what the sentence about it may add.
const LIMIT: usize = 50_000;
const ROOM: usize = 500;

fn status_kib(pid: u32, field: &str) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find(|line| line.starts_with(field))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

#[test]
fn o1_endless_output_is_bounded_counted_and_kept() {
    let world = World::new();
    world.terminal("true").printed("");
    let guest = world.guest_pid();
    let before = status_kib(guest, "VmHWM:").unwrap();
    let mut call = world.start_call(&json!({"command": "yes", "timeout": 3}));
    let mut host_peak = 0;
    while !call.has_ended() {
        host_peak = host_peak.max(status_kib(call.pid(), "VmHWM:").unwrap_or(0));
        std::thread::sleep(Duration::from_millis(20));
    }
    let answer = Answer::parse(&call.finish().out);
    assert_eq!(
        (answer.code(), answer.status()),
        (124, "timeout"),
        "it is not ended for being verbose"
    );
    assert!(answer.output().chars().count() <= LIMIT + ROOM);
    assert_eq!(answer.0["truncated"], true);
    let total = answer.0["output_chars"].as_u64().unwrap();
    assert!(total > 1_000_000, "{total}");
    let file = answer.0["output_file"].as_str().unwrap();
    let kept = fs::metadata(file).unwrap().len();
    assert!(
        kept == total || answer.0["output_file_note"].is_string(),
        "{kept} of {total}"
    );
    assert!(host_peak < 64 * 1024, "the host grew to {host_peak} KiB");
    let after = status_kib(guest, "VmHWM:").unwrap();
    assert!(
        after - before < 64 * 1024,
        "the guest grew by {} KiB",
        after - before
    );
}

#[test]
fn o3_the_first_and_the_last_line_are_in_what_is_shown() {
    let world = World::new();
    let answer = world.terminal("echo BANNER; seq 10000; echo LAST ERROR");
    assert!(answer.output().chars().count() <= LIMIT + ROOM);
    let short = answer.0["truncated"].as_bool().unwrap_or(false);
    assert!(!short, "48,912 characters fit");
    let answer = world.terminal("echo BANNER; seq 1000000 1020000; echo LAST ERROR");
    let output = answer.output();
    assert!(output.starts_with("BANNER\n") && output.ends_with("LAST ERROR\n"));
    assert_eq!(answer.0["truncated"], true);
    assert_eq!(answer.0["output_lines"], 20_003);
    assert_eq!(answer.0["output_chars"], 7 + 20_001 * 8 + 11);
    assert!(output.chars().count() <= LIMIT + ROOM);
    let file = fs::read_to_string(answer.0["output_file"].as_str().unwrap()).unwrap();
    assert_eq!(file.lines().count(), 20_003);
    // Head 40 %, tail 60 %, and a line between that says how much is missing.
    let gap = output
        .lines()
        .position(|line| line.parse::<u32>().is_err() && line != "BANNER")
        .unwrap();
    let head: usize = output.lines().take(gap).map(|line| line.len() + 1).sum();
    assert!((18_000..=21_000).contains(&head), "{head}");
}

#[test]
fn o4_bad_bytes_are_replaced_split_characters_are_whole_and_raw_bytes_are_kept() {
    let world = World::new();
    world
        .terminal("printf 'a\\xffb\\xb0\\xa1'")
        .printed("a\u{fffd}b\u{fffd}\u{fffd}");
    world
        .terminal("printf '\\xe6'; sleep 0.1; printf '\\xbc'; sleep 0.1; printf '\\xa2 \\xf0\\x9f'; sleep 0.1; printf '\\xa6\\x80'")
        .printed("漢 🦀");
    world.terminal("printf '\\xf0\\x9f'").printed("\u{fffd}");
    // `run` passes bytes on as they are.
    let ran = world.exoshell(["run", "printf 'a\\xff\\0b\\033[31m'"]);
    assert_eq!(ran.out, b"a\xff\0b\x1b[31m");
    let answer = world.terminal("for i in {1..40000}; do printf '\\xff\\r\\033[1mx\\n'; done");
    let raw = fs::read(answer.0["output_file"].as_str().unwrap()).unwrap();
    assert_eq!(raw, b"\xff\r\x1b[1mx\n".repeat(40_000));
}

#[test]
fn o5_only_what_a_person_would_see_is_shown() {
    let world = World::new();
    for (command, seen) in [
        ("printf 'a\\rb\\n'", "b\n"),
        ("printf 'Working\\rDone\\033[K\\n'", "Done\n"),
        ("printf 'ab\\bc\\n'", "ac\n"),
        ("printf 'dos\\r\\nline\\r\\n'", "dos\nline\n"),
        (
            "printf '\\033[31mred\\033[0m \\033]8;;http://x\\033\\\\link\\033]8;;\\033\\\\\\n'",
            "red link\n",
        ),
        (
            "printf '\\033]52;c;c2VjcmV0\\007x\\033[?25l\\033[?25h\\n'",
            "x\n",
        ),
        ("printf '\\033P1$r0m\\033\\\\x\\n'", "x\n"),
        ("for i in 1 2 3; do printf '\\r%d%%' $i; done; echo", "3%\n"),
        (
            "printf 'outer 1\\ninner 1\\033[A\\router 2\\n\\rinner 2\\n'",
            "outer 2\ninner 2\n",
        ),
        ("printf 'no newline'", "no newline"),
        ("printf '\\n\\nx  \\n\\n'", "\n\nx  \n\n"),
    ] {
        let answer = world.terminal(command);
        assert!(!answer.output().contains('\u{1b}'));
        answer.printed(seen);
    }
}

#[test]
fn stdout_and_stderr_are_in_order_in_a_call_and_apart_in_run() {
    let world = World::new();
    let command = "for i in 1 2 3 4 5 6 7 8 9; do echo o$i; echo e$i >&2; /bin/echo p$i; done";
    let expected = (1..=9)
        .map(|i| format!("o{i}\ne{i}\np{i}\n"))
        .collect::<Vec<_>>()
        .concat();
    for _ in 0..5 {
        world.terminal(command).printed(&expected);
    }
    let ran = world.exoshell(["run", command]);
    let out = (1..=9)
        .map(|i| format!("o{i}\np{i}\n"))
        .collect::<Vec<_>>()
        .concat();
    let err = (1..=9)
        .map(|i| format!("e{i}\n"))
        .collect::<Vec<_>>()
        .concat();
    assert_eq!((ran.text(), ran.talk()), (out, err));
}

#[test]
fn a_spill_file_is_private_complete_and_outside_of_the_workspace() {
    let world = World::new();
    world.terminal("umask 000; seq 100000").code();
    let answer = world.terminal("seq 100000 >&2");
    let file = answer.0["output_file"].as_str().unwrap();
    assert!(!file.starts_with(world.work.to_str().unwrap()));
    assert!(file.starts_with(world.home.to_str().unwrap()));
    assert_eq!(
        fs::metadata(file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let expected = (1..=100_000)
        .map(|i| format!("{i}\n"))
        .collect::<Vec<_>>()
        .concat();
    assert!(fs::read_to_string(file).unwrap() == expected);
    assert!(answer.0["output_file_note"].is_null());
    assert_eq!(fs::read_dir(&world.work).unwrap().count(), 0);
    // The place's end is its end.
    world.clean_up();
    assert!(!std::path::Path::new(file).exists());
}

#[test]
fn a_spill_limit_is_kept_and_said() {
    let world = World::new().with_config("[terminal]\nspill_limit_mb = 1\n");
    let answer = world.terminal("head -c 3000000 /dev/zero | tr '\\0' x");
    assert_eq!(answer.code(), 0);
    let kept = fs::metadata(answer.0["output_file"].as_str().unwrap())
        .unwrap()
        .len();
    assert!((1_000_000..=1 << 20).contains(&kept), "{kept}");
    assert!(
        answer.0["output_file_note"]
            .as_str()
            .unwrap()
            .contains("of 3000000 bytes"),
        "{}",
        answer.0["output_file_note"]
    );
}

/// A small filesystem for as long as this is held.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    fn mount(path: &std::path::Path, options: &str) -> Self {
        fs::create_dir_all(path).unwrap();
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(path)
            .status()
            .unwrap();
        assert!(status.success(), "this test needs root");
        Self(path.to_owned())
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_full_disk_while_spilling_does_not_fail_the_command() {
    let world = World::new();
    // The guest is running before the disk is made small: only the spill meets its end.
    world.terminal("cd /usr").printed("");
    let run_dir = fs::read_dir(world.home.join("run"))
        .unwrap()
        .flatten()
        .find(|entry| entry.path().is_dir())
        .unwrap();
    let disk = SmallDisk::mount(&run_dir.path().join("spill"), "size=1m,mode=700");
    let answer = world.terminal("head -c 4000000 /dev/zero | tr '\\0' x; echo; echo END; exit 4");
    assert_eq!(
        (answer.code(), answer.error()),
        (4, ""),
        "{}",
        answer.error()
    );
    assert!(answer.output().ends_with("\nEND\n"));
    assert_eq!(answer.0["truncated"], true);
    let note = answer.0["output_file_note"].as_str().unwrap();
    assert!(
        note.contains("No space left") && note.contains("of 4000005 bytes"),
        "{note}"
    );
    world.terminal("pwd").printed("/usr\n");
    drop(disk);
}

#[test]
fn a_home_on_a_full_disk_is_a_clear_error_or_works() {
    let world = World::bare("exo");
    let disk = SmallDisk::mount(&world.home, "size=64k,mode=700");
    fs::write(world.home.join("filler"), vec![b'x'; 60 * 1024]).unwrap();
    let ran = world.exoshell(["run", "echo hi"]);
    assert_eq!(ran.code(), 125, "{}", ran.talk());
    assert!(
        ran.talk().contains("No space left") || ran.talk().contains("space"),
        "{}",
        ran.talk()
    );
    assert!(ran.talk().contains("hint:"), "{}", ran.talk());
    let left: Vec<_> = walk(&world.home);
    assert_eq!(
        left.iter().filter(|name| name.contains("guest/")).count(),
        0,
        "{left:?}"
    );
    fs::remove_file(world.home.join("filler")).unwrap();
    drop(disk);
    fs::remove_dir(&world.home).unwrap();
}

/// Lists all files below a folder.
fn walk(dir: &std::path::Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut pending = vec![dir.to_owned()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir).unwrap().flatten() {
            if entry.path().is_dir() {
                pending.push(entry.path());
            } else {
                found.push(entry.path().display().to_string());
            }
        }
    }
    found
}

#[test]
fn run_streams_before_the_command_ends() {
    use std::io::{BufRead as _, BufReader};
    let world = World::new();
    world.terminal("true").printed("");
    let mut command = world.command([
        "run",
        "echo first; while [ ! -e go ]; do sleep 0.02; done; echo second",
    ]);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "first");
    assert!(child.try_wait().unwrap().is_none());
    fs::write(world.work.join("go"), "").unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "second");
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_reader_that_leaves_does_not_hang_anything() {
    let world = World::new();
    for command in ["seq 1000000", "yes | head -c 100000000"] {
        let mut shell = Command::new("bash");
        shell.args([
            "-c",
            "\"$0\" run \"$1\" | head -1; exit ${PIPESTATUS[1]}",
            crate::support::EXOSHELL,
            command,
        ]);
        world.dress(&mut shell);
        let ran = crate::support::Program::start(shell, b"").finish_within(Duration::from_secs(30));
        assert_eq!(ran.code(), 0, "{}", ran.talk());
        assert!(!ran.talk().contains("panicked"), "{}", ran.talk());
        assert_eq!(ran.text().lines().count(), 1);
    }
    wait_until(Duration::from_secs(10), "`yes` ends", || {
        world
            .processes()
            .iter()
            .all(|process| process.name != "yes")
    });
    for arguments in [
        &["--help"][..],
        &["schema"],
        &["config", "show"],
        &["completions", "bash"],
    ] {
        let mut shell = Command::new("bash");
        shell.args([
            "-c",
            "\"$0\" \"$@\" | true; exit ${PIPESTATUS[0]}",
            crate::support::EXOSHELL,
        ]);
        shell.args(arguments);
        world.dress(&mut shell);
        let ran = crate::support::Program::start(shell, b"").finish();
        assert!(
            !ran.talk().contains("panicked"),
            "{arguments:?}: {}",
            ran.talk()
        );
    }
}
