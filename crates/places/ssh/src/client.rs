//! Running the OpenSSH client.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use exoshell_place::bootstrap::{Launcher, command_line};
use exoshell_place::{
    Launched, PlaceError, PlaceFuture, Progress, SUDO_PASSWORD, Silence, Trouble,
};
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

use crate::SshSettings;
use crate::master::Masters;
use crate::trouble::{self, Target};

/// How long a client that only looks at its configuration may take.
const LOCAL_LIMIT: Duration = Duration::from_secs(10);

/// How long making a connection may take, a jump host included.
const CONNECT_LIMIT: Duration = Duration::from_secs(45);

/// How long the last words of a client may take once it has ended.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// How much of what a client complains about is kept.
const MAX_COMPLAINT: u64 = 32 * 1024;

/// What holds for every connection, after what was configured explicitly.
const OPTIONS: &[&str] = &[
    "BatchMode=yes",
    "StrictHostKeyChecking=accept-new",
    "ConnectTimeout=10",
    "ServerAliveInterval=5",
    "ServerAliveCountMax=3",
    // What the user wants for a terminal of their own is not for us.
    "RemoteCommand=none",
    "RequestTTY=no",
    "PermitLocalCommand=no",
    "ClearAllForwardings=yes",
    "ForwardAgent=no",
    "ForwardX11=no",
];

/// Makes a client the one whose connection others share.
const MASTER: &[&str] = &[
    "-o",
    "ControlMaster=yes",
    "-o",
    "ControlPersist=300",
    "-N",
    "-f",
];

/// The client, with the options of one host.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    program: String,
    options: Vec<String>,
    host: String,
    masters: Masters,
}

/// What a client said and how it ended.
struct Ended {
    success: bool,
    stdout: String,
    stderr: String,
}

/// Where the client would connect to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub(crate) user: String,
    pub(crate) hostname: String,
    pub(crate) port: String,
    pub(crate) jump: Option<String>,
}

impl Resolved {
    /// Returns `user@host:port`.
    pub(crate) fn id(&self) -> String {
        format!("{}@{}:{}", self.user, self.hostname, self.port)
    }
}

impl Client {
    pub(crate) fn new(home: &Path, settings: &SshSettings) -> Self {
        let program = settings.program.as_ref();
        let options = options(settings);
        let identity = format!(
            "{}\0{}\0{}",
            settings.profile,
            settings.host,
            options.join("\0")
        );
        Self {
            program: program.map_or_else(|| "ssh".to_owned(), |path| path.display().to_string()),
            masters: Masters::new(home, &crate::short_hash(&identity)),
            options,
            host: settings.host.clone(),
        }
    }

    /// Returns the host as it was configured.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// Makes sure that there is a connection, and returns the path of its control socket.
    pub(crate) async fn ensure(&self, progress: &Progress) -> Result<String, PlaceError> {
        self.check_key()?;
        self.masters.ensure(self, progress).await
    }

    /// Tells whether there is a connection.
    pub(crate) async fn is_connected(&self) -> bool {
        self.masters.is_alive().await
    }

    /// Returns the control socket of the connection that counts.
    #[cfg(test)]
    pub(crate) fn current_socket(&self) -> Option<String> {
        self.masters.current()
    }

    /// Ends the connection, with everything on it.
    pub(crate) async fn hang_up(&self) -> Result<(), PlaceError> {
        let Some(socket) = self.masters.current() else {
            return Ok(());
        };
        let words = self.words(&socket, &["-O", "exit"], None);
        // One that does not even end is replaced by whoever connects next.
        let _ = self.run(&words, LOCAL_LIMIT).await?;
        self.masters.remove(&socket);
        Ok(())
    }

