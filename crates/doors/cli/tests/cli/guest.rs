//! The guest by itself: where it can live and when it goes.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Program, World, alive, processes_naming, unique_sleep, wait_until};

/// Returns the guest's program.
fn program(world: &World) -> PathBuf {
    let folder = fs::read_dir(world.home.join("guest"))
        .unwrap()
        .flatten()
        .next()
        .unwrap();
    folder.path().join("exoshell-guest")
}

/// A conversation in raw frames, as `docs/protocol.md` writes them.
struct Wire(Child);

const HELLO: u8 = 1;
const REQUEST: u8 = 2;
const REPLY: u8 = 4;
const DATA: u8 = 5;
const FIN: u8 = 0x80;

impl Wire {
    fn attach(mut command: Command) -> Self {
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self(child)
    }

    fn send(&mut self, kind: u8, flags: u8, channel: u32, body: &[u8]) {
        let mut frame = u32::try_from(body.len()).unwrap().to_le_bytes().to_vec();
        frame.extend([kind, flags, 0, 0]);
        frame.extend(channel.to_le_bytes());
        frame.extend(body);
        self.0.stdin.as_mut().unwrap().write_all(&frame).unwrap();
    }

    fn exact(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.0
            .stdout
            .as_mut()
            .unwrap()
            .read_exact(&mut bytes)
            .unwrap();
        bytes
    }

    fn receive(&mut self) -> (u8, Vec<u8>) {
        let header = self.exact(12);
        let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
        (header[4], self.exact(usize::try_from(length).unwrap()))
    }

    /// Does the start of every conversation and returns the guest's hello.
    fn hello(&mut self, nonce: &str) -> Value {
        let preamble = format!("\u{1}EXOSHELL-GUEST {nonce}\n");
        assert_eq!(self.exact(preamble.len()), preamble.as_bytes());
        let hello = json!({"min_version": 1, "max_version": 1, "build": "test", "linger": false});
        self.send(HELLO, 0, 0, hello.to_string().as_bytes());
        let (kind, body) = self.receive();
        assert_eq!(kind, HELLO);
        serde_json::from_slice(&body).unwrap()
    }

    /// Runs a one-shot command; returns its output and the reply.
    fn run(&mut self, channel: u32, command: &str) -> (String, Value) {
        let request = json!({
            "ask": "exec", "id": format!("run-{channel}"), "grace_ms": 500, "lease_ms": 0,
            "session": {"one_shot": {"cwd": "/", "env": [["PATH", "/bin"]]}},
            "merge": true, "stdin": false, "persist": false, "timeout_ms": 20000, "env": [],
        });
        self.send(REQUEST, 0, channel, request.to_string().as_bytes());
        self.send(DATA, FIN, channel, command.as_bytes());
        let mut output = Vec::new();
        loop {
            match self.receive() {
                (DATA, bytes) => output.extend(bytes),
                (REPLY, body) => {
                    let reply = serde_json::from_slice(&body).unwrap();
                    return (String::from_utf8(output).unwrap(), reply);
                }
                _ => {}
            }
        }
    }

