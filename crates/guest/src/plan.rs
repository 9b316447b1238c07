//! Where a command runs, and from which state.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use exoshell_process::Stage;
use exoshell_wire::{
    Exec, Failure, FailureKind, Note, SessionRef, SessionSpec, ShellKind, TerminalSize,
};

use crate::guest::Guest;
use crate::hidden::Hidden;
use crate::session::state::{Keep, ShellState, Variable, is_identifier};
use crate::session::{Session, existing_directory, initial_state};
use crate::shell::{Pipes, Start, Streams, WaitingShell, directory_id, sh_file};
use crate::tree::{StartFailure, Tree};

/// How long a new shell may take to run.
const START_LIMIT: Duration = Duration::from_secs(30);

/// How long a shell that was prepared may still take; then a new one is tried.
const WAITING_LIMIT: Duration = Duration::from_secs(5);

const PATH: &[u8] = b"PATH";

/// Where programs are when a place does not say.
const DEFAULT_PATH: &[u8] = b"/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Waits for a shell to run, but not for ever: the spawner may be in trouble.
async fn started_in_time(tree: &Tree, limit: Duration) -> Result<u32, StartFailure> {
    let late = StartFailure {
        stage: Stage::Fork,
        errno: rustix::io::Errno::TIMEDOUT.raw_os_error(),
    };
    tokio::time::timeout(limit, tree.started())
        .await
        .unwrap_or(Err(late))
}

/// Everything known about a command before it starts.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) session: Option<Arc<Session>>,
    /// What the shell starts the command with: the session's state plus this command's own
    /// variables and directory.
    target: ShellState,
    pub(crate) notes: Vec<Note>,
    streams: Streams,
    terminal: Option<TerminalSize>,
    waiting: Option<WaitingShell>,
    /// The exact environment of a one-shot run.
    environment: Option<Vec<Vec<u8>>>,
    /// The folder with our own `sudo`, if the command may ask for a password.
    shim: Option<Vec<u8>>,
    /// What is hidden in what is kept of it.
    pub(crate) hidden: Hidden,
}

impl Plan {
    /// Finds the session and works out directory and variables. Nothing is started.
    pub(crate) fn make(guest: &Arc<Guest>, exec: &Exec) -> Result<Self, Failure> {
        guest.shells()?;
        let mut plan = match &exec.session {
            SessionRef::Key(key) => Self::in_session(guest, key)?,
            SessionRef::OneShot(spec) => Self::one_shot(guest, spec)?,
        };
        plan.streams = Streams {
            merge: exec.merge,
            stdin: exec.stdin || exec.terminal.is_some(),
        };
        plan.terminal = exec.terminal;
        if exec.terminal.is_some() {
            // The shell that waits has no terminal; it stays for the next command.
            plan.give_back_waiting();
        }
        // From here on the plan ends its session's command when it is dropped.
        plan.adapt(exec)?;
        if exec.sudo {
            plan.arm(guest);
        }
        plan.hidden = Hidden::new(&plan.target, exec);
        guest.claim_id(&exec.id)?;
        Ok(plan)
    }

    fn in_session(guest: &Arc<Guest>, key: &str) -> Result<Self, Failure> {
        let session = guest.session(key).ok_or_else(|| {
            Failure::new(
                FailureKind::NoSession,
                format!("there is no session `{key}`"),
            )
        })?;
        let begun = session.begin();
        let mut notes = begun.notes;
        let mut target = (*begun.state).clone();
        let cwd = existing_directory(&target.cwd, &mut notes);
        if cwd != target.cwd {
            // Said once: from here on the session lives in the directory that exists.
            session.update(|state| state.cwd.clone_from(&cwd));
            target.cwd = cwd;
        }
        if begun.prepare_now && begun.waiting.is_some() {
            // Back to back: the next shell starts while this command runs.
            guest.prepare(&session);
        }
        Ok(Self {
            session: Some(session),
            target,
            notes,
            streams: Streams::default(),
            terminal: None,
            waiting: begun.waiting,
            environment: None,
            shim: None,
            hidden: Hidden::default(),
        })
    }

