use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use proptest::prelude::*;
use serde_json::Value;
use tempfile::TempDir;

use super::*;
use crate::redact::Secrets;

const HOME: &str = "EXOSHELL_TEST_AUDIT_HOME";
const COUNT: &str = "EXOSHELL_TEST_AUDIT_COUNT";

fn audit(home: &Path, limits: Limits) -> Audit {
    Audit::new(home, limits)
}

fn attempt(text: &str) -> Attempt<'_> {
    Attempt::new("t", "local", "here", AttemptKind::Command, text)
}

fn done() -> Outcome {
    Outcome {
        exit_code: Some(0),
        bytes_out: Some(3),
        ..Outcome::new(Ended::Done)
    }
}

fn run(audit: &Audit, count: usize) {
    for at in 0..count {
        let ticket = audit
            .start(&attempt(&format!("echo {at}")), Redactor::default())
            .unwrap();
        ticket.end(&done()).unwrap();
    }
}

fn records(audit: &Audit) -> Vec<Value> {
    audit
        .show(Filter::default())
        .unwrap()
        .map(Result::unwrap)
        .collect()
}

/// Starts a process that makes attempts; see `makes_attempts_for_other_tests`.
fn process(home: &Path, count: usize) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "--ignored",
            "--nocapture",
            "audit::tests::makes_attempts_for_other_tests",
        ])
        .env(HOME, home)
        .env(COUNT, count.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
#[ignore = "the others start it as a process of its own"]
fn makes_attempts_for_other_tests() {
    let home = std::env::var_os(HOME).expect("the folder");
    let count: usize = std::env::var(COUNT).unwrap().parse().unwrap();
    let audit = audit(Path::new(&home), small());
    for at in 0..count {
        let text = format!("echo {at} {}", "x".repeat(at % 700));
        let ticket = audit.start(&attempt(&text), Redactor::default()).unwrap();
        ticket.end(&done()).unwrap();
    }
}

/// Small files, none of them removed.
fn small() -> Limits {
    Limits {
        file_bytes: 64 * 1024,
        old_files: 10_000,
        ..Limits::default()
    }
}

#[test]
fn an_attempt_writes_its_start_and_its_end() {
    let home = TempDir::new().unwrap();
    let audit = audit(home.path(), Limits::default());
    let mut what = attempt("rm -rf build");
    what.verdict = "ask";
    what.category = Some("delete");
    what.rule = Some("rm-recursive");
    what.approval = Approval::Once;
    what.approver = Some("person at the terminal");
    let ticket = audit.start(&what, Redactor::default()).unwrap();
    let outcome = Outcome {
        signal: Some(9),
        error_kind: Some("place_lost".to_owned()),
        duration: Some(Duration::from_millis(12)),
        ..Outcome::new(Ended::Failed)
    };
    ticket.end(&outcome).unwrap();
    let [start, end] = records(&audit).try_into().unwrap();
    let expected = [
        ("record", "start"),
        ("task", "t"),
        ("backend", "local"),
        ("place", "here"),
        ("kind", "command"),
        ("text", "rm -rf build"),
        ("verdict", "ask"),
        ("category", "delete"),
        ("rule", "rm-recursive"),
        ("approval", "once"),
        ("approver", "person at the terminal"),
    ];
    for (name, value) in expected {
        assert_eq!(start[name], value, "{start}");
    }
    assert_eq!(start["seq"], 1);
    assert_eq!(end["start"], 1);
    assert_eq!(
        (&end["signal"], &end["duration_us"]),
        (&9.into(), &12_000.into())
    );
    assert_eq!(
        (&end["ended"], &end["error_kind"]),
        (&"failed".into(), &"place_lost".into())
    );
    assert_eq!(end["prev"], start["hash"]);
    assert!(audit.verify().unwrap().intact);
}

#[test]
fn a_ticket_that_is_dropped_ends_as_lost() {
    let home = TempDir::new().unwrap();
    let audit = audit(home.path(), Limits::default());
    drop(audit.start(&attempt("x"), Redactor::default()).unwrap());
    assert_eq!(records(&audit)[1]["ended"], "lost");
}

#[test]
fn nothing_is_touched_before_the_first_record() {
    let home = TempDir::new().unwrap();
    let audit = audit(home.path(), Limits::default());
    let report = audit.verify().unwrap();
    assert!(report.intact && report.records == 0);
    assert_eq!(records(&audit).len(), 0);
    assert!(!audit.folder().exists());
}

#[test]
fn only_the_user_can_read_it() {
    let home = TempDir::new().unwrap();
    let audit = audit(home.path(), Limits::default());
    fs::create_dir(audit.folder()).unwrap();
    fs::set_permissions(audit.folder(), fs::Permissions::from_mode(0o755)).unwrap();
    run(&audit, 1);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(audit.folder()), 0o700);
    for entry in fs::read_dir(audit.folder()).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
    }
}

