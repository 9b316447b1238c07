//! A place in use: how to reach it, and the pipe to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
    link: Mutex<Option<Link>>,
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
            link: Mutex::new(None),
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

    /// Returns the way in, making the place if it is not there. Concurrent callers share one
    /// opening. What may pass by itself is tried again.
    pub(crate) async fn enter(&self, progress: &Progress) -> Result<Access, PlaceError> {
        if let Some(plain) = self.plain.get() {
            return Ok(Access::Plain(Arc::clone(plain)));
        }
        let mut slot = self.link.lock().await;
        if let Some(link) = slot.as_ref().filter(|link| link.is_open()) {
            return Ok(Access::Guest(link.clone()));
        }
        let mut pauses = RETRIES.iter();
        let opened = loop {
            let error = match self.open(progress).await {
                Err(error) if error.is_transient() => error,
                result => break result,
            };
            let Some(pause) = pauses.next() else {
                break Err(error);
            };
            progress.step(&format!("{error}; trying again in {} s", pause.as_secs()));
            tokio::time::sleep(*pause).await;
        };
        match opened {
            Ok(link) => {
                *slot = Some(link.clone());
                Ok(Access::Guest(link))
            }
            Err(PlaceError::NoGuest { why }) => {
                let plain = PlainShell::new(Arc::clone(&self.place), why);
                let plain = self.plain.get_or_init(|| async { Arc::new(plain) }).await;
                Ok(Access::Plain(Arc::clone(plain)))
            }
            Err(error) => Err(error),
        }
    }

    async fn open(&self, progress: &Progress) -> Result<Link, PlaceError> {
        let pipe = self.place.open(progress).await?;
        Link::open(pipe, &self.options).await
    }

    /// Returns the link only if the place and a guest are there already.
    pub(crate) async fn existing(&self) -> Result<Option<Link>, PlaceError> {
        let mut slot = self.link.lock().await;
        if let Some(link) = slot.as_ref().filter(|link| link.is_open()) {
            return Ok(Some(link.clone()));
        }
        let Some(pipe) = self.place.open_existing().await? else {
            return Ok(None);
        };
        let link = Link::open(pipe, &self.options).await?;
        *slot = Some(link.clone());
        Ok(Some(link))
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
    pub(crate) async fn drop_link(&self) {
        *self.link.lock().await = None;
    }
}
