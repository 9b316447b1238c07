use std::sync::atomic::{AtomicUsize, Ordering};

use super::{Record, Records, check_task, file_name, now};

fn record(task: &str) -> Record {
    Record {
        task: task.to_owned(),
        label: "local".to_owned(),
        backend: "local".to_owned(),
        place: super::PlaceSpec::Local,
        id: None,
        engine: None,
        image: None,
        unenforced: Vec::new(),
        created: now(),
        directory: "/".into(),
        own_directory: false,
        incarnation: None,
        described: None,
        left_in: None,
        untold: Vec::new(),
    }
}

#[test]
fn a_note_waits_for_the_first_who_takes_it() {
    let home = tempfile::tempdir().unwrap();
    let records = Records::new(home.path());
    let make = || Ok(record("t"));
    records.get_or_create("t", "local", make).unwrap();
    let note = || vec!["replaced".to_owned()];
    for _ in 0..2 {
        let keep = |record: &mut Record| record.keep_notes(note());
        records.update("t", "local", keep).unwrap();
    }
    let later = Records::new(home.path());
    assert_eq!(later.take_notes("t", "local"), note());
    assert_eq!(later.take_notes("t", "local"), Vec::<String>::new());
    assert_eq!(later.take_notes("nobody", "local"), Vec::<String>::new());
}

#[test]
fn many_first_callers_make_one_record() {
    let home = tempfile::tempdir().unwrap();
    let made = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let records = Records::new(home.path());
                records
                    .get_or_create("t", "local", || {
                        made.fetch_add(1, Ordering::SeqCst);
                        Ok(record("t"))
                    })
                    .unwrap();
            });
        }
    });
    assert_eq!(made.load(Ordering::SeqCst), 1);
}

#[test]
fn names_that_look_alike_get_different_files() {
    assert_ne!(file_name("a/b"), file_name("a_b"));
    assert_ne!(file_name(&"x".repeat(50)), file_name(&"x".repeat(51)));
    assert!(!file_name("../../etc/passwd").contains('/'));
}

#[test]
fn bad_task_names_are_refused() {
    assert!(check_task("").is_err());
    assert!(check_task("a\nb").is_err());
    assert!(check_task(&"x".repeat(257)).is_err());
    assert!(check_task("pull-request #7 / ä").is_ok());
}

#[test]
fn a_damaged_record_is_replaced() {
    let home = tempfile::tempdir().unwrap();
    let records = Records::new(home.path());
    records
        .get_or_create("t", "local", || Ok(record("t")))
        .unwrap();
    std::fs::write(records.path("t", "local"), b"{ half").unwrap();
    assert!(records.list().is_empty());
    let (_, created) = records
        .get_or_create("t", "local", || Ok(record("t")))
        .unwrap();
    assert!(created);
}

#[test]
fn only_the_record_of_a_place_that_never_was_is_taken_back() {
    let home = tempfile::tempdir().unwrap();
    let records = Records::new(home.path());
    for task in ["unused", "used", "described"] {
        let made = records.get_or_create(task, "local", || Ok(record(task)));
        assert!(made.unwrap().1);
    }
    let change = |task: &str, change: fn(&mut Record)| {
        records.update(task, "local", change).unwrap();
    };
    change("used", |record| record.incarnation = Some("i".to_owned()));
    change("described", |record| {
        record.described = Some("i".to_owned());
    });
    for task in ["unused", "used", "described", "never made"] {
        records.remove_unused(task, "local").unwrap();
    }
    let left: Vec<String> = records.list().into_iter().map(|r| r.task).collect();
    assert_eq!(left, ["described", "used"]);
}
