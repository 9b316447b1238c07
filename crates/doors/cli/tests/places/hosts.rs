//! Remote hosts: the shared connection, odd hosts, and every way to fail.

use std::fs;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use exoshell_testkit::{Jump, Sshd, SshdOptions};
use rustix::process::Signal;
use serde_json::json;

use crate::site::{Kind, Site};
use crate::support::{Answer, PATIENCE, quoted, wait_until};

const SECOND: Duration = Duration::from_secs(1);

/// A name that every shell on the way would spoil if it were not quoted.
const AWKWARD: &str = "a b'c\"d$HOME `id` \\n *?!~ #;&|<>(){}[]^=% -x\nnew\tü";

/// Text of a call that says where and with what it runs.
const REPORT: &str = "printf '%s|' \"$PWD\" \"$VALUE\" \"$#\"; cat -- \"$VALUE\"";

/// Asserts that nothing was run, and that both doors tell this.
#[track_caller]
fn fails(site: &Site, kind: &str, reason: &str, words: &[&str]) -> Answer {
    let answer = site.terminal("echo it runs");
    assert_eq!((answer.code(), answer.kind()), (-1, kind), "{}", answer.0);
    assert_eq!(answer.0["error_reason"], reason, "{}", answer.0);
    assert_eq!(answer.output(), "", "{}", answer.0);
    assert_ne!(answer.hint(), "", "no hint: {}", answer.0);
    let ran = site.exoshell(["run", "echo it runs"]);
    assert_eq!(
        (ran.code(), ran.text().as_str()),
        (125, ""),
        "{}",
        ran.talk()
    );
    let told = format!("{} {}", answer.error(), answer.hint());
    for word in words {
        assert!(told.contains(word), "no `{word}`: {told}");
        assert!(ran.talk().contains(word), "no `{word}`: {}", ran.talk());
    }
    answer
}

#[test]
fn twenty_programs_share_one_connection_and_one_may_end() {
    let site = Kind::Ssh.site();
    let home = site.host().home();
    let programs: Vec<_> = (0..20)
        .map(|number| {
            let command = format!(
                "cd; echo x >>in-{number}; until [ -e go ]; do sleep 0.1; done; \
                 echo out {number}; exit {number}"
            );
            site.start_call(&json!({"command": command, "task_id": format!("t{number}")}))
        })
        .collect();
    let count = || {
        (0..20)
            .filter(|n| home.join(format!("in-{n}")).exists())
            .count()
    };
    wait_until(2 * PATIENCE, "all twenty run", || count() == 20);
    let mut programs = programs.into_iter().enumerate();
    let (_, first) = programs.next().unwrap();
    first.signal(Signal::INT);
    let first = Answer::parse(&first.finish().out);
    assert_eq!(
        (first.code(), first.status()),
        (130, "interrupted"),
        "{}",
        first.0
    );
    let (_, killed) = programs.next().unwrap();
    killed.signal(Signal::KILL);
    killed.finish();
    fs::write(home.join("go"), "").unwrap();
    for (number, program) in programs {
        let answer = Answer::parse(&program.finish().out);
        let expected = (format!("out {number}\n"), i64::try_from(number).unwrap());
        assert_eq!(
            (answer.output().to_owned(), answer.code()),
            expected,
            "{}",
            answer.0
        );
        let runs = fs::read_to_string(home.join(format!("in-{number}"))).unwrap();
        assert_eq!(runs, "x\n", "{number} was run twice");
    }
    let log = site.host().log();
    assert_eq!(log.matches("Accepted publickey").count(), 1, "{log}");
}

