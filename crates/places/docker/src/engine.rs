//! A container engine: its client program, and its socket where there is one.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use exoshell_place::{Launched, PlaceError, Trouble};
use hyper::Method;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::api::{Api, encode};
use crate::classify;
use crate::client::{Answer, Client, words};
use crate::limits::Abilities;
use crate::program::{self, Endpoint, Surroundings};
use crate::records::{Container, Image};
use crate::settings::DockerSettings;

/// How long an engine may take to show that it is there.
const ANSWER_LIMIT: Duration = Duration::from_secs(5);

/// How long listing and looking may take.
pub(crate) const LIST_LIMIT: Duration = Duration::from_secs(10);

/// How long it may take to tell what the engine can do.
const INFO_LIMIT: Duration = Duration::from_secs(10);

/// Whose engine it is; they differ in details.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavour {
    Docker,
    Podman,
}

impl Flavour {
    /// Returns the name people know it by.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
        }
    }
}

/// An engine that answered.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) client: Client,
    pub(crate) flavour: Flavour,
    pub(crate) api: Option<Api>,
    pub(crate) version: String,
    pub(crate) os: String,
    pub(crate) arch: String,
    abilities: OnceCell<Abilities>,
}

/// What decides which engine is meant, and the engine once it has answered.
type Known = (
    (Option<PathBuf>, Option<String>),
    Arc<OnceCell<Arc<Engine>>>,
);

/// The engines of this process that answered, so that a hundred places ask once.
static ENGINES: Mutex<Vec<Known>> = Mutex::new(Vec::new());

/// Returns the engine that the settings mean. Only one that answered is remembered.
pub(crate) async fn find(settings: &DockerSettings) -> Result<Arc<Engine>, PlaceError> {
    let key = (settings.program.clone(), settings.engine.clone());
    let cell = {
        let mut engines = ENGINES.lock().unwrap_or_else(PoisonError::into_inner);
        let known = engines.iter().find(|(known, _)| *known == key);
        if let Some((_, cell)) = known {
            Arc::clone(cell)
        } else {
            let cell = Arc::new(OnceCell::new());
            engines.push((key, Arc::clone(&cell)));
            cell
        }
    };
    cell.get_or_try_init(|| async { discover(settings).await.map(Arc::new) })
        .await
        .cloned()
}

/// Finds the client and makes sure that its engine answers.
pub(crate) async fn discover(settings: &DockerSettings) -> Result<Engine, PlaceError> {
    let path = std::env::var_os("PATH");
    let program = program::find(settings.program.as_deref(), path.as_deref())?;
    let podman = program
        .file_name()
        .is_some_and(|name| name.to_string_lossy().contains("podman"));
    let choose = if podman { "--url" } else { "-H" };
    let chosen = match &settings.engine {
        Some(address) => words([choose, address]),
        None => Vec::new(),
    };
    let client = Client::new(program, chosen);
    let around = Surroundings::current();
    let endpoint = if podman {
        program::podman_endpoint(settings.engine.as_deref(), &around)
    } else {
        program::docker_endpoint(settings.engine.as_deref(), &around)
    };
    let socket = match endpoint {
        Endpoint::Socket(path) => Some(path),
        Endpoint::Context(name) => context_socket(&client, &name).await,
        Endpoint::Elsewhere => None,
    };
    // Without a socket file, the client may still know a way, or say best what is wrong.
    if let Some(socket) = socket.filter(|socket| socket.exists()) {
        let api = Api::new(socket, client.name().to_owned());
        match api.version(ANSWER_LIMIT).await {
            Ok(Some(version)) => return Ok(by_socket(client, api, &version)),
            // The daemon is the only way to reach containers of Docker; Podman needs none.
            Err(error) if !podman => return Err(error),
            _ => {}
        }
    }
    by_client(client).await
}

async fn context_socket(client: &Client, name: &str) -> Option<PathBuf> {
    let template = "{{.Endpoints.docker.Host}}";
    let ask = words(["context", "inspect", name, "--format", template]);
    let answer = client.run("look up the context", &ask, ANSWER_LIMIT).await;
    match program::address_endpoint(answer.ok()?.stdout.trim()) {
        Endpoint::Socket(path) => Some(path),
        _ => None,
    }
}

