use proptest::prelude::*;
use serde_json::{from_str, from_value, json, to_string, to_value};

use crate::{
    Cause, Exec, ExecDone, Failure, FailureKind, GuestHello, HelloError, HostHello, Note,
    OpenSession, Outcome, PROTOCOL_VERSION, RawBytes, Reply, Request, SessionRef, SessionSpec,
    Shell, ShellKind, Timings,
};

proptest! {
    #[test]
    fn raw_bytes_survive_json(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let raw = RawBytes(bytes);
        prop_assert_eq!(from_str::<RawBytes>(&to_string(&raw).unwrap()).unwrap(), raw);
    }

    #[test]
    fn text_in_raw_bytes_stays_text(text in ".{0,40}") {
        let raw = RawBytes::from(text.as_str());
        prop_assert_eq!(to_value(&raw).unwrap(), json!(text));
    }

    #[test]
    fn requests_with_any_bytes_survive_json(
        key in ".{0,10}",
        env in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 0..20), prop::collection::vec(any::<u8>(), 0..20)),
            0..5,
        ),
        umask in any::<Option<u32>>(),
        idle_ms in any::<Option<u64>>(),
    ) {
        let env = env.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        let request = Request::OpenSession(OpenSession {
            key,
            spec: SessionSpec {
                cwd: Some(RawBytes(vec![0xff, 0])),
                env: Some(env),
                env_remove: Vec::new(),
                extra_env: Vec::new(),
                login_timeout_ms: None,
                umask,
                idle_ms,
                ttl_ms: None,
            },
            only_existing: true,
        });
        let json = to_string(&request).unwrap();
        prop_assert_eq!(from_str::<Request>(&json).unwrap(), request);
    }

    #[test]
    fn any_text_as_a_message_is_read_or_refused(text in ".{0,200}") {
        let _ = from_str::<Request>(&text);
        let _ = from_str::<Reply<ExecDone>>(&text);
        let _ = from_str::<HostHello>(&text);
        let _ = from_str::<GuestHello>(&text);
    }
}

#[test]
fn raw_bytes_that_are_not_text_are_base64() {
    let raw = RawBytes(b"/tmp/\xff".to_vec());
    assert_eq!(to_value(&raw).unwrap(), json!({ "base64": "L3RtcC//" }));
    assert_eq!(raw.display(), "/tmp/\u{fffd}");
    assert!(from_value::<RawBytes>(json!({ "base64": "not base64!" })).is_err());
    assert!(from_value::<RawBytes>(json!(7)).is_err());
}

fn bare_exec() -> Exec {
    Exec {
        id: "run-1".into(),
        session: SessionRef::Key("task".into()),
        workdir: None,
        env: Vec::new(),
        timeout_ms: None,
        grace_ms: 500,
        lease_ms: 0,
        merge: false,
        terminal: None,
        stdin: false,
        persist: false,
        spill: None,
        sudo: false,
        redact: None,
    }
}

#[test]
fn fields_of_the_future_are_ignored_and_missing_optional_ones_have_defaults() {
    let exec = json!({
        "ask": "exec", "id": "run-1", "session": { "key": "task" }, "grace_ms": 500,
        "cgroup": { "memory": 1 },
    });
    assert_eq!(
        from_value::<Request>(exec).unwrap(),
        Request::Exec(Box::new(bare_exec()))
    );

    let open = json!({ "ask": "open_session", "key": "k", "spec": { "new": [1] }, "newer": 1 });
    let spec = SessionSpec {
        cwd: None,
        env: None,
        env_remove: Vec::new(),
        extra_env: Vec::new(),
        login_timeout_ms: None,
        umask: None,
        idle_ms: None,
        ttl_ms: None,
    };
    assert_eq!(
        from_value::<Request>(open).unwrap(),
        Request::OpenSession(OpenSession {
            key: "k".into(),
            spec,
            only_existing: false,
        })
    );

    let info = json!({ "ask": "info", "verbose": true });
    assert_eq!(from_value::<Request>(info).unwrap(), Request::Info);

    let hello = json!({ "min_version": 1, "max_version": 9, "build": "b", "colour": "red" });
    assert_eq!(
        from_value::<HostHello>(hello).unwrap(),
        HostHello {
            min_version: 1,
            max_version: 9,
            build: "b".into(),
            required: Vec::new(),
            linger: true,
            max_warm_shells: None,
            heartbeat_ms: None,
        }
    );
}