/// Sends every byte that can be in a name through a place, as everything that has a name.
#[track_caller]
fn awkward_names_survive(site: &Site) {
    let folder = site.enter_folder();
    let path = format!("{folder}/{AWKWARD}");
    let named = quoted(&path);
    let file = quoted(AWKWARD);
    site.terminal(&format!(
        "mkdir -- {named} && cd -- {named} && printf in >{file}"
    ))
    .printed("");
    let task = AWKWARD.replace(['\n', '\t'], " ");
    let answer = site.call(&json!({
        "command": REPORT,
        "workdir": path,
        "env": {"VALUE": AWKWARD},
        "task_id": task,
        "stdin": AWKWARD,
    }));
    answer.printed(&format!("{path}|{AWKWARD}|0|in"));
    let again = site.call(&json!({"command": "cat", "stdin": AWKWARD, "task_id": task}));
    again.printed(AWKWARD);
    site.terminal("printf %s \"$PWD\"").printed(&path);
    let listed = site.json(["places", "info", &task, "--json"]);
    assert!(
        listed.to_string().contains(&json!(task).to_string()),
        "{listed}"
    );
    let ran = site.exoshell([
        "run",
        "--task",
        &task,
        "--workdir",
        &path,
        "--env",
        "VALUE=$x 'y'",
        "pwd; echo \"$VALUE\"",
    ]);
    assert_eq!(ran.text(), format!("{path}\n$x 'y'\n"), "{}", ran.talk());
    site.terminal(&format!("rm -r -- {}", quoted(&folder)))
        .printed("");
}

#[test]
fn awkward_names_survive_bash() {
    awkward_names_survive(&Kind::Ssh.site());
}

#[test]
fn awkward_names_survive_dash() {
    let host = SshdOptions::default().shell("/bin/dash").start();
    awkward_names_survive(&Site::on(host, &[]));
}

#[test]
fn awkward_names_survive_fish() {
    let host = SshdOptions::default().shell("/usr/bin/fish").start();
    awkward_names_survive(&Site::on(host, &[]));
}

#[test]
fn awkward_names_survive_zsh() {
    let host = SshdOptions::default().shell("/usr/bin/zsh").start();
    awkward_names_survive(&Site::on(host, &[]));
}

#[test]
fn awkward_names_survive_a_launcher() {
    awkward_names_survive(&Kind::Command.site());
}

#[test]
fn a_talkative_bashrc_does_no_harm() {
    let site = Kind::Ssh.site();
    let noise = "printf 'welcome\\n\\001\\002no newline'; head -c 20000 /dev/zero; echo oops >&2\n";
    fs::write(site.host().home().join(".bashrc"), noise).unwrap();
    site.terminal("echo one; echo two >&2")
        .printed("one\ntwo\n");
    let ran = site.exoshell(["run", "echo one; echo two >&2"]);
    assert_eq!(
        (ran.code(), ran.text(), ran.talk()),
        (0, "one\n".into(), "two\n".into())
    );
    let id = site.begin("echo behind", &json!({}));
    site.wait_for_end(&id);
    assert_eq!(site.logs(&id), "behind\n");
}

#[test]
fn an_alias_of_the_users_configuration_is_a_host() {
    let site = Kind::Local.site();
    let host = Sshd::start();
    let path = format!(
        "{}:{}",
        host.client_folder().display(),
        crate::support::PATH
    );
    let run = |words: &[&str]| {
        let mut command = site.command(words);
        command.env("PATH", &path);
        crate::support::Program::start(command, b"").finish()
    };
    let ran = run(&["run", "--host", host.alias(), "echo $SSH_CONNECTION; pwd"]);
    assert_eq!(ran.code(), 0, "{}", ran.talk());
    let expected = format!("127.0.0.1 {}\n{}\n", host.port(), host.home().display());
    assert!(ran.text().ends_with(&expected), "{}", ran.text());
    // Through another host, by the same name.
    let (target, jump) = (Sshd::start(), Sshd::start());
    target.behind_jump(Jump(&jump));
    let known = |host: &Sshd| {
        let key = fs::read_to_string(host.key().with_file_name("host_key.pub")).unwrap();
        format!("[127.0.0.1]:{} {key}", host.port())
    };
    fs::write(target.known_hosts(), known(&jump)).unwrap();
    let path = format!(
        "{}:{}",
        target.client_folder().display(),
        crate::support::PATH
    );
    let mut command = site.command(["run", "--host", target.alias(), "--task", "far", "pwd"]);
    command
        .env("PATH", &path)
        .env("EXOSHELL_HOME", site.home.join("../other"));
    fs::create_dir(site.home.join("../other")).unwrap();
    let ran = crate::support::Program::start(command, b"").finish();
    assert_eq!(
        (ran.code(), ran.text()),
        (0, format!("{}\n", target.home().display())),
        "{}",
        ran.talk()
    );
    assert!(jump.log().contains("Accepted publickey"), "{}", jump.log());
    let mut command = site.command(["places", "rm", "--all"]);
    command
        .env("PATH", &path)
        .env("EXOSHELL_HOME", site.home.join("../other"));
    assert_eq!(
        crate::support::Program::start(command, b"").finish().code(),
        0
    );
    assert_eq!(run(&["places", "rm", "--all"]).code(), 0);
    wait_until(10 * SECOND, "nothing runs on the hosts", || {
        [&host, &target, &jump]
            .iter()
            .all(|host| host.visitors().is_empty())
    });
}

