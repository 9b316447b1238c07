//! The runtime: what every door calls.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use exoshell_place::{Link, LinkOptions, Place};
use exoshell_place_local::LocalPlace;
use exoshell_wire::{OpenSession, RawBytes, SessionOpened, SessionSpec};

use crate::config::{self, Environment, Resolved};
use crate::error::RuntimeError;
use crate::event::{Event, EventHub, EventKind, Events};
use crate::processes::ProcessRecords;
use crate::record::{Record, Records, TaskOverrides, check_task, now};

/// Who a process of the lifetime `session` ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    Runtime,
    Task,
}

/// Runs commands in tasks; clones share everything.
#[derive(Debug, Clone)]
pub struct Runtime {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) config: Resolved,
    environment: Environment,
    pub(crate) place: Arc<dyn Place>,
    link: tokio::sync::Mutex<Option<Link>>,
    pub(crate) records: Records,
    pub(crate) processes: ProcessRecords,
    overrides: Mutex<HashMap<String, TaskOverrides>>,
    pub(crate) owner: Owner,
    events: EventHub,
}

impl Runtime {
    /// Makes a runtime. Nothing is started before it is needed.
    pub fn new(config: Resolved, environment: Environment) -> Self {
        let place = LocalPlace::new(&config.home).with_guest_dir(config.places.guest_dir.clone());
        let inner = Inner {
            records: Records::new(&config.home),
            processes: ProcessRecords::new(&config.home),
            place: Arc::new(place),
            link: tokio::sync::Mutex::new(None),
            overrides: Mutex::default(),
            owner: Owner::Runtime,
            events: EventHub::default(),
            config,
            environment,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Makes processes with the lifetime `session` end with their task instead of with this
    /// runtime: for doors whose program ends after each call.
    #[must_use]
    pub fn owned_by_tasks(mut self) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.owner = Owner::Task;
        }
        self
    }

    /// Returns the configuration in force.
    pub fn config(&self) -> &Resolved {
        &self.inner.config
    }

    /// Subscribes to what happens from now on.
    pub fn events(&self) -> Events {
        self.inner.events.subscribe()
    }

    /// Fixes directory, variables and labels of a task. Directory and variables take effect when
    /// its session is created; a model can never call this.
    pub fn set_overrides(&self, task: &str, overrides: TaskOverrides) -> Result<(), RuntimeError> {
        check_task(task)?;
        self.overrides_map().insert(task.to_owned(), overrides);
        Ok(())
    }

    fn overrides_map(&self) -> MutexGuard<'_, HashMap<String, TaskOverrides>> {
        self.inner
            .overrides
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn overrides(&self, task: &str) -> TaskOverrides {
        self.overrides_map().get(task).cloned().unwrap_or_default()
    }

    pub(crate) fn emit(&self, task: &str, kind: EventKind) {
        self.inner.events.emit(&Event {
            time: SystemTime::now(),
            task: task.to_owned(),
            kind,
            labels: self.overrides(task).labels,
        });
    }

    fn link_options(&self) -> LinkOptions {
        let places = &self.inner.config.places;
        LinkOptions {
            build: env!("CARGO_PKG_VERSION").to_owned(),
            linger: places.linger,
            max_warm_shells: u32::try_from(places.max_warm_shells).unwrap_or(u32::MAX),
            // A local pipe reports its own end.
            heartbeat: None,
        }
    }

