//! The life of a container of ours: found, started, replaced or made.

use std::time::{Duration, Instant};

use exoshell_place::{Link, LinkOptions, Pipe, PlaceError, Progress, Trouble};
use exoshell_wire::Processes;

use crate::create::{self, NO_GUEST};
use crate::engine::{self, Engine};
use crate::pipe::{Attached, Call, attach};
use crate::place::DockerPlace;
use crate::plan::{GUEST, GUEST_DIRS};
use crate::pull;
use crate::records::{Container, label};

/// How long the guest of a container may take to start.
const GUEST_LIMIT: Duration = Duration::from_secs(20);

/// How often a place that vanishes under us is made again before we give up.
const MAX_TRIES: usize = 4;

/// How a container that can be used came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Running,
    Started,
    Created,
}

impl DockerPlace {
    /// Returns a container that should run: one that is there, or a new one.
    async fn provision(
        &self,
        engine: &Engine,
        progress: &Progress,
    ) -> Result<(Container, Origin), PlaceError> {
        let lock = self.lock(progress).await?;
        for container in self.containers(engine).await? {
            if container.state == "paused" {
                return Err(paused(engine, &container));
            }
            let changes = self.changes(&container);
            if !changes.is_empty() {
                self.replace(engine, &container, &changes, progress).await?;
                continue;
            }
            if container.is_running() {
                return Ok((container, Origin::Running));
            }
            progress.step("starting the container again");
            match create::start(engine, &container).await {
                Ok(()) => return Ok((container, Origin::Started)),
                Err(error) if is_final(&error) => return Err(error),
                Err(error) => {
                    self.note(format!("the old container was replaced: {error}"));
                    create::remove(engine, &container).await?;
                }
            }
        }
        let made = create::create(self, engine, progress).await?;
        drop(lock);
        for note in made.notes {
            self.note(note);
        }
        Ok((made.container, Origin::Created))
    }

