use serde_json::json;

use super::super::places::DEFAULT_IMAGE;
use super::super::schema::{LogConfig, PlacesConfig, TerminalConfig};
use super::super::testing::{Home, timeout};
use super::*;

#[test]
fn without_file_and_variables_everything_is_the_default() {
    let home = Home::new();
    assert_eq!(home.load(&[]).unwrap(), Resolved::new(home.folder.path()));
}

#[test]
fn the_defaults_are_the_documented_ones() {
    let shown: Vec<_> = Resolved::new("/h")
        .show()
        .into_iter()
        .map(|setting| (setting.key, setting.value))
        .collect();
    let expected = [
        ("terminal.backend", json!("local")),
        ("terminal.cwd", json!(null)),
        ("terminal.timeout_seconds", json!(60)),
        ("terminal.max_timeout_seconds", json!(600)),
        ("terminal.kill_grace_seconds", json!(2)),
        ("terminal.output_limit_chars", json!(50000)),
        ("terminal.spill_limit_mb", json!(256)),
        ("terminal.login_timeout_seconds", json!(30)),
        ("terminal.persist", json!("persist")),
        ("terminal.env", json!({})),
        ("terminal.env_remove", json!([])),
        ("terminal.env_pass", json!([])),
        ("places.lifetime_seconds", json!(300)),
        ("places.session_ttl_seconds", json!(86400)),
        ("places.batch", json!(false)),
        ("places.sandbox_dir", json!(null)),
        ("places.disk_warning_gb", json!(500)),
        ("places.linger", json!(true)),
        ("places.max_warm_shells", json!(64)),
        ("places.guest_dir", json!(null)),
        ("container.cpu", json!(1)),
        ("container.memory_mb", json!(5120)),
        ("container.disk_mb", json!(51200)),
        ("container.persistent", json!(false)),
        ("docker.image", json!(DEFAULT_IMAGE)),
        ("docker.container", json!(null)),
        ("docker.program", json!(null)),
        ("docker.network", json!(true)),
        ("docker.volumes", json!([])),
        ("docker.env", json!({})),
        ("docker.forward_env", json!([])),
        ("docker.run_as_host_user", json!(false)),
        ("docker.mount_cwd", json!(false)),
        ("docker.extra_args", json!([])),
        ("docker.persist", json!(true)),
        ("docker.reaper", json!(true)),
        ("ssh.host", json!(null)),
        ("ssh.user", json!(null)),
        ("ssh.port", json!(0)),
        ("ssh.key", json!(null)),
        ("ssh.options", json!([])),
        ("command.launch", json!([])),
        ("command.put", json!([])),
        ("command.destroy", json!([])),
        ("command.guest_path", json!(null)),
        ("sync.paths", json!([])),
        ("approval.mode", json!("ask")),
        ("approval.allow", json!([])),
        ("approval.timeout_seconds", json!(60)),
        ("approval.wait_seconds", json!(0)),
        ("approval.expiry_seconds", json!(3600)),
        ("guard.allow", json!([])),
        ("guard.ask", json!([])),
        ("guard.deny", json!([])),
        ("guard.allow_paths", json!([])),
        ("guard.ask_paths", json!([])),
        ("guard.deny_paths", json!([])),
        ("secrets.redact", json!(true)),
        ("secrets.pass", json!([])),
        ("log.level", json!("warn")),
    ];
    assert_eq!(shown, expected);
}

#[test]
fn each_layer_speaks_over_those_before_and_the_source_is_known() {
    let home = Home::with_file(
        "[terminal]\ntimeout_seconds = 1\nkill_grace_seconds = 0.5\n[places]\nbatch = true\n",
    );
    let file = format!("file {}", home.file().display());
    let source = |resolved: &Resolved| resolved.source("terminal.timeout_seconds").to_string();

    let resolved = home.load(&[]).unwrap();
    assert_eq!(
        (resolved.terminal.timeout, source(&resolved)),
        (Duration::from_secs(1), file.clone())
    );

    let resolved = home.load(&[("TERMINAL_TIMEOUT", "2")]).unwrap();
    assert_eq!(resolved.terminal.timeout, Duration::from_secs(2));
    assert_eq!(source(&resolved), "environment TERMINAL_TIMEOUT");

    let resolved = home
        .load_with(&[("TERMINAL_TIMEOUT", "2")], timeout(3.0))
        .unwrap();
    assert_eq!(
        (resolved.terminal.timeout, source(&resolved)),
        (Duration::from_secs(3), "flag".to_owned())
    );

    assert_eq!(resolved.terminal.kill_grace, Duration::from_millis(500));
    assert!(resolved.places.batch);
    assert_eq!(resolved.source("places.batch").to_string(), file);
    assert_eq!(resolved.source("log.level").to_string(), "default");
}