    /// Makes a connection that others can share. The inner error is what the client said.
    pub(crate) async fn dial(&self, socket: &str) -> Result<Result<(), String>, PlaceError> {
        let words = self.words(socket, MASTER, None);
        let said = match self.run(&words, CONNECT_LIMIT).await? {
            Some(ended) if ended.success => return Ok(Ok(())),
            Some(ended) => ended.stderr,
            None => format!("Connection timed out after {} s", CONNECT_LIMIT.as_secs()),
        };
        let resolved = self.resolve().await;
        if resolved.is_ok_and(|resolved| resolved.jump.is_some()) {
            // A client that is to stay in the background silences those of its jump hosts.
            let words = self.words("none", &["-N", "-f"], None);
            if let Ok(Some(again)) = self.run(&words, CONNECT_LIMIT).await
                && !again.success
            {
                return Ok(Err(again.stderr + &said));
            }
        }
        Ok(Err(said))
    }

    /// Explains what the client said while it connected.
    pub(crate) async fn classify(&self, said: &str) -> PlaceError {
        // Only now is it worth asking which way it went.
        let jump = self.resolve().await.ok().and_then(|found| found.jump);
        trouble::classify(said, &self.target(jump.as_deref()))
            .unwrap_or_else(|| trouble::unknown(said, &self.host))
    }

    /// Asks the client what its configuration makes of the host.
    pub(crate) async fn resolve(&self) -> Result<Resolved, PlaceError> {
        let mut words = vec!["-G".to_owned()];
        words.extend_from_slice(&self.options);
        words.extend(["--".to_owned(), self.host.clone()]);
        let ended = self.run_local(&words).await?;
        if ended.success {
            return Ok(read_resolved(&ended.stdout));
        }
        Err(trouble::classify(&ended.stderr, &self.target(None))
            .unwrap_or_else(|| trouble::bad_config(&ended.stderr)))
    }

    /// Asks the client for its version.
    pub(crate) async fn version(&self) -> Result<String, PlaceError> {
        let ended = self.run_local(&["-V".to_owned()]).await?;
        let text = format!("{}{}", ended.stdout, ended.stderr);
        Ok(text.lines().next().unwrap_or_default().trim().to_owned())
    }

    fn target<'a>(&'a self, jump: Option<&'a str>) -> Target<'a> {
        Target {
            host: &self.host,
            jump,
        }
    }

    /// Runs a client that needs no network.
    async fn run_local(&self, words: &[String]) -> Result<Ended, PlaceError> {
        let ended = self.run(words, LOCAL_LIMIT).await?;
        ended.ok_or_else(|| {
            PlaceError::backend(
                Trouble::TooSlow,
                format!(
                    "`{}` did not end within {} s",
                    self.program,
                    LOCAL_LIMIT.as_secs()
                ),
                "look for a `Match exec` in `~/.ssh/config` that takes long",
            )
        })
    }

    /// Builds the arguments of a client that uses this control socket.
    fn words(&self, socket: &str, flags: &[&str], command: Option<String>) -> Vec<String> {
        let mut words = self.options.clone();
        words.extend(["-o".to_owned(), format!("ControlPath={socket}")]);
        words.extend(flags.iter().map(|flag| (*flag).to_owned()));
        words.extend(["--".to_owned(), self.host.clone()]);
        words.extend(command);
        words
    }

