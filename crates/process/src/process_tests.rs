//! These tests run a real spawner. The test harness is multi-threaded, so each test starts the
//! spawner in a helper process of its own: this test binary, executed again.

use std::os::fd::AsFd as _;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::{Control, Descriptor, Launch, Order, Report, Spawner, identity_of, is_alive};

/// Runs `scenario` in a fresh single-threaded process and fails if it does.
fn in_own_process(name: &str) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            &format!("tests::{name}"),
            "--test-threads=1",
            "--nocapture",
        ])
        .env("EXOSHELL_PROCESS_SCENARIO", name)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Tells whether this is the helper process of a scenario.
fn is_scenario(name: &str) -> bool {
    std::env::var("EXOSHELL_PROCESS_SCENARIO").is_ok_and(|wanted| wanted == name)
}

fn shell(script: &str) -> Launch {
    Launch {
        program: b"/bin/bash".to_vec(),
        arguments: vec![b"bash".to_vec(), b"-c".to_vec(), script.as_bytes().to_vec()],
        environment: vec![b"PATH=/usr/bin:/bin".to_vec()],
        directory: b"/".to_vec(),
        umask: 0o022,
        terminal: false,
        grace_ms: 200,
    }
}

fn start(spawner: &Spawner, launch: &Launch) -> (Control, std::fs::File) {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).unwrap();
    let null = std::fs::File::open("/dev/null").unwrap();
    let descriptors = [
        Descriptor::program(null.as_fd(), 0),
        Descriptor::program(write.as_fd(), 1),
        Descriptor::program(write.as_fd(), 2),
    ];
    (spawner.spawn(launch, &descriptors).unwrap(), read.into())
}

fn next(control: &Control) -> Option<Report> {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        match crate::receive_report(control) {
            Ok(report) => return report,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                assert!(Instant::now() < deadline, "the supervisor is silent");
                let mut fds = [rustix::event::PollFd::new(
                    control,
                    rustix::event::PollFlags::IN,
                )];
                let second = rustix::time::Timespec {
                    tv_sec: 1,
                    tv_nsec: 0,
                };
                rustix::event::poll(&mut fds, Some(&second)).unwrap();
            }
            Err(error) => panic!("{error}"),
        }
    }
}

fn read_line(output: &mut std::fs::File) -> String {
    use std::io::Read as _;
    let mut line = Vec::new();
    let mut byte = [0_u8; 1];
    while output.read(&mut byte).unwrap() == 1 && byte[0] != b'\n' {
        line.push(byte[0]);
    }
    String::from_utf8(line).unwrap()
}

/// A process closes its files before it is gone; waits for the latter.
fn assert_ends(identity: crate::Identity) {
    let deadline = Instant::now() + Duration::from_secs(5);
    while is_alive(identity) {
        assert!(Instant::now() < deadline, "{identity:?} is alive");
        std::thread::yield_now();
    }
}

macro_rules! scenario {
    ($name:ident, $body:expr) => {
        #[test]
        fn $name() {
            if is_scenario(stringify!($name)) {
                let run: fn(&Spawner) = $body;
                // The harness runs this test on a thread of its own, but the spawner only forks
                // from here, and nothing else runs in this process.
                run(&Spawner::fork().unwrap());
            } else if std::env::var_os("EXOSHELL_PROCESS_SCENARIO").is_none() {
                in_own_process(stringify!($name));
            }
        }
    };
}

scenario!(exit_code_and_end_are_reported, |spawner| {
    let (control, mut output) = start(spawner, &shell("echo hi; exit 7"));
    assert!(matches!(next(&control), Some(Report::Started { .. })));
    assert_eq!(
        next(&control),
        Some(Report::Exited {
            code: Some(7),
            signal: None,
            leftovers: false
        })
    );
    assert_eq!(next(&control), None);
    assert_eq!(read_line(&mut output), "hi");
});

scenario!(death_by_signal_is_reported_as_such, |spawner| {
    let (control, _output) = start(spawner, &shell("kill -SEGV $$"));
    assert!(matches!(next(&control), Some(Report::Started { .. })));
    assert_eq!(
        next(&control),
        Some(Report::Exited {
            code: None,
            signal: Some(11),
            leftovers: false
        })
    );
});

