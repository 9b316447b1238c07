//! Containers of Docker and Podman.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use exoshell_runtime::config::{
    Backend, Config, DEFAULT_IMAGE, DockerConfig, Environment, Resolved, TerminalConfig,
};

use super::super::lab::{Home, Lab};
use super::super::row::{Row, Unit};
use super::super::stats::{Samples, milliseconds};
use super::super::{Failure, Filter, plain};
use super::site::{self, Site, TASK};

/// How long an engine may take to show that it is there.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// Whose containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Docker,
    Podman,
}

/// What the rows of an engine are called.
#[derive(Debug)]
pub(super) struct Names {
    pub(super) site: site::Names,
    pub(super) new: &'static str,
    pub(super) removal: &'static str,
    run: &'static str,
    remove: &'static str,
}

impl Names {
    /// Returns the names of the rows about making and removing.
    pub(super) const fn lives(&self) -> [&'static str; 2] {
        [self.new, self.removal]
    }

    /// Returns the names of all rows.
    pub(super) fn all(&self) -> Vec<&'static str> {
        [&self.site.all()[..], &self.lives()[..]].concat()
    }
}

macro_rules! names {
    ($engine:literal) => {
        Names {
            site: site::Names {
                apart: concat!($engine, ", call, 20 ms apart"),
                apart_local: concat!($engine, ", call, 20 ms apart, beside local"),
                together: concat!($engine, ", call, back to back"),
                together_local: concat!($engine, ", call, back to back, beside local"),
                process: concat!($engine, ", new process"),
                volume: concat!($engine, ", 100 MB"),
                plain: concat!($engine, " exec CTR true"),
                cat: concat!($engine, " exec CTR cat FILE | reader"),
                faster: 25.0,
            },
            new: concat!($engine, ", new place"),
            removal: concat!($engine, ", removal of a place"),
            run: concat!($engine, " run --rm IMAGE true"),
            remove: concat!($engine, " rm -f CTR"),
        }
    };
}

static DOCKER: Names = names!("docker");
static PODMAN: Names = names!("podman");

impl Kind {
    /// Returns the client's name.
    pub(super) const fn program(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
        }
    }

    /// Returns what its rows are called.
    pub(super) fn names(self) -> &'static Names {
        match self {
            Self::Docker => &DOCKER,
            Self::Podman => &PODMAN,
        }
    }

    const fn backend(self) -> Backend {
        match self {
            Self::Docker => Backend::Docker,
            Self::Podman => Backend::Podman,
        }
    }
}

/// An engine that answers and has the image.
#[derive(Debug, Clone)]
pub(super) struct Engine {
    kind: Kind,
    image: String,
}

impl Engine {
    /// Looks for the engine and the image; nothing is ever pulled.
    pub(super) async fn find(kind: Kind, image: Option<&str>) -> Result<Self, Failure> {
        let image = match image {
            Some(image) => image.to_owned(),
            None => configured_image()?,
        };
        let engine = Self { kind, image };
        let mut look = engine.client(&["image", "inspect", "--format", "{{.Id}}", &engine.image]);
        look.stdin(Stdio::null());
        // An engine that hangs must not hold up everything else.
        let looked = tokio::task::spawn_blocking(move || look.output());
        let output = tokio::time::timeout(ANSWER_LIMIT, looked)
            .await
            .map_err(|_late| "the engine does not answer")??
            .map_err(|error| format!("`{}` cannot be run: {error}", kind.program()))?;
        if output.status.success() {
            return Ok(engine);
        }
        let complaint = String::from_utf8_lossy(&output.stderr);
        let why = complaint.lines().next_back().unwrap_or_default();
        Err(format!(
            "the image `{}` cannot be used ({why}); name one that is there with --image",
            engine.image
        )
        .into())
    }

    /// Returns the client with these words.
    pub(super) fn client(&self, words: &[&str]) -> Command {
        let mut command = Command::new(self.kind.program());
        command.args(words);
        command
    }