fn by_socket(client: Client, api: Api, version: &Value) -> Engine {
    let text = |name: &str| {
        let value = version.get(name).and_then(Value::as_str);
        value.unwrap_or_default().to_owned()
    };
    let podman = version
        .get("Components")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|component| component.get("Name")?.as_str())
        .any(|name| name.contains("Podman"));
    Engine {
        client: client.answered(),
        flavour: if podman {
            Flavour::Podman
        } else {
            Flavour::Docker
        },
        api: Some(api),
        version: text("Version"),
        os: text("Os"),
        arch: text("Arch"),
        abilities: OnceCell::new(),
    }
}

async fn by_client(client: Client) -> Result<Engine, PlaceError> {
    const WHAT: &str = "ask for its version";
    let ask = words(["version", "--format", "{{json .}}"]);
    let answer = match client.run(WHAT, &ask, ANSWER_LIMIT).await {
        Ok(answer) => answer,
        Err(error) if error.trouble() == Some(Trouble::TooSlow) => {
            let why = format!("`{} version` gave no answer in 5 s", client.name());
            return Err(classify::no_daemon(client.name(), &why));
        }
        Err(error) => return Err(error),
    };
    if !answer.ok {
        return Err(match client.failure(WHAT, &answer) {
            error
                if matches!(
                    error.trouble(),
                    Some(Trouble::DoesNotStart | Trouble::NoDaemon)
                ) =>
            {
                classify::no_daemon(client.name(), answer.complaint())
            }
            error => error,
        });
    }
    let version: Value = serde_json::from_str(&answer.stdout).unwrap_or_default();
    let server = version.get("Server").filter(|server| server.is_object());
    let docker = server.is_some_and(|server| server.get("Platform").is_some());
    let side = server
        .or_else(|| version.get("Client"))
        .cloned()
        .unwrap_or_default();
    let text = |name: &str| Some(side.get(name)?.as_str()?.to_owned());
    let (os, arch) = match text("OsArch")
        .as_deref()
        .and_then(|both| both.split_once('/'))
    {
        Some((os, arch)) => (os.to_owned(), arch.to_owned()),
        None => (
            text("Os").unwrap_or_default(),
            text("Arch").unwrap_or_default(),
        ),
    };
    Ok(Engine {
        flavour: if docker {
            Flavour::Docker
        } else {
            Flavour::Podman
        },
        client: client.answered(),
        api: None,
        version: text("Version").unwrap_or_default(),
        os,
        arch,
        abilities: OnceCell::new(),
    })
}

impl Engine {
    /// Returns the client's name, for messages.
    pub(crate) fn name(&self) -> &str {
        self.client.name()
    }

    /// Tells what the engine can enforce here; asked once.
    pub(crate) async fn abilities(&self) -> Result<&Abilities, PlaceError> {
        self.abilities
            .get_or_try_init(|| async {
                const WHAT: &str = "ask what it can do";
                // Podman's socket tells less than its client.
                if let (Some(api), Flavour::Docker) = (&self.api, self.flavour)
                    && let Some(info) = api.get_within(WHAT, "/info", INFO_LIMIT).await?
                {
                    return Ok(Abilities::read(&info));
                }
                let ask = words(["info", "--format", "{{json .}}"]);
                let answer = self.client.succeed(WHAT, &ask, INFO_LIMIT).await?;
                let info: Value = serde_json::from_str(&answer)
                    .map_err(|error| PlaceError::Nonsense(error.to_string()))?;
                Ok(Abilities::read(&info))
            })
            .await
    }

