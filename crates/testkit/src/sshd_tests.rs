use std::process::Output;

use super::*;

/// Runs a command on a host with nothing but what a test is given.
fn ssh(host: &Sshd, command: &str) -> Output {
    Command::new(host.client_folder().join("ssh"))
        .args([
            "-o",
            "StrictHostKeyChecking=accept-new",
            "-o",
            "BatchMode=yes",
        ])
        .args(["-o", "ConnectTimeout=5", host.alias(), command])
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

#[track_caller]
fn says(host: &Sshd, command: &str, expected: &str) {
    let output = ssh(host, command);
    assert_eq!(
        (
            String::from_utf8_lossy(&output.stdout).as_ref(),
            output.status.code()
        ),
        (expected, Some(0)),
        "{}\n{}",
        String::from_utf8_lossy(&output.stderr),
        host.log()
    );
}

#[test]
fn a_host_has_its_own_home_shell_and_disk() {
    let host = Sshd::start();
    let home = host.home();
    says(
        &host,
        "pwd; echo $SHELL",
        &format!("{}\n/bin/bash\n", text(&home)),
    );
    fs::write(home.join(".bashrc"), "echo noise\n").unwrap();
    says(&host, "echo hi", "noise\nhi\n");

    let host = SshdOptions::default()
        .shell("/bin/sh")
        .home_mount("noexec,size=64k")
        .start();
    says(
        &host,
        "echo $SHELL; printf '#!/bin/sh\\n' >x; chmod +x x; ./x 2>/dev/null || echo no",
        "/bin/sh\nno\n",
    );
    assert!(
        !host.home().join("x").exists(),
        "the disk is the host's own"
    );

    let host = SshdOptions::default().force_command("echo forced").start();
    says(&host, "echo asked", "forced\n");
}

#[test]
fn a_host_behind_another_is_reached_through_it() {
    let jump = Sshd::start();
    let host = Sshd::start();
    host.behind_jump(Jump(&jump));
    // The first hop asks by the user's own settings, which a test's client does not have.
    let keys = Command::new("ssh-keyscan")
        .args(["-p", &jump.port().to_string(), jump.address()])
        .output()
        .unwrap();
    fs::write(host.known_hosts(), keys.stdout).unwrap();
    says(&host, "echo there", "there\n");
    assert!(jump.log().contains("Accepted publickey"), "{}", jump.log());
}

#[test]
fn a_host_ends_with_everything_on_it_and_comes_back_at_its_address() {
    let mut host = Sshd::start();
    let port = host.port();
    says(&host, "setsid sleep 600 >/dev/null 2>&1 & echo ok", "ok\n");
    let left = host.visitors().into_iter().map(|process| process.command);
    assert_eq!(left.collect::<Vec<_>>(), ["sleep 600"]);
    host.stop();
    assert_eq!(host.visitors(), []);
    assert!(!ssh(&host, "true").status.success());
    host.restart();
    assert_eq!(host.port(), port);
    says(&host, "echo back", "back\n");
    host.change_host_key();
    let refused = ssh(&host, "true");
    assert_eq!(refused.status.code(), Some(255));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("IDENTIFICATION HAS CHANGED"));
}

#[test]
fn a_network_loses_packets_only_while_it_is_told_to() {
    let net = Net::new();
    let host = SshdOptions::default().behind(&net).start();
    says(&host, "echo one", "one\n");
    net.drop_packets();
    let lost = Command::new(host.client_folder().join("ssh"))
        .args([
            "-o",
            "BatchMode=yes",
            "-o",
            "ConnectTimeout=1",
            host.alias(),
            "true",
        ])
        .output()
        .unwrap();
    assert_eq!(lost.status.code(), Some(255));
    net.pass_packets();
    says(&host, "echo two", "two\n");
}