#[test]
fn a_changed_host_key_is_refused_with_what_to_do() {
    let mut site = Kind::Ssh.site();
    site.terminal("echo first").printed("first\n");
    assert_eq!(site.exoshell(["places", "rm", "--all"]).code(), 0);
    site.host_mut().change_host_key();
    let known = site.host().known_hosts();
    let words = [
        "ssh-keygen -f",
        known.to_str().unwrap(),
        "ask whoever runs the host",
    ];
    let answer = fails(&site, "unreachable", "host_key_changed", &words);
    // What it says helps.
    let hint = answer.hint();
    let command = hint.get(hint.find("ssh-keygen").unwrap()..).unwrap();
    let status = std::process::Command::new("sh")
        .args(["-c", command])
        .output()
        .unwrap();
    assert!(status.status.success(), "{command}: {status:?}");
    site.terminal("echo second").printed("second\n");
}

#[test]
fn a_host_that_refuses_is_not_asked_again() {
    let mut site = Kind::Ssh.site();
    site.host_mut().stop();
    let began = Instant::now();
    fails(
        &site,
        "unreachable",
        "refused",
        &["nobody listens", "check the port"],
    );
    assert!(began.elapsed() < 4 * SECOND, "{:?}", began.elapsed());
}

#[test]
fn a_name_that_means_nothing_is_an_unknown_host() {
    let site = Site::on(Sshd::start(), &[("ssh.host", "\"no-such-host.invalid\"")]);
    let words = ["no-such-host.invalid", "check the name"];
    fails(&site, "unreachable", "unknown_host", &words);
}

#[test]
fn a_key_that_is_not_accepted_is_said() {
    let (host, other) = (Sshd::start(), Sshd::start());
    let key = json!(other.key()).to_string();
    let site = Site::on(host, &[("ssh.key", &key)]);
    let words = ["does not accept our key", "ssh-copy-id"];
    fails(&site, "unreachable", "auth_failed", &words);
    let missing = Site::on(Sshd::start(), &[("ssh.key", "\"/nowhere/key\"")]);
    fails(&missing, "config", "bad_key", &["/nowhere/key"]);
}

#[test]
fn a_full_host_says_how_much_to_free() {
    let host = SshdOptions::default()
        .home_mount("size=64k")
        .temporary_mount("size=64k")
        .start();
    let site = Site::on(host, &[]);
    fails(
        &site,
        "unreachable",
        "disk_full",
        &["No space left", "free some space"],
    );
}