scenario!(
    a_missing_program_and_a_missing_directory_are_told_apart,
    |spawner| {
        let mut launch = shell("true");
        launch.program = b"/nonexistent".to_vec();
        let (control, _output) = start(spawner, &launch);
        assert_eq!(
            next(&control),
            Some(Report::Failed {
                stage: crate::Stage::Execute,
                errno: libc::ENOENT
            })
        );
        let mut launch = shell("true");
        launch.directory = b"/nonexistent".to_vec();
        let (control, _output) = start(spawner, &launch);
        assert_eq!(
            next(&control),
            Some(Report::Failed {
                stage: crate::Stage::Directory,
                errno: libc::ENOENT
            })
        );
    }
);

scenario!(
    t1_kill_reaches_setsid_double_forked_and_term_ignoring_descendants,
    |spawner| {
        let script = r#"
        trap "" TERM
        setsid -f bash -c 'echo $$; trap "" TERM; while :; do sleep 1; done'
        (bash -c 'echo $$; trap "" TERM; sleep 300 & sleep 300' &)
        while :; do sleep 1; done"#;
        let (control, mut output) = start(spawner, &shell(script));
        let Some(Report::Started { pid, .. }) = next(&control) else {
            panic!()
        };
        let pids = [
            pid,
            read_line(&mut output).parse().unwrap(),
            read_line(&mut output).parse().unwrap(),
        ];
        let identities = pids.map(|pid| identity_of(pid).unwrap());
        let before = Instant::now();
        crate::send_order(&control, Order::Kill { grace_ms: 300 }).unwrap();
        let mut reports = Vec::new();
        while let Some(report) = next(&control) {
            reports.push(report);
        }
        assert!(before.elapsed() < Duration::from_secs(5));
        assert!(reports.contains(&Report::Killed(vec![])), "{reports:?}");
        assert!(
            reports.contains(&Report::Exited {
                code: None,
                signal: Some(9),
                leftovers: true
            }) || reports.contains(&Report::Exited {
                code: None,
                signal: Some(9),
                leftovers: false
            })
        );
        for identity in identities {
            assert!(!is_alive(identity));
        }
    }
);

scenario!(
    what_outlives_the_program_is_listed_until_it_ends,
    |spawner| {
        let (control, mut output) = start(
            spawner,
            &shell("setsid sleep 300 & until grep -q ^sleep /proc/$!/comm; do :; done; echo $!"),
        );
        assert!(matches!(next(&control), Some(Report::Started { .. })));
        assert_eq!(
            next(&control),
            Some(Report::Exited {
                code: Some(0),
                signal: None,
                leftovers: true
            })
        );
        let pid: u32 = read_line(&mut output).parse().unwrap();
        crate::send_order(&control, Order::List).unwrap();
        let Some(Report::Alive(alive)) = next(&control) else {
            panic!()
        };
        assert_eq!(alive.len(), 1);
        assert_eq!(alive[0].pid, pid);
        assert_eq!(alive[0].command, b"sleep 300");
        crate::send_order(&control, Order::Kill { grace_ms: 1000 }).unwrap();
        assert_eq!(next(&control), Some(Report::Killed(vec![])));
        assert_eq!(next(&control), None);
    }
);

scenario!(a_tree_dies_with_its_guest, |spawner| {
    let (control, mut output) = start(spawner, &shell("setsid sleep 300 & echo $!; sleep 300"));
    let Some(Report::Started { pid, .. }) = next(&control) else {
        panic!()
    };
    let sleeper = identity_of(read_line(&mut output).parse().unwrap()).unwrap();
    let program = identity_of(pid).unwrap();
    drop(control);
    // The output pipe ends when the last of the tree is gone.
    assert_eq!(read_line(&mut output), "");
    assert_ends(sleeper);
    assert_ends(program);
});

scenario!(killing_the_supervisor_leaves_no_orphan, |spawner| {
    let (control, mut output) = start(
        spawner,
        &shell("setsid sleep 300 & echo $!; kill -9 $PPID; sleep 300"),
    );
    let sleeper = identity_of(read_line(&mut output).parse().unwrap()).unwrap();
    // The command may be faster than the report of its start.
    while next(&control).is_some() {}
    assert_eq!(read_line(&mut output), "");
    assert_ends(sleeper);
});

