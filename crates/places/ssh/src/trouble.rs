//! What the OpenSSH client means by what it says.

use exoshell_place::{PlaceError, Trouble};

/// Where the client was to go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'a> {
    pub(crate) host: &'a str,
    /// The jump hosts in between, if any.
    pub(crate) jump: Option<&'a str>,
}

/// One way to fail: what the client says of it, and what to tell people.
struct Case {
    trouble: Trouble,
    /// Any of these texts gives it away.
    signs: &'static [&'static str],
    what: &'static str,
    hint: &'static str,
}

/// The more telling ones come first: the client ends many failures with the same last words.
const CASES: &[Case] = &[
    Case {
        trouble: Trouble::BadSetting,
        signs: &[
            "Bad configuration option",
            "bad configuration options",
            "Bad owner or permissions on",
            "command-line: line 0",
            "command-line line 0",
            "Can't open user config file",
        ],
        what: "the ssh client does not accept its configuration",
        hint: "mend what it names, in `~/.ssh/config` or in the configured options",
    },
    Case {
        trouble: Trouble::HostKeyUnknown,
        signs: &["REVOKED HOST KEY", "has been revoked"],
        what: "the host's key is marked as revoked",
        hint: "do not connect; ask whoever runs the host for its new key",
    },
    Case {
        trouble: Trouble::HostKeyUnknown,
        signs: &["host key is known for", "Host key verification failed"],
        what: "the host's key is not known, and may not be taken on trust",
        hint: "connect by hand once (`ssh` to the same host, and to a jump host in between), \
               compare the key it shows with the host's own, and accept it",
    },
    Case {
        trouble: Trouble::UnknownHost,
        signs: &["Could not resolve hostname"],
        what: "the host's name is not known",
        hint: "check the name, or add the host to `~/.ssh/config`",
    },
    Case {
        trouble: Trouble::Refused,
        signs: &["Connection refused"],
        what: "nobody listens at that address",
        hint: "check the port, and that an ssh server runs there",
    },
    Case {
        trouble: Trouble::NoAnswer,
        signs: &[
            "Connection timed out",
            "Operation timed out",
            "No route to host",
            "Network is unreachable",
            "Host is down",
            " timed out",
        ],
        what: "the host does not answer",
        hint: "check that it runs and that the network lets you through (VPN, firewall)",
    },
    Case {
        trouble: Trouble::BadKey,
        signs: &[
            "UNPROTECTED PRIVATE KEY FILE",
            "bad permissions",
            "invalid format",
            "error in libcrypto",
            "incorrect passphrase",
        ],
        what: "the private key cannot be used",
        hint: "it must be a private key that only you can read (`chmod 600`); put one with a \
               passphrase into `ssh-agent` first",
    },
    Case {
        trouble: Trouble::AuthFailed,
        signs: &[
            "Permission denied (",
            "Too many authentication failures",
            "No supported authentication methods",
        ],
        what: "the host does not accept our key",
        hint: "add your public key to `~/.ssh/authorized_keys` there (`ssh-copy-id`), or set the \
               user and the key; nothing can be typed in",
    },
    Case {
        trouble: Trouble::NotAllowed,
        signs: &["administratively prohibited", "Unable to negotiate with"],
        what: "the host or a jump host refuses what we ask for",
        hint: "a jump host must allow forwarding (`AllowTcpForwarding`), and client and server \
               must share a way to talk",
    },
    Case {
        trouble: Trouble::Interrupted,
        signs: &[
            "Connection reset",
            "Connection closed",
            "closed by remote host",
            "Broken pipe",
            "kex_exchange_identification",
            "read from master failed",
            "stdio forwarding failed",
            "Software caused connection abort",
            "connection unexpectedly closed",
        ],
        what: "the connection ended",
        hint: "try again; a host that closes every connection at once may be overloaded, or may \
               bar your address",
    },
];

/// Explains what the client said, if it is something that it says of its own.
pub(crate) fn classify(said: &str, target: &Target<'_>) -> Option<PlaceError> {
    if said.contains("IDENTIFICATION HAS CHANGED") {
        return Some(host_key_changed(said, target));
    }
    let case = CASES
        .iter()
        .find(|case| case.signs.iter().any(|sign| said.contains(sign)))?;
    let sign = case.signs.iter().find(|sign| said.contains(**sign))?;
    let quoted = line_with(said, sign);
    let route = route(target);
    Some(PlaceError::backend(
        case.trouble,
        format!("ssh to {route}: {}: `{quoted}`", case.what),
        case.hint,
    ))
}

/// Reports a failure that we have no name for.
pub(crate) fn unknown(said: &str, host: &str) -> PlaceError {
    let last = said.lines().rev().find(|line| !line.trim().is_empty());
    PlaceError::backend(
        Trouble::Interrupted,
        format!(
            "ssh to `{host}` failed: `{}`",
            clean(last.unwrap_or("it said nothing"))
        ),
        "try `ssh -v` to the same host by hand",
    )
}

/// Reports a configuration that the client does not accept.
pub(crate) fn bad_config(said: &str) -> PlaceError {
    let first = said.lines().find(|line| !line.trim().is_empty());
    PlaceError::backend(
        Trouble::BadSetting,
        format!(
            "the ssh client does not accept its configuration: `{}`",
            clean(first.unwrap_or("it said nothing"))
        ),
        "mend `~/.ssh/config` or the configured options",
    )
}

/// Reports a private key that cannot be used.
pub(crate) fn bad_key(message: &str, hint: &str) -> PlaceError {
    PlaceError::backend(Trouble::BadKey, message, hint)
}

/// Says which line of which file is in the way, and why it should not just be removed.
fn host_key_changed(said: &str, target: &Target<'_>) -> PlaceError {
    let route = route(target);
    let entry = said
        .split("Offending ")
        .nth(1)
        .and_then(|rest| rest.split(" key in ").nth(1))
        .map(first_word);
    let (file, line) = match entry.and_then(|entry| entry.rsplit_once(':')) {
        Some((file, line)) => (file, line),
        None => ("~/.ssh/known_hosts", "?"),
    };
    let name = ["Host key for ", "key for "]
        .iter()
        .find_map(|before| said.split(before).nth(1))
        .map_or(target.host, first_word);
    PlaceError::backend(
        Trouble::HostKeyChanged,
        format!(
            "ssh to {route}: the host's key is not the one seen before (line {line} of `{}`): \
             somebody may be listening in, or the host was set up anew",
            clean(file)
        ),
        format!(
            "ask whoever runs the host whether its key was changed; only then forget the old one: \
             ssh-keygen -f {} -R {}",
            exoshell_place::bootstrap::quote(&clean(file)),
            exoshell_place::bootstrap::quote(&clean(name)),
        ),
    )
}

fn route(target: &Target<'_>) -> String {
    match target.jump {
        Some(jump) => format!("`{}` through `{jump}`", target.host),
        None => format!("`{}`", target.host),
    }
}

fn first_word(text: &str) -> &str {
    text.split(|c: char| c.is_whitespace() || c == ';')
        .next()
        .unwrap_or(text)
}

fn line_with(said: &str, sign: &str) -> String {
    // What a session said comes on one line.
    let mut lines = said.split(['\n', ';']);
    let line = lines.find(|line| line.contains(sign));
    clean(line.unwrap_or(said))
}

/// Makes foreign text fit for a message.
fn clean(text: &str) -> String {
    let visible = text.trim().chars().filter(|c| !c.is_control());
    visible.take(300).collect()
}

#[cfg(test)]
#[path = "trouble_tests.rs"]
mod tests;
