//! What a client's or an engine's words mean.

use exoshell_place::{PlaceError, Trouble};

/// How much of an engine's answer is quoted.
const MAX_QUOTE: usize = 600;

/// Turns what a failed step printed into an error that says what to do.
///
/// `program` is the client's name, `what` the step, as in `start the container`.
pub(crate) fn failure(program: &str, what: &str, text: &str) -> PlaceError {
    let (trouble, hint) = meaning(program, text);
    PlaceError::backend(trouble, format!("cannot {what}: {}", quote(text)), hint)
}

/// The engine did not answer in the time it had.
pub(crate) fn too_slow(program: &str, what: &str, seconds: u64) -> PlaceError {
    PlaceError::backend(
        Trouble::TooSlow,
        format!("cannot {what}: `{program}` took over {seconds} s"),
        format!("see whether `{program} ps` answers and the machine is overloaded, then try again"),
    )
}

/// The engine did not answer at all.
pub(crate) fn no_daemon(program: &str, why: &str) -> PlaceError {
    PlaceError::backend(
        Trouble::NoDaemon,
        format!("the container engine does not answer: {}", quote(why)),
        daemon_hint(program),
    )
}

fn daemon_hint(program: &str) -> String {
    if program.contains("podman") {
        return "see what `podman info` says; with a remote engine, start `podman system service` \
                there"
            .to_owned();
    }
    format!(
        "start it (`systemctl start docker`, or Docker Desktop), check `DOCKER_HOST` and `{program} \
         context ls`, or set `EXOSHELL_DOCKER_BINARY` to `podman`, which needs no daemon"
    )
}

/// Tells what kind of failure the text describes, and what to do about it.
fn meaning(program: &str, text: &str) -> (Trouble, String) {
    let text = text.to_lowercase();
    let says = |needles: &[&str]| needles.iter().any(|needle| text.contains(needle));
    if says(&["no space left on device", "disk quota exceeded"]) {
        return (
            Trouble::DiskFull,
            format!("free some space, for example with `{program} system prune`"),
        );
    }
    if says(&[
        "permission denied while trying to connect",
        "dial unix",
        "connect: permission denied",
    ]) && text.contains("permission denied")
    {
        return (
            Trouble::NotAllowed,
            "add yourself to the `docker` group and log in again, or use rootless Docker or Podman"
                .to_owned(),
        );
    }
    if says(&[
        "cannot connect to the docker daemon",
        "is the docker daemon running",
        "cannot connect to podman",
        "unable to connect to podman",
        "error during connect",
        "connect: connection refused",
        "connect: no such file or directory",
    ]) && !is_about_registry(&text)
    {
        return (Trouble::NoDaemon, daemon_hint(program));
    }
    if says(&[
        "no such container",
        "no container with name or id",
        "no such object",
    ]) {
        return (
            Trouble::NoContainer,
            format!("it was removed; `{program} ps -a` lists what there is"),
        );
    }
    if is_about_image(&text) {
        return (Trouble::NoImage, image_hint(program, &text));
    }
    if says(&["bind source path does not exist", "statfs"]) {
        return (
            Trouble::BadSetting,
            "make the file or folder that is mounted first, or correct `docker.volumes`".to_owned(),
        );
    }
    if says(SETTING_WORDS) {
        return (
            Trouble::BadSetting,
            "correct the image, volumes, limits or extra arguments of the docker backend"
                .to_owned(),
        );
    }
    if says(&["is paused", "unpause the container"]) {
        return (
            Trouble::DoesNotStart,
            format!("continue it with `{program} unpause`"),
        );
    }
    if says(INTERRUPTION_WORDS) {
        return (
            Trouble::Interrupted,
            "the engine went away in mid-call; try again when it is back".to_owned(),
        );
    }
    (
        Trouble::DoesNotStart,
        format!("see what `{program} ps -a` and the engine's log say"),
    )
}

/// Phrases of a connection that ended.
const INTERRUPTION_WORDS: &[&str] = &[
    "eof",
    "connection reset",
    "broken pipe",
    "server is shutting down",
    "is restarting",
];

/// Phrases of engines that refuse a value somebody configured.
const SETTING_WORDS: &[&str] = &[
    "invalid argument \"",
    "invalid volume",
    "invalid mount",
    "invalid reference format",
    "invalid characters for a local volume name",
    "names must match",
    "invalid label",
    "invalid environment variable",
    "invalid spec",
    "invalid mode",
    "invalid option",
    "invalid value",
    "unknown flag",
    "unknown shorthand flag",
    "duplicate mount",
    "duplicate label",
    "minimum memory limit",
    "conflicting options",
    "mount path must be absolute",
    "must be an absolute path",
    "must be set to an absolute path",
    "incorrect volume format",
    "no such file or directory: mount",
    "network not found",
    "unable to find network",
    "range of cpus is from",
    "unable to find user",
    "no matching entries in passwd",
];

fn is_about_registry(text: &str) -> bool {
    [
        "/v2/",
        "pinging container registry",
        "initializing source",
        "pull",
    ]
    .iter()
    .any(|word| text.contains(word))
}

fn is_about_image(text: &str) -> bool {
    // No registry can have an image of such a name, so it is a setting that is wrong.
    if text.contains("invalid reference format") {
        return false;
    }
    [
        "no such image",
        "image not known",
        "manifest unknown",
        "manifest for",
        "pull access denied",
        "repository does not exist",
        "unable to find image",
        "short-name",
        "toomanyrequests",
        "unauthorized",
        "no basic auth credentials",
        "initializing source",
        "pinging container registry",
        "no matching manifest",
        "name unknown",
        "/v2/",
    ]
    .iter()
    .any(|word| text.contains(word))
}

