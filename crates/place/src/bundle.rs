//! The guest this build carries inside itself, guests for other platforms, and putting one on a
//! local filesystem.
//!
//! Nothing is decompressed until [`GuestBinary::bytes`] is called, and [`install`] calls it only
//! when the file is not there yet: a host that finds its guest installed pays for a few `stat`
//! calls.

use std::borrow::Cow;
use std::fmt;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use thiserror::Error;

/// What `build.rs` wrote: platform, hash and size of the embedded guest, and its compressed bytes.
mod embedded {
    include!(concat!(env!("OUT_DIR"), "/guest.rs"));
}

/// The name of the program inside its folder.
pub(crate) const FILE_NAME: &str = "exoshell-guest";

/// How much of the hash names the folder: 64 bits tell builds apart, and paths stay short.
const FOLDER_NAME_LENGTH: usize = 16;

/// Nothing larger is read from a guest folder: ten times the size we hold ourselves to.
const MAX_FILE_SIZE: u64 = 40 << 20;

/// The permission bits that let somebody beside the owner write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// A guest program for one platform.
#[derive(Clone)]
pub struct GuestBinary {
    /// The platform it runs on, as `<os>-<arch>`, for example `linux-x86_64`.
    pub os_arch: String,
    /// The SHA-256 of the program, in lowercase hexadecimal digits.
    pub sha256: String,
    /// The size of the program in bytes.
    pub size: u64,
    content: Content,
}

#[derive(Clone)]
enum Content {
    /// Inside this program, still compressed.
    Embedded,
    /// Read from a guest folder.
    Loaded(Vec<u8>),
}

impl GuestBinary {
    /// Returns the program; the embedded one is decompressed and checked against size and hash.
    pub fn bytes(&self) -> Result<Cow<'_, [u8]>, BundleError> {
        match &self.content {
            Content::Loaded(bytes) => Ok(Cow::Borrowed(bytes)),
            Content::Embedded => {
                decompress(embedded::COMPRESSED, embedded::SIZE, embedded::SHA256).map(Cow::Owned)
            }
        }
    }

    /// Returns the name of the folder that holds this program and no other: the start of its hash.
    pub fn folder_name(&self) -> &str {
        self.sha256
            .get(..FOLDER_NAME_LENGTH)
            .unwrap_or(&self.sha256)
    }

    fn from_file(path: &Path, os_arch: String) -> Result<Self, BundleError> {
        let metadata = fs::metadata(path).map_err(failed("look at", path))?;
        if !metadata.is_file() || metadata.len() == 0 || metadata.len() > MAX_FILE_SIZE {
            return Err(BundleError::NotAGuest {
                path: path.to_path_buf(),
                limit: MAX_FILE_SIZE,
            });
        }
        let bytes = fs::read(path).map_err(failed("read", path))?;
        Ok(Self {
            os_arch,
            sha256: hash_of(&bytes),
            size: bytes.len() as u64,
            content: Content::Loaded(bytes),
        })
    }
}

impl fmt::Debug for GuestBinary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("GuestBinary")
            .field("os_arch", &self.os_arch)
            .field("sha256", &self.sha256)
            .field("size", &self.size)
            .field("embedded", &matches!(self.content, Content::Embedded))
            .finish_non_exhaustive()
    }
}

/// Why there is no guest to run.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BundleError {
    /// A place named its platform with characters that no platform name has.
    #[error("`{os}` on `{arch}` is no platform name")]
    BadPlatform {
        /// The operating system as the place told it.
        os: String,
        /// The architecture as the place told it.
        arch: String,
    },
    /// Neither this build nor the guest folder has a guest for the platform.
    #[error(
        "no guest for `{wanted}`: this build carries the one for `{embedded}`, and {}",
        match looked_for {
            Some(path) => format!("there is no file `{}`", path.display()),
            None => "no folder with other guests is configured".to_owned(),
        }
    )]
    Missing {
        /// The platform asked for.
        wanted: String,
        /// The platform of the embedded guest.
        embedded: &'static str,
        /// The file that would have been used.
        looked_for: Option<PathBuf>,
    },
    /// A file in the guest folder cannot be a guest.
    #[error(
        "`{}` is no guest: it must be a file with at most {limit} bytes and not empty",
        path.display()
    )]
    NotAGuest {
        /// The file.
        path: PathBuf,
        /// The largest size that is read.
        limit: u64,
    },
    /// The embedded guest does not decompress to what was built.
    #[error("the guest inside this program is damaged: expected SHA-256 {expected}, found {found}")]
    Damaged {
        /// The hash at build time.
        expected: &'static str,
        /// The hash now, or what the decompression said.
        found: String,
    },
    /// Another user could replace what is installed there.
    #[error("`{}` is no safe place for the guest: {fault}", path.display())]
    Unsafe {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        fault: Fault,
    },
    /// The written file reads back differently.
    #[error(
        "the guest written to `{}` reads back with SHA-256 {found} instead of {expected}",
        path.display()
    )]
    WrittenWrong {
        /// The temporary file, which is removed.
        path: PathBuf,
        /// The hash of what was written.
        expected: String,
        /// The hash of what was read.
        found: String,
    },
    /// The filesystem refused something.
    #[error("cannot {action} `{}`", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// The answer of the operating system.
        #[source]
        source: io::Error,
    },
}

