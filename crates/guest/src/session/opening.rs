//! Creating a session: the environment it starts from.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use exoshell_wire::{Failure, FailureKind, Note, RawBytes, SessionSpec};

use super::state::ShellState;
use super::{DEFAULT_IDLE, DEFAULT_TTL, Inner, Session, SessionCell};
use crate::guest::Guest;
use crate::shell::{Start, directory_id};
use crate::tree::Tree;

/// Returns the session of a cell, creating it if this is the first call; tells whether it was.
pub(crate) async fn open(
    guest: &Arc<Guest>,
    cell: &SessionCell,
    key: &str,
    spec: &SessionSpec,
) -> Result<(Arc<Session>, bool), Failure> {
    let mut created = false;
    let session = cell
        .created
        .get_or_try_init(|| async {
            created = true;
            create(guest, key, spec).await.map(Arc::new)
        })
        .await?;
    Ok((Arc::clone(session), created))
}

async fn create(guest: &Arc<Guest>, key: &str, spec: &SessionSpec) -> Result<Session, Failure> {
    let mut notes = Vec::new();
    let mut state = initial_state(guest, spec, &mut notes)?;
    let mut login_tree = None;
    let shells = guest.shells()?;
    if shells.can_wait() {
        let baseline = guest.baseline().await?;
        state.shopts.clone_from(&baseline.shopts);
        state.options.clone_from(&baseline.options);
        if let Some(limit) = spec.login_timeout_ms {
            match login(guest, &state, Duration::from_millis(limit)).await {
                Ok((captured, tree)) => {
                    state.umask = spec.umask.unwrap_or(captured.umask);
                    state.adopt_login(captured);
                    login_tree = tree;
                }
                Err(why) => notes.push(Note::LoginFailed { why }),
            }
            // What the caller sets on purpose wins over profile files.
            state.set_environment(&pairs(&spec.extra_env));
        }
    } else {
        notes.push(Note::NoBash {
            shell: shells.program.path.clone(),
        });
    }
    let millis = |value: Option<u64>, default| value.map_or(default, Duration::from_millis);
    Ok(Session {
        key: key.to_owned(),
        created: Instant::now(),
        idle_limit: millis(spec.idle_ms, DEFAULT_IDLE),
        ttl: millis(spec.ttl_ms, DEFAULT_TTL),
        inner: Mutex::new(Inner {
            state: Arc::new(state),
            waiting: None,
            used: Instant::now(),
            running: 0,
            back_to_back: false,
            notes,
            login_tree,
            ended: false,
        }),
    })
}

fn pairs(list: &[(RawBytes, RawBytes)]) -> Vec<(Vec<u8>, Vec<u8>)> {
    list.iter()
        .map(|(n, v)| (n.0.clone(), v.0.clone()))
        .collect()
}

/// Builds the state a session has before any shell ran.
pub(crate) fn initial_state(
    guest: &Guest,
    spec: &SessionSpec,
    notes: &mut Vec<Note>,
) -> Result<ShellState, Failure> {
    let mut state = ShellState {
        umask: spec.umask.unwrap_or_else(own_umask),
        ..ShellState::default()
    };
    let mut environment = match &spec.env {
        Some(environment) => pairs(environment),
        None => own_environment(),
    };
    environment.retain(|(name, _)| !spec.env_remove.iter().any(|gone| gone.0 == *name));
    state.set_environment(&environment);
    state.set_environment(&pairs(&spec.extra_env));
    let wanted = match &spec.cwd {
        Some(cwd) => cwd.0.clone(),
        None => match guest.home() {
            Some(home) => home.to_vec(),
            None => own_home(&state),
        },
    };
    if !wanted.starts_with(b"/") {
        return Err(Failure::new(
            FailureKind::Workdir,
            format!(
                "a session's first directory must be absolute, not `{}`",
                String::from_utf8_lossy(&wanted)
            ),
        ));
    }
    state.cwd = existing_directory(&wanted, notes);
    Ok(state)
}

/// Returns the session's home, or the root where none is known.
fn own_home(state: &ShellState) -> Vec<u8> {
    let home = state.text(b"HOME").filter(|home| home.starts_with(b"/"));
    home.unwrap_or(b"/").to_vec()
}

/// Returns the directory, or the nearest one above it that exists, with a note.
pub(crate) fn existing_directory(wanted: &[u8], notes: &mut Vec<Note>) -> Vec<u8> {
    if directory_id(wanted).is_some() {
        return wanted.to_vec();
    }
    let mut used = wanted;
    while directory_id(used).is_none() && used != b"/" {
        let end = used.iter().rposition(|b| *b == b'/').unwrap_or(0);
        used = used
            .get(..end)
            .filter(|rest| !rest.is_empty())
            .unwrap_or(b"/");
    }
    notes.push(Note::DirectoryGone {
        gone: RawBytes(wanted.to_vec()),
        used: RawBytes(used.to_vec()),
    });
    used.to_vec()
}

/// Returns the place's own environment. What configures us is no part of it, wherever the
/// launcher's environment comes through.
fn own_environment() -> Vec<(Vec<u8>, Vec<u8>)> {
    std::env::vars_os()
        .map(|(n, v)| (n.into_encoded_bytes(), v.into_encoded_bytes()))
        .filter(|(name, _)| !name.starts_with(b"EXOSHELL_"))
        .collect()
}

fn own_umask() -> u32 {
    // There is no call that only looks.
    let mask = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o022));
    let _ = rustix::process::umask(mask);
    mask.as_raw_mode()
}

/// Captures what a login shell's profile files make of an environment.
async fn login(
    guest: &Guest,
    state: &ShellState,
    limit: Duration,
) -> Result<(ShellState, Option<Tree>), String> {
    let instead = "commands start from the caller's environment instead";
    let shells = guest.shells().map_err(|failure| failure.message)?;
    let start = Start {
        environment: state.environment(),
        state: Arc::new(state.clone()),
        replay: Vec::new(),
    };
    let (tree, pipes) = shells
        .start_login(guest.spawner(), &start)
        .map_err(|error| format!("the login shell could not be started ({error}); {instead}"))?;
    // Nobody reads what profile files print; closed pipes must not stop them either.
    let drains = crate::output::discard(&pipes);
    let exit = tokio::time::timeout(limit, tree.exited()).await;
    drop(drains);
    let Ok(exit) = exit else {
        tree.kill(500).await;
        return Err(format!(
            "the login shell took over {} s; {instead}",
            limit.as_secs_f32()
        ));
    };
    let captured = shells.captured(&pipes.capture).ok_or_else(|| {
        format!("the login shell ended before its state could be read; {instead}")
    })?;
    let keep = exit.is_some_and(|exit| exit.leftovers);
    Ok((captured, keep.then_some(tree)))
}
