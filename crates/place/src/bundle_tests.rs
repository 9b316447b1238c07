use std::os::unix::fs::symlink;

use super::*;

fn mode_of(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

/// A stand-in that costs nothing to write and hash.
fn small_guest(bytes: &[u8]) -> GuestBinary {
    GuestBinary {
        os_arch: "plan9-mips".to_owned(),
        sha256: hash_of(bytes),
        size: bytes.len() as u64,
        content: Content::Loaded(bytes.to_vec()),
    }
}

#[test]
fn hashes_are_written_as_sha256sum_does() {
    assert_eq!(
        hash_of(b"abc"),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
}

#[test]
fn the_embedded_guest_unpacks_to_an_elf_program_with_the_hash_of_the_build() {
    let guest = embedded();
    let bytes = guest.bytes().unwrap();
    assert!(bytes.starts_with(b"\x7fELF"));
    assert_eq!(
        (bytes.len() as u64, hash_of(&bytes).as_str()),
        (guest.size, embedded_sha256())
    );
    assert_eq!(
        guest.os_arch,
        format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH)
    );
}

#[test]
fn the_embedded_guest_keeps_its_size_budget() {
    assert!(embedded().size <= 4 << 20, "{} bytes", embedded().size);
    assert!(
        embedded::COMPRESSED.len() <= 2 << 20,
        "{} bytes",
        embedded::COMPRESSED.len()
    );
}

#[test]
fn a_damaged_guest_is_refused_whatever_is_wrong_with_it() {
    let content = vec![7_u8; 4096];
    let compressed = miniz_oxide::deflate::compress_to_vec_zlib(&content, 6);
    let right: &'static str = hash_of(&content).leak();
    let wrong: &'static str = hash_of(b"other").leak();
    let mut flipped = compressed.clone();
    *flipped.last_mut().unwrap() ^= 1;

    assert_eq!(
        decompress(&compressed, content.len(), right).unwrap(),
        content
    );
    for (case, compressed, size, sha256) in [
        ("a flipped bit", flipped.as_slice(), content.len(), right),
        (
            "cut short",
            &compressed[..compressed.len() / 2],
            content.len(),
            right,
        ),
        ("nothing", &[], content.len(), right),
        (
            "larger than announced",
            &compressed,
            content.len() - 1,
            right,
        ),
        ("another content", &compressed, content.len(), wrong),
    ] {
        let result = decompress(compressed, size, sha256);
        assert!(
            matches!(result, Err(BundleError::Damaged { .. })),
            "{case}: {result:?}"
        );
    }
}

#[test]
fn the_platform_of_this_build_is_found_inside_however_uname_spells_it() {
    let arch = std::env::consts::ARCH;
    for os in ["linux", "Linux"] {
        assert_eq!(lookup(os, arch, None).unwrap().sha256, embedded_sha256());
    }
    assert_eq!(platform_name("Linux", "amd64").unwrap(), "linux-x86_64");
    assert_eq!(platform_name("Linux", "arm64").unwrap(), "linux-aarch64");
}

#[test]
fn another_platform_is_taken_from_the_guest_folder() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("plan9-mips"), b"a guest").unwrap();
    let guest = lookup("Plan9", "mips", Some(folder.path())).unwrap();
    assert_eq!(guest.os_arch, "plan9-mips");
    assert_eq!(
        (guest.size, guest.sha256.as_str()),
        (7, hash_of(b"a guest").as_str())
    );
    assert_eq!(*guest.bytes().unwrap(), *b"a guest");
}

#[test]
fn a_missing_guest_says_what_was_looked_for_and_how_to_provide_it() {
    let without_folder = lookup("Plan9", "mips", None).unwrap_err();
    assert_eq!(
        without_folder.to_string(),
        format!(
            "no guest for `plan9-mips`: this build carries the one for `{}`, and no folder with other guests is configured",
            embedded::OS_ARCH
        )
    );
    assert!(
        without_folder
            .hint()
            .unwrap()
            .contains("EXOSHELL_GUEST_DIR")
    );

    let with_folder = lookup("Plan9", "mips", Some(Path::new("/nowhere"))).unwrap_err();
    assert!(
        with_folder
            .to_string()
            .ends_with("there is no file `/nowhere/plan9-mips`")
    );
    assert!(with_folder.hint().unwrap().contains("<folder>/plan9-mips"));
}

