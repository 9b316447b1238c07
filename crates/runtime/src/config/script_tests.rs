use super::*;

fn names(pairs: &[(&str, &str)], pass: &[&str]) -> Vec<String> {
    let environment = Environment::from_pairs(pairs.iter().copied());
    let pass: Vec<String> = pass.iter().map(|name| (*name).to_owned()).collect();
    script_environment(&environment, &pass)
        .into_keys()
        .map(|name| name.into_string().unwrap())
        .collect()
}

#[test]
fn a_script_gets_what_programs_need_and_nothing_else() {
    let safe = [
        "CONDA_PREFIX",
        "HOME",
        "LANG",
        "LC_ALL",
        "LOGNAME",
        "PATH",
        "PYTHONPATH",
        "SHELL",
        "TEMP",
        "TERM",
        "TMP",
        "TMPDIR",
        "USER",
        "VIRTUAL_ENV",
        "XDG_CACHE_HOME",
    ];
    let other = [
        "DATABASE_URL",
        "SENTRY_DSN",
        "SLACK_WEBHOOK",
        "EXOSHELL_HOME",
        "LD_PRELOAD",
        "PATHS",
    ];
    let all: Vec<(&str, &str)> = safe.iter().chain(&other).map(|n| (*n, "value")).collect();
    assert_eq!(names(&all, &[]), safe);
}

#[test]
fn a_safe_beginning_does_not_save_a_secret_name() {
    let pairs = [
        ("CONDA_TOKEN", "x"),
        ("XDG_SESSION_COOKIE_KEY", "x"),
        ("LC_PASSWORD", "x"),
        ("XDG_AUTH", "x"),
        ("CONDA_PASSWD", "x"),
        ("XDG_credential_dir", "x"),
        ("LC_SECRET", "x"),
    ];
    assert_eq!(names(&pairs, &[]), Vec::<String>::new());
}

#[test]
fn x1_two_hundred_secret_variables_stay_away_and_named_ones_pass() {
    let words = [
        "KEY",
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "CREDENTIAL",
        "PASSWD",
        "AUTH",
    ];
    let planted: Vec<String> = (0..200)
        .map(|at| format!("{}{at}_{}", ["XDG_", "APP", "LC_"][at % 3], words[at % 7]))
        .collect();
    let pairs: Vec<(&str, &str)> = planted.iter().map(|name| (name.as_str(), "v")).collect();
    assert_eq!(names(&pairs, &[]), Vec::<String>::new());
    assert_eq!(names(&pairs, &[&planted[7]]), [planted[7].clone()]);
}
