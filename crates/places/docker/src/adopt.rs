//! Working in a container that the user already has.

use std::time::Duration;

use exoshell_place::bundle::{self, BundleError, GuestBinary};
use exoshell_place::{Pipe, PlaceError, Progress, Trouble};

use crate::archive;
use crate::classify;
use crate::client::words;
use crate::engine::{self, Engine};
use crate::names::check_container;
use crate::pipe::{self, Attached, Call, attach};
use crate::place::DockerPlace;
use crate::records::Container;

/// Where the guest may be put, best first: not every folder can be written or allows programs.
const FOLDERS: &[&str] = &[
    "/.exoshell",
    "/var/tmp/.exoshell",
    "/tmp/.exoshell",
    "/dev/shm/.exoshell",
];

/// Where it keeps its own things, in the same order.
const GUEST_DIRS: &[&str] = &[
    "/.exoshell/run",
    "/var/tmp/.exoshell/run",
    "/tmp/.exoshell/run",
    "/dev/shm/.exoshell/run",
];

/// How long looking for the guest may take.
const FIND_LIMIT: Duration = Duration::from_secs(20);

/// How long putting it there may take.
const PUT_LIMIT: Duration = Duration::from_secs(120);

/// What our scripts print before a path.
const MARK: &str = "exoshell-guest-at:";

/// Finds a guest. Arguments: its hash, its name, whether any other will do, the folders.
///
/// Only folders of the same user count, since anybody could have made one in `/tmp`.
const FIND: &str = r#"
hash=$1; name=$2; any=$3; shift 3
fits() {
  [ -f "$1" ] && [ -x "$1" ] || return 1
  command -v sha256sum >/dev/null 2>&1 || return 0
  sum=$(sha256sum <"$1") && [ "${sum%% *}" = "$hash" ]
}
for folder in "$@"; do
  [ -O "$folder" ] && [ ! -L "$folder" ] && fits "$folder/$name" && { echo "exoshell-guest-at:$folder/$name"; exit; }
done
[ "$any" = any ] || exit 1
for folder in "$@"; do
  [ -O "$folder" ] && [ ! -L "$folder" ] || continue
  for guest in "$folder"/guest-*; do [ -x "$guest" ] && { echo "exoshell-guest-at:$guest"; exit; }; done
done
exit 1
"#;

/// Takes a guest from stdin. Arguments: its hash, size and name, the folders.
const PUT: &str = r#"
umask 077
hash=$1; size=$2; name=$3; shift 3
for folder in "$@"; do
  mkdir -p "$folder" 2>/dev/null && [ -O "$folder" ] && [ ! -L "$folder" ] || continue
  try=$folder/.try.$$
  { printf '#!/bin/sh\nexit 0\n' >"$try" && chmod 700 "$try" && "$try"; } 2>/dev/null
  works=$?
  rm -f "$try"
  [ "$works" = 0 ] || continue
  new=$folder/.new.$$
  trap 'rm -f "$new"' EXIT
  cat >"$new" || exit 1
  if command -v sha256sum >/dev/null 2>&1; then
    sum=$(sha256sum <"$new"); sum=${sum%% *}
    [ "$sum" = "$hash" ] || { echo "damaged on its way: $sum" >&2; exit 1; }
  elif command -v wc >/dev/null 2>&1; then
    count=$(wc -c <"$new")
    [ "$((count))" = "$size" ] || { echo "damaged on its way: $count of $size bytes" >&2; exit 1; }
  fi
  chmod 755 "$new" && mv -f "$new" "$folder/$name" && { echo "exoshell-guest-at:$folder/$name"; exit; }
  exit 1
done
echo "no folder can hold a program" >&2
exit 1
"#;

/// Removes what we put there. Arguments: the folders.
const CLEAN: &str = r#"
for folder in "$@"; do [ -O "$folder" ] && [ ! -L "$folder" ] && rm -rf "$folder"; done
"#;

