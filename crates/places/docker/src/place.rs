//! A container as a place.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use exoshell_place::bundle::{self, GuestBinary};
use exoshell_place::{
    Check, Facts, Launched, Life, Pipe, Place, PlaceError, PlaceFuture, Progress, Trouble,
};
use rustix::fs::FlockOperation;

use crate::adopt;
use crate::create;
use crate::engine::{self, Engine};
use crate::orphans::is_orphan;
use crate::records::{Container, label};
use crate::report;
use crate::settings::{DockerSettings, hash};

/// How long a command may outlive a lost pipe.
const LEASE: Duration = Duration::from_secs(60);

/// How often the guest is asked for a sign of life: an engine can stall without closing a pipe.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// A container of Docker or Podman, as a place.
#[derive(Debug, Clone)]
pub struct DockerPlace {
    pub(crate) settings: DockerSettings,
    pub(crate) home: PathBuf,
    pub(crate) task: String,
    /// What this process found out; clones share it.
    known: Arc<Mutex<Known>>,
}

/// What is remembered of the container in use.
#[derive(Debug, Default)]
struct Known {
    container: Option<String>,
    notes: Vec<String>,
}

impl DockerPlace {
    /// Describes the container of a task. Touches nothing; the task's name only ends up in labels
    /// and names.
    pub fn new(
        settings: DockerSettings,
        home: impl Into<PathBuf>,
        task: impl Into<String>,
    ) -> Self {
        Self {
            settings,
            home: home.into(),
            task: task.into(),
            known: Arc::default(),
        }
    }

    /// Returns the name that tells this task's containers from all others.
    pub(crate) fn task_id(&self) -> String {
        hash(self.task.as_bytes(), 16)
    }

    /// Returns whose containers these are.
    pub(crate) fn profile(&self) -> String {
        self.settings.profile_label(&self.home)
    }

    /// Puts the guest on this machine, for mounting or copying.
    pub(crate) fn install(&self, binary: &GuestBinary) -> Result<PathBuf, PlaceError> {
        let dir = self.home.join("guest");
        self.make_folder(&dir)?;
        Ok(bundle::install(binary, &dir)?)
    }

