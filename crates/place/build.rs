//! Builds the guest for the same target and embeds it, compressed, into this crate.
//!
//! The guest is another binary of the same workspace with other flags (static, small), so it is
//! built by a nested `cargo` with its own target folder and a cleaned environment. That folder is
//! shared by all profiles of the outer target folder: clippy, docs, dev and release builds find the
//! finished guest there.
//!
//! `EXOSHELL_GUEST_PREBUILT=/path/to/exoshell-guest` skips the nested build.

#![expect(
    clippy::print_stderr,
    reason = "a build script tells people on stderr why it failed"
)]

use std::collections::BTreeSet;
use std::env;
use std::error::Error;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs;
use std::iter;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use sha2::{Digest as _, Sha256};

/// Any failure; its text is shown to the person who runs `cargo`.
type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Names a ready-made guest, for packagers and for cross builds.
const PREBUILT: &str = "EXOSHELL_GUEST_PREBUILT";

/// What glibc's link-time warnings about NSS, `getaddrinfo` and `dlopen` have in common.
const STATIC_WARNING: &str = "in statically linked applications requires";

/// glibc's name-service code cannot be linked in without this string, whichever linker was used.
const NSS_MARKER: &[u8] = b"/etc/nsswitch.conf";

/// The best ratio `miniz_oxide` offers; the time is paid once per changed guest.
const COMPRESSION_LEVEL: u8 = 10;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={PREBUILT}");

    let target = Target::of_this_build()?;
    let out_dir = PathBuf::from(variable("OUT_DIR")?);
    let binary = match env::var_os(PREBUILT).filter(|path| !path.is_empty()) {
        Some(path) => prebuilt(PathBuf::from(path))?,
        None => nested_build(&target, &out_dir)?,
    };
    let bytes = fs::read(&binary)
        .map_err(|error| format!("cannot read the guest `{}`: {error}", binary.display()))?;
    check_is_static(&bytes, &target)
        .map_err(|error| format!("the guest `{}` {error}", binary.display()))?;
    embed(&bytes, &target, &out_dir)
}

/// The platform the guest is for: the one the outer build is for.
struct Target {
    triple: String,
    os: String,
    arch: String,
}

impl Target {
    fn of_this_build() -> Result<Self> {
        Ok(Self {
            triple: variable("TARGET")?,
            os: variable("CARGO_CFG_TARGET_OS")?,
            arch: variable("CARGO_CFG_TARGET_ARCH")?,
        })
    }
}

fn variable(name: &str) -> Result<String> {
    env::var(name)
        .map_err(|error| format!("`{name}`, which cargo sets for a build script: {error}").into())
}

fn prebuilt(path: PathBuf) -> Result<PathBuf> {
    if !path.is_absolute() {
        return Err(format!(
            "`{PREBUILT}` must be an absolute path, not `{}`",
            path.display()
        )
        .into());
    }
    rerun_if_changed(&path);
    Ok(path)
}

/// Builds the guest and returns the path of the binary.
fn nested_build(target: &Target, out_dir: &Path) -> Result<PathBuf> {
    if target.os != "linux" {
        return Err(format!(
            "the guest runs on linux; to build for `{}`, set `{PREBUILT}`",
            target.triple
        )
        .into());
    }
    let manifest_dir = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let root = manifest_dir
        .ancestors()
        .find(|folder| folder.join("crates/guest/Cargo.toml").is_file())
        .ok_or_else(|| {
            format!("outside of its workspace this crate cannot build the guest; set `{PREBUILT}`")
        })?;
    let target_dir = shared_target_dir(out_dir, &target.triple)?;

    let mut command = Command::new(variable("CARGO")?);
    command
        .args(["build", "--locked", "--profile", "guest"])
        .args(["--package", "exoshell-guest", "--bin", "exoshell-guest"])
        // Without an explicit target the static flags would also reach build scripts and procedural
        // macros.
        .args(["--target", &target.triple, "--target-dir"])
        .arg(&target_dir)
        .current_dir(root)
        .stdin(Stdio::null());
    clean_environment(&mut command);
    command
        .env("CARGO_ENCODED_RUSTFLAGS", rustflags(target, root))
        .env("CARGO_TERM_COLOR", "never")
        .env("LC_ALL", "C");

    let output = command
        .output()
        .map_err(|error| format!("cannot run `{}`: {error}", show(&command)))?;
    let messages = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!(
            "building the guest failed ({})\n{}\n{messages}",
            output.status,
            show(&command)
        )
        .into());
    }
    refuse_static_warnings(&messages)?;

    let artifacts = target_dir.join(&target.triple).join("guest");
    rerun_if_sources_change(&artifacts.join("exoshell-guest.d"), root)?;
    Ok(artifacts.join("exoshell-guest"))
}

