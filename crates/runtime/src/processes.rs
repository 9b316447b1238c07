//! Processes: commands that outlive the call that started them, and the program that did.

mod events;
mod follow;
mod record;
mod start;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use exoshell_place::{Link, PlaceError};
use exoshell_wire::{
    Act, Acted, Action, Failure, FailureKind, OutputRead, ProcessStatus, Processes, ReadFrom,
    ReadOutput, TerminalSize, Wait, Waited, WriteInput,
};

use crate::approvals;
use crate::audit::{Ended, Outcome};
use crate::error::RuntimeError;
use crate::places::slot::Slot;
use crate::redact::Outlet as _;
use crate::runtime::{Runtime, millis, session_key};
pub use events::ProcessEvents;
pub use follow::FollowStream;
pub use record::ProcessRecord;
pub(crate) use record::ProcessRecords;
pub use start::StartRequest;

/// How long a process that does not read may hold up a write.
const WRITE_LIMIT: Duration = Duration::from_secs(10);

/// The size of a terminal when nobody says.
pub const DEFAULT_TERMINAL: TerminalSize = TerminalSize {
    cols: 120,
    rows: 30,
};

/// The guest that knows a process.
struct Reached {
    slot: Arc<Slot>,
    link: Link,
}

/// A process, or what is left of the knowledge of one.
#[derive(Debug, Clone)]
pub enum ProcessView {
    /// The guest knows it.
    Known(Box<ProcessStatus>),
    /// Its guest is gone, and it with it; nobody knows how it ended.
    Lost(Box<ProcessRecord>),
    /// Its place cannot be reached now, so nobody knows how it is.
    Unreachable(Box<ProcessRecord>),
}

impl ProcessView {
    /// Returns its id.
    pub fn id(&self) -> &str {
        match self {
            Self::Known(status) => &status.id,
            Self::Lost(record) | Self::Unreachable(record) => &record.id,
        }
    }
}

impl Runtime {
    /// Lists the processes of a task, or of all; lost ones included.
    pub async fn processes(&self, task: Option<&str>) -> Result<Vec<ProcessView>, RuntimeError> {
        let mut views = Vec::new();
        let mut guests = HashMap::new();
        for slot in self.slots_of(task)? {
            let link = match slot.existing().await {
                Ok(Some(link)) => link,
                Ok(None) => continue,
                // Nobody knows what became of the processes of a place out of reach.
                Err(_) => {
                    guests.insert(slot.label.clone(), None);
                    continue;
                }
            };
            guests.insert(slot.label.clone(), Some(link.hello().incarnation.clone()));
            let filter = Processes {
                id: None,
                session: task.map(session_key),
            };
            let known = link.processes(filter).await?;
            views.extend(
                known
                    .into_iter()
                    .map(|status| ProcessView::Known(Box::new(status))),
            );
        }
        let known: HashSet<String> = views.iter().map(|view| view.id().to_owned()).collect();
        for record in self.inner.processes.list() {
            if task.is_some_and(|task| task != record.task) {
                continue;
            }
            match guests.get(&record.place) {
                Some(None) => views.push(ProcessView::Unreachable(Box::new(record))),
                Some(Some(incarnation)) if *incarnation == record.incarnation => {
                    if !known.contains(&record.id) && record.is_settled() {
                        // It ended long ago and its guest has forgotten it; so may we.
                        self.inner.processes.remove(&record.id);
                    }
                }
                _ => views.push(ProcessView::Lost(Box::new(record))),
            }
        }
        views.clean(&self.redactor());
        Ok(views)
    }

    /// Returns the places that processes of a task can be in: its own, else all.
    fn slots_of(&self, task: Option<&str>) -> Result<Vec<Arc<Slot>>, RuntimeError> {
        let Some(task) = task else {
            return self.known_slots();
        };
        let mut slots = vec![self.local_slot()?];
        for record in self.inner.records.of_task(task) {
            if record.label != "local" {
                slots.push(self.recorded_slot(&record)?);
            }
        }
        Ok(slots)
    }

    /// Returns a process by its id; one of another task counts as unknown.
    pub async fn process(&self, id: &str, task: Option<&str>) -> Result<ProcessView, RuntimeError> {
        let mut view = self.find(id, task).await?.1;
        view.clean(&self.redactor());
        Ok(view)
    }

