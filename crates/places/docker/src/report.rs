//! What `doctor` shows of this backend.

use exoshell_place::{Check, PlaceError};

use crate::classify::Limit;
use crate::engine::{self, Engine};
use crate::settings::DockerSettings;

/// Looks at everything that containers need. Changes nothing.
pub(crate) async fn checks(settings: &DockerSettings) -> Vec<Check> {
    let engine = match engine::discover(settings).await {
        Ok(engine) => engine,
        Err(error) => return vec![broken("engine", &error)],
    };
    let mut checks = vec![
        Check::fine("program", engine.client.program().display().to_string()),
        Check::fine(
            "engine",
            format!("{:?} {} answers", engine.flavour, engine.version),
        ),
        pipe(&engine),
    ];
    abilities(&engine, settings, &mut checks).await;
    checks.push(match &settings.container {
        Some(name) => container(&engine, name).await,
        None => image(&engine, settings).await,
    });
    checks
}

fn pipe(engine: &Engine) -> Check {
    match &engine.api {
        Some(api) => Check::fine("pipe", format!("over `{}`", api.socket().display())),
        None => Check::limited(
            "pipe",
            "one client process per place: the engine has no socket on this machine",
            "start the engine's socket, for example with `systemctl enable --now podman.socket`",
        ),
    }
}

async fn abilities(engine: &Engine, settings: &DockerSettings, checks: &mut Vec<Check>) {
    let abilities = match engine.abilities().await {
        Ok(abilities) => abilities,
        Err(error) => {
            checks.push(broken("limits", &error));
            return;
        }
    };
    let rootless = if abilities.rootless {
        "rootless"
    } else {
        "runs as root"
    };
    checks.push(Check::fine("privileges", rootless));
    let wanted = [
        (Limit::Cpu, settings.cpu > 0.0),
        (Limit::Memory, settings.memory_mb > 0),
        (Limit::Pids, true),
    ];
    let missing: Vec<&str> = wanted
        .into_iter()
        .filter(|(limit, wanted)| *wanted && abilities.missing.contains(limit))
        .map(|(limit, _)| limit.as_str())
        .collect();
    checks.push(if missing.is_empty() {
        Check::fine("limits", "cpu, memory and pids are enforced")
    } else {
        Check::limited(
            "limits",
            format!("not enforced here: {}", missing.join(", ")),
            "give the engine these control groups (for rootless engines: delegate them by systemd)",
        )
    });
    checks.push(
        match (abilities.missing.contains(&Limit::Disk), settings.disk_mb) {
            (_, 0) => Check::fine("storage limit", "not asked for"),
            (false, _) => Check::fine(
                "storage limit",
                format!("{} can bound it", abilities.storage),
            ),
            (true, _) => Check::limited(
                "storage limit",
                format!("{} cannot bound a container's disk", abilities.storage),
                "use overlay2 on XFS with project quotas, btrfs or zfs, or set the disk limit to 0",
            ),
        },
    );
}

async fn image(engine: &Engine, settings: &DockerSettings) -> Check {
    let name = &settings.image;
    match engine.image(name).await {
        Ok(Some(image)) => Check::fine(
            "image",
            format!("{name} is here ({}/{})", image.os, image.arch),
        ),
        Ok(None) => Check::limited(
            "image",
            format!("{name} is not here; it is pulled on first use"),
            format!("pull it now with `{} pull {name}`", engine.name()),
        ),
        Err(error) => broken("image", &error),
    }
}

async fn container(engine: &Engine, name: &str) -> Check {
    match engine.container(name).await {
        Ok(Some(container)) if container.is_running() => {
            Check::fine("container", format!("{name} runs"))
        }
        Ok(Some(container)) => Check::broken(
            "container",
            format!("{name} is {}", container.state),
            format!("start it with `{} start {name}`", engine.name()),
        ),
        Ok(None) => Check::broken(
            "container",
            format!("there is no container {name}"),
            format!("choose one that `{} ps` shows", engine.name()),
        ),
        Err(error) => broken("container", &error),
    }
}

fn broken(name: &str, error: &PlaceError) -> Check {
    let remedy = error
        .hint()
        .unwrap_or_else(|| "see the documentation of the docker backend".to_owned());
    Check::broken(name, error.to_string(), remedy)
}
