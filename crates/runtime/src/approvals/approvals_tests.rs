use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tempfile::TempDir;

use super::*;
use crate::config::{ApprovalMode, Config, Environment, Resolved};

/// Says the same to every question, and counts them.
#[derive(Debug)]
struct Says {
    answer: Result<Answer, &'static str>,
    asked: AtomicUsize,
}

impl Approver for Says {
    fn ask<'a>(&'a self, _question: &'a Question) -> ApproverFuture<'a> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move { self.answer.map_err(Into::into) })
    }

    fn name(&self) -> &'static str {
        "test"
    }
}

/// Never answers.
#[derive(Debug)]
struct Silent;

impl Approver for Silent {
    fn ask<'a>(&'a self, _question: &'a Question) -> ApproverFuture<'a> {
        Box::pin(std::future::pending())
    }

    fn name(&self) -> &'static str {
        "silent"
    }
}

fn saying(answer: Result<Answer, &'static str>) -> Arc<Says> {
    Arc::new(Says {
        answer,
        asked: AtomicUsize::new(0),
    })
}

fn runtime(home: &TempDir, change: impl FnOnce(&mut Config)) -> Runtime {
    let mut config = Config::default();
    change(&mut config);
    let environment = Environment::from_pairs([
        ("HOME", "/home/ada"),
        ("EXOSHELL_HOME", home.path().to_str().unwrap()),
    ])
    .in_directory("/home/ada/work");
    let config = Resolved::load(&environment, config).unwrap();
    Runtime::new(config, environment)
}

async fn try_command(runtime: &Runtime, task: &str, command: &str) -> Result<(), Refusal> {
    let slot = runtime.local_slot().unwrap();
    let mut intent = Intent::new(AttemptKind::Command, task, &slot, command);
    intent.directory = Some("/home/ada/work".to_owned());
    intent.workspace.clone_from(&intent.directory);
    match runtime.admit(&intent).await {
        Ok(admitted) => {
            admitted.end(&Outcome::new(Ended::Done)).unwrap();
            Ok(())
        }
        Err(RuntimeError::Refused(refusal)) => Err(*refusal),
        Err(other) => panic!("{other}"),
    }
}

async fn kind(runtime: &Runtime, command: &str) -> Option<RefusalKind> {
    let tried = try_command(runtime, "t", command).await;
    tried.err().map(|refusal| refusal.kind)
}

#[tokio::test]
async fn a4_where_nobody_can_be_asked_nothing_runs() {
    let home = TempDir::new().unwrap();
    let runtime = runtime(&home, |_| {});
    assert_eq!(kind(&runtime, "ls").await, None);
    let refusal = try_command(&runtime, "t", "rm -rf build")
        .await
        .unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Required);
    assert_eq!(refusal.pattern_key, "recursive-delete:workspace");
    let id = refusal.approval_id.unwrap();
    // The same question again is the same question.
    let again = try_command(&runtime, "t", "rm -rf build")
        .await
        .unwrap_err();
    assert_eq!(again.approval_id.as_deref(), Some(id.as_str()));
    assert_eq!(runtime.approvals().questions.len(), 1);
}

#[tokio::test]
async fn a4_an_approver_that_fails_or_never_answers_means_no() {
    let home = TempDir::new().unwrap();
    let failing = runtime(&home, |_| {}).with_approver(saying(Err("no connection")));
    assert_eq!(kind(&failing, "rm -rf x").await, Some(RefusalKind::Denied));
    let silent = runtime(&home, |config| config.approval.timeout_seconds = Some(0.05))
        .with_approver(Arc::new(Silent));
    assert_eq!(kind(&silent, "rm -rf x").await, Some(RefusalKind::Denied));
}

#[tokio::test]
async fn a_block_is_never_asked_about_and_no_mode_unlocks_it() {
    let home = TempDir::new().unwrap();
    for mode in [
        ApprovalMode::Ask,
        ApprovalMode::Workspace,
        ApprovalMode::Auto,
        ApprovalMode::Deny,
    ] {
        let approver = saying(Ok(Answer::Always));
        let runtime = runtime(&home, |config| config.approval.mode = Some(mode))
            .with_approver(approver.clone());
        assert_eq!(kind(&runtime, "rm -rf /").await, Some(RefusalKind::Blocked));
        assert_eq!(approver.asked.load(Ordering::Relaxed), 0);
    }
}

