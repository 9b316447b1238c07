//! Names the build: version and commit.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=../../../.git/HEAD");
    println!("cargo::rerun-if-changed=../../../.git/index");
    let commit = Command::new("git")
        .args(["rev-parse", "--short=10", "HEAD"])
        .output()
        .ok()
        .filter(|output| output.status.success())
        .map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let name = match commit {
        Some(commit) => format!("{version} ({commit})"),
        None => version,
    };
    println!("cargo::rustc-env=EXOSHELL_VERSION={name}");
}