/// Fails on what GNU ld prints for NSS, `getaddrinfo`, `dlopen` and their like.
///
/// Cargo repeats the warnings of a binary that is up to date, so the second build fails as well.
fn refuse_static_warnings(messages: &str) -> Result<()> {
    if !messages.contains(STATIC_WARNING) {
        return Ok(());
    }
    let warnings: Vec<&str> = messages
        .lines()
        .filter(|line| line.contains(STATIC_WARNING) || line.contains("in function `"))
        .map(str::trim)
        .collect();
    Err(format!(
        "the guest must not use NSS, getaddrinfo or dlopen: they load libraries of the place, \
         which a static program cannot rely on. The linker says:\n{}",
        warnings.join("\n")
    )
    .into())
}

/// One folder per outer target folder, whatever the profile: `target/debug/build/<package>/out` and
/// `target/<triple>/release/build/<package>/out` both give `target/guest-build`.
fn shared_target_dir(out_dir: &Path, triple: &str) -> Result<PathBuf> {
    let profile_dir = out_dir
        .ancestors()
        .find(|folder| folder.file_name().is_some_and(|name| name == "build"))
        .and_then(Path::parent);
    let mut folder = profile_dir
        .and_then(Path::parent)
        .ok_or_else(|| format!("`{}` is not laid out as cargo does it", out_dir.display()))?;
    if folder.file_name().is_some_and(|name| name == triple) {
        folder = folder.parent().unwrap_or(folder);
    }
    Ok(folder.join("guest-build"))
}

/// Removes what the outer build set for itself, so that every outer command asks for exactly the
/// same guest. What a person sets to reach the network or to find a cross linker stays.
fn clean_environment(command: &mut Command) {
    const SET_FOR_SCRIPTS: [&str; 11] = [
        "RUSTFLAGS",
        "RUSTDOC",
        "RUSTDOCFLAGS",
        "MAKEFLAGS",
        "MFLAGS",
        "OUT_DIR",
        "TARGET",
        "HOST",
        "PROFILE",
        "OPT_LEVEL",
        "DEBUG",
    ];
    const KEPT: [&str; 4] = ["CARGO_HOME", "CARGO_NET_", "CARGO_HTTP_", "CARGO_REGISTR"];
    for (name, _) in env::vars_os() {
        let Some(text) = name.to_str() else { continue };
        let kept = KEPT.iter().any(|prefix| text.starts_with(prefix))
            || (text.starts_with("CARGO_TARGET_") && text.ends_with("_LINKER"));
        let foreign = ["CARGO", "__CARGO", "RUSTC_", "CLIPPY_", "DEP_"]
            .iter()
            .any(|prefix| text.starts_with(prefix))
            || SET_FOR_SCRIPTS.contains(&text);
        if foreign && !kept {
            command.env_remove(&name);
        }
    }
}

/// The flags that make the guest static and small, separated as `CARGO_ENCODED_RUSTFLAGS` wants it.
fn rustflags(target: &Target, root: &Path) -> OsString {
    let mut flags: Vec<OsString> = [
        // On linux-gnu this gives a static position-independent executable.
        "-Ctarget-feature=+crt-static",
        // The guest aborts on a panic and is stripped: nothing could use the tables.
        "-Cforce-unwind-tables=no",
        "-Clink-arg=-Wl,--build-id=none",
        "-Wlinker-messages",
    ]
    .map(OsString::from)
    .into();
    if target.triple == "x86_64-unknown-linux-gnu" {
        // LLD, rustc's choice on this target, ignores the sections in which glibc keeps its
        // warnings; GNU ld prints them.
        flags.push("-Clinker-features=-lld".into());
    }
    // The hash of the guest must not depend on where it was built, nor should it tell.
    let cargo_home = env::var_os("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo")));
    let folders = [
        (Some(root.to_path_buf()), "exoshell"),
        (cargo_home.map(|home| home.join("registry/src")), "registry"),
    ];
    for (folder, name) in folders {
        if let Some(folder) = folder {
            let mut flag = OsString::from("--remap-path-prefix=");
            flag.push(folder);
            flag.push("=");
            flag.push(name);
            flags.push(flag);
        }
    }
    flags.join("\u{1f}".as_ref())
}

