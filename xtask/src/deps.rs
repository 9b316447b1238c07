//! Who may know whom: the layers of DESIGN as one table, checked against `cargo metadata`.

use serde_json::Value;

use crate::{Result, cargo};

/// Each crate of ours, and the crates of ours it may use.
const DIRECTIONS: &[(&str, &[&str])] = &[
    ("exoshell-wire", &[]),
    ("exoshell-process", &[]),
    ("exoshell-files", &[]),
    ("exoshell-guard", &[]),
    ("exoshell-redact", &[]),
    ("exoshell-mux", &["exoshell-wire"]),
    (
        "exoshell-guest",
        &[
            "exoshell-wire",
            "exoshell-mux",
            "exoshell-process",
            "exoshell-files",
            "exoshell-redact",
        ],
    ),
    ("exoshell-place", &["exoshell-wire", "exoshell-mux"]),
    (
        "exoshell-place-local",
        &["exoshell-place", "exoshell-process", "exoshell-wire"],
    ),
    (
        "exoshell-place-docker",
        &["exoshell-place", "exoshell-wire"],
    ),
    ("exoshell-place-apptainer", &["exoshell-place"]),
    ("exoshell-place-ssh", &["exoshell-place", "exoshell-wire"]),
    ("exoshell-place-modal", &["exoshell-place"]),
    ("exoshell-place-daytona", &["exoshell-place"]),
    ("exoshell-place-slurm", &["exoshell-place"]),
    ("exoshell-place-kubernetes", &["exoshell-place"]),
    (
        "exoshell-place-command",
        &["exoshell-place", "exoshell-wire"],
    ),
    (
        "exoshell-runtime",
        &[
            "exoshell-place",
            "exoshell-place-local",
            "exoshell-place-docker",
            "exoshell-place-apptainer",
            "exoshell-place-ssh",
            "exoshell-place-modal",
            "exoshell-place-daytona",
            "exoshell-place-slurm",
            "exoshell-place-kubernetes",
            "exoshell-place-command",
            "exoshell-wire",
            "exoshell-mux",
            "exoshell-files",
            "exoshell-guard",
            "exoshell-redact",
        ],
    ),
    ("exoshell-cli", &["exoshell-runtime"]),
    ("exoshell-mcp", &["exoshell-runtime"]),
    ("exoshell-http", &["exoshell-runtime"]),
    ("exoshell-python", &["exoshell-runtime"]),
];

/// These are in the table before they exist.
const PLANNED: &[&str] = &[
    "exoshell-place-apptainer",
    "exoshell-place-modal",
    "exoshell-place-daytona",
    "exoshell-place-slurm",
    "exoshell-place-kubernetes",
    "exoshell-mcp",
    "exoshell-http",
    "exoshell-python",
];

/// These may use every crate but a door.
const FREE: &[&str] = &["xtask", "exoshell-testkit"];

/// Only tests may use this one, and all of them may.
const FOR_TESTS: &str = "exoshell-testkit";

/// Nobody uses these.
const DOORS: &[&str] = &[
    "exoshell-cli",
    "exoshell-mcp",
    "exoshell-http",
    "exoshell-python",
];

/// A crate of the workspace and the crates of the workspace it names in its manifest.
#[derive(Debug, PartialEq, Eq)]
struct Package {
    name: String,
    uses: Vec<Use>,
}

#[derive(Debug, PartialEq, Eq)]
struct Use {
    name: String,
    only_in_tests: bool,
}

/// Checks the workspace and prints what is wrong.
pub(crate) fn run() -> Result<()> {
    let packages = workspace()?;
    let faults = faults(&packages);
    if faults.is_empty() {
        println!(
            "{} crates use each other in the allowed directions",
            packages.len()
        );
        return Ok(());
    }
    Err(faults.join("\n").into())
}

/// Asks cargo for the crates of this workspace.
fn workspace() -> Result<Vec<Package>> {
    let output = cargo()
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .output()?;
    if !output.status.success() {
        return Err(format!(
            "cargo metadata: {}",
            String::from_utf8_lossy(&output.stderr)
        )
        .into());
    }
    packages_of(&serde_json::from_slice(&output.stdout)?)
        .ok_or_else(|| "cargo metadata changed its format".into())
}

fn packages_of(metadata: &Value) -> Option<Vec<Package>> {
    let packages = metadata.get("packages")?.as_array()?;
    let names: Vec<&str> = packages.iter().map(name_of).collect::<Option<_>>()?;
    packages
        .iter()
        .map(|package| {
            let uses = package.get("dependencies")?.as_array()?.iter();
            let uses = uses.filter(|used| name_of(used).is_some_and(|name| names.contains(&name)));
            Some(Package {
                name: name_of(package)?.to_owned(),
                uses: uses
                    .map(|used| {
                        Some(Use {
                            name: name_of(used)?.to_owned(),
                            only_in_tests: used.get("kind")?.as_str() == Some("dev"),
                        })
                    })
                    .collect::<Option<_>>()?,
            })
        })
        .collect()
}

fn name_of(value: &Value) -> Option<&str> {
    value.get("name")?.as_str()
}

fn allowed(name: &str) -> Option<&'static [&'static str]> {
    DIRECTIONS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, uses)| *uses)
}

/// Returns one sentence for everything that breaks the table, and for a table that is out of date.
fn faults(packages: &[Package]) -> Vec<String> {
    let exists = |name: &str| packages.iter().any(|package| package.name == name);
    let mut faults = Vec::new();
    for package in packages {
        let free = FREE.contains(&package.name.as_str());
        let uses = match allowed(&package.name) {
            Some(uses) => uses,
            None if free => &[],
            None => {
                faults.push(format!(
                    "`{}` is not in the table of xtask/src/deps.rs: say there what it may use",
                    package.name
                ));
                continue;
            }
        };
        for used in &package.uses {
            let used_name = used.name.as_str();
            let fine = if DOORS.contains(&used_name) {
                false
            } else if used_name == FOR_TESTS {
                used.only_in_tests
            } else {
                free || uses.contains(&used_name)
            };
            if !fine {
                faults.push(format!("`{}` may not use `{used_name}`", package.name));
            }
        }
    }
    for (name, _) in DIRECTIONS {
        match (exists(name), PLANNED.contains(name)) {
            (true, true) => faults.push(format!(
                "`{name}` exists now: remove it from PLANNED in xtask/src/deps.rs"
            )),
            (false, false) => faults.push(format!(
                "`{name}` does not exist: remove it from the table of xtask/src/deps.rs"
            )),
            _ => {}
        }
    }
    faults
}

#[cfg(test)]
#[path = "deps_tests.rs"]
mod tests;
