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
use crate::volumes;

/// Where the guest is in a container of ours.
pub(crate) const GUEST: &str = "/.exoshell/guest";

/// Where the guest keeps its own things: the first one that can be used. The second is made for
/// users who may not write to the first; none of them is a folder that commands tidy up.
pub(crate) const GUEST_DIRS: &[&str] = &["/.exoshell/run", USER_DIR, "/tmp/.exoshell"];

/// The guest's folder where it does not run as root.
const USER_DIR: &str = "/.exoshell/user/guest";

/// How many processes may live in a container.
const MAX_PROCESSES: u32 = 256;

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

    pub(crate) fn is_root(&self) -> bool {
        runs_as_root(self.settings, self.image)
    }

    /// Tells whether extra arguments choose the user, over everything else.
    pub(crate) fn has_other_user(&self) -> bool {
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
    pub(crate) fn all<const N: usize>(&mut self, words: [&str; N]) {
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

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
