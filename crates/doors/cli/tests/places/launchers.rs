//! Places behind a launcher: other roots, other namespaces, one for each task.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;
use tempfile::TempDir;

use crate::site::{Site, Sleep, refused};

/// A root folder with busybox and nothing else.
fn bare_root(root: &Path) {
    for name in ["bin", "tmp", "root"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    fs::copy("/bin/busybox", root.join("bin/busybox")).unwrap();
    let made = Command::new("chroot")
        .arg(root)
        .args(["/bin/busybox", "--install", "-s", "/bin"])
        .status();
    assert!(made.unwrap().success());
}

fn folder() -> TempDir {
    tempfile::Builder::new()
        .prefix("exo-root-")
        .tempdir()
        .unwrap()
}

#[test]
fn a_chroot_with_only_busybox_is_a_place() {
    let root = folder();
    bare_root(root.path());
    let launch = json!([
        "env",
        "-i",
        "HOME=/root",
        "PATH=/usr/sbin:/bin",
        "chroot",
        root.path()
    ]);
    let site = Site::behind(&[("command.launch", &launch.to_string())]);
    let answer = site.terminal("cd /tmp; export A=1; ls /; cat -- /etc/passwd");
    assert!(
        answer.output().starts_with("bin\nroot\ntmp\n"),
        "{}",
        answer.0
    );
    assert!(answer.hint().contains("no bash here"), "{}", answer.0);
    site.terminal("pwd; echo $A").printed("/tmp\n1\n");
    let id = site.begin("echo behind; read x; echo \"$x\"", &json!({}));
    site.process("submit", &id, &json!({"data": "in"}));
    site.wait_for_end(&id);
    assert_eq!(site.logs(&id), "behind\nin\n");
}

#[test]
fn namespaces_of_its_own_are_a_place() {
    let launch = json!(["unshare", "--uts", "--net", "{guest}"]);
    let site = Site::behind(&[("command.launch", &launch.to_string())]);
    site.terminal("hostname elsewhere; cd /usr").printed("");
    // The guest stays, and with it the namespaces.
    site.terminal("hostname; pwd; ls /sys/class/net").output();
    site.terminal("hostname; pwd").printed("elsewhere\n/usr\n");
    let interfaces = site.terminal("cat /proc/net/dev | grep -c :");
    interfaces.printed("1\n");
}

#[test]
fn every_task_has_a_root_of_its_own_that_goes_with_it() {
    let roots = folder();
    for task in ["one", "two"] {
        bare_root(&roots.path().join(task));
    }
    let inside = |name: &str| format!("{}/{name}", roots.path().display());
    let launch = json!([
        "env",
        "-i",
        "HOME=/root",
        "PATH=/usr/sbin:/bin",
        "chroot",
        inside("{task}"),
        "{guest}"
    ]);
    let put = json!(["cp", "{file}", inside("{task}{target}")]);
    let destroy = json!(["rm", "-rf", "--one-file-system", inside("{task}")]);
    let site = Site::behind(&[
        ("command.launch", &launch.to_string()),
        ("command.guest_path", "\"/bin/guest-{hash}\""),
        ("command.put", &put.to_string()),
        ("command.destroy", &destroy.to_string()),
    ]);
    site.task("one", "echo 1 >/tmp/mark; export A=one")
        .printed("");
    site.task("two", "cat /tmp/mark; echo ${A-unset}; echo 2 >/tmp/mark");
    assert_eq!(fs::read_to_string(inside("one/tmp/mark")).unwrap(), "1\n");
    assert_eq!(fs::read_to_string(inside("two/tmp/mark")).unwrap(), "2\n");
    assert_eq!(site.exoshell(["places", "rm", "one"]).code(), 0);
    assert!(!Path::new(&inside("one")).exists());
    site.task("two", "cat /tmp/mark").printed("2\n");
    assert_eq!(site.exoshell(["places", "rm", "--all"]).code(), 0);
    assert!(!Path::new(&inside("two")).exists());
}

#[test]
fn a_destroy_that_fails_is_said_and_the_place_stays_listed() {
    let destroy = json!(["sh", "-c", "echo cannot >&2; test -e go"]).to_string();
    let site = Site::behind(&[
        ("command.launch", "[\"env\", \"{guest}\"]"),
        ("command.destroy", &destroy),
    ]);
    site.terminal("true").printed("");
    let ran = site.exoshell(["places", "rm", "default"]);
    assert_ne!(ran.code(), 0);
    assert!(
        format!("{}{}", ran.text(), ran.talk()).contains("cannot"),
        "{}",
        ran.talk()
    );
    assert!(ran.talk().contains("--force"), "{}", ran.talk());
    assert!(site.exoshell(["places", "ls"]).text().contains("command"));
    // Forgotten is not removed, which is said.
    let ran = site.exoshell(["places", "rm", "default", "--force"]);
    assert_eq!(ran.code(), 0, "{}", ran.talk());
    assert!(
        ran.talk().contains("still there") && ran.talk().contains("cannot"),
        "{}",
        ran.talk()
    );
    assert_eq!(site.json(["places", "ls", "--json"])["places"], json!([]));
    site.terminal("true").printed("");
    assert_ne!(site.exoshell(["places", "rm", "--all"]).code(), 0);
    let ran = site.exoshell(["places", "rm", "--all", "--force"]);
    assert_eq!(ran.code(), 0, "{}", ran.talk());
    assert_eq!(site.json(["places", "ls", "--json"])["places"], json!([]));
    fs::write(site.work.join("go"), "").unwrap();
}

#[test]
fn a_launcher_that_never_answers_takes_no_longer_than_the_call_may() {
    let sleep = Sleep::new();
    let launch = json!(["sh", "-c", sleep.fill("exec sleep N")]).to_string();
    let site = Site::behind(&[("command.launch", &launch)]);
    let began = Instant::now();
    let ran = site.exoshell(["run", "--timeout", "5", "echo never"]);
    assert_eq!(ran.code(), 125, "{}", ran.talk());
    assert!(
        ran.talk().contains("not reached within 5 s"),
        "{}",
        ran.talk()
    );
    let answer = site.call(&json!({"command": "echo never", "timeout": 1}));
    refused(&answer, -1, "unreachable", "nothing was run");
    assert_eq!(answer.0["error_reason"], "too_slow", "{}", answer.0);
    assert!(
        began.elapsed() < Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
    sleep.ends_within(Duration::from_secs(10));
}

#[test]
fn a_place_out_of_reach_is_one_word_in_the_table_and_explained_elsewhere() {
    let script = "test -e locked || exec \"$@\"; cat locked >&2; exit 9";
    let launch = json!(["sh", "-c", script, "sh"]).to_string();
    let site = Site::behind(&[("command.launch", &launch)]);
    site.terminal("true").printed("");
    fs::write(site.work.join("locked"), "the door is shut\n").unwrap();
    let table = site.exoshell(["places", "ls"]).text();
    assert!(
        table.contains("  unreachable  ") && !table.contains("door"),
        "{table}"
    );
    for words in [
        &["places", "ls", "--json"][..],
        &["places", "info", "default"],
    ] {
        let text = site.exoshell(words).text();
        assert!(text.contains("the door is shut"), "{text}");
    }
    let answer = site.terminal("true");
    let hint = answer.hint();
    assert!(
        hint.contains("by hand") && !hint.contains("bashrc"),
        "{}",
        answer.0
    );
    fs::remove_file(site.work.join("locked")).unwrap();
}

#[test]
fn launchers_that_lead_nowhere_say_why() {
    let cases = [
        (
            "[\"no-such-launcher\"]",
            "config",
            "no_program",
            "no-such-launcher",
        ),
        (
            "[\"sh\", \"-c\", \"echo the door is locked >&2; exit 9\"]",
            "unreachable",
            "does_not_start",
            "the door is locked",
        ),
        ("[]", "config", "bad_setting", "launch"),
    ];
    for (launch, kind, reason, word) in cases {
        let site = Site::behind(&[("command.launch", launch)]);
        let answer = site.terminal("echo it runs");
        refused(&answer, -1, kind, word);
        assert_eq!(answer.0["error_reason"], reason, "{}", answer.0);
        assert_ne!(answer.hint(), "", "{}", answer.0);
    }
}
