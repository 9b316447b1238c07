use std::process::Command;

use super::super::state::{ShellState, Value, Variable};
use super::{BASH_CAPTURE, SH_CAPTURE, parse_bash, parse_sh};

/// Feeds the capture the names as the shell does, without a file.
fn script(setup: &str) -> String {
    format!("{setup}\n{{ {BASH_CAPTURE}; }} < <(declare -F) 2>/dev/null")
}

fn bash(setup: &str) -> ShellState {
    let output = Command::new("bash")
        .args(["-c", &script(setup)])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .current_dir("/")
        .output()
        .unwrap();
    parse_bash(&output.stdout).unwrap()
}

#[test]
fn e4_any_byte_in_a_value_survives_a_real_bash() {
    let value: Vec<u8> = (1..=255).collect();
    let mut script = String::from("export V=$'");
    for byte in &value {
        use std::fmt::Write as _;
        write!(script, "\\{byte:03o}").unwrap();
    }
    let state = bash(&format!("{script}'"));
    assert_eq!(state.variables.get(&b"V"[..]), Some(&Variable::Text(value)));
}

#[test]
fn functions_aliases_options_umask_and_directory_are_read() {
    let state = bash(
        "f() { cat <<E\n}\ng () \nE\n}; g() { echo g; }; export -f g; \
         alias ll='ls -l'; alias q=\"it's\"; shopt -s globstar; set -f; umask 077; cd /tmp",
    );
    assert_eq!(state.functions.len(), 2);
    assert!(state.functions[&b"g"[..]].exported);
    assert!(!state.functions[&b"f"[..]].exported);
    assert_eq!(state.aliases.len(), 2);
    assert!(state.shopts.contains(&b"globstar"[..]));
    assert!(state.options.contains(&b"noglob"[..]));
    assert_eq!(state.umask, 0o077);
    assert_eq!(state.cwd, b"/tmp");
}

#[test]
fn arrays_and_attributes_are_kept() {
    let state = bash("declare -ax A=('x y' \"it's )\"); declare -ix N=5; export E");
    assert!(matches!(&state.variables[&b"A"[..]],
        Variable::Declared { flags, value: Value::Array(_) } if flags == b"ax"));
    let number = Variable::Declared {
        flags: b"ix".to_vec(),
        value: Value::Text(b"5".to_vec()),
    };
    assert_eq!(state.variables[&b"N"[..]], number);
}

#[test]
fn functions_are_told_apart_whatever_they_contain() {
    let state = bash(
        "a() { :; }; b() { cat <<E\n}\nc ()\nE\n}; c() { echo c; } >/dev/null; d() { :; }; export -f a c",
    );
    let names: Vec<&[u8]> = state.functions.keys().map(Vec::as_slice).collect();
    assert_eq!(names, [b"a", b"b", b"c", b"d"]);
    assert!(state.functions[&b"a"[..]].exported);
    assert!(!state.functions[&b"a"[..]].text.ends_with(b"declare -fx a"));
    assert!(state.functions[&b"b"[..]].text.ends_with(b"}"));
}

#[test]
fn what_the_shell_carries_for_itself_is_left_out() {
    let state = bash("set -e; set -u; export SHLVL");
    for name in ["PWD", "SHLVL", "_"] {
        assert!(!state.variables.contains_key(name.as_bytes()), "{name}");
    }
    assert!(!state.options.contains(&b"errexit"[..]));
    assert!(!state.options.contains(&b"nounset"[..]));
}

#[test]
fn a_cut_capture_is_refused_at_every_byte() {
    let output = Command::new("bash")
        .args(["-c", &script("f() { :; }; export A='x y'")])
        .output()
        .unwrap()
        .stdout;
    assert!(parse_bash(&output).is_some());
    // The very last byte is the NUL behind the mark and carries nothing.
    for length in 0..output.len() - 1 {
        assert!(parse_bash(&output[..length]).is_none(), "cut at {length}");
    }
}

#[test]
fn a_posix_shell_gives_exports_umask_and_directory() {
    let output = Command::new("sh")
        .args([
            "-c",
            &format!("export A=\"it's\nme\"; umask 027; cd /usr\n{SH_CAPTURE}"),
        ])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .output()
        .unwrap();
    let state = parse_sh(&output.stdout).unwrap();
    assert_eq!(state.text(b"A"), Some(&b"it's\nme"[..]));
    assert_eq!(state.umask, 0o027);
    assert_eq!(state.cwd, b"/usr");
}
