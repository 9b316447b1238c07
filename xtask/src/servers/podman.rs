//! Podman with storage of our own: as root, and as a throw-away user.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::layout::Layout;
use super::network;
use super::program::{end, naming, output, remove_folder, succeeds, unmount_below};
use crate::Result;

/// One set of Podman's configuration files.
#[derive(Debug, Clone)]
pub(super) struct Podman {
    /// Where the configuration files are.
    settings: PathBuf,
    graph: PathBuf,
    run: PathBuf,
    /// Who it runs as, when not as root.
    user: Option<User>,
    tag: String,
    number: u8,
}

#[derive(Debug, Clone)]
struct User {
    name: String,
    home: PathBuf,
}

impl Podman {
    /// Returns root's Podman.
    pub(super) fn rootful(layout: &Layout) -> Self {
        Self {
            settings: layout.root.join("podman"),
            graph: layout.root.join("podman/storage"),
            run: layout.run.join("podman"),
            user: None,
            tag: layout.tag.clone(),
            number: layout.number(),
        }
    }

    /// Returns the Podman of a user without any rights. Such a user cannot enter the folders that
    /// the workspace may be in, so all of it is in the folder for sockets.
    pub(super) fn rootless(layout: &Layout) -> Self {
        let home = layout.run.join("user");
        Self {
            settings: home.clone(),
            graph: home.join("storage"),
            run: home.join("run"),
            user: Some(User {
                name: format!("exoshell-{}", layout.tag),
                home,
            }),
            tag: layout.tag.clone(),
            number: layout.number(),
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.settings.join(name)
    }

    /// Returns the variables that make a `podman` this one.
    pub(super) fn variables(&self) -> Vec<(&'static str, PathBuf)> {
        vec![
            ("CONTAINERS_CONF", self.file("containers.conf")),
            ("CONTAINERS_STORAGE_CONF", self.file("storage.conf")),
            ("CONTAINERS_REGISTRIES_CONF", self.file("registries.conf")),
        ]
    }

    /// Returns the name of its user, the home folder and the folder for sockets.
    pub(super) fn user(&self) -> Option<(&str, &Path, &Path)> {
        let user = self.user.as_ref()?;
        Some((&user.name, &user.home, &self.run))
    }

    /// Describes a call of the client.
    pub(super) fn client(&self) -> Command {
        let Some(user) = &self.user else {
            let mut command = Command::new("podman");
            command.envs(self.variables());
            return command;
        };
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid", &user.name, "--regid", &user.name])
            .args(["--init-groups", "--inh-caps=-all", "podman"])
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")
            .env("HOME", &user.home)
            .env("XDG_RUNTIME_DIR", &self.run)
            .envs(self.variables())
            .current_dir(&user.home);
        command
    }

    /// Writes the configuration, makes the user and tries it.
    pub(super) fn prepare(&self) -> Result<()> {
        let mut folders = vec![self.settings.as_path(), &self.graph, &self.run];
        if let Some(user) = &self.user {
            add_user(user)?;
            folders.insert(0, &user.home);
        }
        for folder in folders {
            fs::create_dir_all(folder)?;
            fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
            self.give(folder)?;
        }
        for (name, text) in [
            ("containers.conf", self.containers_conf()),
            ("storage.conf", self.storage_conf()),
            ("registries.conf", REGISTRIES_CONF.to_owned()),
        ] {
            fs::write(self.file(name), text)?;
            self.give(&self.file(name))?;
        }
        if self.user.is_none() {
            self.write_network()?;
        }
        output(
            self.client()
                .args(["info", "--format", "{{.Store.GraphDriverName}}"]),
        )
        .map(drop)
    }

    fn give(&self, path: &Path) -> Result<()> {
        if let Some(user) = &self.user {
            let id = output(Command::new("id").args(["-u", &user.name]))?.parse()?;
            chown(path, Some(id), Some(id))?;
        }
        Ok(())
    }

    fn containers_conf(&self) -> String {
        // Limits that every machine can give; cgroupfs and files, because there may be no systemd.
        let mut text = "[containers]\n\
             default_ulimits = [\"nofile=1024:20000\", \"nproc=1024:1024\"]\n"
            .to_owned();
        if self.user.is_some() {
            // A user has no right to the device of slirp4netns everywhere.
            text = text.replace("20000", "1024");
            text.push_str("netns = \"none\"\n");
        }
        let _ = write!(
            text,
            "\n[engine]\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"file\"\n\
             runtime = \"runc\"\ntmp_dir = \"{}\"\n\
             \n[network]\nnetwork_backend = \"netavark\"\nnetwork_config_dir = \"{}\"\n",
            self.run.join("libpod").display(),
            self.file("networks").display(),
        );
        text
    }

    fn storage_conf(&self) -> String {
        format!(
            "[storage]\ndriver = \"overlay\"\ngraphroot = \"{}\"\nrunroot = \"{}\"\n",
            self.graph.display(),
            self.run.join("containers").display()
        )
    }

    fn bridge(&self) -> String {
        format!("exop{}", self.tag)
    }

    /// Describes the default network: a bridge of our own, not the one all Podmans share.
    fn write_network(&self) -> Result<()> {
        let folder = self.file("networks");
        fs::create_dir_all(&folder)?;
        let file = folder.join("podman.json");
        if file.exists() {
            return Ok(());
        }
        let subnet = network::free_subnet(214, self.number)?;
        let network = serde_json::json!({
            "name": "podman",
            "id": format!("{:0>64}", self.tag),
            "driver": "bridge",
            "network_interface": self.bridge(),
            "created": "2024-01-01T00:00:00Z",
            "subnets": [{ "subnet": format!("{subnet}.0/24"), "gateway": format!("{subnet}.1") }],
            "ipv6_enabled": false,
            "internal": false,
            "dns_enabled": false,
            "ipam_options": { "driver": "host-local" },
        });
        fs::write(file, network.to_string())?;
        Ok(())
    }

    /// Removes all containers, and the user with everything it had; root's images stay.
    pub(super) fn stop(&self) -> Result<()> {
        if self.file("containers.conf").exists() {
            // A Podman that cannot even do this has no containers.
            succeeds(
                self.client()
                    .args(["rm", "--all", "--force", "--time", "0"]),
            );
        }
        if let Some(user) = &self.user {
            // The first one holds the user's namespace open.
            let mut pids = of_user(user);
            pids.extend(naming(&user.home));
            end_all(&pids)?;
            unmount_below(&user.home);
            remove_folder(&user.home)?;
            remove_user(user);
            return Ok(());
        }
        end(&naming(&self.run), &self.run, Duration::from_secs(5))?;
        unmount_below(&self.graph);
        unmount_below(&self.run);
        network::remove_bridge(&self.bridge());
        Ok(())
    }
}

/// Short names stay what they are, and the registry on this machine speaks plain HTTP.
const REGISTRIES_CONF: &str = "\
unqualified-search-registries = [\"localhost\"]
short-name-mode = \"permissive\"

[[registry]]
location = \"127.0.0.1\"
insecure = true
";

fn add_user(user: &User) -> Result<()> {
    if succeeds(Command::new("id").arg(&user.name)) {
        return Ok(());
    }
    output(
        Command::new("useradd")
            .args([
                "--no-create-home",
                "--user-group",
                "--shell",
                "/bin/sh",
                "--home-dir",
            ])
            .arg(&user.home)
            .arg(&user.name),
    )
    .map(drop)
}

fn remove_user(user: &User) {
    if succeeds(Command::new("id").arg(&user.name)) {
        succeeds(Command::new("userdel").args(["--force", &user.name]));
    }
}

fn of_user(user: &User) -> Vec<u32> {
    let Ok(list) = output(Command::new("pgrep").args(["-u", &user.name])) else {
        return Vec::new();
    };
    list.lines().filter_map(|line| line.parse().ok()).collect()
}

/// Ends processes of a user that is ours alone.
fn end_all(pids: &[u32]) -> Result<()> {
    for pid in pids {
        succeeds(Command::new("kill").args(["-KILL", &pid.to_string()]));
    }
    let gone = super::program::wait_until(Duration::from_secs(5), || {
        pids.iter().all(|pid| {
            fs::read(format!("/proc/{pid}/cmdline")).map_or(true, |line| line.is_empty())
        })
    });
    if gone {
        Ok(())
    } else {
        Err(format!("processes of the throw-away user do not end: {pids:?}").into())
    }
}