    fn one_shot(guest: &Guest, spec: &SessionSpec) -> Result<Self, Failure> {
        let mut notes = Vec::new();
        let target = initial_state(guest, spec, &mut notes)?;
        let shells = guest.shells()?;
        if !shells.can_wait() {
            notes.push(Note::NoBash {
                shell: shells.program.path.clone(),
            });
        }
        let kept = spec.env.iter().flatten();
        let given = kept
            .filter(|(name, _)| !spec.env_remove.contains(name))
            .chain(&spec.extra_env);
        let environment = given
            .filter(|(name, _)| name.as_ref() != b"PWD")
            .map(|(name, value)| [name.as_ref(), b"=", value.as_ref()].concat())
            .chain([[b"PWD=".as_slice(), &target.cwd].concat()])
            .collect();
        Ok(Self {
            session: None,
            target,
            notes,
            streams: Streams::default(),
            terminal: None,
            waiting: None,
            environment: spec.env.is_some().then_some(environment),
            shim: None,
            hidden: Hidden::default(),
        })
    }

    /// Applies this command's own directory and variables.
    fn adapt(&mut self, exec: &Exec) -> Result<(), Failure> {
        if let Some(workdir) = &exec.workdir {
            self.target.cwd = self.resolve(&workdir.0)?;
        }
        if exec
            .terminal
            .is_some_and(|size| size.cols == 0 || size.rows == 0)
        {
            return Err(Failure::new(
                FailureKind::BadRequest,
                "a terminal has at least one row and one column",
            ));
        }
        if exec.terminal.is_some() && self.target.text(b"TERM").is_none_or(|t| t == b"dumb") {
            let term = Variable::Text(b"xterm-256color".to_vec());
            self.target.variables.insert(b"TERM".to_vec(), term);
        }
        for (name, value) in &exec.env {
            if !is_identifier(&name.0) || value.0.contains(&0) {
                return Err(Failure::new(
                    FailureKind::BadRequest,
                    format!("`{}` cannot be a variable with that value", name.display()),
                ));
            }
            self.target
                .variables
                .insert(name.0.clone(), Variable::Text(value.0.clone()));
        }
        Ok(())
    }

    /// Shows sudo the way to us. What the command does not change of this is not carried over.
    fn arm(&mut self, guest: &Arc<Guest>) {
        let Some(door) = guest.sudo().door(guest) else {
            return;
        };
        let mut own = vec![(&b"SUDO_ASKPASS"[..], door.askpass.clone())];
        if self.terminal.is_some() {
            // With a terminal sudo would read that; our own `sudo` tells it not to.
            let path = self.target.text(PATH).unwrap_or(DEFAULT_PATH);
            own.push((PATH, [&door.path, &b":"[..], path].concat()));
        } else if self.target.text(b"DISPLAY").is_none() {
            // Without a terminal sudo runs an askpass program only where there is a display, and
            // an empty one will do.
            own.push((b"DISPLAY", Vec::new()));
        }
        for (name, value) in own {
            let variables = &mut self.target.variables;
            variables.insert(name.to_vec(), Variable::Text(value));
        }
        self.shim = Some(door.path.clone());
    }

