//! Getting an image, with news while it takes long.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use exoshell_place::{PlaceError, Progress, Trouble};

use crate::client::words;
use crate::engine::Engine;
use crate::names::check_image;
use crate::records::Image;

/// Images may be many gigabytes over a slow line; what stalls for good is still noticed.
const PULL_LIMIT: Duration = Duration::from_secs(3600);

/// Returns the image, which is pulled when it is missing.
pub(crate) async fn image(
    engine: &Engine,
    name: &str,
    progress: &Progress,
) -> Result<Image, PlaceError> {
    check_image(name)?;
    if let Some(image) = engine.image(name).await? {
        return Ok(image);
    }
    let what = format!("pull the image `{name}`");
    let mut news = News::new(name);
    progress.step(&news.text());
    let answer = engine
        .client
        .follow(&what, &words(["pull", name]), PULL_LIMIT, |line| {
            if let Some(text) = news.hear(line) {
                progress.step(&text);
            }
        })
        .await?;
    if !answer.ok {
        return Err(refusal(
            engine,
            &what,
            engine.client.failure(&what, &answer),
        ));
    }
    engine.image(name).await?.ok_or_else(|| {
        PlaceError::backend(
            Trouble::NoImage,
            format!("cannot {what}: it is not there afterwards"),
            "check the image's name and tag",
        )
    })
}

/// A pull that fails for a reason we do not know is still about the image.
fn refusal(engine: &Engine, what: &str, error: PlaceError) -> PlaceError {
    match error.trouble() {
        Some(Trouble::DoesNotStart | Trouble::NotAllowed | Trouble::Interrupted) => {
            PlaceError::backend(
                Trouble::NoImage,
                error.to_string(),
                format!(
                    "see whether `{} pull` of the image works by hand",
                    engine.name()
                ),
            )
        }
        Some(_) => error,
        None => PlaceError::Nonsense(format!("{what}: {error}")),
    }
}

/// Turns a client's lines into short steps.
#[derive(Debug)]
struct News {
    image: String,
    /// The layers, and whether each is there.
    layers: BTreeMap<String, bool>,
    last: String,
    since: Instant,
}

impl News {
    fn new(image: &str) -> Self {
        Self {
            image: image.to_owned(),
            layers: BTreeMap::new(),
            last: String::new(),
            since: Instant::now(),
        }
    }

    fn text(&self) -> String {
        let there = self.layers.values().filter(|there| **there).count();
        if self.layers.is_empty() {
            format!("pulling {}", self.image)
        } else {
            format!(
                "pulling {} ({there} of {} layers)",
                self.image,
                self.layers.len()
            )
        }
    }

    /// Takes a line, or word that none came for a while; returns a step if it is news.
    fn hear(&mut self, line: Option<&str>) -> Option<String> {
        let Some(line) = line else {
            return Some(format!(
                "{}, {} s",
                self.text(),
                self.since.elapsed().as_secs()
            ));
        };
        if let Some((layer, state)) = line.trim().split_once(": ") {
            let is_layer = layer.len() == 12 && layer.bytes().all(|byte| byte.is_ascii_hexdigit());
            let there = matches!(state, "Pull complete" | "Already exists");
            if is_layer {
                self.layers.insert(layer.to_owned(), there);
            }
        } else if let Some(rest) = line.trim().strip_prefix("Copying blob ") {
            let blob = rest.split_whitespace().next().unwrap_or_default();
            let blob = blob.trim_start_matches("sha256:");
            let there = rest.contains("done") || rest.contains("skipped");
            self.layers.insert(blob.chars().take(12).collect(), there);
        }
        let text = self.text();
        (text != self.last).then(|| {
            self.last.clone_from(&text);
            text
        })
    }
}

#[cfg(test)]
#[path = "pull_tests.rs"]
mod tests;
