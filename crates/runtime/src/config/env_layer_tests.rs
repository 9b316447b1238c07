use std::path::Path;
use std::time::Duration;

use proptest::prelude::*;

use super::super::choices::{Backend, LogLevel};
use super::super::places::{Container, Docker, Ssh};
use super::super::resolved::Resolved;
use super::super::testing::Home;
use super::*;

/// Checks the settings of backends beyond this machine.
fn assert_places(resolved: &Resolved) {
    let expected = Container {
        cpu: 0.5,
        memory_mb: 10,
        disk_mb: 11,
        persistent: true,
    };
    assert_eq!(resolved.container, expected);
    let expected = Docker {
        image: Some("debian:12".to_owned()),
        container: None,
        program: Some("/home/ada/bin/docker".into()),
        network: false,
        volumes: vec!["/a:/b:ro".to_owned()],
        env: [("A".to_owned(), "a b".to_owned())].into(),
        forward_env: vec!["B".to_owned(), "C".to_owned()],
        run_as_host_user: true,
        mount_cwd: true,
        extra_args: vec!["--init".to_owned()],
        persist: false,
        reaper: false,
    };
    assert_eq!(resolved.docker, expected);
    let expected = Ssh {
        host: Some("build.example".to_owned()),
        user: Some("ada".to_owned()),
        port: 2222,
        key: Some("/home/ada/.ssh/id".into()),
        options: Vec::new(),
    };
    assert_eq!(resolved.ssh, expected);
}