#[tokio::test]
async fn modes_decide_what_is_asked() {
    let home = TempDir::new().unwrap();
    let with = |mode| {
        runtime(&home, |config: &mut Config| {
            config.approval.mode = Some(mode);
        })
    };
    let auto = with(ApprovalMode::Auto);
    assert_eq!(kind(&auto, "git push --force").await, None);
    let deny = with(ApprovalMode::Deny);
    assert_eq!(
        kind(&deny, "git push --force").await,
        Some(RefusalKind::Denied)
    );
    let workspace = with(ApprovalMode::Workspace);
    assert_eq!(kind(&workspace, "rm -rf build; bash -c ls").await, None);
    assert_eq!(
        kind(&workspace, "rm -rf /srv/x").await,
        Some(RefusalKind::Required)
    );
}

#[tokio::test]
async fn once_covers_one_call_session_a_task_and_always_everything_after() {
    let home = TempDir::new().unwrap();
    let once = saying(Ok(Answer::Once));
    let runtime_once = runtime(&home, |_| {}).with_approver(once.clone());
    for _ in 0..2 {
        assert_eq!(kind(&runtime_once, "rm -rf build").await, None);
    }
    assert_eq!(once.asked.load(Ordering::Relaxed), 2);

    let session = saying(Ok(Answer::Session));
    let runtime_session = runtime(&home, |_| {}).with_approver(session.clone());
    for _ in 0..2 {
        assert_eq!(kind(&runtime_session, "rm -rf build").await, None);
    }
    assert_eq!(session.asked.load(Ordering::Relaxed), 1);
    // Another target class, and another task, are other questions.
    let nobody = runtime(&home, |_| {});
    assert_eq!(kind(&nobody, "rm -rf dist").await, None);
    assert_eq!(
        kind(&nobody, "rm -rf /srv/x").await,
        Some(RefusalKind::Required)
    );
    let other = try_command(&nobody, "other", "rm -rf build").await;
    assert_eq!(other.unwrap_err().kind, RefusalKind::Required);
    // With the session goes what was allowed for it.
    nobody.session_over("t");
    assert_eq!(
        kind(&nobody, "rm -rf dist").await,
        Some(RefusalKind::Required)
    );

    std::fs::write(
        home.path().join("config.toml"),
        "# mine\n[log]\nlevel = \"info\"\n",
    )
    .unwrap();
    let always = runtime(&home, |_| {}).with_approver(saying(Ok(Answer::Always)));
    assert_eq!(kind(&always, "rm -rf build").await, None);
    let text = std::fs::read_to_string(home.path().join("config.toml")).unwrap();
    assert!(
        text.starts_with("# mine\n") && text.contains("recursive-delete:workspace"),
        "{text}"
    );
    let restarted = runtime(&home, |_| {});
    assert_eq!(kind(&restarted, "rm -rf dist").await, None);
    let other = try_command(&restarted, "other", "rm -rf build").await;
    assert!(other.is_ok());
    // Taken back, it is a question again, also for runtimes that run.
    assert_eq!(
        restarted
            .revoke_approvals(Some("recursive-delete:workspace"))
            .unwrap(),
        1
    );
    assert_eq!(
        kind(&always, "rm -rf dist").await,
        None,
        "its own approver says yes"
    );
    restarted.revoke_approvals(None).unwrap();
    assert_eq!(
        kind(&restarted, "rm -rf dist").await,
        Some(RefusalKind::Required)
    );
}

#[tokio::test]
async fn a_stored_yes_covers_exactly_what_was_shown_and_is_spent() {
    let home = TempDir::new().unwrap();
    let runtime = runtime(&home, |_| {});
    let refusal = try_command(&runtime, "t", "rm -rf build")
        .await
        .unwrap_err();
    let id = refusal.approval_id.unwrap();
    runtime.answer_approval(&id, Answer::Once, "ada").unwrap();
    assert_eq!(
        kind(&runtime, "rm -rf build ").await,
        Some(RefusalKind::Required)
    );
    let other = try_command(&runtime, "other", "rm -rf build").await;
    assert_eq!(other.unwrap_err().kind, RefusalKind::Required);
    assert_eq!(kind(&runtime, "rm -rf build").await, None);
    assert_eq!(
        kind(&runtime, "rm -rf build").await,
        Some(RefusalKind::Required)
    );
    // What is answered stays answered.
    assert!(runtime.answer_approval(&id, Answer::Always, "ada").is_err());
    let approvals: Vec<String> = runtime
        .inner
        .audit
        .show(crate::audit::Filter::default())
        .unwrap()
        .filter_map(|record| Some(record.unwrap().get("approver")?.as_str()?.to_owned()))
        .collect();
    assert_eq!(approvals, ["ada"]);
}