#[test]
fn secrets_are_in_no_field_and_long_texts_are_cut() {
    let home = TempDir::new().unwrap();
    let redactor = Redactor::new(&Secrets::new().value("P", "open sesame"));
    let audit = Audit::new(home.path(), Limits::default());
    let text = format!("login 'open sesame' {}", "é".repeat(100_000));
    let mut what = attempt(&text);
    what.cwd = Some("/home/open sesame");
    what.task = "open sesame";
    what.approver = Some("open sesame");
    let ticket = audit.start(&what, redactor).unwrap();
    let outcome = Outcome {
        error_kind: Some("open sesame".to_owned()),
        ..done()
    };
    ticket.end(&outcome).unwrap();
    for entry in fs::read_dir(audit.folder()).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        assert!(!text.contains("open sesame") && text.len() < 8192, "{text}");
    }
    assert_eq!(records(&audit)[0]["text_bytes"], text.len());
}

#[test]
fn an_attempt_whose_start_cannot_be_written_is_refused() {
    let home = TempDir::new().unwrap();
    let audit = audit(home.path(), Limits::default());
    fs::write(audit.folder(), "not a folder").unwrap();
    let error = audit.start(&attempt("x"), Redactor::default()).unwrap_err();
    assert!(error.to_string().contains("cannot be written"), "{error}");
    assert_eq!(crate::RuntimeError::from(error).exit_code(), 125);
}

#[test]
fn a_full_disk_refuses_and_leaves_a_valid_chain() {
    let home = TempDir::new().unwrap();
    // A limit on the size of files stops a write in the middle, just as a full disk does.
    let status = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 16; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "--ignored",
            "audit::tests::makes_attempts_for_other_tests",
        ])
        .env(HOME, home.path())
        .env(COUNT, "5000")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(
        status.code().is_some_and(|code| code != 0),
        "it ended by itself, and the write failed: {status}"
    );
    let audit = audit(home.path(), small());
    let before = audit.verify().unwrap();
    assert!(before.intact && before.records > 4, "{before:?}");
    run(&audit, 3);
    let after = audit.verify().unwrap();
    assert!(after.intact && after.last >= before.last + 6, "{after:?}");
}

#[test]
fn twenty_processes_write_one_chain() {
    let home = TempDir::new().unwrap();
    let children: Vec<Child> = (0..20).map(|_| process(home.path(), 50)).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let audit = audit(home.path(), small());
    let report = audit.verify().unwrap();
    assert!(report.intact && report.files > 1, "{report:?}");
    let mut ends: BTreeMap<u64, u32> = BTreeMap::new();
    let mut starts = 0;
    for record in records(&audit) {
        match record["record"].as_str() {
            Some("start") => starts += 1,
            Some("end") => *ends.entry(record["start"].as_u64().unwrap()).or_default() += 1,
            _ => {}
        }
    }
    assert_eq!(starts, 1000);
    assert!(ends.len() == 1000 && ends.values().all(|count| *count == 1));
}

#[test]
fn threads_share_one_audit() {
    let home = TempDir::new().unwrap();
    let audit = audit(home.path(), small());
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| run(&audit, 20));
        }
    });
    let report = audit.verify().unwrap();
    assert!(report.intact && report.records >= 320, "{report:?}");
}

#[test]
fn processes_killed_while_they_write_leave_a_valid_chain() {
    let home = TempDir::new().unwrap();
    let audit = audit(home.path(), small());
    run(&audit, 1);
    let mut last = 0;
    for round in 0..8 {
        let mut children: Vec<Child> = (0..3).map(|_| process(home.path(), 1_000_000)).collect();
        // All of them are in full swing when the chain has grown by some hundred records.
        while last_number(&audit) < last + 100 + round * 37 {
            thread::sleep(Duration::from_millis(1));
        }
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        run(&audit, 1);
        last = last_number(&audit);
    }
    let report = audit.verify().unwrap();
    assert!(report.intact && report.last == last, "{report:?}");
}

