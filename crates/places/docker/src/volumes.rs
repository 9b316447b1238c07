//! Volumes as people write them.

use std::path::Path;

/// A volume that makes sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Volume {
    /// A path of the host, or the name of a volume of the engine.
    pub(crate) source: String,
    /// Where it appears in the container.
    pub(crate) target: String,
    /// What is said about it, as it was written.
    pub(crate) options: Option<String>,
}

impl Volume {
    /// Tells whether its source is a file or folder of the host.
    pub(crate) fn is_path(&self) -> bool {
        self.source.starts_with('/')
    }

    /// Writes it as a mount, which the engine refuses when its source is missing. `None` when it
    /// has an option that only the other form knows.
    pub(crate) fn as_mount(&self) -> Option<String> {
        if !self.is_path() {
            return None;
        }
        let mut mount = bind(&self.source, &self.target, false);
        for option in self.options.iter().flat_map(|options| options.split(',')) {
            match option {
                "rw" => {}
                "ro" => mount.push_str(",readonly"),
                "shared" | "rshared" | "slave" | "rslave" | "private" | "rprivate" => {
                    mount.push_str(",bind-propagation=");
                    mount.push_str(option);
                }
                _ => return None,
            }
        }
        Some(mount)
    }

    /// Writes it as it is usually written.
    pub(crate) fn as_volume(&self) -> String {
        let Self { source, target, .. } = self;
        match &self.options {
            None => format!("{source}:{target}"),
            Some(options) => format!("{source}:{target}:{options}"),
        }
    }
}

/// Reads `source:target[:options]`; says what is wrong with anything else.
pub(crate) fn read(entry: &str, home: Option<&Path>) -> Result<Volume, String> {
    let wrong = |why: &str| Err(format!("the volume `{}` is skipped: {why}", shown(entry)));
    if entry.chars().any(char::is_control) {
        return wrong("it contains control characters");
    }
    let parts: Vec<&str> = entry.split(':').collect();
    let (source, target, options) = match parts.as_slice() {
        [_] => return wrong("it has no colon; write `source:target`"),
        [source, target] => (*source, *target, None),
        [source, target, options] => (*source, *target, Some(*options)),
        _ => return wrong("it has too many colons"),
    };
    if source.is_empty() || target.is_empty() {
        return wrong("one side of the colon is empty");
    }
    if !target.starts_with('/') {
        return wrong("its target is not an absolute path");
    }
    let source = match (source.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest).display().to_string(),
        _ => source.to_owned(),
    };
    if !source.starts_with('/') && !is_name(&source) {
        return wrong(if source.contains('/') || source.starts_with(['.', '~']) {
            "its source is a relative path; write it as an absolute one"
        } else {
            "its source is neither an absolute path nor the name of a volume"
        });
    }
    if options.is_some_and(|options| !is_options(options)) {
        return wrong("its options make no sense");
    }
    Ok(Volume {
        source,
        target: normal(target),
        options: options.map(str::to_owned),
    })
}

/// Returns the targets of mounts that the client's extra words ask for.
pub(crate) fn targets_of(words: &[String]) -> Vec<String> {
    let mut targets = Vec::new();
    let mut previous = "";
    for word in words {
        let (flag, value) = match word.split_once('=') {
            Some((flag @ ("--volume" | "-v" | "--tmpfs" | "--mount"), value)) => (flag, value),
            _ => (previous, word.as_str()),
        };
        let target = match flag {
            "-v" | "--volume" => value.split(':').nth(1).or(Some(value)),
            "--tmpfs" => value.split(':').next(),
            "--mount" => value.split(',').find_map(|part| {
                let (name, path) = part.split_once('=')?;
                matches!(name, "target" | "dst" | "destination").then_some(path)
            }),
            _ => None,
        };
        targets.extend(target.map(normal));
        previous = word;
    }
    targets
}

/// Brings a path into the form in which two equal targets are equal text.
pub(crate) fn normal(path: &str) -> String {
    let parts: Vec<&str> = path
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    format!("/{}", parts.join("/"))
}

/// Writes a mount of ours for the client, whose format is one line of CSV.
pub(crate) fn bind(source: &str, target: &str, read_only: bool) -> String {
    let field = |text: String| {
        if text.contains([',', '"']) {
            format!("\"{}\"", text.replace('"', "\"\""))
        } else {
            text
        }
    };
    let mut fields = vec![
        "type=bind".to_owned(),
        field(format!("source={source}")),
        field(format!("target={target}")),
    ];
    if read_only {
        fields.push("readonly".to_owned());
    }
    fields.join(",")
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-'))
}

fn is_options(text: &str) -> bool {
    text.split(',').all(|option| {
        let name = option.split('=').next().unwrap_or_default();
        OPTIONS.contains(&name)
            && option
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "=-_/.;".contains(c))
    })
}

/// What Docker or Podman may be told about a volume.
const OPTIONS: &[&str] = &[
    "ro",
    "rw",
    "z",
    "Z",
    "U",
    "O",
    "copy",
    "nocopy",
    "volume-nocopy",
    "cached",
    "delegated",
    "consistent",
    "default",
    "shared",
    "rshared",
    "slave",
    "rslave",
    "private",
    "rprivate",
    "unbindable",
    "runbindable",
    "bind",
    "rbind",
    "exec",
    "noexec",
    "suid",
    "nosuid",
    "dev",
    "nodev",
    "idmap",
    "upperdir",
    "workdir",
    "subpath",
];

fn shown(entry: &str) -> String {
    entry
        .chars()
        .take(200)
        .flat_map(char::escape_debug)
        .collect()
}

#[cfg(test)]
#[path = "volumes_tests.rs"]
mod tests;