    fn make_folder(&self, dir: &std::path::Path) -> Result<(), PlaceError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(dir);
        made.map_err(|source| self.setup(&format!("cannot create `{}`", dir.display()), source))
    }

    fn setup(&self, action: &str, source: io::Error) -> PlaceError {
        PlaceError::Setup {
            action: action.to_owned(),
            source,
            hint: format!(
                "set `EXOSHELL_HOME` to a folder that you can write (it is `{}`)",
                self.home.display()
            ),
        }
    }

    pub(crate) fn note(&self, note: impl Into<String>) {
        let note = note.into();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if !known.notes.contains(&note) {
            known.notes.push(note);
        }
    }

    pub(crate) fn remember(&self, container: Option<&str>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.container = container.map(str::to_owned);
    }

    fn notes(&self) -> Vec<String> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.notes.clone()
    }

    fn current(&self) -> Option<String> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.container.clone()
    }

    /// Lists this task's containers: running first, then the newest.
    pub(crate) async fn containers(&self, engine: &Engine) -> Result<Vec<Container>, PlaceError> {
        let profile = self.profile();
        let labels = [
            format!("{}=1", label::PRODUCT),
            format!("{}={profile}", label::PROFILE),
            format!("{}={}", label::TASK_ID, self.task_id()),
        ];
        let mut found = engine.list(&labels).await?;
        found.retain(|container| container.is_ours(&profile));
        found.sort_by_key(|container| (!container.is_running(), -container.created.unwrap_or(0)));
        Ok(found)
    }

    /// Takes the lock that lets one host process at a time prepare this task's container.
    pub(crate) async fn lock(&self, progress: &Progress) -> Result<fs::File, PlaceError> {
        let dir = self.home.join("docker");
        self.make_folder(&dir)?;
        let path = dir.join(format!("{}.lock", self.task_id()));
        let failed =
            |source: io::Error| self.setup(&format!("cannot lock `{}`", path.display()), source);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(&path)
            .map_err(failed)?;
        match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(file),
            Err(rustix::io::Errno::WOULDBLOCK) => {}
            Err(errno) => return Err(failed(errno.into())),
        }
        progress.step("waiting for another process that prepares the same container");
        let locked = tokio::task::spawn_blocking(move || {
            rustix::fs::flock(&file, FlockOperation::LockExclusive).map(|()| file)
        });
        match locked.await {
            Ok(Ok(file)) => Ok(file),
            Ok(Err(errno)) => Err(failed(errno.into())),
            Err(error) => Err(PlaceError::Nonsense(error.to_string())),
        }
    }

    /// Finds the container that commands run in now, without making one.
    async fn find(&self, engine: &Engine) -> Result<Option<Container>, PlaceError> {
        if let Some(name) = &self.settings.container {
            crate::names::check_container(name)?;
            return engine.container(name).await;
        }
        if let Some(id) = self.current()
            && let Some(container) = engine.container(&id).await?
        {
            return Ok(Some(container));
        }
        Ok(self.containers(engine).await?.into_iter().next())
    }

    async fn facts(&self) -> Result<Facts, PlaceError> {
        let engine = engine::find(&self.settings).await?;
        let notes = self.notes();
        let name = Some(engine.flavour.as_str().to_owned());
        Ok(match self.find(&engine).await? {
            Some(container) => Facts {
                id: Some(container.short_id().to_owned()),
                engine: name,
                image: Some(container.image.clone()),
                state: Some(container.state.clone()),
                unenforced: container.unenforced(),
                notes,
            },
            None => Facts {
                engine: name,
                image: (self.settings.container.is_none()).then(|| self.settings.image.clone()),
                notes,
                ..Facts::default()
            },
        })
    }

    async fn sweep_orphans(&self) -> Result<(), PlaceError> {
        let engine = engine::find(&self.settings).await?;
        let profile = self.profile();
        let labels = [
            format!("{}=1", label::PRODUCT),
            format!("{}={profile}", label::PROFILE),
        ];
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        for container in engine.list(&labels).await? {
            if is_orphan(&container, now, self.settings.lifetime, &profile) {
                // One that was started meanwhile is refused by the engine, and lives.
                let _ = create::remove_ended(&engine, &container).await;
            }
        }
        Ok(())
    }

    async fn destroy_own(&self) -> Result<(), PlaceError> {
        let engine = engine::find(&self.settings).await?;
        let lock = self.lock(&Progress::default()).await?;
        for container in self.containers(&engine).await? {
            create::remove(&engine, &container).await?;
        }
        self.remember(None);
        drop(lock);
        Ok(())
    }
}

impl Place for DockerPlace {
    fn backend(&self) -> &'static str {
        "docker"
    }

    fn life(&self) -> Life {
        Life {
            lease: LEASE,
            heartbeat: Some(HEARTBEAT),
            linger: self.settings.persist_across_processes || self.settings.container.is_some(),
            session: None,
        }
    }

    fn open<'a>(&'a self, progress: &'a Progress) -> PlaceFuture<'a, Pipe> {
        Box::pin(async move {
            match &self.settings.container {
                Some(name) => adopt::open(self, name, progress).await,
                None => self.open_own(progress).await,
            }
        })
    }

    fn open_existing(&self) -> PlaceFuture<'_, Option<Pipe>> {
        Box::pin(async move {
            match &self.settings.container {
                Some(name) => adopt::open_existing(self, name).await,
                None => self.open_existing_own().await,
            }
        })
    }

    fn launch<'a>(&'a self, words: &'a [String]) -> PlaceFuture<'a, Launched> {
        Box::pin(async move {
            let engine = engine::find(&self.settings).await?;
            match self.find(&engine).await? {
                Some(container) if container.is_running() => {
                    engine.exec(&container.id, words).await
                }
                _ => Err(PlaceError::backend(
                    Trouble::NoContainer,
                    "the container of this task does not run",
                    "use the task again, which makes a new one",
                )),
            }
        })
    }

    fn inspect(&self) -> PlaceFuture<'_, Facts> {
        Box::pin(self.facts())
    }

    fn take_notes(&self) -> Vec<String> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut known.notes)
    }

    fn sweep(&self) -> PlaceFuture<'_, ()> {
        Box::pin(self.sweep_orphans())
    }

    fn destroy(&self) -> PlaceFuture<'_, ()> {
        Box::pin(async move {
            match &self.settings.container {
                Some(name) => adopt::leave(self, name).await,
                None => self.destroy_own().await,
            }
        })
    }

    fn check(&self) -> PlaceFuture<'_, Vec<Check>> {
        Box::pin(async move { Ok(report::checks(&self.settings).await) })
    }
}
