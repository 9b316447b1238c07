//! A world whose tasks live in one kind of place, with the real server it needs.

use std::ops::Deref;
use std::time::Duration;

use exoshell_testkit::{Engine, Room, Sshd, image};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::support::{Answer, PATH, PATIENCE, World, processes_naming, unique_sleep, wait_until};

/// A kind of place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Local,
    Docker,
    Podman,
    Ssh,
    Command,
}

/// What a place needs besides the product.
#[derive(Debug)]
enum Server {
    None,
    Engine(Engine),
    Host(Box<Sshd>),
    Room(Room),
}

/// A test's world. At its end the product itself removes its places, and nothing may be left: no
/// container, no process here or there, no file.
#[derive(Debug)]
pub(crate) struct Site {
    // Before the server: its end needs it.
    world: World,
    server: Server,
    kind: Kind,
}

impl Kind {
    /// Makes a world with such places.
    #[track_caller]
    pub(crate) fn site(self) -> Site {
        self.site_with(&[])
    }

    /// Makes a world with such places and these settings, as `("terminal.timeout_seconds", "2")`.
    #[track_caller]
    pub(crate) fn site_with(self, settings: &[(&str, &str)]) -> Site {
        self.site_called_with(settings, &[])
    }

    /// Makes a world with such places, these settings and these variables of the caller.
    #[track_caller]
    pub(crate) fn site_called_with(
        self,
        settings: &[(&str, &str)],
        variables: &[(&str, &str)],
    ) -> Site {
        let (server, own) = self.server();
        Site::with(self, server, own, settings, variables)
    }

    /// Starts what is needed, and returns it with the settings that name it.
    #[track_caller]
    fn server(self) -> (Server, Vec<(String, String)>) {
        let quoted = |text: &str| json!(text).to_string();
        let setting = |name: &str, value: String| (name.to_owned(), value);
        let backend = |name: &str| setting("terminal.backend", quoted(name));
        match self {
            Self::Local => (Server::None, vec![backend("local")]),
            Self::Docker => {
                let image = setting("docker.image", quoted(image::DEBIAN));
                (
                    Server::Engine(Engine::docker()),
                    vec![backend("docker"), image],
                )
            }
            Self::Podman => {
                let image = setting("docker.image", quoted(image::DEBIAN));
                (
                    Server::Engine(Engine::podman()),
                    vec![backend("podman"), image],
                )
            }
            Self::Ssh => {
                let host = Sshd::start();
                let settings = host_settings(&host);
                (Server::Host(Box::new(host)), settings)
            }
            Self::Command => {
                let room = Room::new();
                let launch = setting("command.launch", json!(room.launcher()).to_string());
                (Server::Room(room), vec![backend("command"), launch])
            }
        }
    }
}

