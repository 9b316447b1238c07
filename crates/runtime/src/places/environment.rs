//! The variables that commands get in a place that is not this machine.

use std::collections::BTreeMap;

use exoshell_wire::RawBytes;

use crate::config::{self, Environment, Resolved};

/// Returns what is put on top of the place's own environment: what keeps programs from waiting
/// for a person, then `terminal.env`, then for containers their own variables and those that are
/// forwarded. It travels over the pipe, so that no engine ever shows it.
pub(crate) fn place_environment(
    caller: &Environment,
    config: &Resolved,
    container: bool,
    notes: &mut Vec<String>,
) -> Vec<(RawBytes, RawBytes)> {
    let mut variables: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
    let mut set = |name: &str, value: &[u8]| {
        variables.insert(name.as_bytes().to_vec(), value.to_vec());
    };
    for (name, value) in config::quiet_variables() {
        set(name, value.as_bytes());
    }
    for (name, value) in &config.terminal.env {
        set(name, value.as_bytes());
    }
    if container {
        for (name, value) in &config.docker.env {
            if good_name(name, "docker.env", notes) {
                set(name, value.as_bytes());
            }
        }
        let file = config::dotenv::read(&config.home.join(".env"), notes);
        for name in &config.docker.forward_env {
            if !good_name(name, "docker.forward_env", notes) {
                continue;
            }
            match caller.get(name) {
                Some(value) => set(name, value.as_encoded_bytes()),
                None => {
                    if let Some(value) = file.get(name) {
                        set(name, value.as_bytes());
                    }
                }
            }
        }
    }
    variables
        .into_iter()
        .map(|(name, value)| (RawBytes(name), RawBytes(value)))
        .collect()
}

fn good_name(name: &str, key: &str, notes: &mut Vec<String>) -> bool {
    let good = config::is_variable_name(name);
    if !good {
        notes.push(format!(
            "`{key}`: `{}` is no name of a variable and is not used",
            name.escape_debug()
        ));
    }
    good
}