    /// Turns a working directory as a person writes it into one that can be entered.
    fn resolve(&self, workdir: &[u8]) -> Result<Vec<u8>, Failure> {
        let home = || self.target.text(b"HOME").unwrap_or(b"/root");
        let path = match workdir {
            b"~" => home().to_vec(),
            [b'~', b'/', rest @ ..] => [home(), b"/", rest].concat(),
            [b'/', ..] => workdir.to_vec(),
            _ => [&self.target.cwd, &b"/"[..], workdir].concat(),
        };
        let why = match rustix::fs::stat(path.as_slice()) {
            _ if path.contains(&0) => "it contains a NUL byte".to_owned(),
            Ok(_) if directory_id(&path).is_none() => "it is not a directory".to_owned(),
            Ok(_) => match rustix::fs::access(path.as_slice(), rustix::fs::Access::EXEC_OK) {
                Ok(()) => return Ok(path),
                Err(errno) => std::io::Error::from(errno).to_string(),
            },
            Err(errno) => std::io::Error::from(errno).to_string(),
        };
        Err(Failure::new(
            FailureKind::Workdir,
            format!(
                "cannot enter the working directory `{}`: {why}",
                String::from_utf8_lossy(&path)
            ),
        ))
    }

    /// Starts the command: in the shell that waits for it, else in a new one.
    pub(crate) async fn start(
        &mut self,
        guest: &Guest,
        id: &str,
        command: &[u8],
    ) -> Result<Started, Failure> {
        if let Some(shell) = self.waiting.take()
            && let Some(started) = self.use_waiting(shell, command).await
        {
            return Ok(started);
        }
        let (tree, pipes) = self.start_new(guest, id, command).await?;
        match started_in_time(&tree, START_LIMIT).await {
            Ok(pid) => Ok(Started {
                tree,
                pipes,
                pid,
                warm: false,
            }),
            Err(failure) => Err(self.explain(guest, failure)),
        }
    }

    /// Hands the command to a waiting shell, or returns `None` when the shell is of no use. The
    /// command certainly did not run then: such a shell never saw it.
    async fn use_waiting(&self, shell: WaitingShell, command: &[u8]) -> Option<Started> {
        let pid = started_in_time(&shell.tree, WAITING_LIMIT).await.ok()?;
        if shell.tree.has_ended() {
            return None;
        }
        let mut from = (*shell.state).clone();
        if directory_id(&self.target.cwd) != shell.directory {
            // Same name or not, it is another directory now.
            from.cwd.clear();
        }
        let update = from.script_to(&self.target);
        let (tree, pipes) = shell.hand_over(&update, command, self.streams).ok()?;
        Some(Started {
            tree,
            pipes,
            pid,
            warm: true,
        })
    }

    async fn start_new(
        &self,
        guest: &Guest,
        id: &str,
        command: &[u8],
    ) -> Result<(Tree, Pipes), Failure> {
        let shells = guest.shells()?;
        let fail = |error: std::io::Error| {
            Failure::new(
                FailureKind::Spawn,
                format!("the command could not be started: {error}"),
            )
        };
        let target = Arc::new(self.target.clone());
        if shells.program.kind == ShellKind::Sh {
            return self.start_sh(guest, id, command, &target).map_err(fail);
        }
        let start = match &self.environment {
            // What a one-shot shell is started with is all the state it has; only variables of
            // the request come on top.
            Some(environment) => Start {
                environment: environment.clone(),
                replay: self.given_state().script_to(&target),
                state: Arc::clone(&target),
            },
            None => Start {
                environment: target.environment(),
                replay: match guest.baseline().await {
                    Ok(baseline) => target.started_from(&baseline).script_to(&target),
                    Err(failure) => return Err(failure),
                },
                state: Arc::clone(&target),
            },
        };
        let shell = shells
            .start_waiting(guest.spawner(), start, self.terminal)
            .map_err(fail)?;
        shell.hand_over(b"", command, self.streams).map_err(fail)
    }

    /// The state a one-shot shell has from its environment alone.
    fn given_state(&self) -> ShellState {
        let mut given = self.target.clone();
        given.variables.retain(|name, variable| match variable {
            Variable::Text(value) => self.environment.iter().flatten().any(|entry| {
                entry
                    .strip_prefix(name.as_slice())
                    .and_then(|r| r.strip_prefix(b"="))
                    == Some(value)
            }),
            Variable::Declared { .. } => true,
        });
        given
    }

