//! Ways to open a folder that cannot lead out of its root.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

/// How often the kernel is asked again when a rename elsewhere got in its way.
const TRIES: usize = 16;

/// How a path is kept beneath its root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Beneath {
    /// The kernel does it (`openat2`, Linux 5.6).
    Kernel,
    /// Each folder on the way is opened by itself.
    Walk,
}

fn resolve() -> ResolveFlags {
    ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS
}

fn folder_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC
}

impl Beneath {
    /// Tries what the kernel can. Old ones say `ENOSYS`; a container's filter may say `EPERM`.
    pub(super) fn detect(folder: &OwnedFd) -> Self {
        let tried = rustix::fs::openat2(folder, c".", folder_flags(), Mode::empty(), resolve());
        match tried {
            Ok(_) => Self::Kernel,
            Err(_) => Self::Walk,
        }
    }

    /// Opens a folder beneath the root, or the root itself.
    pub(super) fn open_folder(self, root: &OwnedFd, path: Option<&Path>) -> Result<OwnedFd, Errno> {
        let Some(path) = path else {
            return rustix::io::fcntl_dupfd_cloexec(root, 0);
        };
        match self {
            Self::Kernel => open_by_kernel(root, path),
            Self::Walk => walk(root, path, open_step),
        }
    }

    /// Opens a folder beneath the root and makes what is missing, closed to others.
    pub(super) fn make_folder(self, root: &OwnedFd, path: Option<&Path>) -> Result<OwnedFd, Errno> {
        match (self.open_folder(root, path), path) {
            (Err(Errno::NOENT), Some(path)) => walk(root, path, |folder, name| {
                match rustix::fs::mkdirat(folder, name, Mode::RWXU) {
                    Ok(()) | Err(Errno::EXIST) => open_step(folder, name),
                    Err(errno) => Err(errno),
                }
            }),
            (opened, _) => opened,
        }
    }
}

fn open_by_kernel(root: &OwnedFd, path: &Path) -> Result<OwnedFd, Errno> {
    let mut tries = 0;
    loop {
        match rustix::fs::openat2(root, path, folder_flags(), Mode::empty(), resolve()) {
            Err(Errno::AGAIN | Errno::INTR) if tries < TRIES => tries += 1,
            opened => return opened,
        }
    }
}

/// Goes down name by name, each step from the descriptor of the one before.
fn walk(
    root: &OwnedFd,
    path: &Path,
    step: impl Fn(&OwnedFd, &Path) -> Result<OwnedFd, Errno>,
) -> Result<OwnedFd, Errno> {
    let mut folder = rustix::io::fcntl_dupfd_cloexec(root, 0)?;
    for name in path.components() {
        folder = step(&folder, Path::new(name.as_os_str()))?;
    }
    Ok(folder)
}

fn open_step(folder: &OwnedFd, name: &Path) -> Result<OwnedFd, Errno> {
    match rustix::fs::openat(
        folder,
        name,
        folder_flags() | OFlags::NOFOLLOW,
        Mode::empty(),
    ) {
        // A link is "not a directory" to the kernel; people want to know which.
        Err(Errno::NOTDIR) if is_link(folder, name) => Err(Errno::LOOP),
        opened => opened,
    }
}

fn is_link(folder: &OwnedFd, name: &Path) -> bool {
    rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
}
