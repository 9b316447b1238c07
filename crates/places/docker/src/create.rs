//! Making, starting and removing containers.

use std::collections::BTreeSet;
use std::fs::{self, DirBuilder};
use std::os::unix::fs::{DirBuilderExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::{Duration, Instant};

use exoshell_place::bundle::{self, BundleError, GuestBinary};
use exoshell_place::{PlaceError, Progress, Trouble, nonce};

use crate::archive;
use crate::classify::{self, Limit};
use crate::client::{Answer, words};
use crate::engine::{Engine, LIST_LIMIT};
use crate::place::DockerPlace;
use crate::plan::{GUEST, Main, Plan, Written, runs_as_root};
use crate::pull;
use crate::records::{Container, Image, label};
use crate::settings::label_value;

/// How long making a container may take.
const RUN_LIMIT: Duration = Duration::from_secs(120);

/// How long starting one may take.
const START_LIMIT: Duration = Duration::from_secs(30);

/// How long a container has to end by itself when it is stopped.
const STOP_GRACE: Duration = Duration::from_secs(10);

/// How long stopping may take: the grace, and what the engine needs.
const STOP_LIMIT: Duration = Duration::from_secs(40);

/// How long removing may take.
const REMOVE_LIMIT: Duration = Duration::from_secs(30);

/// How long to wait before an engine that is removing a container is asked again.
const REMOVE_PAUSE: Duration = Duration::from_millis(100);

/// How many ways to make a container are tried: all limits given up one by one, then the ways of
/// getting a guest in.
const MAX_TRIES: usize = 8;

/// What a label says where no guest is the main process.
pub(crate) const NO_GUEST: &str = "none";

/// A container that was just made, and why no guest is in it, if so.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) container: Container,
    pub(crate) notes: Vec<String>,
}

/// What is tried, given what was refused before.
#[derive(Debug)]
struct Attempt {
    main: Main,
    refused: BTreeSet<Limit>,
}

/// Makes and starts a container of ours.
pub(crate) async fn create(
    place: &DockerPlace,
    engine: &Engine,
    progress: &Progress,
) -> Result<Made, PlaceError> {
    let image = pull::image(engine, &place.settings.image, progress).await?;
    make_folders(place, &image)?;
    let (binary, mut attempt) = first_attempt(place, engine, &image)?;
    for _ in 0..MAX_TRIES {
        progress.step(&format!("starting a container of {}", place.settings.image));
        match try_create(place, engine, &image, &attempt, binary.as_ref()).await? {
            Ok(made) => return Ok(made),
            Err(text) => {
                if !attempt.learn(&text) {
                    return Err(engine.client.explain("start a container", &text));
                }
            }
        }
    }
    Err(PlaceError::backend(
        Trouble::DoesNotStart,
        "cannot start a container: every way was refused",
        format!(
            "see what the log of the engine says, and whether `{} run` works",
            engine.name()
        ),
    ))
}

impl Attempt {
    /// Changes the attempt by what the engine said of the last one; `false` when it is final.
    fn learn(&mut self, text: &str) -> bool {
        if let Some(limit) = classify::refused_limit(text)
            && self.refused.insert(limit)
        {
            return true;
        }
        let cannot_run = classify::guest_cannot_run(text, GUEST);
        self.main = match &self.main {
            // The engine is on another machine, or the file's filesystem allows no programs.
            Main::Mounted(file)
                if cannot_run || classify::source_is_missing(text, &file.display().to_string()) =>
            {
                Main::Copied
            }
            Main::Copied if cannot_run => Main::Keeper,
            _ => return false,
        };
        true
    }
}

fn first_attempt(
    place: &DockerPlace,
    engine: &Engine,
    image: &Image,
) -> Result<(Option<GuestBinary>, Attempt), PlaceError> {
    let (os, arch) = match (image.os.as_str(), image.arch.as_str()) {
        ("", _) | (_, "") => (engine.os.as_str(), engine.arch.as_str()),
        known => known,
    };
    let refused = BTreeSet::new();
    match bundle::lookup(os, arch, place.settings.guest_dir.as_deref()) {
        Ok(binary) => {
            let main = Main::Mounted(place.install(&binary)?);
            Ok((Some(binary), Attempt { main, refused }))
        }
        Err(BundleError::Missing { .. } | BundleError::BadPlatform { .. }) => {
            let main = Main::Keeper;
            Ok((None, Attempt { main, refused }))
        }
        Err(error) => Err(error.into()),
    }
}