fn last_number(audit: &Audit) -> u64 {
    match head::read(audit.folder()).unwrap() {
        head::Head::At(link) => link.number,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_torn_line_is_kept_aside_and_the_chain_goes_on_with_a_note() {
    let home = TempDir::new().unwrap();
    let audit = audit(home.path(), Limits::default());
    run(&audit, 2);
    let path = audit.folder().join(files::CURRENT);
    let torn = "{\"seq\":5,\"time\":\"2024";
    fs::OpenOptions::new()
        .append(true)
        .open(&path)
        .unwrap()
        .write_all(torn.as_bytes())
        .unwrap();
    let report = audit.verify().unwrap();
    assert!(
        report.intact && report.unfinished == torn.len(),
        "{report:?}"
    );
    run(&audit, 1);
    let report = audit.verify().unwrap();
    assert!(
        report.intact && report.torn == 1 && report.records == 7,
        "{report:?}"
    );
    let kept = fs::read_dir(audit.folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .find(|path| {
            path.file_name()
                .unwrap()
                .to_string_lossy()
                .starts_with("torn-")
        })
        .expect("the torn line");
    assert_eq!(fs::read_to_string(kept).unwrap(), torn);
}

#[test]
fn a_process_killed_before_it_wrote_the_head_breaks_nothing() {
    let home = TempDir::new().unwrap();
    let audit = audit(home.path(), Limits::default());
    run(&audit, 1);
    let head = fs::read(audit.folder().join("head")).unwrap();
    run(&audit, 1);
    fs::write(audit.folder().join("head"), head).unwrap();
    assert!(audit.verify().unwrap().intact);
    run(&self::audit(home.path(), Limits::default()), 1);
    let report = audit.verify().unwrap();
    assert!(report.intact && report.records == 6, "{report:?}");
}

#[test]
fn a_full_file_is_put_aside_and_the_oldest_are_removed() {
    let home = TempDir::new().unwrap();
    let limits = Limits {
        file_bytes: 4096,
        old_files: 3,
        ..Limits::default()
    };
    let audit = audit(home.path(), limits);
    run(&audit, 60);
    let report = audit.verify().unwrap();
    assert!(
        report.intact && report.files == 4 && report.first > 1,
        "{report:?}"
    );
    let oldest = files::old(audit.folder()).unwrap().remove(0).1;
    fs::remove_file(oldest).unwrap();
    let fault = audit
        .verify()
        .unwrap()
        .fault
        .expect("a missing file is a fault");
    assert_eq!(fault.flaw, Flaw::Removed);
}

#[test]
fn a_process_killed_between_two_files_breaks_nothing() {
    let home = TempDir::new().unwrap();
    let audit = audit(home.path(), Limits::default());
    run(&audit, 2);
    let current = audit.folder().join(files::CURRENT);
    fs::rename(&current, audit.folder().join(files::old_name(1))).unwrap();
    run(&audit, 2);
    let report = audit.verify().unwrap();
    assert!(
        report.intact && report.files == 2 && report.records == 9,
        "{report:?}"
    );
}

#[test]
fn a_file_that_was_removed_is_noticed_even_after_further_records() {
    let home = TempDir::new().unwrap();
    let audit = audit(home.path(), Limits::default());
    run(&audit, 2);
    fs::remove_file(audit.folder().join(files::CURRENT)).unwrap();
    assert_eq!(audit.verify().unwrap().fault.unwrap().flaw, Flaw::Truncated);
    run(&audit, 2);
    assert_eq!(audit.verify().unwrap().fault.unwrap().flaw, Flaw::Removed);
}

#[test]
fn a_head_that_was_removed_is_noticed_even_after_further_records() {
    let home = TempDir::new().unwrap();
    run(&audit(home.path(), Limits::default()), 2);
    let audit = audit(home.path(), Limits::default());
    fs::remove_file(audit.folder().join("head")).unwrap();
    assert!(!audit.verify().unwrap().intact);
    run(&audit, 2);
    assert!(!audit.verify().unwrap().intact);
}

/// A chain over several files, and its lines.
struct Chain {
    home: TempDir,
    lines: Vec<(std::path::PathBuf, usize)>,
}

fn chain() -> Chain {
    let home = TempDir::new().unwrap();
    let limits = Limits {
        file_bytes: 3000,
        ..Limits::default()
    };
    let audit = audit(home.path(), limits);
    run(&audit, 12);
    let mut lines = Vec::new();
    let old = files::old(audit.folder())
        .unwrap()
        .into_iter()
        .map(|(_, path)| path);
    for path in old.chain([audit.folder().join(files::CURRENT)]) {
        let count = fs::read_to_string(&path).unwrap().lines().count();
        lines.extend((0..count).map(|line| (path.clone(), line)));
    }
    Chain { home, lines }
}

impl Chain {
    /// Changes the lines of a file, checks, and puts the file back. More records must not hide it.
    fn flaw(&self, path: &Path, change: impl FnOnce(&mut Vec<Vec<u8>>)) -> Option<Flaw> {
        let whole = fs::read(path).unwrap();
        let mut lines: Vec<Vec<u8>> = whole
            .split_inclusive(|byte| *byte == b'\n')
            .map(<[u8]>::to_vec)
            .collect();
        change(&mut lines);
        fs::write(path, lines.concat()).unwrap();
        let report = audit(self.home.path(), Limits::default()).verify().unwrap();
        assert_eq!(report.intact, report.fault.is_none());
        let copy = TempDir::new().unwrap();
        let folder = copy.path().join(FOLDER);
        fs::create_dir(&folder).unwrap();
        for entry in fs::read_dir(path.parent().unwrap()).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), folder.join(entry.file_name())).unwrap();
        }
        fs::write(path, whole).unwrap();
        let later = audit(copy.path(), Limits::default());
        run(&later, 1);
        let found = later.verify().unwrap().fault.is_some();
        assert_eq!(
            found,
            report.fault.is_some(),
            "further records change the finding"
        );
        report.fault.map(|fault| fault.flaw)
    }
}