#[test]
fn every_variable_sets_its_key() {
    let pairs = [
        ("TERMINAL_ENV", "Docker"),
        ("TERMINAL_CWD", "/c"),
        ("TERMINAL_TIMEOUT", " 1.5 "),
        ("TERMINAL_MAX_FOREGROUND_TIMEOUT", "7"),
        ("TERMINAL_LIFETIME_SECONDS", "8"),
        ("TERMINAL_DISK_WARNING_GB", "9"),
        ("TERMINAL_SANDBOX_DIR", "~/s"),
        ("EXOSHELL_BATCH", "YES"),
        ("EXOSHELL_GUEST_DIR", "guests"),
        ("TERMINAL_CONTAINER_CPU", "0.5"),
        ("TERMINAL_CONTAINER_MEMORY", "10"),
        ("TERMINAL_CONTAINER_DISK", "11"),
        ("TERMINAL_CONTAINER_PERSISTENT", "on"),
        ("TERMINAL_DOCKER_IMAGE", " debian:12 "),
        ("EXOSHELL_DOCKER_BINARY", "~/bin/docker"),
        ("TERMINAL_DOCKER_NETWORK", "no"),
        ("TERMINAL_DOCKER_VOLUMES", r#"["/a:/b:ro"]"#),
        ("TERMINAL_DOCKER_ENV", r#"{"A": "a b"}"#),
        ("TERMINAL_DOCKER_FORWARD_ENV", r#"["B", "C"]"#),
        ("TERMINAL_DOCKER_RUN_AS_HOST_USER", "1"),
        ("TERMINAL_DOCKER_MOUNT_CWD_TO_WORKSPACE", "true"),
        ("TERMINAL_DOCKER_EXTRA_ARGS", r#"["--init"]"#),
        ("TERMINAL_DOCKER_PERSIST_ACROSS_PROCESSES", "false"),
        ("TERMINAL_DOCKER_ORPHAN_REAPER", "off"),
        ("TERMINAL_SSH_HOST", "build.example"),
        ("TERMINAL_SSH_USER", "ada"),
        ("TERMINAL_SSH_PORT", "2222"),
        ("TERMINAL_SSH_KEY", "~/.ssh/id"),
        ("EXOSHELL_APPROVAL", "Deny"),
        ("EXOSHELL_LOG", "DEBUG"),
        ("HOME", "/home/ada"),
    ];
    let resolved = Home::new().load(&pairs).unwrap();
    assert_places(&resolved);
    assert_eq!(resolved.terminal.backend, Backend::Docker);
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
            "dokcer",
            "environment variable `TERMINAL_ENV` is `dokcer`, it takes `local`, `docker`, `podman`, `ssh` or `command`",
        ),
        (
            "TERMINAL_CONTAINER_CPU",
            "half",
            "environment variable `TERMINAL_CONTAINER_CPU` is `half`, it takes a number from 0 to 100000",
        ),
        (
            "TERMINAL_DOCKER_VOLUMES",
            "/a:/b",
            "environment variable `TERMINAL_DOCKER_VOLUMES` is `/a:/b`, it takes a list of strings, as JSON",
        ),
        (
            "TERMINAL_DOCKER_EXTRA_ARGS",
            "{}",
            "environment variable `TERMINAL_DOCKER_EXTRA_ARGS` is `{}`, it takes a list of strings, as JSON",
        ),
        (
            "TERMINAL_DOCKER_ENV",
            r#"{"API_TOKEN": "hunter2""#,
            "environment variable `TERMINAL_DOCKER_ENV` is `***`, it takes a table of variables, each a name with a string, as JSON",
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
fn variables_that_are_not_ours_are_not_read() {
    let pairs = [
        ("TERMINAL_MODAL_IMAGE", "?"),
        ("TERMINAL_DAYTONA_IMAGE", "{"),
        ("EXOSHELL_NEW", "?"),
        ("TERMINAL_SSH_PORT_X", "many"),
    ];
    let home = Home::new();
    assert_eq!(
        home.load(&pairs).unwrap(),
        Resolved::new(home.folder.path())
    );
}

#[test]
fn a_bad_value_is_an_error_even_if_its_backend_is_not_in_use() {
    for name in [
        "TERMINAL_SSH_PORT",
        "TERMINAL_CONTAINER_MEMORY",
        "TERMINAL_DOCKER_VOLUMES",
    ] {
        let error = Home::new()
            .load(&[("TERMINAL_ENV", "local"), (name, "many")])
            .unwrap_err();
        assert!(
            error.to_string().starts_with(&format!(
                "environment variable `{name}` is `many`, it takes "
            )),
            "{error}"
        );
    }
}

#[test]
fn entries_that_are_no_strings_are_kept_as_they_are_written() {
    let resolved = Home::new()
        .load(&[
            (
                "TERMINAL_DOCKER_VOLUMES",
                r#"["/a:/b", 7, null, {"x": [1]}]"#,
            ),
            ("TERMINAL_DOCKER_FORWARD_ENV", r#"["A", true, "1 B"]"#),
            ("TERMINAL_DOCKER_ENV", r#"{"N": 1.50, "1 B": "x", "L": []}"#),
        ])
        .unwrap();
    assert_eq!(
        resolved.docker.volumes,
        ["/a:/b", "7", "null", r#"{"x":[1]}"#]
    );
    assert_eq!(resolved.docker.forward_env, ["A", "true", "1 B"]);
    let pairs = [("1 B", "x"), ("L", "[]"), ("N", "1.5")];
    let expected = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(resolved.docker.env, expected.into());
}

#[test]
fn names_can_also_be_separated_by_commas() {
    let resolved = Home::new()
        .load(&[("TERMINAL_DOCKER_FORWARD_ENV", " A, ,B,1x ")])
        .unwrap();
    assert_eq!(resolved.docker.forward_env, ["A", "B", "1x"]);
}

#[test]
fn an_empty_list_takes_the_files_list_away() {
    let home = Home::with_file("docker.volumes = ['/a:/b']\ndocker.env.A = 'a'");
    let resolved = home
        .load(&[
            ("TERMINAL_DOCKER_VOLUMES", "[]"),
            ("TERMINAL_DOCKER_ENV", "{}"),
        ])
        .unwrap();
    assert!(resolved.docker.volumes.is_empty() && resolved.docker.env.is_empty());
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
