use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;

use super::super::choices::LogLevel;
use super::super::resolved::Resolved;
use super::super::testing::Home;
use super::*;

#[test]
fn every_variable_sets_its_key() {
    let pairs = [
        ("TERMINAL_ENV", "local"),
        ("TERMINAL_CWD", "/c"),
        ("TERMINAL_TIMEOUT", " 1.5 "),
        ("TERMINAL_MAX_FOREGROUND_TIMEOUT", "7"),
        ("TERMINAL_LIFETIME_SECONDS", "8"),
        ("TERMINAL_DISK_WARNING_GB", "9"),
        ("TERMINAL_SANDBOX_DIR", "~/s"),
        ("EXOSHELL_BATCH", "YES"),
        ("EXOSHELL_GUEST_DIR", "guests"),
        ("EXOSHELL_LOG", "DEBUG"),
        ("HOME", "/home/ada"),
    ];
    let resolved = Home::new().load(&pairs).unwrap();
    assert_eq!(resolved.terminal.cwd.as_deref(), Some(Path::new("/c")));
    assert_eq!(resolved.terminal.timeout, Duration::from_millis(1500));
    assert_eq!(resolved.terminal.max_timeout, Duration::from_secs(7));
    assert_eq!(resolved.places.lifetime, Duration::from_secs(8));
    assert_eq!(resolved.places.disk_warning_gb, 9);
    assert_eq!(
        resolved.places.sandbox_dir.as_deref(),
        Some(Path::new("/home/ada/s"))
    );
    assert!(resolved.places.batch);
    assert_eq!(
        resolved.places.guest_dir.as_deref(),
        Some(Path::new("/srv/dir/guests"))
    );
    assert_eq!(resolved.log.level, LogLevel::Debug);
    for key in keys::all() {
        let expected = key
            .variable
            .map_or("default".to_owned(), |name| format!("environment {name}"));
        assert_eq!(
            resolved.source(key.name).to_string(),
            expected,
            "{}",
            key.name
        );
    }
}

#[test]
fn an_empty_variable_is_as_good_as_none() {
    let pairs: Vec<_> = keys::all()
        .filter_map(|key| Some((key.variable?, "")))
        .collect();
    let home = Home::new();
    assert_eq!(
        home.load(&pairs).unwrap(),
        Resolved::new(home.folder.path())
    );
}

#[test]
fn switches_are_read_in_the_ways_people_write_them() {
    for (text, expected) in [
        ("true", true),
        ("1", true),
        ("Yes", true),
        ("ON", true),
        ("false", false),
        ("0", false),
        ("no", false),
        ("Off", false),
    ] {
        assert_eq!(
            Home::new()
                .load(&[("EXOSHELL_BATCH", text)])
                .unwrap()
                .places
                .batch,
            expected,
            "{text}"
        );
    }
}

#[test]
fn a_variable_that_does_not_parse_is_named_with_its_value_and_what_it_takes() {
    let cases = [
        (
            "EXOSHELL_BATCH",
            "maybe",
            "environment variable `EXOSHELL_BATCH` is `maybe`, it takes `true` or `false`",
        ),
        (
            "TERMINAL_ENV",
            "docker",
            "environment variable `TERMINAL_ENV` is `docker`, it takes `local`",
        ),
        (
            "TERMINAL_TIMEOUT",
            "1m\n",
            "environment variable `TERMINAL_TIMEOUT` is `1m\\n`, it takes a number of seconds from 0.001 to 315360000 (10 years)",
        ),
        (
            "TERMINAL_DISK_WARNING_GB",
            "-1",
            "environment variable `TERMINAL_DISK_WARNING_GB` is `-1`, it takes a whole number from 0 to 1000000",
        ),
    ];
    for (name, value, expected) in cases {
        let error = Home::new().load(&[(name, value)]).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.hint(), format!("change `{name}`, or unset it"));
    }
}

#[test]
fn a_long_bad_value_is_cut() {
    let text = Home::new()
        .load(&[("EXOSHELL_LOG", &"x".repeat(5000))])
        .unwrap_err()
        .to_string();
    assert!(text.contains(&format!("`{}…`", "x".repeat(80))), "{text}");
}

#[cfg(unix)]
#[test]
fn a_number_that_is_not_utf8_is_an_error() {
    use std::os::unix::ffi::OsStrExt as _;
    let value = std::ffi::OsStr::from_bytes(b"6\xff").to_owned();
    let environment =
        Environment::from_pairs([("HOME", "/none".into()), ("TERMINAL_TIMEOUT", value)]);
    let text = Resolved::load(&environment, Config::default())
        .unwrap_err()
        .to_string();
    assert!(
        text.starts_with("environment variable `TERMINAL_TIMEOUT` is `6\u{fffd}`, it takes "),
        "{text}"
    );
}

#[test]
fn variables_of_backends_that_are_not_in_use_are_not_read() {
    let pairs = [
        ("TERMINAL_SSH_PORT", "many"),
        ("TERMINAL_CONTAINER_CPU", "x"),
        ("TERMINAL_DOCKER_VOLUMES", "{"),
        ("EXOSHELL_NEW", "?"),
    ];
    let home = Home::new();
    assert_eq!(
        home.load(&pairs).unwrap(),
        Resolved::new(home.folder.path())
    );
}

proptest! {
    #[test]
    fn no_value_of_a_variable_makes_loading_panic(index in 0..keys::all().count(), value in "\\PC{0,20}|-?[0-9.e]{1,12}") {
        let Some(name) = keys::all().nth(index).unwrap().variable else { return Ok(()) };
        let environment = Environment::from_pairs([("HOME", "/none"), (name, &value)]).in_directory("/");
        if let Err(error) = Resolved::load(&environment, Config::default()) {
            prop_assert!(error.to_string().contains(name), "{}", error);
        }
    }

    #[test]
    fn a_time_in_range_is_taken_exactly_to_the_millisecond(millis in 1u64..=315_360_000_000) {
        let text = format!("{}.{:03}", millis / 1000, millis % 1000);
        let resolved = Resolved::load(&Environment::from_pairs([("HOME", "/none"), ("TERMINAL_TIMEOUT", &text)]), Config::default());
        let timeout = resolved.unwrap().terminal.timeout;
        prop_assert!(timeout.abs_diff(Duration::from_millis(millis)) < Duration::from_micros(1), "{:?}", timeout);
    }
}