    pub(crate) fn backend(&self) -> &'static str {
        self.inner.place.backend()
    }

    pub(crate) fn lease_ms(&self) -> u64 {
        millis(self.inner.place.life().lease)
    }

    /// Returns the link to the place, opening it if there is none. Concurrent callers share one
    /// opening.
    pub(crate) async fn link(&self) -> Result<Link, RuntimeError> {
        let mut slot = self.inner.link.lock().await;
        if let Some(link) = slot.as_ref().filter(|link| link.is_open()) {
            return Ok(link.clone());
        }
        let pipe = self
            .inner
            .place
            .open(&exoshell_place::Progress::default())
            .await?;
        let link = Link::open(pipe, &self.link_options()).await?;
        *slot = Some(link.clone());
        Ok(link)
    }

    /// Returns the link only if a guest is there already.
    pub(crate) async fn existing_link(&self) -> Result<Option<Link>, RuntimeError> {
        let mut slot = self.inner.link.lock().await;
        if let Some(link) = slot.as_ref().filter(|link| link.is_open()) {
            return Ok(Some(link.clone()));
        }
        let Some(pipe) = self.inner.place.open_existing().await? else {
            return Ok(None);
        };
        let link = Link::open(pipe, &self.link_options()).await?;
        *slot = Some(link.clone());
        Ok(Some(link))
    }

    /// Forgets the link, for instance because its guest was ended.
    pub(crate) async fn drop_link(&self) {
        *self.inner.link.lock().await = None;
    }

    /// Makes sure that the task's place and session exist. Tells whether an earlier session of
    /// the task, and with it its state, is gone.
    pub(crate) async fn open_session(
        &self,
        link: &Link,
        task: &str,
    ) -> Result<(SessionOpened, bool), RuntimeError> {
        let (record, new_place) = self.record(task)?;
        let request = OpenSession {
            key: session_key(task),
            spec: self.session_spec(task, &record),
            only_existing: false,
        };
        let opened = link.open_session(request).await?;
        let incarnation = &link.hello().incarnation;
        let forgotten = opened.created && record.incarnation.is_some();
        if record.incarnation.as_ref() != Some(incarnation) {
            self.inner.records.update(task, |record| {
                record.incarnation = Some(incarnation.clone());
            })?;
        }
        if new_place {
            let backend = self.backend();
            self.emit(task, EventKind::PlaceCreated { backend });
        }
        Ok((opened, forgotten))
    }

    fn record(&self, task: &str) -> Result<(Record, bool), RuntimeError> {
        self.inner.records.get_or_create(task, || {
            let (directory, own_directory) = self.first_directory(task)?;
            Ok(Record {
                task: task.to_owned(),
                backend: self.backend().to_owned(),
                created: now(),
                directory: raw(directory.as_os_str()),
                own_directory,
                incarnation: None,
            })
        })
    }

    /// Chooses the directory a task starts in; in batch mode each gets one of its own.
    fn first_directory(&self, task: &str) -> Result<(PathBuf, bool), RuntimeError> {
        if let Some(cwd) = self.overrides(task).cwd {
            return Ok((cwd, false));
        }
        let base = self.base_directory()?;
        let places = &self.inner.config.places;
        if !places.batch {
            return Ok((base, false));
        }
        let tag = exoshell_place::nonce()?;
        let tag = tag.get(..8).unwrap_or(&tag);
        let name = crate::record::file_name(task);
        let readable = name
            .rsplit_once('-')
            .map_or(name.as_str(), |(name, _)| name);
        let directory = places
            .batch_base(&base)
            .join(format!("exoshell-{readable}-{tag}"));
        std::fs::create_dir_all(&directory).map_err(|source| RuntimeError::State {
            action: "cannot create",
            path: directory.display().to_string(),
            source,
        })?;
        Ok((directory, true))
    }

    /// Returns the directory a fresh session starts in. A caller that stands nowhere is told so:
    /// running its commands somewhere else would be a guess.
    fn base_directory(&self) -> Result<PathBuf, RuntimeError> {
        let configured = self.inner.config.terminal.cwd.clone();
        configured
            .or_else(|| self.inner.environment.directory().map(PathBuf::from))
            .ok_or_else(|| {
                RuntimeError::Usage(
                    "the current directory does not exist (any more); change to one that does, \
                     or set `terminal.cwd`"
                        .to_owned(),
                )
            })
    }

    fn session_spec(&self, task: &str, record: &Record) -> SessionSpec {
        let places = &self.inner.config.places;
        let extra_env = self
            .overrides(task)
            .env
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        SessionSpec {
            login_timeout_ms: Some(millis(self.inner.config.terminal.login_timeout)),
            idle_ms: Some(millis(places.lifetime)),
            ttl_ms: Some(millis(places.session_ttl)),
            extra_env,
            ..self.spec_in(record.directory().as_os_str())
        }
    }

    /// Returns what a one-shot command starts from: the caller's directory and environment.
    pub(crate) fn one_shot_spec(&self) -> Result<SessionSpec, RuntimeError> {
        Ok(self.spec_in(self.base_directory()?.as_os_str()))
    }

    fn spec_in(&self, directory: &OsStr) -> SessionSpec {
        let environment = config::child_environment(&self.inner.environment, &self.inner.config);
        SessionSpec {
            cwd: Some(raw(directory)),
            env: Some(
                environment
                    .iter()
                    .map(|(name, value)| (raw(name), raw(value)))
                    .collect(),
            ),
            env_remove: Vec::new(),
            extra_env: Vec::new(),
            login_timeout_ms: None,
            umask: caller_umask(),
            idle_ms: None,
            ttl_ms: None,
        }
    }
}

/// Returns the guest's name of a task's session.
pub(crate) fn session_key(task: &str) -> String {
    format!("task:{task}")
}

pub(crate) fn raw(text: &OsStr) -> RawBytes {
    RawBytes(text.as_encoded_bytes().to_vec())
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// Returns this process's umask. The call that reads it also sets it, for all threads, so the
/// kernel's own report is read instead.
fn caller_umask() -> Option<u32> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("Umask:"))?;
    u32::from_str_radix(line.trim(), 8).ok()
}
