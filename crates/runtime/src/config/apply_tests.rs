use super::super::env::Environment;
use super::super::testing::{Home, timeout};
use super::*;

#[test]
fn placeholders_for_the_directory_mean_that_none_was_given() {
    let home = Home::with_file("terminal.cwd = '/file'");
    for word in ["", ".", "./", "auto", "cwd"] {
        let resolved = home.load(&[("TERMINAL_CWD", word)]).unwrap();
        assert_eq!(
            resolved.terminal.cwd.as_deref(),
            Some(Path::new("/file")),
            "{word}"
        );
        let file = Home::with_file(&format!("terminal.cwd = '{word}'"));
        assert_eq!(file.load(&[]).unwrap().terminal.cwd, None, "{word}");
    }
    assert_eq!(
        home.load(&[("TERMINAL_SANDBOX_DIR", "auto")])
            .unwrap()
            .places
            .sandbox_dir,
        Some("/srv/dir/auto".into())
    );
}

#[test]
fn relative_paths_start_at_the_file_or_at_the_callers_directory() {
    let home = Home::with_file("places.guest_dir = 'guests'\nplaces.sandbox_dir = 'boxes'");
    let resolved = home.load(&[("TERMINAL_SANDBOX_DIR", "boxes")]).unwrap();
    assert_eq!(
        resolved.places.guest_dir,
        Some(home.folder.path().join("guests"))
    );
    assert_eq!(resolved.places.sandbox_dir, Some("/srv/dir/boxes".into()));
}

#[cfg(unix)]
#[test]
fn a_path_that_is_not_utf8_survives() {
    use std::os::unix::ffi::OsStrExt as _;
    let path = std::ffi::OsStr::from_bytes(b"/d\xff");
    let environment =
        Environment::from_pairs([("HOME", "/none".into()), ("TERMINAL_CWD", path.to_owned())]);
    let resolved = Resolved::load(&environment, Config::default()).unwrap();
    assert_eq!(resolved.terminal.cwd.as_deref(), Some(Path::new(path)));
}

#[test]
fn a_time_out_of_range_is_refused_in_every_layer() {
    let takes = "it takes a number of seconds from 0.001 to 315360000 (10 years)";
    for value in ["0", "-1", "315360001", "inf", "NaN", "1e300"] {
        let text = Home::new()
            .load(&[("TERMINAL_TIMEOUT", value)])
            .unwrap_err()
            .to_string();
        assert!(
            text.starts_with("environment variable `TERMINAL_TIMEOUT` is `")
                && text.ends_with(takes),
            "{text}"
        );
    }
    let home = Home::with_file("[terminal]\n\ntimeout_seconds = -5");
    let expected = format!(
        "`terminal.timeout_seconds` (`{}` line 3) is `-5`, {takes}",
        home.file().display()
    );
    assert_eq!(home.load(&[]).unwrap_err().to_string(), expected);
    let error = Home::new().load_with(&[], timeout(0.0)).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("the given `terminal.timeout_seconds` is `0`, {takes}")
    );
    assert_eq!(error.hint(), "change the value, or leave it out");
}

#[test]
fn no_grace_and_no_warm_shells_are_fine_but_no_output_is_not() {
    let home = Home::with_file(
        "terminal.kill_grace_seconds = 0\nplaces.max_warm_shells = 0\nplaces.disk_warning_gb = 0",
    );
    let resolved = home.load(&[]).unwrap();
    assert_eq!(resolved.terminal.kill_grace, Duration::ZERO);
    assert_eq!(resolved.places.max_warm_shells, 0);
    assert_eq!(resolved.places.disk_warning_bytes(), None);
    let home = Home::with_file("terminal.output_limit_chars = 0");
    let text = home.load(&[]).unwrap_err().to_string();
    assert!(
        text.ends_with("line 1) is `0`, it takes a whole number from 1 to 100000000"),
        "{text}"
    );
}

#[test]
fn a_timeout_above_the_maximum_is_left_to_the_call() {
    assert_eq!(
        Home::new()
            .load(&[("TERMINAL_TIMEOUT", "7200")])
            .unwrap()
            .terminal
            .timeout,
        Duration::from_secs(7200)
    );
}

#[test]
fn names_that_no_shell_could_export_are_refused() {
    for (text, name) in [
        ("env_pass = ['A B']", "A B"),
        ("env_remove = ['']", ""),
        ("env = { 1A = 'x' }", "1A"),
        ("env = { 'A=B' = 'x' }", "A=B"),
    ] {
        let home = Home::with_file(&format!("[terminal]\n{text}"));
        let key = text.split(' ').next().unwrap();
        let expected = format!(
            "`terminal.{key}` (`{}` line 2) is `{name}`, it takes names of letters, digits and `_` that do not start with a digit",
            home.file().display()
        );
        assert_eq!(home.load(&[]).unwrap_err().to_string(), expected);
    }
}