impl BundleError {
    /// Returns what a person can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Missing { wanted, .. } => Some(format!(
                "build `exoshell-guest` for that platform, store it as `<folder>/{wanted}` \
                 and set EXOSHELL_GUEST_DIR to the folder"
            )),
            Self::Damaged { .. } => Some("install exoshell again".to_owned()),
            Self::Unsafe {
                path,
                fault: Fault::WritableByOthers { .. },
            } => Some(format!("chmod go-w {}", path.display())),
            Self::Io { .. } => Some(
                "free some space, or set EXOSHELL_HOME to a folder that can be written and allows \
                 programs"
                    .to_owned(),
            ),
            _ => None,
        }
    }
}

/// What makes a folder unfit to run programs from.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// It is a file or a symbolic link.
    #[error("it is not a folder")]
    NotAFolder,
    /// Somebody else owns it.
    #[error("it belongs to user {owner}, we are user {ours}")]
    ForeignOwner {
        /// The owner's user id.
        owner: u32,
        /// Our effective user id.
        ours: u32,
    },
    /// Its group or everybody may write to it.
    #[error("others may write to it (mode {mode:03o})")]
    WritableByOthers {
        /// Its permission bits.
        mode: u32,
    },
}

/// Returns the guest this build carries. Nothing is decompressed yet.
pub fn embedded() -> GuestBinary {
    GuestBinary {
        os_arch: embedded::OS_ARCH.to_owned(),
        sha256: embedded::SHA256.to_owned(),
        size: embedded::SIZE as u64,
        content: Content::Embedded,
    }
}

/// Returns the SHA-256 of the guest this build carries, in lowercase hexadecimal digits.
pub const fn embedded_sha256() -> &'static str {
    embedded::SHA256
}

/// Finds the guest for a platform: the embedded one when it fits, else `<guest_dir>/<os>-<arch>`.
///
/// `os` and `arch` are what `uname -s` and `uname -m` print in the place (`Linux`, `x86_64`). They
/// come from the place, so only letters, digits and `_` may become part of a path.
pub fn lookup(os: &str, arch: &str, guest_dir: Option<&Path>) -> Result<GuestBinary, BundleError> {
    let Some(wanted) = platform_name(os, arch) else {
        return Err(BundleError::BadPlatform {
            os: quotable(os),
            arch: quotable(arch),
        });
    };
    if wanted == embedded::OS_ARCH {
        return Ok(embedded());
    }
    match guest_dir.map(|folder| folder.join(&wanted)) {
        Some(path) if path.exists() => GuestBinary::from_file(&path, wanted),
        looked_for => Err(BundleError::Missing {
            wanted,
            embedded: embedded::OS_ARCH,
            looked_for,
        }),
    }
}

/// Puts the guest at `<dir>/<start of its hash>/exoshell-guest` on this machine; returns that path.
///
/// A file that is already there is trusted by its size, because its folder is: both folders must
/// belong to us and be writable by nobody else (they are created with mode 0700). Any number of
/// processes may install at once; each writes its own temporary file, reads it back, and renames
/// it. Nothing else is ever deleted or changed.
///
/// When another thread of this process forks meanwhile, its child holds the file open for writing
/// until it calls `exec`; starting the guest at that moment fails with `ETXTBSY` and is worth
/// another try.
pub fn install(binary: &GuestBinary, dir: &Path) -> Result<PathBuf, BundleError> {
    let folder = dir.join(binary.folder_name());
    let path = folder.join(FILE_NAME);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)
        .map_err(failed("create", &folder))?;
    check_folder(dir)?;
    check_folder(&folder)?;
    if is_installed(&path, binary.size)? {
        return Ok(path);
    }

    let bytes = binary.bytes()?;
    let (temporary, file) = create_temporary(&folder)?;
    let installed = write_and_verify(file, &temporary, &bytes, &binary.sha256).and_then(|()| {
        fs::rename(&temporary, &path).map_err(failed("install the guest as", &path))
    });
    if let Err(error) = installed {
        // The first error says what went wrong; our own left-over is all there is to tidy up.
        let _ = fs::remove_file(&temporary);
        return Err(error);
    }
    File::open(&folder)
        .and_then(|folder| folder.sync_all())
        .map_err(failed("sync", &folder))?;
    Ok(path)
}

