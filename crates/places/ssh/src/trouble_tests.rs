use super::*;

const DIRECT: Target<'_> = Target {
    host: "box",
    jump: None,
};

#[test]
fn what_the_client_says_is_told_apart() {
    let table = [
        (
            "ssh: connect to host 10.0.0.1 port 22: Connection refused",
            Trouble::Refused,
        ),
        (
            "ssh: Could not resolve hostname x: Name or service not known",
            Trouble::UnknownHost,
        ),
        (
            "ssh: connect to host x port 22: Connection timed out",
            Trouble::NoAnswer,
        ),
        (
            "ssh: connect to host x port 22: No route to host",
            Trouble::NoAnswer,
        ),
        (
            "Connection to 127.0.0.1 port 2222 timed out",
            Trouble::NoAnswer,
        ),
        (
            "me@x: Permission denied (publickey,password).",
            Trouble::AuthFailed,
        ),
        (
            "Received disconnect from x port 22:2: Too many authentication failures",
            Trouble::AuthFailed,
        ),
        (
            "Load key \"/k\": bad permissions\nme@x: Permission denied (publickey).",
            Trouble::BadKey,
        ),
        (
            "Load key \"/k\": error in libcrypto\nme@x: Permission denied (publickey).",
            Trouble::BadKey,
        ),
        (
            "No ED25519 host key is known for x and you have requested strict checking.\nHost key verification failed.",
            Trouble::HostKeyUnknown,
        ),
        (
            "Unable to negotiate with x port 22: no matching host key type found. Their offer: ssh-dss",
            Trouble::NotAllowed,
        ),
        (
            "channel 0: open failed: administratively prohibited: open failed\nstdio forwarding failed",
            Trouble::NotAllowed,
        ),
        (
            "channel 0: open failed: connect failed: Connection refused\nstdio forwarding failed",
            Trouble::Refused,
        ),
        (
            "kex_exchange_identification: read: Connection reset by peer",
            Trouble::Interrupted,
        ),
        (
            "client_loop: send disconnect: Broken pipe",
            Trouble::Interrupted,
        ),
        (
            "mux_client_request_session: read from master failed: Broken pipe",
            Trouble::Interrupted,
        ),
        (
            "/c: line 1: Bad configuration option: hots\n/c: terminating, 1 bad configuration options",
            Trouble::BadSetting,
        ),
    ];
    for (said, trouble) in table {
        let error = classify(said, &DIRECT).unwrap_or_else(|| panic!("{said}"));
        assert_eq!(error.trouble(), Some(trouble), "{said}: {error}");
        assert!(error.to_string().contains("`box`"), "{error}");
        assert!(error.hint().is_some_and(|hint| !hint.is_empty()));
    }
}

#[test]
fn what_a_remote_program_says_is_not_taken_for_the_client() {
    for said in [
        "",
        "bash: line 1: /home/x: Permission denied",
        "exoshell-guest: no folder can be used",
        "Could not chdir to home directory /nonexistent: No such file or directory",
    ] {
        assert!(classify(said, &DIRECT).is_none(), "{said}");
    }
}

#[test]
fn a_changed_key_names_its_line_and_the_command_that_forgets_it() {
    let said = "@@@@@\n@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @\n@@@@@\n\
                IT IS POSSIBLE THAT SOMEONE IS DOING SOMETHING NASTY!\n\
                Please contact your system administrator.\n\
                Add correct host key in /home/me/.ssh/known_hosts to get rid of this message.\n\
                Offending ECDSA key in /home/me/.ssh/known_hosts:17\n\
                Host key for [box]:2222 has changed and you have requested strict checking.\n\
                Host key verification failed.\n";
    let error = classify(said, &DIRECT).unwrap();
    assert_eq!(error.trouble(), Some(Trouble::HostKeyChanged));
    assert!(
        error
            .to_string()
            .contains("line 17 of `/home/me/.ssh/known_hosts`")
    );
    assert!(error.to_string().contains("listening in"));
    let hint = error.hint().unwrap();
    assert!(
        hint.ends_with("ssh-keygen -f /home/me/.ssh/known_hosts -R '[box]:2222'"),
        "{hint}"
    );
}

#[test]
fn control_characters_of_a_host_do_not_reach_the_terminal() {
    let error = classify("\u{1b}[31mevil\u{7} Connection reset", &DIRECT).unwrap();
    assert!(!error.to_string().contains(char::is_control));
}
