//! The runtime: what every door calls.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use exoshell_place::Progress;
use exoshell_wire::RawBytes;

use crate::approvals::{Approver, Policy, Store};
use crate::audit::{Audit, Limits};
use crate::config::{Environment, Resolved};
use crate::error::RuntimeError;
use crate::event::{Event, EventHub, EventKind, Events};
use crate::places::slot::Slot;
use crate::places::spec::PlaceSpec;
use crate::processes::ProcessRecords;
use crate::record::{Record, Records, TaskOverrides, check_task};
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
    pub(crate) directories: Mutex<HashMap<(String, String), String>>,
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

    pub(crate) fn overrides(&self, task: &str) -> TaskOverrides {
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