#[test]
fn secrets_in_configured_variables_are_never_shown() {
    let home = Home::with_file("[terminal.env]\nMY_TOKEN = 'hunter2'\nLANG = 'C'");
    let resolved = home.load(&[]).unwrap();
    assert_eq!(resolved.terminal.env["MY_TOKEN"], "hunter2");
    let setting = resolved
        .show()
        .into_iter()
        .find(|setting| setting.key == "terminal.env")
        .unwrap();
    let expected = Setting {
        key: "terminal.env",
        value: json!({"LANG": "C", "MY_TOKEN": "***"}),
        source: format!("file {}", home.file().display()),
    };
    assert_eq!(setting, expected);
    let config = Config {
        terminal: TerminalConfig {
            env: Some(resolved.terminal.env.clone()),
            ..TerminalConfig::default()
        },
        ..Config::default()
    };
    assert!(!format!("{resolved:?}{config:?}").contains("hunter2"));
}

#[test]
fn secrets_in_variables_of_containers_are_never_shown() {
    let home = Home::with_file("[docker.env]\nMY_TOKEN = 'hunter2'\nLANG = 'C'");
    let resolved = home.load(&[]).unwrap();
    assert_eq!(resolved.docker.env["MY_TOKEN"], "hunter2");
    let shown = resolved.show();
    let setting = shown.iter().find(|setting| setting.key == "docker.env");
    assert_eq!(
        setting.unwrap().value,
        json!({"LANG": "C", "MY_TOKEN": "***"})
    );
    let config = Config::parse("docker.env.MY_TOKEN = 'hunter2'", Path::new("t")).unwrap();
    assert!(!format!("{resolved:?}{config:?}").contains("hunter2"));
}

#[test]
fn an_amount_is_shown_as_people_write_it() {
    for (text, expected) in [("2.0", json!(2)), ("0.5", json!(0.5)), ("0", json!(0))] {
        let resolved = Home::with_file(&format!("container.cpu = {text}"))
            .load(&[])
            .unwrap();
        let shown = resolved.show();
        let setting = shown.iter().find(|setting| setting.key == "container.cpu");
        assert_eq!(setting.unwrap().value, expected);
    }
}

#[test]
fn a_program_can_configure_everything_without_the_environment() {
    let config = Config {
        terminal: TerminalConfig {
            persist: Some(Persist::Reset),
            cwd: Some("/w".into()),
            ..TerminalConfig::default()
        },
        places: PlacesConfig {
            linger: Some(false),
            ..PlacesConfig::default()
        },
        log: LogConfig {
            level: Some(LogLevel::Off),
        },
        ..Config::default()
    };
    let resolved = Resolved::from_config("/h", config).unwrap();
    let mut expected = Resolved::new("/h");
    expected.terminal.persist = Persist::Reset;
    expected.terminal.cwd = Some("/w".into());
    expected.places.linger = false;
    expected.log.level = LogLevel::Off;
    for key in [
        "terminal.persist",
        "terminal.cwd",
        "places.linger",
        "log.level",
    ] {
        expected.sources.insert(key, Source::Flag);
    }
    assert_eq!(resolved, expected);
    assert_eq!(resolved.config_file, Path::new("/h/config.toml"));
}

#[test]
fn the_file_named_by_the_environment_is_the_one_read() {
    let home = Home::with_file("log.level = 'info'");
    let other = home.folder.path().join("other.toml");
    std::fs::write(&other, "log.level = 'trace'").unwrap();
    let resolved = home
        .load(&[("EXOSHELL_CONFIG", other.to_str().unwrap())])
        .unwrap();
    assert_eq!(
        (resolved.log.level, &resolved.config_file),
        (LogLevel::Trace, &other)
    );
    let error = home
        .load(&[("EXOSHELL_CONFIG", "/none/x.toml")])
        .unwrap_err();
    assert!(matches!(error, ConfigError::MissingFile { .. }));
}

#[test]
fn sizes_are_given_in_bytes_too() {
    let mut resolved = Resolved::new("/h");
    assert_eq!(resolved.terminal.spill_limit_bytes(), 256 << 20);
    assert_eq!(resolved.places.disk_warning_bytes(), Some(500 << 30));
    assert_eq!(resolved.places.batch_base(Path::new("/b")), Path::new("/b"));
    resolved.places.sandbox_dir = Some("/s".into());
    assert_eq!(resolved.places.batch_base(Path::new("/b")), Path::new("/s"));
}