    /// Finds a process and the guest that knows it.
    async fn find(
        &self,
        id: &str,
        task: Option<&str>,
    ) -> Result<(Option<Reached>, ProcessView), RuntimeError> {
        let unknown = || {
            RuntimeError::Usage(format!(
                "there is no process `{id}`; `process list` and `exoshell ps` name those that exist"
            ))
        };
        let record = self.inner.processes.get(id);
        let mut slots = self.slots_of(task)?;
        if let Some(record) = &record {
            slots.retain(|slot| slot.label == record.place);
        }
        for slot in slots {
            let link = match slot.existing().await {
                Ok(Some(link)) => link,
                Ok(None) => continue,
                // One that is not known to be there need not be asked.
                Err(_) if record.is_none() => continue,
                Err(error) => return Err(error.into()),
            };
            let filter = Processes {
                id: Some(id.to_owned()),
                session: None,
            };
            let (link, listed) = match link.processes(filter).await {
                Err(error) if record.is_some() && slot.can_regain(&error) => {
                    let (link, known) = look_again(&slot, link, id, &error).await?;
                    (link, Ok(known.into_iter().collect()))
                }
                listed => (link, listed),
            };
            match listed {
                Ok(list) => {
                    let list: Vec<ProcessStatus> = list;
                    let status = list.into_iter().next().ok_or_else(unknown)?;
                    let own = task.is_none_or(|task| status.session == Some(session_key(task)));
                    let reached = Reached { slot, link };
                    return own
                        .then(|| (Some(reached), ProcessView::Known(Box::new(status))))
                        .ok_or_else(unknown);
                }
                Err(PlaceError::Failed(_)) => {
                    let incarnation = &link.hello().incarnation;
                    if record
                        .as_ref()
                        .is_some_and(|r| r.incarnation == *incarnation)
                    {
                        return Err(RuntimeError::Usage(format!(
                            "the process `{id}` has ended and is no longer kept (the last 64 \
                             that ended are, for an hour)"
                        )));
                    }
                }
                Err(error) => return Err(error.into()),
            }
        }
        match record {
            Some(record) if task.is_none_or(|task| task == record.task) => {
                Ok((None, ProcessView::Lost(Box::new(record))))
            }
            _ => Err(unknown()),
        }
    }

    /// Makes the record of a process that was adopted, not started.
    pub(crate) async fn adopted_record(
        &self,
        status: &ProcessStatus,
    ) -> Result<ProcessRecord, RuntimeError> {
        let session = status.session.as_deref().unwrap_or_default();
        let task = session.strip_prefix("task:").unwrap_or(session);
        for slot in self.slots_of(Some(task))? {
            let Ok(Some(link)) = slot.existing().await else {
                continue;
            };
            if known_process(&link, &status.id).await.is_ok() {
                return Ok(ProcessRecord {
                    id: status.id.clone(),
                    task: task.to_owned(),
                    place: slot.label.clone(),
                    // The status was cleaned when it came.
                    command: status.command.display(),
                    started: status.started_ms / 1000,
                    incarnation: link.hello().incarnation.clone(),
                    confirmed: true,
                    position: 0,
                });
            }
        }
        Err(RuntimeError::Lost {
            what: format!("the process `{}`", status.id),
        })
    }

    /// Returns the link to a process that its guest knows, or why nothing can be done with it.
    async fn living(&self, id: &str, task: Option<&str>) -> Result<Reached, RuntimeError> {
        match self.find(id, task).await? {
            (Some(reached), ProcessView::Known(_)) => Ok(reached),
            _ => Err(RuntimeError::Lost {
                what: format!("the process `{id}`"),
            }),
        }
    }

    /// Reads a part of a process's output, without its secrets.
    pub async fn process_output(
        &self,
        id: &str,
        task: Option<&str>,
        from: ReadFrom,
        max_bytes: u64,
        max_lines: Option<u64>,
    ) -> Result<(Vec<u8>, OutputRead), RuntimeError> {
        let (bytes, read) = self
            .kept_output(id, task, from, max_bytes, max_lines)
            .await?;
        Ok((self.redactor().redact_bytes(&bytes).into_owned(), read))
    }

    /// Reads a part of a process's output, as its place keeps it: without what has the shape of a
    /// secret. Values that only this side knows may be in it.
    pub(crate) async fn kept_output(
        &self,
        id: &str,
        task: Option<&str>,
        from: ReadFrom,
        max_bytes: u64,
        max_lines: Option<u64>,
    ) -> Result<(Vec<u8>, OutputRead), RuntimeError> {
        let Reached { slot, mut link } = self.living(id, task).await?;
        let request = ReadOutput {
            id: id.to_owned(),
            from,
            max_bytes,
            max_lines,
        };
        loop {
            match link.output(request.clone()).await {
                Err(error) if slot.can_regain(&error) => link = slot.regain(&link).await?,
                read => {
                    let (bytes, mut read) = read?;
                    read.clean(&self.redactor());
                    return Ok((bytes, read));
                }
            }
        }
    }

    /// Follows a process's output.
    pub async fn follow_process(
        &self,
        id: &str,
        task: Option<&str>,
        from: ReadFrom,
    ) -> Result<FollowStream, RuntimeError> {
        let Reached { slot, link } = self.living(id, task).await?;
        let redact = self.redactor().stream();
        Ok(FollowStream::start(
            slot,
            link,
            id.to_owned(),
            from,
            redact,
        )?)
    }