#[tokio::test]
async fn a_stored_no_holds_until_the_question_expires() {
    let home = TempDir::new().unwrap();
    let runtime = runtime(&home, |_| {});
    let refusal = try_command(&runtime, "t", "rm -rf build")
        .await
        .unwrap_err();
    let id = refusal.approval_id.unwrap();
    runtime.answer_approval(&id, Answer::Deny, "ada").unwrap();
    for _ in 0..2 {
        let refusal = try_command(&runtime, "t", "rm -rf build")
            .await
            .unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::Denied);
        assert!(
            refusal.to_string().contains("Do not try it again"),
            "{refusal}"
        );
    }
}

#[tokio::test]
async fn a_call_can_wait_for_an_answer_from_another_program() {
    let home = TempDir::new().unwrap();
    let asking = runtime(&home, |config| config.approval.wait_seconds = Some(30.0));
    let answering = runtime(&home, |_| {});
    let person = tokio::spawn(async move {
        let mut changes = answering.watch_approvals().unwrap();
        loop {
            if let Some(question) = answering.approvals().questions.first() {
                let id = question.id.clone();
                return answering
                    .answer_approval(&id, Answer::Session, "ada")
                    .unwrap();
            }
            changes.next().await;
        }
    });
    assert_eq!(kind(&asking, "rm -rf build").await, None);
    assert!(person.await.unwrap().text.contains("rm -rf build"));
    // The session's grant was kept by the one who answered.
    assert_eq!(kind(&asking, "rm -rf dist").await, None);
}

#[tokio::test]
async fn variables_and_input_count_as_much_as_words() {
    let home = TempDir::new().unwrap();
    let runtime = runtime(&home, |_| {});
    let slot = runtime.local_slot().unwrap();
    let plain = Intent {
        directory: Some("/home/ada/work".to_owned()),
        ..Intent::new(AttemptKind::Command, "t", &slot, "bash")
    };
    let refused = async |intent: Intent<'_>| match runtime.admit(&intent).await {
        Ok(admitted) => {
            admitted.end(&Outcome::new(Ended::Done)).unwrap();
            None
        }
        Err(RuntimeError::Refused(refusal)) => Some(refusal),
        Err(other) => panic!("{other}"),
    };
    let with = |input| Intent {
        input,
        ..plain.clone()
    };
    assert!(refused(plain.clone()).await.is_none());
    let env = [("LD_PRELOAD".to_owned(), "/tmp/it's.so".to_owned())];
    let preload = refused(Intent {
        env: &env,
        ..plain.clone()
    });
    let preload = preload.await.unwrap();
    assert!(
        preload.pattern_key.starts_with("env-injection"),
        "{preload:?}"
    );
    let wipe = refused(with(Input::Bytes(b"rm -rf ~\n"))).await.unwrap();
    assert_eq!(wipe.kind, RefusalKind::Blocked);
    assert!(wipe.command.contains("rm -rf ~"), "{}", wipe.command);
    assert!(refused(with(Input::Unknown)).await.is_some());
    let escaping = Intent {
        text: "bash\n}; { cat",
        ..with(Input::Bytes(b"rm -rf build\n"))
    };
    assert!(refused(escaping).await.is_some());
    let defined = Intent {
        text: "ff() { \"$@\"; }",
        persists: true,
        ..plain.clone()
    };
    assert!(refused(defined).await.is_some());
    let data = Intent {
        text: "cat",
        ..with(Input::Bytes(b"rm -rf /\n"))
    };
    assert!(refused(data).await.is_none());
}

#[tokio::test]
async fn what_is_shown_hides_nothing_and_no_secret() {
    let home = TempDir::new().unwrap();
    let runtime = runtime(&home, |_| {});
    let hidden = "rm -rf build \u{202e}# \u{200b}dlrow";
    let refusal = try_command(&runtime, "t", hidden).await.unwrap_err();
    assert!(
        !refusal.command.contains(['\u{202e}', '\u{200b}']),
        "{}",
        refusal.command
    );
    let token = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    let secret = format!("rm -rf build; curl -H 'Authorization: token {token}' x");
    let refusal = try_command(&runtime, "t", &secret).await.unwrap_err();
    assert!(!refusal.command.contains(&token), "{}", refusal.command);
    let stored = serde_json::to_string(&runtime.approvals().questions).unwrap();
    assert!(!stored.contains(&token));
}