    fn start_sh(
        &self,
        guest: &Guest,
        id: &str,
        command: &[u8],
        target: &Arc<ShellState>,
    ) -> std::io::Result<(Tree, Pipes)> {
        let environment = match &self.environment {
            Some(environment) => environment.clone(),
            None => target.environment(),
        };
        let start = Start {
            environment,
            replay: Vec::new(),
            state: Arc::clone(target),
        };
        // The environment and the launch carry everything an `sh` can hold.
        let file = sh_file(&guest.dir, id);
        std::fs::write(&file, command)?;
        let shells = guest
            .shells()
            .map_err(|failure| std::io::Error::other(failure.message))?;
        shells.start_sh(guest.spawner(), &start, self.streams, &file, self.terminal)
    }

    fn explain(&self, guest: &Guest, failure: StartFailure) -> Failure {
        let error = std::io::Error::from_raw_os_error(failure.errno);
        let shell = guest
            .shells()
            .map_or_else(|_| String::new(), |shells| shells.program.path.display());
        match failure.stage {
            Stage::Directory => Failure::new(
                FailureKind::Workdir,
                format!(
                    "cannot enter the working directory `{}`: {error}",
                    String::from_utf8_lossy(&self.target.cwd)
                ),
            ),
            Stage::Fork => Failure::new(
                FailureKind::Spawn,
                format!("the system refused a new process: {error}"),
            ),
            Stage::Execute => Failure::new(
                FailureKind::Spawn,
                format!("`{shell}` could not be executed: {error}"),
            ),
        }
    }

    /// Carries over what the command changed. Tells whether its state could be read.
    pub(crate) fn carry_over(&self, guest: &Guest, exec: &Exec, capture: &OwnedFd) -> bool {
        let Some(session) = self.session.as_ref().filter(|_| exec.persist) else {
            return true;
        };
        let captured = guest
            .shells()
            .ok()
            .and_then(|shells| shells.captured(capture));
        let Some(mut after) = captured else {
            return false;
        };
        if guest.shells().is_ok_and(|shells| !shells.can_wait()) {
            // What an `sh` cannot tell has not changed.
            after.shopts.clone_from(&self.target.shopts);
            after.options.clone_from(&self.target.options);
        }
        if let Some(shim) = &self.shim
            && after.variables.get(PATH) != self.target.variables.get(PATH)
            && let Some(Variable::Text(path)) = after.variables.get_mut(PATH)
        {
            *path = crate::sudo::without(path, shim);
        }
        let mut ignored: Vec<&[u8]> = exec.env.iter().map(|(name, _)| name.as_ref()).collect();
        let keep_directory = exec.workdir.is_none();
        if !keep_directory {
            ignored.push(b"OLDPWD");
        }
        if exec.terminal.is_some() {
            ignored.push(b"TERM");
        }
        let keep = Keep {
            directory: keep_directory,
            ignored_variables: &ignored,
        };
        session.update(|state| state.merge(&self.target, &after, keep));
        true
    }

    /// Returns the directory the command starts in.
    pub(crate) fn directory(&self) -> &[u8] {
        &self.target.cwd
    }

    fn give_back_waiting(&mut self) {
        if let (Some(session), Some(shell)) = (&self.session, self.waiting.take())
            && session.lacks_shell()
        {
            session.keep(shell);
        }
    }

    /// Returns the session's directory as it is now.
    pub(crate) fn cwd(&self) -> Vec<u8> {
        match &self.session {
            Some(session) => session.state().cwd.clone(),
            None => self.target.cwd.clone(),
        }
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        if let Some(session) = &self.session {
            session.finish();
        }
    }
}

/// A command that was started.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) tree: Tree,
    pub(crate) pipes: Pipes,
    pub(crate) pid: u32,
    pub(crate) warm: bool,
}
