//! The real servers of the tests: a Docker engine, Podman twice, a registry, and images for them.

mod docker;
mod images;
mod layout;
mod network;
mod podman;
mod program;
mod registry;
mod watch;

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use self::docker::Docker;
use self::images::Images;
use self::layout::Layout;
use self::podman::Podman;
use self::registry::Registry;
use crate::Result;

pub(crate) use self::watch::watch;

/// What tests find in their environment, in the order it is shown.
pub(crate) type Environment = Vec<(String, String)>;

/// Servers that run for as long as this value lives.
#[derive(Debug)]
pub(crate) struct Running {
    layout: Layout,
    environment: Environment,
    /// Held by everyone who uses the servers, so that nobody stops them under another.
    in_use: File,
    guardian: watch::Guardian,
}

impl Running {
    /// Starts what does not run yet.
    pub(crate) fn start() -> Result<Self> {
        let layout = Layout::of_workspace();
        fs::create_dir_all(&layout.root)?;
        let in_use = File::create(layout.root.join("in-use"))?;
        in_use.lock_shared()?;
        let guardian = watch::Guardian::start(&layout)?;
        let environment = start_all(&layout)?;
        Ok(Self {
            layout,
            environment,
            in_use,
            guardian,
        })
    }

    /// Returns the variables of the tests.
    pub(crate) fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Stops the servers, unless somebody wants them to stay.
    pub(crate) fn stop(self) -> Result<()> {
        drop(self.in_use);
        let result = stop_if_unused(&self.layout);
        self.guardian.dismiss();
        result
    }
}

/// Starts the servers and leaves them running.
pub(crate) fn start() -> Result<()> {
    let layout = Layout::of_workspace();
    fs::create_dir_all(&layout.root)?;
    fs::write(layout.keep(), "")?;
    start_all(&layout)?;
    println!("\nthe tests find them with: eval \"$(cargo xtask servers env)\"");
    Ok(())
}

/// Stops the servers; images stay for the next time.
pub(crate) fn stop() -> Result<()> {
    let layout = Layout::of_workspace();
    match fs::remove_file(layout.keep()) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    stop_all(&layout)
}

/// Prints the variables of the tests as a shell reads them.
pub(crate) fn print_environment() -> Result<()> {
    let layout = Layout::of_workspace();
    let text = fs::read_to_string(layout.environment()).map_err(|error| {
        format!("no servers run here ({error}); start them with `cargo xtask servers start`")
    })?;
    for line in text.lines() {
        if let Some((name, value)) = line.split_once('=') {
            println!("export {name}='{}'", value.replace('\'', r"'\''"));
        }
    }
    Ok(())
}

/// Takes the lock under which servers are started and stopped.
fn lock(layout: &Layout) -> Result<File> {
    fs::create_dir_all(&layout.root)?;
    let file = File::create(layout.root.join("lock"))?;
    file.lock()?;
    Ok(file)
}

fn start_all(layout: &Layout) -> Result<Environment> {
    let _lock = lock(layout)?;
    if !program::succeeds(std::process::Command::new("test").args(["-w", "/etc/passwd"])) {
        return Err("container engines need root: run this as root".into());
    }
    fs::create_dir_all(&layout.run)?;
    // A throw-away user must be able to enter.
    fs::set_permissions(&layout.run, fs::Permissions::from_mode(0o755))?;
    fs::set_permissions(&layout.root, fs::Permissions::from_mode(0o755))?;

    let docker = Docker::new(layout);
    let registry = Registry::new(layout);
    let podman = Podman::rootful(layout);
    let rootless = Podman::rootless(layout);
    let images = Images::new(layout);
    step("docker", || docker.start())?;
    step("registry", || registry.start())?;
    step("podman", || podman.prepare())?;
    step("images for docker", || images.give_to_docker(&docker))?;
    step("images for podman", || images.give_to_podman(&podman))?;
    step("image for the registry", || {
        Images::give_to_registry(&docker, &registry, layout)
    })?;
    let rootless_trouble = step("podman without root", || {
        rootless.prepare()?;
        images.give_to_podman(&rootless)
    })
    .err()
    .map(|error| error.to_string().replace('\n', " "));
    if let Some(trouble) = &rootless_trouble {
        println!("this machine has no Podman without root: {trouble}");
    }

    let environment = describe(&docker, &registry, &podman, &rootless, rootless_trouble)?;
    let lines = environment
        .iter()
        .map(|(name, value)| format!("{name}={value}"));
    fs::write(layout.environment(), lines.collect::<Vec<_>>().join("\n"))?;
    Ok(environment)
}

fn step<T>(title: &str, step: impl FnOnce() -> Result<T>) -> Result<T> {
    let start = Instant::now();
    let result = step()?;
    println!("{title}: ready ({:.1} s)", start.elapsed().as_secs_f64());
    Ok(result)
}

fn describe(
    docker: &Docker<'_>,
    registry: &Registry<'_>,
    podman: &Podman,
    rootless: &Podman,
    rootless_trouble: Option<String>,
) -> Result<Environment> {
    let mut all: Environment = Vec::new();
    let mut say = |name: &str, value: String| all.push((format!("EXOSHELL_TEST_{name}"), value));
    say("DOCKER_HOST", docker.host());
    say("REGISTRY", registry.address()?);
    for (name, path) in podman.variables() {
        say(name, shown(path));
    }
    match (rootless_trouble, rootless.user()) {
        (None, Some((user, home, runtime_dir))) => {
            say("ROOTLESS_USER", user.to_owned());
            say("ROOTLESS_HOME", home.display().to_string());
            say("ROOTLESS_RUNTIME_DIR", runtime_dir.display().to_string());
            for (name, path) in rootless.variables() {
                say(&format!("ROOTLESS_{name}"), shown(path));
            }
        }
        (trouble, _) => say("ROOTLESS_UNAVAILABLE", trouble.unwrap_or_default()),
    }
    Ok(all)
}

fn shown(path: PathBuf) -> String {
    path.into_os_string().to_string_lossy().into_owned()
}

/// Stops the servers unless a person wants them or another program uses them.
fn stop_if_unused(layout: &Layout) -> Result<()> {
    if layout.keep().exists() {
        println!("the servers stay; stop them with `cargo xtask servers stop`");
        return Ok(());
    }
    // A user that is just ending lets go of it in a moment.
    let in_use = File::create(layout.root.join("in-use"))?;
    if program::wait_until(Duration::from_secs(2), || in_use.try_lock().is_ok()) {
        return stop_all(layout);
    }
    println!("the servers stay for another run");
    Ok(())
}

fn stop_all(layout: &Layout) -> Result<()> {
    let _lock = lock(layout)?;
    match fs::remove_file(layout.environment()) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
        _ => {}
    }
    // Each one is tried, whatever happened to the others.
    let results = [
        Podman::rootless(layout).stop(),
        Podman::rootful(layout).stop(),
        Docker::new(layout).stop(),
        Registry::new(layout).stop(),
    ];
    let faults: Vec<String> = results
        .into_iter()
        .filter_map(|result| result.err().map(|error| error.to_string()))
        .collect();
    if faults.is_empty() {
        program::unmount_below(&layout.run);
        return program::remove_folder(&layout.run);
    }
    Err(faults.join("\n").into())
}