#[test]
fn a_place_cannot_choose_a_path_by_its_platform_name() {
    let folder = tempfile::tempdir().unwrap();
    for (os, arch) in [
        ("../../etc", "x"),
        ("linux", "x86_64/../../passwd"),
        ("linux", ""),
        ("", ""),
        ("linux", "x86-64"),
        ("lin\0ux", "x86_64"),
        ("linux", &"x".repeat(10_000)),
    ] {
        let error = lookup(os, arch, Some(folder.path())).unwrap_err();
        assert!(
            matches!(error, BundleError::BadPlatform { .. }),
            "{os:?} {arch:?}: {error}"
        );
    }
}

#[test]
fn a_strange_platform_name_is_quoted_short_and_without_control_characters() {
    let error = lookup("\x1b[31mred\n", &"x".repeat(10_000), None)
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("`\\u{1b}[31mred\\n` on `xxx"), "{error}");
    assert!(error.len() < 200, "{error}");
}

#[test]
fn a_file_that_cannot_be_a_guest_is_refused_before_it_is_read() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("os-empty"), b"").unwrap();
    fs::create_dir(folder.path().join("os-folder")).unwrap();
    File::create(folder.path().join("os-huge"))
        .unwrap()
        .set_len(MAX_FILE_SIZE + 1)
        .unwrap();
    for arch in ["empty", "folder", "huge"] {
        let error = lookup("os", arch, Some(folder.path())).unwrap_err();
        assert!(
            matches!(error, BundleError::NotAGuest { .. }),
            "{arch}: {error}"
        );
    }
}

#[test]
fn installing_puts_an_executable_into_a_private_folder_named_by_its_hash() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("state/guests");
    let path = install(&embedded(), &dir).unwrap();

    assert_eq!(
        path,
        dir.join(&embedded_sha256()[..16]).join("exoshell-guest")
    );
    assert_eq!(hash_of(&fs::read(&path).unwrap()), embedded_sha256());
    assert_eq!(
        (
            mode_of(&dir),
            mode_of(path.parent().unwrap()),
            mode_of(&path)
        ),
        (0o700, 0o700, 0o755)
    );
    assert_eq!(names_in(path.parent().unwrap()), ["exoshell-guest"]);
}

#[test]
fn an_installed_guest_is_left_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let guest = small_guest(b"content");
    let first = fs::metadata(install(&guest, dir.path()).unwrap()).unwrap();
    let second = fs::metadata(install(&guest, dir.path()).unwrap()).unwrap();
    assert_eq!(
        (first.ino(), first.modified().unwrap()),
        (second.ino(), second.modified().unwrap())
    );
}

#[test]
fn a_torn_or_unusable_file_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let guest = small_guest(b"content");
    let path = install(&guest, dir.path()).unwrap();
    let elsewhere = dir.path().join("elsewhere");
    fs::write(&elsewhere, b"content").unwrap();

    let spoil: [(&str, &dyn Fn()); 4] = [
        ("torn", &|| fs::write(&path, b"con").unwrap()),
        ("not executable", &|| set_mode(&path, 0o644)),
        ("writable by others", &|| set_mode(&path, 0o777)),
        ("a link", &|| {
            fs::remove_file(&path).unwrap();
            symlink(&elsewhere, &path).unwrap();
        }),
    ];
    for (case, spoil) in spoil {
        spoil();
        assert_eq!(install(&guest, dir.path()).unwrap(), path, "{case}");
        assert_eq!(fs::read(&path).unwrap(), b"content", "{case}");
        assert!(fs::symlink_metadata(&path).unwrap().is_file(), "{case}");
        assert_eq!(mode_of(&path), 0o755, "{case}");
    }
}

#[test]
fn many_installers_at_once_leave_one_whole_file() {
    let dir = tempfile::tempdir().unwrap();
    let content: Vec<u8> = (0..1_u32 << 18).flat_map(u32::to_le_bytes).collect();
    let guest = small_guest(&content);
    let paths: Vec<PathBuf> = std::thread::scope(|scope| {
        let installers: Vec<_> = (0..16)
            .map(|_| {
                scope.spawn(|| {
                    let path = install(&guest, dir.path()).unwrap();
                    // Whatever the others still do, the name already holds a whole program.
                    assert_eq!(hash_of(&fs::read(&path).unwrap()), guest.sha256);
                    path
                })
            })
            .collect();
        installers
            .into_iter()
            .map(|installer| installer.join().unwrap())
            .collect()
    });
    assert!(paths.iter().all(|path| *path == paths[0]));
    assert_eq!(names_in(paths[0].parent().unwrap()), ["exoshell-guest"]);
}