/// Returns the settings that name a host.
fn host_settings(host: &Sshd) -> Vec<(String, String)> {
    let quoted = |text: &str| json!(text).to_string();
    [
        ("terminal.backend", quoted("ssh")),
        ("ssh.host", quoted(host.address())),
        ("ssh.port", host.port().to_string()),
        ("ssh.user", quoted("root")),
        ("ssh.key", quoted(host.key().to_str().unwrap())),
        ("ssh.options", json!(host.client_options()).to_string()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

impl Deref for Site {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

impl Site {
    /// Makes a world whose tasks live on this host.
    #[track_caller]
    pub(crate) fn on(host: Sshd, settings: &[(&str, &str)]) -> Self {
        let own = host_settings(&host);
        Self::with(Kind::Ssh, Server::Host(Box::new(host)), own, settings, &[])
    }

    /// Makes a world whose tasks live behind a launcher of this machine.
    #[track_caller]
    pub(crate) fn behind(settings: &[(&str, &str)]) -> Self {
        let backend = ("terminal.backend".to_owned(), "\"command\"".to_owned());
        Self::with(Kind::Command, Server::None, vec![backend], settings, &[])
    }

    #[track_caller]
    fn with(
        kind: Kind,
        server: Server,
        own: Vec<(String, String)>,
        settings: &[(&str, &str)],
        variables: &[(&str, &str)],
    ) -> Self {
        let mut world = World::new();
        for (name, value) in variables {
            world = world.with_variable(name, value);
        }
        let variables = match &server {
            Server::None | Server::Room(_) => Vec::new(),
            Server::Engine(engine) => engine.variables().to_vec(),
            Server::Host(host) => {
                let folder = host.client_folder();
                vec![("PATH".to_owned(), format!("{}:{PATH}", folder.display()))]
            }
        };
        for (name, value) in variables {
            world = world.with_variable(name, value);
        }
        // What a test says itself holds instead of what the server needs.
        let given = |name: &str| settings.iter().any(|(own, _)| *own == name);
        let own = own.into_iter().filter(|(name, _)| !given(name));
        let more = settings
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let lines: Vec<String> = own
            .chain(more)
            .map(|(name, value)| format!("{name} = {value}\n"))
            .collect();
        Self {
            world: world.with_config(&lines.concat()),
            server,
            kind,
        }
    }

    /// Returns the host that its tasks live on.
    #[track_caller]
    pub(crate) fn host(&self) -> &Sshd {
        match &self.server {
            Server::Host(host) => host,
            other => panic!("{other:?} is no host"),
        }
    }

    /// Returns the host to change it.
    #[track_caller]
    pub(crate) fn host_mut(&mut self) -> &mut Sshd {
        match &mut self.server {
            Server::Host(host) => host,
            other => panic!("{other:?} is no host"),
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the engine whose containers this world uses.
    #[track_caller]
    pub(crate) fn engine(&self) -> &Engine {
        match &self.server {
            Server::Engine(engine) => engine,
            other => panic!("no engine: {other:?}"),
        }
    }

    /// Returns the only container that this world made.
    #[track_caller]
    pub(crate) fn container(&self) -> String {
        let mut all = self.containers();
        assert_eq!(all.len(), 1, "{all:?}");
        all.remove(0)
    }

    /// Makes an empty folder in the place, moves the session there and returns its path.
    #[track_caller]
    pub(crate) fn enter_folder(&self) -> String {
        let answer = self.terminal("cd \"$(mktemp -d)\" && pwd -P");
        assert_eq!(answer.code(), 0, "{}", answer.0);
        answer.output().trim_end().to_owned()
    }

    /// Ends the guest and everything it started, without the product's knowledge: the container
    /// is removed, the machine's part dies, the guest is killed.
    #[track_caller]
    pub(crate) fn destroy(&self) {
        match &self.server {
            Server::None => kill(self.guest_pid()),
            Server::Engine(engine) => {
                let containers = self.containers();
                assert!(!containers.is_empty(), "there is no container");
                for id in containers {
                    engine.remove(&id);
                }
            }
            Server::Host(_) | Server::Room(_) => {
                for pid in self.strangers() {
                    kill(pid);
                }
                wait_until(PATIENCE, "all of it is dead", || {
                    self.strangers().is_empty()
                });
            }
        }
    }

    /// Returns the containers that this world made.
    #[track_caller]
    pub(crate) fn containers(&self) -> Vec<String> {
        match &self.server {
            Server::Engine(engine) => engine.mounting(self.root()),
            _ => Vec::new(),
        }
    }

    /// Returns the processes on the host or in the room that this world started.
    fn strangers(&self) -> Vec<u32> {
        let list = match &self.server {
            Server::Host(host) => host.visitors(),
            Server::Room(room) => room.visitors(),
            Server::None | Server::Engine(_) => Vec::new(),
        };
        list.into_iter().map(|process| process.pid).collect()
    }

    fn leftovers(&self) -> String {
        match &self.server {
            Server::Host(host) => format!("{:#?}", host.visitors()),
            Server::Room(room) => format!("{:#?}", room.visitors()),
            Server::None | Server::Engine(_) => format!("{:#?}", self.containers()),
        }
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let mut command = self.world.command(["places", "rm", "--all"]);
            let _ = command.output();
            if let Server::Engine(engine) = &self.server {
                for id in engine.mounting(self.world.root()) {
                    engine.remove(&id);
                }
            }
            return;
        }
        self.world.clean_up();
        let deadline = std::time::Instant::now() + Duration::from_secs(10);
        loop {
            if self.containers().is_empty() && self.strangers().is_empty() {
                return;
            }
            assert!(
                std::time::Instant::now() < deadline,
                "left after the clean-up: {}",
                self.leftovers()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn kill(pid: u32) {
    if let Some(pid) = Pid::from_raw(pid.cast_signed()) {
        // One that went with another is gone already.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// A `sleep` in a place. The machine sees the processes of all of its containers, rooms and
/// hosts, so that a test needs nobody's word for their end.
#[derive(Debug)]
pub(crate) struct Sleep(pub(crate) String);

impl Sleep {
    pub(crate) fn new() -> Self {
        Self(unique_sleep())
    }

    /// Puts it into a text in place of each `sleep N`.
    pub(crate) fn fill(&self, form: &str) -> String {
        form.replace("sleep N", &format!("sleep {}", self.0))
    }

    /// Returns how many run now.
    pub(crate) fn count(&self) -> usize {
        let found = processes_naming(&self.0);
        found
            .iter()
            .filter(|process| process.name == "sleep")
            .count()
    }

    /// Waits until this many run.
    #[track_caller]
    pub(crate) fn runs(&self, many: usize) {
        wait_until(PATIENCE, "the command sleeps", || self.count() == many);
    }

    /// Waits until nothing that names it is left.
    #[track_caller]
    pub(crate) fn ends_within(&self, limit: Duration) {
        wait_until(limit, "nothing of it is alive", || {
            processes_naming(&self.0).is_empty()
        });
    }
}

/// Returns the ids of a list of processes.
pub(crate) fn ids(list: &Value) -> Vec<&str> {
    list["processes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|process| process["session_id"].as_str().unwrap())
        .collect()
}

/// Asserts that a call was refused before anything ran.
#[track_caller]
pub(crate) fn refused(answer: &Answer, code: i64, kind: &str, word: &str) {
    assert_eq!((answer.code(), answer.kind()), (code, kind), "{}", answer.0);
    assert_eq!(answer.output(), "", "{}", answer.0);
    assert!(answer.error().contains(word), "no `{word}`: {}", answer.0);
}
