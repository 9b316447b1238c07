//! Variables of commands, and where their values never show up.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;

use exoshell_testkit::image;
use serde_json::json;

use super::{call_as, start_call_as};
use crate::site::{Kind, Sleep};
use crate::support::{Answer, PATIENCE, wait_until};

/// Tells whether the command line of any process contains a text.
fn in_a_command_line(text: &str) -> bool {
    fs::read_dir("/proc").unwrap().flatten().any(|entry| {
        fs::read(entry.path().join("cmdline"))
            .is_ok_and(|words| String::from_utf8_lossy(&words).contains(text))
    })
}

#[test]
fn forwarded_values_reach_commands_and_neither_the_engine_nor_a_command_line() {
    // The tag is in every value, and in no name.
    let tag = format!("s3cr3t{}", std::process::id());
    let value = |number: u32| format!("{tag}-{number}");
    let [caller, file, fixed, unasked] = [1, 2, 3, 4].map(value);
    let fixed_setting = format!("{{ FIXED = \"{fixed}\" }}");
    let site = Kind::Docker.site_called_with(
        &[
            (
                "docker.forward_env",
                r#"["FROM_CALLER", "FROM_FILE", "OPENAI_API_KEY", "NOBODY_HAS_IT"]"#,
            ),
            ("docker.env", &fixed_setting),
            // Whether values arrive can only be seen where they are shown.
            ("secrets.redact", "false"),
        ],
        &[
            ("FROM_CALLER", &caller),
            ("OPENAI_API_KEY", &caller),
            ("ANTHROPIC_API_KEY", &unasked),
            ("UNASKED", &unasked),
        ],
    );
    let mut env = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(site.home.join(".env"))
        .unwrap();
    writeln!(
        env,
        "FROM_FILE={file}\nFROM_CALLER=not-this\nUNASKED={unasked}"
    )
    .unwrap();
    drop(env);

    let sleep = Sleep::new();
    let show = "echo $FROM_CALLER $FROM_FILE $FIXED $OPENAI_API_KEY; \
                echo ${ANTHROPIC_API_KEY-unset} ${UNASKED-unset} ${NOBODY_HAS_IT-unset}";
    let command = format!("{show}; {}", sleep.fill("sleep N"));
    let mut call = start_call_as(&site, &[], &[], &json!({"command": command, "timeout": 20}));
    // From the making of the container to the command under way.
    wait_until(PATIENCE, "the command runs", || {
        assert!(!in_a_command_line(&tag), "in a command line");
        sleep.count() == 1 || call.has_ended()
    });
    let container = site.container();
    let record = site.engine().run(&["inspect", &container]);
    assert!(!record.contains(&tag), "{record}");
    call.signal(rustix::process::Signal::INT);
    let answer = Answer::parse(&call.finish().out);
    let expected = format!("{caller} {file} {fixed} {caller}\nunset unset unset\n");
    assert!(answer.output().starts_with(&expected), "{}", answer.0);
    let logs = site.engine().run(&["logs", &container]);
    assert!(!logs.contains(&tag), "{logs}");
    let ran = site.exoshell(["run", show]);
    assert_eq!(ran.text(), expected, "{}", ran.talk());
    fs::remove_file(site.home.join(".env")).unwrap();
}

#[test]
fn a_file_of_values_that_others_can_read_is_not_used() {
    let site = Kind::Docker.site_with(&[("docker.forward_env", r#"["FROM_FILE"]"#)]);
    fs::write(site.home.join(".env"), "FROM_FILE=seen\n").unwrap();
    let answer = site.terminal("echo ${FROM_FILE-unset}");
    answer.printed("unset\n");
    assert!(answer.hint().contains("chmod 600"), "{}", answer.0);
    fs::remove_file(site.home.join(".env")).unwrap();
}

#[test]
fn credentials_of_the_image_are_filtered_unless_they_are_passed() {
    let site = Kind::Docker.site();
    let engine = site.engine();
    let name = format!("exoshell-test-env-{}", std::process::id());
    let made = engine.run(&["create", image::BUSYBOX, "true"]);
    engine.run(&[
        "commit",
        "--change",
        "ENV OPENAI_API_KEY=of-the-image",
        "--change",
        "ENV PLAIN=plain",
        &made,
        &name,
    ]);
    engine.remove(&made);
    let show = "echo ${OPENAI_API_KEY-unset} $PLAIN";
    let words = ["--image", name.as_str()];
    let ran = site.exoshell(["run", "--image", &name, show]);
    let answer = call_as(&site, &words, &[], &json!({ "command": show }));
    // Another file of settings, with the same engine.
    let passing = site.root().join("passing.toml");
    let shown = "terminal.backend = \"docker\"\nsecrets.redact = false\n";
    let settings = format!("{shown}terminal.env_pass = [\"OPENAI_API_KEY\"]\n");
    fs::write(&passing, settings).unwrap();
    let showing = site.root().join("showing.toml");
    fs::write(&showing, shown).unwrap();
    let variables = [("EXOSHELL_CONFIG", passing.to_str().unwrap())];
    let call = json!({"command": show, "task_id": "passed"});
    let passed = call_as(&site, &words, &variables, &call);
    let variables = [
        ("TERMINAL_DOCKER_FORWARD_ENV", "OPENAI_API_KEY"),
        ("OPENAI_API_KEY", "of-the-caller"),
        ("EXOSHELL_CONFIG", showing.to_str().unwrap()),
    ];
    let call = json!({"command": show, "task_id": "forwarded"});
    let forwarded = call_as(&site, &words, &variables, &call);
    let removed = site.exoshell(["places", "rm", "--all"]);
    engine.run(&["image", "rm", &name]);
    assert_eq!(ran.text(), "unset plain\n", "{}", ran.talk());
    answer.printed("unset plain\n");
    passed.printed("of-the-image plain\n");
    forwarded.printed("of-the-caller plain\n");
    assert_eq!(removed.code(), 0, "{}", removed.talk());
}