#[test]
fn a_nul_is_refused_where_the_system_could_not_take_it() {
    let home = Home::with_file("terminal.cwd = \"/a\\u0000b\"");
    assert!(
        home.load(&[])
            .unwrap_err()
            .to_string()
            .ends_with("line 1) is `/a\\0b`, it takes a path")
    );
    let home = Home::with_file("terminal.env.A_TOKEN = \"hunter\\u00002\"");
    let text = home.load(&[]).unwrap_err().to_string();
    assert!(
        text.starts_with("`terminal.env.A_TOKEN` (`")
            && text.ends_with("line 1) is `***`, it takes a string without NUL"),
        "{text}"
    );
}

#[test]
fn an_amount_out_of_range_is_refused_in_every_layer() {
    let takes = "it takes a number from 0 to 100000";
    for value in ["-0.5", "100001", "inf", "NaN"] {
        let text = Home::new()
            .load(&[("TERMINAL_CONTAINER_CPU", value)])
            .unwrap_err()
            .to_string();
        assert!(
            text.starts_with("environment variable `TERMINAL_CONTAINER_CPU` is `")
                && text.ends_with(takes),
            "{text}"
        );
    }
    for value in ["-1", "1e9", "nan", "-inf", "99999999999999999999"] {
        let home = Home::with_file(&format!("container.cpu = {value}"));
        let text = home.load(&[]).unwrap_err().to_string();
        assert!(
            text.starts_with("`container.cpu` (`") && text.ends_with(takes),
            "{value}: {text}"
        );
    }
    for (value, cpu) in [("0", 0.0), ("100000", 100_000.0)] {
        let resolved = Home::new()
            .load(&[("TERMINAL_CONTAINER_CPU", value)])
            .unwrap();
        assert!((resolved.container.cpu - cpu).abs() < f64::EPSILON);
    }
}

#[test]
fn a_port_that_no_host_has_is_refused() {
    let text = Home::with_file("ssh.port = 65536")
        .load(&[])
        .unwrap_err()
        .to_string();
    assert!(
        text.ends_with("is `65536`, it takes a whole number from 0 to 65535"),
        "{text}"
    );
}

#[test]
fn an_empty_text_leaves_what_was_there() {
    let home = Home::with_file("ssh.host = 'build.example'\nssh.user = ''\ndocker.image = ''");
    let resolved = home.load(&[("TERMINAL_SSH_HOST", "  ")]).unwrap();
    assert_eq!(resolved.ssh.host.as_deref(), Some("build.example"));
    assert_eq!(resolved.ssh.user, None);
    assert_eq!(
        resolved.docker.image,
        Resolved::new("/h").docker.image,
        "the default image stays"
    );
    assert_eq!(resolved.source("docker.image").to_string(), "default");
}

#[test]
fn a_text_of_more_than_one_line_is_refused() {
    for (value, shown) in [
        ("a\\nb", "a\\nb"),
        ("a\\u0000b", "a\\0b"),
        ("\\u001b[m", "\\u{1b}[m"),
    ] {
        let text = Home::with_file(&format!("ssh.host = \"{value}\""))
            .load(&[])
            .unwrap_err()
            .to_string();
        assert!(
            text.ends_with(&format!("line 1) is `{shown}`, it takes a line of text")),
            "{text}"
        );
    }
}

#[test]
fn a_nul_in_a_word_is_refused() {
    let error = Home::new()
        .load(&[("TERMINAL_DOCKER_EXTRA_ARGS", r#"["-v", "a\u0000b"]"#)])
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "environment variable `TERMINAL_DOCKER_EXTRA_ARGS` is `a\\0b`, it takes a list of strings without NUL"
    );
    let text = Home::with_file("command.launch = [\"a\\u0000\"]")
        .load(&[])
        .unwrap_err()
        .to_string();
    assert!(
        text.ends_with("line 1) is `a\\0`, it takes a list of strings without NUL"),
        "{text}"
    );
}

#[test]
fn a_nul_in_a_variable_of_containers_is_refused_without_showing_secrets() {
    let error = Home::new()
        .load(&[("TERMINAL_DOCKER_ENV", r#"{"A_TOKEN": "hunter\u00002"}"#)])
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "environment variable `TERMINAL_DOCKER_ENV` is `***`, it takes a string without NUL"
    );
}

#[test]
fn bad_names_are_kept_for_whoever_uses_the_list() {
    let home = Home::with_file(
        "[docker]\nforward_env = ['A B', '', 'C']\nenv = { '1A' = 'x', 'A=B' = 'y' }",
    );
    let docker = home.load(&[]).unwrap().docker;
    assert_eq!(docker.forward_env, ["A B", "", "C"]);
    let expected = [("1A", "x"), ("A=B", "y")];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(docker.env, expected.into());
}
