use exoshell_place::{Check, Facts, Launched, Pipe, PlaceFuture};
use exoshell_place_ssh::SshSettings;
use tokio::time::Instant;

use super::*;

/// A place that cannot be had.
#[derive(Debug)]
enum Hopeless {
    /// It never answers.
    Silent,
    /// It always says that it may be back soon.
    Away,
}

fn away() -> PlaceError {
    PlaceError::backend(Trouble::NoAnswer, "nobody is at home", "wait for somebody")
}

impl Place for Hopeless {
    fn backend(&self) -> &'static str {
        "hopeless"
    }

    fn life(&self) -> Life {
        Life {
            lease: Duration::from_secs(60),
            heartbeat: None,
            linger: true,
            session: None,
        }
    }

    fn open<'a>(&'a self, _progress: &'a Progress) -> PlaceFuture<'a, Pipe> {
        Box::pin(async move {
            match self {
                Self::Silent => std::future::pending().await,
                Self::Away => Err(away()),
            }
        })
    }

    fn open_existing(&self) -> PlaceFuture<'_, Option<Pipe>> {
        Box::pin(async { Ok(None) })
    }

    fn launch<'a>(&'a self, _words: &'a [String]) -> PlaceFuture<'a, Launched> {
        Box::pin(async { Err(away()) })
    }

    fn inspect(&self) -> PlaceFuture<'_, Facts> {
        Box::pin(async { Err(away()) })
    }

    fn sweep(&self) -> PlaceFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn destroy(&self) -> PlaceFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn check(&self) -> PlaceFuture<'_, Vec<Check>> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

fn slot(place: Hopeless) -> Slot {
    let spec = PlaceSpec::Ssh(Box::<SshSettings>::default());
    Slot::new(spec, "hopeless".to_owned(), Arc::new(place), 1)
}

fn quiet() -> Progress {
    Progress::new(|_step| {})
}

#[tokio::test(start_paused = true)]
async fn a_place_that_never_answers_takes_no_longer_than_the_call_may() {
    let slot = slot(Hopeless::Silent);
    for (limit, taken) in [(60, 60), (7, 7), (0, 5)] {
        let began = Instant::now();
        let entered = slot.enter(&quiet(), Duration::from_secs(limit)).await;
        let error = entered.unwrap_err();
        assert_eq!(began.elapsed().as_secs(), taken);
        assert_eq!(error.trouble(), Some(Trouble::TooSlow));
        assert!(error.to_string().contains("nothing was run"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_tried_again_until_the_time_was_up_is_named() {
    let slot = slot(Hopeless::Away);
    let entered = slot.enter(&quiet(), Duration::from_secs(5)).await;
    let error = entered.unwrap_err();
    assert_eq!(error.trouble(), Some(Trouble::TooSlow));
    assert!(error.to_string().contains("nobody is at home"), "{error}");
    assert_eq!(error.hint().as_deref(), Some("wait for somebody"));
    // With more time its own error is told.
    let entered = slot.enter(&quiet(), Duration::from_secs(60)).await;
    assert_eq!(entered.unwrap_err().trouble(), Some(Trouble::NoAnswer));
}

#[tokio::test(start_paused = true)]
async fn nobody_who_only_looks_waits_for_an_opening() {
    for place in [Hopeless::Silent, Hopeless::Away] {
        let slot = Arc::new(slot(place));
        let opener = Arc::clone(&slot);
        let opening =
            tokio::spawn(async move { opener.enter(&quiet(), Duration::from_secs(60)).await });
        tokio::task::yield_now().await;
        let began = Instant::now();
        assert!(slot.existing().await.unwrap().is_none());
        slot.drop_link();
        assert!(!slot.is_open());
        assert_eq!(began.elapsed(), Duration::ZERO);
        assert!(!opening.is_finished());
        opening.abort();
    }
}