/// Reruns this script for every file of ours the guest was built from: no list of crates to keep up
/// to date.
fn rerun_if_sources_change(dep_info: &Path, root: &Path) -> Result<()> {
    let text = fs::read_to_string(dep_info)
        .map_err(|error| format!("cannot read `{}`: {error}", dep_info.display()))?;
    let mut paths: BTreeSet<PathBuf> = ["Cargo.toml", "Cargo.lock"]
        .map(|name| root.join(name))
        .into();
    paths.extend(Some(root.join(".cargo/config.toml")).filter(|path| path.is_file()));
    for source in dep_info_sources(&text) {
        let source = root.join(source);
        let manifest = source
            .ancestors()
            .skip(1)
            .map(|folder| folder.join("Cargo.toml"))
            .find(|path| path.is_file());
        paths.extend(manifest);
        paths.insert(source);
    }
    for path in &paths {
        rerun_if_changed(path);
    }
    Ok(())
}

/// Reads the right side of `binary: source source…`, where a space inside a path is written `\ `.
fn dep_info_sources(text: &str) -> Vec<String> {
    const ESCAPED: &str = "\u{0}";
    let sources = text
        .lines()
        .next()
        .and_then(|line| line.split_once(": "))
        .map_or("", |(_, sources)| sources);
    let escaped = sources.replace("\\ ", ESCAPED);
    escaped
        .split(' ')
        .filter(|path| !path.is_empty())
        .map(|path| path.replace(ESCAPED, " "))
        .collect()
}

fn rerun_if_changed(path: &Path) {
    println!("cargo::rerun-if-changed={}", path.display());
}

/// The command with its arguments, for a message.
fn show(command: &Command) -> String {
    let words = iter::once(command.get_program()).chain(command.get_args());
    words
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}

/// Checks the ELF header: a 64-bit program for `target` that asks for no interpreter, and has no
/// name service in it.
fn check_is_static(bytes: &[u8], target: &Target) -> Result<()> {
    const PT_INTERP: u64 = 3;
    let number = |offset: usize, length: usize| -> Result<u64> {
        let field = bytes.get(offset..offset + length).ok_or("ends too early")?;
        Ok(field
            .iter()
            .rev()
            .fold(0, |value, byte| value << 8 | u64::from(*byte)))
    };
    if !bytes.starts_with(b"\x7fELF\x02\x01") {
        return Err("is no 64-bit little-endian ELF program".into());
    }
    let machine = match target.arch.as_str() {
        "x86_64" => 62,
        "aarch64" => 183,
        "riscv64" => 243,
        other => return Err(format!("cannot be checked: `{other}` is missing in build.rs").into()),
    };
    if number(18, 2)? != machine {
        return Err(format!(
            "is not for {}: its ELF machine is {}",
            target.arch,
            number(18, 2)?
        )
        .into());
    }
    let (table, entry_size, entries) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    for entry in 0..entries {
        if number(usize::try_from(table + entry * entry_size)?, 4)? == PT_INTERP {
            return Err("is linked dynamically; it must be static".into());
        }
    }
    if bytes
        .windows(NSS_MARKER.len())
        .any(|window| window == NSS_MARKER)
    {
        return Err(
            "contains glibc's name service (NSS), which needs libraries of the place".into(),
        );
    }
    Ok(())
}

/// Writes the compressed guest and the constants that `bundle.rs` includes.
fn embed(bytes: &[u8], target: &Target, out_dir: &Path) -> Result<()> {
    let sha256 = Sha256::digest(bytes)
        .iter()
        .fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
    let compressed = miniz_oxide::deflate::compress_to_vec_zlib(bytes, COMPRESSION_LEVEL);
    fs::write(out_dir.join("guest.zlib"), compressed)?;
    let constants = format!(
        "pub(super) const OS_ARCH: &str = \"{}-{}\";\n\
         pub(super) const SHA256: &str = \"{sha256}\";\n\
         pub(super) const SIZE: usize = 0x{:04x}_{:04x};\n\
         pub(super) static COMPRESSED: &[u8] = include_bytes!(\"guest.zlib\");\n",
        target.os,
        target.arch,
        bytes.len() >> 16,
        bytes.len() & 0xffff,
    );
    fs::write(out_dir.join("guest.rs"), constants)?;
    Ok(())
}
