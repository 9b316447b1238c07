//! Paths: where they lead and what lies there.

use std::sync::LazyLock;

use crate::context::Context;
use crate::finding::Target;
use crate::text::{self, ONE, STAR, UNKNOWN, matches};

/// Directories at the top whose loss breaks the system.
const SYSTEM_TOP: &[&str] = &[
    "bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "sbin", "sys", "usr",
    "var", "System", "Library",
];

/// Directories that hold home directories.
const HOMES: &[&str] = &["home", "Users"];

/// Where the system lives, for single writes and deletes.
const SYSTEM: &[&str] = &[
    "/etc",
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/boot",
    "/root",
    "/var/spool/cron",
    "/proc/sys",
    "/sys",
    "/System",
    "/Library",
    "/private/etc",
    "/efi",
    "/var/db",
    "/var/lib/dpkg",
    "/var/lib/systemd",
    "/proc/sysrq-trigger",
];

/// Settings below a home directory that programs trust, as patterns.
const USER_SETTINGS: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".cshrc",
    ".tcshrc",
    ".login",
    ".pam_environment",
    ".inputrc",
    ".xinitrc",
    ".xprofile",
    ".xsession",
    ".xsessionrc",
    ".ssh",
    ".ssh/*",
    ".aws",
    ".aws/*",
    ".netrc",
    ".gnupg",
    ".gnupg/*",
    ".kube",
    ".kube/*",
    ".gitconfig",
    ".git-credentials",
    ".config/git/*",
    ".npmrc",
    ".yarnrc",
    ".pypirc",
    ".config/pip/*",
    ".pip/*",
    ".docker/config.json",
    ".config/fish/*",
    ".config/systemd/*",
    ".config/autostart/*",
    ".config/gh/*",
    ".config/gcloud/*",
    ".azure/*",
    ".config/environment.d/*",
    "Library/LaunchAgents/*",
    ".pgpass",
    ".my.cnf",
    ".cargo/config",
    ".cargo/config.toml",
    ".cargo/credentials*",
    ".vault-token",
    ".config/sops/*",
    ".password-store/*",
    ".local/share/keyrings/*",
    ".rhosts",
    ".forward",
    ".vimrc",
    ".emacs",
    ".config/nvim/init.*",
    ".gemrc",
    ".terraformrc",
    ".config/containers/*",
    ".oh-my-zsh/*",
];

/// Secrets below a home directory, as patterns.
const USER_SECRETS: &[&str] = &[
    ".ssh/id_*",
    ".ssh/*_rsa",
    ".ssh/*_ed25519",
    ".ssh/*_ecdsa",
    ".ssh/*.pem",
    ".ssh/*.key",
    ".ssh/identity",
    ".aws/credentials",
    ".netrc",
    ".pgpass",
    ".my.cnf",
    ".git-credentials",
    ".docker/config.json",
    ".kube/config",
    ".gnupg/private-keys*",
    ".gnupg/secring*",
    ".npmrc",
    ".pypirc",
    ".config/gh/hosts.yml",
    ".vault-token",
    ".config/gcloud/*credentials*",
    ".config/gcloud/access_tokens.db",
    ".config/gcloud/legacy_credentials/*",
    ".azure/accessTokens.json",
    ".azure/msal_token_cache*",
    ".password-store/*",
    ".local/share/keyrings/*",
    ".cargo/credentials*",
    ".config/hub",
    ".boto",
    ".s3cfg",
    ".config/rclone/rclone.conf",
    ".config/op/*",
    ".mozilla/firefox/*logins.json",
    ".mozilla/firefox/*key4.db",
    ".mozilla/firefox/*cookies*",
    ".config/google-chrome/*Login Data*",
    ".config/google-chrome/*Cookies*",
    ".config/chromium/*Login Data*",
    "Library/Keychains/*",
    "Library/Application Support/Google/Chrome/*Login Data*",
    ".terraform.d/credentials*",
    ".config/sops/age/*",
    ".age/*",
    ".electrum/wallets/*",
    ".bitcoin/wallet.dat",
    ".ethereum/keystore/*",
    ".gem/credentials",
    ".composer/auth.json",
    ".m2/settings-security.xml",
    ".config/solana/id.json",
];

/// Directories below a home directory that hold such secrets.
const SECRET_DIRECTORIES: &[&str] = &[
    ".ssh",
    ".gnupg",
    ".aws",
    ".kube",
    ".password-store",
    ".local/share/keyrings",
    ".azure",
    ".config/gcloud",
    "Library/Keychains",
    ".mozilla",
    ".config/google-chrome",
    ".docker",
];