#[tokio::test]
async fn v1_every_attempt_leaves_one_start_and_one_end() {
    let home = TempDir::new().unwrap();
    let runtime = runtime(&home, |config| {
        config.guard.deny = Some(vec!["make".to_owned()]);
    });
    for command in ["ls", "rm -rf x", "rm -rf /", "make"] {
        let _ = try_command(&runtime, "t", command).await;
    }
    let records: Vec<serde_json::Value> = runtime
        .inner
        .audit
        .show(crate::audit::Filter::default())
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let told: Vec<String> = records
        .iter()
        .map(|record| {
            let word = |name: &str| record[name].as_str().unwrap_or("-").to_owned();
            match record["record"].as_str() {
                Some("start") => format!("{} {}", word("text"), word("verdict")),
                _ => format!("{} {}", word("ended"), word("error_kind")),
            }
        })
        .collect();
    assert_eq!(
        told,
        [
            "ls allow",
            "done -",
            "rm -rf x ask",
            "denied approval_required",
            "rm -rf / block",
            "denied blocked",
            "make block",
            "denied blocked",
        ]
    );
    assert!(runtime.inner.audit.verify().unwrap().intact);
}

#[tokio::test]
async fn v2_what_cannot_be_written_to_the_audit_is_not_done() {
    let home = TempDir::new().unwrap();
    std::fs::write(
        home.path().join("audit"),
        "a file where the folder should be",
    )
    .unwrap();
    let runtime = runtime(&home, |_| {});
    let slot = runtime.local_slot().unwrap();
    let intent = Intent::new(AttemptKind::Command, "t", &slot, "ls");
    let error = runtime.admit(&intent).await.unwrap_err();
    assert!(error.to_string().contains("audit"), "{error}");
}

#[tokio::test]
async fn the_users_rules_hold_in_containers_where_nothing_else_is_asked() {
    let home = TempDir::new().unwrap();
    let runtime = runtime(&home, |config| {
        config.terminal.backend = Some(crate::config::Backend::Docker);
        config.guard.deny = Some(vec!["git push".to_owned()]);
    });
    let slot = runtime.slot("t").unwrap();
    let verdict = |text: &str| {
        let intent = Intent::new(AttemptKind::Command, "t", &slot, text);
        runtime.inner.policy.judge(&intent, text).verdict
    };
    assert_eq!(verdict("rm -rf /"), Verdict::Allow);
    assert_eq!(verdict("cd x && git push"), Verdict::Block);
    let mounted = self::runtime(&home, |config| {
        config.terminal.backend = Some(crate::config::Backend::Docker);
        config.docker.volumes = Some(vec!["/srv:/srv".to_owned()]);
    });
    let slot = mounted.slot("t").unwrap();
    let intent = Intent::new(AttemptKind::Command, "t", &slot, "rm -rf /");
    assert_eq!(
        mounted.inner.policy.judge(&intent, "rm -rf /").verdict,
        Verdict::Block
    );
}

#[tokio::test]
async fn a3_what_is_written_to_a_shell_is_a_command_and_to_others_data() {
    let home = TempDir::new().unwrap();
    let runtime = runtime(&home, |_| {});
    let slot = runtime.local_slot().unwrap();
    let judged = |process: &str, text: &str| {
        let mut intent = Intent::new(AttemptKind::Input, "t", &slot, text);
        intent.directory = Some("/home/ada/work".to_owned());
        runtime.inner.policy.judge_input(&intent, process).0.verdict
    };
    assert_eq!(judged("bash", "ls -la\n"), Verdict::Allow);
    assert_eq!(judged("bash -i", "rm -rf build\n"), Verdict::Ask);
    assert_eq!(judged("ssh host", "rm -rf /srv/x\n"), Verdict::Ask);
    assert_eq!(judged("bash", "rm -rf /\n"), Verdict::Block);
    assert_eq!(judged("bash", "rm -r"), Verdict::Ask, "half a line");
    assert_eq!(judged("bash", "\u{3}"), Verdict::Allow, "Ctrl-C");
    assert_eq!(judged("cat", "\u{1b}[A"), Verdict::Allow, "an arrow");
    for keys in [
        "\u{1b}[A",
        "\u{1b}[Arm -rf x\n",
        "# ls\u{1}\u{4}\r",
        "l\\\n",
        "^#^^\n",
        "!!\n",
        "fc -s\n",
        "ff() { \"$@\"; }\n",
    ] {
        assert_eq!(judged("bash", keys), Verdict::Ask, "{keys:?}");
    }
    assert_ne!(judged("bash", ":(){ :|:& };:\n"), Verdict::Allow);
    assert_eq!(judged("cat", "rm -rf /\n"), Verdict::Allow);
    assert_eq!(judged("npm init", "yes\n"), Verdict::Allow);
    assert_eq!(judged("psql", "drop table users;\n"), Verdict::Ask);
}
