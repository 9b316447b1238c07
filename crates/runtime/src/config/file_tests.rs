use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> Result<Config, ConfigError> {
    Config::parse(text, Path::new("/x/config.toml"))
}

fn error(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

const EVERY_KEY: &str = r#"
terminal.backend = "SSH"
terminal.cwd = "/w"
terminal.timeout_seconds = 5
terminal.max_timeout_seconds = 0x10
terminal.kill_grace_seconds = 0.5
terminal.output_limit_chars = 1_000
terminal.spill_limit_mb = 1
terminal.login_timeout_seconds = 1e1
terminal.persist = "Reset"
terminal.env_remove = ["A"]
terminal.env_pass = ["B"]
[terminal.env]
C = "c"
[places]
lifetime_seconds = 1
session_ttl_seconds = 2
batch = true
sandbox_dir = "/s"
disk_warning_gb = 0
linger = false
max_warm_shells = 3
guest_dir = "/g"
[container]
cpu = 1.5
memory_mb = 2_000
disk_mb = 0
persistent = true
[docker]
image = "debian:12"
container = "mine"
program = "/usr/bin/podman"
network = false
volumes = ["/a:/b"]
forward_env = ["D"]
run_as_host_user = true
mount_cwd = true
extra_args = ["--init"]
persist = false
reaper = false
[docker.env]
E = "e"
[ssh]
host = "build.example"
user = "ada"
port = 2222
key = "/k"
options = ["Compression=yes"]
[command]
launch = ["kubectl", "exec", "-i", "pod", "--"]
put = ["cp", "{source}", "{target}"]
destroy = ["rm"]
guest_path = "/opt/guest"
[sync]
paths = ["~/a:b:ro"]
[approval]
mode = "workspace"
allow = ["process-kill:none"]
timeout_seconds = 30
wait_seconds = 0.5
expiry_seconds = 60
[guard]
allow = ["git push"]
ask = ["make deploy"]
deny = ["shred"]
allow_paths = ["/a"]
ask_paths = ["/b"]
deny_paths = ["/c"]
[secrets]
redact = false
pass = ["F"]
[log]
level = "trace"
"#;

#[test]
fn every_key_is_read_from_its_table() {
    let expected = serde_json::json!({
        "terminal": {
            "backend": "ssh", "cwd": "/w", "timeout_seconds": 5.0, "max_timeout_seconds": 16.0,
            "kill_grace_seconds": 0.5, "output_limit_chars": 1000, "spill_limit_mb": 1, "login_timeout_seconds": 10.0,
            "persist": "reset", "env": {"C": "c"}, "env_remove": ["A"], "env_pass": ["B"],
        },
        "places": {
            "lifetime_seconds": 1.0, "session_ttl_seconds": 2.0, "batch": true, "sandbox_dir": "/s",
            "disk_warning_gb": 0, "linger": false, "max_warm_shells": 3, "guest_dir": "/g",
        },
        "container": {"cpu": 1.5, "memory_mb": 2000, "disk_mb": 0, "persistent": true},
        "docker": {
            "image": "debian:12", "container": "mine", "program": "/usr/bin/podman", "network": false,
            "volumes": ["/a:/b"], "env": {"E": "e"}, "forward_env": ["D"], "run_as_host_user": true,
            "mount_cwd": true, "extra_args": ["--init"], "persist": false, "reaper": false,
        },
        "ssh": {"host": "build.example", "user": "ada", "port": 2222, "key": "/k", "options": ["Compression=yes"]},
        "command": {
            "launch": ["kubectl", "exec", "-i", "pod", "--"], "put": ["cp", "{source}", "{target}"],
            "destroy": ["rm"], "guest_path": "/opt/guest",
        },
        "sync": {"paths": ["~/a:b:ro"]},
        "approval": {
            "mode": "workspace", "allow": ["process-kill:none"], "timeout_seconds": 30.0, "wait_seconds": 0.5,
            "expiry_seconds": 60.0,
        },
        "guard": {
            "allow": ["git push"], "ask": ["make deploy"], "deny": ["shred"],
            "allow_paths": ["/a"], "ask_paths": ["/b"], "deny_paths": ["/c"],
        },
        "secrets": {"redact": false, "pass": ["F"]},
        "log": {"level": "trace"},
    });
    for key in keys::all() {
        let (table, name) = key.parts();
        assert!(!expected[table][name].is_null(), "{}", key.name);
    }
    assert_eq!(
        serde_json::to_value(parse(EVERY_KEY).unwrap()).unwrap(),
        expected
    );
}

#[test]
fn an_empty_file_says_nothing() {
    for text in [
        "",
        "# only a comment\n",
        "\u{feff}",
        "[terminal]\n[places]\n",
    ] {
        assert_eq!(parse(text).unwrap(), Config::default(), "{text:?}");
    }
}

#[test]
fn an_unknown_key_is_named_with_its_line_and_the_closest_known_one() {
    let unknown = parse("[terminal]\n\ntimeot_seconds = 5\n").unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "unknown key `terminal.timeot_seconds` (`/x/config.toml` line 3), the closest known key is `terminal.timeout_seconds`"
    );
    assert_eq!(
        unknown.hint(),
        "write `terminal.timeout_seconds`, or remove the key"
    );
}

