//! The runtime: what every door calls.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use exoshell_place::{Link, PlaceError, Progress};
use exoshell_wire::{OpenSession, RawBytes, SessionSpec};

use crate::approvals::{Approver, Policy, Store};
use crate::audit::{Audit, Limits};
use crate::config::{self, Environment, Resolved, Source};
use crate::error::RuntimeError;
use crate::event::{Event, EventHub, EventKind, Events};
use crate::places::environment::place_environment;
use crate::places::slot::{Access, Slot};
use crate::places::spec::PlaceSpec;
use crate::processes::ProcessRecords;
use crate::record::{Record, Records, TaskOverrides, check_task, now};
use crate::redact::{Keeper, Outlet as _, Redactor};
use crate::sudo::Sources;

/// The task of callers that name none.
pub(crate) const DEFAULT_TASK: &str = "default";

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
    pub(crate) config: Arc<Resolved>,
    pub(crate) environment: Arc<Environment>,
    slots: Mutex<HashMap<String, Arc<Slot>>>,
    pub(crate) records: Records,
    pub(crate) processes: ProcessRecords,
    overrides: Mutex<HashMap<String, TaskOverrides>>,
    pub(crate) owner: Owner,
    pub(crate) keeper: Keeper,
    events: EventHub,
    /// What decides about intents.
    pub(crate) policy: Policy,
    /// Questions and grants that processes share.
    pub(crate) approvals: Store,
    /// Whoever answers questions while a call waits.
    pub(crate) approver: Option<Arc<dyn Approver>>,
    pub(crate) audit: Audit,
    /// The directories that sessions were last seen in, by place and task.
    directories: Mutex<HashMap<(String, String), String>>,
    /// The engines whose orphans this runtime has looked for.
    pub(crate) swept: Mutex<HashSet<PathBuf>>,
    /// Where sudo passwords come from.
    pub(crate) passwords: Sources,
}

impl Runtime {
    /// Makes a runtime. Nothing is started before it is needed.
    pub fn new(config: Resolved, environment: Environment) -> Self {
        let (config, environment) = (Arc::new(config), Arc::new(environment));
        let inner = Inner {
            policy: Policy::new(&config, &environment),
            approvals: Store::new(
                &config.home,
                config.approval.expiry,
                config.places.session_ttl,
            ),
            approver: None,
            audit: Audit::new(&config.home, Limits::default()),
            directories: Mutex::default(),
            records: Records::new(&config.home),
            processes: ProcessRecords::new(&config.home),
            slots: Mutex::default(),
            overrides: Mutex::default(),
            owner: Owner::Runtime,
            keeper: Keeper::new(Arc::clone(&config), Arc::clone(&environment)),
            events: EventHub::default(),
            swept: Mutex::default(),
            passwords: Sources::default(),
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

    /// Lets this answer questions: a callback of the embedding program, or a door's prompt.
    #[must_use]
    pub fn with_approver(mut self, approver: Arc<dyn Approver>) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.inner) {
            inner.approver = Some(approver);
        }
        self
    }

    /// Returns the configuration in force.
    pub fn config(&self) -> &Resolved {
        &self.inner.config
    }

    /// Returns what hides the secrets that are known now, in everything that leaves the runtime:
    /// those of the environment and the configuration, and those that were added.
    pub fn redactor(&self) -> Redactor {
        self.inner.keeper.redactor()
    }

    /// Returns what knows the secrets, for those who have something to say after the runtime is
    /// gone.
    pub fn keeper(&self) -> Keeper {
        self.inner.keeper.clone()
    }

    /// Hides this value from now on, whatever it looks like; the name is for the pass list.
    /// Values of less than eight bytes are not hidden: they stand in harmless text too often.
    pub fn add_secret(&self, name: &str, value: impl AsRef<[u8]>) {
        self.inner.keeper.add(name, value.as_ref());
    }

    /// Subscribes to what happens from now on.
    pub fn events(&self) -> Events {
        self.inner.events.subscribe()
    }