#[test]
fn missing_required_fields_and_unknown_requests_are_refused() {
    for json in [
        json!({ "ask": "exec", "id": "run-1", "grace_ms": 500 }),
        json!({ "ask": "exec", "session": { "key": "task" }, "grace_ms": 500 }),
        json!({ "ask": "open_session", "key": "k" }),
        json!({ "ask": "teleport" }),
        json!({}),
    ] {
        assert!(from_value::<Request>(json.clone()).is_err(), "{json}");
    }
}

#[test]
fn a_note_of_the_future_is_left_out_and_the_rest_is_read() {
    let done = json!({ "ok": {
        "outcome": { "exited": 0 }, "cause": "ended", "cwd": "/", "stdout_bytes": 3,
        "stderr_bytes": 0, "timings": { "spawn_us": 1, "run_us": 2, "drain_us": 3, "warm": true },
        "notes": [
            "state_not_captured", "unheard_of", { "no_bash": { "shell": "/bin/sh" } },
            { "clock_skew": { "seconds": 7 } },
        ],
    }});
    let expected = ExecDone {
        outcome: Outcome::Exited(0),
        cause: Cause::Ended,
        cwd: "/".into(),
        leftovers: Vec::new(),
        unkillable: Vec::new(),
        spill: None,
        notes: vec![
            Note::StateNotCaptured,
            Note::NoBash {
                shell: "/bin/sh".into(),
            },
        ],
        timings: Timings {
            spawn_us: 1,
            run_us: 2,
            drain_us: 3,
            warm: true,
        },
        stdout_bytes: 3,
        stderr_bytes: 0,
    };
    let reply: Reply<ExecDone> = from_value(done).unwrap();
    assert_eq!(Result::from(reply), Ok(expected));
}

#[test]
fn a_shell_of_the_future_is_left_out_of_a_hello() {
    let hello = json!({
        "version": 1, "build": "b", "incarnation": "i", "os": "linux", "arch": "riscv64",
        "uid": 0, "pid": 7,
        "shells": [{ "kind": "fish", "path": "/bin/fish" }, { "kind": "sh", "path": "/bin/sh" }],
    });
    let hello: GuestHello = from_value(hello).unwrap();
    assert_eq!(
        hello.shells,
        [Shell {
            kind: ShellKind::Sh,
            path: "/bin/sh".into(),
        }]
    );
    assert!(hello.proc_fs);
    assert_eq!(hello.refusal, None);
}

#[test]
fn an_unknown_failure_kind_counts_as_internal() {
    let json = json!({ "failed": { "kind": "sunspots", "message": "too many" } });
    assert_eq!(
        from_value::<Reply<ExecDone>>(json).unwrap(),
        Reply::Failed(Failure::new(FailureKind::Internal, "too many"))
    );
}

#[test]
fn a_guest_accepts_a_host_whose_versions_and_needs_it_meets() {
    let host = |min_version, max_version, required: &[&str]| HostHello {
        min_version,
        max_version,
        build: String::new(),
        required: required.iter().map(ToString::to_string).collect(),
        linger: true,
        max_warm_shells: None,
        heartbeat_ms: None,
    };
    let version = |min, max| HelloError::Version {
        min,
        max,
        guest: PROTOCOL_VERSION,
    };
    assert_eq!(host(1, 1, &[]).accept(&[]), Ok(PROTOCOL_VERSION));
    assert_eq!(
        host(0, 7, &["pty"]).accept(&["x", "pty"]),
        Ok(PROTOCOL_VERSION)
    );
    assert_eq!(host(2, 7, &[]).accept(&[]), Err(version(2, 7)));
    assert_eq!(host(0, 0, &[]).accept(&[]), Err(version(0, 0)));
    assert_eq!(
        host(1, 1, &["pty", "gpu"]).accept(&["pty"]),
        Err(HelloError::Capability {
            capability: "gpu".into()
        })
    );
}
