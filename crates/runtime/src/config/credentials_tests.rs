use super::super::schema::{Config, TerminalConfig};
use super::*;

fn child(pairs: &[(&str, &str)], terminal: TerminalConfig) -> BTreeMap<OsString, OsString> {
    let resolved = Resolved::from_config(
        "/h",
        Config {
            terminal,
            ..Config::default()
        },
    )
    .unwrap();
    child_environment(&Environment::from_pairs(pairs.iter().copied()), &resolved)
        .into_iter()
        .collect()
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

#[test]
fn provider_tool_bot_and_sandbox_credentials_are_stripped() {
    for name in [
        "OPENAI_API_KEY",
        "ANTHROPIC_API_KEY",
        "GOOGLE_API_KEY",
        "TAVILY_API_KEY",
        "TELEGRAM_BOT_TOKEN",
        "MODAL_TOKEN_SECRET",
    ] {
        assert!(is_stripped(name, &[], &[]), "{name}");
    }
}

#[test]
fn everything_of_ours_and_the_sudo_password_are_stripped() {
    for name in ["EXOSHELL_HOME", "EXOSHELL_ANYTHING_NEW", "SUDO_PASSWORD"] {
        assert!(is_stripped(name, &[], &[]), "{name}");
    }
}

#[test]
fn credentials_that_the_users_own_commands_need_stay() {
    let kept = [
        "PATH",
        "HOME",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "GH_TOKEN",
        "GITHUB_TOKEN",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "SSH_AUTH_SOCK",
        "NPM_TOKEN",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "KUBECONFIG",
        "openai_api_key",
    ];
    for name in kept {
        assert!(!is_stripped(name, &[], &[]), "{name}");
    }
}

#[test]
fn configured_names_are_stripped_and_passed_names_win() {
    let (remove, pass) = (
        names(&["MINE", "BOTH"]),
        names(&["OPENAI_API_KEY", "BOTH", "EXOSHELL_X"]),
    );
    assert!(is_stripped("MINE", &remove, &pass));
    for name in ["BOTH", "OPENAI_API_KEY", "EXOSHELL_X"] {
        assert!(!is_stripped(name, &remove, &pass), "{name}");
    }
}

#[test]
fn the_lists_are_sorted_and_hold_only_names_without_repetition() {
    for list in [PROVIDERS, SEARCH, MESSAGING, SANDBOXES] {
        assert!(list.is_sorted());
        for name in list {
            assert!(
                name.chars().all(|letter| letter.is_ascii_uppercase()
                    || letter.is_ascii_digit()
                    || letter == '_'),
                "{name}"
            );
        }
    }
    let all: Vec<_> = [PROVIDERS, SEARCH, MESSAGING, SANDBOXES].concat();
    let unique: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(unique.len(), all.len());
}

#[test]
fn a_command_gets_the_callers_variables_without_credentials() {
    let variables = child(
        &[
            ("A", "1"),
            ("EMPTY", ""),
            ("OPENAI_API_KEY", "k"),
            ("EXOSHELL_HOME", "/h"),
        ],
        TerminalConfig::default(),
    );
    assert_eq!(variables.get(OsStr::new("A")), Some(&"1".into()));
    assert_eq!(variables.get(OsStr::new("EMPTY")), Some(&"".into()));
    assert!(!variables.contains_key(OsStr::new("OPENAI_API_KEY")));
    assert!(!variables.contains_key(OsStr::new("EXOSHELL_HOME")));
}

#[test]
fn nothing_may_page_edit_or_prompt_whatever_the_caller_has() {
    let caller = [
        ("PAGER", "less"),
        ("EDITOR", "vim"),
        ("VISUAL", "vim"),
        ("GIT_EDITOR", "vim"),
        ("GH_PAGER", "less"),
        ("AWS_PAGER", ""),
    ];
    let variables = child(&caller, TerminalConfig::default());
    for (name, value) in QUIET
        .iter()
        .chain(&[("GH_PAGER", "cat"), ("AWS_PAGER", "cat")])
    {
        assert_eq!(
            variables.get(OsStr::new(name)),
            Some(&value.into()),
            "{name}"
        );
    }
}

#[test]
fn the_callers_python_encoding_is_kept() {
    let name = OsStr::new("PYTHONIOENCODING");
    assert_eq!(
        child(&[], TerminalConfig::default()).get(name),
        Some(&"utf-8".into())
    );
    assert_eq!(
        child(
            &[("PYTHONIOENCODING", "latin-1")],
            TerminalConfig::default()
        )
        .get(name),
        Some(&"latin-1".into())
    );
}

#[test]
fn configured_variables_win_over_everything() {
    let env = [("PAGER", "less"), ("OPENAI_API_KEY", "given"), ("NEW", "n")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let terminal = TerminalConfig {
        env: Some(env.into()),
        env_remove: Some(names(&["NEW"])),
        ..TerminalConfig::default()
    };
    let variables = child(&[("OPENAI_API_KEY", "inherited")], terminal);
    assert_eq!(variables.get(OsStr::new("PAGER")), Some(&"less".into()));
    assert_eq!(
        variables.get(OsStr::new("OPENAI_API_KEY")),
        Some(&"given".into())
    );
    assert_eq!(variables.get(OsStr::new("NEW")), Some(&"n".into()));
}

#[test]
fn a_passed_credential_reaches_commands() {
    let terminal = TerminalConfig {
        env_pass: Some(names(&["OPENAI_API_KEY"])),
        ..TerminalConfig::default()
    };
    assert_eq!(
        child(&[("OPENAI_API_KEY", "k")], terminal).get(OsStr::new("OPENAI_API_KEY")),
        Some(&"k".into())
    );
}

#[cfg(unix)]
#[test]
fn bytes_that_are_not_utf8_survive() {
    use std::os::unix::ffi::OsStringExt as _;
    let pair = (
        OsString::from_vec(b"N\xff".to_vec()),
        OsString::from_vec(b"v\xfe".to_vec()),
    );
    let environment = Environment::from_pairs([pair.clone()]);
    assert!(child_environment(&environment, &Resolved::new("/h")).contains(&pair));
}

/// Runs git the way commands get it, with editors that leave a trace when they are used.
#[cfg(unix)]
fn git(folder: &std::path::Path, arguments: &[&str]) -> bool {
    let process = Environment::from_process();
    let caller = [
        ("PATH", process.get("PATH").unwrap_or_default()),
        ("HOME", folder.as_os_str()),
        ("EDITOR", "touch used".as_ref()),
        ("GIT_EDITOR", "touch used".as_ref()),
        ("GIT_CONFIG_NOSYSTEM", "1".as_ref()),
    ];
    let variables = child_environment(&Environment::from_pairs(caller), &Resolved::new("/h"));
    let settings = ["user.name=a", "user.email=a@b", "core.editor=touch used"];
    let mut command = std::process::Command::new("git");
    command.args(settings.iter().flat_map(|setting| ["-c", setting]));
    command
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .envs(variables);
    command
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap()
        .status
        .success()
}

#[cfg(unix)]
#[test]
fn git_never_opens_an_editor() {
    let folder = tempfile::tempdir().unwrap();
    let git = |arguments: &[&str]| git(folder.path(), arguments);
    assert!(git(&["init", "-q"]));
    for message in ["one", "two", "three"] {
        assert!(git(&["commit", "--allow-empty", "-m", message]));
    }
    assert!(
        !git(&["commit", "--allow-empty"]),
        "an empty message is refused"
    );
    assert!(git(&["rebase", "-i", "--keep-empty", "HEAD~2"]));
    assert!(git(&["commit", "--amend", "--allow-empty"]));
    assert!(!folder.path().join("used").exists());
}