/// Secrets of the system, as patterns.
const SYSTEM_SECRETS: &[&str] = &[
    "/etc/shadow*",
    "/etc/gshadow*",
    "/etc/master.passwd",
    "/etc/sudoers",
    "/etc/sudoers.d/*",
    "/etc/ssl/private/*",
    "/etc/ssh/ssh_host_*_key",
    "/etc/krb5.keytab",
    "/etc/kubernetes/admin.conf",
    "/etc/kubernetes/pki/*.key",
    "/proc/*/environ",
    "/proc/*/mem",
    "/var/run/secrets/*",
    "/run/secrets/*",
    "/var/lib/docker/*config.v2.json",
    "/etc/letsencrypt/live/*privkey*",
    "/etc/letsencrypt/archive/*privkey*",
    "/var/backups/shadow*",
    "/etc/NetworkManager/system-connections/*",
    "/etc/wireguard/*",
    "/etc/openvpn/*.key",
    "/etc/rancher/k3s/k3s.yaml",
    "/var/db/shadow/*",
];

/// What a recursive delete of a path would mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Loss {
    Root,
    Home,
    System,
    /// Something below, in this class of places.
    Some(Target),
}

/// Paths as one command sees them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Paths<'a> {
    pub(crate) context: &'a Context,
    pub(crate) home: &'a str,
    pub(crate) cwd: Option<&'a str>,
}

/// A path with its `.`, `..` and doubled slashes resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resolved {
    pub(crate) path: String,
    /// Whether the path named everything in that directory, and not the directory.
    pub(crate) contents: bool,
}

impl Paths<'_> {
    /// Resolves a path; `None` when its beginning is not known.
    pub(crate) fn resolve(&self, text: &str) -> Option<Resolved> {
        let relative = !text.starts_with('/');
        let cwd = if relative {
            if text.starts_with(UNKNOWN) {
                return None;
            }
            self.cwd?
        } else {
            ""
        };
        let mut path = String::with_capacity(cwd.len() + text.len() + 1);
        for part in cwd.split('/').filter(|part| !part.is_empty()) {
            path.push('/');
            path.push_str(part);
        }
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." => path.truncate(path.rfind('/').unwrap_or(0)),
                other => {
                    path.push('/');
                    path.push_str(other);
                }
            }
        }
        through_proc(&mut path);
        let whole = path.len();
        while let Some((before, last)) = path.rsplit_once('/') {
            if !everything(last) {
                break;
            }
            path.truncate(before.len());
        }
        let contents = path.len() < whole;
        if path.is_empty() {
            path.push('/');
        }
        Some(Resolved { path, contents })
    }

    /// Returns the resolved path, empty when it is not known.
    pub(crate) fn absolute(&self, text: &str) -> String {
        self.resolve(text)
            .map(|resolved| resolved.path)
            .unwrap_or_default()
    }

    /// Says what would be lost if `text` were deleted with everything below.
    pub(crate) fn loss(&self, text: &str) -> Loss {
        match self.resolve(text) {
            Some(resolved) => self.loss_at(&resolved.path),
            None => Loss::Some(Target::Unknown),
        }
    }

    /// Says what would be lost with a resolved path.
    pub(crate) fn loss_at(&self, path: &str) -> Loss {
        let path = path
            .strip_prefix("/private")
            .filter(|rest| rest.starts_with('/'))
            .unwrap_or(path);
        if path == "/" {
            return Loss::Root;
        }
        let mut parts = path.split('/').skip(1);
        let (top, second, third) = (parts.next(), parts.next(), parts.next());
        let top = top.unwrap_or_default();
        let is = |names: &[&str], part: &str| names.iter().any(|name| matches_part(part, name));
        match (second, third) {
            (None, _) if is(HOMES, top) || (top == "root" && !self.is_home("/root/x")) => {
                Loss::Home
            }
            (Some(_), None) if is(HOMES, top) && self.cwd != Some(path) => Loss::Home,
            _ if !self.home.is_empty() && path == self.home => Loss::Home,
            (None, _) if is(SYSTEM_TOP, top) => Loss::System,
            _ => Loss::Some(self.target(path)),
        }
    }

    fn is_home(&self, path: &str) -> bool {
        !self.home.is_empty() && self.home != "/" && below(path, self.home) && self.home != "/root"
    }

    /// Returns the class of places a resolved path is in.
    pub(crate) fn target(&self, path: &str) -> Target {
        if path.is_empty() || path.contains(UNKNOWN) && !path.starts_with('/') {
            return Target::Unknown;
        }
        if self
            .context
            .workspace
            .as_deref()
            .is_some_and(|workspace| below(path, workspace))
        {
            return Target::Workspace;
        }
        if below(path, "/tmp")
            || below(path, "/var/tmp")
            || below(path, "/private/tmp")
            || below(path, "/dev/shm")
        {
            return Target::Temp;
        }
        if self.context.temp.iter().any(|temp| below(path, temp)) {
            return Target::Temp;
        }
        if below(path, "/dev") {
            return Target::Device;
        }
        if self.system(path) || below(path, "/proc") || below(path, "/var") {
            return Target::System;
        }
        if self.in_home(path).is_some() {
            Target::Home
        } else {
            Target::Elsewhere
        }
    }

    /// Returns the class of places of a path as it was written.
    pub(crate) fn target_of(&self, text: &str) -> Target {
        self.resolve(text)
            .map_or(Target::Unknown, |resolved| self.target(&resolved.path))
    }

    /// Tells whether a resolved path is where the system lives.
    pub(crate) fn system(&self, path: &str) -> bool {
        let own = self.home == "/root" && below(path, "/root");
        let workspace = self
            .context
            .workspace
            .as_deref()
            .is_some_and(|dir| dir != "/" && below(path, dir));
        !own && !workspace && (path == "/" || in_system(path))
    }

    /// Returns the part of a resolved path below a home directory.
    pub(crate) fn in_home<'p>(&self, path: &'p str) -> Option<&'p str> {
        if self.home.len() > 1 && below(path, self.home) {
            return Some(text::from(path, self.home.len()).trim_start_matches('/'));
        }
        if let Some(rest) = path.strip_prefix("/root") {
            return (rest.is_empty() || rest.starts_with('/'))
                .then(|| rest.trim_start_matches('/'));
        }
        let rest = HOMES
            .iter()
            .find_map(|top| path.strip_prefix('/')?.strip_prefix(top)?.strip_prefix('/'))?;
        Some(rest.split_once('/').map_or("", |(_, below)| below))
    }

    /// Tells whether a resolved path holds settings that programs of the user trust.
    pub(crate) fn user_setting(&self, path: &str) -> bool {
        self.in_home(path).is_some_and(|rest| SETTINGS.has(rest))
    }

    /// Tells whether a resolved path holds a secret.
    pub(crate) fn secret(&self, path: &str) -> bool {
        if path
            .rsplit_once('.')
            .is_some_and(|(_, extension)| extension == "pub")
        {
            return false;
        }
        SECRETS_OF_SYSTEM.has(path)
            || self
                .in_home(path)
                .is_some_and(|rest| SECRETS_OF_USERS.has(rest))
    }

    /// Tells whether a resolved path is a directory that holds secrets.
    pub(crate) fn secret_directory(&self, path: &str) -> bool {
        self.in_home(path)
            .is_some_and(|rest| SECRET_DIRECTORIES.contains(&rest))
            || path == "/etc/ssl/private"
    }

    /// Tells whether a resolved path is one of our own controls.
    pub(crate) fn control(&self, path: &str) -> bool {
        self.context
            .controls
            .iter()
            .any(|control| below(path, control))
            || self.in_home(path).is_some_and(|rest| {
                below_part(rest, ".exoshell") || below_part(rest, ".config/exoshell")
            })
    }
}