/// Opens a pipe to a guest in the user's container, and puts one there if need be.
pub(crate) async fn open(
    place: &DockerPlace,
    name: &str,
    progress: &Progress,
) -> Result<Pipe, PlaceError> {
    let engine = engine::find(&place.settings).await?;
    let container = running(&engine, name).await?;
    let binary = guest_for(place, &engine, &container).await?;
    let guest = match find(&engine, &container, &binary, false).await? {
        Found::At(path) => path,
        Found::Nothing => {
            progress.step("putting the guest into the container");
            put(&engine, &container, &binary).await?
        }
        Found::NoShell => copy(&engine, &container, &binary).await?,
    };
    let call = Call {
        guest: &guest,
        dirs: GUEST_DIRS,
        existing: false,
    };
    match attach(&engine, &container.id, call).await? {
        Attached::Pipe(pipe) => Ok(*pipe),
        Attached::Stopped => Err(not_running(&engine, name, "has ended")),
        Attached::Without(why) => Err(PlaceError::NoGuest { why }),
    }
}

/// Opens a pipe if a guest runs in the user's container.
pub(crate) async fn open_existing(
    place: &DockerPlace,
    name: &str,
) -> Result<Option<Pipe>, PlaceError> {
    check_container(name)?;
    let engine = engine::find(&place.settings).await?;
    let Some(container) = engine.container(name).await?.filter(Container::is_running) else {
        return Ok(None);
    };
    let binary = match guest_for(place, &engine, &container).await {
        Ok(binary) => binary,
        Err(PlaceError::NoGuest { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let guest = match find(&engine, &container, &binary, true).await? {
        Found::At(path) => path,
        Found::Nothing => return Ok(None),
        Found::NoShell => format!("/.exoshell/{}", file_name(&binary)),
    };
    let call = Call {
        guest: &guest,
        dirs: GUEST_DIRS,
        existing: true,
    };
    match attach(&engine, &container.id, call).await? {
        Attached::Pipe(pipe) => Ok(Some(*pipe)),
        Attached::Stopped | Attached::Without(_) => Ok(None),
    }
}

/// Takes back what we put into the user's container, unless a guest still runs there.
pub(crate) async fn leave(place: &DockerPlace, name: &str) -> Result<(), PlaceError> {
    if open_existing(place, name).await?.is_some() {
        return Ok(());
    }
    let engine = engine::find(&place.settings).await?;
    let Some(container) = engine.container(name).await?.filter(Container::is_running) else {
        return Ok(());
    };
    let mut script = words(["sh", "-c", CLEAN, "sh"]);
    script.extend(FOLDERS.iter().map(|folder| (*folder).to_owned()));
    // A container without a shell keeps a file of a few megabytes.
    let _ = pipe::run(&engine, &container.id, &script, &[], FIND_LIMIT).await;
    Ok(())
}

async fn running(engine: &Engine, name: &str) -> Result<Container, PlaceError> {
    check_container(name)?;
    let Some(container) = engine.container(name).await? else {
        return Err(PlaceError::backend(
            Trouble::NoContainer,
            format!("there is no container `{name}`"),
            format!("`{} ps` lists those that can be used", engine.name()),
        ));
    };
    if container.is_running() {
        Ok(container)
    } else {
        Err(not_running(
            engine,
            name,
            &format!("is {}", container.state),
        ))
    }
}

fn not_running(engine: &Engine, name: &str, state: &str) -> PlaceError {
    PlaceError::backend(
        Trouble::NoContainer,
        format!("the container `{name}` {state}"),
        format!(
            "start it with `{} start {name}`; a container that is not ours is never started by us",
            engine.name()
        ),
    )
}

/// Chooses the guest by the platform of the container's image, or of the engine.
async fn guest_for(
    place: &DockerPlace,
    engine: &Engine,
    container: &Container,
) -> Result<GuestBinary, PlaceError> {
    let image = match container.image_id.as_str() {
        "" => None,
        id => engine.image(id).await?,
    };
    let (os, arch) = match &image {
        Some(image) if !image.os.is_empty() && !image.arch.is_empty() => (&image.os, &image.arch),
        _ => (&engine.os, &engine.arch),
    };
    match bundle::lookup(os, arch, place.settings.guest_dir.as_deref()) {
        Err(error @ (BundleError::Missing { .. } | BundleError::BadPlatform { .. })) => {
            Err(PlaceError::NoGuest {
                why: error.to_string(),
            })
        }
        other => Ok(other?),
    }
}

/// Names the guest's file after its content.
fn file_name(binary: &GuestBinary) -> String {
    format!("guest-{}", binary.folder_name())
}

/// What a look into the container brought.
enum Found {
    At(String),
    Nothing,
    NoShell,
}

async fn find(
    engine: &Engine,
    container: &Container,
    binary: &GuestBinary,
    any: bool,
) -> Result<Found, PlaceError> {
    let choice = if any { "any" } else { "exact" };
    let mut script = words([
        "sh",
        "-c",
        FIND,
        "sh",
        &binary.sha256,
        &file_name(binary),
        choice,
    ]);
    script.extend(FOLDERS.iter().map(|folder| (*folder).to_owned()));
    let printed = match pipe::run(engine, &container.id, &script, &[], FIND_LIMIT).await {
        Ok(printed) => printed,
        Err(error) if no_shell(&error.to_string()) => return Ok(Found::NoShell),
        Err(error) => return Err(error),
    };
    if let Some(path) = marked(&printed.stdout) {
        return Ok(Found::At(path));
    }
    if no_shell(&printed.stdout) || no_shell(&printed.stderr) {
        return Ok(Found::NoShell);
    }
    Ok(Found::Nothing)
}

/// Sends the guest through a shell's stdin.
async fn put(
    engine: &Engine,
    container: &Container,
    binary: &GuestBinary,
) -> Result<String, PlaceError> {
    let size = binary.size.to_string();
    let name = file_name(binary);
    let mut script = words(["sh", "-c", PUT, "sh", &binary.sha256, &size, &name]);
    script.extend(FOLDERS.iter().map(|folder| (*folder).to_owned()));
    let program = binary.bytes()?;
    let printed = pipe::run(engine, &container.id, &script, &program, PUT_LIMIT).await?;
    if let Some(path) = marked(&printed.stdout) {
        return Ok(path);
    }
    let why = format!("{}\n{}", printed.stderr, printed.stdout);
    let what = "put the guest into the container";
    let error = classify::failure(engine.name(), what, &why);
    if error.trouble() == Some(Trouble::DiskFull) {
        return Err(error);
    }
    if why.contains("no folder") {
        // The engine can write where a user may not.
        return copy(engine, container, binary).await;
    }
    Err(error)
}

/// Lets the engine put the guest there: for containers without a shell, or without a folder that
/// their user may write.
async fn copy(
    engine: &Engine,
    container: &Container,
    binary: &GuestBinary,
) -> Result<String, PlaceError> {
    let name = file_name(binary);
    let path = format!("/.exoshell/{name}");
    let archive = archive::pack(&name, &binary.bytes()?);
    let target = format!("{}:/", container.id);
    let what = "copy the guest into the container";
    let answer = engine
        .client
        .feed(what, &words(["cp", "-", &target]), archive, PUT_LIMIT)
        .await?;
    let why = if answer.ok {
        let version = words([&path, "--version"]);
        match pipe::run(engine, &container.id, &version, &[], FIND_LIMIT).await {
            Ok(printed) if printed.stdout.contains("exoshell-guest") => return Ok(path),
            Ok(printed) => format!("{} {}", printed.stdout, printed.stderr),
            Err(error) => error.to_string(),
        }
    } else {
        answer.complaint().to_owned()
    };
    let error = classify::failure(engine.name(), what, &why);
    match error.trouble() {
        Some(Trouble::DiskFull) => Err(error),
        _ => Err(PlaceError::NoGuest {
            why: classify::quote(&why),
        }),
    }
}

/// Returns the path that a script printed.
fn marked(stdout: &str) -> Option<String> {
    stdout
        .lines()
        .find_map(|line| line.trim().strip_prefix(MARK))
        .filter(|path| path.starts_with('/'))
        .map(str::to_owned)
}

/// Tells whether an engine says that there is no `sh`.
fn no_shell(text: &str) -> bool {
    text.contains("\"sh\"") && (text.contains("not found") || text.contains("no such file"))
}

#[cfg(test)]
#[path = "adopt_tests.rs"]
mod tests;
