//! Bridges for containers, with addresses that nothing else on this machine has.

use std::process::Command;

use super::program::{output, succeeds};
use crate::Result;

/// Makes a bridge; one that is there already is used as it is.
pub(super) fn make_bridge(name: &str, family: u8, first: u8) -> Result<()> {
    if succeeds(ip().args(["link", "show", name])) {
        return Ok(());
    }
    let subnet = free_subnet(family, first)?;
    output(ip().args(["link", "add", "name", name, "type", "bridge"]))?;
    output(ip().args(["addr", "add", &format!("{subnet}.1/24"), "dev", name]))?;
    output(ip().args(["link", "set", name, "up"]))?;
    Ok(())
}

/// Removes a bridge if it is there.
pub(super) fn remove_bridge(name: &str) {
    succeeds(ip().args(["link", "delete", name]));
}

/// Returns the first three numbers of a network that no interface has.
pub(super) fn free_subnet(family: u8, first: u8) -> Result<String> {
    let taken = output(ip().args(["-oneline", "-4", "address"]))?;
    (0..=u8::MAX)
        .map(|step| format!("10.{family}.{}", first.wrapping_add(step)))
        .find(|subnet| !taken.contains(&format!(" {subnet}.")))
        .ok_or_else(|| format!("all networks of 10.{family}.0.0/16 are taken").into())
}

fn ip() -> Command {
    Command::new("ip")
}
