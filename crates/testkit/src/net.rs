//! A network that loses packets when it is told to.

use std::process::Command;
use std::sync::atomic::{AtomicU16, Ordering};

use crate::machine::{attempt, run};

/// A network namespace and a cable to it. Only packets on this cable are ever lost; the machine's
/// own firewall is not touched.
#[derive(Debug)]
pub struct Net {
    name: String,
    subnet: String,
}

impl Net {
    /// Makes a namespace and connects it to this machine.
    #[track_caller]
    pub fn new() -> Self {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let pid = std::process::id() & 0xff_ffff;
        // Names of interfaces have at most 15 bytes.
        let name = format!("exn{pid:x}-{number:x}");
        let subnet = free_subnet(pid.wrapping_mul(31) + u32::from(number));
        let net = Self { name, subnet };
        let (outside, inside) = (net.cable("o"), net.cable("i"));
        run(ip().args(["netns", "add", &net.name]));
        run(ip()
            .args([
                "link", "add", &outside, "type", "veth", "peer", "name", &inside,
            ])
            .args(["netns", &net.name]));
        run(ip().args([
            "address",
            "add",
            &format!("{}.1/30", net.subnet),
            "dev",
            &outside,
        ]));
        run(ip().args(["link", "set", &outside, "up"]));
        run(&mut net.ip_inside(&[
            "address",
            "add",
            &format!("{}/30", net.address()),
            "dev",
            &inside,
        ]));
        run(&mut net.ip_inside(&["link", "set", &inside, "up"]));
        run(&mut net.ip_inside(&["link", "set", "lo", "up"]));
        net
    }

    fn cable(&self, end: &str) -> String {
        format!("{}{end}", self.name)
    }

    fn ip_inside(&self, words: &[&str]) -> Command {
        let mut command = ip();
        command.args(["-netns", &self.name]).args(words);
        command
    }

    /// Returns the address of the namespace, as this machine reaches it.
    pub fn address(&self) -> String {
        format!("{}.2", self.subnet)
    }

    /// Returns the words that start a program in the namespace.
    pub fn launcher(&self) -> Vec<String> {
        ["ip", "netns", "exec", &self.name]
            .map(str::to_owned)
            .to_vec()
    }

    /// Loses every packet from now on, in both directions; connections stay, silently.
    #[track_caller]
    pub fn drop_packets(&self) {
        for chain in ["INPUT", "OUTPUT"] {
            run(self.iptables().args(["--insert", chain, "--jump", "DROP"]));
        }
    }

    /// Lets packets pass again.
    #[track_caller]
    pub fn pass_packets(&self) {
        run(self.iptables().args(["--flush"]));
    }

    fn iptables(&self) -> Command {
        let mut command = ip();
        command.args(["netns", "exec", &self.name, "iptables", "--wait"]);
        command
    }
}

impl Default for Net {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        attempt(ip().args(["link", "delete", &self.cable("o")]));
        attempt(ip().args(["netns", "delete", &self.name]));
    }
}

fn ip() -> Command {
    Command::new("ip")
}

/// Returns the first three numbers of a network that no interface has.
#[track_caller]
fn free_subnet(first: u32) -> String {
    let taken = run(ip().args(["-oneline", "-4", "address"]));
    (0..=u8::MAX)
        .map(|step| {
            let number = first.wrapping_add(u32::from(step).wrapping_mul(7)) % 256;
            format!("10.215.{number}")
        })
        .find(|subnet| !taken.contains(&format!(" {subnet}.")))
        .unwrap_or_else(|| panic!("all networks of 10.215.0.0/16 are taken"))
}