#[test]
fn other_versions_and_what_a_crashed_installer_left_are_not_touched() {
    let dir = tempfile::tempdir().unwrap();
    let old = install(&small_guest(b"old"), dir.path()).unwrap();
    let guest = small_guest(b"new");
    let folder = dir.path().join(guest.folder_name());
    DirBuilder::new().mode(0o700).create(&folder).unwrap();
    let left_over = format!(".exoshell-guest.{}.0", std::process::id());
    fs::write(folder.join(&left_over), b"ne").unwrap();

    install(&guest, dir.path()).unwrap();
    assert_eq!(fs::read(old).unwrap(), b"old");
    assert_eq!(names_in(&folder), [left_over.as_str(), "exoshell-guest"]);
    assert_eq!(fs::read(folder.join(left_over)).unwrap(), b"ne");
}

#[test]
fn a_folder_others_may_write_to_is_refused_with_the_remedy() {
    let guest = small_guest(b"content");
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("guests");
    let folder = dir.join(guest.folder_name());
    install(&guest, &dir).unwrap();
    for path in [&dir, &folder] {
        for mode in [0o770, 0o702] {
            set_mode(path, mode);
            let error = install(&guest, &dir).unwrap_err();
            assert!(
                matches!(&error, BundleError::Unsafe { path: named, fault } if named == path && *fault == Fault::WritableByOthers { mode }),
                "{error}"
            );
            assert_eq!(
                error.hint().unwrap(),
                format!("chmod go-w {}", path.display())
            );
        }
        set_mode(path, 0o700);
    }
    install(&guest, &dir).unwrap();
}

#[test]
fn a_linked_folder_is_refused() {
    let guest = small_guest(b"content");
    let home = tempfile::tempdir().unwrap();
    let (dir, elsewhere) = (home.path().join("guests"), home.path().join("elsewhere"));
    fs::create_dir_all(&elsewhere).unwrap();
    DirBuilder::new().mode(0o700).create(&dir).unwrap();
    symlink(&elsewhere, dir.join(guest.folder_name())).unwrap();
    let error = install(&guest, &dir).unwrap_err();
    assert!(
        matches!(
            &error,
            BundleError::Unsafe {
                fault: Fault::NotAFolder,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(names_in(&elsewhere), [""; 0]);
}

#[test]
fn a_folder_of_another_user_is_refused() {
    // Root owns everything it creates but can give it away; anybody else knows a folder of root.
    let home = tempfile::tempdir().unwrap();
    let foreign = if rustix::process::geteuid().is_root() {
        std::os::unix::fs::chown(home.path(), Some(65534), None).unwrap();
        home.path()
    } else {
        Path::new("/")
    };
    let fault = fault_of(&fs::symlink_metadata(foreign).unwrap());
    assert!(
        matches!(fault, Some(Fault::ForeignOwner { .. })),
        "{fault:?}"
    );
}

#[test]
fn content_that_does_not_fit_its_hash_is_never_installed() {
    let dir = tempfile::tempdir().unwrap();
    let guest = GuestBinary {
        sha256: hash_of(b"promised"),
        ..small_guest(b"content")
    };
    let error = install(&guest, dir.path()).unwrap_err();
    assert!(
        matches!(&error, BundleError::WrittenWrong { .. }),
        "{error}"
    );
    assert_eq!(names_in(&dir.path().join(guest.folder_name())), [""; 0]);
}

#[test]
fn an_impossible_folder_is_named_together_with_the_system_s_reason() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("file");
    fs::write(&file, b"").unwrap();
    let error = install(&small_guest(b"content"), &file.join("guests")).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with(&format!("cannot create `{}", file.display())),
        "{error}"
    );
    assert!(std::error::Error::source(&error).is_some());
}

#[test]
fn debug_output_does_not_hold_the_program() {
    assert!(format!("{:?}", small_guest(&[42; 10_000])).len() < 300);
}