/// Tells whether `path` is `directory` or lies below it.
pub(crate) fn below(path: &str, directory: &str) -> bool {
    let directory = directory.trim_end_matches('/');
    path.strip_prefix(directory)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Tells whether a path, which may hold patterns, is `directory` or lies below it, or with `whole`
/// above it.
pub(crate) fn covers(path: &str, directory: &str, whole: bool) -> bool {
    let mut wanted = directory.split('/').filter(|part| !part.is_empty());
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    loop {
        match (wanted.next(), parts.next()) {
            (None, _) => return true,
            (Some(_), None) => return whole,
            (Some(name), Some(part)) => {
                // A pattern does not find hidden names unless it says so.
                let seen = !name.starts_with('.') || part.starts_with('.');
                let glob = text::globbed(part) && !text::uncertain(part) && seen;
                let fits = part == name || glob && matches(part, name);
                if !fits {
                    return false;
                }
            }
        }
    }
}

/// Tells whether a path is one of [`SYSTEM`] or lies below one.
fn in_system(path: &str) -> bool {
    let first = path.as_bytes().get(1);
    let likely = first.is_some_and(|first| b"eubslrvpSL".contains(first));
    likely && SYSTEM.iter().any(|top| below_part(path, top))
}

fn below_part(rest: &str, name: &str) -> bool {
    rest.strip_prefix(name)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Patterns for paths, prepared: nearly every path differs from all of them at its beginning.
struct Table {
    rows: Vec<Row>,
    /// The first bytes of the patterns, as a set of ASCII.
    firsts: u128,
}

struct Row {
    pattern: &'static str,
    /// The pattern up to its first star.
    head: &'static str,
    /// A path that is like the pattern.
    example: String,
}

static SETTINGS: LazyLock<Table> = LazyLock::new(|| Table::new(USER_SETTINGS));
static SECRETS_OF_USERS: LazyLock<Table> = LazyLock::new(|| Table::new(USER_SECRETS));
static SECRETS_OF_SYSTEM: LazyLock<Table> = LazyLock::new(|| Table::new(SYSTEM_SECRETS));

impl Table {
    fn new(patterns: &[&'static str]) -> Self {
        let rows = patterns.iter().map(|pattern| Row {
            pattern,
            head: pattern.split('*').next().unwrap_or_default(),
            example: pattern.replace('*', "x"),
        });
        let firsts = patterns
            .iter()
            .filter_map(|pattern| pattern.bytes().next())
            .fold(0, |set, first| set | bit(first));
        Self {
            rows: rows.collect(),
            firsts,
        }
    }

    /// Tells whether a path is, or may be, like one of the patterns.
    fn has(&self, path: &str) -> bool {
        let Some(first) = path.bytes().next() else {
            return false;
        };
        if first.is_ascii() && self.firsts & (bit(first) | bit(b'*')) == 0 {
            return false;
        }
        if path.is_ascii() {
            return self
                .rows
                .iter()
                .any(|row| path.starts_with(row.head) && matches(row.pattern, path));
        }
        let known = path.find([STAR, ONE, UNKNOWN]).unwrap_or(path.len());
        let known = path.as_bytes().get(..known).unwrap_or_default();
        let unknown = path.starts_with(UNKNOWN);
        self.rows.iter().any(|row| {
            // As far as both are known they must be the same.
            known
                .iter()
                .zip(row.head.as_bytes())
                .all(|(one, other)| one == other)
                && (matches(row.pattern, path) || (!unknown && matches(path, &row.example)))
        })
    }
}

fn bit(byte: u8) -> u128 {
    1_u128.checked_shl(u32::from(byte)).unwrap_or(0)
}

/// Tells whether one part of a path, perhaps a pattern, can name `name`.
fn matches_part(part: &str, name: &str) -> bool {
    part == name || (text::globbed(part) && !everything(part) && matches(part, name))
}

/// Tells whether a part of a path is a pattern for all names, or for all hidden ones.
pub(crate) fn everything(part: &str) -> bool {
    !part.is_ascii()
        && part.contains(STAR)
        && part
            .chars()
            .all(|character| matches!(character, STAR | ONE | '.'))
}

/// `/proc/self/root` is `/`.
fn through_proc(path: &mut String) {
    let below = path
        .strip_prefix("/proc/")
        .and_then(|rest| rest.split_once("/root"))
        .filter(|(process, rest)| {
            !process.contains('/') && (rest.is_empty() || rest.starts_with('/'))
        })
        .map(|(_, rest)| rest.to_owned());
    if let Some(below) = below {
        *path = below;
    }
}

/// Tells whether a path is a disk, a partition or memory that a raw write destroys.
pub(crate) fn disk(path: &str) -> bool {
    let Some(name) = path.strip_prefix("/dev/") else {
        return false;
    };
    let after = |prefix: &str| {
        name.strip_prefix(prefix)
            .is_some_and(|rest| !rest.is_empty())
    };
    let numbered = |prefix: &str| {
        name.strip_prefix(prefix).is_some_and(|rest| {
            rest.starts_with(|next: char| {
                next.is_ascii_digit() || matches!(next, STAR | ONE | UNKNOWN)
            })
        })
    };
    let lettered = |prefix: &str| {
        name.strip_prefix(prefix).is_some_and(|rest| {
            rest.starts_with(|next: char| {
                next.is_ascii_lowercase() || matches!(next, STAR | ONE | UNKNOWN)
            })
        })
    };
    if matches!(name, "mem" | "kmem" | "port" | "mapper/control") {
        return name != "mapper/control";
    }
    after("mapper/")
        || after("disk/by-")
        || after("md/")
        || [
            "nvme", "mmcblk", "disk", "rdisk", "dm-", "md", "nbd", "zd", "mtdblock", "mtd", "ada",
            "pmem", "bcache", "drbd", "sr",
        ]
        .iter()
        .any(|prefix| numbered(prefix))
        || ["sd", "hd", "vd", "xvd", "dasd"]
            .iter()
            .any(|prefix| lettered(prefix) && name.len() <= prefix.len() + 8 && name != "hdmi")
}

#[cfg(test)]
#[path = "paths_tests.rs"]
mod tests;