    /// Makes a home whose tasks have containers of this engine.
    pub(super) fn home(&self, lab: &Lab) -> Result<Home, Failure> {
        lab.home_with(Config {
            terminal: TerminalConfig {
                backend: Some(self.kind.backend()),
                ..TerminalConfig::default()
            },
            docker: DockerConfig {
                image: Some(self.image.clone()),
                // Should we be killed, the containers end with our pipes.
                persist: Some(false),
                ..DockerConfig::default()
            },
            ..Config::default()
        })
    }

    /// Measures calls into one container.
    pub(super) async fn measure(&self, lab: &Lab, filter: &Filter) -> Result<Vec<Row>, Failure> {
        let home = self.home(lab)?;
        home.call(TASK, "true").await?;
        let places = home.runtime().places_of(TASK).await?;
        let id = places.into_iter().find_map(|place| place.id);
        let id = id.ok_or("the container has no name")?;
        let site = Site {
            names: &self.kind.names().site,
            home: &home,
            plain: &|words| self.client(&[&["exec", &id], words].concat()),
            folder: "/tmp".to_owned(),
        };
        let rows = site.measure(lab, filter).await;
        home.end().await?;
        rows
    }

    /// Makes and removes places.
    pub(super) async fn lives(&self, lab: &Lab) -> Result<Vec<Row>, Failure> {
        let home = self.home(lab)?;
        let lives = self.live(lab, &home).await;
        home.end().await?;
        let lives = lives?;
        let names = self.kind.names();
        let note = format!(
            "the container and the first command in it; the first one of a process, which has to \
             find out what the engine can do, took {:.0} ms",
            lives.first
        );
        let row = |name, ours: &Samples, baseline, plain: &Samples| {
            Row::new(name, Unit::Ms, ours.median(), baseline, plain.median())
                .with_p95(ours.p95(), plain.p95())
        };
        Ok(vec![
            row(names.new, &lives.new, names.run, &lives.run).with_note(note),
            row(names.removal, &lives.removal, names.remove, &lives.remove)
                .with_note("ours lets what runs there end by itself first"),
        ])
    }

    async fn live(&self, lab: &Lab, home: &Home) -> Result<Lives, Failure> {
        let mut lives = Lives::default();
        for round in 0..=lab.rounds(10, 3) {
            let task = format!("life-{round}");
            let new = home.call(&task, "true").await?.time;
            let words = ["run", "--rm", "--entrypoint", "true", &self.image];
            let run = plain::silent(self.client(&words))?;
            let began = Instant::now();
            let cleaned = home.runtime().cleanup(&task).await?;
            let removal = began.elapsed();
            if let Some(failed) = cleaned.failed.into_iter().next() {
                return Err(failed.into());
            }
            let remove = self.remove_one(lab)?;
            if round == 0 {
                lives.first = milliseconds(new);
                continue;
            }
            lives.new.push(new);
            lives.run.push(run);
            lives.removal.push(removal);
            lives.remove.push(remove);
        }
        Ok(lives)
    }

    /// Starts a container with the client and times its removal.
    fn remove_one(&self, lab: &Lab) -> Result<Duration, Failure> {
        // A name of the bench's own, unlike that of any other container.
        let folder = lab.root().file_name().unwrap_or_default();
        let name = folder.to_string_lossy().into_owned();
        let words = ["run", "--detach", "--name", &name, "--entrypoint", "sleep"];
        // Podman's removal would wait for it to end by itself.
        let start = [&words[..], &["--stop-signal", "KILL", &self.image, "60"]].concat();
        plain::silent(self.client(&start))?;
        Ok(plain::silent(self.client(&["rm", "--force", &name]))?)
    }
}

/// How long places took to come and go.
#[derive(Debug, Default)]
struct Lives {
    first: f64,
    new: Samples,
    run: Samples,
    removal: Samples,
    remove: Samples,
}

/// Returns the image that the user's own places would have.
fn configured_image() -> Result<String, Failure> {
    let config = Resolved::load(&Environment::from_process(), Config::default())?;
    let image = config.docker.image;
    Ok(image.unwrap_or_else(|| DEFAULT_IMAGE.to_owned()))
}