    /// Hangs up and waits for the pipe's process.
    fn hang_up(mut self) {
        drop(self.0.stdin.take());
        wait_until(Duration::from_secs(10), "`attach` ends", || {
            self.0.try_wait().unwrap().is_some()
        });
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn jail(world: &World) -> (PathBuf, Command) {
    let jail = world.root().join("jail");
    fs::create_dir(&jail).unwrap();
    fs::copy(program(world), jail.join("exoshell-guest")).unwrap();
    let mut command = Command::new("chroot");
    command
        .arg(&jail)
        .args([
            "/exoshell-guest",
            "attach",
            "--dir",
            "/run/guest",
            "--nonce",
            "0123456789abcdef",
        ])
        .args(["--exit-after-ms", "300"])
        .env_clear()
        .env("PATH", crate::support::PATH);
    (jail, command)
}

fn nobody_stands_in(dir: &Path) {
    wait_until(Duration::from_secs(10), "the guest goes", || {
        processes_naming(dir.to_str().unwrap()).is_empty()
    });
}

#[test]
fn the_guest_starts_in_an_empty_root_that_holds_only_itself() {
    let world = World::new();
    let (jail, command) = jail(&world);
    let mut wire = Wire::attach(command);
    let hello = wire.hello("0123456789abcdef");
    assert_eq!(
        (&hello["version"], &hello["shells"], &hello["proc_fs"]),
        (&json!(1), &json!([]), &json!(false)),
        "{hello}"
    );
    assert!(hello["refusal"].is_null(), "{hello}");
    let (output, reply) = wire.run(1, "echo hi");
    assert_eq!(output, "");
    assert!(reply.to_string().contains("no bash and no sh"), "{reply}");
    wire.hang_up();
    nobody_stands_in(&jail);
    assert!(!jail.join("run/guest/guest.sock").exists());
}

#[test]
fn without_proc_and_with_only_a_busybox_commands_run_and_end() {
    let world = World::new();
    let (jail, command) = jail(&world);
    fs::create_dir(jail.join("bin")).unwrap();
    fs::copy("/usr/bin/busybox", jail.join("bin/busybox")).unwrap();
    for applet in ["sh", "sleep", "cat", "echo"] {
        std::os::unix::fs::symlink("busybox", jail.join("bin").join(applet)).unwrap();
    }
    let mut wire = Wire::attach(command);
    let hello = wire.hello("0123456789abcdef");
    assert_eq!(hello["shells"][0]["kind"], "sh", "{hello}");
    assert_eq!(hello["proc_fs"], false);
    let (output, reply) = wire.run(1, "echo hi; cat; exit 3");
    assert_eq!(output, "hi\n");
    assert_eq!(reply["ok"]["outcome"], json!({"exited": 3}), "{reply}");
    let (output, reply) = wire.run(3, "cat <<EOF\nheredoc\nEOF");
    assert_eq!(output, "heredoc\n", "{reply}");
    wire.hang_up();
    nobody_stands_in(&jail);
    let left: Vec<_> = fs::read_dir(jail.join("run/guest"))
        .unwrap()
        .flatten()
        .map(|e| e.file_name())
        // The lock's file stays: a name that is removed could be locked twice.
        .filter(|n| n != "spill" && n != "guest.lock")
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn an_idle_guest_exits_by_itself_and_takes_its_socket_along() {
    let world = World::new();
    let dir = world.root().join("idle");
    let mut command = Command::new(program(&world));
    command
        .args(["start", "--exit-after-ms", "300", "--dir"])
        .arg(&dir)
        .env_clear();
    let ran = Program::start(command, b"").finish();
    assert_eq!(
        (ran.code(), ran.text(), ran.talk()),
        (0, String::new(), String::new())
    );
    assert!(
        dir.join("guest.sock").exists(),
        "it listens when `start` returns"
    );
    nobody_stands_in(&dir);
    assert!(!dir.join("guest.sock").exists());
}

#[test]
fn any_number_of_starts_makes_one_guest() {
    let world = World::new();
    let dir = world.root().join("once");
    let started: Vec<Program> = (0..12)
        .map(|_| {
            let mut command = Command::new(program(&world));
            command
                .args(["start", "--exit-after-ms", "3000", "--dir"])
                .arg(&dir)
                .env_clear();
            Program::start(command, b"")
        })
        .collect();
    for program in started {
        let ran = program.finish();
        assert_eq!(ran.code(), 0, "{}", ran.talk());
    }
    let all = processes_naming(dir.to_str().unwrap());
    let roots = all
        .iter()
        .filter(|p| !all.iter().any(|other| other.pid == p.parent))
        .count();
    assert_eq!(roots, 1, "{all:#?}");
    nobody_stands_in(&dir);
}

#[test]
fn a_folder_open_to_others_is_refused() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    let dir = world.root().join("open");
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = Command::new(program(&world));
    command.arg("start").arg("--dir").arg(&dir).env_clear();
    let ran = Program::start(command, b"").finish();
    assert_eq!(ran.code(), 125);
    assert!(ran.talk().contains("0700"), "{}", ran.talk());
    assert_eq!(fs::read_dir(&dir).unwrap().count(), 0);
}

#[test]
fn a_guest_that_may_not_linger_goes_with_its_last_connection() {
    let world = World::new().with_config("[places]\nlinger = false\n");
    let sleep = unique_sleep();
    world
        .terminal(&format!("setsid sleep {sleep} & echo hi"))
        .printed("hi\n");
    wait_until(Duration::from_secs(10), "guest and leftovers go", || {
        world.processes().is_empty()
    });
    assert_eq!(processes_naming(&sleep), []);
    let answer = world.terminal("echo again");
    answer.printed("again\n");
    wait_until(Duration::from_secs(10), "the guest goes again", || {
        world.processes().is_empty()
    });
}

#[test]
fn two_homes_never_see_each_other() {
    let [one, two] = [World::new(), World::new()];
    one.terminal("cd /usr; export A=1").printed("");
    two.terminal("echo ${A-unset}; pwd")
        .printed(&format!("unset\n{}\n", two.work.display()));
    assert_ne!(one.guest_pid(), two.guest_pid());
    assert_eq!(two.exoshell(["places", "rm", "--all"]).code(), 0);
    assert!(alive(one.guest_pid()));
    let answer = one.terminal("echo $A; pwd");
    answer.printed("1\n/usr\n");
    assert_eq!(answer.hint(), "");
}

#[test]
fn a_home_too_long_for_a_socket_address_works() {
    let name = ["a", "b", "c"].map(|letter| letter.repeat(80)).join("/");
    let world = World::with_home_name(&name);
    assert!(world.home.as_os_str().len() > 240);
    world.terminal("cd /usr").printed("");
    world.terminal("pwd").printed("/usr\n");
    let awkward = World::with_home_name("with space 'quote' ü\n$(id)");
    awkward
        .terminal("cd /usr; seq 100000 | tail -1")
        .printed("100000\n");
    awkward.terminal("pwd").printed("/usr\n");
}

/// Runs a script of `sh` where no bash can be executed, in a mount namespace of its own.
fn without_bash(world: &World, script: &str) -> crate::support::Ran {
    let empty = world.root().join("empty");
    fs::write(&empty, "").unwrap();
    let mut command = Command::new("unshare");
    command
        .args(["--mount", "sh", "-c"])
        .arg("for b in /usr/bin/bash /bin/bash /usr/local/bin/bash; do [ ! -e $b ] || mount --bind \"$1\" $b || exit 9; done; x=$2; eval \"$3\"; $x places rm --all")
        .arg("sh")
        .arg(&empty)
        .arg(crate::support::EXOSHELL)
        .arg(script);
    world.dress(&mut command);
    Program::start(command, b"").finish()
}

#[test]
fn without_bash_sh_is_used_and_said_once() {
    let world = World::new();
    let script = r#"
$x call terminal '{"command": "cd /usr; export V=\"$(printf \"a\\nb  \\047q\\047 \\\"d\\\" ü\")\"; umask 077; echo hi; echo err >&2; exit 3"}'
echo ----
$x call terminal '{"command": "pwd; umask; printf %s \"$V\"; cat; echo \"[$0]\""}'
echo ----
$x call terminal '{"command": "cat <<EOF\nheredoc\nEOF"}'
echo ----
$x run 'echo one; echo two >&2; exit 5'; echo "code $?"
echo ----
$x call terminal '{"command": "echo partial; sleep 60", "timeout": 1}'
echo ----
$x call terminal '{"command": "cat", "stdin": "given"}'
echo ----
$x call terminal '{"command": "echo \"open"}'
echo ----
$x call terminal '{"command": "trap \"echo bye\" EXIT; cd /tmp"}'
echo ----
$x call terminal '{"command": "pwd"}'
"#;
    let ran = without_bash(&world, script);
    let text = ran.text();
    let parts: Vec<&str> = text.split("----\n").collect();
    assert_eq!(parts.len(), 9, "{text}\n{}", ran.talk());
    let answer = |index: usize| crate::support::Answer::parse(parts[index].as_bytes());
    let first = answer(0);
    assert_eq!(
        (first.output(), first.code()),
        ("hi\nerr\n", 3),
        "{}",
        first.0
    );
    assert!(first.hint().contains("no bash"), "{}", first.0);
    let second = answer(1);
    assert_eq!(
        second.output(),
        "/usr\n0077\na\nb  'q' \"d\" ü[sh]\n",
        "{}",
        second.0
    );
    assert_eq!(second.hint(), "");
    answer(2).printed("heredoc\n");
    assert_eq!(parts[3], "one\ncode 5\n");
    assert!(ran.talk().contains("two\n"), "{}", ran.talk());
    let timeout = answer(4);
    assert_eq!((timeout.code(), timeout.status()), (124, "timeout"));
    assert!(timeout.output().starts_with("partial\n"));
    answer(5).printed("given");
    assert_eq!(answer(6).code(), 2, "{}", answer(6).0);
    answer(7).printed("bye\n");
    answer(8).printed("/tmp\n");
}

#[test]
fn a_guest_from_another_build_folder_and_a_damaged_cache_are_repaired() {
    let world = World::new();
    // Somebody cut the cached program short.
    let path = program(&world);
    fs::remove_file(&path).unwrap();
    fs::write(&path, b"\x7fELF").unwrap();
    world.terminal("echo ok").printed("ok\n");
}

#[test]
fn the_guests_folder_and_socket_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new();
    world.terminal("true").printed("");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let run = world.home.join("run");
    assert_eq!(mode(&run), 0o700);
    for entry in fs::read_dir(&run)
        .unwrap()
        .flatten()
        .filter(|entry| entry.path().is_dir())
    {
        assert_eq!(mode(&entry.path()), 0o700);
        assert_eq!(mode(&entry.path().join("spill")), 0o700);
    }
    assert_eq!(mode(&world.home.join("places")), 0o700);
}