/// Makes the folders that are mounted, before the engine would make them for root.
fn make_folders(place: &DockerPlace, image: &Image) -> Result<(), PlaceError> {
    let Some(folder) = &place.settings.persistent else {
        return Ok(());
    };
    for name in ["root", "workspace"] {
        let path = folder.join(name);
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(|source| PlaceError::Setup {
            action: format!("cannot create `{}`", path.display()),
            source,
            hint: "set `TERMINAL_SANDBOX_DIR` to a folder that you can write".to_owned(),
        })?;
        give_to_user(place, image, &path);
    }
    Ok(())
}

/// Lets the user that everything runs as write to a folder that we just made.
fn give_to_user(place: &DockerPlace, image: &Image, path: &Path) {
    let empty = fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
    if !empty {
        return;
    }
    // Where this is not allowed, it is us already, or the container says so.
    match place.settings.run_as {
        Some(user) => {
            let _ = std::os::unix::fs::chown(path, Some(user.uid), Some(user.gid));
        }
        // Nobody knows the number of another user; the folder above is ours alone.
        None if !runs_as_root(&place.settings, image) => {
            let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o777));
        }
        None => {}
    }
}

/// Tries once; the inner error is what the engine said, and nothing is left of the attempt.
async fn try_create(
    place: &DockerPlace,
    engine: &Engine,
    image: &Image,
    attempt: &Attempt,
    binary: Option<&GuestBinary>,
) -> Result<Result<Made, String>, PlaceError> {
    let name = container_name(&place.task)?;
    let guest = match (&attempt.main, binary) {
        (Main::Keeper, _) | (_, None) => NO_GUEST,
        (_, Some(binary)) => binary.folder_name(),
    };
    let home = std::env::home_dir();
    let directory = std::env::current_dir().ok();
    let plan = Plan {
        settings: &place.settings,
        name: &name,
        labels: &place.labels(&name, guest),
        image,
        abilities: engine.abilities().await?,
        flavour: engine.flavour,
        main: &attempt.main,
        refused: &attempt.refused,
        user_home: home.as_deref(),
        directory: directory.as_deref(),
    };
    let planned = plan.words()?;
    let program = match (&attempt.main, binary) {
        (Main::Copied, Some(binary)) => Some(binary.bytes()?),
        _ => None,
    };
    let started = if program.is_some() || !planned.open.is_empty() {
        create_and_copy(engine, &planned, program.as_deref()).await
    } else {
        run(engine, &planned.arguments).await
    };
    let answer = match started {
        Ok(answer) => answer,
        Err(error) => {
            discard(engine, &name).await;
            return Err(error);
        }
    };
    // An engine that went on without a limit only mentions it.
    if !answer.ok
        || classify::refused_limit(&answer.stderr)
            .is_some_and(|limit| !attempt.refused.contains(&limit))
    {
        discard(engine, &name).await;
        return Ok(Err(answer.complaint().to_owned()));
    }
    let id = answer
        .stdout
        .lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty());
    match engine.container(id.unwrap_or(&name)).await? {
        // Extra arguments can say more than we read in them, such as a file of labels.
        Some(container) if !container.is_ours(&place.profile()) => {
            remove(engine, &container).await?;
            Err(PlaceError::backend(
                Trouble::BadSetting,
                "the extra arguments of the docker backend change the container's name or our \
                 labels, by which it is known",
                "leave out `--name` and labels that begin with `exoshell`",
            ))
        }
        Some(container) => Ok(Ok(Made {
            container,
            notes: planned.notes,
        })),
        None => Err(does_not_start(engine, "it ended at once and is gone")),
    }
}

async fn run(engine: &Engine, planned: &[String]) -> Result<Answer, PlaceError> {
    let mut all = words(["run", "--detach"]);
    all.extend(planned.iter().cloned());
    engine
        .client
        .run("start a container", &all, RUN_LIMIT)
        .await
}

/// Makes a container, copies the guest and open folders into it, and starts it.
async fn create_and_copy(
    engine: &Engine,
    planned: &Written,
    program: Option<&[u8]>,
) -> Result<Answer, PlaceError> {
    let mut all = words(["create"]);
    all.extend(planned.arguments.iter().cloned());
    let created = engine
        .client
        .run("create a container", &all, RUN_LIMIT)
        .await?;
    if !created.ok {
        return Ok(created);
    }
    let id = created.stdout.trim().to_owned();
    let copy = words(["cp", "-", &format!("{id}:/")]);
    let archive = archive::pack_with(program.map(|program| ("guest", program)), &planned.open);
    let what = "copy the guest into the container";
    let copied = engine.client.feed(what, &copy, archive, RUN_LIMIT).await?;
    // A filesystem that nothing can be written to still makes a container, without open folders.
    if !copied.ok && program.is_some() {
        return Ok(copied);
    }
    let start = words(["start", &id]);
    let started = engine
        .client
        .run("start a container", &start, START_LIMIT)
        .await?;
    if started.ok { Ok(created) } else { Ok(started) }
}

