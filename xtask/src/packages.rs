//! The Debian packages the tests need; missing ones are installed, never skipped.

use std::process::{Command, Stdio};

use crate::Result;

/// Package and why it is needed. A test that starts a new program adds it here.
const PACKAGES: [(&str, &str); 30] = [
    ("bash", "the shell every session runs"),
    ("binutils", "GNU ld, which reports NSS in the static guest"),
    ("bsdutils", "script, which gives a test a terminal"),
    ("busybox-static", "a place with nothing but a busybox"),
    ("catatonit", "the init of Podman's containers"),
    ("diffutils", "diff, whose exit code 1 is explained"),
    ("fish", "its completions, and a login shell of a host"),
    ("git", "commands that want a pager or an editor"),
    ("iproute2", "network namespaces"),
    ("iptables", "packets that are lost"),
    ("less", "a pager on a terminal"),
    ("libc6-dev", "libc.a, which the static guest is linked with"),
    ("man-db", "man, which wants a pager"),
    ("mawk", "commands of the tests"),
    ("mmdebstrap", "the images of the tests"),
    ("mount", "a small disk that is full"),
    ("openssh-client", "the ssh backend"),
    ("openssh-server", "a host for the ssh backend"),
    ("openssl", "a host whose only hash tool it is"),
    ("passwd", "useradd, for a user with a password"),
    ("perl", "shasum, likewise"),
    ("procps", "ps, pkill and top"),
    ("python3", "a REPL on a terminal"),
    ("sudo", "passwords for it"),
    ("tcsh", "a login shell that is no POSIX shell"),
    (
        "tmux",
        "a terminal for attach, and the plain tool beside ours",
    ),
    ("uidmap", "containers without root"),
    ("util-linux", "setsid, unshare, setpriv"),
    ("vim-tiny", "an editor on a terminal"),
    ("zsh", "its completions, and a login shell of a host"),
];

/// Installs what is missing.
pub(crate) fn install_missing() -> Result<()> {
    let Some(missing) = missing()? else {
        println!("no dpkg here: make sure that these are installed:");
        for (package, reason) in PACKAGES {
            println!("  {package:<15} {reason}");
        }
        return Ok(());
    };
    if missing.is_empty() {
        println!("all {} are there", PACKAGES.len());
        return Ok(());
    }

    let install = [
        &["install", "--yes", "--no-install-recommends"],
        missing.as_slice(),
    ]
    .concat();
    let Some(prefix) = root_prefix() else {
        return Err(format!(
            "not root and no sudo without password; run as root: apt-get {}",
            install.join(" ")
        )
        .into());
    };
    apt_get(prefix, &["update"])?;
    apt_get(prefix, &install)
}

/// Returns the missing packages, or nothing where packages are not Debian's.
fn missing() -> Result<Option<Vec<&'static str>>> {
    let query = Command::new("dpkg-query")
        .args([
            "--show",
            "--showformat",
            "${Package} ${db:Status-Status}\\n",
        ])
        .args(PACKAGES.map(|(package, _)| package))
        // It complains about packages it never heard of; those are just missing.
        .stderr(Stdio::null())
        .output();
    match query {
        Ok(output) => Ok(Some(missing_from(&String::from_utf8_lossy(&output.stdout)))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("cannot run dpkg-query: {error}").into()),
    }
}

/// Reads lines of `<package> <status>`.
fn missing_from(listing: &str) -> Vec<&'static str> {
    let is_installed = |package: &str| {
        listing
            .lines()
            .any(|line| line.split_once(' ') == Some((package, "installed")))
    };
    PACKAGES
        .iter()
        .map(|(package, _)| *package)
        .filter(|package| !is_installed(package))
        .collect()
}

/// Returns what to put before a command so that it runs as root, if that is possible without asking.
fn root_prefix() -> Option<&'static [&'static str]> {
    if is_quiet_success("id", &["-u"], "0") {
        Some(&[])
    } else if is_quiet_success("sudo", &["-n", "id", "-u"], "0") {
        Some(&["sudo", "-n"])
    } else {
        None
    }
}

fn is_quiet_success(program: &str, arguments: &[&str], expected: &str) -> bool {
    let output = Command::new(program)
        .args(arguments)
        .stderr(Stdio::null())
        .output();
    output.is_ok_and(|output| {
        output.status.success() && String::from_utf8_lossy(&output.stdout).trim() == expected
    })
}

fn apt_get(prefix: &[&str], arguments: &[&str]) -> Result<()> {
    // `env` because sudo does not pass variables on.
    let words = [
        prefix,
        &["env", "DEBIAN_FRONTEND=noninteractive"],
        // Servers are wanted, but the tests start their own.
        &["RUNLEVEL=1", "apt-get"],
        arguments,
    ]
    .concat();
    let shown = words.join(" ");
    println!("{shown}");
    let mut words = words.into_iter();
    let status = Command::new(words.next().unwrap_or("env"))
        .args(words)
        .status();
    match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("`{shown}` failed ({status})").into()),
        Err(error) => Err(format!("cannot run `{shown}`: {error}").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_counts_only_when_it_is_installed() {
        let names = PACKAGES.map(|(package, _)| package);
        assert_eq!(missing_from(""), names);
        let all = names.map(|name| format!("{name} installed\n")).concat();
        assert_eq!(missing_from(&all), [""; 0]);
        assert_eq!(
            missing_from(&all.replace("bash installed", "bash config-files")),
            ["bash"]
        );
    }
}