    /// Waits for the end of a process, or for a line of its output.
    pub async fn wait_process(
        &self,
        id: &str,
        task: Option<&str>,
        timeout: Duration,
        until: Option<(String, u64)>,
    ) -> Result<Waited, RuntimeError> {
        let Reached { slot, mut link } = self.living(id, task).await?;
        let (until, from_byte) = until.map_or((None, 0), |(text, at)| (Some(text), at));
        let began = Instant::now();
        loop {
            let request = Wait {
                id: id.to_owned(),
                timeout_ms: millis(timeout.saturating_sub(began.elapsed())),
                until: until.clone(),
                from_byte,
            };
            match link.wait_process(request).await {
                Err(error) if slot.can_regain(&error) => link = slot.regain(&link).await?,
                waited => {
                    let mut waited = waited?;
                    waited.clean(&self.redactor());
                    return Ok(waited);
                }
            }
        }
    }

    /// Acts on a process.
    pub async fn act_on_process(
        &self,
        id: &str,
        task: Option<&str>,
        action: Action,
    ) -> Result<Acted, RuntimeError> {
        let Reached { slot, mut link } = self.living(id, task).await?;
        // These do no harm when they are done twice.
        let again = matches!(
            action,
            Action::Kill { .. } | Action::Resize(_) | Action::Screen
        );
        let id = id.to_owned();
        let request = Act { id, action };
        loop {
            match link.act(request.clone()).await {
                Err(error) if again && slot.can_regain(&error) => {
                    link = slot.regain(&link).await?;
                }
                acted => {
                    let mut acted = acted?;
                    acted.clean(&self.redactor());
                    return Ok(acted);
                }
            }
        }
    }

    /// Ends a process with the configured grace.
    pub async fn kill_process(&self, id: &str, task: Option<&str>) -> Result<Acted, RuntimeError> {
        let grace_ms = millis(self.inner.config.terminal.kill_grace);
        self.act_on_process(id, task, Action::Kill { grace_ms })
            .await
    }

    /// Passes on what a person types at a process's terminal. It is not judged: nobody else has to
    /// be asked. Refused where a command in a guest has started this program.
    pub async fn type_to_process(&self, id: &str, keys: Bytes) -> Result<(), RuntimeError> {
        approvals::only_people("type to a process")?;
        let Reached { link, .. } = self.living(id, None).await?;
        let request = WriteInput {
            id: id.to_owned(),
            enter: false,
            timeout_ms: millis(WRITE_LIMIT),
        };
        link.write_process(request, keys).await?;
        Ok(())
    }

    /// Writes to a process; `enter` presses Enter afterwards.
    pub async fn write_to_process(
        &self,
        id: &str,
        task: Option<&str>,
        bytes: Bytes,
        enter: bool,
    ) -> Result<ProcessStatus, RuntimeError> {
        let (reached, view) = self.find(id, task).await?;
        let (Some(Reached { slot, link }), ProcessView::Known(status)) = (reached, view) else {
            return Err(RuntimeError::Lost {
                what: format!("the process `{id}`"),
            });
        };
        let admitted = self.admit_input(&slot, &status, &bytes, enter).await?;
        let request = WriteInput {
            id: id.to_owned(),
            enter,
            timeout_ms: millis(WRITE_LIMIT),
        };
        match link.write_process(request, bytes).await {
            Ok(mut status) => {
                status.clean(&self.redactor());
                let mut outcome = Outcome::new(Ended::Done);
                outcome.process = Some(status.id.clone());
                admitted.end(&outcome)?;
                Ok(status)
            }
            Err(error) => {
                let error = RuntimeError::from(error);
                admitted.failed(&error);
                Err(error)
            }
        }
    }
}

/// Tells whether a guest knows no process of that name.
const fn is_no_process(error: &PlaceError) -> bool {
    matches!(
        error,
        PlaceError::Failed(Failure {
            kind: FailureKind::NoProcess,
            ..
        })
    )
}

/// Finds out what became of a process whose pipe was lost; `None` when its guest never got it.
async fn look_again(
    slot: &Slot,
    mut link: Link,
    id: &str,
    lost: &PlaceError,
) -> Result<(Link, Option<ProcessStatus>), PlaceError> {
    loop {
        link = match slot.regain(&link).await {
            Ok(link) => link,
            Err(why) => {
                return Err(PlaceError::PlaceLost {
                    message: format!("{lost}, and it did not come back: {why}"),
                });
            }
        };
        match known_process(&link, id).await {
            Ok(status) => return Ok((link, Some(status))),
            Err(error) if is_no_process(&error) => return Ok((link, None)),
            Err(error) if slot.can_regain(&error) => {}
            Err(error) => return Err(error),
        }
    }
}

/// Asks a guest for one process.
async fn known_process(link: &Link, id: &str) -> Result<ProcessStatus, PlaceError> {
    let filter = Processes {
        id: Some(id.to_owned()),
        session: None,
    };
    let list = link.processes(filter).await?;
    list.into_iter().next().ok_or_else(|| {
        let text = format!("there is no process `{id}`");
        Failure::new(FailureKind::NoProcess, text).into()
    })
}