#[test]
fn homes_that_hold_no_guest_are_passed_over() {
    // A name of our own: others on this machine may make and remove plainer ones.
    let nowhere = format!("/no-home-{}/home", std::process::id());
    let homes = [
        (SshdOptions::default().home(Path::new(&nowhere)), "/"),
        (SshdOptions::default().home_mount("noexec"), ""),
        (SshdOptions::default().home_mount("size=64k"), ""),
    ];
    for (options, home) in homes {
        let site = Site::on(options.temporary_mount("mode=1777").start(), &[]);
        let answer = site.terminal("pwd; ls -d /var/tmp/exoshell-0");
        let home = if home.is_empty() {
            site.host().home().display().to_string()
        } else {
            home.to_owned()
        };
        answer.printed(&format!("{home}\n/var/tmp/exoshell-0\n"));
        let doctor = site.json(["doctor", "--backend", "ssh", "--json"]);
        assert!(doctor.to_string().contains("/exoshell"), "{doctor}");
    }
}

/// Something before a host that hangs up on the first callers, and passes on the rest.
struct Doorkeeper {
    port: u16,
    callers: Arc<AtomicUsize>,
}

impl Doorkeeper {
    fn before(port: u16, turned_away: usize) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let own = listener.local_addr().unwrap().port();
        let callers = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&callers);
        std::thread::spawn(move || {
            for caller in listener.incoming().flatten() {
                if count.fetch_add(1, Ordering::SeqCst) >= turned_away {
                    let host = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap();
                    pass(caller.try_clone().unwrap(), host.try_clone().unwrap());
                    pass(host, caller);
                }
            }
        });
        Self { port: own, callers }
    }

    fn callers(&self) -> usize {
        self.callers.load(Ordering::SeqCst)
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream) {
    std::thread::spawn(move || {
        let _ = io::copy(&mut from, &mut to);
        let _ = to.flush();
        let _ = to.shutdown(Shutdown::Write);
    });
}

#[test]
fn a_host_that_hangs_up_is_asked_again_after_2_and_4_seconds() {
    let host = Sshd::start();
    let door = Doorkeeper::before(host.port(), 2);
    let port = door.port.to_string();
    let site = Site::on(host, &[("ssh.port", &port)]);
    let began = Instant::now();
    site.terminal("cd; echo x >>runs; cat runs").printed("x\n");
    let took = began.elapsed();
    assert!(took > 6 * SECOND && took < 14 * SECOND, "{took:?}");
    assert_eq!(door.callers(), 3);
}

#[test]
fn a_host_that_always_hangs_up_is_asked_four_times() {
    let host = Sshd::start();
    let door = Doorkeeper::before(host.port(), usize::MAX);
    let port = door.port.to_string();
    let site = Site::on(host, &[("ssh.port", &port)]);
    let began = Instant::now();
    let answer = site.terminal("echo it runs");
    let told = (answer.code(), answer.kind(), &answer.0["error_reason"]);
    assert_eq!(
        told,
        (-1, "unreachable", &json!("interrupted")),
        "{}",
        answer.0
    );
    assert!(began.elapsed() > 14 * SECOND, "{:?}", began.elapsed());
    assert_eq!(door.callers(), 4);
}

#[test]
fn a_private_folder_is_left_on_the_host_and_nothing_else() {
    let site = Kind::Ssh.site();
    site.terminal("true").printed("");
    let home = site.host().home();
    let names: Vec<_> = fs::read_dir(&home)
        .unwrap()
        .flatten()
        .map(|entry| entry.file_name())
        .collect();
    assert_eq!(names, [".cache"]);
    let mode = fs::metadata(home.join(".cache/exoshell"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_host_that_never_answers_takes_no_longer_than_the_call_may() {
    let host = Sshd::start();
    // It takes connections and says nothing.
    let deaf = TcpListener::bind((host.address(), 0)).unwrap();
    let port = deaf.local_addr().unwrap().port().to_string();
    let site = Site::on(host, &[("ssh.port", &port)]);
    let began = Instant::now();
    let ran = site.exoshell(["run", "--timeout", "5", "echo never"]);
    assert_eq!(ran.code(), 125, "{}", ran.talk());
    assert!(
        ran.talk().contains("not reached within 5 s"),
        "{}",
        ran.talk()
    );
    assert!(began.elapsed() < 10 * SECOND, "{:?}", began.elapsed());
    assert_eq!(site.json(["places", "ls", "--json"])["places"], json!([]));
}
