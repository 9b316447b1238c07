//! What works on this machine, backend by backend.

use exoshell_place::{Check, CheckOutcome};
use serde::{Serialize, Serializer};

use crate::config::{Backend, Resolved};
use crate::places::spec::PlaceSpec;
use crate::record::TaskOverrides;
use crate::runtime::{DEFAULT_TASK, Runtime};

/// How one backend is.
#[derive(Debug, Clone, Serialize)]
pub struct BackendReport {
    /// Its name.
    pub backend: &'static str,
    /// The engine behind it that answered, where there are several: `docker`, `podman`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// Whether tasks use it as things are configured.
    pub wanted: bool,
    /// Whether it is known which places are meant: a host for `ssh`, a launcher for `command`.
    pub configured: bool,
    /// Whether a place could be had.
    pub works: bool,
    /// What was looked at.
    pub checks: Vec<CheckReport>,
}

/// One thing that was looked at.
#[derive(Debug, Clone, Serialize)]
pub struct CheckReport {
    /// What.
    pub name: String,
    /// How it turned out.
    #[serde(serialize_with = "outcome_name")]
    pub outcome: CheckOutcome,
    /// What was found.
    pub found: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes fields by reference"
)]
fn outcome_name<S: Serializer>(outcome: &CheckOutcome, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match outcome {
        CheckOutcome::Fine => "fine",
        CheckOutcome::Limited => "limited",
        CheckOutcome::Broken => "broken",
        CheckOutcome::NotConfigured => "not_configured",
    })
}

impl From<Check> for CheckReport {
    fn from(check: Check) -> Self {
        Self {
            name: check.name,
            outcome: check.outcome,
            found: check.found,
            remedy: check.remedy,
        }
    }
}

impl Runtime {
    /// Looks at every backend, or one. Makes no place.
    pub async fn doctor(&self, only: Option<Backend>) -> Vec<BackendReport> {
        let mut reports = Vec::new();
        for backend in Backend::all() {
            if only.is_none_or(|only| only == *backend) {
                reports.push(self.look_at_backend(*backend).await);
            }
        }
        reports
    }

    async fn look_at_backend(&self, backend: Backend) -> BackendReport {
        let mut config = self.config().clone();
        let wanted = config.terminal.backend == backend;
        config.terminal.backend = backend;
        let missing = missing_setting(&config);
        let directory = self.inner.environment.directory();
        let overrides = TaskOverrides::default();
        let chosen = PlaceSpec::choose(&config, &overrides, DEFAULT_TASK, directory);
        let built = chosen.and_then(|spec| Ok(spec.build(&config, DEFAULT_TASK)?));
        let mut engine = None;
        let checks = match built {
            Ok(place) => match place.check().await {
                Ok(checks) => {
                    if matches!(backend, Backend::Docker | Backend::Podman) {
                        let facts = place.inspect().await;
                        engine = facts.ok().and_then(|facts| facts.engine);
                    }
                    checks
                }
                Err(error) => {
                    let remedy = error.hint().unwrap_or_default();
                    vec![Check::broken("backend", error.to_string(), remedy)]
                }
            },
            Err(error) => {
                let remedy = error.hint().unwrap_or_default();
                let found = error.to_string();
                vec![match missing {
                    Some(key) => Check::not_configured(
                        "configuration",
                        format!("`{key}` is not set"),
                        remedy,
                    ),
                    None => Check::broken("configuration", found, remedy),
                }]
            }
        };
        BackendReport {
            backend: backend.as_str(),
            engine,
            wanted,
            configured: missing.is_none(),
            works: checks
                .iter()
                .all(|check| matches!(check.outcome, CheckOutcome::Fine | CheckOutcome::Limited)),
            checks: checks.into_iter().map(CheckReport::from).collect(),
        }
    }
}

/// Names the setting without which the backend leads nowhere.
fn missing_setting(config: &Resolved) -> Option<&'static str> {
    match config.terminal.backend {
        Backend::Ssh if config.ssh.host.is_none() => Some("ssh.host"),
        Backend::Command if config.command.launch.is_empty() => Some("command.launch"),
        _ => None,
    }
}