    /// Runs the client to its end without a terminal, so that nothing can ask for anything.
    /// `None` when it did not end in time.
    async fn run(&self, words: &[String], limit: Duration) -> Result<Option<Ended>, PlaceError> {
        let mut child = Command::new(&self.program)
            .args(words)
            .env_remove(SUDO_PASSWORD)
            // A jump host's client does not get our options, but this.
            .env("SSH_ASKPASS_REQUIRE", "force")
            .env("SSH_ASKPASS", "/bin/false")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| self.no_program(&error))?;
        let stdout = child.stdout.take();
        let stderr = child.stderr.take();
        // The connection that goes on in the background may hold these open for a moment.
        let stdout = tokio::spawn(read_some(stdout));
        let stderr = tokio::spawn(read_some(stderr));
        let status = match tokio::time::timeout(limit, child.wait()).await {
            Ok(Ok(status)) => status,
            Ok(Err(error)) => return Err(self.no_program(&error)),
            Err(_) => return Ok(None),
        };
        Ok(Some(Ended {
            success: status.success(),
            stdout: last_words(stdout).await,
            stderr: last_words(stderr).await,
        }))
    }

    fn no_program(&self, error: &io::Error) -> PlaceError {
        PlaceError::backend(
            Trouble::NoProgram,
            format!("the ssh client `{}` cannot be run: {error}", self.program),
            "install the OpenSSH client (Debian: `apt install openssh-client`), or set the path \
             of its program",
        )
    }

    /// Looks at the configured key before the client does, which would only say that the host
    /// refused us.
    fn check_key(&self) -> Result<(), PlaceError> {
        let position = self.options.iter().position(|word| word == "-i");
        let Some(path) = position.and_then(|at| self.options.get(at + 1)) else {
            return Ok(());
        };
        let file = match path.strip_prefix("~/") {
            Some(rest) => std::env::home_dir().unwrap_or_default().join(rest),
            // The client fills these in itself.
            None if path.contains('%') || path.starts_with('~') => return Ok(()),
            None => PathBuf::from(path),
        };
        match std::fs::File::open(file) {
            Ok(_) => Ok(()),
            Err(error) => Err(trouble::bad_key(
                &format!("the key `{path}` cannot be read: {error}"),
                "set the key to the path of a private key that you can read",
            )),
        }
    }

    async fn session(&self, words: &[String]) -> Result<Launched, PlaceError> {
        let socket = self.ensure(&Progress::default()).await?;
        let flags = ["-o", "ControlMaster=no", "-T"];
        let mut all = vec![self.program.clone()];
        all.extend(self.words(&socket, &flags, Some(command_line(words))));
        Launched::program(&all).map_err(|error| self.no_program(&error))
    }
}

impl Launcher for Client {
    fn launch<'a>(&'a self, words: &'a [String]) -> PlaceFuture<'a, Launched> {
        Box::pin(self.session(words))
    }

    fn explain(&self, silence: &Silence) -> Option<PlaceError> {
        trouble::classify(&silence.complaint, &self.target(None))
    }
}

/// Builds the options of every connection to the host.
fn options(settings: &SshSettings) -> Vec<String> {
    let mut words = Vec::new();
    let mut push = |flag: &str, value: &OsStr| {
        words.push(flag.to_owned());
        words.push(value.to_string_lossy().into_owned());
    };
    if let Some(config) = &settings.config {
        push("-F", config.as_os_str());
    }
    for option in &settings.options {
        push("-o", option.as_ref());
    }
    for option in OPTIONS {
        push("-o", option.as_ref());
    }
    if let Some(user) = &settings.user {
        push("-l", user.as_ref());
    }
    if let Some(port) = settings.port {
        push("-p", port.to_string().as_ref());
    }
    if let Some(key) = &settings.key {
        push("-i", key.as_os_str());
        // Otherwise the keys of an agent are offered first, and the host may lose patience.
        push("-o", "IdentitiesOnly=yes".as_ref());
    }
    words
}

async fn read_some(stream: Option<impl tokio::io::AsyncRead + Unpin>) -> Vec<u8> {
    let mut text = Vec::new();
    if let Some(stream) = stream {
        // What came before an error is all there is to know.
        let _ = stream.take(MAX_COMPLAINT).read_to_end(&mut text).await;
    }
    text
}

async fn last_words(mut task: tokio::task::JoinHandle<Vec<u8>>) -> String {
    if let Ok(Ok(text)) = tokio::time::timeout(LAST_WORDS, &mut task).await {
        return String::from_utf8_lossy(&text).into_owned();
    }
    task.abort();
    String::new()
}

/// Reads what `ssh -G` prints.
fn read_resolved(text: &str) -> Resolved {
    // Somebody else's program on the way is a jump host as well, for whoever must explain it.
    let set = |value: &String| value != "none";
    let value = |name: &str| {
        text.lines()
            .filter_map(|line| line.split_once(' '))
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value.trim().to_owned())
    };
    Resolved {
        user: value("user").unwrap_or_default(),
        hostname: value("hostname").unwrap_or_default(),
        port: value("port").unwrap_or_default(),
        jump: value("proxyjump")
            .filter(set)
            .or_else(|| value("proxycommand").filter(set)),
    }
}
