//! A place in use: how to reach it, and the pipe to it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use exoshell_place::plain::PlainShell;
use exoshell_place::{Life, Link, LinkOptions, Place, PlaceError, Progress, Trouble};
use tokio::sync::{Mutex, OnceCell};

use super::spec::PlaceSpec;

/// How long to wait before each further try to reach a place that may be back soon.
const RETRIES: [Duration; 3] = [
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
];

/// How long a place may take to open however short a call's own limit is: one that is well may
/// need a moment.
const SHORTEST_LIMIT: Duration = Duration::from_secs(5);

/// How long to wait between two tries to get a lost pipe back.
const RECONNECT_PAUSE: Duration = Duration::from_secs(1);

/// How commands get into a place.
#[derive(Debug, Clone)]
pub(crate) enum Access {
    /// Through a guest.
    Guest(Link),
    /// Through a shell per command, because no guest can run there.
    Plain(Arc<PlainShell>),
}

/// A place that this runtime uses; everyone in the process shares its pipe.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) spec: PlaceSpec,
    pub(crate) label: String,
    pub(crate) place: Arc<dyn Place>,
    options: LinkOptions,
    /// Held only for a moment, so that nobody who can be answered waits.
    link: std::sync::Mutex<Option<Link>>,
    /// Held by whoever makes or starts the place, which may take long.
    opening: Mutex<()>,
    /// Held by whoever looks whether it is there.
    looking: Mutex<()>,
    /// Whether this process has sent the configured files.
    sent_files: AtomicBool,
    plain: OnceCell<Arc<PlainShell>>,
}

impl Slot {
    pub(crate) fn new(
        spec: PlaceSpec,
        label: String,
        place: Arc<dyn Place>,
        max_warm_shells: u32,
    ) -> Self {
        let life = place.life();
        Self {
            spec,
            label,
            options: LinkOptions {
                build: env!("CARGO_PKG_VERSION").to_owned(),
                linger: life.linger,
                max_warm_shells,
                heartbeat: life.heartbeat,
            },
            place,
            link: std::sync::Mutex::default(),
            opening: Mutex::default(),
            looking: Mutex::default(),
            sent_files: AtomicBool::new(false),
            plain: OnceCell::new(),
        }
    }

    /// Tells, to the first who asks, that the configured files have to be sent.
    pub(crate) fn needs_files(&self) -> bool {
        !self.sent_files.swap(true, Ordering::Relaxed)
    }

    /// Says that the files did not arrive after all.
    pub(crate) fn still_needs_files(&self) {
        self.sent_files.store(false, Ordering::Relaxed);
    }

    /// Tells how long things live there.
    pub(crate) fn life(&self) -> Life {
        self.place.life()
    }

    /// Tells whether the way in is known, so that nothing has to be made or started.
    pub(crate) fn is_open(&self) -> bool {
        self.plain.initialized() || self.open_link().is_some()
    }