scenario!(
    m4_a_program_gets_its_own_descriptors_and_no_terminal,
    |spawner| {
        let (control, mut output) = start(
            spawner,
            &shell("echo /proc/self/fd/*; (: </dev/tty) 2>/dev/null || echo none; trap -p; umask"),
        );
        assert!(matches!(next(&control), Some(Report::Started { .. })));
        // The glob is expanded by the shell itself, which holds the directory open as number 3.
        assert_eq!(
            read_line(&mut output),
            "/proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 /proc/self/fd/3"
        );
        assert_eq!(read_line(&mut output), "none");
        assert_eq!(read_line(&mut output), "0022");
    }
);

/// Starts a sleeper under a number that was used before, in a pid namespace of our own.
fn sleeper_with_number(pid: u32) -> std::process::Child {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        std::fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string()).unwrap();
        let mut child = Command::new("sleep").arg("300").spawn().unwrap();
        if child.id() == pid {
            return child;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(
            Instant::now() < deadline,
            "the number {pid} is not given out"
        );
    }
}

#[test]
fn t6_a_number_that_was_given_out_again_is_another_process() {
    const NAME: &str = "t6_a_number_that_was_given_out_again_is_another_process";
    if !is_scenario(NAME) {
        // A namespace of its own, so that no other process takes the number meanwhile.
        let output = Command::new("unshare")
            .args(["--pid", "--fork", "--mount-proc", "--kill-child"])
            .arg(std::env::current_exe().unwrap())
            .args(["--exact", &format!("tests::{NAME}"), "--test-threads=1"])
            .env("EXOSHELL_PROCESS_SCENARIO", NAME)
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
        return;
    }
    let mut first = Command::new("sleep").arg("300").spawn().unwrap();
    let old = identity_of(first.id()).unwrap();
    assert!(is_alive(old));
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(!is_alive(old));
    // The clock of start times ticks every ten milliseconds.
    std::thread::sleep(Duration::from_millis(30));
    let mut second = sleeper_with_number(old.pid);
    let new = identity_of(second.id()).unwrap();
    assert_eq!(new.pid, old.pid, "the number was given out again");
    assert_ne!(new, old);
    assert!(is_alive(new));
    assert!(
        !is_alive(old),
        "who was recorded is gone, whoever has the number"
    );
    let kill = rustix::process::Signal::KILL;
    assert_eq!(
        crate::supervisor::send(old, kill),
        Err(rustix::io::Errno::SRCH),
        "a kill of who was recorded is refused"
    );
    assert!(is_alive(new));
    second.kill().unwrap();
    second.wait().unwrap();
}

scenario!(
    orders_that_come_too_late_do_not_cost_the_exit_code,
    |spawner| {
        let (control, mut output) = start(spawner, &shell("echo $PPID; sleep 0.2; exit 7"));
        assert!(matches!(next(&control), Some(Report::Started { .. })));
        let supervisor: i32 = read_line(&mut output).parse().unwrap();
        let supervisor = rustix::process::Pid::from_raw(supervisor).unwrap();
        // The end of the program and three orders wait for the supervisor at the same moment.
        rustix::process::kill_process(supervisor, rustix::process::Signal::STOP).unwrap();
        assert_eq!(read_line(&mut output), "");
        for _ in 0..3 {
            crate::send_order(&control, Order::List).unwrap();
        }
        rustix::process::kill_process(supervisor, rustix::process::Signal::CONT).unwrap();
        let mut reports = Vec::new();
        // The guest takes its time, so the supervisor may be gone before it reads.
        std::thread::sleep(Duration::from_millis(300));
        while let Some(report) = next(&control) {
            let over = matches!(report, Report::Exited { .. });
            reports.push(report);
            if over {
                break;
            }
        }
        let exit = Report::Exited {
            code: Some(7),
            signal: None,
            leftovers: false,
        };
        assert!(reports.contains(&exit), "{reports:?}");
    }
);