    /// Names the settings in which a container differs from what is wanted.
    fn changes(&self, container: &Container) -> Vec<&'static str> {
        if container.label(label::CONFIG) == self.settings.config_hash() {
            return Vec::new();
        }
        let mut changes: Vec<&'static str> = self
            .settings
            .shape()
            .into_iter()
            .filter(|(name, value)| container.label(&format!("{}.{name}", label::CONFIG)) != value)
            .map(|(name, _)| name)
            .collect();
        if changes.is_empty() {
            changes.push("version");
        }
        changes
    }

    /// Removes a container with other settings, unless something runs in it.
    async fn replace(
        &self,
        engine: &Engine,
        container: &Container,
        changes: &[&'static str],
        progress: &Progress,
    ) -> Result<(), PlaceError> {
        let what = changes.join(", ");
        // Nothing is given up for an image that cannot be had. A pull can take minutes, so the
        // container is looked at afterwards.
        pull::image(engine, &self.settings.image, progress).await?;
        // The guest is asked right before the stop. Our lock keeps hosts that open the place out,
        // but not one whose pipe is open already: what it starts in the few milliseconds between
        // the guest's answer and the engine's signal is ended, and that host is told that its
        // place is lost.
        if container.is_running() && self.is_busy(engine, container).await? {
            return Err(PlaceError::backend(
                Trouble::OtherSettings,
                format!(
                    "the container {} of this task was made with other settings ({what}), and \
                     something runs in it",
                    container.short_id()
                ),
                "end what runs there, set the settings back, or remove the place with `exoshell \
                 places rm`",
            ));
        }
        create::remove(engine, container).await?;
        self.note(format!(
            "the container {} was replaced because its settings changed: {what}",
            container.short_id()
        ));
        Ok(())
    }

    /// Asks the guest whether anything runs in a container.
    async fn is_busy(&self, engine: &Engine, container: &Container) -> Result<bool, PlaceError> {
        if container.label(label::GUEST) == NO_GUEST {
            // Its commands end with the hosts that run them.
            return Ok(false);
        }
        let pipe = match attach(engine, &container.id, own_call()).await? {
            Attached::Pipe(pipe) => *pipe,
            Attached::Stopped => return Ok(false),
            // Nobody can tell.
            Attached::Without(_) => return Ok(true),
        };
        let options = LinkOptions {
            build: env!("CARGO_PKG_VERSION").to_owned(),
            linger: true,
            max_warm_shells: 64,
            heartbeat: None,
        };
        let link = Link::open(pipe, &options).await?;
        let info = link.info().await?;
        let everything = Processes {
            id: None,
            session: None,
        };
        let processes = link.processes(everything).await?;
        Ok(!info.leftovers.is_empty()
            || info.sessions.iter().any(|session| session.running > 0)
            || processes
                .iter()
                .any(|process| process.ended_ago_ms.is_none()))
    }

    /// Opens a pipe to this task's container, whatever that takes.
    pub(crate) async fn open_own(&self, progress: &Progress) -> Result<Pipe, PlaceError> {
        let engine = engine::find(&self.settings).await?;
        for attempt in 0..MAX_TRIES {
            let (container, origin) = self.provision(&engine, progress).await?;
            self.remember(Some(&container.id));
            if container.label(label::GUEST) == NO_GUEST {
                return Err(PlaceError::NoGuest {
                    why: format!(
                        "the image `{}` is for another platform, or allows no programs of ours",
                        self.settings.image
                    ),
                });
            }
            let silent = match self.attach_patiently(&engine, &container).await? {
                Attached::Pipe(pipe) => return Ok(*pipe),
                Attached::Stopped => None,
                Attached::Without(why) => Some(why),
            };
            self.remember(None);
            match (origin, silent) {
                // It ended between our look and our call.
                (Origin::Running, None) => {}
                // Whatever runs in there is not ours to end.
                (Origin::Running, Some(why)) => {
                    return Err(PlaceError::Unreachable { message: why });
                }
                (Origin::Started, _) => {
                    let id = container.short_id();
                    self.note(format!(
                        "the container {id} was replaced: it did not stay up"
                    ));
                    self.discard(&engine, &container).await?;
                }
                // Somebody removed it meanwhile, who did not mean what comes next.
                (Origin::Created, None)
                    if attempt == 0 && self.was_ended(&engine, &container).await? =>
                {
                    self.discard(&engine, &container).await?;
                }
                (Origin::Created, _) => {
                    let error = create::post_mortem(&engine, &container).await;
                    self.discard(&engine, &container).await?;
                    return Err(error);
                }
            }
        }
        Err(PlaceError::backend(
            Trouble::DoesNotStart,
            "the container ends again and again while it is being used",
            "see whether something else on this machine stops or removes containers",
        ))
    }

    /// Tells whether a container that is not up was ended on purpose: a guest that fails says so
    /// with its code.
    async fn was_ended(&self, engine: &Engine, container: &Container) -> Result<bool, PlaceError> {
        Ok(match engine.container(&container.id).await? {
            Some(container) => container.exit_code == 0 || container.state == "removing",
            None => true,
        })
    }

    /// Opens a pipe to a guest that may still be starting: many containers at once, or a busy
    /// machine, need longer than a guest waits for another.
    async fn attach_patiently(
        &self,
        engine: &Engine,
        container: &Container,
    ) -> Result<Attached, PlaceError> {
        let deadline = Instant::now() + GUEST_LIMIT;
        loop {
            let attached = attach(engine, &container.id, own_call()).await?;
            if !matches!(attached, Attached::Without(_)) || Instant::now() > deadline {
                return Ok(attached);
            }
        }
    }

    /// Removes a container that turned out to be useless, as it is now.
    async fn discard(&self, engine: &Engine, container: &Container) -> Result<(), PlaceError> {
        match engine.container(&container.id).await? {
            Some(container) => create::remove(engine, &container).await,
            None => Ok(()),
        }
    }

    /// Opens a pipe to this task's container if it runs.
    pub(crate) async fn open_existing_own(&self) -> Result<Option<Pipe>, PlaceError> {
        let engine = engine::find(&self.settings).await?;
        for container in self.containers(&engine).await? {
            if !container.is_running() {
                continue;
            }
            match attach(&engine, &container.id, own_call()).await? {
                Attached::Pipe(pipe) => {
                    self.remember(Some(&container.id));
                    return Ok(Some(*pipe));
                }
                Attached::Stopped | Attached::Without(_) => {}
            }
        }
        Ok(None)
    }
}

/// Calls the guest of a container that we made.
const fn own_call() -> Call<'static> {
    Call {
        guest: GUEST,
        dirs: GUEST_DIRS,
        existing: true,
    }
}

/// Tells whether a failed start says nothing about the container itself.
fn is_final(error: &PlaceError) -> bool {
    !matches!(
        error.trouble(),
        Some(
            Trouble::DoesNotStart
                | Trouble::BadSetting
                | Trouble::NoContainer
                | Trouble::NoImage
                | Trouble::TooSlow
        )
    )
}

fn paused(engine: &Engine, container: &Container) -> PlaceError {
    let id = container.short_id();
    PlaceError::backend(
        Trouble::DoesNotStart,
        format!("the container {id} is paused"),
        format!("continue it with `{} unpause {id}`", engine.name()),
    )
}
