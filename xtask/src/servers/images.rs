//! The images of the tests, made from Debian packages: nothing is pulled from anywhere.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::docker::Docker;
use super::layout::{Layout, key};
use super::podman::Podman;
use super::program::{output, output_with_input, remove_folder, succeeds};
use super::registry::Registry;
use crate::Result;

/// To be raised when the code that makes images changes.
const VERSION: &str = "1";

/// What the image `debian` has beside Debian's essential packages.
const PACKAGES: &str = "procps,python3-minimal,less,vim-tiny";

/// Images that are others with a change; the name, and the file that describes it.
const DERIVED: [(&str, &str); 3] = [
    (
        "exoshell-test/slim",
        "FROM exoshell-test/debian\n\
         RUN rm /usr/bin/ps /usr/bin/timeout /usr/bin/top /usr/bin/pgrep /usr/bin/pkill\n",
    ),
    (
        "exoshell-test/user",
        "FROM exoshell-test/debian\n\
         RUN echo 'worker:x:1234:1234::/home/worker:/bin/bash' >>/etc/passwd && \
         echo 'worker:x:1234:' >>/etc/group && \
         mkdir /home/worker && chown 1234:1234 /home/worker\n\
         USER worker\nWORKDIR /home/worker\n",
    ),
    (
        "exoshell-test/entrypoint",
        "FROM exoshell-test/debian\n\
         ENTRYPOINT [\"/bin/echo\", \"the entrypoint ran with\"]\nCMD [\"nothing\"]\n",
    ),
];

const DEBIAN: &str = "exoshell-test/debian";
const BUSYBOX: &str = "exoshell-test/busybox";

/// The image in the registry, and how many layers of how many bytes it has.
const LAYERED: &str = "exoshell-test/layers";
const LAYERS: u64 = 6;
const LAYER_BYTES: usize = 4 << 20;

/// The label that tells which recipe an image was made by.
const LABEL: &str = "exoshell.test.recipe";

/// All images of one state of this file.
#[derive(Debug)]
pub(super) struct Images {
    folder: PathBuf,
    recipe: String,
}

impl Images {
    pub(super) fn new(layout: &Layout) -> Self {
        let mut texts = vec![VERSION, PACKAGES];
        texts.extend(DERIVED.iter().flat_map(|(name, text)| [*name, *text]));
        Self {
            folder: layout.root.join("images"),
            recipe: format!("{:016x}", key(&texts)),
        }
    }

    /// Returns the file that has all images.
    fn archive(&self) -> PathBuf {
        self.folder.join(format!("{}.tar", self.recipe))
    }

