//! The words that make a container.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use exoshell_place::{PlaceError, Trouble};

use crate::classify::Limit;
use crate::engine::Flavour;
use crate::limits::Abilities;
use crate::names::{check_image, identity_in, is_root, user_in};
use crate::records::{Image, label};
use crate::settings::{DockerSettings, HostUser};
use crate::volumes::{self, Volume};

/// Where the guest is in a container of ours.
pub(crate) const GUEST: &str = "/.exoshell/guest";

/// Where the guest keeps its own things: the first one that can be used. The second is made for
/// users who may not write to the first; none of them is a folder that commands tidy up.
pub(crate) const GUEST_DIRS: &[&str] = &["/.exoshell/run", USER_DIR, "/tmp/.exoshell"];

/// The guest's folder where it does not run as root.
const USER_DIR: &str = "/.exoshell/user/guest";

/// How many processes may live in a container.
const MAX_PROCESSES: u32 = 256;

/// What is in memory in every container, and how large it may become.
const TEMPORARY: &[(&str, &str)] = &[
    ("/tmp", "rw,exec,nosuid,nodev,size=512m,mode=1777"),
    ("/var/tmp", "rw,noexec,nosuid,nodev,size=256m,mode=1777"),
    ("/run", "rw,noexec,nosuid,nodev,size=64m,mode=1777"),
];

/// What is in memory where nothing is kept.
const SCRATCH: &[(&str, &str)] = &[
    ("/workspace", "rw,exec,nosuid,nodev,size=10g,mode=1777"),
    ("/home", "rw,exec,nosuid,nodev,size=1g,mode=1777"),
    ("/root", "rw,exec,nosuid,nodev,size=1g,mode=1777"),
];

/// Keeps a container alive where no guest can, without a program of ours.
const KEEPER: &str = "trap 'exit 0' TERM; while :; do sleep 3600 & wait $!; done";

/// The container's main process, and how it gets there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Main {
    /// The guest, seen through from this file of the host.
    Mounted(PathBuf),
    /// The guest, copied in before the start.
    Copied,
    /// No guest can run there: something that only waits.
    Keeper,
}

/// All that decides what a container is like.
#[derive(Debug, Clone)]
pub(crate) struct Plan<'a> {
    pub(crate) settings: &'a DockerSettings,
    pub(crate) name: &'a str,
    pub(crate) labels: &'a [(String, String)],
    pub(crate) image: &'a Image,
    pub(crate) abilities: &'a Abilities,
    pub(crate) flavour: Flavour,
    pub(crate) main: &'a Main,
    /// Limits that the engine refused when it was tried.
    pub(crate) refused: &'a BTreeSet<Limit>,
    /// The user's home folder, for `~` in volumes.
    pub(crate) user_home: Option<&'a Path>,
    /// The folder that relative paths would be meant from.
    pub(crate) directory: Option<&'a Path>,
}

/// The words for the client, without `run` or `create` before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) arguments: Vec<String>,
    /// Limits that are not enforced.
    pub(crate) unenforced: Vec<&'static str>,
    /// What was left out, and why.
    pub(crate) notes: Vec<String>,
    /// Folders in memory that must be open to everybody before the start.
    pub(crate) open: Vec<&'static str>,
}