/// Returns `<os>-<arch>` in our spelling, or nothing when a part is unfit for a file name.
fn platform_name(os: &str, arch: &str) -> Option<String> {
    let harmless = |part: &str| {
        (1..=32).contains(&part.len())
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    if !harmless(os) || !harmless(arch) {
        return None;
    }
    let os = os.to_ascii_lowercase();
    let arch = arch.to_ascii_lowercase();
    let arch = match arch.as_str() {
        "amd64" => "x86_64",
        "arm64" => "aarch64",
        other => other,
    };
    Some(format!("{os}-{arch}"))
}

/// Makes text of a place fit for a message: short, and without control characters.
fn quotable(text: &str) -> String {
    text.chars().take(64).flat_map(char::escape_debug).collect()
}

fn decompress(
    compressed: &[u8],
    size: usize,
    sha256: &'static str,
) -> Result<Vec<u8>, BundleError> {
    let damaged = |found| BundleError::Damaged {
        expected: sha256,
        found,
    };
    let bytes = miniz_oxide::inflate::decompress_to_vec_zlib_with_limit(compressed, size)
        .map_err(|error| damaged(error.to_string()))?;
    let found = hash_of(&bytes);
    if found == sha256 {
        Ok(bytes)
    } else {
        Err(damaged(found))
    }
}

fn hash_of(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let digit = |nibble: u8| char::from(DIGITS[usize::from(nibble & 0xf)]);
    Sha256::digest(bytes)
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(*byte)])
        .collect()
}

fn check_folder(folder: &Path) -> Result<(), BundleError> {
    let metadata = fs::symlink_metadata(folder).map_err(failed("look at", folder))?;
    match fault_of(&metadata) {
        Some(fault) => Err(BundleError::Unsafe {
            path: folder.to_path_buf(),
            fault,
        }),
        None => Ok(()),
    }
}

fn fault_of(folder: &Metadata) -> Option<Fault> {
    let (owner, ours) = (folder.uid(), our_uid());
    let mode = folder.mode() & 0o777;
    if !folder.is_dir() {
        Some(Fault::NotAFolder)
    } else if owner != ours {
        Some(Fault::ForeignOwner { owner, ours })
    } else if mode & WRITABLE_BY_OTHERS != 0 {
        Some(Fault::WritableByOthers { mode })
    } else {
        None
    }
}

fn our_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// Tells whether the file is the finished guest, as far as one `stat` can tell.
fn is_installed(path: &Path, size: u64) -> Result<bool, BundleError> {
    match fs::symlink_metadata(path) {
        Ok(file) => Ok(file.is_file()
            && file.uid() == our_uid()
            && file.mode() & WRITABLE_BY_OTHERS == 0
            && file.mode() & 0o100 != 0
            && file.len() == size),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(failed("look at", path)(error)),
    }
}

/// Creates a file that no other process writes to.
///
/// Process ids repeat across containers and across time, hence the second number.
fn create_temporary(folder: &Path) -> Result<(PathBuf, File), BundleError> {
    let process = std::process::id();
    let mut number = 0_u32;
    loop {
        let path = folder.join(format!(".{FILE_NAME}.{process}.{number}"));
        let created = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path);
        match created {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && number < u32::MAX => {
                number += 1;
            }
            Err(error) => return Err(failed("create", &path)(error)),
        }
    }
}

fn write_and_verify(
    mut file: File,
    path: &Path,
    bytes: &[u8],
    sha256: &str,
) -> Result<(), BundleError> {
    file.write_all(bytes).map_err(failed("write", path))?;
    file.set_permissions(fs::Permissions::from_mode(0o755))
        .map_err(failed("make executable", path))?;
    file.sync_all().map_err(failed("sync", path))?;
    drop(file);
    let found = hash_of(&fs::read(path).map_err(failed("read back", path))?);
    if found != sha256 {
        return Err(BundleError::WrittenWrong {
            path: path.to_path_buf(),
            expected: sha256.to_owned(),
            found,
        });
    }
    Ok(())
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> BundleError {
    let path = path.to_path_buf();
    move |source| BundleError::Io {
        action,
        path,
        source,
    }
}

#[cfg(test)]
#[path = "bundle_tests.rs"]
mod tests;
