use std::path::Path;

use super::*;

/// Removes the `#` before every key, but not the explanations.
fn uncommented() -> String {
    let line = |line: &str| {
        line.strip_prefix('#')
            .filter(|rest| !rest.starts_with(' '))
            .unwrap_or(line)
            .to_owned()
    };
    Config::template()
        .lines()
        .map(line)
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn the_template_as_it_is_says_nothing() {
    assert_eq!(
        Config::parse(&Config::template(), Path::new("t")).unwrap(),
        Config::default()
    );
}

#[test]
fn the_template_without_comment_marks_gives_exactly_the_defaults() {
    let config = Config::parse(&uncommented(), Path::new("t")).unwrap();
    let resolved = Resolved::from_config("/h", config).unwrap();
    let defaults = Resolved::new("/h");
    assert_eq!(resolved.terminal, defaults.terminal);
    assert_eq!(resolved.places, defaults.places);
    assert_eq!(resolved.container, defaults.container);
    assert_eq!(resolved.docker, defaults.docker);
    assert_eq!(resolved.ssh, defaults.ssh);
    assert_eq!(resolved.command, defaults.command);
    assert_eq!(resolved.sync, defaults.sync);
    assert_eq!(resolved.approval, defaults.approval);
    assert_eq!(resolved.guard, defaults.guard);
    assert_eq!(resolved.secrets, defaults.secrets);
    assert_eq!(resolved.log, defaults.log);
}

#[test]
fn the_template_has_every_key_with_its_help() {
    let text = uncommented();
    let table: toml::Table = text.parse().unwrap();
    for key in keys::all() {
        let (group, name) = key.parts();
        assert!(table[group].get(name).is_some(), "{}", key.name);
        assert!(text.contains(&format!("# {}", key.help)), "{}", key.name);
        assert!(
            key.variable
                .is_none_or(|variable| text.contains(&format!("({variable})"))),
            "{}",
            key.name
        );
    }
}

#[test]
fn the_template_reads_well() {
    let text = Config::template();
    let start = "\n[terminal]\n# Kind of place that tasks use. (TERMINAL_ENV)\n#backend = \"local\"\n# Directory that sessions start in; empty = the caller's. (TERMINAL_CWD)\n#cwd = \"\"\n# How long a foreground command may take. (TERMINAL_TIMEOUT)\n#timeout_seconds = 60\n";
    assert!(text.contains(start), "{text}");
    assert!(text.ends_with("\n#level = \"warn\"\n"), "{text}");
}