#[test]
fn an_unknown_key_like_no_other_names_no_other() {
    let unknown = parse("[wormhole]\nimage = 'x'\n").unwrap_err();
    assert_eq!(
        unknown.to_string(),
        "unknown key `wormhole` (`/x/config.toml` line 1)"
    );
    assert_eq!(
        unknown.hint(),
        "remove the key; `exoshell config show` lists every known key"
    );
}

#[test]
fn a_key_outside_of_its_table_is_unknown() {
    assert_eq!(
        error("batch = true"),
        "unknown key `batch` (`/x/config.toml` line 1), the closest known key is `places.batch`"
    );
}

#[test]
fn a_misspelled_table_finds_the_table() {
    assert_eq!(
        error("[terminl]\ncwd = '/'"),
        "unknown key `terminl` (`/x/config.toml` line 1), the closest known key is `terminal`"
    );
}

#[test]
fn the_first_mistake_of_the_file_is_the_one_reported() {
    assert!(
        error("[places]\nzzz = 1\n[log]\naaa = 1\n[terminal]\nbbb = 1").contains("`places.zzz`")
    );
}

#[test]
fn a_wrong_type_is_named_with_what_was_found_and_what_is_taken() {
    let wrong = parse("[terminal]\ntimeout_seconds = 'soon'").unwrap_err();
    assert_eq!(
        wrong.to_string(),
        "`terminal.timeout_seconds` (`/x/config.toml` line 2) is a string, it takes a number of seconds from 0.001 to 315360000 (10 years)"
    );
    assert_eq!(
        wrong.hint(),
        "change the value, or remove the key to get the default"
    );
    let cases = [
        (
            "terminal = 5",
            "`terminal` (`/x/config.toml` line 1) is an integer, it takes a table",
        ),
        (
            "places.batch = 1",
            "`places.batch` (`/x/config.toml` line 1) is an integer, it takes `true` or `false`",
        ),
        (
            "terminal.cwd = ['/']",
            "`terminal.cwd` (`/x/config.toml` line 1) is a list, it takes a path",
        ),
        (
            "places.max_warm_shells = 1.5",
            "`places.max_warm_shells` (`/x/config.toml` line 1) is a float, it takes a whole number from 0 to 10000",
        ),
        (
            "log.level = true",
            "`log.level` (`/x/config.toml` line 1) is a boolean, it takes `off`, `error`, `warn`, `info`, `debug` or `trace`",
        ),
        (
            "terminal.persist = 2020-01-01",
            "`terminal.persist` (`/x/config.toml` line 1) is a date, it takes `persist` or `reset`",
        ),
        (
            "terminal.env = []",
            "`terminal.env` (`/x/config.toml` line 1) is a list, it takes a table of variables, each a name with a string",
        ),
        (
            "terminal.env.A_TOKEN = 12345",
            "`terminal.env.A_TOKEN` (`/x/config.toml` line 1) is an integer, it takes a string",
        ),
        (
            "terminal.env_pass = 'A'",
            "`terminal.env_pass` (`/x/config.toml` line 1) is a string, it takes a list of variable names",
        ),
        (
            "[terminal.env]\nA = 'a'\nB = 1",
            "`terminal.env.B` (`/x/config.toml` line 3) is an integer, it takes a string",
        ),
        (
            "terminal.env_pass = ['A', {}]",
            "`terminal.env_pass[1]` (`/x/config.toml` line 1) is a table, it takes a string",
        ),
        (
            "container.cpu = '2'",
            "`container.cpu` (`/x/config.toml` line 1) is a string, it takes a number from 0 to 100000",
        ),
        (
            "docker.image = 12",
            "`docker.image` (`/x/config.toml` line 1) is an integer, it takes a line of text",
        ),
        (
            "command.launch = 'kubectl exec'",
            "`command.launch` (`/x/config.toml` line 1) is a string, it takes a list of strings",
        ),
        (
            "docker.forward_env = 'A'",
            "`docker.forward_env` (`/x/config.toml` line 1) is a string, it takes a list of variable names",
        ),
        (
            "docker.env = ['A']",
            "`docker.env` (`/x/config.toml` line 1) is a list, it takes a table of variables, each a name with a string",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(error(text), expected, "{text}");
    }
}

#[test]
fn a_value_the_key_does_not_take_is_quoted() {
    assert_eq!(
        error("terminal.backend = \"do\\ncker\""),
        "`terminal.backend` (`/x/config.toml` line 1) is `do\\ncker`, it takes `local`, `docker`, `podman`, `ssh` or `command`"
    );
    assert_eq!(
        error("places.max_warm_shells = -1"),
        "`places.max_warm_shells` (`/x/config.toml` line 1) is `-1`, it takes a whole number from 0 to 10000"
    );
    assert_eq!(
        error("places.lifetime_seconds = 99999999999"),
        "`places.lifetime_seconds` (`/x/config.toml` line 1) is `99999999999`, it takes a number of seconds from 0.001 to 315360000 (10 years)"
    );
}

#[test]
fn an_amount_is_whole_or_not_in_every_notation() {
    for (text, expected) in [
        ("2", 2.0),
        ("0x10", 16.0),
        ("0b11", 3.0),
        ("1_000", 1000.0),
        ("0.25", 0.25),
        ("5e-1", 0.5),
    ] {
        let config = parse(&format!("container.cpu = {text}")).unwrap();
        assert_eq!(config.container.cpu, Some(expected), "{text}");
    }
}

#[test]
fn entries_that_are_no_strings_are_left_to_whoever_uses_them() {
    let config = parse(
        "[docker]\nvolumes = ['/a:/b', 1, 1.5, true, {}, []]\nforward_env = ['A', '1 B', 2]\nenv = { 'A B' = 'x', N = 1, T = {} }",
    )
    .unwrap();
    assert_eq!(
        serde_json::to_value(&config.docker).unwrap()["volumes"],
        serde_json::json!(["/a:/b", "1", "1.5", "true", "(a table)", "(a list)"])
    );
    assert_eq!(config.docker.forward_env.unwrap(), ["A", "1 B", "2"]);
    let pairs = [("A B", "x"), ("N", "1"), ("T", "(a table)")];
    let expected = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(config.docker.env.unwrap(), expected.into());
}

#[test]
fn bad_toml_is_named_with_line_and_column() {
    let bad = parse("[terminal]\ncwd = é\n").unwrap_err();
    let text = bad.to_string();
    assert!(
        text.starts_with("`/x/config.toml:2:7` is not valid TOML: "),
        "{text}"
    );
    assert!(!text.ends_with('.') && !text.contains('\n'), "{text}");
    assert_eq!(
        bad.hint(),
        "text goes in quotes, lists in `[ ]`; `exoshell config init` shows how each key is written"
    );
    assert!(error("[log]\n[log]\n").starts_with("`/x/config.toml:2:"));
    assert!(error("terminal.cwd = 'a'\nterminal.cwd = 'b'").starts_with("`/x/config.toml:2:"));
}

#[test]
fn a_file_that_is_not_utf8_is_named_with_line_and_column() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    std::fs::write(&path, b"[log]\nx = '\xff'").unwrap();
    let error = read(&path, false).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("`{}:2:6` is not valid TOML: not UTF-8 text", path.display())
    );
}

#[test]
fn a_missing_file_is_an_error_only_if_it_was_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.toml");
    assert!(read(&path, false).unwrap().is_none());
    let error = read(&path, true).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "environment variable `EXOSHELL_CONFIG` names `{}`, which does not exist",
            path.display()
        )
    );
    assert_eq!(
        error.hint(),
        "create the file with `exoshell config init`, or unset `EXOSHELL_CONFIG`"
    );
}

#[test]
fn a_folder_in_place_of_the_file_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let error = read(folder.path(), false).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("cannot read `{}`", folder.path().display())
    );
    assert!(std::error::Error::source(&error).is_some());
    assert_eq!(
        error.hint(),
        "make it a file that you may read, or name another one in `EXOSHELL_CONFIG`"
    );
}

proptest! {
    #[test]
    fn no_text_makes_the_parser_panic(text in "(\\[(terminal|places|container|docker|ssh|command|sync|approval|guard|secrets|log|env)\\]\n|[a-z_.]{1,9}|[ =\n'\"\\[\\]{}#é0-9.-]|true){0,30}") {
        if let Err(error) = parse(&text) {
            prop_assert!(!error.to_string().contains('\n'));
            prop_assert!(!error.hint().is_empty());
        }
    }
}