#[test]
fn every_line_that_is_changed_removed_or_swapped_is_found() {
    let chain = chain();
    assert!(
        audit(chain.home.path(), Limits::default())
            .verify()
            .unwrap()
            .files
            > 2
    );
    let last = chain.lines.len() - 1;
    for (at, (path, line)) in chain.lines.iter().enumerate() {
        let removed = chain.flaw(path, |lines| drop(lines.remove(*line)));
        let expected = if at == last {
            Flaw::Truncated
        } else {
            Flaw::Removed
        };
        assert_eq!(removed, Some(expected), "record {at} removed");
        let twice = chain.flaw(path, |lines| lines.insert(*line, lines[*line].clone()));
        assert_eq!(twice, Some(Flaw::Reordered), "record {at} twice");
        let count = chain
            .lines
            .iter()
            .filter(|(other, _)| other == path)
            .count();
        if line + 1 < count {
            let swapped = chain.flaw(path, |lines| lines.swap(*line, line + 1));
            assert_eq!(swapped, Some(Flaw::Reordered), "record {at} swapped");
        }
    }
    // The last file without its last lines.
    let (path, _) = &chain.lines[last];
    assert_eq!(
        chain.flaw(path, |lines| lines.truncate(1)),
        Some(Flaw::Truncated)
    );
    assert_eq!(chain.flaw(path, Vec::clear), Some(Flaw::Truncated));
    assert_eq!(chain.flaw(path, |_| ()), None);
}

#[test]
fn any_changed_byte_is_found() {
    let chain = chain();
    let strategy = (0..chain.lines.len(), 0..600_usize, 1..=255_u8);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(150));
    runner
        .run(&strategy, |(at, byte, flip)| {
            let (path, line) = &chain.lines[at];
            let flaw = chain.flaw(path, |lines| {
                let line = &mut lines[*line];
                let length = line.len();
                line[byte % length] ^= flip;
            });
            prop_assert!(flaw.is_some(), "record {} byte {} ^ {}", at, byte, flip);
            Ok(())
        })
        .unwrap();
}

#[test]
fn a_rewritten_record_with_a_right_hash_of_its_own_is_found() {
    let chain = chain();
    let (path, line) = &chain.lines[2];
    let flaw = chain.flaw(path, |lines| {
        let text = String::from_utf8(lines[*line].clone())
            .unwrap()
            .replace("echo", "ohce");
        let body = text.split(",\"hash\":").next().unwrap();
        let hash = record::hex(&sha2::Digest::finalize(sha2::Digest::chain_update(
            <sha2::Sha256 as sha2::Digest>::new(),
            body,
        )));
        lines[*line] = format!("{body},\"hash\":\"{hash}\"}}\n").into_bytes();
    });
    assert_eq!(flaw, Some(Flaw::Changed));
}

#[test]
fn records_can_be_chosen_by_task_and_from_the_end() {
    let home = TempDir::new().unwrap();
    let audit = audit(home.path(), Limits::default());
    for task in ["a", "b", "a"] {
        let what = Attempt {
            task,
            ..attempt("x")
        };
        audit
            .start(&what, Redactor::default())
            .unwrap()
            .end(&done())
            .unwrap();
    }
    let count = |task: Option<&str>, tail| {
        let filter = Filter {
            task: task.map(str::to_owned),
            tail,
        };
        audit.show(filter).unwrap().count()
    };
    assert_eq!(count(None, None), 6);
    assert_eq!(count(Some("a"), None), 4);
    assert_eq!(count(Some("a"), Some(3)), 3);
    assert_eq!(count(None, Some(0)), 0);
}