    /// Lists containers that have all of these labels, whatever they are doing.
    pub(crate) async fn list(&self, labels: &[String]) -> Result<Vec<Container>, PlaceError> {
        const WHAT: &str = "list containers";
        let ids: Vec<String> = if let Some(api) = &self.api {
            let filters = json!({ "label": labels }).to_string();
            let path = format!("/containers/json?all=true&filters={}", encode(&filters));
            let listed = api.get(WHAT, &path).await?.unwrap_or_default();
            let listed = listed.as_array().cloned().unwrap_or_default();
            let id = |entry: &Value| Some(entry.get("Id")?.as_str()?.to_owned());
            listed.iter().filter_map(id).collect()
        } else {
            let mut ask = words(["ps", "--all", "--quiet", "--no-trunc"]);
            for label in labels {
                ask.extend(words(["--filter", &format!("label={label}")]));
            }
            let listed = self.client.succeed(WHAT, &ask, LIST_LIMIT).await?;
            listed.split_whitespace().map(str::to_owned).collect()
        };
        let mut containers = Vec::new();
        for id in ids {
            // One that went away meanwhile is no longer on the list.
            containers.extend(self.container(&id).await?);
        }
        Ok(containers)
    }

    /// Looks at one container; `None` when there is none of that name.
    pub(crate) async fn container(&self, name: &str) -> Result<Option<Container>, PlaceError> {
        const WHAT: &str = "look at the container";
        let record = if let Some(api) = &self.api {
            api.get(WHAT, &format!("/containers/{}/json", encode(name)))
                .await?
        } else {
            let ask = words(["container", "inspect", name]);
            self.first_record(WHAT, &ask).await?
        };
        record
            .map(|record| {
                Container::read(&record).ok_or_else(|| {
                    PlaceError::Nonsense("the engine's record of a container".to_owned())
                })
            })
            .transpose()
    }

    /// Looks at an image; `None` when it is not there.
    pub(crate) async fn image(&self, name: &str) -> Result<Option<Image>, PlaceError> {
        const WHAT: &str = "look at the image";
        let record = if let Some(api) = &self.api {
            api.get(WHAT, &format!("/images/{}/json", encode(name)))
                .await?
        } else {
            let ask = words(["image", "inspect", name]);
            self.first_record(WHAT, &ask).await?
        };
        Ok(record.as_ref().and_then(Image::read))
    }

    async fn first_record(&self, what: &str, ask: &[String]) -> Result<Option<Value>, PlaceError> {
        let answer = self.client.run(what, ask, LIST_LIMIT).await?;
        if !answer.ok {
            let error = self.client.failure(what, &answer);
            return match error.trouble() {
                Some(Trouble::NoContainer | Trouble::NoImage) => Ok(None),
                _ => Err(error),
            };
        }
        let records: Value = serde_json::from_str(&answer.stdout)
            .map_err(|error| PlaceError::Nonsense(error.to_string()))?;
        Ok(records.get(0).cloned())
    }

    /// Ends a container: politely at first, after the grace for good.
    pub(crate) async fn stop(
        &self,
        id: &str,
        grace: Duration,
        limit: Duration,
    ) -> Result<Answer, PlaceError> {
        const WHAT: &str = "stop the container";
        let grace = grace.as_secs().to_string();
        if let Some(api) = &self.api {
            let path = format!("/containers/{}/stop?t={grace}", encode(id));
            return api.change(WHAT, Method::POST, &path, limit).await;
        }
        let stop = words(["stop", "--time", &grace, id]);
        self.client.run(WHAT, &stop, limit).await
    }

    /// Removes a container and its nameless volumes; one that runs only by force.
    pub(crate) async fn remove(
        &self,
        what: &str,
        id: &str,
        force: bool,
        limit: Duration,
    ) -> Result<Answer, PlaceError> {
        if let Some(api) = &self.api {
            let path = format!("/containers/{}?force={force}&v=true", encode(id));
            return api.change(what, Method::DELETE, &path, limit).await;
        }
        let mut remove = words(["rm", "--volumes"]);
        if force {
            remove.push("--force".to_owned());
        }
        remove.push(id.to_owned());
        self.client.run(what, &remove, limit).await
    }

    /// Starts a program in a container with its streams piped.
    pub(crate) async fn exec(
        &self,
        container: &str,
        program: &[String],
    ) -> Result<Launched, PlaceError> {
        if let Some(api) = &self.api {
            return api.exec(container, program).await;
        }
        let mut exec = words(["exec", "-i", container]);
        exec.extend(program.iter().cloned());
        self.client.launch(&exec)
    }
}