    fn link(&self) -> MutexGuard<'_, Option<Link>> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn open_link(&self) -> Option<Link> {
        self.link().clone().filter(Link::is_open)
    }

    /// Keeps a link, unless there is a good one by now. Returns the one to use.
    fn keep(&self, new: Link) -> Link {
        let mut link = self.link();
        match link.as_ref().filter(|link| link.is_open()) {
            Some(old) => old.clone(),
            None => link.insert(new).clone(),
        }
    }

    /// Returns the way in, making the place if it is not there. Concurrent callers share one
    /// opening. What may pass by itself is tried again. Where nothing has to be made, it takes no
    /// longer than `limit`.
    pub(crate) async fn enter(
        &self,
        progress: &Progress,
        limit: Duration,
    ) -> Result<Access, PlaceError> {
        let trouble = std::sync::Mutex::new(None);
        let entered = self.enter_patiently(progress, &trouble);
        // An image may have to be pulled, which takes as long as it takes; this machine always
        // answers.
        if self.spec.is_disposable() || self.spec.is_local() {
            return entered.await;
        }
        let limit = limit.max(SHORTEST_LIMIT);
        if let Ok(entered) = tokio::time::timeout(limit, entered).await {
            return entered;
        }
        let trouble = trouble.into_inner().unwrap_or_else(PoisonError::into_inner);
        Err(too_slow(limit, trouble))
    }

    async fn enter_patiently(
        &self,
        progress: &Progress,
        trouble: &std::sync::Mutex<Option<PlaceError>>,
    ) -> Result<Access, PlaceError> {
        let _opening = self.opening.lock().await;
        if let Some(plain) = self.plain.get() {
            return Ok(Access::Plain(Arc::clone(plain)));
        }
        if let Some(link) = self.open_link() {
            return Ok(Access::Guest(link));
        }
        let mut pauses = RETRIES.iter();
        let opened = loop {
            let error = match self.open(progress).await {
                Err(error) if self.may_pass(&error) => error,
                result => break result,
            };
            let Some(pause) = pauses.next() else {
                break Err(error);
            };
            progress.step(&format!("{error}; trying again in {} s", pause.as_secs()));
            *trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            tokio::time::sleep(*pause).await;
        };
        match opened {
            Ok(link) => Ok(Access::Guest(self.keep(link))),
            Err(PlaceError::NoGuest { why }) => {
                let plain = PlainShell::new(Arc::clone(&self.place), why);
                let plain = self.plain.get_or_init(|| async { Arc::new(plain) }).await;
                Ok(Access::Plain(Arc::clone(plain)))
            }
            Err(error) => Err(error),
        }
    }

    /// Tells whether trying again soon may help. A container that vanishes while it is being made
    /// was removed by somebody, and can be made again.
    fn may_pass(&self, error: &PlaceError) -> bool {
        let vanished = error.trouble() == Some(Trouble::NoContainer);
        error.is_transient() || (vanished && self.spec.is_disposable())
    }

    /// Tells whether something may be there although the place could not be opened: a container
    /// that was made and is not known to be gone.
    pub(crate) async fn may_have_left_something(&self, error: &PlaceError) -> bool {
        if !self.spec.is_disposable() {
            return false;
        }
        match self.place.inspect().await {
            Ok(facts) => facts.id.is_some(),
            // An engine that was never there has made nothing.
            Err(_) => error.is_transient() || error.trouble() == Some(Trouble::TooSlow),
        }
    }

    async fn open(&self, progress: &Progress) -> Result<Link, PlaceError> {
        let pipe = self.place.open(progress).await?;
        Link::open(pipe, &self.options).await
    }

    /// Returns the link only if the place and a guest are there already. Does not wait for whoever
    /// is making or starting the place.
    pub(crate) async fn existing(&self) -> Result<Option<Link>, PlaceError> {
        if let Some(link) = self.open_link() {
            return Ok(Some(link));
        }
        let _looking = self.looking.lock().await;
        if let Some(link) = self.open_link() {
            return Ok(Some(link));
        }
        let Some(pipe) = self.place.open_existing().await? else {
            return Ok(None);
        };
        let link = Link::open(pipe, &self.options).await?;
        Ok(Some(self.keep(link)))
    }

    /// Tells whether a failure means that only the pipe is gone, so that its guest may be found
    /// again.
    pub(crate) fn can_regain(&self, error: &PlaceError) -> bool {
        matches!(error, PlaceError::Lost(_)) && !self.life().lease.is_zero()
    }

    /// Gets the lost pipe to a guest back, for as long as a lease is.
    pub(crate) async fn regain(&self, lost: &Link) -> Result<Link, PlaceError> {
        let until = Instant::now() + self.life().lease;
        self.reconnect(&lost.hello().incarnation, until).await
    }

    /// Gets a lost pipe back, to the same guest as before, while its lease runs.
    pub(crate) async fn reconnect(
        &self,
        incarnation: &str,
        until: Instant,
    ) -> Result<Link, PlaceError> {
        let mut last = None;
        // A try that hangs must not outlast the lease.
        while let Ok(found) = tokio::time::timeout_at(until.into(), self.existing()).await {
            match found {
                Ok(Some(link)) if link.hello().incarnation == incarnation => return Ok(link),
                Ok(_) => {
                    let gone = "the guest that ran the command is gone";
                    return Err(PlaceError::backend(
                        Trouble::NoContainer,
                        gone,
                        "look at the place: it was removed or restarted while the command ran",
                    ));
                }
                Err(error) => last = Some(error),
            }
            if Instant::now() + RECONNECT_PAUSE >= until {
                break;
            }
            tokio::time::sleep(RECONNECT_PAUSE).await;
        }
        Err(last.unwrap_or_else(|| {
            PlaceError::backend(
                Trouble::NoAnswer,
                "the place does not answer",
                "check that it runs and that the network lets you through",
            )
        }))
    }

    /// Forgets the link, for instance because its guest was ended.
    pub(crate) fn drop_link(&self) {
        *self.link() = None;
    }
}

fn too_slow(limit: Duration, trouble: Option<PlaceError>) -> PlaceError {
    let seconds = limit.as_secs_f64();
    let hint = trouble.as_ref().and_then(PlaceError::hint);
    let why = trouble.map_or_else(
        || "nothing answered".to_owned(),
        |trouble| trouble.to_string(),
    );
    PlaceError::backend(
        Trouble::TooSlow,
        format!("the place was not reached within {seconds} s, so nothing was run: {why}"),
        hint.unwrap_or_else(|| {
            "see with `exoshell doctor` whether it can be reached; a longer timeout of the call \
             gives it more time"
                .to_owned()
        }),
    )
}

#[cfg(test)]
#[path = "slot_tests.rs"]
mod tests;
