//! What is mounted in a container, and where.

use std::path::Path;

use exoshell_place::{PlaceError, Trouble};

use crate::engine::Flavour;
use crate::plan::{GUEST, Main, Plan, Written};
use crate::settings::HostUser;
use crate::volumes::{self, Volume};

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

impl Plan<'_> {
    /// Adds every mount; tells whether a folder of the user's is at `/workspace`.
    pub(crate) fn mount(&self, out: &mut Written) -> Result<bool, PlaceError> {
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
}

/// Tells whether a path is a folder or lies below it.
fn lies_in(path: &str, folder: &str) -> bool {
    let path = volumes::normal(path);
    path == folder || path.starts_with(&format!("{folder}/"))
}