fn image_hint(program: &str, text: &str) -> String {
    let says = |word: &str| text.contains(word);
    if says("unauthorized") || says("denied") || says("credentials") {
        format!("check the image's name, and log in with `{program} login` if it is a private one")
    } else if says("toomanyrequests") {
        format!(
            "the registry limits how much may be pulled: wait, or log in with `{program} login`"
        )
    } else if says("refused") || says("no such host") || says("timeout") || says("unreachable") {
        "the registry cannot be reached: check the network and the registry's name".to_owned()
    } else if says("no matching manifest") {
        "the image does not exist for this machine's architecture: choose another one".to_owned()
    } else {
        "check the image's name and tag, or choose another image".to_owned()
    }
}

/// A limit that can be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Limit {
    Cpu,
    Memory,
    Disk,
    Pids,
}

impl Limit {
    /// Returns the name people see.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Disk => "disk",
            Self::Pids => "pids",
        }
    }
}

/// Finds the limit that the engine or its runtime says it cannot enforce here.
///
/// Both refusals and the warnings of a start that went on without the limit are understood.
pub(crate) fn refused_limit(text: &str) -> Option<Limit> {
    // Memory that is limited without its swap is limited.
    let about_swap = |line: &&str| line.contains("without swap") || line.contains("swap limit");
    let lines: Vec<&str> = text.lines().filter(|line| !about_swap(line)).collect();
    let text = lines.join("\n").to_lowercase();
    let says = |needles: &[&str]| needles.iter().any(|needle| text.contains(needle));
    if says(&["minimum memory limit", "invalid argument \""]) {
        return None;
    }
    if says(&["storage-opt", "storage option", "pquota", "project quota"]) {
        return Some(Limit::Disk);
    }
    let helpless = says(&[
        "does not support",
        "not supported",
        "not available",
        "not mounted",
        "discarded",
        "no such file or directory",
        "permission denied",
        "operation not permitted",
        "read-only file system",
        "range of cpus is from",
        "can not be set",
        "cannot be set",
        "ignored",
    ]);
    if !helpless {
        return None;
    }
    if says(&[
        "pids.max",
        "pids limit",
        "pids-limit",
        "pids cgroup",
        "pidslimit",
    ]) {
        Some(Limit::Pids)
    } else if says(&[
        "range of cpus",
        "nanocpus",
        "cpu.cfs",
        "cpu.max",
        "cpu cfs",
        "cpu controller",
    ]) {
        Some(Limit::Cpu)
    } else if says(&[
        "memory.limit_in_bytes",
        "memory.max",
        "memory limit",
        "memory controller",
        "memory.memsw",
    ]) {
        Some(Limit::Memory)
    } else {
        None
    }
}

/// Tells whether a start failed because our program inside cannot be run, though the container
/// itself is fine: a `noexec` filesystem, another architecture.
pub(crate) fn guest_cannot_run(text: &str, guest: &str) -> bool {
    let text = text.to_lowercase();
    text.contains(&guest.to_lowercase())
        && [
            "permission denied",
            "exec format error",
            "no such file or directory",
        ]
        .iter()
        .any(|word| text.contains(word))
}

/// Tells whether the engine cannot see a file of ours: it runs on another machine.
pub(crate) fn source_is_missing(text: &str, source: &str) -> bool {
    let text = text.to_lowercase();
    text.contains(&source.to_lowercase())
        && [
            "bind source path does not exist",
            "no such file or directory",
        ]
        .iter()
        .any(|word| text.contains(word))
}

/// Tells whether a text says that the container is gone.
pub(crate) fn is_gone(text: &str) -> bool {
    meaning("docker", text).0 == Trouble::NoContainer
}

/// Tells whether a text says that somebody removes the container right now, or tried and got
/// stuck half-way. Engines do that by themselves where a container ends, and a busy one leaves
/// some of them `dead`: those can be removed again.
pub(crate) fn is_being_removed(text: &str) -> bool {
    ["already in progress", "unable to remove filesystem"]
        .iter()
        .any(|words| text.contains(words))
}

/// Tells whether a text says that the container does not run.
pub(crate) fn is_stopped(text: &str) -> bool {
    let text = text.to_lowercase();
    [
        "is not running",
        "container state improper",
        "can only create exec sessions on running containers",
        "container is not running",
        "cannot exec in a stopped",
    ]
    .iter()
    .any(|word| text.contains(word))
}

/// Makes an engine's answer fit for a message: one line, without its usage hints, cut.
pub(crate) fn quote(text: &str) -> String {
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty() && !line.starts_with("Run '") && !line.starts_with("See '"))
        .take_while(|line| !line.starts_with("Usage:"))
        .collect();
    let quoted: String = lines
        .join("; ")
        .chars()
        .filter(|c| !c.is_control())
        .take(MAX_QUOTE)
        .collect();
    let quoted = ["docker: ", "Error response from daemon: ", "Error: "]
        .iter()
        .fold(quoted.as_str(), |text, noise| {
            text.strip_prefix(noise).unwrap_or(text)
        });
    if quoted.is_empty() {
        "it said nothing".to_owned()
    } else {
        quoted.to_owned()
    }
}

#[cfg(test)]
#[path = "classify_tests.rs"]
mod tests;