impl Plan<'_> {
    /// Writes the plan down.
    pub(crate) fn words(&self) -> Result<Written, PlaceError> {
        self.check()?;
        let mut out = Written {
            arguments: Vec::new(),
            unenforced: Vec::new(),
            notes: Vec::new(),
            open: Vec::new(),
        };
        // Our own process is the main one, so the image's ways to check and stop its own are out.
        out.all([
            "--pull",
            "never",
            "--no-healthcheck",
            "--stop-signal",
            "SIGTERM",
        ]);
        out.all(["--name", self.name]);
        self.harden(&mut out);
        self.limit(&mut out);
        for (name, value) in self.labels {
            out.all(["--label", &format!("{name}={value}")]);
        }
        let unenforced = out.unenforced.join(".");
        out.all(["--label", &format!("{}={unenforced}", label::UNENFORCED)]);
        if !self.settings.network {
            out.all(["--network", "none"]);
        }
        if !self.settings.persist_across_processes {
            out.all(["--rm"]);
        }
        self.identify(&mut out);
        let workspace = self.mount(&mut out)?;
        let start = self.start_dir(workspace);
        out.all(["--workdir", &start]);
        self.run(&start, &mut out);
        Ok(out)
    }

    /// Refuses what would be read as something else than it is.
    fn check(&self) -> Result<(), PlaceError> {
        let wrong = |message: String| {
            let hint = "correct the settings of the docker backend";
            Err(PlaceError::backend(Trouble::BadSetting, message, hint))
        };
        check_image(&self.settings.image)?;
        if let Some(word) = identity_in(&self.settings.extra_args) {
            return wrong(format!(
                "the extra argument `{}` is refused: a container of ours is known by its name and \
                 by the labels that begin with `exoshell`",
                word.escape_debug()
            ));
        }
        if !self.settings.cpu.is_finite() || self.settings.cpu < 0.0 {
            return wrong(format!(
                "`{}` is no number of processors",
                self.settings.cpu
            ));
        }
        Ok(())
    }

    fn harden(&self, out: &mut Written) {
        out.all(["--cap-drop", "ALL"]);
        // Docker keeps these from users that are not root, Podman gives them to everybody: such a
        // user could then write any file, in mounted folders too.
        if self.flavour == Flavour::Docker || self.is_root() {
            for capability in ["DAC_OVERRIDE", "CHOWN", "FOWNER"] {
                out.all(["--cap-add", capability]);
            }
            if self.settings.run_as.is_none() {
                out.all(["--cap-add", "SETUID", "--cap-add", "SETGID"]);
            }
        }
        out.all(["--security-opt", "no-new-privileges"]);
    }

    fn limit(&self, out: &mut Written) {
        let settings = self.settings;
        // More processors than there are is no limit, and an error for some engines.
        let enough = self.abilities.processors;
        #[expect(clippy::cast_precision_loss, reason = "no machine has 2^52 processors")]
        let cpu = settings.cpu > 0.0 && enough.is_none_or(|count| settings.cpu < count as f64);
        let wanted = [
            (Limit::Cpu, cpu, "--cpus", settings.cpu.to_string()),
            (
                Limit::Memory,
                settings.memory_mb > 0,
                "--memory",
                format!("{}m", settings.memory_mb),
            ),
            (
                Limit::Disk,
                settings.disk_mb > 0,
                "--storage-opt",
                format!("size={}M", settings.disk_mb),
            ),
            (Limit::Pids, true, "--pids-limit", MAX_PROCESSES.to_string()),
        ];
        for (limit, wanted, flag, value) in wanted {
            if !wanted {
                continue;
            }
            if self.abilities.missing.contains(&limit) || self.refused.contains(&limit) {
                out.unenforced.push(limit.as_str());
            } else {
                out.all([flag, &value]);
            }
        }
    }

    /// Chooses the user inside so that files in mounted folders belong to the user outside.
    fn identify(&self, out: &mut Written) {
        let Some(HostUser { uid, gid }) = self.settings.run_as else {
            return;
        };
        match (self.abilities.rootless, self.flavour) {
            // Root inside is the user outside.
            (true, Flavour::Docker) => out.all(["--user", "0:0"]),
            (true, Flavour::Podman) => {
                out.all(["--userns", "keep-id", "--user", &format!("{uid}:{gid}")]);
            }
            (false, _) => out.all(["--user", &format!("{uid}:{gid}")]),
        }
        // The image knows no home of this user.
        out.all(["--env", "HOME=/root"]);
    }

    /// Adds every mount; tells whether a folder of the user's is at `/workspace`.
    fn mount(&self, out: &mut Written) -> Result<bool, PlaceError> {
        let settings = self.settings;
        let mut taken = volumes::targets_of(&settings.extra_args);
        for entry in &settings.volumes {
            match volumes::read(entry, self.user_home) {
                Ok(volume) if taken.contains(&volume.target) => out.notes.push(format!(
                    "the volume `{entry}` is skipped: something else is mounted at `{}`",
                    volume.target
                )),
                Ok(volume) => {
                    self.mount_volume(&volume, out)?;
                    taken.push(volume.target);
                }
                Err(note) => out.notes.push(note),
            }
        }
        let mut bind = |source: &Path, target: &str, taken: &mut Vec<String>| {
            if !taken.iter().any(|known| known == target) {
                out.all([
                    "--mount",
                    &volumes::bind(&source.display().to_string(), target, false),
                ]);
                taken.push(target.to_owned());
            }
        };
        if let Some(folder) = &settings.mount_cwd {
            bind(folder, "/workspace", &mut taken);
        }
        if let Some(folder) = &settings.persistent {
            bind(&folder.join("workspace"), "/workspace", &mut taken);
            bind(&folder.join("root"), "/root", &mut taken);
        }
        let workspace = taken.iter().any(|target| target == "/workspace");
        self.mount_read_only(out, &mut taken);
        self.mount_memory(out, &mut taken);
        if let Main::Mounted(file) = self.main {
            out.all([
                "--mount",
                &volumes::bind(&file.display().to_string(), GUEST, true),
            ]);
        }
        Ok(workspace)
    }

    /// Adds a volume of the user's so that nothing is made on the host for a source that is
    /// missing there.
    fn mount_volume(&self, volume: &Volume, out: &mut Written) -> Result<(), PlaceError> {
        // Docker makes the missing source of a volume, as root, but not that of a mount. It has to
        // decide itself: its machine can be another one. Podman refuses both.
        if self.flavour == Flavour::Docker && volume.is_path() {
            if let Some(mount) = volume.as_mount() {
                out.all(["--mount", &mount]);
                return Ok(());
            }
            if !Path::new(&volume.source).exists() {
                return Err(PlaceError::backend(
                    Trouble::BadSetting,
                    format!(
                        "the source of the volume `{}` does not exist",
                        volume.as_volume()
                    ),
                    "make that file or folder first, or correct `docker.volumes`",
                ));
            }
        }
        let here = self.directory.map(|here| here.join(&volume.source));
        if !volume.is_path() && here.is_some_and(|here| here.is_dir()) {
            out.notes.push(format!(
                "the volume `{}` is one of the engine's, not the folder of that name here; write \
                 an absolute path to mount the folder",
                volume.source
            ));
        }
        out.all(["--volume", &volume.as_volume()]);
        Ok(())
    }

    fn mount_read_only(&self, out: &mut Written, taken: &mut Vec<String>) {
        for mount in &self.settings.read_only_mounts {
            let target = volumes::normal(&mount.target);
            let source = mount.source.display().to_string();
            let why = if !mount.target.starts_with('/') {
                "its target is not an absolute path"
            } else if taken.contains(&target) {
                "something else is mounted there"
            } else if !mount.source.exists() {
                "it does not exist"
            } else {
                out.all(["--mount", &volumes::bind(&source, &target, true)]);
                taken.push(target);
                continue;
            };
            out.notes.push(format!(
                "the mount of `{source}` at `{}` is skipped: {why}",
                mount.target
            ));
        }
    }

    fn mount_memory(&self, out: &mut Written, taken: &mut Vec<String>) {
        let root = self.is_root();
        let scratch = if self.settings.persistent.is_none() {
            SCRATCH
        } else {
            &[]
        };
        for (target, options) in TEMPORARY.iter().chain(scratch) {
            let is_scratch = scratch.iter().any(|(known, _)| known == target);
            // The image's own working directory, and the home of its user, are what it is for.
            let hides = is_scratch
                && (lies_in(&self.image.workdir, target) || (*target == "/home" && !root));
            if hides || taken.iter().any(|known| known == target) {
                continue;
            }
            let owner = if is_scratch {
                self.owner()
            } else {
                String::new()
            };
            out.all(["--tmpfs", &format!("{target}:{options}{owner}")]);
            taken.push((*target).to_owned());
            if *target == "/workspace" && self.must_open() {
                out.open.push(target);
            }
        }
        if !root {
            let options = "rw,noexec,nosuid,nodev,size=256m,mode=1777";
            out.all(["--tmpfs", &format!("/.exoshell/user:{options}")]);
            if self.must_open() {
                out.open.push("/.exoshell/user");
            }
        }
    }

    /// Returns the options that give a mount in memory to the host's user. Its mode alone is not
    /// enough: some runtimes keep that of a folder in the image.
    fn owner(&self) -> String {
        match self.settings.run_as {
            Some(HostUser { uid, gid }) if !self.abilities.rootless && !self.has_other_user() => {
                format!(",uid={uid},gid={gid}")
            }
            _ => String::new(),
        }
    }

    /// Tells whether what is in memory is closed to the user unless the folder beneath is open:
    /// runtimes give a mount the mode of that folder, and leave one for root when it is missing.
    /// Nobody outside knows the number of such a user.
    fn must_open(&self) -> bool {
        !self.is_root() && self.owner().is_empty()
    }

    fn is_root(&self) -> bool {
        runs_as_root(self.settings, self.image)
    }

    /// Tells whether extra arguments choose the user, over everything else.
    fn has_other_user(&self) -> bool {
        user_in(&self.settings.extra_args).is_some()
    }

    /// Chooses where sessions start.
    fn start_dir(&self, workspace: bool) -> String {
        let image = self.image.workdir.as_str();
        if workspace {
            "/workspace".to_owned()
        } else if image.starts_with('/') && volumes::normal(image) != "/" {
            image.to_owned()
        } else if !self.is_root() && (self.settings.run_as.is_none() || self.has_other_user()) {
            // Such a user may not enter root's home.
            "/workspace".to_owned()
        } else {
            "/root".to_owned()
        }
    }

    fn run(&self, start: &str, out: &mut Written) {
        let program = match self.main {
            Main::Keeper => "/bin/sh",
            Main::Mounted(_) | Main::Copied => GUEST,
        };
        if *self.main == Main::Keeper {
            out.all(["--init"]);
        }
        out.all(["--entrypoint", program]);
        let (bad, good): (Vec<_>, Vec<_>) = (self.settings.extra_args.iter())
            .partition(|word| word.is_empty() || word.contains('\0'));
        if !bad.is_empty() {
            let note = "an extra argument that is empty or contains a NUL is skipped";
            out.notes.push(note.to_owned());
        }
        out.arguments.extend(good.into_iter().cloned());
        out.all([self.settings.image.as_str()]);
        if *self.main == Main::Keeper {
            out.all(["-c", KEEPER]);
            return;
        }
        out.all(["init"]);
        for dir in GUEST_DIRS {
            out.all(["--dir", dir]);
        }
        out.all(["--home", start]);
        if !self.settings.lifetime.is_zero() {
            out.all(["--idle-ms", &self.settings.lifetime.as_millis().to_string()]);
        }
    }
}

impl Written {
    fn all<const N: usize>(&mut self, words: [&str; N]) {
        self.arguments.extend(words.into_iter().map(str::to_owned));
    }
}

/// Tells whether everything runs as root in a container.
pub(crate) fn runs_as_root(settings: &DockerSettings, image: &Image) -> bool {
    match (user_in(&settings.extra_args), settings.run_as) {
        (Some(user), _) => is_root(user),
        (None, Some(user)) => user.uid == 0,
        (None, None) => image.runs_as_root(),
    }
}

/// Tells whether a path is a folder or lies below it.
fn lies_in(path: &str, folder: &str) -> bool {
    let path = volumes::normal(path);
    path == folder || path.starts_with(&format!("{folder}/"))
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