    fn names() -> impl Iterator<Item = &'static str> {
        [DEBIAN, BUSYBOX]
            .into_iter()
            .chain(DERIVED.iter().map(|(name, _)| *name))
    }

    /// Tells whether an engine has all images as they are described now.
    fn are_in(&self, client: impl Fn() -> Command) -> bool {
        let format = format!("{{{{index .Config.Labels \"{LABEL}\"}}}}");
        Self::names().all(|name| {
            let found = output(client().args(["image", "inspect", "--format", &format, name]));
            found.is_ok_and(|recipe| recipe == self.recipe)
        })
    }

    /// Gives Docker the images, making them if they were never made.
    pub(super) fn give_to_docker(&self, docker: &Docker<'_>) -> Result<()> {
        if self.archive().exists() {
            if !self.are_in(|| docker.client()) {
                output(
                    docker
                        .client()
                        .args(["load", "--input"])
                        .arg(self.archive()),
                )?;
            }
            return prune(docker.client());
        }
        remove_folder(&self.folder)?;
        fs::create_dir_all(&self.folder)?;
        self.import(docker, DEBIAN, &self.debian_root()?, "CMD [\"bash\"]")?;
        self.import(docker, BUSYBOX, &self.busybox_root()?, "CMD [\"sh\"]")?;
        for (name, text) in DERIVED {
            let folder = self.folder.join("build");
            fs::create_dir_all(&folder)?;
            fs::write(folder.join("Dockerfile"), text)?;
            build(docker, name, &folder)?;
        }
        let partial = self.folder.join("partial");
        let mut save = docker.client();
        save.args(["save", "--output"]).arg(&partial);
        output(save.args(Self::names()))?;
        fs::rename(partial, self.archive())?;
        prune(docker.client())
    }

    /// Gives Podman the images that Docker has.
    pub(super) fn give_to_podman(&self, podman: &Podman) -> Result<()> {
        if self.are_in(|| podman.client()) {
            return Ok(());
        }
        // As its input, because the user may not be able to enter the folder.
        output_with_input(podman.client().args(["load", "--quiet"]), &self.archive())?;
        prune(podman.client())
    }

    /// Puts an image of several layers into the registry and forgets it elsewhere.
    pub(super) fn give_to_registry(
        docker: &Docker<'_>,
        registry: &Registry<'_>,
        layout: &Layout,
    ) -> Result<()> {
        if registry.has(&format!("{LAYERED}/manifests/latest")) {
            return Ok(());
        }
        let folder = layout.root.join("images/layers");
        fs::create_dir_all(&folder)?;
        let mut text = "FROM scratch\n".to_owned();
        for layer in 0..LAYERS {
            let name = format!("layer{layer}");
            fs::write(folder.join(&name), noise(layer + 1, LAYER_BYTES))?;
            for word in ["COPY ", &name, " /\n"] {
                text.push_str(word);
            }
        }
        text.push_str("CMD [\"/none\"]\n");
        fs::write(folder.join("Dockerfile"), text)?;
        let name = format!("{}/{LAYERED}", registry.address()?);
        build(docker, &name, &folder)?;
        output(docker.client().args(["push", "--quiet", &name]))?;
        output(docker.client().args(["image", "rm", &name]))?;
        remove_folder(&folder)
    }

    fn import(&self, docker: &Docker<'_>, name: &str, root: &Path, change: &str) -> Result<()> {
        let label = format!("LABEL {LABEL}={}", self.recipe);
        let mut command = docker.client();
        command.args(["import", "--change", change, "--change", &label]);
        output(command.arg(root).arg(name))?;
        fs::remove_file(root)?;
        Ok(())
    }

    /// Makes a small Debian of the release that this machine has.
    fn debian_root(&self) -> Result<PathBuf> {
        let root = self.folder.join("debian.tar");
        let mut command = Command::new("mmdebstrap");
        command
            .args([
                "--quiet",
                "--mode=root",
                "--variant=essential",
                "--format=tar",
            ])
            .arg(format!("--include={PACKAGES}"));
        for folder in ["doc", "man", "locale", "info"] {
            command.arg(format!("--dpkgopt=path-exclude=/usr/share/{folder}/*"));
        }
        command.args([&release()?]).arg(&root).args(sources());
        output(&mut command)?;
        Ok(root)
    }

    /// Makes a root folder with a busybox and nothing else: no bash, no coreutils.
    fn busybox_root(&self) -> Result<PathBuf> {
        let folder = self.folder.join("busybox");
        remove_folder(&folder)?;
        for name in [
            "bin", "dev", "etc", "proc", "root", "sys", "tmp", "var/tmp", "run",
        ] {
            fs::create_dir_all(folder.join(name))?;
        }
        fs::write(folder.join("etc/passwd"), "root:x:0:0:root:/root:/bin/sh\n")?;
        fs::write(folder.join("etc/group"), "root:x:0:\n")?;
        let busybox = folder.join("bin/busybox");
        fs::copy("/bin/busybox", &busybox)?;
        for applet in output(Command::new(&busybox).arg("--list"))?.lines() {
            if applet != "busybox" {
                symlink("busybox", folder.join("bin").join(applet))?;
            }
        }
        succeeds(Command::new("chmod").arg("1777").arg(folder.join("tmp")));
        let root = self.folder.join("busybox.tar");
        output(
            Command::new("tar")
                .args(["--create", "--owner=0", "--group=0", "--file"])
                .arg(&root)
                .arg("--directory")
                .arg(&folder)
                .arg("."),
        )?;
        remove_folder(&folder)?;
        Ok(root)
    }
}

fn build(docker: &Docker<'_>, name: &str, folder: &Path) -> Result<()> {
    let mut command = docker.client();
    command.args(["build", "--quiet", "--network", "none", "--tag", name]);
    output(command.arg(folder)).map(drop)
}

/// Removes what images of the same names were before.
fn prune(mut client: Command) -> Result<()> {
    output(client.args(["image", "prune", "--force"])).map(drop)
}

/// Returns the name of this machine's release.
fn release() -> Result<String> {
    let text = fs::read_to_string("/etc/os-release")?;
    text.lines()
        .find_map(|line| line.strip_prefix("VERSION_CODENAME="))
        .map(|name| name.trim_matches('"').to_owned())
        .ok_or_else(|| "no VERSION_CODENAME in /etc/os-release".into())
}

/// Returns the files that say where this machine gets its packages.
fn sources() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir("/etc/apt/sources.list.d")
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .chain([PathBuf::from("/etc/apt/sources.list")])
        .filter(|path| {
            let kind = path.extension().unwrap_or_default();
            kind == "list" || kind == "sources"
        })
        .filter(|path| fs::metadata(path).is_ok_and(|file| file.len() > 0))
        .collect();
    files.sort();
    files
}

/// Returns bytes that cannot be compressed and are always the same (xorshift).
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let words = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    });
    words.flatten().take(length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_is_the_same_every_time_and_differs_between_layers() {
        assert_eq!(noise(1, 100), noise(1, 100));
        assert_ne!(noise(1, 100), noise(2, 100));
        assert_eq!(noise(1, 13).len(), 13);
    }

    #[test]
    fn every_image_has_one_name() {
        let mut names: Vec<&str> = Images::names().collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 2 + DERIVED.len());
    }
}