/// Starts a container that has ended.
pub(crate) async fn start(engine: &Engine, container: &Container) -> Result<(), PlaceError> {
    let start = words(["start", &container.id]);
    engine
        .client
        .succeed("start the container again", &start, START_LIMIT)
        .await
        .map(|_printed| ())
}

/// Ends a container, politely at first, and removes it. One that is gone already is fine.
pub(crate) async fn remove(engine: &Engine, container: &Container) -> Result<(), PlaceError> {
    if matches!(
        container.state.as_str(),
        "running" | "paused" | "restarting"
    ) {
        // Whatever it says, the removal ends what is left.
        let _ = engine.stop(&container.id, STOP_GRACE, STOP_LIMIT).await?;
    }
    finish_removal(engine, container, true).await
}

/// Removes a container only if it does not run.
pub(crate) async fn remove_ended(engine: &Engine, container: &Container) -> Result<(), PlaceError> {
    finish_removal(engine, container, false).await
}

async fn finish_removal(
    engine: &Engine,
    container: &Container,
    force: bool,
) -> Result<(), PlaceError> {
    let what = "remove the container";
    let began = Instant::now();
    loop {
        let id = &container.id;
        let answer = engine.remove(what, id, force, REMOVE_LIMIT).await?;
        let text = answer.complaint();
        if answer.ok || classify::is_gone(text) {
            return Ok(());
        }
        if !classify::is_being_removed(text) || began.elapsed() >= REMOVE_LIMIT {
            return Err(engine.client.failure(what, &answer));
        }
        tokio::time::sleep(REMOVE_PAUSE).await;
    }
}

/// Removes what a failed attempt left; there may be nothing.
async fn discard(engine: &Engine, name: &str) {
    let what = "remove the container";
    let _ = engine.remove(what, name, true, REMOVE_LIMIT).await;
}

/// Explains why a container ended although it should run, with its last words.
pub(crate) async fn post_mortem(engine: &Engine, container: &Container) -> PlaceError {
    let ask = words(["logs", "--tail", "10", &container.id]);
    let logs = engine.client.run("read the log", &ask, LIST_LIMIT).await;
    let said = logs.map_or_else(
        |error| error.to_string(),
        |logs| classify::quote(&format!("{}\n{}", logs.stdout, logs.stderr)),
    );
    let code = match engine.container(&container.id).await {
        Ok(Some(container)) => format!(" with code {}", container.exit_code),
        _ => String::new(),
    };
    does_not_start(engine, &format!("it ended{code} and said: {said}"))
}

fn does_not_start(engine: &Engine, why: &str) -> PlaceError {
    PlaceError::backend(
        Trouble::DoesNotStart,
        format!("the container does not stay up: {why}"),
        format!(
            "see whether `{} run --rm` of the same image works, and whether the extra arguments \
             of the docker backend are right",
            engine.name()
        ),
    )
}

/// Chooses a name that tells people whose container it is.
fn container_name(task: &str) -> Result<String, PlaceError> {
    let task: String = label_value(task).chars().take(40).collect();
    let nonce = nonce()?;
    let unique = nonce.get(..8).unwrap_or(&nonce);
    Ok(format!("exoshell-{}-{unique}", task.to_lowercase()))
}

impl DockerPlace {
    /// Returns the labels of a container of ours.
    pub(crate) fn labels(&self, name: &str, guest: &str) -> Vec<(String, String)> {
        let mut labels = vec![
            (label::PRODUCT.to_owned(), "1".to_owned()),
            (label::NAME.to_owned(), name.to_owned()),
            (label::TASK.to_owned(), label_value(&self.task)),
            (label::TASK_ID.to_owned(), self.task_id()),
            (label::PROFILE.to_owned(), self.profile()),
            (label::CONFIG.to_owned(), self.settings.config_hash()),
            (label::GUEST.to_owned(), guest.to_owned()),
        ];
        for (name, value) in self.settings.shape() {
            labels.push((format!("{}.{name}", label::CONFIG), value));
        }
        labels
    }
}

#[cfg(test)]
#[path = "create_tests.rs"]
mod tests;