    /// Fixes directory, variables and labels of a task. Directory and variables take effect when
    /// its session is created; a model can never call this.
    pub fn set_overrides(&self, task: &str, overrides: TaskOverrides) -> Result<(), RuntimeError> {
        check_task(task)?;
        self.inner.keeper.add_variables(&overrides.env);
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

    pub(crate) fn emit(&self, task: &str, mut kind: EventKind) {
        kind.clean(&self.redactor());
        self.inner.events.emit(&Event {
            time: SystemTime::now(),
            task: task.to_owned(),
            kind,
            labels: self.overrides(task).labels,
        });
    }

    /// Returns the place a task uses now.
    pub(crate) fn slot(&self, task: &str) -> Result<Arc<Slot>, RuntimeError> {
        let inner = &self.inner;
        let directory = inner.environment.directory();
        let spec = PlaceSpec::choose(&inner.config, &self.overrides(task), task, directory)?;
        self.slot_of(spec, task)
    }

    /// Returns the place that a record tells of.
    pub(crate) fn recorded_slot(&self, record: &Record) -> Result<Arc<Slot>, RuntimeError> {
        self.slot_of(record.place.clone(), &record.task)
    }

    fn slot_of(&self, spec: PlaceSpec, task: &str) -> Result<Arc<Slot>, RuntimeError> {
        let label = spec.label(task);
        let mut slots = self.slots();
        if let Some(slot) = slots.get(&label).filter(|slot| slot.spec == spec) {
            return Ok(Arc::clone(slot));
        }
        let config = &self.inner.config;
        let place = spec.build(config, task)?;
        let warm = u32::try_from(config.places.max_warm_shells).unwrap_or(u32::MAX);
        let slot = Arc::new(Slot::new(spec, label.clone(), place, warm));
        slots.insert(label, Arc::clone(&slot));
        Ok(slot)
    }

    /// Returns the place on this machine that every home has.
    pub(crate) fn local_slot(&self) -> Result<Arc<Slot>, RuntimeError> {
        self.slot_of(PlaceSpec::Local, "")
    }

    /// Returns every place of this home: the local one and those of all records.
    pub(crate) fn known_slots(&self) -> Result<Vec<Arc<Slot>>, RuntimeError> {
        let mut slots = vec![self.local_slot()?];
        for record in self.inner.records.list() {
            let slot = self.recorded_slot(&record)?;
            if !slots.iter().any(|known| known.label == slot.label) {
                slots.push(slot);
            }
        }
        Ok(slots)
    }

    /// Remembers the directory that a task's session was left in.
    pub(crate) fn moved(&self, slot: &Slot, task: &str, directory: &str) {
        let key = (slot.label.clone(), task.to_owned());
        self.directories().insert(key, directory.to_owned());
    }

    /// Returns the directory that a task's session was left in, if this program knows.
    pub(crate) fn directory_of(&self, slot: &Slot, task: &str) -> Option<String> {
        let key = (slot.label.clone(), task.to_owned());
        self.directories().get(&key).cloned()
    }

    /// Forgets the directories of a task's sessions.
    pub(crate) fn forget_directories(&self, task: &str) {
        self.directories().retain(|(_, known), _| known != task);
    }

    fn directories(&self) -> MutexGuard<'_, HashMap<(String, String), String>> {
        self.inner
            .directories
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the directory that a task works in from its beginning.
    pub(crate) fn task_directory(&self, slot: &Slot, task: &str) -> Option<String> {
        if !slot.spec.is_local() {
            return self.fresh_directory(slot, task);
        }
        let records = self.inner.records.of_task(task);
        let record = records
            .into_iter()
            .find(|record| record.label == slot.label);
        match record {
            Some(record) => Some(record.directory.display()),
            None => self.fresh_directory(slot, task),
        }
    }

    /// Returns the directory that a fresh session of a task would start in.
    pub(crate) fn fresh_directory(&self, slot: &Slot, task: &str) -> Option<String> {
        let directory = if slot.spec.is_local() {
            let fixed = self.overrides(task).cwd;
            fixed.or_else(|| self.base_directory().ok())
        } else {
            self.place_directory(slot, task, &mut Vec::new())
        };
        directory.map(|path| path.to_string_lossy().into_owned())
    }

    fn slots(&self) -> MutexGuard<'_, HashMap<String, Arc<Slot>>> {
        self.inner
            .slots
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets a place that was removed.
    pub(crate) fn forget_slot(&self, label: &str) {
        self.slots().remove(label);
    }

    /// Reports the steps of something long as events of a task.
    pub(crate) fn progress(&self, task: &str) -> Progress {
        let (runtime, task) = (self.clone(), task.to_owned());
        Progress::new(move |line| {
            let step = line.to_owned();
            runtime.emit(&task, EventKind::Progress { step });
        })
    }

    /// Returns the way into a task's place, making the place if it is not there.
    ///
    /// A place that has to be made is in the records before, so that it is listed and can be
    /// removed whatever becomes of this program meanwhile.
    pub(crate) async fn enter(
        &self,
        slot: &Slot,
        task: &str,
        limit: Duration,
    ) -> Result<Access, RuntimeError> {
        let noted = !slot.spec.is_local() && !slot.is_open() && self.record(slot, task)?.1;
        match slot.enter(&self.progress(task), limit).await {
            Ok(access) => {
                self.sweep_later(slot);
                Ok(access)
            }
            Err(error) => {
                // What happened on the way stays true: the next call that gets there tells it.
                // Where it cannot be kept, the failure itself is what counts.
                let _ = self.keep_notes(slot, task, slot.place.take_notes());
                if noted && !slot.may_have_left_something(&error).await {
                    self.inner.records.remove_unused(task, &slot.label)?;
                }
                Err(error.into())
            }
        }
    }

    /// Keeps notes about a task's place for the next call that succeeds.
    pub(crate) fn keep_notes(
        &self,
        slot: &Slot,
        task: &str,
        notes: Vec<String>,
    ) -> Result<(), RuntimeError> {
        if notes.is_empty() {
            return Ok(());
        }
        self.inner
            .records
            .update(task, &slot.label, |record| record.keep_notes(notes))
    }

    /// Takes what happened to a task's place and nobody was told yet, one sentence each: settings
    /// that were skipped, a container that was replaced. A call that runs a command to its end
    /// tells it by itself; whoever starts processes may ask here.
    pub fn take_notes(&self, task: &str) -> Vec<String> {
        self.slot(task).map_or_else(
            |_error| Vec::new(),
            |slot| self.inner.records.take_notes(task, &slot.label),
        )
    }

    /// Returns the guest of a task's place, making the place if it is not there.
    pub(crate) async fn guest(
        &self,
        slot: &Slot,
        task: &str,
        limit: Duration,
    ) -> Result<Link, RuntimeError> {
        match self.enter(slot, task, limit).await? {
            Access::Guest(link) => Ok(link),
            Access::Plain(shell) => Err(PlaceError::NoGuest {
                why: shell.why().to_owned(),
            }
            .into()),
        }
    }

    /// Makes sure that the task's place and session exist.
    pub(crate) async fn open_session(
        &self,
        slot: &Slot,
        link: &Link,
        task: &str,
    ) -> Result<Opened, RuntimeError> {
        let record = self.record(slot, task)?.0;
        let incarnation = &link.hello().incarnation;
        self.describe_place(slot, &record, incarnation).await?;
        let mut notes = self.bring_files(slot, link, task).await?;
        let request = OpenSession {
            key: session_key(task),
            spec: self.session_spec(slot, task, &record, &mut notes),
            only_existing: false,
        };
        let opened = link.open_session(request).await?;
        let state_lost = opened.created && record.incarnation.is_some();
        let mut new_place = false;
        if record.incarnation.as_ref() != Some(incarnation) {
            self.inner.records.update(task, &slot.label, |record| {
                let before = record.incarnation.replace(incarnation.clone());
                new_place = before.is_none();
            })?;
        }
        if new_place {
            let backend = slot.place.backend();
            self.emit(task, EventKind::PlaceCreated { backend });
        }
        Ok(Opened { state_lost, notes })
    }

    /// Keeps what a task's place is called, and what its caller should know. Asked again only for
    /// another guest: then the place was made anew, or replaced by one with other settings.
    pub(crate) async fn describe_place(
        &self,
        slot: &Slot,
        record: &Record,
        incarnation: &str,
    ) -> Result<(), RuntimeError> {
        if slot.spec.is_local() || record.described.as_deref() == Some(incarnation) {
            return Ok(());
        }
        let Ok(facts) = slot.place.inspect().await else {
            return Ok(());
        };
        let mut notes = facts.notes;
        // They are kept from here on.
        slot.place.take_notes();
        let unasked = !self.asked_for_disk_limit(&record.task);
        let worth = |limit: &&str| !(unasked && *limit == "disk");
        let unenforced = facts.unenforced.iter().map(String::as_str);
        let unenforced: Vec<&str> = unenforced.filter(worth).collect();
        if !unenforced.is_empty() && facts.unenforced != record.unenforced {
            notes.push(format!("unenforced here: {}", unenforced.join(", ")));
        }
        let known = |record: &mut Record| {
            record.id = facts.id;
            record.engine = facts.engine;
            record.image = facts.image;
            record.unenforced = facts.unenforced;
            record.place = slot.spec.clone();
            record.described = Some(incarnation.to_owned());
            record.keep_notes(notes);
        };
        self.inner.records.update(&record.task, &slot.label, known)
    }

    /// Tells whether somebody set a limit of a container's disk. Few engines can hold one, so that
    /// our own is no news for those who never asked; listings name it all the same.
    fn asked_for_disk_limit(&self, task: &str) -> bool {
        let source = self.inner.config.source("container.disk_mb");
        self.overrides(task).disk_mb.is_some() || *source != Source::Default
    }

    pub(crate) fn record(&self, slot: &Slot, task: &str) -> Result<(Record, bool), RuntimeError> {
        self.inner.records.get_or_create(task, &slot.label, || {
            let (directory, own_directory) = if slot.spec.is_local() {
                let (directory, own) = self.first_directory(task)?;
                (raw(directory.as_os_str()), own)
            } else {
                (RawBytes::default(), false)
            };
            Ok(Record {
                task: task.to_owned(),
                label: slot.label.clone(),
                backend: slot.place.backend().to_owned(),
                place: slot.spec.clone(),
                id: None,
                engine: None,
                image: None,
                unenforced: Vec::new(),
                created: now(),
                directory,
                own_directory,
                incarnation: None,
                described: None,
                untold: Vec::new(),
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

    /// Returns the configured directory of a place that is not this machine. One that can only
    /// be meant for this machine is passed over, with a note.
    fn place_directory(&self, slot: &Slot, task: &str, notes: &mut Vec<String>) -> Option<PathBuf> {
        let configured = self
            .overrides(task)
            .cwd
            .or_else(|| self.inner.config.terminal.cwd.clone())?;
        if slot.spec.is_container() && is_host_path(&configured) {
            notes.push(format!(
                "the configured directory `{}` is one of this machine, so it is not used in the \
                 container",
                configured.display()
            ));
            return None;
        }
        Some(configured)
    }

    pub(crate) fn session_spec(
        &self,
        slot: &Slot,
        task: &str,
        record: &Record,
        notes: &mut Vec<String>,
    ) -> SessionSpec {
        let places = &self.inner.config.places;
        let ttl = slot.life().session.unwrap_or(places.session_ttl);
        let mut spec = if slot.spec.is_local() {
            self.local_spec(record.directory().as_os_str())
        } else {
            self.place_spec(slot, task, notes)
        };
        spec.login_timeout_ms = Some(millis(self.inner.config.terminal.login_timeout));
        spec.idle_ms = Some(millis(places.lifetime));
        spec.ttl_ms = Some(millis(ttl));
        let overrides = self.overrides(task).env;
        spec.extra_env.extend(
            overrides
                .into_iter()
                .map(|(name, value)| (name.into(), value.into())),
        );
        spec
    }

    /// Returns what a one-shot command starts from: on this machine the caller's directory and
    /// environment, elsewhere the place's own.
    pub(crate) fn one_shot_spec(
        &self,
        slot: &Slot,
        task: &str,
    ) -> Result<SessionSpec, RuntimeError> {
        if slot.spec.is_local() {
            Ok(self.local_spec(self.base_directory()?.as_os_str()))
        } else {
            Ok(self.place_spec(slot, task, &mut Vec::new()))
        }
    }

    fn place_spec(&self, slot: &Slot, task: &str, notes: &mut Vec<String>) -> SessionSpec {
        let directory = self.place_directory(slot, task, notes);
        let environment = place_environment(
            &self.inner.environment,
            &self.inner.config,
            slot.spec.is_container(),
            notes,
        );
        SessionSpec {
            cwd: directory.map(|directory| raw(directory.as_os_str())),
            env: None,
            env_remove: config::stripped_names(&self.inner.config)
                .into_iter()
                .map(RawBytes::from)
                .collect(),
            extra_env: environment,
            login_timeout_ms: None,
            umask: None,
            idle_ms: None,
            ttl_ms: None,
        }
    }

    fn local_spec(&self, directory: &OsStr) -> SessionSpec {
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

/// A task's session that is there now.
#[derive(Debug)]
pub(crate) struct Opened {
    /// Whether an earlier session of the task, and with it its state, is gone.
    pub(crate) state_lost: bool,
    /// What the caller should know about the place.
    pub(crate) notes: Vec<String>,
}

/// Tells whether a path can only be meant for a person's own machine.
fn is_host_path(path: &Path) -> bool {
    let text = path.to_string_lossy();
    let drive = text.as_bytes().get(1) == Some(&b':') && text.contains('\\');
    drive || text.starts_with("/Users/") || text.starts_with("/home/")
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
